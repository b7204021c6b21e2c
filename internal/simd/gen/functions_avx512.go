package main

import (
	"fmt"
	"math"
	"strings"
)

// Bodies of the functions for AVX-512: Z0 = f(Z0) for sixteen elements.

// avx512Exp makes Z2 = e^Z0 of Z0 = n·ln 2 + s, where n is a multiple of 1/32: 2^n comes from a table
// and the exponent, e^s = 1 + s·(1 + s·(exp2 + s·exp3)). It clobbers Z0, Z1 and Z3; avx512Exps loads
// the rest.
const avx512Exp = avx512Terms + "VFMADD231PS Z0, Z3, Z2\n"

// avx512Terms leaves the last of these instructions to what masks it.
const avx512Terms = avx512Power + `
	VFNMADD231PS Z18, Z1, Z0
	VFNMADD231PS Z19, Z1, Z0
	VMOVAPS      Z20, Z3
	VFMADD213PS  Z21, Z0, Z3
	VFMADD213PS  Z22, Z0, Z3
	VMULPS       Z2, Z0, Z0
`

// avx512Normal makes Z2 = e^Z0, 0 where that is no normal number.
const avx512Normal = "VCMPPS $5, Z25, Z0, K1\n" + avx512Terms + "VFMADD231PS.Z Z0, Z3, K1, Z2\n"

// avx512Power makes Z1 = n and Z2 = 2^n, the multiple of 1/32 that is nearest to the logarithm of
// e^Z0, or of what the factor in Z17 stands for. Entries of the table are less what their number, in
// the last bits of n, adds to them with the exponent.
const avx512Power = `
	VMOVAPS      Z16, Z1
	VFMADD231PS  Z17, Z0, Z1
	VMOVAPS      Z1, Z2
	VPERMI2PS    Z24, Z23, Z2
	VPSLLD       $18, Z1, Z3
	VPADDD       Z3, Z2, Z2
	VSUBPS       Z16, Z1, Z1
`

// avx512Sigmoid makes Z0 = 1 / (1 + e^-Z0), 0 where that is no normal number.
const avx512Sigmoid = `
	VCMPPS       $5, Z25, Z0, K1
	VPXORD       Z26, Z0, Z0
	VMAXPS       Z0, Z27, Z0
` + avx512Exp + `
	VADDPS       Z28, Z2, Z0
` + avx512Reciprocal + `
	VFMADD213PS.Z Z1, Z1, K1, Z0
`

// avx512Reciprocal makes Z1 = 1/Z0 to within 2⁻¹⁴, and Z0 = 1 - Z0·Z1: then Z1 + Z1·Z0 is 1/Z0 to
// within an ulp. Z28 is one.
const avx512Reciprocal = `
	VRCP14PS     Z0, Z1
	VFNMADD213PS Z28, Z1, Z0
`

const avx512SiLU = "VMOVAPS Z0, Z7\n" + avx512Sigmoid + "VMULPS Z7, Z0, Z0\n"

// avx512GELUTanh is x·sigmoid(2u), where (1 + tanh u)/2 is sigmoid(2u).
const avx512GELUTanh = `
	VMOVAPS      Z0, Z7
	VMULPS       Z0, Z0, Z1
	VMOVAPS      Z29, Z2
	VFMADD213PS  Z30, Z1, Z2
	VMULPS       Z2, Z0, Z0
` + avx512Sigmoid + `
	VMULPS       Z7, Z0, Z0
`

// avx512Tanh is m / (m+2), where m = e^2x - 1 without cancellation.
const avx512Tanh = `
	VADDPS       Z0, Z0, Z0
	VMAXPS       Z0, Z26, Z0
	VMINPS       Z0, Z27, Z0
	VMULPS       Z17, Z0, Z1
	VRNDSCALEPS  $0, Z1, Z1
	VFNMADD231PS Z18, Z1, Z0
	VFNMADD231PS Z19, Z1, Z0
	VBROADCASTSS expP0<>(SB), Z3
	HORNER Z3 Z0 expP1 expP2 expP3 expP4 expP5
	VMULPS       Z0, Z0, Z2
	VFMADD213PS  Z0, Z3, Z2
	VSCALEFPS    Z1, Z28, Z1
	VSUBPS       Z28, Z1, Z0
	VFMADD231PS  Z1, Z2, Z0
	VADDPS       Z29, Z0, Z1
	VDIVPS       Z1, Z0, Z0
`

