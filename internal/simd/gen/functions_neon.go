package main

// Bodies of the functions for NEON: V0 = f(V0). COPY, HORNER, NEXT and STEP are pseudo-instructions
// of the generator.

// arm64ExpParts makes V1 = 2^n and V2 = e^r - 1 of V0 = n·ln 2 + r, from expPartsMin to
// expPartsMax. e^x - 1 is V1·V2 + (V1-1) without cancellation. It clobbers V3 and V4.
const arm64ExpParts = `
	FMUL(1, 0, 14)
	FRINTN(1, 1)
	VFMLS V1.S4, V15.S4, V0.S4
	VFMLS V1.S4, V16.S4, V0.S4
	COPY(4, 17)
	HORNER(3, 4, 0, 18)
	HORNER(4, 3, 0, 19)
	HORNER(3, 4, 0, 20)
	HORNER(4, 3, 0, 21)
	HORNER(3, 4, 0, 22)
	FMUL(4, 0, 0)
	COPY(2, 0)
	VFMLA V4.S4, V3.S4, V2.S4
	FCVTNS(1, 1)
	VADD V24.S4, V1.S4, V1.S4
	VSHL $23, V1.S4, V1.S4
`

// arm64Logistic makes V2 · V3 = 1 / (1 + e^-V0): V1 is V0 from logisticMin on, where e^-V0 is infinite, and up to logisticMax,
// V2 becomes 2^n and V1 = r, where V1 = -n·ln 2 + r. Two steps make a reciprocal of an estimate: a division takes as long as
// the rest. FRECPS of 0 and infinity is 2, so that the result is 0 there. Five registers leave room for four blocks.
const arm64Logistic = `
	FMAX(1, 0, 20)
	FMIN(1, 1, 21)
	COPY(2, 22)
	VFMLS V23.S4, V1.S4, V2.S4
	FSUB(3, 2, 22)
	VSHL $23, V2.S4, V2.S4
	VFMLA V24.S4, V3.S4, V1.S4
	VFMLA V25.S4, V3.S4, V1.S4
	COPY(3, 27)
	VFMLS V26.S4, V1.S4, V3.S4
	COPY(4, 28)
	VFMLS V3.S4, V1.S4, V4.S4
	COPY(3, 29)
	VFMLS V4.S4, V1.S4, V3.S4
	COPY(4, 30)
	VFMLS V3.S4, V1.S4, V4.S4
	COPY(3, 31)
	VFMLS V4.S4, V1.S4, V3.S4
	COPY(4, 31)
	VFMLS V3.S4, V1.S4, V4.S4
	COPY(1, 31)
	VFMLA V2.S4, V4.S4, V1.S4
	FRECPE(2, 1)
	FRECPS(3, 1, 2)
	FMUL(2, 2, 3)
	FRECPS(3, 1, 2)
`

// arm64TanhOfHalf makes V0 = tanh(V0/2) = m / (m+2), where m = e^V0 - 1.
const arm64TanhOfHalf = `
	FNEG(1, 29)
	FMAX(0, 0, 1)
	FMIN(0, 0, 29)
` + arm64ExpParts + `
	FSUB(0, 1, 23)
	VFMLA V1.S4, V2.S4, V0.S4
	FADD(1, 0, 28)
	FDIV(0, 0, 1)
`

const arm64GELUTanh = `
	COPY(7, 0)
	FMUL(1, 0, 0)
	COPY(2, 30)
	VFMLA V1.S4, V31.S4, V2.S4
	FMUL(0, 0, 2)
` + arm64TanhOfHalf + `
	FADD(0, 0, 23)
	FMUL(7, 7, 27)
	FMUL(0, 0, 7)
`

// arm64Erfc makes V3 = erfc(V5), V5 ≥ 0. R10 points to erfcP. It clobbers V0 to V2, V4
// and V6.
const arm64Erfc = `
	NEXT(4)
	COPY(6, 23)
	VFMLA V5.S4, V4.S4, V6.S4
	FDIV(6, 23, 6)
	FMUL(0, 5, 5)
	FNEG(0, 0)
	FMAX(0, 0, 25)
` + arm64ExpParts + `
	FADD(2, 2, 23)
	FMUL(2, 2, 1)
	NEXT(3)
	STEP(4, 3, 6)
	STEP(3, 4, 6)
	STEP(4, 3, 6)
	STEP(3, 4, 6)
	STEP(4, 3, 6)
	STEP(3, 4, 6)
	STEP(4, 3, 6)
	STEP(3, 4, 6)
	FMUL(3, 3, 6)
	FMUL(3, 3, 2)
`

