package main

import "fmt"

// Windows that slide by 2 to 4 columns, in place: the rows of a window are combined column by column in registers, then
// its columns. Columns outside of the input are masked, so that padding needs no copy.

var slideSets = []set{{"slide_amd64", "Windows that slide by 2 columns, for AVX2.", []routine{amd64Slide("sum"), amd64Slide("max"), amd64Prefetch}},
	{"slide512_amd64", "Windows that slide by 2 to 4 columns, for AVX-512.", []routine{
		avx512Slide("sum", 2), avx512Slide("sum", 3), avx512Slide("sum", 4),
		avx512Slide("max", 2), avx512Slide("max", 3), avx512Slide("max", 4)}}}

// slideMasks is the largest number of masks of columns: K7 is that of results.
const slideMasks = 6

// avx512Slide has 16 windows at a time, from column R13 on, for all rows. Group g of columns are those of taps g·stride
// and on: as many vectors as the stride, combined in Z0 and on. Z5 is the result, Z6 the scale, Z7 what lies outside.
func avx512Slide(op string, stride int) routine {
	signature := slideSignature(op, fmt.Sprint(stride))
	f := frameOf(signature)
	setup := f.arguments("MOVQ", "n", "R10", "y", "R11", "x", "R12", "off", "R8", "taps", "R9", "pad", "R13") +
		"NEGQ R13\nLEAQ (R12)(R13*4), R12\n" + slideIndices(stride)
	if op == "max" {
		setup += "MOVL $0xff800000, AX\nVPBROADCASTD AX, Z7\nMOVL $0x11, AX\nVPBROADCASTD AX, Z31\n" // a NaN replaces
	}
	groups := slideMasks / stride
	masks, compute := "", ""
	for g := range groups {
		if g > 0 {
			masks += fmt.Sprintf("CMPQ %s, $%d\nJLE rows\n", f.at("kernel"), g*stride)
		}
		for q := range stride {
			masks += slideMask(f, g*stride+16*q, g*stride+q+1)
		}
		compute += slideGroup(f, op, stride, g)
	}
	scale, finish := "", "VMOVUPS Z5, K7, (DI)\n"
	if op == "sum" {
		scale = "MOVQ " + f.at("scale") + ", AX\nVMOVUPS.Z (AX), K7, Z6\nADDQ $64, AX\nMOVQ AX, " + f.at("scale") + "\n"
		finish = "VMULPS Z6, Z5, Z5\n" + finish
	}
	return routine{signature, lines(setup) + "\nblock:\n" +
		lines("MOVL $16, AX", "CMPQ R10, AX", "CMOVQLT R10, AX", "MOVQ $-1, BX", "BZHIQ AX, BX, BX", "KMOVW BX, K7", scale, masks) +
		"\nrows:\n" + lines("MOVQ R11, DI", "MOVQ R12, SI", f.arguments("MOVQ", "rows", "CX")) + "\nrow:\n" + labelled(compute) +
		"\nstore:\n" + lines(finish, "ADDQ "+f.at("ys")+", DI", "ADDQ "+f.at("xs")+", SI", "DECQ CX", "JNZ row",
		fmt.Sprintf("ADDQ $64, R11\nADDQ $%d, R12\nADDQ $%d, R13", 64*stride, 16*stride), "SUBQ $16, R10", "JG block", "VZEROUPPER", "RET")}
}

func slideSignature(op, suffix string) string {
	slices := "y, x *float32, off *int, taps, kernel, width, pad, ys, xs int"
	if op == "sum" {
		slices += ", scale *float32"
	}
	return fmt.Sprintf("func %sSlide%s(rows, n int, %s)", op, suffix, slices)
}

// slideMask makes a mask of the lanes whose columns, from R13 + first on, are in the input.
func slideMask(f *frame, first, mask int) string {
	return fmt.Sprintf("LEAQ %d(R13), BX\nMOVQ %s, AX\nSUBQ BX, AX\nXORL DX, DX\nTESTQ AX, AX\nCMOVQLT DX, AX\n", first, f.at("width")) +
		"MOVL $16, DX\nCMPQ AX, DX\nCMOVQGT DX, AX\nMOVQ $-1, DX\nBZHIQ AX, DX, AX\n" + // lanes below the end
		"NEGQ BX\nXORL DX, DX\nTESTQ BX, BX\nCMOVQLT DX, BX\nMOVQ $-1, DX\nSHLXQ BX, DX, DX\nANDQ DX, AX\n" +
		fmt.Sprintf("KMOVW AX, K%d\n", mask)
}

