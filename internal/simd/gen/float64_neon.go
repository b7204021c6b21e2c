package main

import "fmt"

// Sums of float32 in float64 for NEON, eight elements at a time, see float64_amd64.s.

var float64NeonSets = []set{{"float64_arm64", "Sums of float32 in float64, for NEON.",
	[]routine{neonSumSquares64, neonAdd64, neonAddSquares64, neonCumSum}}}

// eightDoubles makes eight elements, from R2 on, numbers of 64 bits in four registers from V4 on.
const eightDoubles = "VLD1.P 32(R2), [V2.S4, V3.S4]\nFCVTL64(4, 2)\nFCVTL64_2(5, 2)\nFCVTL64(6, 3)\nFCVTL64_2(7, 3)\n"

// doubles is a list of four registers of such numbers.
func doubles(first int) string {
	return fmt.Sprintf("[V%d.D2, V%d.D2, V%d.D2, V%d.D2]", first, first+1, first+2, first+3)
}

// eachDouble writes an instruction for each of four registers.
func eachDouble(format string) (text string) {
	for i := range 4 {
		text += fmt.Sprintf(format+"\n", i, 4+i, 16+i, 20+i)
	}
	return text
}

// folded makes D lane 0 of a register from one on the sum of four registers.
func folded(first int) string {
	return fmt.Sprintf("FADD64(%[1]d, %[1]d, %[2]d)\nFADD64(%[3]d, %[3]d, %[4]d)\nFADD64(%[1]d, %[1]d, %[3]d)\nFADDP64(%[1]d, %[1]d, %[1]d)\n",
		first, first+1, first+2, first+3)
}

var neonSumSquares64 = func() routine {
	const signature = "func sumSquaresFloat64x8(n int, x *float32, mean float64) (sum, squares float64)"
	f := frameOf(signature)
	return routine{signature, lines(f.arguments("MOVD", "n", "R0", "x", "R2", "mean", "R3"), "VDUP R3, V8.D2",
		eachDouble("VEOR V%[3]d.B16, V%[3]d.B16, V%[3]d.B16\nVEOR V%[4]d.B16, V%[4]d.B16, V%[4]d.B16")) +
		"\nloop:\n" + encoded(lines(eightDoubles, eachDouble("FSUB64(%[2]d, %[2]d, 8)\nFADD64(%[3]d, %[3]d, %[2]d)\nVFMLA V%[2]d.D2, V%[2]d.D2, V%[4]d.D2"),
		"SUBS $1, R0\nBNE loop", folded(16), folded(20), "FMOVD F16, "+f.at("sum"), "FMOVD F20, "+f.at("squares"), "RET"))}
}()

var neonAdd64 = func() routine {
	const signature = "func addFloat64x8(n int, sums *float64, x *float32)"
	return routine{signature, lines(frameOf(signature).arguments("MOVD", "n", "R0", "sums", "R1", "x", "R2")) +
		"\nloop:\n" + encoded(lines(eightDoubles, "VLD1 (R1), "+doubles(16), eachDouble("FADD64(%[3]d, %[3]d, %[2]d)"), "VST1.P "+doubles(16)+", 64(R1)",
		"SUBS $1, R0\nBNE loop\nRET"))}
}()

var neonAddSquares64 = func() routine {
	const signature = "func addSquaresFloat64x8(n int, sums *float64, x *float32, mean *float64)"
	return routine{signature, lines(frameOf(signature).arguments("MOVD", "n", "R0", "sums", "R1", "x", "R2", "mean", "R3")) +
		"\nloop:\n" + encoded(lines(eightDoubles, "VLD1 (R1), "+doubles(16), "VLD1.P 64(R3), "+doubles(20),
		eachDouble("FSUB64(%[2]d, %[2]d, %[4]d)\nVFMLA V%[2]d.D2, V%[2]d.D2, V%[3]d.D2"), "VST1.P "+doubles(16)+", 64(R1)", "SUBS $1, R0\nBNE loop\nRET"))}
}()

// neonCumSum has the sum of all blocks before in both lanes of V8, and 0 in V9.
var neonCumSum = func() routine {
	const signature = "func cumSumx4(n int, dst, src *float32) (sum float64)"
	f := frameOf(signature)
	return routine{signature, lines(f.arguments("MOVD", "n", "R0", "dst", "R1", "src", "R2"), cleared(8), cleared(9)) +
		"\nloop:\n" + encoded(lines("VLD1.P 16(R2), [V2.S4]\nFCVTL64(0, 2)\nFCVTL64_2(1, 2)",
		"VZIP1 V0.D2, V9.D2, V3.D2\nVZIP1 V1.D2, V9.D2, V4.D2\nFADD64(0, 0, 3)\nFADD64(1, 1, 4)", // a, a+b and c, c+d
		"VDUP V0.D[1], V3.D2\nFADD64(1, 1, 3)\nFADD64(0, 0, 8)\nVDUP V1.D[1], V4.D2\nFADD64(1, 1, 8)\nFADD64(8, 8, 4)",
		"FCVTN64(2, 0)\nFCVTN64_2(2, 1)\nVST1.P [V2.S4], 16(R1)\nSUBS $1, R0\nBNE loop\nFMOVD F8, "+f.at("sum"), "RET"))}
}()
