package main

import (
	"fmt"
	"strings"
)

// Loops over quantized elements for NEON. The least number is in V10, the largest element in V11, the zero point in V12.

var quantizedNeonSets = []set{
	{"quantized_arm64", "Loops over quantized elements.", neonQuantizedRoutines()},
}

// neonSign is the instructions for signed bytes or for others.
type neonSign struct{ name, low, high, narrow, least, most string }

var neonSigns = []neonSign{
	{"Int8", "SXTL8", "SXTL8_2", "SQXTN8", "SMIN8", "SMAX8"}, {"Uint8", "UXTL8", "UXTL8_2", "SQXTUN8", "UMIN8", "UMAX8"},
}

// bounds loads lo, hi and zero.
func (s neonSign) bounds(f *frame) string {
	return neonScalars(f, 10, "lo") + "FMOVS " + f.at("hi") + ", F11\nFCVTZSSW F11, R6\n" + f.arguments("MOVW", "zero", "R12") +
		"ADDW R12, R6, R6\nVDUP R6, V11.B16\nVDUP R12, V12.H8\n"
}

// bytes makes of the numbers in V0 and on, four registers or one, bytes in V0. Words saturate before the zero point is
// added and bytes behind that, so that hi has to bound the bytes alone. NaN becomes lo.
func (s neonSign) bytes(registers int) (text string) {
	for i := range registers {
		text += fmt.Sprintf("FMAXNM(%d, %[1]d, 10)\nFCVTNS(%[1]d, %[1]d)\n", i)
	}
	if registers == 1 {
		return text + "SQXTN16(0, 0)\nSQADD16(0, 0, 12)\n" + s.narrow + "(0, 0)\n" + s.least + "(0, 0, 11)\n"
	}
	return text + "SQXTN16(0, 0)\nSQXTN16_2(0, 1)\nSQXTN16(1, 2)\nSQXTN16_2(1, 3)\nSQADD16(0, 0, 12)\nSQADD16(1, 1, 12)\n" +
		s.narrow + "(0, 0)\n" + s.narrow + "_2(0, 1)\n" + s.least + "(0, 0, 11)\n"
}

// numbers makes numbers in registers from first on, four of them or one, of the bytes in register at: less the zero point in
// halves of register zero, times the scale in register scale.
func (s neonSign) numbers(registers, first, at, zero, scale int) (text string) {
	if registers == 4 {
		text = fmt.Sprintf("%s(%d, %d)\nSUB16(%[2]d, %[2]d, %[4]d)\nSXTL16(%[5]d, %[2]d)\nSXTL16_2(%[6]d, %[2]d)\n", s.high, first+3, at, zero, first+2, first+3)
	}
	text += fmt.Sprintf("%s(%d, %d)\nSUB16(%[2]d, %[2]d, %[4]d)\n", s.low, first, at, zero)
	if registers == 4 {
		text += fmt.Sprintf("SXTL16_2(%d, %d)\n", first+1, first)
	}
	text += fmt.Sprintf("SXTL16(%d, %[1]d)\n", first)
	for i := first; i < first+registers; i++ {
		text += fmt.Sprintf("SCVTF(%d, %[1]d)\nFMUL(%[1]d, %[1]d, %d)\n", i, scale)
	}
	return text
}

// neonScalars loads numbers to all lanes of registers from one on.
func neonScalars(f *frame, first int, names ...string) (text string) {
	for i, name := range names {
		text += fmt.Sprintf("MOVWU %s, R6\nVDUP R6, V%d.S4\n", f.at(name), first+i)
	}
	return text
}

// neonBlocks is a loop over blocks of four elements, counted by R0; body has four of them or one.
func neonBlocks(before string, body func(registers int) string) string {
	return lines(before) + "\nfour:\n" + lines("SUBS $4, R0\nBLT rest", encoded(lines(body(4))), "B four") + "\nrest:\n" +
		lines("ADDS $4, R0\nBEQ done") + "\none:\n" + lines(encoded(lines(body(1))), "SUBS $1, R0\nBNE one") + "\ndone:\n" + lines("RET")
}

