package main

import "fmt"

// Windows that slide over rows, for NEON, of eight lanes in two registers. A block is four registers of columns, V0 to V3: each
// is loaded from columns that the row has, and moved in the register behind the last row, see slideBlock. V4 and V5 are the
// windows, V8 to V23 select their columns, V28 is what lies outside and V29 the numbers of bytes.

var slideNeonSets = []set{{"slide_arm64", "Windows that slide over rows, for NEON.", []routine{neonSlide("sum"), neonSlide("max")}}}

// slideMoves is the offset of the field of slideBlock with the bytes that each register is moved by.
const slideMoves = 32

// neonSlide goes over planes, their rows and blocks: R1 and R2 are rows of y and x, R14 is the block.
func neonSlide(op string) routine {
	more, outside := "", cleared(28)
	if op == "sum" {
		more = ", scale *float32"
	} else {
		outside = "MOVD $0xff800000, R6\nVDUP R6, V28.S4\n"
	}
	signature := slideSignature(op, "8", more)
	f := frameOf(signature)
	return routine{signature, lines(neonSlideSetup(f), outside) +
		"\nplane:\n" + lines(f.arguments("MOVD", "y", "R1", "x", "R2", "rows", "R3")) +
		"\nrow:\n" + lines(f.arguments("MOVD", "block", "R14", "blocks", "R15")) +
		"\nblock:\n" + neonSlideTaps(op) + neonSlideMoves() + neonSlideColumns(op) + neonSlideStore(f, op) +
		"\nnext:\n" + lines(fmt.Sprintf("ADD $%d, R14\nSUBS $1, R15\nBNE block", slideBlockSize),
		f.arguments("MOVD", "ys", "R6", "xs", "R7"), "ADD R6, R1\nADD R7, R2\nSUBS $1, R3\nBNE row",
		neonAdvance(f, "y", "yp"), neonAdvance(f, "x", "xp"),
		f.arguments("MOVD", "planes", "R6"), "SUBS $1, R6\nMOVD R6, "+f.at("planes"), "BNE plane\nRET")}
}

// neonAdvance adds an argument to another one.
func neonAdvance(f *frame, to, by string) string {
	return f.arguments("MOVD", to, "R6", by, "R7") + "ADD R7, R6\nMOVD R6, " + f.at(to) + "\n"
}

// neonSlideSetup loads arguments: R4 are the offsets of R5 taps, R12 the columns of a window, R13 the distance of the second
// half of a block, R16 that of its results.
func neonSlideSetup(f *frame) string {
	text := f.arguments("MOVD", "off", "R4", "taps", "R5", "kernel", "R12", "second", "R13", "split", "R16", "index", "R6") +
		"VLD1 (R6), [V8.S4, V9.S4]\nMOVD $0x03020100, R6\nVDUP R6, V6.S4\nMOVD $0x04040404, R6\nVDUP R6, V7.S4\n" +
		"MOVD $0x0706050403020100, R6\nMOVD $0x0f0e0d0c0b0a0908, R7\nVMOV R6, V29.D[0]\nVMOV R7, V29.D[1]\n"
	for half := 8; half < 10; half++ {
		text += fmt.Sprintf("MUL(%d, %[1]d, 7)\nVADD V%[1]d.B16, V6.B16, V%[1]d.B16\n", half)
	}
	for v := 10; v < 8+2*slideColumns; v++ {
		text += fmt.Sprintf("VADD V%d.B16, V7.B16, V%d.B16\n", v-2, v)
	}
	return encoded(lines(text))
}

// neonSlideTaps combines the rows of a block in V0 to V3. R20 to R23 are where their first elements lie for a tap at offset 0.
func neonSlideTaps(op string) string {
	first, each := "", ""
	address := fmt.Sprintf("MOVD %d(R14), R6\nADD R6<<2, R2, R20\n", slideFrom) + "ADD $16, R20, R21\nADD R13, R20, R22\nADD $16, R22, R23\n"
	for v := range 4 {
		address += fmt.Sprintf("MOVB %d(R14), R6\nSUB R6, R%d\n", slideMoves+v, 20+v)
		first += fmt.Sprintf("LDRQ(%d, %d, 6)\n", v, 20+v)
		each += fmt.Sprintf("LDRQ(%d, %d, 6)\n", 24+v, 20+v)
	}
	for v := range 4 {
		each += neonSlideCombine(op, 24+v, v)
	}
	const offset = "MOVD.P 8(R7), R6\nLSL $2, R6, R6\n"
	return encoded(lines(address, "MOVD R4, R7\nSUBS $1, R5, R8", offset, first, "BEQ move")) +
		"\ntap:\n" + encoded(lines(offset, each, "SUBS $1, R8\nBNE tap"))
}

