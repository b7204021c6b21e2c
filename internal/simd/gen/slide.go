package main

import "fmt"

// Windows that slide over rows, in place. A block is two vectors of columns: the rows of its windows are combined column
// by column in registers, then the columns, which a permutation selects from both vectors for all windows at a time. The
// vectors are adjacent, or narrow rows of two planes. Masks replace padding; see slideBlock.

var slideSets = []set{
	{"slide_amd64", "Windows that slide over rows, for AVX2.",
		[]routine{amd64Slide("sum"), amd64Slide("max")}},
	{"slide512_amd64", "Windows that slide over rows, for AVX-512.", []routine{
		avx512Slide("sum", floats), avx512Slide("sum", halves),
		avx512Slide("max", floats), avx512Slide("max", halves), avx512Slide("max", signedBytes), avx512Slide("max", unsignedBytes),
		avx512SlidePlaces}}}

// slideElement is a type of elements, which are widened to words of 16 or 32 bits when they are loaded.
type slideElement struct {
	name, load, store string
	size              int
	word              string // the suffix of instructions on words: W of integers, D
	least             uint32 // what lies outside
}

var (
	floats        = &slideElement{"", "VMOVUPS", "VMOVUPS Z5", 4, "D", 0xff800000}
	halves        = &slideElement{"Half", "VCVTPH2PS", "VCVTPS2PH $0, Z5", 2, "D", 0xff800000}
	signedBytes   = &slideElement{"Int8", "VPMOVSXBW", "VPMOVWB Z5", 1, "W", 0xff80}
	unsignedBytes = &slideElement{"Uint8", "VPMOVZXBW", "VPMOVWB Z5", 1, "W", 0}
)

// slideColumns is the largest number of columns of a window.
const slideColumns = 8

// Offsets of the fields of slideBlock, and its size.
const slideFrom, slideAt, slideBlockSize = 16, 24, 40

func slideSignature(op, suffix, more string) string {
	return fmt.Sprintf("func %sSlide%s(planes, rows, blocks int, y, x *byte, off *int, taps, kernel, ys, xs, yp, xp, second, split int, "+
		"block *slideBlock, index *int32%s)", op, suffix, more)
}

// slideSetup loads arguments: R8 are the offsets of R9 taps, R10 the columns of a window, R13 the distance of the second
// vector.
func slideSetup(f *frame) string {
	return f.arguments("MOVQ", "off", "R8", "taps", "R9", "kernel", "R10", "second", "R13", "index", "AX")
}

// slideLoops is the loops over planes, their rows and blocks: DI and SI are rows of y and x, DX is the block, R12 its
// first column, BX its first result when it is stored.
func slideLoops(f *frame, size int, plane, row, block, store string) string {
	return "\nplane:\n" + lines(f.arguments("MOVQ", "y", "DI", "x", "SI", "rows", "CX"), plane) +
		"\nrow:\n" + lines(f.arguments("MOVQ", "block", "DX", "blocks", "R11"), row) +
		"\nblock:\n" + labelled(fmt.Sprintf("MOVQ %d(DX), R12\nLEAQ (SI)(R12*%d), R12\n", slideFrom, size)+block+
		fmt.Sprintf("store:\nMOVQ %d(DX), BX\n", slideAt)+store) +
		"\nnext:\n" + lines(fmt.Sprintf("ADDQ $%d, DX", slideBlockSize), "DECQ R11", "JNZ block",
		"ADDQ "+f.at("ys")+", DI", "ADDQ "+f.at("xs")+", SI", "DECQ CX", "JNZ row",
		"MOVQ "+f.at("yp")+", AX", "ADDQ AX, "+f.at("y"), "MOVQ "+f.at("xp")+", AX", "ADDQ AX, "+f.at("x"),
		"DECQ "+f.at("planes"), "JNZ plane", "VZEROUPPER", "RET")
}

// slideColumn leaves to a label behind column b where that is the last one.
func slideColumn(b int, label string) string {
	if b == 0 {
		return ""
	}
	return fmt.Sprintf("CMPQ R10, $%d\nJLE %s\n", b, label)
}

