package main

// copySets have copies of short rows: blocks of 32 bytes, and then the last 32 bytes of a row, which may overlap them.
// Strides are in bytes, last is where the last 32 bytes start.
var copySets = []set{
	{"copy_amd64", "Copies of rows of at least 32 bytes.", []routine{{copySignature, lines(
		frameOf(copySignature).arguments("MOVQ", "rows", "AX", "blocks", "BX", "last", "R10", "dst", "DI", "ds", "R11", "src", "SI", "ss", "R12")) +
		"\nrow:\n" + lines("MOVQ SI, R8", "MOVQ DI, R9", "MOVQ BX, CX", "TESTQ CX, CX", "JZ end") +
		"\nblock:\n" + lines("VMOVDQU (R8), Y0", "VMOVDQU Y0, (R9)", "ADDQ $32, R8", "ADDQ $32, R9", "DECQ CX", "JNZ block") +
		"\nend:\n" + lines("VMOVDQU (SI)(R10*1), Y1", "VMOVDQU Y1, (DI)(R10*1)", "ADDQ R12, SI", "ADDQ R11, DI", "DECQ AX", "JNZ row",
		"VZEROUPPER", "RET")}}},
	{"copy_arm64", "Copies of rows of at least 32 bytes.", []routine{{copySignature, lines(
		frameOf(copySignature).arguments("MOVD", "rows", "R0", "blocks", "R1", "last", "R2", "dst", "R3", "ds", "R4", "src", "R5", "ss", "R6")) +
		"\nrow:\n" + lines("MOVD R5, R7", "MOVD R3, R8", "MOVD R1, R9", "CBZ R9, end") +
		"\nblock:\n" + lines("VLD1.P 32(R7), [V0.B16, V1.B16]", "VST1.P [V0.B16, V1.B16], 32(R8)", "SUBS $1, R9", "BNE block") +
		"\nend:\n" + lines("ADD R2, R5, R7", "ADD R2, R3, R8", "VLD1 (R7), [V0.B16, V1.B16]", "VST1 [V0.B16, V1.B16], (R8)",
		"ADD R6, R5", "ADD R4, R3", "SUBS $1, R0", "BNE row", "RET")}}},
}

const copySignature = "func copyRowsLanes(rows, blocks, last int, dst *byte, ds int, src *byte, ss int)"