// neonColumns is a loop over rows of n columns: next goes on to a row, block computes sixteen columns, store stores all of
// them and tail, the numbers of R0 bits 3 to 0, those that there are.
func neonColumns(before, row, block, store, tail, next string) string {
	return lines(before) + "\nrow:\n" + lines(row) + "\nloop:\n" + lines("SUBS $16, R0\nBLT rest", encoded(lines(block)), store, "B loop") +
		"\nrest:\n" + lines("ADDS $16, R0\nBEQ next", encoded(lines(block))) + tail + "\nnext:\n" + lines(next, "SUBS $1, R7\nBNE row\nRET")
}

// neonStoreBytes stores the first R0 bytes of V0, fewer than sixteen, to R1.
const neonStoreBytes = `TBZ $3, R0, four
VST1.P [V0.B8], 8(R1)
VEXT $8, V0.B16, V0.B16, V0.B16
four:
TBZ $2, R0, two
FMOVS.P F0, 4(R1)
VEXT $4, V0.B16, V0.B16, V0.B16
two:
TBZ $1, R0, one
VST1.P V0.H[0], 2(R1)
VEXT $2, V0.B16, V0.B16, V0.B16
one:
TBZ $0, R0, next
VST1 V0.B[0], (R1)
`

// neonStoreWords stores the first R0 words of V0 to V3, fewer than sixteen, to R1.
const neonStoreWords = `TBZ $3, R0, four
VST1.P [V0.S4, V1.S4], 32(R1)
VORR V2.B16, V2.B16, V0.B16
VORR V3.B16, V3.B16, V1.B16
four:
TBZ $2, R0, two
VST1.P [V0.S4], 16(R1)
VORR V1.B16, V1.B16, V0.B16
two:
TBZ $1, R0, one
VST1.P [V0.S2], 8(R1)
VEXT $8, V0.B16, V0.B16, V0.B16
one:
TBZ $0, R0, next
FMOVS F0, (R1)
`

func neonQuantizedRoutines() (list []routine) {
	add := func(signature string, write func(f *frame) string) {
		list = append(list, routine{signature, write(frameOf(signature))})
	}
	for _, s := range neonSigns {
		add("func requantize"+s.name+"(m, n int, dst *uint8, ldd int, src *int32, lds int, init *int32, scale *float32, lo, hi float32, zero int32)", s.requantize)
		add("func quantize"+s.name+"(n int, dst *uint8, src *float32, scale, lo, hi float32, zero int32)", s.quantize)
		add("func dequantize"+s.name+"(n int, dst *float32, src *uint8, zero int32, scale float32)", s.dequantize)
		add("func depthwise"+s.name+"(pixels int, a *uint8, step int, off *int, pairs int, w *int32, dst *uint8, ldd int, lo, hi float32, zero int32)", s.depthwise)
		add("func depthwiseNarrow"+s.name+"(pixels int, a *uint8, step int, off *int, pairs int, w *int32, dst *uint8, ldd int, lo, hi float32, zero int32)", s.depthwiseNarrow)
		add("func maximum"+s.name+"(pixels int, a *uint8, step int, off *int, taps int, dst *uint8, ldd int)", s.maximum)
		for _, op := range []string{"Add", "Sub", "Mul"} {
			add("func "+lower(op)+s.name+"(n int, dst, a, b *uint8, q *binaryParams)", func(f *frame) string { return s.binary(f, op) })
		}
	}
	add("func scaleSumsRows(m, n int, dst *float32, ldd int, src *int32, lds int, sums *int32, scale, bias *float32, "+
		"zeros *int32, factors *float32, lo, hi float32, mask *int32)", neonScaleRows(true))
	add("func scaleFloatsRows(m, n int, dst *float32, ldd int, src *float32, lds int, sums, scale, bias *float32, "+
		"zeros *int32, factors *float32, lo, hi float32, mask *int32)", neonScaleRows(false))
	add("func lookupLanes(n int, dst, src, table *uint8)", neonLookup)
	return list
}

// load and store have four registers or one behind each other.
func load(pointer string, first, n int) string {
	return fmt.Sprintf("VLD1.P %d(%s), %s\n", 16*n, pointer, registers(first, n))
}

func (s neonSign) quantize(f *frame) string {
	return neonBlocks(f.arguments("MOVD", "n", "R0", "dst", "R1", "src", "R2")+neonScalars(f, 9, "scale")+s.bounds(f), func(n int) string {
		text := load("R2", 0, n)
		for i := range n {
			text += fmt.Sprintf("FMUL(%d, %[1]d, 9)\n", i)
		}
		return text + s.bytes(n) + neonStore(n)
	})
}