// avx512SlideSetup loads the permutations of columns, Z16 and on.
func avx512SlideSetup(f *frame, e *slideElement) string {
	text := slideSetup(f) + "VMOVDQU32 (AX), Z16\nMOVL $1, BX\nVPBROADCAST" + e.word + " BX, Z15\n"
	for b := 1; b < slideColumns; b++ {
		text += fmt.Sprintf("VPADD%s Z15, Z%d, Z%d\n", e.word, 15+b, 16+b)
	}
	return text
}

// avx512SlideMasks loads the masks of a block: K1 and K2 of columns, K3 and K4 of results.
const avx512SlideMasks = "KMOVD (DX), K1\nKMOVD 4(DX), K2\nKMOVD 8(DX), K3\nKMOVD 12(DX), K4\n"

// slideSecond leaves a block that is not of two planes, and loads the distance of the results of the second one.
func slideSecond(f *frame) string { return "MOVQ " + f.at("split") + ", AX\nTESTQ AX, AX\nJLT next\n" }

// pick makes a register column b of all windows.
func (e *slideElement) pick(b int, register string) string {
	return fmt.Sprintf("VMOVDQA32 Z%d, %s\nVPERMI2%s Z1, Z0, %[2]s\n", 16+b, register, e.word)
}

// avx512Slide combines columns in Z0 and Z1, then windows in Z5. Z7 is what lies outside.
func avx512Slide(op string, e *slideElement) routine {
	more := ""
	if op == "sum" {
		more = ", scale *float32"
	}
	signature := slideSignature(op, "16"+e.name, more)
	f := frameOf(signature)
	setup, scale := avx512SlideSetup(f, e), ""
	if op == "sum" {
		scale = "KORW K3, K4, K5\nMOVQ " + f.at("scale") + ", AX\nVMOVUPS.Z (AX)(BX*4), K5, Z6\nVMULPS Z6, Z5, Z5\n"
	} else {
		setup += fmt.Sprintf("MOVL $0x%x, AX\nVPBROADCAST%s AX, Z7\nMOVL $0x11, AX\nVPBROADCASTD AX, Z31\n", e.least, e.word) // a NaN replaces
	}
	first, each := "", ""
	for v := range 2 {
		at := "(AX)" + []string{"", "(R13*1)"}[v]
		first += e.fetch(op, at, v, v)
		each += e.tap(op, at, v)
	}
	address := fmt.Sprintf("LEAQ (R12)(AX*%d), AX\n", e.size)
	columns := ""
	for b := range slideColumns {
		if b == 0 {
			columns += e.pick(0, "Z5")
		} else {
			columns += slideColumn(b, "store") + e.pick(b, "Z12") + e.combine(op, "Z12", "Z5", "")
		}
	}
	return routine{signature, lines(setup) + slideLoops(f, e.size, "", "", avx512SlideMasks+
		amd64TapLoop("taps", address+first, address+each)+columns,
		scale+fmt.Sprintf("LEAQ (DI)(BX*%d), BX\n%s, K3, (BX)\n", e.size, e.store)+slideSecond(f)+e.store+", K4, (BX)(AX*1)\n")}
}

// fetch loads the columns of vector v into a register, and what lies outside.
func (e *slideElement) fetch(op, at string, v, register int) string {
	if op == "sum" {
		return fmt.Sprintf("%s.Z %s, K%d, Z%d\n", e.load, at, 1+v, register)
	}
	return fmt.Sprintf("VMOVAPS Z7, Z%d\n%s %s, K%d, Z%[1]d\n", register, e.load, at, 1+v)
}

// tap combines vector v of a row with those of earlier ones.
func (e *slideElement) tap(op, at string, v int) string {
	if op == "sum" && e == floats {
		return fmt.Sprintf("VADDPS %s, Z%d, K%d, Z%[2]d\n", at, v, 1+v)
	}
	mask := fmt.Sprintf(", K%d", 1+v) // not for what is loaded in place of columns outside, 0
	return e.fetch("sum", at, v, 8+v) + e.combine(op, fmt.Sprint("Z", 8+v), fmt.Sprint("Z", v), mask)
}

