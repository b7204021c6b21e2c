package main

import (
	"fmt"
	"strings"
)

// Loops over quantized elements for AVX2, see simd.Requantize and its neighbours. Bytes are
// signed or not: each routine stands there twice.

// signs are the instructions for signed bytes and for others.
var signs = []struct{ name, widen, words, narrow, maximum string }{
	{"Int8", "VPMOVSXBD", "VPMOVSXBW", "VPACKSSWB", "VPMAXSB"},
	{"Uint8", "VPMOVZXBD", "VPMOVZXBW", "VPACKUSWB", "VPMAXUB"},
}

// toBytes turns eight numbers in Y0 into bytes in X0: within Y10 and Y11, rounded, plus Y12.
const toBytes = `
	VMAXPS       Y10, Y0, Y0
	VMINPS       Y11, Y0, Y0
	VCVTPS2DQ    Y0, Y0
	VPADDD       Y12, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPACKSSDW    X1, X0, X0
`

// bounds loads lo, hi and zero to registers of a letter from 10 on.
func bounds(f *frame, letter string) string {
	return fmt.Sprintf("VBROADCASTSS %s, %s10\nVBROADCASTSS %s, %[2]s11\nVBROADCASTSS %[4]s, %[2]s12\n", f.at("lo"), letter, f.at("hi"), f.at("zero"))
}

// blocks is a loop over blocks of eight elements, counted by CX; AX is the first one.
func blocks(before, body string) string {
	return lines(before, "XORQ AX, AX", align) + "\nloop:\n" + lines(body, "ADDQ $8, AX", "DECQ CX", "JNZ loop", "VZEROUPPER\nRET")
}

var quantizedSets = []set{{"quantized_amd64",
	"Loops over quantized elements. Those that take n do so blocks of eight elements, n > 0.", quantizedRoutines()}}

func quantizedRoutines() (list []routine) {
	add := func(signature string, write func(f *frame) string) {
		list = append(list, routine{signature, write(frameOf(signature))})
	}
	add("func requantize512(m, n int, dst *uint8, ldd int, src *int32, lds int, init *int32, scale *float32, lo, hi float32, zero int32)", requantize512)
	add("func scaleSumsRows(m, n int, dst *float32, ldd int, src *int32, lds int, sums *int32, scale, bias *float32, "+
		"zeros *int32, factors *float32, lo, hi float32, mask *int32)", scaleRows(true))
	add("func scaleFloatsRows(m, n int, dst *float32, ldd int, src *float32, lds int, sums, scale, bias *float32, "+
		"zeros *int32, factors *float32, lo, hi float32, mask *int32)", scaleRows(false))
	add("func lookup512(n int, dst, src, table *uint8)", lookup512)
	for _, s := range signs {
		pack := s.narrow + " X0, X0, X0\nVMOVQ X0, (%s)(AX*1)\n"
		add("func requantize"+s.name+"(m, n int, dst *uint8, ldd int, src *int32, lds int, init *int32, scale *float32, lo, hi float32, zero int32)",
			func(f *frame) string { return requantize(f, fmt.Sprintf(pack, "DI")) })
		add("func depthwise"+s.name+"(pixels int, a *uint8, step int, off *int, pairs int, w *int32, dst *uint8, ldd int, lo, hi float32, zero int32)",
			func(f *frame) string { return depthwise(f, s.words, s.narrow) })
		add("func maximum"+s.name+"(pixels int, a *uint8, step int, off *int, taps int, dst *uint8, ldd int)",
			func(f *frame) string { return maximumRow(f, s.maximum) })
		add("func quantize"+s.name+"(n int, dst *uint8, src *float32, scale, lo, hi float32, zero int32)", func(f *frame) string {
			return blocks(f.arguments("MOVQ", "n", "CX", "dst", "DI", "src", "SI")+"VBROADCASTSS "+f.at("scale")+", Y9\n"+bounds(f, "Y"),
				"VMOVUPS (SI)(AX*4), Y0\nVMULPS Y9, Y0, Y0\n"+toBytes+fmt.Sprintf(pack, "DI"))
		})
		add("func dequantize"+s.name+"(n int, dst *float32, src *uint8, zero int32, scale float32)", func(f *frame) string {
			return blocks(f.arguments("MOVQ", "n", "CX", "dst", "DI", "src", "SI")+"VBROADCASTSS "+f.at("zero")+", Y8\nVBROADCASTSS "+f.at("scale")+", Y9\n",
				number(s.widen, "SI", 0, 8)+"VMOVUPS Y0, (DI)(AX*4)\n")
		})
		for _, op := range []string{"ADD", "SUB", "MUL"} {
			add("func "+strings.ToLower(op)+s.name+"(n int, dst, a, b *uint8, q *binaryParams)", func(f *frame) string {
				return binaryQuantized(f, s.widen, op, fmt.Sprintf(pack, "DI"))
			})
		}
	}
	return list
}