// neonStore stores the bytes of four registers of numbers or of one.
func neonStore(n int) string {
	if n == 1 {
		return "FMOVS.P F0, 4(R1)\n"
	}
	return "VST1.P [V0.B16], 16(R1)\n"
}

func (s neonSign) dequantize(f *frame) string {
	before := f.arguments("MOVD", "n", "R0", "dst", "R1", "src", "R2") + f.arguments("MOVW", "zero", "R6") + "VDUP R6, V8.H8\n" + neonScalars(f, 9, "scale")
	return neonBlocks(before, func(n int) string {
		bytes := "VLD1.P 16(R2), [V0.B16]\n"
		if n == 1 {
			bytes = load4Bytes
		}
		return bytes + s.numbers(n, 0, 0, 8, 9) + fmt.Sprintf("VST1.P %s, %d(R1)\n", registers(0, n), 16*n)
	})
}

// requantize goes over m rows of n columns.
func (s neonSign) requantize(f *frame) string {
	block := load("R2", 0, 4) + load("R3", 4, 4) + load("R4", 16, 4)
	for i := range 4 {
		block += fmt.Sprintf("VADD V%d.S4, V%d.S4, V%[2]d.S4\nSCVTF(%[2]d, %[2]d)\nFMUL(%[2]d, %[2]d, %[3]d)\n", 4+i, i, 16+i)
	}
	return neonColumns(f.arguments("MOVD", "m", "R7", "dst", "R8", "ldd", "R9", "src", "R10", "lds", "R11")+s.bounds(f),
		"MOVD R8, R1\nMOVD R10, R2\n"+f.arguments("MOVD", "n", "R0", "init", "R3", "scale", "R4"),
		block+s.bytes(4), "VST1.P [V0.B16], 16(R1)", neonStoreBytes, "ADD R9, R8\nADD R11, R10")
}

// neonScaleRows is the loop of simd.ScaleSums, or of floats. Rows' factors are in V8, their zeros in V9.
func neonScaleRows(whole bool) func(f *frame) string {
	return func(f *frame) string {
		before := f.arguments("MOVD", "m", "R7", "dst", "R8", "ldd", "R9", "src", "R10", "lds", "R11", "zeros", "R14", "factors", "R13",
			"mask", "R12") + neonScalars(f, 10, "lo", "hi")
		row := "MOVD R8, R1\nMOVD R10, R2\nVLD1R.P 4(R13), [V8.S4]\nVLD1R.P 4(R14), [V9.S4]\n" +
			f.arguments("MOVD", "n", "R0", "sums", "R5", "scale", "R3", "bias", "R4")
		block := load("R2", 0, 4) + load("R3", 16, 4) + load("R4", 20, 4) + load("R5", 4, 4)
		number := "MLS(%[1]d, %[4]d, 9)\nSCVTF(%[1]d, %[1]d)\n"
		if !whole {
			row += encoded(lines("SCVTF(9, 9)"))
			number = "FMUL(%[4]d, %[4]d, 9)\nFSUB(%[1]d, %[1]d, %[4]d)\n"
		}
		for i := range 4 {
			block += fmt.Sprintf(number+"FMUL(%[1]d, %[1]d, 8)\nFMUL(%[1]d, %[1]d, %[2]d)\nFADD(%[1]d, %[1]d, %[3]d)\nFMAX(%[1]d, %[1]d, 10)\nFMIN(%[1]d, %[1]d, 11)\n",
				i, 16+i, 20+i, 4+i)
		}
		return neonColumns(before, row, block, "VST1.P "+registers(0, 4)+", 64(R1)", neonStoreWords, "ADD R9, R8\nADD R11, R10")
	}
}

