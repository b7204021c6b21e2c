package main

import "fmt"

// Windows over rows of channels: for pixels next to each other in y,
//
//	y[i,j] = clamp(bias[j] + Σ_t w[wo[t]+j]·x[xo[t]+i·xs+j])
//
// with n blocks of channels. Strides are in bytes, offsets in elements.

const channelsParams = "(n int, y, x *float32, xo *int, w *float32, wo *int, t int, bias *float32, ys, xs int, lo, hi float32"

var channelSets = []set{
	{"channels_amd64", "Windows over rows of channels for AVX2 and FMA, n blocks of eight channels, and for AVX-512, n channels.",
		[]routine{amd64Channels(4), amd64Channels(2), amd64Channels(1), avx512Channels(4), avx512Channels(2), avx512Channels(1)}},
	{"channels_arm64", "Windows over rows of channels for NEON, n blocks of four channels.",
		[]routine{neonChannels(4), neonChannels(2), neonChannels(1)}},
}

func amd64ChannelsSetup(f *frame) string {
	return f.arguments("MOVQ", "n", "R10", "y", "DI", "x", "SI", "xo", "R8", "w", "DX", "wo", "R9", "t", "CX", "bias", "R11", "ys", "R13", "xs", "R12") +
		"LEAQ (R12)(R12*2), R14\n"
}

// amd64Pixels are the addresses of up to four pixels from AX on.
var amd64Pixels = []string{"(AX)", "(AX)(R12*1)", "(AX)(R12*2)", "(AX)(R14*1)"}

// amd64Channels has a block of pixel r in Y(r), the weights in Y8.
func amd64Channels(rows int) routine {
	signature := fmt.Sprintf("func channels%d%s)", rows, channelsParams)
	f := frameOf(signature)
	load, product, store := "VMOVUPS (R11), Y0\n", "", "MOVQ DI, AX\n"
	for r := range rows {
		if r > 0 {
			load += fmt.Sprintf("VMOVAPS Y0, Y%d\n", r)
			store += "ADDQ R13, AX\n"
		}
		product += fmt.Sprintf("VFMADD231PS %s, Y8, Y%d\n", amd64Pixels[r], r)
		store += fmt.Sprintf("VMOVUPS Y%d, (AX)\n", r)
	}
	return routine{signature, lines(amd64ChannelsSetup(f)) + "\nblock:\n" + lines(load, "XORQ BX, BX") + "\ntap:\n" +
		lines("MOVQ (R9)(BX*8), AX", "VMOVUPS (DX)(AX*4), Y8", "MOVQ (R8)(BX*8), AX", "LEAQ (SI)(AX*4), AX", product,
			"INCQ BX", "CMPQ BX, CX", "JLT tap") + "\n" +
		lines(amd64Clamp(f, "Y", rows, "Y9", "Y10"), store, "ADDQ $32, DI", "ADDQ $32, SI", "ADDQ $32, DX", "ADDQ $32, R11",
			"DECQ R10", "JNZ block", "VZEROUPPER", "RET")}
}

