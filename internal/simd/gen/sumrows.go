package main

import "fmt"

// Sums of short rows, several rows at a time.

var sumRowsSets = []set{
	{"sumrows_amd64", "Sums of rows for AVX2, four at a time.", []routine{amd64SumRows, amd64SumHalfRows}},
	{"sumrows512_amd64", "Sums of rows for AVX-512, eight at a time.", []routine{avx512SumRows}}}

// sumRowsText is the loop over the rows: SI runs along the first of four, R8 and R9 are two and three strides. block adds
// eight elements of each row to Y0 to Y3, last those that are left.
func sumRowsText(f *frame, setup, block, last string) string {
	return lines(f.arguments("MOVQ", "rows", "R11", "dst", "DI", "x", "R12", "stride", "DX", "mask", "AX"),
		"LEAQ (DX)(DX*1), R8", "LEAQ (R8)(DX*1), R9", "VMOVUPS (AX), Y15", setup) +
		"\nrows:\n" + lines("MOVQ R12, SI", f.arguments("MOVQ", "n", "CX"),
		"VXORPS Y0, Y0, Y0", "VXORPS Y1, Y1, Y1", "VXORPS Y2, Y2, Y2", "VXORPS Y3, Y3, Y3", "TESTQ CX, CX", "JZ last") +
		"\nblock:\n" + lines(block, "DECQ CX", "JNZ block") + "\nlast:\n" + lines(last, fourRows("VADDPS Y%[3]d, Y%[1]d, Y%[1]d")) +
		"\nfold:\n" + lines("VHADDPS Y1, Y0, Y0", "VHADDPS Y3, Y2, Y2", "VHADDPS Y2, Y0, Y0", "VEXTRACTF128 $1, Y0, X1",
		"VADDPS X1, X0, X0", "VMOVUPS X0, (DI)", "ADDQ $16, DI", "LEAQ (R12)(DX*4), R12", "SUBQ $4, R11", "JNZ rows", "VZEROUPPER", "RET")
}

// fourRows is an instruction for each of four rows: of the number of the row, its address from SI on, and that of Y4 and
// on.
func fourRows(format string) (text string) {
	for r, at := range []string{"", "(DX*1)", "(R8*1)", "(R9*1)"} {
		text += fmt.Sprintf(format, r, at, 4+r) + "\n"
	}
	return text
}

// amd64SumRows loads what is left of a row by the mask.
var amd64SumRows = func() routine {
	const signature = "func sumRows8(rows, n int, dst, x *float32, stride int, mask *int32)"
	return routine{signature, sumRowsText(frameOf(signature), "VPTEST Y15, Y15\nSETNE R13",
		fourRows("VADDPS (SI)%[2]s, Y%[1]d, Y%[1]d")+"ADDQ $32, SI\n",
		"TESTB R13, R13\nJZ fold\n"+fourRows("VMASKMOVPS (SI)%[2]s, Y15, Y%[3]d"))}
}()

// amd64SumHalfRows loads the last eight elements of a row, which begin back bytes behind the last whole block, and drops
// those of the mask.
var amd64SumHalfRows = func() routine {
	const signature = "func sumHalfRows8(rows, n int, dst *float32, x *byte, stride, back int, mask *int32)"
	f := frameOf(signature)
	return routine{signature, sumRowsText(f, f.arguments("MOVQ", "back", "R13"),
		fourRows("VCVTPH2PS (SI)%[2]s, Y%[3]d\nVADDPS Y%[3]d, Y%[1]d, Y%[1]d")+"ADDQ $16, SI\n",
		"ADDQ R13, SI\n"+fourRows("VCVTPH2PS (SI)%[2]s, Y%[3]d\nVANDNPS Y%[3]d, Y15, Y%[3]d"))}
}()

// avx512SumRows adds eight rows of at least 16 elements, one behind the other, in Z0 to Z7, by aligned loads: a load across
// lines of the cache takes twice as long. K1 is the elements of the row in the block where the last one ended, R9 their
// place, K2 those of the row in its last block. Z10 rotates the first element of a row to the first lane, so that sums
// do not depend on where it is. Then lanes of pairs are exchanged: after each round a register holds twice as many rows,
// each in half as many lanes.
var avx512SumRows = func() routine {
	const signature = "func sumRows16(rows, n int, dst, x *float32)"
	f := frameOf(signature)
	sums, fold := "", ""
	for r := range 8 {
		sums += lines(fmt.Sprintf("VADDPS.Z (SI), Z9, K1, Z%d", r), "ADDQ R8, R9", "MOVQ R9, CX", "ANDL $15, R9", "BZHIL R9, R10, AX", "KMOVW AX, K2",
			"KNOTW K2, K1", "SHRQ $4, CX", "DECQ CX", fmt.Sprintf("JZ last%d", r)) +
			fmt.Sprintf("\nblock%d:\n", r) + lines("ADDQ $64, SI", fmt.Sprintf("VADDPS (SI), Z%d, Z%[1]d\nDECQ CX\nJNZ block%[1]d", r)) +
			fmt.Sprintf("\nlast%d:\n", r) + lines("ADDQ $64, SI", fmt.Sprintf("VADDPS (SI), Z%d, K2, Z%[1]d\nVPERMPS Z%[1]d, Z10, Z%[1]d", r), "VPADDD Z11, Z10, Z10")
	}
	for _, r := range []int{0, 2, 4, 6} {
		fold += exchanged("VUNPCKLPS", "VUNPCKHPS", r, r+1)
	}
	fold += exchanged("VUNPCKLPD", "VUNPCKHPD", 0, 2) + exchanged("VUNPCKLPD", "VUNPCKHPD", 4, 6) +
		exchanged("VSHUFF32X4 $0x88,", "VSHUFF32X4 $0xdd,", 0, 4) + exchanged("VSHUFF32X4 $0x88,", "VSHUFF32X4 $0xdd,", 0, 0)
	return routine{signature, lines(f.arguments("MOVQ", "rows", "R11", "n", "R8", "dst", "DI", "x", "SI"), "MOVL $0xffff, R10",
		"MOVQ SI, R9", "ANDQ $~63, SI", "SUBQ SI, R9", "SHRQ $2, R9", "BZHIL R9, R10, AX", "KMOVW AX, K1", "KNOTW K1, K1",
		avx512Lanes("Z10", "X10"),
		"VPBROADCASTD R9, Z11", "VPADDD Z11, Z10, Z10", "VPBROADCASTD R8, Z11", "VXORPS Y9, Y9, Y9") +
		"\nrows:\n" + sums + lines(fold, "VMOVUPS Y0, (DI)", "ADDQ $32, DI", "SUBQ $8, R11", "JNZ rows", "VZEROUPPER", "RET")}
}()

// exchanged adds what the two instructions select from registers a and b, in a.
func exchanged(low, high string, a, b int) string {
	return fmt.Sprintf("%s Z%d, Z%d, Z8\n%s Z%[2]d, Z%[3]d, Z%[3]d\nVADDPS Z8, Z%[3]d, Z%[3]d\n", low, b, a, high)
}

// avx512Lanes makes a register the numbers of its lanes.
func avx512Lanes(register, low string) string {
	return fmt.Sprintf("MOVQ $0x0706050403020100, BX\nVMOVQ BX, %[2]s\nMOVQ $0x0f0e0d0c0b0a0908, BX\nVPINSRQ $1, BX, %[2]s, %[2]s\nVPMOVZXBD %[2]s, %[1]s\n", register, low)
}
