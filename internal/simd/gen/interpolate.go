package main

var interpolateSets = []set{
	{"interpolate512_amd64", "Rows between their points, see simd.Interpolate.",
		[]routine{avx512Interpolate}},
}

const interpolateParams = "(n int, dst, src *float32, size int, first, second *int32, weight *float32) (done int)"

func interpolateArguments(f *frame) string {
	return f.arguments("MOVQ", "n", "CX", "dst", "DI", "src", "SI", "size", "R8", "first", "R9", "second", "R10", "weight", "R11") + "XORQ AX, AX\n"
}

// avx512Interpolate permutes the 32 elements of src from the first one of a block on. It stops at a block
// that wants others, and returns how many elements are done.
var avx512Interpolate = func() routine {
	signature := "func interpolate512" + interpolateParams
	f := frameOf(signature)
	return routine{signature, lines(interpolateArguments(f), "VBROADCASTSS one<>(SB), Z8", "MOVQ $-1, R12") + "\nblock:\n" +
		lines("MOVQ CX, BX", "SUBQ AX, BX", "MOVL $16, DX", "CMPQ BX, DX", "CMOVQGT DX, BX", "BZHIQ BX, R12, BX", "KMOVW BX, K3",
			"VMOVDQU32.Z (R9)(AX*4), K3, Z0", "VMOVDQU32.Z (R10)(AX*4), K3, Z1", "VMOVUPS.Z (R11)(AX*4), K3, Z2",
			"MOVLQSX (R9)(AX*4), DX", "CMPQ DX, R8", "JCC done", // also below 0
			"MOVQ R8, R13", "SUBQ DX, R13", "MOVL $32, BX", "CMPQ R13, BX", "CMOVQGT BX, R13",
			"VPBROADCASTD DX, Z3", "VPBROADCASTD R13, Z4", "VPSUBD Z3, Z0, Z0", "VPSUBD Z3, Z1, Z1",
			"VPCMPUD $5, Z4, Z0, K3, K4", "VPCMPUD $5, Z4, Z1, K3, K5", "KORTESTW K4, K5", "JNE done",
			"BZHIQ R13, R12, BX", "KMOVW BX, K1", "SHRQ $16, BX", "KMOVW BX, K2", "LEAQ (SI)(DX*4), DX",
			"VMOVUPS.Z (DX), K1, Z4", "VMOVUPS.Z 64(DX), K2, Z5", "VPERMI2PS Z5, Z4, Z0", "VPERMI2PS Z5, Z4, Z1",
			"VSUBPS Z2, Z8, Z3", "VMULPS Z3, Z0, Z0", "VMULPS Z2, Z1, Z1", "VADDPS Z1, Z0, Z0", "VMOVUPS Z0, K3, (DI)(AX*4)",
			"ADDQ $16, AX", "CMPQ AX, CX", "JLT block", "MOVQ CX, AX") + "\ndone:\n" +
		lines("MOVQ AX, "+f.at("done"), "VZEROUPPER", "RET")}
}()
