package main

import "fmt"

// Products of few rows of a with rows of b, both along their elements: b is neither packed nor transposed. A group is some rows of
// b, multiplied by all rows of a: each pair has a sum of its own in a register, whose lanes are added at the end, those of
// several sums at once. The order of that does not depend on which sum it is, so that equal rows have equal sums.

var rowDotSets = []set{
	{"rowdots_amd64", "Products of rows with rows for AVX2, four rows of b at a time. blocks are eight elements of a row.",
		[]routine{avx2RowDots(1), avx2RowDots(2), avx2RowDots(3)}},
	{"rowdots512_amd64", "Products of rows with rows for AVX-512, eight rows of b at a time. blocks are 16 elements of a row, bits of rest those " +
		"that are behind them.",
		[]routine{avx512RowDots(1), avx512RowDots(2), avx512RowDots(3)}},
	{"rowdots_arm64", "Products of rows with rows for NEON, four rows of b at a time. blocks are eight elements of a row.",
		[]routine{neonRowDots(1), neonRowDots(2), neonRowDots(3), neonRowDots(4)}},
}

// rowDotsSignature is that for so many rows of a. Strides are in bytes.
func rowDotsSignature(name string, rows int, more string) string {
	return fmt.Sprintf("func %s%d(groups, blocks int, a *float32, lda int, b *float32, ldb int, c *float32, ldc int%s)", name, rows, more)
}

// amd64RowsOfB are the addresses of rows of b from DI on: R8 is one stride, R9 three, R10 five and R11 seven.
var amd64RowsOfB = []string{"(DI)", "(DI)(R8*1)", "(DI)(R8*2)", "(DI)(R9*1)", "(DI)(R8*4)", "(DI)(R10*1)", "(DI)(R9*2)", "(DI)(R11*1)"}

// amd64RowsOfA are those of rows of a at the bytes BX.
var amd64RowsOfA = []string{"(SI)(BX*1)", "(R14)(BX*1)", "(AX)(BX*1)"}

// amd64RowDots is the loop over groups. R13 is the bytes of whole blocks, step those of one; block multiplies and last is behind the
// blocks. fold stores the sums at DX.
func amd64RowDots(f *frame, setup, clear, block, last, fold string, step, group int) string {
	return lines(f.arguments("MOVQ", "groups", "CX", "blocks", "R13", "a", "SI", "lda", "AX", "b", "DI", "ldb", "R8", "c", "DX", "ldc", "R15"),
		fmt.Sprintf("IMULQ $%d, R13", step), "LEAQ (SI)(AX*1), R14", "ADDQ R14, AX",
		"LEAQ (R8)(R8*2), R9", "LEAQ (R8)(R8*4), R10", "LEAQ (R9)(R8*4), R11", setup) +
		"\ngroup:\n" + lines("MOVQ DI, R12", clear, "XORQ BX, BX", "CMPQ BX, R13", "JGE last") +
		"\nblock:\n" + lines(block, fmt.Sprintf("ADDQ $%d, DI\nADDQ $%[1]d, BX", step), "CMPQ BX, R13", "JLT block") +
		"\nlast:\n" + lines(last) + "\nfold:\n" +
		lines(fold, fmt.Sprintf("ADDQ $%d, DX", 4*group), fmt.Sprintf("LEAQ (R12)(R8*%d), DI", group), "DECQ CX", "JNZ group", "VZEROUPPER", "RET")
}

// amd64Results are the addresses of the results of rows of a.
var amd64Results = []string{"(DX)", "(DX)(R15*1)", "(DX)(R15*2)"}

// avx2RowDots has the sums of row r in Y(4r) to Y(4r+3), elements of a from Y12 on and of b in Y15.
func avx2RowDots(rows int) routine {
	signature := rowDotsSignature("rowDots", rows, "")
	clear, block, fold := "", "", ""
	for r := range rows {
		block += fmt.Sprintf("VMOVUPS %s, Y%d\n", amd64RowsOfA[r], 12+r)
	}
	for j := range 4 {
		block += fmt.Sprintf("VMOVUPS %s, Y15\n", amd64RowsOfB[j])
		for r := range rows {
			clear += fmt.Sprintf("VXORPS Y%d, Y%[1]d, Y%[1]d\n", 4*r+j)
			block += fmt.Sprintf("VFMADD231PS Y15, Y%d, Y%d\n", 12+r, 4*r+j)
		}
	}
	for r := range rows {
		fold += fmt.Sprintf("VHADDPS Y%[2]d, Y%[1]d, Y%[1]d\nVHADDPS Y%[4]d, Y%[3]d, Y%[3]d\nVHADDPS Y%[3]d, Y%[1]d, Y%[1]d\n"+
			"VEXTRACTF128 $1, Y%[1]d, X%[2]d\nVADDPS X%[2]d, X%[1]d, X%[1]d\nVMOVUPS X%[1]d, %[5]s\n", 4*r, 4*r+1, 4*r+2, 4*r+3, amd64Results[r])
	}
	return routine{signature, amd64RowDots(frameOf(signature), "", clear, block, "", fold, 32, 4)}
}

