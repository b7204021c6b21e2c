package main

// Bodies of the functions for AVX2 and FMA: Y0 = f(Y0).

// amd64ExpParts makes Y1 = 2^n and Y2 = e^r - 1 of Y0 = n·ln 2 + r, from expPartsMin to
// expPartsMax. e^x - 1 is Y1·Y2 + (Y1-1) without cancellation. It clobbers Y3.
const amd64ExpParts = `
	VMULPS log2e<>(SB), Y0, Y1
	VROUNDPS $0, Y1, Y1
	VFNMADD231PS ln2Hi<>(SB), Y1, Y0
	VFNMADD231PS ln2Lo<>(SB), Y1, Y0
	VMOVUPS expP0<>(SB), Y3
	HORNER Y3 Y0 expP1 expP2 expP3 expP4 expP5
	VMULPS Y0, Y0, Y2
	VFMADD213PS Y0, Y3, Y2
	VCVTPS2DQ Y1, Y1
	VPADDD bias<>(SB), Y1, Y1
	VPSLLD $23, Y1, Y1
`

const amd64Sigmoid = `
	VXORPS signBit<>(SB), Y0, Y0
	VMOVUPS expPartsMin<>(SB), Y1
	VMAXPS Y0, Y1, Y0
	VMOVUPS expPartsMax<>(SB), Y1
	VMINPS Y0, Y1, Y0
` + amd64ExpParts + `
	VMOVUPS one<>(SB), Y0
	VADDPS Y0, Y2, Y2
	VMULPS Y1, Y2, Y2
	VADDPS Y0, Y2, Y2
	VDIVPS Y2, Y0, Y0
`

// amd64TanhOfHalf makes Y0 = tanh(Y0/2) = m / (m+2), where m = e^Y0 - 1.
const amd64TanhOfHalf = `
	VMOVUPS tanhMin<>(SB), Y1
	VMAXPS Y0, Y1, Y0
	VMOVUPS tanhMax<>(SB), Y1
	VMINPS Y0, Y1, Y0
` + amd64ExpParts + `
	VSUBPS one<>(SB), Y1, Y0
	VFMADD213PS Y0, Y1, Y2
	VADDPS two<>(SB), Y2, Y0
	VDIVPS Y0, Y2, Y0
`

const amd64GELUTanh = `
	VMOVAPS Y0, Y7
	VMULPS Y0, Y0, Y1
	VMOVUPS geluCubic<>(SB), Y2
	VFMADD213PS geluSlope<>(SB), Y1, Y2
	VMULPS Y2, Y0, Y0
` + amd64TanhOfHalf + `
	VADDPS one<>(SB), Y0, Y0
	VMULPS half<>(SB), Y7, Y7
	VMULPS Y7, Y0, Y0
`

// amd64Erfc makes Y3 = erfc(Y5), Y5 ≥ 0. It clobbers Y0 to Y2 and Y6; Y8 is the sign bit.
const amd64Erfc = `
	VMOVUPS erfcP<>(SB), Y6
	VFMADD213PS one<>(SB), Y5, Y6
	VMOVUPS one<>(SB), Y1
	VDIVPS Y6, Y1, Y6
	VMULPS Y5, Y5, Y0
	VXORPS Y8, Y0, Y0
	VMAXPS expPartsMin<>(SB), Y0, Y0
` + amd64ExpParts + `
	VFMADD213PS Y1, Y1, Y2
	VMOVUPS erfc8<>(SB), Y3
	HORNER Y3 Y6 erfc7 erfc6 erfc5 erfc4 erfc3 erfc2 erfc1 erfc0
	VMULPS Y6, Y3, Y3
	VMULPS Y2, Y3, Y3
`

// amd64GELU is max(x, 0) - |x|/2·erfc(|x|/√2), without cancellation on either side.
const amd64GELU = `
	VMOVAPS Y0, Y7
	VANDNPS Y0, Y8, Y4
	VMINPS geluMax<>(SB), Y4, Y4
	VMULPS sqrtHalf<>(SB), Y4, Y5
` + amd64Erfc + `
	VMULPS half<>(SB), Y4, Y4
	VXORPS Y0, Y0, Y0
	VMAXPS Y7, Y0, Y0
	VFNMADD231PS Y4, Y3, Y0
`

const amd64Erf = `
	VMOVAPS Y0, Y7
	VANDNPS Y0, Y8, Y5
	VMINPS four<>(SB), Y5, Y5
` + amd64Erfc + `
	VMOVUPS one<>(SB), Y1
	VSUBPS Y3, Y1, Y3
	VANDPS Y7, Y8, Y4
	VORPS Y4, Y3, Y3
	VMULPS Y7, Y7, Y0
	VMOVUPS erf6<>(SB), Y2
	HORNER Y2 Y0 erf5 erf4 erf3 erf2 erf1 erf0
	VMULPS Y7, Y2, Y2
	VCMPPS $13, Y1, Y0, Y4
	VBLENDVPS Y4, Y3, Y2, Y0
`

// amd64Expm1 makes Y0 = e^Y0 - 1, by halves: 2^n may be more than there is.
const amd64Expm1 = `
	VMOVUPS expPartsMin<>(SB), Y1
	VMAXPS Y0, Y1, Y0
	VMOVUPS expPartsMax<>(SB), Y1
	VMINPS Y0, Y1, Y0
` + amd64ExpParts + `
	VPSUBD exponentStep<>(SB), Y1, Y1
	VSUBPS half<>(SB), Y1, Y0
	VFMADD213PS Y0, Y1, Y2
	VADDPS Y2, Y2, Y0
`