// binary has n blocks of sixteen elements; the fields of binaryParams lie in V4 to V9, V13 and V10 to V12.
func (s neonSign) binary(f *frame, op string) string {
	before := f.arguments("MOVD", "n", "R0", "dst", "R1", "a", "R2", "b", "R3", "q", "R4")
	for i, to := range []string{"V4.H8", "V5.S4", "V6.H8", "V7.S4", "V8.S4", "V9.S4", "V13.S4", "V10.S4"} {
		before += fmt.Sprintf("MOVWU %d(R4), R6\nVDUP R6, %s\n", 4*i, to)
	}
	before += "FMOVS 32(R4), F11\nFCVTZSSW F11, R6\nMOVW 36(R4), R12\nADDW R12, R6, R6\nVDUP R6, V11.B16\nVDUP R12, V12.H8\n"
	body := "VLD1.P 16(R2), [V0.B16]\nVLD1.P 16(R3), [V16.B16]\n" + s.numbers(4, 0, 0, 4, 5) + s.numbers(4, 16, 16, 6, 7)
	for i := range 4 {
		body += fmt.Sprintf("F%s(%d, %[2]d, %d)\nFMAX(%[2]d, %[2]d, 8)\nFMIN(%[2]d, %[2]d, 9)\nFDIV(%[2]d, %[2]d, 13)\n", strings.ToUpper(op), i, 16+i)
	}
	return lines(before) + "\nloop:\n" + lines(encoded(lines(body+s.bytes(4))), neonStore(4), "SUBS $1, R0\nBNE loop\nRET")
}

// depthwise sums taps for 16 channels in V0 to V3. The weights of a pair of taps are in V4 to V7.
func (s neonSign) depthwise(f *frame) string {
	tap := func(w int) string {
		return fmt.Sprintf("MOVD.P 8(R9), R10\nLDRQ(16, 2, 10)\n%s(17, 16)\n%s(18, 16)\nSMLAL(0, 17, %d)\nSMLAL2(1, 17, %[3]d)\nSMLAL(2, 18, %[4]d)\nSMLAL2(3, 18, %[4]d)\n",
			s.low, s.high, w, w+1)
	}
	finish := load("R8", 16, 4)
	for i := range 4 {
		finish += fmt.Sprintf("SCVTF(%d, %[1]d)\nFMUL(%[1]d, %[1]d, %d)\n", i, 16+i)
	}
	return lines(f.arguments("MOVD", "pixels", "R0", "a", "R2", "step", "R3", "w", "R5", "dst", "R1", "ldd", "R7")+s.bounds(f)) +
		"\npixel:\n" + lines("MOVD R5, R8", f.arguments("MOVD", "off", "R9", "pairs", "R11"), "VLD1.P 64(R8), "+registers(0, 4)) + "\npair:\n" +
		lines(encoded(lines("VLD1.P 64(R8), [V4.H8, V5.H8, V6.H8, V7.H8]", tap(4), tap(6))), "SUBS $1, R11\nBNE pair") + "\n" +
		lines(encoded(lines(finish+s.bytes(4)+"VST1 [V0.B16], (R1)")), "ADD R3, R2\nADD R7, R1\nSUBS $1, R0\nBNE pixel\nRET")
}

// depthwiseNarrow is depthwise of weights of 8 bits, those of a pair of taps in V24 and V25, for two pixels at a time.
func (s neonSign) depthwiseNarrow(f *frame) string {
	return lines(f.arguments("MOVD", "pixels", "R0", "a", "R2", "step", "R3", "w", "R5", "dst", "R1", "ldd", "R7")+s.bounds(f)) +
		"\npixels:\n" + lines("SUBS $2, R0\nBLT rest\nADD R3, R2, R4\nADD R7, R1, R6") + s.narrowPixels(f, 2, "pairs") +
		lines("ADD R3<<1, R2, R2\nADD R7<<1, R1, R1\nB pixels") + "\nrest:\n" + lines("ADDS $2, R0\nBEQ done") + s.narrowPixels(f, 1, "pair") +
		"\ndone:\n" + lines("RET")
}

