package main

// Functions of each float32. The loops of a function and of its Go implementation, in
// package math32, round differently.
var functions = family{name: "functions", about: wholeBlocks, loops: []loop{
	{name: "Exp", kind: approximation, expr: "expGo", formula: "e^src[i]", doc: "to within 1.5 ulp"},
	{name: "Sigmoid", kind: approximation, expr: "math32.Sigmoid", formula: "1 / (1 + e^-src[i])",
		doc:   "to within 3 ulp; subnormal results may be 0",
		amd64: code{body: amd64Sigmoid, pair: avx512Sigmoid, wideSetup: avx512Sigmoids},
		arm64: code{setup: arm64Logistics, body: arm64Logistic + "FMUL(0, 2, 3)"}},
	{name: "SiLU", kind: approximation, expr: "siluGo", formula: "src[i] / (1 + e^-src[i])",
		doc:   "the product of src[i] and its [Sigmoid], rounded twice; 0 where that of a negative number may be",
		amd64: code{body: "VMOVAPS Y0, Y7" + amd64Sigmoid + "VMULPS Y7, Y0, Y0", pair: avx512SiLU, wideSetup: avx512Sigmoids},
		arm64: code{setup: arm64Logistics, body: arm64Logistic + "FMUL(2, 2, 3)\nFMUL(0, 0, 2)"}},
	{name: "Tanh", kind: approximation, expr: "math32.Tanh", formula: "tanh(src[i])", doc: "to within 4 ulp",
		amd64: code{body: "VADDPS Y0, Y0, Y0" + amd64TanhOfHalf, pair: avx512Tanh, wideSetup: avx512Tanhs},
		arm64: code{setup: arm64Parts, body: "FADD(0, 0, 0)" + arm64TanhOfHalf}},
	{name: "Expm1", kind: approximation, expr: "math32.Expm1", formula: "e^src[i] - 1", doc: "to within 4 ulp",
		amd64: code{body: amd64Expm1},
		arm64: code{setup: arm64Parts + constant("exponentStep", 12), body: arm64Expm1}},
	{name: "ELU", kind: approximation, expr: "eluGo",
		formula: "src[i]·positive where src[i] is positive, and (e^(src[i]·inner) - 1)·negative elsewhere",
		doc:     "to within some ulp", scalars: []string{"negative", "inner", "positive"}, args: []string{"1.5, 2, 0.5"},
		amd64: code{body: amd64ELU},
		arm64: code{setup: arm64Parts + constant("exponentStep", 12), body: arm64ELU}},
}}

// The error function, and what is made of it.
var errorFunctions = family{name: "erf", about: wholeBlocks, loops: []loop{
	{name: "GELU", kind: approximation, expr: "math32.GELU", formula: "src[i]·Φ(src[i])",
		doc:   "Φ being the normal distribution, to within 4 ulp for positive numbers and 2⁻²³ for negative ones; 0 at -Inf",
		amd64: code{setup: "VMOVUPS signBit<>(SB), Y8", body: amd64GELU, pair: avx512GELU, wideSetup: avx512GELUs},
		arm64: code{setup: arm64Parts, body: arm64GELU}},
	{name: "GELUTanh", kind: approximation, expr: "math32.GELUTanh", formula: "GELU of src[i] by its approximation with a hyperbolic tangent",
		doc:   "with the errors of [GELU]",
		amd64: code{body: amd64GELUTanh, pair: avx512GELUTanh, wideSetup: avx512Sigmoids + broadcasts(29, "geluCubic", "geluSlope")},
		arm64: code{setup: arm64Parts, body: arm64GELUTanh}},
	{name: "Erf", kind: approximation, expr: "math32.Erf", formula: "the error function of src[i]", doc: "to within 4 ulp",
		amd64: code{setup: "VMOVUPS signBit<>(SB), Y8", body: amd64Erf},
		arm64: code{setup: arm64Parts + constant("signBit", 11) + constant("four", 12), body: arm64Erf}},
}}

// Logarithms and sines.
var logarithms = family{name: "logarithms", about: wholeBlocks, loops: []loop{
	{name: "Log1p", kind: approximation, expr: "math32.Log1p", formula: "log(1 + src[i])", doc: "to within 4 ulp",
		amd64: code{setup: "VMOVUPS one<>(SB), Y13 \n VMOVUPS ln2Lo<>(SB), Y14 \n VMOVUPS ln2Hi<>(SB), Y15", body: amd64Log1p},
		arm64: code{setup: arm64Logs + constant("one", 8) + constant("ln2Lo", 9) + constant("ln2Hi", 10), body: arm64Log1p}},

	// The logarithms of all bases are one loop, of the factor of the mantissa's logarithm,
	// and log 2 in two parts.
	{lanes: "logLanes", kind: inner("float32", "", operand{"src", "float32"}), scalars: []string{"scale", "low", "high"},
		amd64: code{body: amd64Log},
		arm64: code{setup: arm64Logs, body: arm64Log}},
	{name: "Log", lanes: "logLanes", kind: approximation, expr: "math32.Log", call: "1, ln2Lo, ln2Hi",
		formula: "the natural logarithm of src[i]", doc: "to within 4 ulp"},
	{name: "Log2", lanes: "logLanes", kind: approximation, expr: "math32.Log2", call: "log2e, 0, 1",
		formula: "the logarithm of src[i] to base 2", doc: "to within 4 ulp"},
	{name: "Log10", lanes: "logLanes", kind: approximation, expr: "math32.Log10",
		call:    "1 / math.Ln10, math.Ln2/math.Ln10 - log10of2, log10of2",
		formula: "the logarithm of src[i] to base 10", doc: "to within 4 ulp"},

	// sineLanes is the sine of what lies shift half turns on; beyond is not 0 where an
	// element is above sineMax, or NaN.
	{lanes: "sineLanes", kind: inner("float32", "beyond int32", operand{"src", "float32"}), scalars: []string{"shift"},
		amd64: code{setup: "VMOVUPS signBit<>(SB), Y8 \n VXORPS Y14, Y14, Y14", body: amd64Sine, finish: "VMOVMSKPS Y14, AX \n MOVL AX, RESULT"},
		arm64: code{setup: arm64Sines + "VEOR V26.B16, V26.B16, V26.B16", body: arm64Sine, finish: `
				VMOV   V26.D[0], R3
				VMOV   V26.D[1], R4
				ORR    R4, R3
				LSR    $32, R3, R4
				ORR    R4, R3
				MOVW   R3, RESULT`}},
}}

const wholeBlocks = "Functions of each element. A last incomplete block is computed in all lanes, too, so that\n" +
	"// an element's result does not depend on its place."
