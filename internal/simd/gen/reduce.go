package main

import "fmt"

// Loops over rows of float32, which hand-written Go calls: reductions, and what norms
// are made of.
var rows = family{name: "reduce", about: "Sums, extremes, and loops over rows.", loops: []loop{
	{lanes: "fillLanes", kind: inner("float32", ""), scalars: []string{"v"},
		amd64: code{out: 15},
		arm64: code{out: 8}},
	{lanes: "stride2Lanes", kind: raw("float32", operand{"src", "float32"}), // reads two blocks for each
		amd64: code{body: `
		loop:
			VMOVUPS (SI), Y0
			VSHUFPS $0x88, 32(SI), Y0, Y0
			VPERMPD $0xd8, Y0, Y0
			VMOVUPS Y0, (DI)
			ADDQ    $64, SI
			ADDQ    $32, DI
			DECQ    CX
			JNZ     loop`},
		arm64: code{body: `
		loop:
			VLD2.P 32(R2), [V0.S4, V1.S4]
			VST1.P [V0.S4], 16(R1)
			SUBS   $1, R0
			BNE    loop`}},
	{lanes: "zip3Lanes", kind: raw("float32", operand{"a", "float32"}, operand{"b", "float32"}, operand{"c", "float32"}), // three blocks for each
		amd64: code{body: threes(0x0207040106030005) + `
		loop:
			VPERMPS (SI), Y13, Y0
			VPERMPS (DX), Y14, Y1
			VPERMPS (R8), Y15, Y2` + blended("Y0", "Y1", "Y2", "Y3") + blended("Y2", "Y0", "Y1", "Y4") + blended("Y1", "Y2", "Y0", "Y5") + `
			VMOVUPS Y3, (DI)
			VMOVUPS Y4, 32(DI)
			VMOVUPS Y5, 64(DI)
			ADDQ    $32, SI
			ADDQ    $32, DX
			ADDQ    $32, R8
			ADDQ    $96, DI
			DECQ    CX
			JNZ     loop`},
		arm64: code{body: `
		loop:
			VLD1.P 16(R2), [V0.S4]
			VLD1.P 16(R3), [V1.S4]
			VLD1.P 16(R5), [V2.S4]
			VST3.P [V0.S4, V1.S4, V2.S4], 48(R1)
			SUBS   $1, R0
			BNE    loop`}},
	{lanes: "unzip3Lanes", kind: raw("float32", operand{"b", "float32"}, operand{"c", "float32"}, operand{"src", "float32"}), // the reverse
		amd64: code{body: threes(0x0603000502070401) + `
		loop:
			VMOVUPS (R8), Y0
			VMOVUPS 32(R8), Y1
			VMOVUPS 64(R8), Y2` + blended("Y0", "Y1", "Y2", "Y3") + blended("Y2", "Y0", "Y1", "Y4") + blended("Y1", "Y2", "Y0", "Y5") + `
			VPERMPS Y3, Y13, Y3
			VPERMPS Y4, Y14, Y4
			VPERMPS Y5, Y15, Y5
			VMOVUPS Y3, (DI)
			VMOVUPS Y4, (SI)
			VMOVUPS Y5, (DX)
			ADDQ    $32, DI
			ADDQ    $32, SI
			ADDQ    $32, DX
			ADDQ    $96, R8
			DECQ    CX
			JNZ     loop`},
		arm64: code{body: `
		loop:
			VLD3.P 48(R5), [V0.S4, V1.S4, V2.S4]
			VST1.P [V0.S4], 16(R1)
			VST1.P [V1.S4], 16(R2)
			VST1.P [V2.S4], 16(R3)
			SUBS   $1, R0
			BNE    loop`}},
	{lanes: "scaleShiftLanes", kind: inner("float32", "", operand{"src", "float32"}), scalars: []string{"scale", "shift"},
		amd64: code{body: "VFMADD213PS Y15, Y14, Y0", unroll: true},
		arm64: code{body: "COPY(1, 9) \n VFMLA V0.S4, V8.S4, V1.S4", out: 1}},
	{lanes: "centerLanes", kind: inner("float32", "", operand{"src", "float32"}, operand{"weight", "float32"}, operand{"bias", "float32"}),
		scalars: []string{"mean", "scale"},
		amd64:   code{body: "VSUBPS Y14, Y0, Y0 \n VMULPS Y15, Y0, Y0 \n VFMADD132PS Y1, Y2, Y0"},
		arm64:   code{body: "FSUB(0, 0, 8) \n FMUL(0, 0, 9) \n VFMLA V0.S4, V1.S4, V2.S4", out: 2}},
	{lanes: "expLanes", kind: inner("float32", "", operand{"src", "float32"}),
		amd64: code{body: exponential("expMin")},
		arm64: code{setup: loaded(16, exponentials...), body: arm64Exponential}},
	{lanes: "expSumLanes", kind: inner("float32", "ret float32", operand{"src", "float32"}), scalars: []string{"shift"},
		amd64: code{setup: "VXORPS Y9, Y9, Y9", body: "VSUBPS Y15, Y0, Y0" + exponential("expNormal") + "VADDPS Y0, Y9, Y9",
			finish:     "VMOVAPS Y9, Y0" + sumY0 + "VMOVSS X0, RESULT",
			pair:       "VSUBPS Z15, Z0, Z0\n" + avx512Normal + "VADDPS Z2, Z9, Z9 \n VMOVAPS Z2, Z0",
			wideSetup:  "VBROADCASTSS X15, Z15 \n VXORPS Y9, Y9, Y9\n" + avx512Normals + broadcasts(26, "minusInfinity"),
			single:     "VINSERTF64X4 $0, Y0, Z26, Z0", // e^-∞ adds nothing
			wideFinish: "VEXTRACTF64X4 $1, Z9, Y0 \n VADDPS Y9, Y0, Y0" + sumY0 + "VMOVSS X0, RESULT"},
		arm64: code{setup: "VEOR V31.B16, V31.B16, V31.B16\n" + loaded(16, exponentials...) + constant("expNormal", 17),
			body: "FSUB(0, 0, 8)\n" + arm64Exponential + "\nFADD(31, 31, 0)", finish: "FADDP(31, 31, 31)\nFADDP(31, 31, 31)\nFMOVS F31, RESULT"}},
	{lanes: "dotLanes", kind: reduction("x", "y"),
		amd64: code{body: "VMOVUPS AT(SI), TMP \n VFMADD231PS AT(DX), TMP, ACC"},
		arm64: code{body: "VFMLA VX.S4, VY.S4, VACC.S4"}},
	{lanes: "sumLanes", kind: reduction("x"),
		amd64: code{body: "VADDPS AT(SI), ACC, ACC"},
		arm64: code{body: "FADD(ACC, ACC, X)"}},
	{lanes: "squaresLanes", kind: reduction("x"), scalars: []string{"mean"},
		amd64: code{body: "VMOVUPS AT(SI), TMP \n VSUBPS Y15, TMP, TMP \n VFMADD231PS TMP, TMP, ACC"},
		arm64: code{body: "FSUB(X, X, 8) \n VFMLA VX.S4, VX.S4, VACC.S4"}},
	{lanes: "maxLanes", kind: extreme, amd64: code{body: amd64Extreme("VMAX")}, arm64: code{body: arm64Extreme("FMAX")}},
	{lanes: "minLanes", kind: extreme, amd64: code{body: amd64Extreme("VMIN")}, arm64: code{body: arm64Extreme("FMIN")}},
}}