// combine makes a register the sum or the maximum of itself and x, in the lanes of the mask: x where that is NaN. A NaN
// in it stays.
func (e *slideElement) combine(op, x, best, mask string) string {
	switch {
	case op == "sum":
		return fmt.Sprintf("VADDPS %s, %s%s, %[2]s\n", x, best, mask)
	case e.word == "W":
		return fmt.Sprintf("VPMAXSW %s, %s%s, %[2]s\n", x, best, mask)
	}
	return fmt.Sprintf("VMAXPS %s, %s%s, %[1]s\nVFIXUPIMMPS $0, Z31, %[2]s, %[1]s\n", best, x, mask)
}

// avx512SlidePlaces finds maxima of float32 and their places. A column replaces those of the rows above where it is greater
// or NaN, which becomes +∞, Z6: Z0 and Z1 are the maxima of the columns of both vectors, Z24 and Z25 their places, and
// Z30, a place behind all others, outside. Z26 and Z27 are places in a row at offset 0. Windows take the columns one after
// the other, in Z3 and Z4, and of equal ones the place in front. Where a maximum is +∞ the block is computed again column
// by column: there NaN may be, of which the last one counts. It is loaded again from its place at the end. A place is then
// that of the tap, Z9, and its column; at the end that of the window, Z14, is added. Z8 leads from windows that start in
// padding to their first column. Z10 is the place of the row, Z7 is -∞, Z13 the places of windows without their block.
// R14 is at without twice y.
var avx512SlidePlaces = func() routine {
	signature := slideSignature("places", "16", ", at *int64, down int")
	f := frameOf(signature)
	setup := avx512SlideSetup(f, floats) + "VMOVDQU32 64(AX), Z13\nVPBROADCASTD 128(AX), Z29\n" + avx512Lanes("Z28", "X28") + "VPADDD Z28, Z29, Z29\n" +
		"MOVL $0xff800000, AX\nVPBROADCASTD AX, Z7\nMOVL $0x7f800000, AX\nVPBROADCASTD AX, Z6\nMOVL $0x7fffffff, AX\nVPBROADCASTD AX, Z30\n" +
		"VPBROADCASTD " + f.at("down") + ", Z11\nMOVQ " + f.at("at") + ", R14\nMOVQ " + f.at("y") + ", AX\nSUBQ AX, R14\nSUBQ AX, R14\n"
	address := "MOVQ (R8)(BX*8), AX\nVPBROADCASTD (R8)(BX*8), Z9\nLEAQ (R12)(AX*4), AX\n"
	first, each := address, address
	for v, at := range []string{"(AX)", "(AX)(R13*1)"} {
		first += floats.fetch("max", at, v, v) + fmt.Sprintf("VMINPS Z6, Z%d, Z%[1]d\nVMOVDQA32 Z30, Z%d\nVPADDD Z%d, Z9, K%d, Z%[2]d\n", v, 24+v, 26+v, 1+v)
		each += floats.fetch("max", at, v, 2) + fmt.Sprintf("VCMPPS $22, Z%d, Z2, K5\nVMINPS Z6, Z2, K5, Z%[1]d\nVPADDD Z%d, Z9, K5, Z%d\n", v, 26+v, 24+v)
	}
	columns := floats.pick(0, "Z3") + "VMOVDQA32 Z16, Z4\nVPERMI2D Z25, Z24, Z4\n"
	for b := 1; b < slideColumns; b++ {
		columns += slideColumn(b, "found") + floats.pick(b, "Z2") + fmt.Sprintf("VMOVDQA32 Z%d, Z5\nVPERMI2D Z25, Z24, Z5\n", 16+b) +
			"VCMPPS $30, Z3, Z2, K5\nVCMPPS $0, Z3, Z2, K6\nVPCMPD $1, Z4, Z5, K6, K6\nKORW K5, K6, K5\nVMOVAPS Z2, K5, Z3\nVMOVDQA32 Z5, K5, Z4\n"
	}
	exact := fmt.Sprintf("VPBROADCASTD %d(DX), Z14\nVPADDD Z13, Z14, Z14\n", slideFrom) +
		"VPXORD Z8, Z8, Z8\nVPSUBD Z14, Z8, Z5\nVPMAXSD Z5, Z8, Z8\nVMOVAPS Z7, Z3\nVPBROADCASTD (R8), Z4\nVPADDD Z8, Z4, Z4\nXORL BX, BX\n" +
		"exactTap:\n" + address + floats.fetch("max", "(AX)", 0, 0) + floats.fetch("max", "(AX)(R13*1)", 1, 1) +
		"MOVQ R10, AX\nVMOVDQA32 Z16, Z12\nexactColumn:\nVMOVDQA32 Z12, Z2\nVPERMI2PS Z1, Z0, Z2\n" +
		"VCMPPS $22, Z3, Z2, K5\nVMINPS Z6, Z2, K5, Z3\nVMOVDQA32 Z9, K5, Z4\nVPADDD Z15, Z9, Z9\nVPADDD Z15, Z12, Z12\n" +
		"DECQ AX\nJNZ exactColumn\nINCQ BX\nCMPQ BX, R9\nJLT exactTap\n" +
		"VCMPPS $0, Z6, Z3, K5\nVPADDD Z14, Z4, Z4\nMOVQ SI, AX\n" +
		"KANDW K3, K5, K6\nVGATHERDPS (AX)(Z4*4), K6, Z3\nADDQ R13, AX\nKANDW K4, K5, K6\nVGATHERDPS (AX)(Z4*4), K6, Z3\n"
	block := fmt.Sprintf("VPBROADCASTD %d(DX), Z26\nVPADDD Z29, Z26, Z27\nVPADDD Z28, Z26, Z26\n", slideFrom) +
		"XORL BX, BX\n" + first + "tap:\nINCQ BX\nCMPQ BX, R9\nJGE columns\n" + each + "JMP tap\ncolumns:\n" + columns +
		"found:\nVCMPPS $0, Z6, Z3, K5\nKORTESTW K5, K5\nJZ widen\n" + exact +
		"widen:\nVPADDD Z10, Z4, Z4\nVEXTRACTI64X4 $1, Z4, Y5\nVPMOVSXDQ Y4, Z4\nVPMOVSXDQ Y5, Z5\n"
	store := "LEAQ (DI)(BX*4), BX\nVMOVUPS Z3, K3, (BX)\nLEAQ (R14)(BX*2), R12\nKSHIFTRW $8, K3, K6\n" +
		"VMOVDQU64 Z4, K3, (R12)\nVMOVDQU64 Z5, K6, 64(R12)\n" + slideSecond(f) +
		"VMOVUPS Z3, K4, (BX)(AX*1)\nKSHIFTRW $8, K4, K6\nVMOVDQU64 Z4, K4, (R12)(AX*2)\nVMOVDQU64 Z5, K6, 64(R12)(AX*2)\n"
	return routine{signature, lines(setup) +
		slideLoops(f, 4, "VPXORD Z10, Z10, Z10\nVPSUBD Z11, Z10, Z10", "VPADDD Z11, Z10, Z10", avx512SlideMasks+block, store)}
}()

