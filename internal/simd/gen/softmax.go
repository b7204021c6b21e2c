package main

import "fmt"

var softmaxSets = []set{
	{"softmax512_amd64", "The softmax of rows for AVX-512.", []routine{avx512Softmax}},
}

const softmaxSignature = "func softmaxRows512(rows, n int, dst, src *float32)"

// avx512Softmax goes over rows of n elements: DI and SI are the rows of dst and src, R9 is the length of
// whole blocks and R8 that of a row, both in bytes, and K2 has the lanes of what is left, which stays in Z2. The largest
// element, in Z10, need not be NaN where there is one: its exponential makes the sum NaN.
var avx512Softmax = func() routine {
	f := frameOf(softmaxSignature)
	setup := f.arguments("MOVQ", "rows", "CX", "n", "R8", "dst", "DI", "src", "SI") +
		"MOVQ R8, R9\nANDQ $-16, R9\nMOVQ R8, AX\nSUBQ R9, AX\nMOVQ $-1, BX\nBZHIQ AX, BX, AX\nKMOVW AX, K2\nSHLQ $2, R8\nSHLQ $2, R9\n" +
		avx512Normals + broadcasts(26, "minusInfinity", "one")
	largest := "VMOVUPS (SI)(R9*1), K2, Z10\n"
	term := "VSUBPS Z10, Z0, Z0\n" + avx512Normal
	return routine{softmaxSignature, lines(setup) + "\nrow:\n" +
		lines("VMOVAPS Z26, Z10\nVMOVAPS Z26, Z11", largest) +
		alongRow("max", "VMAXPS (SI)(BX*1), Z10, Z10\n", "VMAXPS 64(SI)(BX*1), Z11, Z11\n") +
		lines(acrossZ("VMAXPS"), "VPXORD Z12, Z12, Z12") +
		alongRow("exp", "VMOVUPS (SI)(BX*1), Z0\n"+term+"VMOVUPS Z2, (DI)(BX*1)\nVADDPS Z2, Z12, Z12\n", "") +
		lines("VMOVUPS.Z (SI)(R9*1), K2, Z0", "VSUBPS Z10, Z0, Z0", "VCMPPS $5, Z25, Z0, K2, K1", avx512Terms, "VFMADD231PS.Z Z0, Z3, K1, Z2",
			"VADDPS Z2, Z12, Z10", "VPXORD Z11, Z11, Z11", acrossZ("VADDPS"), "VDIVPS Z10, Z27, Z10") +
		alongRow("scale", "VMULPS (DI)(BX*1), Z10, Z0\nVMOVUPS Z0, (DI)(BX*1)\n", "VMULPS 64(DI)(BX*1), Z10, Z1\nVMOVUPS Z1, 64(DI)(BX*1)\n") +
		lines("VMULPS Z2, Z10, Z0", "VMOVUPS Z0, K2, (DI)(R9*1)", "ADDQ R8, DI", "ADDQ R8, SI", "DECQ CX", "JNZ row", "VZEROUPPER", "RET")}
}()

// alongRow runs BX along the blocks of a row; first and second are for two of them at a time, first
// alone for one.
func alongRow(label, first, second string) string {
	pairs := ""
	if second != "" {
		pairs = lines("LEAQ 128(BX), AX", "CMPQ AX, R9", "JGT "+label+"One") + "\n" + label + "Two:\n" +
			lines(first, second, "MOVQ AX, BX", "SUBQ $-128, AX", "CMPQ AX, R9", "JLE "+label+"Two") + "\n" + label + "One:\n"
	}
	return lines("XORQ BX, BX") + pairs + lines("CMPQ BX, R9", fmt.Sprintf("JGE %sEnd", label)) + "\n" + label + ":\n" +
		lines(first, "ADDQ $64, BX", "CMPQ BX, R9", "JLT "+label) + "\n" + label + "End:\n"
}

// acrossZ makes every lane of Z10 the op of all of Z10 and Z11.
func acrossZ(op string) string {
	return op + ` Z11, Z10, Z10
		VSHUFF64X2 $0x4e, Z10, Z10, Z11
		` + op + ` Z11, Z10, Z10
		VSHUFF64X2 $0xb1, Z10, Z10, Z11
		` + op + ` Z11, Z10, Z10
		VPERMILPS $0x4e, Z10, Z11
		` + op + ` Z11, Z10, Z10
		VPERMILPS $0xb1, Z10, Z11
		` + op + ` Z11, Z10, Z10
	`
}