// neonSlideCombine makes a register the sum or the maximum of itself and x; NaN stays.
func neonSlideCombine(op string, x, best int) string {
	if op == "sum" {
		return fmt.Sprintf("FADD(%d, %[1]d, %d)\n", best, x)
	}
	return fmt.Sprintf("FMAX(%d, %[1]d, %d)\n", best, x)
}

// neonSlideMoves moves columns to their lanes: what lies outside stays in the others.
func neonSlideMoves() string {
	text := fmt.Sprintf("MOVWU %d(R14), R6\nCBZ R6, columns\nADD $%[1]d, R14, R7\n", slideMoves)
	for v := range 4 {
		text += "VLD1R.P 1(R7), [V24.B16]\nVADD V29.B16, V24.B16, V24.B16\n" + moved("28", "25") +
			fmt.Sprintf("TBX1(25, %d, 24)\n", v) + moved("25", fmt.Sprint(v))
	}
	return "\nmove:\n" + encoded(lines(text))
}

// neonSlideColumns combines the columns of each window.
func neonSlideColumns(op string) string {
	text := "TBL4(4, 0, 8)\nTBL4(5, 0, 9)\n"
	for b := 1; b < slideColumns; b++ {
		text += fmt.Sprintf("CMP $%d, R12\nBLE store\nTBL4(24, 0, %d)\nTBL4(25, 0, %d)\n", b, 8+2*b, 9+2*b) +
			neonSlideCombine(op, 24, 4) + neonSlideCombine(op, 25, 5)
	}
	return "\ncolumns:\n" + encoded(lines(text))
}

// neonSlideStore stores eight windows, or fewer, in R9, and as many of the second plane.
func neonSlideStore(f *frame, op string) string {
	address, eight := fmt.Sprintf("MOVD %d(R14), R6\nADD R6<<2, R1, R7\n", slideAt), ""
	again := ""
	if op == "sum" {
		again = f.arguments("MOVD", "scale", "R17")
		address += again + "ADD R6<<2, R17, R17\n"
		eight = "VLD1 (R17), [V24.S4, V25.S4]\nFMUL(4, 4, 24)\nFMUL(5, 5, 25)\n"
	}
	return "\nstore:\n" + encoded(lines(address, "MOVWU 8(R14), R9\nCMP $255, R9\nBNE part", eight, "VST1 [V4.S4, V5.S4], (R7)\nB next")) +
		"\npart:\n" + encoded(lines("CLZ R9, R9\nMOVD $64, R6\nSUB R9, R6, R9")) + neonSlidePart(op, "first") +
		lines("CMP $0, R16\nBLT next\nADD R16, R7", again, moved("5", "4")) + neonSlidePart(op, "second")
}

// neonSlidePart stores fewer than eight windows, R9, those of V4 and V5, at R7.
func neonSlidePart(op, label string) string {
	piece := func(bit, size, lanes int, next string) string {
		scale, result := "", 4
		if op == "sum" {
			scale, result = fmt.Sprintf("VLD1.P %d(R17), [V24.S%d]\nFMUL(24, 4, 24)\n", size, lanes), 24
		}
		return fmt.Sprintf("TBZ $%d, R9, %s%d\n", bit, label, bit) + scale + fmt.Sprintf("VST1.P [V%d.S%d], %d(R7)\n", result, lanes, size) + next
	}
	one := "FMOVS.P F4, 4(R7)\n"
	if op == "sum" {
		one = "FMOVS (R17), F24\nFMULS F24, F4, F4\n" + one
	}
	return encoded(lines(piece(2, 16, 4, moved("5", "4")))) + "\n" + label + "2:\n" +
		encoded(lines(piece(1, 8, 2, "VEXT $8, V4.B16, V4.B16, V4.B16\n"))) + "\n" + label + "1:\n" +
		lines(fmt.Sprintf("TBZ $0, R9, %s0", label), one) + "\n" + label + "0:\n"
}
