package main

import "fmt"

// Loops over rows for NEON, of n elements each, at least a block of four. What is left of a row behind its whole blocks is in its
// last four elements, which are loaded before anything of the row is stored: dst may be src. The mask, in V30, is of the
// lanes of these that whole blocks have had.

var rowsNeonSets = []set{{"rows_arm64", "Norms, softmax, sums, every second element, and interpolation of rows, for NEON.",
	[]routine{neonNormRows, neonSoftmaxRows, neonSumRows, neonStride2Rows, neonInterpolate}}}

// neonAlong goes over the whole blocks of a row of R1 elements, from R3 on, R9 being the place of the next, and in R2 and
// R10: over several of them at a time, and over single ones.
func neonAlong(label string, blocks int, several, one string) string {
	return lines("MOVD R3, R9\nMOVD R2, R10", fmt.Sprintf("SUBS $%d, R1, R11\nBLT %sRest", 4*blocks, label)) +
		"\n" + label + "Several:\n" + encoded(lines(several, fmt.Sprintf("SUBS $%d, R11\nBGE %sSeveral", 4*blocks, label))) +
		"\n" + label + "Rest:\n" + lines(fmt.Sprintf("ADDS $%d, R11\nBLT %sLast", 4*blocks-4, label)) +
		"\n" + label + "One:\n" + encoded(lines(one, fmt.Sprintf("SUBS $4, R11\nBGE %sOne", label))) + "\n" + label + "Last:\n"
}

// neonRowArguments are those that norms have in common. R12 is the number of elements behind whole blocks, R5 the bytes in front
// of the last four.
func neonRowArguments(f *frame) string {
	return f.arguments("MOVD", "rows", "R0", "n", "R1", "dst", "R2", "src", "R3", "mask", "R4") +
		"VLD1 (R4), [V30.S4]\nAND $3, R1, R12\nLSL $2, R1, R6\nSUB $16, R6, R5\n"
}

// neonLastBlock loads the last four elements of a row of src to V15.
const neonLastBlock = "ADD R5, R3, R7\nVLD1 (R7), [V15.S4]\n"

// added makes each lane of a register the sum of all lanes of four registers from one on.
func added(first, to int) string {
	return fmt.Sprintf("FADD(%[1]d, %[1]d, %[2]d)\nFADD(%[3]d, %[3]d, %[4]d)\nFADD(%[1]d, %[1]d, %[3]d)\nFADDP(%[1]d, %[1]d, %[1]d)\nFADDP(%[5]d, %[1]d, %[1]d)\n",
		first, first+1, first+2, first+3, to)
}

// neonNormRows has the mean in V8 and the factor in V9.
var neonNormRows = func() routine {
	const signature = "func normRows4(rows, n int, dst, src *float32, mask *int32, weight, bias, mean, rstd *float32, size, eps float32)"
	f := frameOf(signature)
	clear, sums, squares, centers := "", "", "", ""
	for i := range 4 {
		clear += cleared(16 + i)
		sums += fmt.Sprintf("FADD(%d, %[1]d, %d)\n", 16+i, i)
		squares += fmt.Sprintf("FSUB(%[1]d, %[1]d, 8)\nVFMLA V%[1]d.S4, V%[1]d.S4, V%[2]d.S4\n", i, 16+i)
		centers += fmt.Sprintf("FSUB(%[1]d, %[1]d, 8)\nFMUL(%[1]d, %[1]d, 9)\nVFMLA V%[1]d.S4, V%[2]d.S4, V%[3]d.S4\n", i, 4+i, 20+i)
	}
	center := "FSUB(0, 0, 8)\nFMUL(0, 0, 9)\nVFMLA V0.S4, V4.S4, V20.S4\n"
	return routine{signature, lines(neonRowArguments(f), f.arguments("MOVD", "weight", "R13", "bias", "R14", "mean", "R15", "rstd", "R16"),
		f.arguments("FMOVS", "size", "F14", "eps", "F13"), "VDUP V14.S[0], V14.S4\nVDUP V13.S[0], V13.S4\nFMOVS $1.0, F12\nVDUP V12.S[0], V12.S4") +
		"\nrow:\n" + lines(neonLastBlock, clear) +
		neonAlong("sum", 4, load("R9", 0, 4)+sums, load("R9", 0, 1)+"FADD(16, 16, 0)\n") +
		encoded(lines("BIC(0, 15, 30)\nFADD(17, 17, 0)", added(16, 8), "FDIV(8, 8, 14)\nFMOVS.P F8, 4(R15)", clear)) +
		neonAlong("square", 4, load("R9", 0, 4)+squares, load("R9", 0, 1)+"FSUB(0, 0, 8)\nVFMLA V0.S4, V0.S4, V16.S4\n") +
		encoded(lines("FSUB(0, 15, 8)\nBIC(0, 0, 30)\nVFMLA V0.S4, V0.S4, V17.S4", added(16, 9),
			"FDIV(9, 9, 14)\nFADD(9, 9, 13)\nFSQRT(9, 9)\nFDIV(9, 12, 9)\nFMOVS.P F9, 4(R16)\nMOVD R13, R17\nMOVD R14, R19")) +
		neonAlong("center", 4, load("R9", 0, 4)+load("R17", 4, 4)+load("R19", 20, 4)+centers+"VST1.P "+registers(20, 4)+", 64(R10)\n",
			load("R9", 0, 1)+load("R17", 4, 1)+load("R19", 20, 1)+center+"VST1.P [V20.S4], 16(R10)\n") +
		encoded(lines("CBZ R12, next\nADD R5, R13, R17\nADD R5, R14, R19\nADD R5, R2, R7\nVLD1 (R17), [V4.S4]\nVLD1 (R19), [V20.S4]",
			moved("15", "0"), center, "VST1 [V20.S4], (R7)")) +
		"\nnext:\n" + lines("ADD R6, R2\nADD R6, R3\nSUBS $1, R0\nBNE row\nRET")}
}()

