package main

// Comparisons of float32 and of int32. Bytes are 1 where they hold.
var compare = family{name: "compare", about: "Comparisons of each element.", loops: []loop{
	{name: "Equal", kind: compareFloat, expr: "bit(a[i] == b[i])", doc: "as for NaN",
		amd64: code{body: "VCMPPS $0, Y1, Y0, Y0"},
		arm64: code{body: "FCMEQ(0, 0, 1)"}},
	{name: "NotEqual", kind: compareFloat, expr: "bit(a[i] != b[i])", doc: "NaN differs from everything",
		amd64: code{body: "VCMPPS $0, Y1, Y0, Y0", invert: true},
		arm64: code{body: "FCMEQ(0, 0, 1) \n NOT(0, 0)"}},
	{name: "Less", kind: compareFloat, expr: "bit(a[i] < b[i])", doc: "as for NaN",
		amd64: code{body: "VCMPPS $1, Y1, Y0, Y0"},
		arm64: code{body: "FCMGT(0, 1, 0)"}},
	{name: "LessEqual", kind: compareFloat, expr: "bit(a[i] <= b[i])", doc: "as for NaN",
		amd64: code{body: "VCMPPS $2, Y1, Y0, Y0"},
		arm64: code{body: "FCMGE(0, 1, 0)"}},
	{name: "EqualInt32", kind: compareInt, expr: "bit(a[i] == b[i])",
		amd64: code{body: "VPCMPEQD Y1, Y0, Y0"},
		arm64: code{body: "CMEQ(0, 0, 1)"}},
	{name: "NotEqualInt32", kind: compareInt, expr: "bit(a[i] != b[i])",
		amd64: code{body: "VPCMPEQD Y1, Y0, Y0", invert: true},
		arm64: code{body: "CMEQ(0, 0, 1) \n NOT(0, 0)"}},
	{name: "LessInt32", kind: compareInt, expr: "bit(a[i] < b[i])",
		amd64: code{body: "VPCMPGTD Y0, Y1, Y0"},
		arm64: code{body: "CMGT(0, 1, 0)"}},
	{name: "LessEqualInt32", kind: compareInt, expr: "bit(a[i] <= b[i])",
		amd64: code{body: "VPCMPGTD Y1, Y0, Y0", invert: true},
		arm64: code{body: "CMGE(0, 1, 0)"}},
	{name: "LogicalAndInt32", kind: compareInt, expr: "bit(a[i] != 0) & bit(b[i] != 0)",
		formula: "1 where neither of a[i] and b[i] is 0, to 0 elsewhere",
		amd64:   code{setup: amd64Zero, body: amd64False + "VPOR Y1, Y0, Y0", invert: true},
		arm64:   code{body: arm64False + "VORR V1.B16, V0.B16, V0.B16 \n NOT(0, 0)"}},
	{name: "LogicalOrInt32", kind: compareInt, expr: "bit(a[i]|b[i] != 0)",
		formula: "1 where a[i] or b[i] is not 0, to 0 elsewhere",
		amd64:   code{setup: amd64Zero, body: amd64False + "VPAND Y1, Y0, Y0", invert: true},
		arm64:   code{body: arm64False + "VAND V1.B16, V0.B16, V0.B16 \n NOT(0, 0)"}},
	{name: "LogicalNorInt32", kind: compareInt, expr: "bit(a[i]|b[i] == 0)",
		formula: "1 where both of a[i] and b[i] are 0, to 0 elsewhere",
		amd64:   code{setup: amd64Zero, body: amd64False + "VPAND Y1, Y0, Y0"},
		arm64:   code{body: arm64False + "VAND V1.B16, V0.B16, V0.B16"}},
	{name: "LogicalXorInt32", kind: compareInt, expr: "bit(a[i] != 0) ^ bit(b[i] != 0)",
		formula: "1 where one of a[i] and b[i] is 0, to 0 elsewhere",
		amd64:   code{setup: amd64Zero, body: amd64False + "VPXOR Y1, Y0, Y0"},
		arm64:   code{body: arm64False + "VEOR V1.B16, V0.B16, V0.B16"}},
}}

// Masks of the operands, where they are 0.
const (
	amd64Zero  = "VPXOR Y2, Y2, Y2\n"
	amd64False = "VPCMPEQD Y2, Y0, Y0\nVPCMPEQD Y2, Y1, Y1\n"
	arm64False = "CMEQ0(0, 0)\nCMEQ0(1, 1)\n"
)
