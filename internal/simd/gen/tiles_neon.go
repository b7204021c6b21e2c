package main

import (
	"fmt"
	"strings"
)

// Tiles of a matrix product for NEON. While elements of a row of a are adjacent, four of them are loaded at once, and products read
// their lanes: one load for four steps of the loop. Rows of b alternate between two sets of registers, so that one is loaded
// while the other one is used.

// The first registers of a tile: of its sums, cols/4 for each row, of the rows of a, and of the two rows of b.
const neonSums, neonA, neonB, neonNextB = 0, 16, 24, 28

// neonTiles are those of 16, 8 and 4 columns, and those of fewer.
func neonTiles() (list []routine) {
	for _, t := range []tile{
		{4, 16, ""}, {3, 16, ""}, {2, 16, ""}, {1, 16, ""}, {8, 8, ""}, {4, 8, ""}, {2, 8, ""}, {1, 8, ""},
		{8, 4, ""}, {4, 4, ""}, {1, 4, ""}, {8, 3, ""}, {1, 3, ""}, {8, 2, ""}, {1, 2, ""}, {8, 1, ""}, {1, 1, ""},
	} {
		signature := fmt.Sprintf("func neon%dx%d(tiles, runs, k int, a *float32, ars, acs, skip int, b *float32, ldb int, from *float32, ldf int, "+
			"c *float32, ldc int, lo, hi float32)", t.rows, t.cols)
		list = append(list, routine{signature, neonTile(t, frameOf(signature))})
	}
	return list
}

// neonRows are the registers that point to the rows of a.
var neonRows = []string{"R8", "R9", "R10", "R11", "R12", "R13", "R19", "R20"}

func neonTile(t tile, f *frame) string {
	vectors := (t.cols + 3) / 4
	eachRow := func(format string) (text string) {
		for r := range t.rows {
			text += fmt.Sprintf(format+"\n", neonRows[r], neonA+r)
		}
		return text
	}
	arguments := f.arguments("MOVD", "tiles", "R21", "a", "R1", "ars", "R2", "acs", "R3", "skip", "R17", "ldb", "R5", "from", "R14", "ldf", "R15", "c", "R6", "ldc", "R7") +
		f.arguments("MOVWU", "lo", "R22", "hi", "R23") +
		"MOVD $0xff800000, R24\nMOVD $0x7f800000, R25\nSUB R24, R22\nSUB R25, R23\nORR R23, R22\n" // 0 without bounds
	start, from, store := "MOVD R1, R8\n", "", ""
	for r := range t.rows {
		if r > 0 {
			start += fmt.Sprintf("ADD R2, %s, %s\n", neonRows[r-1], neonRows[r])
		}
		from += loadColumns(t.cols, "R14", "R15", neonSums+r*vectors)
		store += storeColumns(t.cols, neonSums+r*vectors)
	}
	start += fmt.Sprintf("ADD R2, %s, R1\n", neonRows[t.rows-1])
	return lines(arguments) + "\ntile:\n" + lines(start, from, f.arguments("MOVD", "b", "R4", "runs", "R16")) +
		"\nrun:\n" + lines(f.arguments("MOVD", "k", "R0"), "CMP $4, R3\nBNE one\nSUBS $4, R0\nBLT rest") +
		"\nfour:\n" + lines(eachRow("FMOVQ.P 16(%s), F%d"), encoded(lines(neonLanes(t, vectors))), "SUBS $4, R0\nBGE four") +
		"\nrest:\n" + lines("ADDS $4, R0\nBEQ next") +
		"\none:\n" + lines(loadColumns(t.cols, "R4", "R5", neonB), eachRow("VLD1R.P (%s)(R3), [V%d.S4]"), neonBroadcast(t, vectors), "SUBS $1, R0\nBNE one") +
		"\nnext:\n" + lines("SUBS $1, R16\nBEQ end", eachRow("ADD R17, %[1]s"), "B run") +
		"\nend:\n" + lines("CBZ R22, store", f.arguments("FMOVS", "lo", "F30", "hi", "F31"), neonClamp(t.rows*vectors)) +
		"\nstore:\n" + lines(store, "SUBS $1, R21\nBNE tile\nRET")
}

// neonLanes multiplies four rows of b by lanes of rows of a.
func neonLanes(t tile, vectors int) string {
	b, next := neonB, neonNextB
	text := loadColumns(t.cols, "R4", "R5", b)
	for p := range 4 {
		if p < 3 {
			text += loadColumns(t.cols, "R4", "R5", next)
		}
		for v := range vectors {
			for r := range t.rows {
				text += fmt.Sprintf("FMLA%d(%d, %d, %d)\n", p, neonSums+r*vectors+v, b+v, neonA+r)
			}
		}
		b, next = next, b
	}
	return text
}

// neonBroadcast multiplies a row of b by elements of rows of a.
func neonBroadcast(t tile, vectors int) (text string) {
	for v := range vectors {
		for r := range t.rows {
			text += fmt.Sprintf("VFMLA V%d.S4, V%d.S4, V%d.S4\n", neonB+v, neonA+r, neonSums+r*vectors+v)
		}
	}
	return text
}

// neonClamp clamps V0 and on, n registers, to the bounds in F30 and F31; FMAX and FMIN hand a NaN on.
func neonClamp(n int) string {
	text := "VDUP V30.S[0], V30.S4\nVDUP V31.S[0], V31.S4\n"
	for v := range n {
		text += fmt.Sprintf("FMAX(%[1]d, %[1]d, 30)\nFMIN(%[1]d, %[1]d, 31)\n", v)
	}
	return encoded(lines(text))
}

// loadColumns loads a row of so many columns from a pointer, which moves on by a stride, to registers from one on.
func loadColumns(cols int, pointer, stride string, to int) string {
	switch cols {
	case 1:
		return fmt.Sprintf("VLD1R.P (%s)(%s), [V%d.S4]\n", pointer, stride, to)
	case 2:
		return fmt.Sprintf("VLD1.P (%s)(%s), [V%d.S2]\n", pointer, stride, to)
	case 3:
		return fmt.Sprintf("FMOVD (%[1]s), F%[3]d\nADD $8, %[1]s, R24\nVLD1 (R24), V%[3]d.S[2]\nADD %[2]s, %[1]s\n", pointer, stride, to)
	}
	return fmt.Sprintf("VLD1.P (%s)(%s), %s\n", pointer, stride, registers(to, cols/4))
}

// storeColumns stores a row to R6, which moves on by R7.
func storeColumns(cols, from int) string {
	switch cols {
	case 1:
		return fmt.Sprintf("FMOVS F%d, (R6)\nADD R7, R6\n", from)
	case 2:
		return fmt.Sprintf("FMOVD F%d, (R6)\nADD R7, R6\n", from)
	case 3:
		return fmt.Sprintf("FMOVD F%[1]d, (R6)\nADD $8, R6, R24\nVST1 V%[1]d.S[2], (R24)\nADD R7, R6\n", from)
	}
	return strings.Replace(loadColumns(cols, "R6", "R7", from), fmt.Sprintf("VLD1.P (R6)(R7), %s", registers(from, cols/4)),
		fmt.Sprintf("VST1.P %s, (R6)(R7)", registers(from, cols/4)), 1)
}
