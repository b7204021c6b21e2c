package main

import "fmt"

// Loops over quantized elements for NEON. Bounds are in V10 and V11, the zero point in V12.

var quantizedNeonSets = []set{
	{"quantized_arm64", "Loops over quantized elements. Those that take n do so blocks of four elements, n > 0.",
		neonQuantizedRoutines()},
	{"nibble_arm64", "Tiles of products with 4-bit weights for NEON with dot products.",
		nibbleTiles("nibble", nibbleNeon, dotTile{1, 1})},
}

// neonBytes turns four numbers in V0 into bytes in F0.
const neonBytes = "FMAXNM(0, 0, 10)\nFMINNM(0, 0, 11)\nFCVTNS(0, 0)\nVADD V12.S4, V0.S4, V0.S4\nXTN16(0, 0)\nXTN8(0, 0)\n"

// neonScalars loads numbers to all lanes of registers from one on.
func neonScalars(f *frame, first int, names ...string) (text string) {
	for i, name := range names {
		text += fmt.Sprintf("MOVWU %s, R6\nVDUP R6, V%d.S4\n", f.at(name), first+i)
	}
	return text
}

func neonBlocks(before, body string) string {
	return lines(before) + "\nloop:\n" + lines(encoded(lines(body)), "SUBS $1, R0", "BNE loop", "RET")
}

// neonSigns are the instructions for signed bytes and for others.
var neonSigns = []struct{ name, widen, low, high string }{
	{"Int8", loadInt8.neon, "SXTL8", "SXTL8_2"}, {"Uint8", loadUint8.neon, "UXTL8", "UXTL8_2"},
}

func neonQuantizedRoutines() (list []routine) {
	add := func(signature string, write func(f *frame) string) {
		list = append(list, routine{signature, write(frameOf(signature))})
	}
	add("func requantizeLanes(m, n int, dst *uint8, ldd int, src *int32, lds int, init *int32, scale *float32, lo, hi float32, zero int32)", neonRequantize)
	for _, op := range []string{"Mul", "Div"} {
		add("func quantize"+op+"Lanes(n int, dst *uint8, src *float32, scale, lo, hi float32, zero int32)", func(f *frame) string {
			return neonBlocks(f.arguments("MOVD", "n", "R0", "dst", "R1", "src", "R2")+neonScalars(f, 9, "scale", "lo", "hi", "zero"),
				"VLD1.P 16(R2), [V0.S4]\n"+map[string]string{"Mul": "FMUL", "Div": "FDIV"}[op]+"(0, 0, 9)\n"+neonBytes+"FMOVS.P F0, 4(R1)")
		})
	}
	for _, s := range neonSigns {
		add("func dequantize"+s.name+"(n int, dst *float32, src *uint8, zero int32, scale float32)", func(f *frame) string {
			return neonBlocks(f.arguments("MOVD", "n", "R0", "dst", "R1", "src", "R2")+neonScalars(f, 8, "zero", "scale"),
				s.widen+"\nVSUB V8.S4, V0.S4, V0.S4\nSCVTF(0, 0)\nFMUL(0, 0, 9)\nVST1.P [V0.S4], 16(R1)")
		})
		add("func depthwise"+s.name+"(pixels int, a *uint8, step int, off *int, pairs int, w *int32, dst *uint8, ldd int, lo, hi float32, zero int32)",
			func(f *frame) string { return neonDepthwise(f, s.low, s.high) })
	}
	return list
}

// neonRequantize goes over m rows of n blocks of four columns.
func neonRequantize(f *frame) string {
	return lines(f.arguments("MOVD", "m", "R7", "dst", "R8", "ldd", "R9", "src", "R10", "lds", "R11")+neonScalars(f, 10, "lo", "hi", "zero")) +
		"\nrow:\n" + lines("MOVD R8, R1\nMOVD R10, R2", f.arguments("MOVD", "n", "R0", "init", "R3", "scale", "R4")) + "\nloop:\n" +
		lines(encoded(lines("VLD1.P 16(R2), [V0.S4]\nVLD1.P 16(R3), [V1.S4]\nVLD1.P 16(R4), [V2.S4]\nVADD V1.S4, V0.S4, V0.S4\nSCVTF(0, 0)\nFMUL(0, 0, 2)\n"+
			neonBytes+"FMOVS.P F0, 4(R1)")), "SUBS $1, R0\nBNE loop\nADD R9, R8\nADD R11, R10\nSUBS $1, R7\nBNE row\nRET")
}