// avx512RowDots has the sums of row r in Z(8r) to Z(8r+7), elements of a from Z24 on and of b in Z27 to Z30 in turn. K1 is the
// elements behind whole blocks.
func avx512RowDots(rows int) routine {
	signature := rowDotsSignature("rowDots512x", rows, ", rest uint32")
	f := frameOf(signature)
	clear, fold := "", ""
	for i := range 8 * rows {
		clear += fmt.Sprintf("VPXORD Z%d, Z%[1]d, Z%[1]d\n", i)
	}
	block := func(load string) (text string) {
		for r := range rows {
			text += fmt.Sprintf(load+", Z%d\n", amd64RowsOfA[r], 24+r)
		}
		for j := range 8 {
			text += fmt.Sprintf(load+", Z%d\n", amd64RowsOfB[j], 27+j%4)
			for r := range rows {
				text += fmt.Sprintf("VFMADD231PS Z%d, Z%d, Z%d\n", 27+j%4, 24+r, 8*r+j)
			}
		}
		return text
	}
	for r := range rows {
		fold += avx512Fold(8*r) + fmt.Sprintf("VMOVUPS Y%d, %s\n", 8*r, amd64Results[r])
	}
	return routine{signature, amd64RowDots(f, f.arguments("MOVL", "rest", "BX")+"KMOVW BX, K1\nMOVL $0xcccc, BX\nKMOVW BX, K2\nMOVL $0xff00, BX\nKMOVW BX, K3\n",
		clear, block("VMOVUPS %s"), "KTESTW K1, K1\nJZ fold\n"+block("VMOVUPS.Z %s, K1"), fold, 64, 8)}
}

// avx512Fold adds the lanes of each of eight registers, in Y of the first. Each step halves the lanes of a sum and joins two: a
// half of one register is added to that of the other by one permutation of both and one blend.
func avx512Fold(first int) string {
	join := func(permute, mask string, x, y int) string {
		return fmt.Sprintf("%[1]s $0x4e, Z%[4]d, Z%[3]d, Z31\nVMOVAPS Z%[4]d, %[2]s, Z%[3]d\nVADDPS Z31, Z%[3]d, Z%[3]d\n",
			permute, mask, first+x, first+y)
	}
	text := ""
	for _, x := range []int{0, 2, 4, 6} {
		text += join("VSHUFPS", "K2", x, x+1)
	}
	text += join("VSHUFF64X2", "K3", 0, 4) + join("VSHUFF64X2", "K3", 2, 6)
	return text + fmt.Sprintf("VSHUFPS $0x88, Z%[2]d, Z%[1]d, Z31\nVSHUFPS $0xdd, Z%[2]d, Z%[1]d, Z%[1]d\nVADDPS Z31, Z%[1]d, Z%[1]d\n"+
		"VSHUFF64X2 $0xb1, Z%[1]d, Z%[1]d, Z31\nVADDPS Z31, Z%[1]d, Z%[1]d\nVSHUFF64X2 $0x08, Z%[1]d, Z%[1]d, Z%[1]d\n", first, first+2)
}

// neonRowDots has the sums of row r in V(4r) to V(4r+3), two vectors of each row of a from V16 on, and of rows of b from V24 on.
func neonRowDots(rows int) routine {
	signature := rowDotsSignature("rowDots", rows, "")
	f := frameOf(signature)
	a, b := []string{"R2", "R3", "R4", "R5"}, []string{"R6", "R7", "R8", "R9"}
	clear, loads, products, fold := "MOVD R14, R2\n", "", "", "MOVD R11, R19\n"
	for r := range rows {
		if r > 0 {
			clear += fmt.Sprintf("ADD R15, %s, %s\n", a[r-1], a[r])
			fold += "ADD R12, R19\n"
		}
		loads += fmt.Sprintf("VLD1.P 32(%s), %s\n", a[r], registers(16+2*r, 2))
		fold += fmt.Sprintf("FADDP(%[1]d, %[1]d, %[2]d)\nFADDP(%[3]d, %[3]d, %[4]d)\nFADDP(%[1]d, %[1]d, %[3]d)\nVST1 %[5]s, (R19)\n",
			4*r, 4*r+1, 4*r+2, 4*r+3, registers(4*r, 1))
	}
	next := ""
	for j := range 4 {
		loads += fmt.Sprintf("VLD1.P 32(%s), %s\n", b[j], registers(24+2*j, 2))
		next += fmt.Sprintf("ADD R16, %s\n", b[j])
		for r := range rows {
			clear += fmt.Sprintf("VEOR V%d.B16, V%[1]d.B16, V%[1]d.B16\n", 4*r+j)
		}
	}
	for half := range 2 {
		for j := range 4 {
			for r := range rows {
				products += fmt.Sprintf("VFMLA V%d.S4, V%d.S4, V%d.S4\n", 24+2*j+half, 16+2*r+half, 4*r+j)
			}
		}
	}
	return routine{signature, lines(f.arguments("MOVD", "groups", "R0", "a", "R14", "lda", "R15", "b", "R6", "ldb", "R10", "c", "R11", "ldc", "R12", "blocks", "R1"),
		"ADD R10, R6, R7", "ADD R10, R7, R8", "ADD R10, R8, R9", "LSL $2, R10, R16", "SUB R1<<5, R16") +
		"\ngroup:\n" + lines(clear, "MOVD R1, R13") +
		"\nblock:\n" + lines(loads, products, "SUBS $1, R13", "BNE block") + "\n" +
		lines(encoded(fold), next, "ADD $16, R11", "SUBS $1, R0", "BNE group", "RET")}
}