// neonSoftmaxRows has the largest element in V8, later the factor, and the sum in V31.
var neonSoftmaxRows = func() routine {
	const signature = "func softmaxRows4(rows, n int, dst, src *float32, mask *int32)"
	f := frameOf(signature)
	term := lines(expandedPseudo("FSUB(0, 0, 8)\n" + arm64Exponential))
	c := unrolled(term+"FADD(31, 31, 0)\n", 1, 0, 4, "FADD(15, 15, 30)")
	list, _ := c.list(0)
	return routine{signature, lines(softmaxConstants(), neonRowArguments(f)) +
		"\nrow:\n" + lines(neonLastBlock, moved("15", "8")) +
		neonAlong("max", 4, load("R9", 0, 4)+"FMAX(0, 0, 1)\nFMAX(2, 2, 3)\nFMAX(0, 0, 2)\nFMAX(8, 8, 0)\n", load("R9", 0, 1)+"FMAX(8, 8, 0)\n") +
		encoded(lines("FMAXP(8, 8, 8)\nFMAXP(8, 8, 8)", cleared(31))) +
		neonAlong("exp", c.n, fmt.Sprintf("VLD1.P %d(R9), %s\n", 16*c.n, list)+c.body(term+"FADD(31, 31, 0)\n")+fmt.Sprintf("VST1.P %s, %d(R10)\n", list, 16*c.n),
			load("R9", 0, 1)+term+"FADD(31, 31, 0)\nVST1.P [V0.S4], 16(R10)\n") +
		encoded(lines("ADD R5, R2, R7\nCBZ R12, added", moved("15", "0"), term, "VST1 [V0.S4], (R7)\nBIC(0, 0, 30)\nFADD(31, 31, 0)")) +
		"\nadded:\n" + encoded(lines("FADDP(31, 31, 31)\nFADDP(31, 31, 31)\nFDIV(8, 27, 31)\nVLD1 (R7), [V15.S4]\nFMUL(15, 15, 8)\nMOVD R3, R8\nMOVD R2, R3")) +
		neonAlong("scale", 4, load("R9", 0, 4)+"FMUL(0, 0, 8)\nFMUL(1, 1, 8)\nFMUL(2, 2, 8)\nFMUL(3, 3, 8)\nVST1.P "+registers(0, 4)+", 64(R10)\n",
			load("R9", 0, 1)+"FMUL(0, 0, 8)\nVST1.P [V0.S4], 16(R10)\n") +
		lines("VST1 [V15.S4], (R7)\nADD R6, R2\nADD R6, R8, R3\nSUBS $1, R0\nBNE row\nRET")}
}()

// softmaxConstants are those of the exponential that is 0 where it would be subnormal.
func softmaxConstants() (text string) {
	for i, name := range exponentials {
		if name == "expMin" {
			name = "expNormal"
		}
		text += constant(name, 16+i)
	}
	return text
}

