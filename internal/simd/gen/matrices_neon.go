package main

import "fmt"

// Tiles of products of 8-bit elements and of 4-bit weights for NEON's products of matrices: SMMLA adds the product of two rows
// of eight elements, and of two columns of eight, to four sums. A panel has two columns of eight rows in each register, and
// what remains of a segment's rows, up to four, as other panels have it.

var matrixSets = []set{{"matrices_arm64", "Tiles of products of 8-bit elements, and with 4-bit weights, for NEON's products of matrices.",
	append(neonDotTiles("smmla", smmlaTile, dotTile{4, 1}, dotTile{3, 1}, dotTile{2, 1}, dotTile{1, 1}),
		nibbleTiles("smmlaNibble", nibbleParams, smmlaNibble, dotTile{4, 1}, dotTile{2, 1}, dotTile{1, 1})...)}}

// rowPairs loads the next 8 elements, or the next 4 of each 8, of two rows at a time to V24 and on, and flips the bytes by V30. A
// last row without another one is both.
func rowPairs(rows, bytes int, flip bool) (text string) {
	for r := 0; r < rows; r += 2 {
		a, b, to := 8+r, 9+r, 24+r/2
		switch {
		case r+1 < rows && bytes == 8:
			text += fmt.Sprintf("FMOVD.P 8(R%d), F%d\nVLD1.P 8(R%d), V%[2]d.D[1]\n", a, to, b)
		case r+1 < rows:
			text += fmt.Sprintf("FMOVS.P 4(R%d), F%d\nVLD1.P 4(R%d), V%[2]d.S[2]\n", a, to, b)
		case bytes == 8:
			text += fmt.Sprintf("VLD1R.P 8(R%d), [V%d.D2]\n", a, to)
		default:
			text += fmt.Sprintf("FMOVS.P 4(R%d), F%d\n", a, to)
		}
		if flip {
			text += fmt.Sprintf("VEOR V30.B16, V%d.B16, V%[1]d.B16\n", to)
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

// smmlaNibble has eight registers of sums for two rows, each of two columns, from V0 on. Lower halves of bytes are two columns of
// eight rows, and upper ones the next two.
func smmlaNibble(d dotTile, f *frame) string {
	start, rows, product := "", "", load("R4", 16, 4)+activations(d.rows)
	for v := range 4 {
		product += fmt.Sprintf("VSHL $4, V%d.B16, V20.B16\nVAND V28.B16, V%[1]d.B16, V21.B16\n", 16+v)
		for p := range (d.rows + 1) / 2 {
			acc := 8*p + 2*v
			start += cleared(acc) + cleared(acc+1)
			product += fmt.Sprintf("SMMLA(%d, %d, 20)\nSMMLA(%d, %[2]d, 21)\n", acc, 24+p, acc+1)
			// the first row's sums to the first register, and the second one's to the other
			rows += fmt.Sprintf("VZIP2 V%[1]d.D2, V%[2]d.D2, V16.D2\nVZIP1 V%[1]d.D2, V%[2]d.D2, V%[2]d.D2\n", acc+1, acc) + moved("16", fmt.Sprint(acc+1))
		}
	}
	return neonGroups(d, f, "MOVD $0xf0f0f0f0, R0\nVDUP R0, V28.S4\n", start, product, rows, func(r, v int) int { return r/2*8 + 2*v + r%2 })
}
