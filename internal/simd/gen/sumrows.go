package main

import "fmt"

// Sums of short rows, four rows at a time.

var sumRowsSets = []set{{"sumrows_amd64", "Sums of rows for AVX2, four at a time.", []routine{amd64SumRows, amd64SumHalfRows}}}

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