// neonSumRows sums four rows at a time, in V0 to V3.
var neonSumRows = func() routine {
	const signature = "func sumRows4(rows, n int, dst, x *float32, mask *int32)"
	f := frameOf(signature)
	clear, pointers, sums, last := "", "MOVD R3, R7\n", "", ""
	for r := range 4 {
		clear += cleared(r)
		if r > 0 {
			pointers += fmt.Sprintf("ADD R6, R%d, R%d\n", 6+r, 7+r)
		}
		sums += fmt.Sprintf("VLD1.P 16(R%d), [V%d.S4]\nFADD(%d, %[3]d, %[2]d)\n", 7+r, 4+r, r)
		last += fmt.Sprintf("ADD R12, R%d\nVLD1 (R%[1]d), [V%d.S4]\nBIC(%[2]d, %[2]d, 30)\nFADD(%d, %[3]d, %[2]d)\n", 7+r, 4+r, r)
	}
	return routine{signature, lines(f.arguments("MOVD", "rows", "R0", "n", "R1", "dst", "R2", "x", "R3", "mask", "R4"),
		"VLD1 (R4), [V30.S4]\nLSL $2, R1, R6\nAND $3, R1, R12\nSUB $4, R12, R12\nLSL $2, R12, R12") +
		"\nrows:\n" + lines(pointers, clear, "SUB $4, R1, R11") +
		"\nblock:\n" + encoded(lines(sums, "SUBS $4, R11\nBGE block")) +
		"\n" + encoded(lines("CMN $16, R12\nBEQ fold", last)) +
		"\nfold:\n" + encoded(lines("FADDP(0, 0, 1)\nFADDP(2, 2, 3)\nFADDP(0, 0, 2)\nVST1.P [V0.S4], 16(R2)\nADD R6<<2, R3\nSUBS $4, R0\nBNE rows\nRET"))}
}()

// neonStride2Rows reads the last four elements of a row with those in front of them: src may end with the last one.
var neonStride2Rows = func() routine {
	signature := "func stride2Rows" + rowsOfPairs
	f := frameOf(signature)
	return routine{signature, lines(f.arguments("MOVD", "rows", "R0", "n", "R1", "dst", "R2", "src", "R3", "ds", "R5", "ss", "R6"),
		"SUB $4, R1, R7\nLSL $2, R7, R12\nLSL $3, R7, R13\nSUB $4, R13, R13") +
		"\nrow:\n" + lines("MOVD R3, R9\nMOVD R2, R10\nSUBS $8, R7, R11\nBLE rest") +
		"\ntwo:\n" + lines("VLD2.P 32(R9), [V0.S4, V1.S4]\nVLD2.P 32(R9), [V2.S4, V3.S4]\nVST1.P [V0.S4], 16(R10)\nVST1.P [V2.S4], 16(R10)\nSUBS $8, R11\nBGT two") +
		"\nrest:\n" + lines("ADDS $8, R11\nBLE last") +
		"\none:\n" + lines("VLD2.P 32(R9), [V0.S4, V1.S4]\nVST1.P [V0.S4], 16(R10)\nSUBS $4, R11\nBGT one") +
		"\nlast:\n" + lines("ADD R13, R3, R9\nADD R12, R2, R10\nVLD2 (R9), [V0.S4, V1.S4]\nVST1 [V1.S4], (R10)\nADD R5, R2\nADD R6, R3\nSUBS $1, R0\nBNE row\nRET")}
}()

// neonInterpolate loads the points of four elements one by one. It stops at a block with an index outside of src, and returns how
// many elements are done. n is the number of blocks, and V31 has ones.
var neonInterpolate = func() routine {
	signature := "func interpolate4" + interpolateParams
	f := frameOf(signature)
	points := func(indices string, at, to int) (text string) {
		for i := 0; i < 4; i += 2 {
			text += fmt.Sprintf("LDPW %d(%s), (R%d, R%d)\n", 4*i, indices, at+i, at+i+1)
		}
		for i := range 4 {
			text += fmt.Sprintf("FMOVS (R2)(R%d<<2), F%d\n", at+i, to+i)
		}
		return text + fmt.Sprintf("VZIP1 V%[2]d.S4, V%[1]d.S4, V%[1]d.S4\nVZIP1 V%[4]d.S4, V%[3]d.S4, V%[3]d.S4\nVZIP1 V%[3]d.D2, V%[1]d.D2, V%[1]d.D2\n",
			to, to+1, to+2, to+3)
	}
	return routine{signature, lines(f.arguments("MOVD", "n", "R0", "dst", "R1", "src", "R2", "size", "R3", "first", "R4", "second", "R5", "weight", "R6"),
		"MOVD ZR, R7\nFMOVS $1.0, F31\nVDUP V31.S[0], V31.S4") +
		"\nblock:\n" + encoded(lines("VLD1 (R4), [V0.S4]\nVLD1 (R5), [V1.S4]\nUMAX(0, 0, 1)\nUMAXV(0, 0)\nVMOV V0.S[0], R8\nCMP R3, R8\nBHS done",
		points("R4", 8, 4), points("R5", 12, 16), "ADD $16, R4\nADD $16, R5\nVLD1.P 16(R6), [V2.S4]\nFSUB(3, 31, 2)\nFMUL(3, 3, 4)\nFMUL(2, 2, 16)\nFADD(3, 3, 2)",
		"VST1.P [V3.S4], 16(R1)\nADD $4, R7\nSUBS $1, R0\nBNE block")) +
		"\ndone:\n" + lines("MOVD R7, "+f.at("done"), "RET")}
}()