// avx512GELU is max(x, 0) - a·Φ(-a), a = |x|, where Φ(-a) = e^(-a²/2)·t·(phi0 + t·(phi1 + …)) for
// t = 1 / (1 + phiP·a). The exponential is of a², with fewer places.
const avx512GELU = `
	VMOVAPS      Z0, Z7
	VPANDD       Z25, Z0, Z0
	VMINPS       Z0, Z26, Z6
	VCMPPS       $4, Z26, Z6, K1
	VMOVAPS      Z27, Z0
	VFMADD213PS  Z28, Z6, Z0
` + avx512Reciprocal + `
	VFMADD213PS  Z1, Z1, Z0
	VMOVAPS      Z0, Z4
	VMOVAPS      Z8, Z5
	VFMADD213PS  Z9, Z4, Z5
	VFMADD213PS  Z10, Z4, Z5
	VFMADD213PS  Z11, Z4, Z5
	VFMADD213PS  Z12, Z4, Z5
	VFMADD213PS  Z13, Z4, Z5
	VFMADD213PS  Z14, Z4, Z5
	VFMADD213PS  Z15, Z4, Z5
	VMULPS       Z6, Z4, Z4
	VMULPS       Z6, Z6, Z0
	VMULPS       Z4, Z5, Z5
` + avx512Power + `
	VFNMADD231PS Z18, Z1, Z0
	VMOVAPS      Z19, Z3
	VFMADD213PS  Z20, Z0, Z3
	VMULPS       Z2, Z0, Z0
	VFMADD231PS  Z0, Z3, Z2
	VPXORD       Z0, Z0, Z0
	VMAXPS       Z7, Z0, Z0
	VFNMADD231PS Z5, Z2, K1, Z0
`

// avx512Hardswish multiplies by 1/6 and corrects that once, which rounds as a division does;
// infinities, NaN and subnormal quotients are divided. It takes four blocks, whose results are in Z0
// and Z3.
var avx512Hardswish = func() string {
	text, divide, store := "", "", ""
	for i := range 2 {
		names := strings.NewReplacer("AT", offset(64*i), "ZQ", fmt.Sprint("Z", 3*i), "ZR", fmt.Sprint("Z", 3*i+1), "ZY", fmt.Sprint("Z", 3*i+2), "KC", fmt.Sprint("K", i+1))
		text += names.Replace(`
			VMOVUPS      AT(SI)(AX*4), ZQ
			VADDPS       Z16, ZQ, ZR
			VMAXPS       ZR, Z17, ZR
			VMINPS       ZR, Z18, ZR
			VMULPS       ZR, ZQ, ZY
			VMULPS       Z19, ZY, ZQ
			VMOVAPS      ZY, ZR
			VFMSUB231PS  Z18, ZQ, ZR
			VFPCLASSPSZ  $0xb9, ZQ, KC
			VFNMADD231PS Z19, ZR, ZQ
		`)
		divide += names.Replace("VDIVPS Z18, ZY, KC, ZQ\n")
		store += names.Replace("VMOVUPS ZQ, AT(DI)(AX*4)\n")
	}
	return text + "KORTESTW K1, K2\nJEQ finite\n" + divide + "\nfinite:\n" + store
}()

// avx512HardswishProduct takes four blocks.
var avx512HardswishProduct = func() string {
	text, store := "", ""
	for i := range 2 {
		names := strings.NewReplacer("AT", offset(64*i), "ZX", fmt.Sprint("Z", 2*i), "ZR", fmt.Sprint("Z", 2*i+1))
		text += names.Replace(`
			VMOVUPS AT(SI)(AX*4), ZX
			VADDPS  Z16, ZX, ZR
			VMAXPS  ZR, Z17, ZR
			VMINPS  ZR, Z18, ZR
			VMULPS  ZR, ZX, ZX
			VMULPS  Z19, ZX, ZX
		`)
		store += names.Replace("VMOVUPS ZX, AT(DI)(AX*4)\n")
	}
	return text + store
}()