// number makes a number of an element at a pointer plus AX: less its zero point, which is in
// register at, times its scale, which is in the next one.
func number(widen, pointer string, to, at int) string {
	return fmt.Sprintf("%s (%s)(AX*1), Y%d\nVPSUBD Y%d, Y%[3]d, Y%[3]d\nVCVTDQ2PS Y%[3]d, Y%[3]d\nVMULPS Y%[5]d, Y%[3]d, Y%[3]d\n", widen, pointer, to, at, at+1)
}

// binaryQuantized has the fields of binaryParams in Y4 and on.
func binaryQuantized(f *frame, widen, op, store string) string {
	before := f.arguments("MOVQ", "n", "CX", "dst", "DI", "a", "SI", "b", "R8", "q", "R9")
	for i := range 10 {
		before += fmt.Sprintf("VBROADCASTSS %s(R9), Y%d\n", offset(4*i), []int{4, 5, 6, 7, 8, 9, 13, 10, 11, 12}[i])
	}
	return blocks(before, number(widen, "SI", 0, 4)+number(widen, "R8", 1, 6)+"V"+op+"PS Y1, Y0, Y0\n"+
		"VMAXPS Y0, Y8, Y0\nVMINPS Y0, Y9, Y0\nVDIVPS Y13, Y0, Y0\n"+toBytes+store)
}

// requantize goes over m rows of n blocks of eight columns.
func requantize(f *frame, store string) string {
	return lines(f.arguments("MOVQ", "m", "BX", "dst", "DI", "ldd", "R10", "src", "SI", "lds", "R11", "init", "R8", "scale", "R9")+bounds(f, "Y")) +
		"\nrow:\n" + lines("XORQ AX, AX", "MOVQ n+8(FP), CX") + "\nloop:\n" +
		lines("VMOVDQU (SI)(AX*4), Y0\nVPADDD (R8)(AX*4), Y0, Y0\nVCVTDQ2PS Y0, Y0\nVMULPS (R9)(AX*4), Y0, Y0\n"+toBytes+store,
			"ADDQ $8, AX", "DECQ CX", "JNZ loop", "ADDQ R10, DI", "ADDQ R11, SI", "DECQ BX", "JNZ row", "VZEROUPPER\nRET")
}

// requantize512 goes over m rows of n columns.
func requantize512(f *frame) string {
	const block = `
		VMOVDQU32 (SI)(AX*4), Z0
		VPADDD    (R8)(AX*4), Z0, Z0
		VCVTDQ2PS Z0, Z0
		VMULPS    (R9)(AX*4), Z0, Z0
		VMAXPS    Z10, Z0, Z0
		VMINPS    Z11, Z0, Z0
		VCVTPS2DQ Z0, Z0
		VPADDD    Z12, Z0, Z0
	`
	return lines(f.arguments("MOVQ", "m", "BX", "n", "CX", "dst", "DI", "ldd", "R10", "src", "SI", "lds", "R11", "init", "R8", "scale", "R9")+bounds(f, "Z")+
		"MOVL $1, DX\nANDL $15, CX\nSHLL CX, DX\nDECL DX\nKMOVW DX, K1\n") +
		"\nrow:\n" + lines("XORQ AX, AX", "MOVQ n+8(FP), CX", "SUBQ $16, CX", "JLT rest") + "\nloop:\n" +
		lines(block, "VPMOVDB Z0, (DI)(AX*1)", "ADDQ $16, AX", "SUBQ $16, CX", "JGE loop") + "\nrest:\n" +
		lines("ADDQ $16, CX", "JEQ next", block, "VPMOVDB Z0, K1, (DI)(AX*1)") + "\nnext:\n" +
		lines("ADDQ R10, DI", "ADDQ R11, SI", "DECQ BX", "JNZ row", "VZEROUPPER\nRET")
}

// scaleRows is the loop of simd.ScaleSums, or of floats: over m rows of n columns, the last
// eight of which are stored by the mask.
func scaleRows(whole bool) func(f *frame) string {
	return func(f *frame) string {
		before := f.arguments("MOVQ", "m", "BX", "dst", "DI", "ldd", "R10", "src", "SI", "lds", "R11", "scale", "R9", "bias", "R8",
			"factors", "R13", "mask", "AX") + "VMOVUPS (AX), Y12\n"
		for i, name := range []string{"lo", "hi"} {
			before += fmt.Sprintf("VBROADCASTSS %s, Y%d\n", f.at(name), 10+i)
		}
		before += f.arguments("MOVQ", "sums", "R12", "zeros", "DX")
		row := "VBROADCASTSS (R13), Y9\nADDQ $4, R13\nVBROADCASTSS (DX), Y8\nADDQ $4, DX\n"
		load := "VPMULLD (R12)(AX*4), Y8, Y1\nVMOVDQU (SI)(AX*4), Y0\nVPSUBD Y1, Y0, Y0\nVCVTDQ2PS Y0, Y0\nVMULPS Y9, Y0, Y0\n"
		if !whole {
			row += "VCVTDQ2PS Y8, Y8\n"
			load = "VMULPS (R12)(AX*4), Y8, Y1\nVMOVUPS (SI)(AX*4), Y0\nVSUBPS Y1, Y0, Y0\nVMULPS Y9, Y0, Y0\n"
		}
		block := load + "VMULPS (R9)(AX*4), Y0, Y0\nVADDPS (R8)(AX*4), Y0, Y0\nVMAXPS Y0, Y10, Y0\nVMINPS Y0, Y11, Y0\n"
		return lines(before) + "\nrow:\n" + lines(row, "XORQ AX, AX", "MOVQ n+8(FP), CX", "SUBQ $8, CX", "JLE rest") + "\nloop:\n" +
			lines(block, "VMOVUPS Y0, (DI)(AX*4)", "ADDQ $8, AX", "SUBQ $8, CX", "JGT loop") + "\nrest:\n" +
			lines(block, "VMASKMOVPS Y0, Y12, (DI)(AX*4)", "ADDQ R10, DI", "ADDQ R11, SI", "DECQ BX", "JNZ row", "VZEROUPPER\nRET")
	}
}