// slideGroup combines the columns of a group, and those with the result as far as the kernel goes.
func slideGroup(f *frame, op string, stride, g int) string {
	first, each := "", ""
	for q := range stride {
		mask, at := g*stride+q+1, offset(4*g*stride+64*q)+"(SI)(AX*4)"
		if op == "sum" {
			first += fmt.Sprintf("VMOVUPS.Z %s, K%d, Z%d\n", at, mask, q)
			each += fmt.Sprintf("VADDPS %s, Z%d, K%d, Z%[2]d\n", at, q, mask)
			continue
		}
		first += fmt.Sprintf("VMOVAPS Z7, Z%d\nVMOVUPS %s, K%d, Z%[1]d\n", q, at, mask)
		each += fmt.Sprintf("VMOVAPS Z7, Z%d\nVMOVUPS %s, K%d, Z%[1]d\n", 8+q, at, mask) + orMax(fmt.Sprint("Z", 8+q), fmt.Sprint("Z", q))
	}
	text := amd64TapLoop(fmt.Sprintf("group%d", g), first, each)
	if g > 0 {
		text = fmt.Sprintf("CMPQ %s, $%d\nJLE store\n", f.at("kernel"), g*stride) + text
	}
	for q := range stride {
		if b := g*stride + q; q > 0 {
			text += fmt.Sprintf("CMPQ %s, $%d\nJLE store\n", f.at("kernel"), b)
		}
		switch text += slidePhase(stride, q); {
		case g+q == 0:
			text += "VMOVAPS Z12, Z5\n"
		case op == "sum":
			text += "VADDPS Z12, Z5, Z5\n"
		default:
			text += orMax("Z12", "Z5")
		}
	}
	return text
}

// orMax makes a register the maximum of itself and x: x where that is NaN. A NaN in it stays.
func orMax(x, best string) string {
	return fmt.Sprintf("VMAXPS %s, %s, %[1]s\nVFIXUPIMMPS $0, Z31, %[2]s, %[1]s\n", best, x)
}

// slideIndices loads the indices that slidePhase permutes with.
func slideIndices(stride int) (text string) {
	for q := range stride {
		switch stride {
		case 2:
			text += lanesOf(q, 2, fmt.Sprint("Z", 16+q))
		case 3: // element q+3i of three vectors: the first two, then the third in the lanes beyond
			text += bytesOf(fmt.Sprint("Z", 16+q), func(i int) int { return min(q+3*i, 31) })
			text += bytesOf(fmt.Sprint("Z", 20+q), func(i int) int {
				if q+3*i < 32 {
					return i
				}
				return q + 3*i - 16
			})
		case 4:
			text += lanesOf(q, 4, fmt.Sprint("Z", 16+q))
		}
	}
	return text
}

// slidePhase makes Z12 every stride-th element from q on.
func slidePhase(stride, q int) string {
	text := fmt.Sprintf("VMOVDQA32 Z%d, Z12\nVPERMI2PS Z1, Z0, Z12\n", 16+q)
	switch stride {
	case 3:
		text += fmt.Sprintf("VPERMT2PS Z2, Z%d, Z12\n", 20+q)
	case 4:
		text += fmt.Sprintf("VMOVDQA32 Z%d, Z13\nVPERMI2PS Z3, Z2, Z13\nVINSERTF64X4 $1, Y13, Z12, Z12\n", 16+q)
	}
	return text
}

// bytesOf writes numbers, one for each lane, into a register by way of bytes.
func bytesOf(register string, f func(i int) int) string {
	text := ""
	for half := range 2 {
		bits := uint64(0)
		for i := range 8 {
			bits |= uint64(f(8*half+i)) << (8 * i)
		}
		text += fmt.Sprintf("MOVQ $0x%016x, AX\nVPINSRQ $%d, AX, X15, X15\n", bits, half)
	}
	return text + "VPMOVZXBD X15, " + register + "\n"
}