// broadcasts loads constants into registers from the first one on.
func broadcasts(first int, names ...string) (text string) {
	for i, name := range names {
		text += fmt.Sprintf("VBROADCASTSS %s<>(SB), Z%d\n", name, first+i)
	}
	return text
}

// avx512Exps loads what avx512Exp wants: the constants of its argument, and the table of powers.
func avx512Exps(names ...string) string {
	return "VBROADCASTSS expMagic<>(SB), Z16\n" + broadcasts(17, names...) + "VMOVUPS exp2Table<>(SB), Z23\nVMOVUPS exp2Table<>+64(SB), Z24\n"
}

var avx512Exponent = []string{"log2e", "ln2Hi", "ln2Lo", "exp3", "exp2", "one"}

var (
	avx512Sigmoids = avx512Exps(avx512Exponent...) + broadcasts(25, "expNormal", "signBit", "sigmoidMin", "one")
	avx512Normals  = avx512Exps(avx512Exponent...) + broadcasts(25, "expNormal")
	avx512Tanhs    = broadcasts(17, "log2e", "ln2Hi", "ln2Lo") + broadcasts(26, "tanhMin", "tanhMax", "one", "two")
	avx512GELUs    = avx512Exps("square0", "square1", "square2", "square3") + broadcasts(8, "phi7", "phi6", "phi5", "phi4", "phi3", "phi2", "phi1", "phi0") + broadcasts(25, "absolute", "geluZero", "phiP", "one")
)

// exp2Table is the powers of 2 from 0 to 31/32.
func exp2Table() string {
	var b strings.Builder
	for i := range 32 {
		fmt.Fprintf(&b, "DATA exp2Table<>+%d(SB)/4, $0x%08x\n", 4*i, math.Float32bits(float32(math.Exp2(float64(i)/32)))-uint32(i)<<18)
	}
	return b.String() + "GLOBL exp2Table<>(SB), RODATA|NOPTR, $128\n"
}

// wideAMD64 goes over pairs of blocks for processors with AVX-512, and a last block by itself: by the
// same instructions, with the upper lanes empty.
func wideAMD64(l *loop) string {
	part := func(registers, first string) string {
		return lines(fmt.Sprintf("VMOVUPS (SI)(AX*4), %s0", registers), first, l.amd64.pair, fmt.Sprintf("VMOVUPS %s0, (DI)(AX*4)", registers))
	}
	return "CMPB ·avx512(SB), $0\nJEQ narrow\n" + lines(l.amd64.wideSetup, "XORQ AX, AX", "SUBQ $2, CX", "JLT odd", align) +
		"\npair:\n" + part("Z", "") + lines("ADDQ $16, AX", "SUBQ $2, CX", "JGE pair") +
		"\nodd:\n" + lines("ADDQ $2, CX", "JEQ end") + part("Y", l.amd64.single) +
		"\nend:\n" + lines(results(l, l.amd64.wideFinish), "VZEROUPPER", "RET") + "\nnarrow:\n"
}

// fourAMD64 goes over four blocks at a time there, and leaves the last ones to the loop of AVX2, which
// gives the same bits.
func fourAMD64(l *loop) string {
	return "CMPB ·avx512(SB), $0\nJEQ narrow\n" + lines(l.amd64.wideSetup, "XORQ AX, AX", "SUBQ $4, CX", "JLT last", align) +
		"\nwide:\n" + labelled(l.amd64.four) + lines("ADDQ $32, AX", "SUBQ $4, CX", "JGE wide") +
		"\nlast:\n" + lines("LEAQ (SI)(AX*4), SI", "LEAQ (DI)(AX*4), DI", "ADDQ $4, CX", "JNE narrow", "VZEROUPPER", "RET") + "\nnarrow:\n"
}