// avx512Lanes makes a register the numbers of its lanes.
func avx512Lanes(register, low string) string {
	return fmt.Sprintf("MOVQ $0x0706050403020100, BX\nVMOVQ BX, %[2]s\nMOVQ $0x0f0e0d0c0b0a0908, BX\nVPINSRQ $1, BX, %[2]s, %[2]s\nVPMOVZXBD %[2]s, %[1]s\n", register, low)
}

// amd64Slide has eight lanes: masks of columns are Y10 and Y11, Y12 that of results, what lies outside is Y14 and Y15.
// Blocks without padding, whose masks are R14, do without. Columns are combined in Y0 and Y1, windows in Y5; Y8 selects
// the first column, Y7 the next one, Y9 is -1. Y13 is the bits of masks. Masked stores are slow.
func amd64Slide(op string) routine {
	more := ""
	if op == "sum" {
		more = ", scale *float32"
	}
	signature := slideSignature(op, "8", more)
	f := frameOf(signature)
	setup := slideSetup(f) + "VMOVDQU (AX), Y8\nVPCMPEQD Y9, Y9, Y9\nMOVQ $0x8040201008040201, AX\nVMOVQ AX, X13\nVPMOVZXBD X13, Y13\n" +
		"MOVQ $0xff000000ff, R14\n"
	block, scale, partScale := amd64SlideMask(0, 10)+amd64SlideMask(4, 11), "", ""
	if op == "sum" {
		scale = "MOVQ " + f.at("scale") + ", AX\nVMULPS (AX)(BX*4), Y5, Y5\n"
		partScale = amd64SlideMask(12, 4) + "VPOR Y12, Y4, Y4\nMOVQ " + f.at("scale") + ", AX\nVMASKMOVPS (AX)(BX*4), Y4, Y6\nVMULPS Y6, Y5, Y5\n"
	} else {
		block += "VPSLLD $23, Y9, Y7\nVPANDN Y7, Y10, Y14\nVPANDN Y7, Y11, Y15\n" // -∞
	}
	columns := amd64SlidePick("Y8", "Y5") + "MOVQ $1, BX\nVMOVDQA Y8, Y7\nJMP columnTest\ncolumn:\nVPSUBD Y9, Y7, Y7\n" +
		amd64SlidePick("Y7", "Y2") + amd64SlideCombine(op, "Y2", "Y5") + "INCQ BX\ncolumnTest:\nCMPQ BX, R10\nJLT column\n"
	return routine{signature, lines(setup) + slideLoops(f, 4, "", "",
		"CMPQ (DX), R14\nJNE masked\n"+amd64SlideTaps(op, "taps", false)+"JMP columns\nmasked:\n"+block+amd64SlideTaps(op, "edge", true)+
			"columns:\n"+columns,
		"CMPL 8(DX), $255\nJNE part\n"+scale+"VMOVUPS Y5, (DI)(BX*4)\nJMP next\n"+
			"part:\n"+amd64SlideMask(8, 12)+partScale+"LEAQ (DI)(BX*4), BX\nVMASKMOVPS Y5, Y12, (BX)\n"+slideSecond(f)+amd64SlideMask(12, 4)+"VMASKMOVPS Y5, Y4, (BX)(AX*1)\n")}
}