// arm64GELU is max(x, 0) - |x|/2·erfc(|x|/√2), without cancellation on either side.
const arm64GELU = `
	TABLE R10 geluMax sqrtHalf erfcP erfc8 erfc7 erfc6 erfc5 erfc4 erfc3 erfc2 erfc1 erfc0
	COPY(7, 0)
	FABS(9, 0)
	NEXT(6)
	FMIN(9, 9, 6)
	NEXT(6)
	FMUL(5, 9, 6)
` + arm64Erfc + `
	FMUL(9, 9, 27)
	VEOR V0.B16, V0.B16, V0.B16
	FMAX(0, 0, 7)
	VFMLS V9.S4, V3.S4, V0.S4
`

const arm64Erf = `
	TABLE R10 erfcP erfc8 erfc7 erfc6 erfc5 erfc4 erfc3 erfc2 erfc1 erfc0 erf6 erf5 erf4 erf3 erf2 erf1 erf0
	COPY(7, 0)
	FABS(5, 0)
	FMIN(5, 5, 12)
` + arm64Erfc + `
	FSUB(9, 23, 3)
	BIT(9, 7, 11)
	FMUL(0, 7, 7)
	NEXT(3)
	STEP(4, 3, 0)
	STEP(3, 4, 0)
	STEP(4, 3, 0)
	STEP(3, 4, 0)
	STEP(4, 3, 0)
	STEP(3, 4, 0)
	FMUL(3, 3, 7)
	FCMGE(4, 0, 23)
	COPY(0, 3)
	BIT(0, 9, 4)
`

// arm64Expm1 makes V0 = e^V0 - 1, by halves: 2^n may be more than there is. V12 is the step of
// an exponent.
const arm64Expm1 = `
	FMAX(0, 0, 25)
	FMIN(0, 0, 26)
` + arm64ExpParts + `
	VSUB V12.S4, V1.S4, V1.S4
	FSUB(0, 1, 27)
	VFMLA V1.S4, V2.S4, V0.S4
	FADD(0, 0, 0)
`

const arm64ELU = `
	COPY(7, 0)
	VEOR V1.B16, V1.B16, V1.B16
	FMIN(0, 0, 1)
	FMUL(0, 0, 9)
` + arm64Expm1 + `
	FMUL(0, 0, 8)
	FMUL(1, 7, 10)
	FCMGT0(2, 7)
	BIT(0, 1, 2)
`

// arm64Log makes V0 = V8·log m + e·V9 + e·V10 of V0. It clobbers V1 to V5, and V7.
const arm64Log = `
	COPY(7, 0)
	FCMGT(1, 13, 0)
	FMUL(2, 0, 14)
	BIT(0, 2, 1)
	VAND V15.B16, V1.B16, V5.B16
	VSUB V16.S4, V0.S4, V1.S4
	SSHR23(1, 1)
	VSHL $23, V1.S4, V2.S4
	VSUB V2.S4, V0.S4, V0.S4
	SCVTF(1, 1)
	FSUB(1, 1, 5)
	FSUB(0, 0, 17)
	COPY(3, 21)
	HORNER(4, 3, 0, 22)
	HORNER(3, 4, 0, 23)
	HORNER(4, 3, 0, 24)
	HORNER(3, 4, 0, 25)
	HORNER(4, 3, 0, 26)
	HORNER(3, 4, 0, 27)
	HORNER(4, 3, 0, 28)
	HORNER(3, 4, 0, 29)
	FMUL(5, 0, 0)
	FMUL(3, 3, 0)
	FMUL(3, 3, 5)
	VFMLS V5.S4, V18.S4, V3.S4
	FADD(0, 0, 3)
	FMUL(0, 0, 8)
	VFMLA V1.S4, V9.S4, V0.S4
	VFMLA V1.S4, V10.S4, V0.S4
	FCMEQ0(1, 7)
	BIT(0, 19, 1)
	FCMEQ(1, 7, 20)
	BIT(0, 7, 1)
	FCMGE0(1, 7)
	NOT(1, 1)
	VORR V1.B16, V0.B16, V0.B16
`

