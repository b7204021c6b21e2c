package main

// Arithmetic on float32.
var arith = family{name: "arith", about: "Arithmetic on each element.", loops: []loop{
	{name: "Add", kind: binaryFloat, expr: "a[i] + b[i]",
		amd64: code{body: "VADDPS Y1, Y0, Y0"},
		arm64: code{body: "FADD(0, 0, 1)"}},
	{name: "AddScaled", kind: binaryFloat, expr: "a[i] + float32(alpha*b[i])", formula: "a[i] + alpha·b[i]", doc: "rounded twice",
		scalars: []string{"alpha"}, args: []string{"2.7"},
		amd64: code{body: "VMULPS Y15, Y1, Y1 \n VADDPS Y1, Y0, Y0"},
		arm64: code{body: "FMUL(1, 1, 8) \n FADD(0, 0, 1)"}},
	{name: "Lerp", kind: binaryFloat, expr: "a[i] + float32(weight*float32(b[i]-a[i]))", formula: "a[i] + weight·(b[i]-a[i])", doc: "each operation rounds",
		scalars: []string{"weight"}, args: []string{"0.3"},
		amd64: code{body: "VSUBPS Y0, Y1, Y1 \n VMULPS Y15, Y1, Y1 \n VADDPS Y1, Y0, Y0"},
		arm64: code{body: "FSUB(1, 1, 0) \n FMUL(1, 1, 8) \n FADD(0, 0, 1)"}},
	{name: "Blend", kind: binaryFloat, expr: "float32(a[i]*first) + float32(b[i]*second)", formula: "a[i]·first + b[i]·second", doc: "each operation rounds",
		scalars: []string{"first", "second"}, args: []string{"0.3, 0.7"},
		amd64: code{body: "VMULPS Y14, Y0, Y0 \n VMULPS Y15, Y1, Y1 \n VADDPS Y1, Y0, Y0"},
		arm64: code{body: "FMUL(0, 0, 8) \n FMUL(1, 1, 9) \n FADD(0, 0, 1)"}},
	{name: "Sub", kind: binaryFloat, expr: "a[i] - b[i]",
		amd64: code{body: "VSUBPS Y1, Y0, Y0"},
		arm64: code{body: "FSUB(0, 0, 1)"}},
	{name: "Mul", kind: binaryFloat, expr: "a[i] * b[i]",
		amd64: code{body: "VMULPS Y1, Y0, Y0"},
		arm64: code{body: "FMUL(0, 0, 1)"}},
	{name: "Div", kind: binaryFloat, expr: "a[i] / b[i]",
		amd64: code{body: "VDIVPS Y1, Y0, Y0"},
		arm64: code{body: "FDIV(0, 0, 1)"}},
	{name: "Maximum", kind: binaryFloat, expr: "max(a[i], b[i])", doc: "NaN where either is",
		amd64: code{body: orNaN("VMAXPS")},
		arm64: code{body: "FMAX(0, 0, 1)"}},
	{name: "Minimum", kind: binaryFloat, expr: "min(a[i], b[i])", doc: "NaN where either is",
		amd64: code{body: orNaN("VMINPS")},
		arm64: code{body: "FMIN(0, 0, 1)"}},
	// The operand is the second one of VMAXPS and VMINPS, so that a NaN stays.
	{name: "Clamp", kind: unaryFloat, expr: "min(max(src[i], low), high)", doc: "low and high are no NaN",
		scalars: []string{"low", "high"}, args: []string{"-1, 6", "3, 1", "0, inf32", "-.5, .5"},
		amd64: code{body: "VMAXPS Y0, Y14, Y0 \n VMINPS Y0, Y15, Y0"},
		arm64: code{body: "FMAX(0, 0, 8) \n FMIN(0, 0, 9)"}},
	// The sign bit chooses.
	{name: "LeakyReLU", kind: unaryFloat, expr: "leaky(src[i], slope)", formula: "src[i]", doc: "times slope where the sign is negative",
		scalars: []string{"slope"}, args: []string{"0.01"},
		amd64: code{body: "VMULPS Y15, Y0, Y1 \n VBLENDVPS Y0, Y1, Y0, Y0"},
		arm64: code{body: "FMUL(1, 0, 8) \n CMLT0(2, 0) \n BIT(0, 1, 2)"}},
	{name: "Hardswish", kind: unaryFloat, expr: "src[i] * min(max(src[i]+3, 0), 6) / 6", doc: "each operation rounds",
		amd64: code{setup: "VMOVUPS three<>(SB), Y13 \n VMOVUPS six<>(SB), Y14 \n VXORPS Y15, Y15, Y15", body: `
			VADDPS Y13, Y0, Y1
			VMAXPS Y1, Y15, Y1
			VMINPS Y1, Y14, Y1
			VMULPS Y1, Y0, Y0
			VDIVPS Y14, Y0, Y0`, four: avx512Hardswish, wideSetup: broadcasts(16, "three", "zero", "six", "sixth")},
		arm64: code{setup: constant("three", 8) + constant("six", 9) + "VEOR V10.B16, V10.B16, V10.B16", body: `
			FADD(1, 0, 8)
			FMAX(1, 1, 10)
			FMIN(1, 1, 9)
			FMUL(0, 0, 1)
			FDIV(0, 0, 9)`}},
	{name: "HardswishProduct", kind: unaryFloat, expr: "float32(src[i]*min(max(src[i]+3, 0), 6)) * sixth",
		formula: "src[i] * min(max(src[i]+3, 0), 6) / 6", doc: "1/6 is rounded, which is faster than [Hardswish], but differs from it in the last bits",
		amd64: code{setup: "VMOVUPS three<>(SB), Y12 \n VMOVUPS six<>(SB), Y13 \n VXORPS Y15, Y15, Y15 \n VMOVUPS sixth<>(SB), Y14", body: `
			VADDPS Y12, Y0, Y1
			VMAXPS Y1, Y15, Y1
			VMINPS Y1, Y13, Y1
			VMULPS Y1, Y0, Y0
			VMULPS Y14, Y0, Y0`, four: avx512HardswishProduct, wideSetup: broadcasts(16, "three", "zero", "six", "sixth")},
		arm64: code{setup: constant("three", 8) + constant("six", 9) + constant("sixth", 11) + "VEOR V10.B16, V10.B16, V10.B16", body: `
			FADD(1, 0, 8)
			FMAX(1, 1, 10)
			FMIN(1, 1, 9)
			FMUL(0, 0, 1)
			FMUL(0, 0, 11)`}},
	{name: "PReLU", kind: binaryFloat, expr: "leaky(a[i], b[i])", formula: "a[i]", doc: "times b[i] where the sign of a[i] is negative",
		amd64: code{body: "VMULPS Y0, Y1, Y1 \n VBLENDVPS Y0, Y1, Y0, Y0"},
		arm64: code{body: "FMUL(1, 0, 1) \n CMLT0(2, 0) \n BIT(0, 1, 2)"}},
	{name: "Abs", kind: unaryFloat, expr: "math.Float32frombits(math.Float32bits(src[i]) &^ (1 << 31))", formula: "|src[i]|",
		amd64: code{setup: "VMOVUPS signBit<>(SB), Y15", body: "VANDNPS Y0, Y15, Y0"},
		arm64: code{body: "FABS(0, 0)"}},
	{name: "Neg", kind: unaryFloat, expr: "-src[i]",
		amd64: code{setup: "VMOVUPS signBit<>(SB), Y15", body: "VXORPS Y15, Y0, Y0"},
		arm64: code{body: "FNEG(0, 0)"}},
	{name: "Sign", kind: unaryFloat, expr: "float32(bit(src[i] > 0)) - float32(bit(src[i] < 0))",
		formula: "1 where src[i] is positive, to -1 where it is negative, to 0 elsewhere", doc: "as for NaN",
		amd64: code{setup: "VXORPS Y1, Y1, Y1 \n VMOVUPS one<>(SB), Y15", body: `
			VCMPPS $1, Y1, Y0, Y2
			VCMPPS $1, Y0, Y1, Y0
			VANDPS Y15, Y2, Y2
			VANDPS Y15, Y0, Y0
			VSUBPS Y2, Y0, Y0`},
		arm64: code{setup: constant("one", 8), body: `
			FCMGT0(1, 0)
			FCMLT0(2, 0)
			VAND V8.B16, V1.B16, V1.B16
			VAND V8.B16, V2.B16, V2.B16
			FSUB(0, 1, 2)`}},
	{name: "Floor", kind: unaryFloat, expr: "float32(math.Floor(float64(src[i])))", formula: "src[i] rounded down",
		amd64: code{body: "VROUNDPS $1, Y0, Y0"},
		arm64: code{body: "FRINTM(0, 0)"}},
	{name: "Ceil", kind: unaryFloat, expr: "float32(math.Ceil(float64(src[i])))", formula: "src[i] rounded up",
		amd64: code{body: "VROUNDPS $2, Y0, Y0"},
		arm64: code{body: "FRINTP(0, 0)"}},
	{name: "Trunc", kind: unaryFloat, expr: "float32(math.Trunc(float64(src[i])))", formula: "src[i] rounded toward zero",
		amd64: code{body: "VROUNDPS $3, Y0, Y0"},
		arm64: code{body: "FRINTZ(0, 0)"}},
	{name: "Round", kind: unaryFloat, expr: "float32(math.RoundToEven(float64(src[i])))", formula: "src[i] rounded to the nearest integer",
		doc:   "halves to the even one",
		amd64: code{body: "VROUNDPS $0, Y0, Y0"},
		arm64: code{body: "FRINTN(0, 0)"}},
	{name: "Reciprocal", kind: unaryFloat, expr: "1 / src[i]",
		amd64: code{setup: "VMOVUPS one<>(SB), Y15", body: "VDIVPS Y0, Y15, Y0"},
		arm64: code{setup: constant("one", 8), body: "FDIV(0, 8, 0)"}},
	{name: "Sqrt", kind: unaryFloat, expr: "float32(math.Sqrt(float64(src[i])))", formula: "√src[i]",
		amd64: code{body: "VSQRTPS Y0, Y0"},
		arm64: code{body: "FSQRT(0, 0)"}},
	{name: "Rsqrt", kind: unaryFloat, expr: "1 / float32(math.Sqrt(float64(src[i])))", formula: "1 / √src[i]", doc: "rounded twice",
		amd64: code{setup: "VMOVUPS one<>(SB), Y15", body: "VSQRTPS Y0, Y0 \n VDIVPS Y0, Y15, Y0"},
		arm64: code{setup: constant("one", 8), body: "FSQRT(0, 0) \n FDIV(0, 8, 0)"}},
	{name: "Select", kind: selection, expr: "choose(mask[i], a[i], b[i])", formula: "a[i] where mask[i] is not 0, to b[i] elsewhere",
		amd64: code{setup: "VPXOR Y3, Y3, Y3", body: "VPCMPEQD Y3, Y0, Y0 \n VBLENDVPS Y0, Y2, Y1, Y0"},
		arm64: code{body: "CMEQ0(0, 0) \n BSL(0, 2, 1)"}},
}}

// orNaN is VMAXPS or VMINPS, which give their second operand, here Y1, where either is
// a NaN: a NaN in Y0 is put back.
func orNaN(op string) string {
	return op + ` Y1, Y0, Y1
		VCMPPS    $3, Y0, Y0, Y2
		VBLENDVPS Y2, Y0, Y1, Y0`
}