// amd64Slide has eight windows at a time. Masks of columns are Y10 and on, Y7 that of results; Y8 numbers the lanes. The
// columns of a group are combined in Y0 and Y1, the result is Y5, Y6 the scale, Y9 what lies outside.
func amd64Slide(op string) routine {
	signature := slideSignature(op, "8")
	f := frameOf(signature)
	setup := f.arguments("MOVQ", "n", "R10", "y", "R11", "x", "R12", "off", "R8", "taps", "R9", "pad", "R13") +
		"NEGQ R13\nLEAQ (R12)(R13*4), R12\nMOVQ $0x0706050403020100, AX\nVMOVQ AX, X8\nVPMOVZXBD X8, Y8\n"
	scale, finish := "", ""
	if op == "sum" {
		scale = "MOVQ " + f.at("scale") + ", AX\nVMASKMOVPS (AX), Y7, Y6\nADDQ $32, AX\nMOVQ AX, " + f.at("scale") + "\n"
		finish = "VMULPS Y6, Y5, Y5\n"
	} else {
		setup += "MOVL $0xff800000, AX\nVMOVD AX, X9\nVPBROADCASTD X9, Y9\n"
	}
	masks, compute := "", ""
	for g := range slideMasks / 2 {
		for q := range 2 {
			masks += fmt.Sprintf("LEAQ %d(R13), AX\nVMOVD AX, X4\nVPBROADCASTD X4, Y4\nVPADDD Y8, Y4, Y4\nVPCMPGTD Y4, Y3, Y%d\n", 2*g+8*q, 10+2*g+q) +
				fmt.Sprintf("VPSRAD $31, Y4, Y4\nVPANDN Y%d, Y4, Y%[1]d\n", 10+2*g+q)
		}
		compute += amd64SlideGroup(f, op, g)
	}
	return routine{signature, lines(setup) + "\nblock:\n" +
		lines("VMOVD R10, X4", "VPBROADCASTD X4, Y4", "VPCMPGTD Y8, Y4, Y7", "VPBROADCASTD "+f.at("width")+", Y3", scale, masks,
			"MOVQ R11, DI", "MOVQ R12, SI", f.arguments("MOVQ", "rows", "CX")) + "\nrow:\n" + labelled(compute) +
		"\nstore:\n" + lines(finish, "CMPQ R10, $8", "JLT part", "VMOVUPS Y5, (DI)", "JMP next") +
		"\npart:\n" + lines("VMASKMOVPS Y5, Y7, (DI)") +
		"\nnext:\n" + lines("ADDQ "+f.at("ys")+", DI", "ADDQ "+f.at("xs")+", SI", "DECQ CX", "JNZ row",
		"ADDQ $32, R11\nADDQ $64, R12\nADDQ $16, R13", "SUBQ $8, R10", "JG block", "VZEROUPPER", "RET")}
}

// amd64SlideGroup combines two columns, and those with the result as far as the kernel goes.
func amd64SlideGroup(f *frame, op string, g int) string {
	first, each := "", ""
	for q := range 2 {
		mask, at := 10+2*g+q, offset(8*g+32*q)+"(SI)(AX*4)"
		first += fmt.Sprintf("VMASKMOVPS %s, Y%d, Y%d\n", at, mask, q)
		each += fmt.Sprintf("VMASKMOVPS %s, Y%d, Y2\n", at, mask)
		if op == "sum" {
			each += fmt.Sprintf("VADDPS Y2, Y%d, Y%[1]d\n", q)
		} else {
			first += fmt.Sprintf("VBLENDVPS Y%d, Y%d, Y9, Y%[2]d\n", mask, q)
			each += fmt.Sprintf("VBLENDVPS Y%d, Y2, Y9, Y2\n", mask) + amd64OrMax("Y2", fmt.Sprint("Y", q))
		}
	}
	text := amd64TapLoop(fmt.Sprintf("group%d", g), first, each)
	if g > 0 {
		text = fmt.Sprintf("CMPQ %s, $%d\nJLE store\n", f.at("kernel"), 2*g) + text
	}
	for q, lanes := range []string{"0x88", "0xdd"} {
		if q > 0 {
			text += fmt.Sprintf("CMPQ %s, $%d\nJLE store\n", f.at("kernel"), 2*g+q)
		}
		switch text += "VSHUFPS $" + lanes + ", Y1, Y0, Y2\nVPERMPD $0xd8, Y2, Y2\n"; {
		case g+q == 0:
			text += "VMOVAPS Y2, Y5\n"
		case op == "sum":
			text += "VADDPS Y2, Y5, Y5\n"
		default:
			text += amd64OrMax("Y2", "Y5")
		}
	}
	return text
}

// amd64OrMax is [orMax]; it overwrites Y3.
func amd64OrMax(x, best string) string {
	return fmt.Sprintf("VMAXPS %s, %s, %[1]s\nVCMPPS $3, %[2]s, %[2]s, Y3\nVBLENDVPS Y3, %[2]s, %[1]s, %[1]s\n", best, x)
}

const prefetchSignature = "func prefetchLines(n int, x *float32)"

var amd64Prefetch = routine{prefetchSignature, frameOf(prefetchSignature).arguments("MOVQ", "n", "CX", "x", "SI") +
	"\nline:\n" + lines("PREFETCHT0 (SI)", "ADDQ $64, SI", "DECQ CX", "JNZ line", "RET")}