// narrowPixels has the sums of pixel i in V(4i) and on, its elements in V(16+4i) and on. It begins at R2 or R4, and at R1 or R6.
func (s neonSign) narrowPixels(f *frame, pixels int, label string) string {
	begin := "MOVD R5, R8\n" + f.arguments("MOVD", "off", "R9", "pairs", "R11") + load("R8", 0, 4)
	product, finish := "VLD1.P 32(R8), [V24.B16, V25.B16]\nMOVD.P 8(R9), R10\nMOVD.P 8(R9), R12\n", load("R8", 16, 4)
	if s.name == "Uint8" {
		product += "SXTL8(26, 24)\nSXTL8_2(27, 24)\nSXTL8(28, 25)\nSXTL8_2(29, 25)\n"
	}
	for i := range pixels {
		sum, element := 4*i, 16+4*i
		if i > 0 {
			for v := range 4 {
				begin += moved(fmt.Sprint(v), fmt.Sprint(sum+v))
			}
		}
		product += fmt.Sprintf("LDRQ(%d, %d, 10)\nLDRQ(%d, %[2]d, 12)\n", element, 2+2*i, element+1) + s.narrowProducts(sum, element)
		for v := range 4 {
			finish += fmt.Sprintf("SCVTF(%d, %[1]d)\nFMUL(%[1]d, %[1]d, %d)\n", sum+v, 16+v)
		}
		finish += copies{1, map[int]int{0: sum, 1: sum + 1, 2: sum + 2, 3: sum + 3}}.body(lines(s.bytes(4))) +
			fmt.Sprintf("VST1 [V%d.B16], (R%d)\n", sum, 1+5*i)
	}
	return lines(begin) + "\n" + label + ":\n" + lines(encoded(lines(product)), "SUBS $1, R11\nBNE "+label) + "\n" + lines(encoded(lines(finish)))
}

// narrowProducts adds those of two taps. Of signed bytes they fit in 16 bits, as no weight is -128.
func (s neonSign) narrowProducts(sum, element int) (text string) {
	if s.name == "Int8" {
		return fmt.Sprintf("SMULL(%[2]d, %[1]d, 24)\nSMULL2(%[3]d, %[1]d, 24)\nSMLAL8(%[2]d, %[4]d, 25)\nSMLAL8_2(%[3]d, %[4]d, 25)\n",
			element, element+2, element+3, element+1) +
			fmt.Sprintf("SADDW(%d, %[1]d, %[5]d)\nSADDW2(%[2]d, %[2]d, %[5]d)\nSADDW(%[3]d, %[3]d, %[6]d)\nSADDW2(%[4]d, %[4]d, %[6]d)\n",
				sum, sum+1, sum+2, sum+3, element+2, element+3)
	}
	for tap := range 2 {
		text += fmt.Sprintf("UXTL8(%d, %d)\nUXTL8_2(%d, %[2]d)\nSMLAL(%[4]d, %[1]d, %[5]d)\nSMLAL2(%[6]d, %[1]d, %[5]d)\nSMLAL(%[7]d, %[3]d, %[8]d)\nSMLAL2(%[9]d, %[3]d, %[8]d)\n",
			element+2, element+tap, element+3, sum, 26+2*tap, sum+1, sum+2, 27+2*tap, sum+3)
	}
	return text
}

// maximum has the largest of 16 channels of every pixel's taps.
func (s neonSign) maximum(f *frame) string {
	return lines(f.arguments("MOVD", "pixels", "R0", "a", "R2", "step", "R3", "off", "R5", "taps", "R6", "dst", "R1", "ldd", "R7")) +
		"\npixel:\n" + lines(encoded("MOVD R5, R9\nMOVD.P 8(R9), R10\nLDRQ(0, 2, 10)\nSUBS $1, R6, R11\nBEQ store")) +
		"\ntap:\n" + lines(encoded("MOVD.P 8(R9), R10\nLDRQ(1, 2, 10)\n"+s.most+"(0, 0, 1)\nSUBS $1, R11\nBNE tap")) +
		"\nstore:\n" + lines("VST1 [V0.B16], (R1)\nADD R3, R2\nADD R7, R1\nSUBS $1, R0\nBNE pixel\nRET")
}

// neonLookup has n blocks of sixteen elements. The table is in V16 to V31, 64 bytes of it in four registers: an index beyond
// them leaves the element as it is.
func neonLookup(f *frame) string {
	before := f.arguments("MOVD", "n", "R0", "dst", "R1", "src", "R2", "table", "R3") + "MOVW $64, R6\nVDUP R6, V2.B16\n"
	body := "VLD1.P 16(R2), [V0.B16]\nTBL4(1, 16, 0)\n"
	for i := range 4 {
		before += load("R3", 16+4*i, 4)
		if i > 0 {
			body += fmt.Sprintf("VSUB V2.B16, V0.B16, V0.B16\nTBX4(1, %d, 0)\n", 16+4*i)
		}
	}
	return lines(before) + "\nloop:\n" + lines(encoded(lines(body)), "VST1.P [V1.B16], 16(R1)\nSUBS $1, R0\nBNE loop\nRET")
}