// avx512Channels has 32 channels of pixel r in Z(2r) and Z(2r+1), the weights in Z16 and Z17,
// and masks of the channels that there are in K1 and K2.
func avx512Channels(rows int) routine {
	signature := fmt.Sprintf("func channels%dx512%s)", rows, channelsParams)
	f := frameOf(signature)
	load, product, store := "", "", "MOVQ DI, AX\n"
	for v := range 2 {
		load += fmt.Sprintf("VMOVUPS.Z %s(R11), K%d, Z%d\n", offset(64*v), v+1, v)
	}
	for r := range rows {
		if r > 0 {
			load += fmt.Sprintf("VMOVAPS Z0, Z%d\nVMOVAPS Z1, Z%d\n", 2*r, 2*r+1)
			store += "ADDQ R13, AX\n"
		}
		for v := range 2 {
			product += fmt.Sprintf("VFMADD231PS %s%s, Z%d, K%d, Z%d\n", offset(64*v), amd64Pixels[r], 16+v, v+1, 2*r+v)
			store += fmt.Sprintf("VMOVUPS Z%d, K%d, %s(AX)\n", 2*r+v, v+1, offset(64*v))
		}
	}
	return routine{signature, lines(amd64ChannelsSetup(f), "MOVL $-1, AX", "KMOVW AX, K1", "KMOVW AX, K2") + "\nblock:\n" +
		lines("CMPQ R10, $32", "JGE whole", "MOVQ CX, BX", "MOVQ R10, CX", "MOVQ $1, AX", "SHLQ CX, AX", "DECQ AX", "KMOVW AX, K1",
			"SHRQ $16, AX", "KMOVW AX, K2", "MOVQ BX, CX") + "\nwhole:\n" +
		lines(load, "XORQ BX, BX") + "\ntap:\n" +
		lines("MOVQ (R9)(BX*8), AX", "VMOVUPS.Z (DX)(AX*4), K1, Z16", "VMOVUPS.Z 64(DX)(AX*4), K2, Z17", "MOVQ (R8)(BX*8), AX",
			"LEAQ (SI)(AX*4), AX", product, "INCQ BX", "CMPQ BX, CX", "JLT tap") + "\n" +
		lines(amd64Clamp(f, "Z", 2*rows, "Z18", "Z19"), store, "ADDQ $128, DI", "ADDQ $128, SI", "ADDQ $128, DX", "ADDQ $128, R11",
			"SUBQ $32, R10", "JG block", "VZEROUPPER", "RET")}
}

// neonChannels has sixteen channels of pixel r in V(4r) and on, or four in V(4r), the weights in V16 and on, and an element of
// each of a pixel in V20 and on. The bounds are in V28 and V29.
func neonChannels(rows int) routine {
	signature := fmt.Sprintf("func channels%d%s)", rows, channelsParams)
	f := frameOf(signature)
	return routine{signature, lines(neonScalars(f, 28, "lo", "hi"), f.arguments("MOVD", "n", "R0", "y", "R2", "x", "R3", "xo", "R4", "w", "R5",
		"wo", "R6", "t", "R7", "bias", "R8", "ys", "R9", "xs", "R10"), "SUBS $4, R0", "BLT rest") +
		"\nfour:\n" + neonChannelBlock(rows, 4, "fourTaps") + lines("SUBS $4, R0", "BGE four") +
		"\nrest:\n" + lines("ADDS $4, R0", "BEQ end") +
		"\nblock:\n" + neonChannelBlock(rows, 1, "taps") + lines("SUBS $1, R0", "BNE block") + "\nend:\n" + lines("RET")}
}

// neonChannelBlock sums taps for so many vectors of channels of every pixel.
func neonChannelBlock(rows, vectors int, label string) string {
	begin, product, end := load("R8", 0, vectors), "", ""
	for r := range rows {
		product += fmt.Sprintf("VLD1.P (R12)(R10), %s\n", registers(20, vectors))
		for v := range vectors {
			if r > 0 {
				begin += moved(fmt.Sprint(v), fmt.Sprint(4*r+v))
			}
			product += fmt.Sprintf("VFMLA V%d.S4, V%d.S4, V%d.S4\n", 16+v, 20+v, 4*r+v)
			end += fmt.Sprintf("FMAX(%d, %[1]d, 28)\nFMIN(%[1]d, %[1]d, 29)\n", 4*r+v)
		}
		end += fmt.Sprintf("VST1.P %s, (R12)(R9)\n", registers(4*r, vectors))
	}
	step := 16 * vectors
	return lines(begin, "MOVD R4, R13", "MOVD R6, R14", "MOVD R7, R15") + "\n" + label + ":\n" +
		lines("MOVD.P 8(R14), R12", "ADD R12<<2, R5, R12", "VLD1 (R12), "+registers(16, vectors), "MOVD.P 8(R13), R12", "ADD R12<<2, R3, R12",
			product, "SUBS $1, R15", "BNE "+label) + "\n" +
		lines("MOVD R2, R12", encoded(lines(end)), fmt.Sprintf("ADD $%d, R2\nADD $%[1]d, R3\nADD $%[1]d, R5", step))
}
