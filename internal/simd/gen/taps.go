package main

import "fmt"

// Weighted sums of shifted slices: y[i] += Σ w[t]·x[off[t]+i], for n blocks of as many
// registers as the loop keeps of y.

func tapsSignature(name string) string {
	return "func " + name + "(n int, y, x *float32, off *int, w *float32, t int)"
}

var tapSets = []set{
	{"taps_amd64", "Sums over taps for AVX2 and FMA.", []routine{amd64Taps("tapsBlocks", 8), amd64Taps("tapsLanes", 1)}},
	{"taps_arm64", "Sums over taps for NEON.", []routine{arm64Taps("tapsBlocks", 4), arm64Taps("tapsLanes", 1)}},
}

// amd64Taps has y in Y0 and on, a weight in Y8; BX counts taps.
func amd64Taps(name string, vectors int) routine {
	signature := tapsSignature(name)
	load, product, store, address := "", "", "", "(SI)(AX*4)"
	if vectors > 1 {
		product, address = "LEAQ (SI)(AX*4), AX\n", "(AX)"
	}
	for v := range vectors {
		at := offset(32 * v)
		load += fmt.Sprintf("VMOVUPS %s(DI), Y%d\n", at, v)
		product += fmt.Sprintf("VFMADD231PS %s%s, Y8, Y%d\n", at, address, v)
		store += fmt.Sprintf("VMOVUPS Y%d, %s(DI)\n", v, at)
	}
	step := fmt.Sprintf("ADDQ $%d, DI\nADDQ $%[1]d, SI\n", 32*vectors)
	return routine{signature, lines(frameOf(signature).arguments("MOVQ", "n", "CX", "y", "DI", "x", "SI", "off", "R8", "w", "R9", "t", "R10")) +
		"\nblock:\n" + lines(load, "XORQ BX, BX") +
		"\ntap:\n" + lines("MOVQ (R8)(BX*8), AX", "VBROADCASTSS (R9)(BX*4), Y8", product, "INCQ BX", "CMPQ BX, R10", "JLT tap") + "\n" +
		lines(store, step, "DECQ CX", "JNZ block", "VZEROUPPER", "RET")}
}

// arm64Taps has y in V0 and on, a weight in V4 and x in V16 and on; R8 counts taps.
func arm64Taps(name string, vectors int) routine {
	signature := tapsSignature(name)
	product := ""
	for v := range vectors {
		product += fmt.Sprintf("VFMLA V%d.S4, V4.S4, V%d.S4\n", 16+v, v)
	}
	y, x := registers(0, vectors), registers(16, vectors)
	return routine{signature, lines(frameOf(signature).arguments("MOVD", "n", "R0", "y", "R1", "x", "R2", "off", "R3", "w", "R4", "t", "R5")) +
		"\nblock:\n" + lines("VLD1 (R1), "+y, "MOVD R3, R6", "MOVD R4, R7", "MOVD R5, R8") +
		"\ntap:\n" + lines("MOVD.P 8(R6), R9", "VLD1R.P 4(R7), [V4.S4]", "ADD R9<<2, R2, R9", "VLD1 (R9), "+x, product, "SUBS $1, R8", "BNE tap") + "\n" +
		lines(fmt.Sprintf("VST1.P %s, %d(R1)\nADD $%[2]d, R2", y, 16*vectors), "SUBS $1, R0", "BNE block", "RET")}
}