// arm64Log1p is the logarithm of u = 1+x, and to first order what u has lost.
const arm64Log1p = `
	COPY(12, 0)
	FADD(0, 0, 17)
	COPY(6, 0)
` + arm64Log + `
	FSUB(1, 6, 17)
	FSUB(1, 12, 1)
	FDIV(1, 1, 6)
	FCMEQ(2, 1, 1)
	VAND V2.B16, V1.B16, V1.B16
	FADD(0, 0, 1)
`

// arm64Sine makes V0 = sin(V0 + V8·π), and marks in V26 where V0 is too large or no number.
const arm64Sine = `
	FABS(1, 0)
	FCMGE(1, 24, 1)
	NOT(1, 1)
	VORR V1.B16, V26.B16, V26.B16
	FMUL(1, 0, 16)
	FADD(1, 1, 8)
	FRINTN(1, 1)
	FCVTNS(2, 1)
	VSHL $31, V2.S4, V2.S4
	FSUB(1, 1, 8)
	VFMLS V1.S4, V17.S4, V0.S4
	VFMLS V1.S4, V18.S4, V0.S4
	VFMLS V1.S4, V19.S4, V0.S4
	FMUL(5, 0, 0)
	COPY(4, 20)
	HORNER(3, 4, 5, 21)
	HORNER(4, 3, 5, 22)
	HORNER(3, 4, 5, 23)
	FMUL(5, 5, 0)
	VFMLA V5.S4, V3.S4, V0.S4
	VEOR V2.B16, V0.B16, V0.B16
`

// arm64Exponential makes V0 = e^V0 with what exponentials loads. It clobbers V1 to V6.
const arm64Exponential = `
	COPY(6, 0)
	FMUL(1, 0, 18)
	FRINTN(1, 1)
	VFMLS V1.S4, V19.S4, V0.S4
	VFMLS V1.S4, V20.S4, V0.S4
	COPY(4, 21)
	HORNER(3, 4, 0, 22)
	HORNER(4, 3, 0, 23)
	HORNER(3, 4, 0, 24)
	HORNER(4, 3, 0, 25)
	HORNER(3, 4, 0, 26)
	FMUL(4, 0, 0)
	FADD(0, 0, 27)
	VFMLA V4.S4, V3.S4, V0.S4
	FCVTNS(2, 1)
	SSHR1(3, 2)
	VSUB V3.S4, V2.S4, V2.S4
	VADD V28.S4, V2.S4, V2.S4
	VADD V28.S4, V3.S4, V3.S4
	VSHL $23, V2.S4, V2.S4
	VSHL $23, V3.S4, V3.S4
	FMUL(0, 0, 3)
	FMUL(0, 0, 2)
	FCMGT(2, 17, 6)
	BIC(0, 0, 2)
	FCMGE(2, 16, 6)
	FMUL(3, 6, 29)
	BIF(0, 3, 2)
`

// exponentials are what arm64Exponential wants in V16 and on.
var exponentials = []string{"expMax", "expMin", "log2e", "ln2Hi", "ln2Lo", "expP0", "expP1", "expP2", "expP3", "expP4", "expP5",
	"one", "bias", "infinity"}

// arm64Parts loads what arm64ExpParts and what is made of it want in V14 and on, arm64Logistics what arm64Logistic wants
// in V20 and on, arm64Logs what arm64Log wants in V13 and on, and arm64Sines what arm64Sine wants in V16 and on.
var (
	arm64Parts = loaded(14, "log2e", "ln2Hi", "ln2Lo", "expP0", "expP1", "expP2", "expP3", "expP4", "expP5", "one", "bias",
		"expPartsMin", "expPartsMax", "half", "two", "tanhMax", "geluSlope", "geluCubic")
	arm64Logistics = loaded(20, "logisticMin", "logisticMax", "logisticMagic", "log2e", "ln2Hi", "ln2Lo",
		"logistic6", "logistic5", "logistic4", "logistic3", "logistic2", "one")
	arm64Logs = loaded(13, "exponentStep", "exp2Of23", "twentyThree", "sqrtHalf", "one", "half", "minusInfinity", "infinity",
		"log8", "log7", "log6", "log5", "log4", "log3", "log2", "log1", "log0")
	arm64Sines = loaded(16, "reciprocalPi", "pi0", "pi1", "pi2", "sin3", "sin2", "sin1", "sin0", "sineMax")
)