const amd64ELU = `
	VMOVAPS Y0, Y7
	VXORPS Y1, Y1, Y1
	VMINPS Y0, Y1, Y0
	VMULPS Y14, Y0, Y0
` + amd64Expm1 + `
	VMULPS Y13, Y0, Y0
	VMULPS Y15, Y7, Y1
	VXORPS Y2, Y2, Y2
	VCMPPS $1, Y7, Y2, Y2
	VBLENDVPS Y2, Y1, Y0, Y0
`

// amd64Log makes Y0 = Y13·log m + e·Y14 + e·Y15 of Y0. It clobbers Y1 to Y3, and Y7.
const amd64Log = `
	VMOVAPS Y0, Y7
	VCMPPS $1, exponentStep<>(SB), Y0, Y1
	VMULPS exp2Of23<>(SB), Y0, Y2
	VBLENDVPS Y1, Y2, Y0, Y0
	VANDPS twentyThree<>(SB), Y1, Y3
	VPSUBD sqrtHalf<>(SB), Y0, Y1
	VPSRAD $23, Y1, Y1
	VPSLLD $23, Y1, Y2
	VPSUBD Y2, Y0, Y0
	VCVTDQ2PS Y1, Y1
	VSUBPS Y3, Y1, Y1
	VSUBPS one<>(SB), Y0, Y0
	VMOVUPS log8<>(SB), Y2
	HORNER Y2 Y0 log7 log6 log5 log4 log3 log2 log1 log0
	VMULPS Y0, Y0, Y3
	VMULPS Y0, Y2, Y2
	VMULPS Y3, Y2, Y2
	VFNMADD231PS half<>(SB), Y3, Y2
	VADDPS Y2, Y0, Y0
	VMULPS Y13, Y0, Y0
	VFMADD231PS Y14, Y1, Y0
	VFMADD231PS Y15, Y1, Y0
	VXORPS Y2, Y2, Y2
	VCMPPS $0, Y2, Y7, Y1
	VMOVUPS minusInfinity<>(SB), Y3
	VBLENDVPS Y1, Y3, Y0, Y0
	VCMPPS $0, infinity<>(SB), Y7, Y1
	VBLENDVPS Y1, Y7, Y0, Y0
	VCMPPS $9, Y2, Y7, Y1
	VORPS Y1, Y0, Y0
`

// amd64Log1p is the logarithm of u = 1+x, and to first order what u has lost.
const amd64Log1p = `
	VMOVAPS Y0, Y11
	VADDPS one<>(SB), Y0, Y0
	VMOVAPS Y0, Y12
` + amd64Log + `
	VSUBPS one<>(SB), Y12, Y1
	VSUBPS Y1, Y11, Y1
	VDIVPS Y12, Y1, Y1
	VCMPPS $0, Y1, Y1, Y2
	VANDPS Y2, Y1, Y1
	VADDPS Y1, Y0, Y0
`

// amd64Sine makes Y0 = sin(Y0 + Y15·π), and marks in Y14 where Y0 is too large or no number.
const amd64Sine = `
	VANDNPS Y0, Y8, Y1
	VCMPPS $6, sineMax<>(SB), Y1, Y1
	VORPS Y1, Y14, Y14
	VMULPS reciprocalPi<>(SB), Y0, Y1
	VADDPS Y15, Y1, Y1
	VROUNDPS $0, Y1, Y1
	VCVTPS2DQ Y1, Y2
	VPSLLD $31, Y2, Y2
	VSUBPS Y15, Y1, Y1
	VFNMADD231PS pi0<>(SB), Y1, Y0
	VFNMADD231PS pi1<>(SB), Y1, Y0
	VFNMADD231PS pi2<>(SB), Y1, Y0
	VMULPS Y0, Y0, Y3
	VMOVUPS sin3<>(SB), Y4
	HORNER Y4 Y3 sin2 sin1 sin0
	VMULPS Y0, Y3, Y3
	VFMADD231PS Y3, Y4, Y0
	VXORPS Y2, Y0, Y0
`

// exponential makes Y0 = e^Y0, 0 below the constant least. It clobbers Y1 to Y6.
func exponential(least string) string {
	return `
		VMOVAPS Y0, Y6
		VMULPS log2e<>(SB), Y0, Y1
		VROUNDPS $0, Y1, Y1
		VMOVAPS Y1, Y2
		VFNMADD231PS ln2Hi<>(SB), Y1, Y0
		VFNMADD231PS ln2Lo<>(SB), Y1, Y0
		VMOVUPS expP0<>(SB), Y3
		HORNER Y3 Y0 expP1 expP2 expP3 expP4 expP5
		VMULPS Y0, Y0, Y4
		VADDPS one<>(SB), Y0, Y0
		VFMADD231PS Y4, Y3, Y0
		VCVTPS2DQ Y2, Y2
		VPSRAD $1, Y2, Y3
		VPSUBD Y3, Y2, Y2
		VPADDD bias<>(SB), Y2, Y2
		VPADDD bias<>(SB), Y3, Y3
		VPSLLD $23, Y2, Y2
		VPSLLD $23, Y3, Y3
		VMULPS Y3, Y0, Y0
		VMULPS Y2, Y0, Y0
		VCMPPS $1, ` + least + `<>(SB), Y6, Y2
		VANDNPS Y0, Y2, Y0
		VCMPPS $6, expMax<>(SB), Y6, Y2
		VMULPS infinity<>(SB), Y6, Y3
		VBLENDVPS Y2, Y3, Y0, Y0
`
}
