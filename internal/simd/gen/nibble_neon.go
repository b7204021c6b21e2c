package main

import "fmt"

// Tiles of products with 4-bit weights for NEON, see nibble.go.

var nibbleNeonSets = []set{{"nibble_arm64", "Tiles of products with 4-bit weights for NEON, with its dot products and without.",
	append(nibbleTiles("nibble", nibbleParams, nibbleNeon, dotTile{2, 1}, dotTile{1, 1}), nibbleTiles("smullNibble", nibbleParams, smullNibble, dotTile{1, 1})...)}}

// neonGroups wraps the loop over the rows of groups: R8 and on point to where rows of a begin in the next group, R10 and on to
// their next elements. What signed bytes are flipped by is in V29.
func neonGroups(d dotTile, f *frame, before, start, product, finish, after string) string {
	arguments := f.arguments("MOVD", "a", "R1", "rows", "R2", "groups", "R5", "step", "R7", "b", "R4", "c", "R6", "ldc", "R13") +
		f.arguments("MOVWU", "flip", "R0") + "EOR $0x80808080, R0, R0\nVDUP R0, V29.S4\n"
	first, next, end := "", "", ""
	for r := range d.rows {
		arguments += fmt.Sprintf("MOVD.P 8(R2), R%d\nADD R1, R%[1]d, R%[1]d\n", 8+r)
		first += fmt.Sprintf("MOVD R%d, R%d\n", 8+r, 10+r)
		next += fmt.Sprintf("ADD R7, R%d\n", 8+r)
		if r > 0 {
			end += "ADD R13, R6\n"
		}
		end += "VST1 " + registers(8+4*r, 4) + ", (R6)\n"
	}
	for i := range 4 * d.rows {
		arguments += cleared(8 + i)
	}
	return lines(arguments, before) + "\ngroup:\n" + lines(first, f.arguments("MOVD", "k", "R0"), start) + "\nloop:\n" +
		lines(encoded(lines(product)), "SUBS $1, R0\nBNE loop") + "\n" + lines(encoded(lines(after)), encoded(lines(finish)), next, "SUBS $1, R5\nBNE group") +
		"\n" + lines(end, "RET")
}

// cleared makes a register 0.
func cleared(v int) string { return fmt.Sprintf("VEOR V%d.B16, V%[1]d.B16, V%[1]d.B16\n", v) }

// scaled adds a group's scaled sums, in V0 and on, to the float ones in V8 and on.
func scaled(rows int) string {
	text := load("R4", 16, 2)
	for v := range 2 {
		text += fmt.Sprintf("SHLL16(%d, %d)\nSHLL16_2(%d, %[2]d)\n", 20+2*v, 16+v, 21+2*v)
	}
	for i := range 4 * rows {
		text += fmt.Sprintf("SCVTF(%d, %[1]d)\nFMUL(%[1]d, %[1]d, %[2]d)\nFADD(%[3]d, %[3]d, %[1]d)\n", i, 20+i%4, 8+i)
	}
	return text
}

// nibbleNeon multiplies lanes of a row's next eight elements, in V24 and on.
func nibbleNeon(d dotTile, f *frame) string {
	start, product := "", "VLD1.P 64(R4), [V16.B16, V17.B16, V18.B16, V19.B16]\n"
	for r := range d.rows {
		product += fmt.Sprintf("FMOVD.P 8(R%d), F%d\nVEOR V29.B16, V%[2]d.B16, V%[2]d.B16\n", 10+r, 24+r)
	}
	for v := range 4 {
		product += fmt.Sprintf("VSHL $4, V%d.B16, V20.B16\nVAND V28.B16, V%[1]d.B16, V21.B16\n", 16+v)
		for r := range d.rows {
			start += cleared(4*r + v)
			product += fmt.Sprintf("SDOT0(%d, 20, %d)\nSDOT1(%[1]d, 21, %[2]d)\n", 4*r+v, 24+r)
		}
	}
	return neonGroups(d, f, "MOVD $0xf0f0f0f0, R0\nVDUP R0, V28.S4\n", start, product, scaled(d.rows), "")
}

// smullNibble sums products of two columns in eight words of 16 bits, in V16 to V23, fifteen times two at most, which fit, and
// those sums in V0 to V7. R12 counts the rows that remain.
func smullNibble(_ dotTile, f *frame) string {
	start, clear, added, pairs := "MOVD R0, R12\n", "", "", ""
	product := "VLD1.P 64(R4), [V12.B16, V13.B16, V14.B16, V15.B16]\nVLD1R.P 4(R10), [V24.S4]\nVEOR V29.B16, V24.B16, V24.B16\n" +
		"VLD1R.P 4(R10), [V25.S4]\nVEOR V29.B16, V25.B16, V25.B16\n"
	for i := range 8 {
		start += cleared(i)
		clear += cleared(16 + i)
		added += fmt.Sprintf("SADALP(%d, %d)\n", i, 16+i)
	}
	for v := range 4 {
		product += fmt.Sprintf("VSHL $4, V%d.B16, V27.B16\nSSHR4_8(27, 27)\nSSHR4_8(28, %[1]d)\nSMLAL8(%[2]d, 27, 24)\nSMLAL8_2(%[3]d, 27, 24)\n"+
			"SMLAL8(%[2]d, 28, 25)\nSMLAL8_2(%[3]d, 28, 25)\n", 12+v, 16+2*v, 17+2*v)
		pairs += fmt.Sprintf("ADDP(%d, %d, %d)\nVSHL $4, V%[1]d.S4, V%[1]d.S4\n", v, 2*v, 2*v+1)
	}
	return neonGroups(dotTile{1, 1}, f, "", start+"chunk:\nMOVD $15, R0\nCMP R0, R12\nCSEL LT, R12, R0, R0\nSUB R0, R12\n"+clear, product, scaled(1),
		added+"CBNZ R12, chunk\n"+pairs)
}