// threes loads the permutations of elements of which every third is next to each other in memory, that of the second one
// as an argument: each element moves to the place, or from it, that it has in its vector of three.
func threes(second uint64) (text string) {
	for i, places := range []uint64{0x0502070401060300, second, 0x0704010603000502} {
		text += fmt.Sprintf("MOVQ $0x%016x, AX\nVMOVQ AX, X%d\nVPMOVZXBD X%[2]d, Y%[2]d\n", places, 13+i)
	}
	return text
}

// blended takes every third element of x, y and z, from the first, second and third one on.
func blended(x, y, z, out string) string {
	return fmt.Sprintf("\nVBLENDPS $0x92, %[2]s, %[1]s, %[4]s\nVBLENDPS $0x24, %[3]s, %[4]s, %[4]s", x, y, z, out)
}

// amd64Extreme is the largest or least element, or NaN: Y1 and Y5 gather the lanes that
// met one, which the instruction may drop. Y0 and Y4 take blocks in turn.
func amd64Extreme(op string) string {
	return `
		VMOVUPS (SI), Y0
		VMOVAPS Y0, Y4
		VCMPPS  $3, Y0, Y0, Y1
		VMOVAPS Y1, Y5
		TESTQ   $1, CX
		JZ      pairs
		ADDQ    $32, SI
		DECQ    CX
		JZ      fold
		PCALIGN $64
	pairs:
		VMOVUPS (SI), Y2
		VMOVUPS 32(SI), Y6
		` + op + `PS  Y2, Y0, Y0
		` + op + `PS  Y6, Y4, Y4
		VCMPPS  $3, Y2, Y2, Y3
		VCMPPS  $3, Y6, Y6, Y7
		VORPS   Y3, Y1, Y1
		VORPS   Y7, Y5, Y5
		ADDQ    $64, SI
		SUBQ    $2, CX
		JNZ     pairs
	fold:
		` + op + `PS       Y4, Y0, Y0
		VORPS        Y5, Y1, Y1
		VMOVMSKPS    Y1, AX
		VEXTRACTF128 $1, Y0, X1
		` + op + `PS       X1, X0, X0
		VMOVHLPS     X0, X0, X1
		` + op + `PS       X1, X0, X0
		VMOVSHDUP    X0, X1
		` + op + `SS       X1, X0, X0
		TESTL        AX, AX
		JZ           finite
		MOVL         $0x7fc00000, AX
		VMOVD        AX, X0
	finite:
		VMOVSS       X0, RESULT`
}

// arm64Extreme is the same; FMAX and FMIN hand a NaN on. V0 to V3 gather four blocks at a time.
func arm64Extreme(op string) string {
	return `
		VLD1R (R2), [V0.S4]
		VORR V0.B16, V0.B16, V1.B16
		VORR V0.B16, V0.B16, V2.B16
		VORR V0.B16, V0.B16, V3.B16
		SUBS   $4, R0
		BLT    rest
	four:
		VLD1.P 64(R2), [V4.S4, V5.S4, V6.S4, V7.S4]
		` + op + `(0, 0, 4)
		` + op + `(1, 1, 5)
		` + op + `(2, 2, 6)
		` + op + `(3, 3, 7)
		SUBS   $4, R0
		BGE    four
		` + op + `(0, 0, 1)
		` + op + `(2, 2, 3)
		` + op + `(0, 0, 2)
	rest:
		ADDS   $4, R0
		BEQ    done
	loop:
		VLD1.P 16(R2), [V1.S4]
		` + op + `(0, 0, 1)
		SUBS   $1, R0
		BNE    loop
	done:
		` + op + `P(0, 0, 0)
		` + op + `P(0, 0, 0)
		FMOVS  F0, RESULT`
}