// depthwise sums pairs of taps for 16 channels, in the order that unpacking leaves: channels
// 0 to 3 and 8 to 11 in Y0, the others in Y1.
func depthwise(f *frame, words, narrow string) string {
	number := ""
	for i := range 2 {
		number += fmt.Sprintf("VCVTDQ2PS Y%d, Y%[1]d\nVMULPS %[2]s(R13), Y%[1]d, Y%[1]d\nVMAXPS Y10, Y%[1]d, Y%[1]d\nVMINPS Y11, Y%[1]d, Y%[1]d\n"+
			"VCVTPS2DQ Y%[1]d, Y%[1]d\nVPADDD Y12, Y%[1]d, Y%[1]d\n", i, offset(32*i))
	}
	return lines(f.arguments("MOVQ", "pixels", "CX", "a", "SI", "step", "R8", "off", "R9", "pairs", "R10", "w", "DI", "dst", "DX", "ldd", "R11")+bounds(f, "Y"), align) +
		"\npixel:\n" + lines("VMOVDQU (DI), Y0\nVMOVDQU 32(DI), Y1\nLEAQ 64(DI), R13\nMOVQ R9, BX\nMOVQ R10, R12") +
		"\npair:\n" + lines("MOVQ (BX), AX\nMOVQ 8(BX), R15\nADDQ $16, BX",
		words+" (SI)(AX*1), Y2", words+" (SI)(R15*1), Y3", "VPUNPCKLWD Y3, Y2, Y4\nVPUNPCKHWD Y3, Y2, Y5",
		"VPMADDWD (R13), Y4, Y4\nVPMADDWD 32(R13), Y5, Y5\nVPADDD Y4, Y0, Y0\nVPADDD Y5, Y1, Y1",
		"ADDQ $64, R13\nDECQ R12\nJNZ pair") + "\n" +
		lines(number, "VPACKSSDW Y1, Y0, Y0\nVEXTRACTI128 $1, Y0, X1\n"+narrow+" X1, X0, X0\nVMOVDQU X0, (DX)",
			"ADDQ R8, SI\nADDQ R11, DX\nDECQ CX\nJNZ pixel\nVZEROUPPER\nRET")
}

// maximumRow has the largest of 16 channels of every pixel's taps.
func maximumRow(f *frame, maximum string) string {
	return lines(f.arguments("MOVQ", "pixels", "CX", "a", "SI", "step", "R8", "off", "R9", "taps", "R10", "dst", "DX", "ldd", "R11"), align) +
		"\npixel:\n" + lines("MOVQ (R9), AX\nVMOVDQU (SI)(AX*1), X0\nMOVQ R10, R12\nMOVQ R9, BX") +
		"\ntap:\n" + lines("MOVQ (BX), AX\nADDQ $8, BX", maximum+" (SI)(AX*1), X0, X0", "DECQ R12\nJNZ tap") + "\n" +
		lines("VMOVDQU X0, (DX)", "ADDQ R8, SI\nADDQ R11, DX\nDECQ CX\nJNZ pixel\nRET")
}

// lookup512 takes n blocks of 64 elements from a table in Z0 to Z3, for AVX-512 with VBMI.
func lookup512(f *frame) string {
	return lines(f.arguments("MOVQ", "n", "CX", "dst", "DI", "src", "SI", "table", "AX"),
		"VMOVDQU64 (AX), Z0\nVMOVDQU64 64(AX), Z1\nVMOVDQU64 128(AX), Z2\nVMOVDQU64 192(AX), Z3", "XORQ AX, AX", align) + "\nloop:\n" +
		lines("VMOVDQU64 (SI)(AX*1), Z4\nVMOVDQA64 Z4, Z5\nVPMOVB2M Z4, K1",
			"VPERMI2B Z1, Z0, Z4\nVPERMI2B Z3, Z2, Z5\nVPBLENDMB Z5, Z4, K1, Z4\nVMOVDQU64 Z4, (DI)(AX*1)",
			"ADDQ $64, AX\nDECQ CX\nJNZ loop\nVZEROUPPER\nRET")
}