// neonDepthwise sums taps for 16 channels: 0 to 3, 8 to 11, 4 to 7 and 12 to 15 in V0 to V3.
// Weights of a pair of taps come apart into V4 to V7.
func neonDepthwise(f *frame, low, high string) string {
	tap := func(w int) string {
		return fmt.Sprintf("MOVD.P 8(R9), R10\nADD R2, R10, R10\nVLD1 (R10), [V16.B16]\n%s(17, 16)\n%s(18, 16)\n"+
			"VZIP1 V18.D2, V17.D2, V19.D2\nVZIP2 V18.D2, V17.D2, V20.D2\nSMLAL(0, 19, %d)\nSMLAL2(1, 19, %[3]d)\nSMLAL(2, 20, %d)\nSMLAL2(3, 20, %[4]d)\n",
			low, high, w, w+2)
	}
	finish := ""
	for i := range 4 {
		finish += fmt.Sprintf("VLD1.P 16(R8), [V16.S4]\nSCVTF(%d, %[1]d)\nFMUL(%[1]d, %[1]d, 16)\nFMAXNM(%[1]d, %[1]d, 10)\nFMINNM(%[1]d, %[1]d, 11)\n"+
			"FCVTNS(%[1]d, %[1]d)\nVADD V12.S4, V%[1]d.S4, V%[1]d.S4\n", i)
	}
	finish += "XTN16(0, 0)\nXTN16_2(0, 2)\nXTN16(1, 1)\nXTN16_2(1, 3)\nXTN8(0, 0)\nXTN8_2(0, 1)\nVST1 [V0.B16], (R1)\n"
	return lines(f.arguments("MOVD", "pixels", "R0", "a", "R2", "step", "R3", "w", "R5", "dst", "R1", "ldd", "R7")+neonScalars(f, 10, "lo", "hi", "zero")) +
		"\npixel:\n" + lines("MOVD R5, R8", f.arguments("MOVD", "off", "R9", "pairs", "R11"), "VLD1.P 64(R8), "+registers(0, 4)) + "\npair:\n" +
		lines(encoded(lines("VLD2.P 32(R8), [V4.H8, V5.H8]\nVLD2.P 32(R8), [V6.H8, V7.H8]", tap(4), tap(5))), "SUBS $1, R11\nBNE pair") + "\n" +
		lines(encoded(lines(finish)), "ADD R3, R2\nADD R7, R1\nSUBS $1, R0\nBNE pixel\nRET")
}

// nibbleNeon has whole sums in V0 to V3 and float ones in V4 to V7. R12 is where a group
// begins.
func nibbleNeon(_ dotTile, f *frame) string {
	before := f.arguments("MOVD", "a", "R1", "rows", "R2", "zeros", "R3", "groups", "R5", "step", "R7", "b", "R4", "ldb", "R8", "ldc", "R9", "c", "R6") +
		"MOVD (R2), R2\nADD R1, R2, R12\nMOVW (R3), R3\nSUBW $128, R3, R3\nVDUP R3, V24.S4\n" +
		f.arguments("MOVWU", "flip", "R0") + "EOR $0x80808080, R0, R0\nVDUP R0, V25.S4\nMOVD $0xf0f0f0f0, R0\nVDUP R0, V26.S4\n"
	start := "MOVD R12, R1\n" + f.arguments("MOVD", "k", "R0")
	product := "VLD1.P 64(R4), [V16.B16, V17.B16, V18.B16, V19.B16]\nVLD1R.P 4(R1), [V20.S4]\nVEOR V25.B16, V20.B16, V20.B16\n" +
		"VLD1R.P 4(R1), [V21.S4]\nVEOR V25.B16, V21.B16, V21.B16\n"
	finish, after := "VLD1.P 64(R4), "+registers(16, 4)+"\nVLD1.P 64(R4), "+registers(20, 4)+"\n", "VST1 "+registers(4, 4)+", (R6)\n"
	for v := range 4 {
		before += fmt.Sprintf("VEOR V%d.B16, V%[1]d.B16, V%[1]d.B16\n", 4+v)
		start += fmt.Sprintf("VEOR V%d.B16, V%[1]d.B16, V%[1]d.B16\n", v)
		product += fmt.Sprintf("VSHL $4, V%d.B16, V22.B16\nVAND V26.B16, V%[1]d.B16, V23.B16\nSDOT(%[2]d, 22, 20)\nSDOT(%[2]d, 23, 21)\n", 16+v, v)
		finish += fmt.Sprintf("MUL(%d, %[1]d, 24)\nVSUB V%[1]d.S4, V%[2]d.S4, V%[2]d.S4\nSCVTF(%[2]d, %[2]d)\nFMUL(%[2]d, %[2]d, %[3]d)\nFADD(%[4]d, %[4]d, %[2]d)\n",
			16+v, v, 20+v, 4+v)
	}
	return lines(before) + "\ngroup:\n" + lines(start) + "\nloop:\n" + lines(encoded(lines(product)), "SUBS $1, R0\nBNE loop") + "\n" +
		lines(encoded(lines(finish)), "ADD R7, R12\nSUBS $1, R5\nBNE group") + "\n" + lines(after, "RET")
}
