package main

import "fmt"

// Tiles of products of 8-bit elements and of 4-bit weights for NEON's products of matrices: SMMLA adds the product of two rows
// of eight elements, and of two columns of eight, to four sums. A panel has two columns of eight rows in each register, and
// what remains of a segment's rows, up to four, as other panels have it.

var matrixSets = []set{{"matrices_arm64", "Tiles of products of 8-bit elements, and with 4-bit weights, for NEON's products of matrices.",
	append(neonDotTiles("smmla", smmlaTile, dotTile{4, 1}, dotTile{3, 1}, dotTile{2, 1}, dotTile{1, 1}),
		nibbleTiles("smmlaNibble", nibbleParams, smmlaNibble, dotTile{2, 1}, dotTile{1, 1})...)}}

// rowPair loads the next 8 elements, or the next 4 of each 8, of rows r and r+1 to a register. A last row without another
// one is both.
func rowPair(r, rows, first, bytes, to int) string {
	switch {
	case r+1 < rows && bytes == 8:
		return fmt.Sprintf("FMOVD.P 8(R%d), F%[3]d\nVLD1.P 8(R%[2]d), V%[3]d.D[1]\n", first+r, first+r+1, to)
	case r+1 < rows:
		return fmt.Sprintf("FMOVS.P 4(R%d), F%[3]d\nVLD1.P 4(R%[2]d), V%[3]d.S[2]\n", first+r, first+r+1, to)
	case bytes == 8:
		return fmt.Sprintf("VLD1R.P 8(R%d), [V%d.D2]\n", first+r, to)
	}
	return fmt.Sprintf("FMOVS.P 4(R%d), F%d\n", first+r, to)
}

// rowPairs loads those of all rows to V24 and on, and flips the bytes by V30.
func rowPairs(rows, bytes int, flip bool) (text string) {
	for r := 0; r < rows; r += 2 {
		if text += rowPair(r, rows, 8, bytes, 24+r/2); flip {
			text += fmt.Sprintf("VEOR V30.B16, V%d.B16, V%[1]d.B16\n", 24+r/2)
		}
	}
	return text
}

// smmlaTile has eight registers of sums for two rows, each of two columns, from V0 on, and weights in V16 to V23.
func smmlaTile(d dotTile, f *frame) string {
	pairs := (d.rows + 1) / 2
	start, segment, last := load("R4", 16, 4), "MOVD.P 8(R3), R12\nADD R1, R12, R12\n"+f.arguments("MOVD", "k", "R0"), ""
	for r := range d.rows {
		segment += fmt.Sprintf("MOVD %d(R2), R%d\nADD R12, R%[2]d, R%[2]d\n", 8*r, 8+r)
	}
	for v := range 4 {
		for p := range pairs {
			start += fmt.Sprintf("VDUP V%[1]d.D[0], V%[2]d.D2\nVDUP V%[1]d.D[1], V%[3]d.D2\n", 16+v, 8*p+2*v, 8*p+2*v+1)
		}
		// the products of other elements than those of the group are of 0
		last += fmt.Sprintf("VZIP1 V31.S4, V%d.S4, V20.S4\nVZIP2 V31.S4, V%[1]d.S4, V21.S4\n", 16+v)
		for p := range pairs {
			last += fmt.Sprintf("SMMLA(%d, %d, 20)\nSMMLA(%d, %[2]d, 21)\n", 8*p+2*v, 24+p, 8*p+2*v+1)
		}
	}
	eight := load("R4", 16, 4) + load("R4", 20, 4)
	for v := range 8 {
		for p := range pairs {
			eight += fmt.Sprintf("SMMLA(%d, %d, %d)\n", 8*p+v, 24+p, 16+v)
		}
	}
	return lines(f.arguments("MOVD", "tiles", "R13", "a", "R1", "rows", "R2", "ldb", "R14", "c", "R6", "ldc", "R7"),
		f.arguments("MOVWU", "flip", "R15"), "EOR $0x80808080, R15, R15\nVDUP R15, V30.S4\n", cleared(31)) +
		"\ntile:\n" + lines(f.arguments("MOVD", "off", "R3", "t", "R5", "b", "R4"), start) +
		"\nsegment:\n" + lines(segment, "SUBS $2, R0\nBLT rest\nCBZ R15, same") +
		"\neight:\n" + lines(rowPairs(d.rows, 8, true), encoded(lines(eight)), "SUBS $2, R0\nBGE eight\nB rest") +
		"\nsame:\n" + lines(rowPairs(d.rows, 8, false), encoded(lines(eight)), "SUBS $2, R0\nBGE same") +
		"\nrest:\n" + lines("ADDS $2, R0\nBEQ next", load("R4", 16, 4), rowPairs(d.rows, 4, true), encoded(lines(last))) +
		"\nnext:\n" + lines("SUBS $1, R5\nBNE segment") + "\n" +
		lines(smmlaStore(d.rows), fmt.Sprintf("ADD $%d, R2", 8*d.rows), "SUBS $1, R13", "BNE tile", "RET")
}

// smmlaStore stores sums row by row.
func smmlaStore(rows int) (text string) {
	for r := range rows {
		for v := range 4 {
			text += fmt.Sprintf("VZIP%d V%d.D2, V%d.D2, V%d.D2\n", 1+r%2, r/2*8+2*v+1, r/2*8+2*v, 16+v)
		}
		text += "VST1 " + registers(16, 4) + ", (R6)\nADD R7, R6\n"
	}
	return text
}

// smmlaNibble has the sums of one or two rows in V0 to V7. Lower halves of bytes are two columns of eight rows, and upper ones
// the next two.
func smmlaNibble(d dotTile, f *frame) string {
	start, rows, product := "", "", load("R4", 16, 4)+rowPair(0, d.rows, 10, 8, 24)+"VEOR V29.B16, V24.B16, V24.B16\n"
	for v := range 4 {
		start += cleared(2*v) + cleared(2*v+1)
		product += fmt.Sprintf("VSHL $4, V%d.B16, V20.B16\nVAND V28.B16, V%[1]d.B16, V21.B16\nSMMLA(%[2]d, 24, 20)\nSMMLA(%[3]d, 24, 21)\n",
			16+v, 2*v, 2*v+1)
		rows += fmt.Sprintf("VZIP2 V%[1]d.D2, V%[2]d.D2, V%[3]d.D2\nVZIP1 V%[1]d.D2, V%[2]d.D2, V%[4]d.D2\n", 2*v+1, 2*v, 16+v, v)
	}
	for v := range 4 * (d.rows - 1) {
		rows += moved(fmt.Sprint(16+v), fmt.Sprint(4+v))
	}
	return neonGroups(d, f, "MOVD $0xf0f0f0f0, R0\nVDUP R0, V28.S4\n", start, product, scaled(d.rows), rows)
}