// amd64SlideMask makes a mask of lanes from its bits in the block.
func amd64SlideMask(at, register int) string {
	return fmt.Sprintf("VPBROADCASTD %d(DX), Y%d\nVPAND Y13, Y%[2]d, Y%[2]d\nVPCMPEQD Y13, Y%[2]d, Y%[2]d\n", at, register)
}

// amd64SlideTaps combines the rows of both vectors, with masks or without.
func amd64SlideTaps(op, label string, masked bool) string {
	const address = "LEAQ (R12)(AX*4), AX\n"
	first, each := address, address
	for v, at := range []string{"(AX)", "(AX)(R13*1)"} {
		fetch := func(register int) string {
			switch {
			case !masked:
				return fmt.Sprintf("VMOVUPS %s, Y%d\n", at, register)
			case op == "max":
				return fmt.Sprintf("VMASKMOVPS %s, Y%d, Y%d\nVORPS Y%d, Y%[3]d, Y%[3]d\n", at, 10+v, register, 14+v)
			}
			return fmt.Sprintf("VMASKMOVPS %s, Y%d, Y%d\n", at, 10+v, register)
		}
		first += fetch(v)
		each += fetch(2) + amd64SlideCombine(op, "Y2", fmt.Sprint("Y", v))
	}
	return amd64TapLoop(label, first, each)
}

// amd64SlideCombine is [slideElement.combine]; it overwrites Y3.
func amd64SlideCombine(op, x, best string) string {
	if op == "sum" {
		return fmt.Sprintf("VADDPS %s, %s, %[2]s\n", x, best)
	}
	return fmt.Sprintf("VMAXPS %s, %s, %[1]s\nVCMPPS $3, %[2]s, %[2]s, Y3\nVBLENDVPS Y3, %[2]s, %[1]s, %[1]s\n", best, x)
}

// amd64SlidePick makes a register the columns of an index, of Y0 or from 8 on of Y1; it overwrites Y3 and Y4.
func amd64SlidePick(index, register string) string {
	return fmt.Sprintf("VPERMPS Y0, %s, %s\nVPERMPS Y1, %[1]s, Y3\nVPSLLD $28, %[1]s, Y4\nVBLENDVPS Y4, Y3, %[2]s, %[2]s\n", index, register)
}
