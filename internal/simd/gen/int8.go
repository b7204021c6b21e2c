package main

import (
	"fmt"
	"strings"
)

// Tiles of products of 8-bit elements, see simd.Dot. A panel is 16 columns: their sums of
// weights times 128, then for every segment and four rows of it 16 columns of four weights
// each, or for every two of them 16 columns of two words, see dotRows. A tile has rows times panels·16 sums.

// dotTile is a tile: rows of activations and panels of weights.
type dotTile struct{ rows, panels int }

const dotParams = "(k int, a *uint8, rows, off *int, t int, b *int8, ldb int, c *int32, ldc int, flip uint32)"

func (d dotTile) signature(name string) string {
	return fmt.Sprintf("func %s%dx%d%s", name, d.rows, 16*d.panels, dotParams)
}

// neonDotTiles makes routines of the tiles of NEON, which do several below each other.
func neonDotTiles(name string, write func(d dotTile, f *frame) string, list ...dotTile) (routines []routine) {
	for _, d := range list {
		s := strings.Replace(d.signature(name), "(k int", "(tiles, k int", 1)
		routines = append(routines, routine{s, write(d, frameOf(s))})
	}
	return routines
}

// dotTiles makes routines of the tiles of an instruction set.
func dotTiles(name string, write func(d dotTile, f *frame) string, list ...dotTile) (routines []routine) {
	for _, d := range list {
		s := d.signature(name)
		routines = append(routines, routine{s, write(d, frameOf(s))})
	}
	return routines
}

var dotSets = []set{
	{"dot512_amd64", "Tiles of products of 8-bit elements for AVX-512 with VNNI.",
		dotTiles("vnni", vnniTile, dotTile{8, 2}, dotTile{4, 2}, dotTile{2, 2}, dotTile{1, 4}, dotTile{1, 2},
			dotTile{8, 1}, dotTile{4, 1}, dotTile{2, 1}, dotTile{1, 1})},
	{"dot256_amd64", "Tiles of products of 8-bit elements for AVX-VNNI.",
		dotTiles("dot256x", dot256Tile, dotTile{6, 1}, dotTile{4, 1}, dotTile{2, 1}, dotTile{1, 4}, dotTile{1, 1})},
	{"dot_amd64", "Tiles of products of 8-bit elements for AVX2.",
		dotTiles("madd", maddTile, dotTile{4, 1}, dotTile{2, 1}, dotTile{1, 1})},
	{"dot_arm64", "Tiles of products of 8-bit elements for NEON, with its dot products and without.",
		append(neonDotTiles("sdot", sdotTile, dotTile{4, 1}, dotTile{3, 1}, dotTile{2, 1}, dotTile{1, 1}), neonDotTiles("smull", smullTile, dotTile{2, 1}, dotTile{1, 1})...)},
}

// amd64RowPointers are the rows of a, to which AX, where a segment begins, is added.
func amd64RowPointers(f *frame, rows int) string {
	text := f.arguments("MOVQ", "rows", "BX", "a", "AX")
	for r := range rows {
		text += fmt.Sprintf("MOVQ %d(BX), R%d\nADDQ AX, R%[2]d\n", 8*r, 8+r)
	}
	return text
}

// panelAddress is the p-th panel behind DI: SI is their distance, R12 three times that.
func panelAddress(p int) string {
	return []string{"(DI)", "(DI)(SI*1)", "(DI)(SI*2)", "(DI)(R12*1)"}[p]
}

// amd64Segments wraps the loop over the rows of every segment.
func amd64Segments(before, product, after string, group int) string {
	return before + "\nsegment:\n" + lines("MOVQ (BX), AX", "ADDQ $8, BX", "MOVQ k+0(FP), CX") + align + "\nloop:\n" +
		lines(product, fmt.Sprintf("ADDQ $%d, DI", group), "ADDQ $4, AX", "DECQ CX", "JNZ loop", "DECQ DX", "JNZ segment") + "\n" + after
}

// vnniTile has the sums from Z0 on, weights from Z20 on and activations from Z24 on.
func vnniTile(d dotTile, f *frame) string {
	before := amd64RowPointers(f, d.rows) + "VBROADCASTSS " + f.at("flip") + ", Z31\n" +
		f.arguments("MOVQ", "off", "BX", "t", "DX", "b", "DI", "ldb", "SI") + "ADDQ $64, DI\n"
	if d.panels == 4 {
		before += "LEAQ (SI)(SI*2), R12\n"
	}
	product, after := "", f.arguments("MOVQ", "c", "DX", "ldc", "R8")
	for p := range d.panels {
		product += fmt.Sprintf("VMOVDQU32 %s, Z%d\n", panelAddress(p), 20+p)
	}
	for r := range d.rows {
		a := fmt.Sprint("Z", 24+r%4)
		product += fmt.Sprintf("VPBROADCASTD (R%d)(AX*1), %s\nVPXORD Z31, %[2]s, %[2]s\n", 8+r, a)
		for p := range d.panels {
			acc := r*d.panels + p
			before += fmt.Sprintf("VPXORD Z%d, Z%[1]d, Z%[1]d\n", acc)
			product += fmt.Sprintf("VPDPBUSD Z%d, %s, Z%d\n", 20+p, a, acc)
			after += fmt.Sprintf("VMOVDQU32 Z%d, %s(DX)\n", acc, offset(64*p))
		}
		if r < d.rows-1 {
			after += "ADDQ R8, DX\n"
		}
	}
	return amd64Segments(lines(before), lines(product), lines(after, "VZEROUPPER\nRET"), 64)
}

// dot256Tile has two registers of sums for each panel of a row, from Y0 on, a panel's weights in Y12 and Y13 and an
// activation in Y14.
func dot256Tile(d dotTile, f *frame) string {
	before := amd64RowPointers(f, d.rows) + "VBROADCASTSS " + f.at("flip") + ", Y15\n" +
		f.arguments("MOVQ", "off", "BX", "t", "DX", "b", "DI", "ldb", "SI") + "ADDQ $64, DI\n"
	if d.panels == 4 {
		before += "LEAQ (SI)(SI*2), R12\n"
	}
	product, after := "", f.arguments("MOVQ", "c", "DX", "ldc", "R8")
	for p := range d.panels {
		product += fmt.Sprintf("VMOVDQU %s, Y12\nVMOVDQU 32%[1]s, Y13\n", panelAddress(p))
		for r := range d.rows {
			if p == 0 {
				product += fmt.Sprintf("VPBROADCASTD (R%d)(AX*1), Y14\nVPXOR Y15, Y14, Y14\n", 8+r)
			}
			for v := range 2 {
				product += vexDot(12+v, 14, 2*(r*d.panels+p)+v)
			}
		}
	}
	for r := range d.rows {
		for v := range 2 * d.panels {
			acc := 2*r*d.panels + v
			before += fmt.Sprintf("VPXOR Y%d, Y%[1]d, Y%[1]d\n", acc)
			after += fmt.Sprintf("VMOVDQU Y%d, %s(DX)\n", acc, offset(32*v))
		}
		if r < d.rows-1 {
			after += "ADDQ R8, DX\n"
		}
	}
	return amd64Segments(lines(before), lines(product), lines(after, "VZEROUPPER\nRET"), 64)
}

// vexDot is VPDPBUSD of AVX-VNNI, whose encoding the assembler does not know: it adds products of signed bytes of Y(b) and
// unsigned ones of Y(a) to Y(acc).
func vexDot(b, a, acc int) (text string) {
	third := 0x42 | (acc>>3^1)<<7 | (b>>3^1)<<5
	for _, code := range []int{0xc4, third, (a^15)<<3 | 5, 0x50, 0xc0 | acc&7<<3 | b&7} {
		text += fmt.Sprintf("BYTE $0x%02x\n", code)
	}
	return text
}

// maddTile multiplies 16-bit pairs: two rows of weights by two activations that are shuffled
// into every pair. Weights of a group lie in Y12 and on, a row has two registers of sums.
func maddTile(d dotTile, f *frame) string {
	before := amd64RowPointers(f, d.rows) + "VBROADCASTSS " + f.at("flip") + ", Y11\n" +
		f.arguments("MOVQ", "off", "BX", "t", "DX", "b", "DI", "ldb", "SI") + "ADDQ $64, DI\n"
	product, after := "", f.arguments("MOVQ", "c", "DX", "ldc", "R8")
	for v := range 4 {
		product += fmt.Sprintf("VMOVDQU %s(DI), Y%d\n", offset(32*v), 12+v)
	}
	for r := range d.rows {
		product += fmt.Sprintf("VPBROADCASTD (R%d)(AX*1), Y8\nVPXOR Y11, Y8, Y8\nVPSHUFB firstPair<>(SB), Y8, Y9\nVPSHUFB secondPair<>(SB), Y8, Y8\n", 8+r)
		for v := range 4 {
			product += fmt.Sprintf("VPMADDWD Y%d, Y%d, Y10\nVPADDD Y10, Y%d, Y%[3]d\n", 12+v, 9-v/2, 2*r+v%2)
		}
		for v := range 2 {
			before += fmt.Sprintf("VPXOR Y%d, Y%[1]d, Y%[1]d\n", 2*r+v)
			after += fmt.Sprintf("VMOVDQU Y%d, %s(DX)\n", 2*r+v, offset(32*v))
		}
		if r < d.rows-1 {
			after += "ADDQ R8, DX\n"
		}
	}
	return amd64Segments(lines(before), lines(product), lines(after, "VZEROUPPER\nRET"), 128)
}

// neonDot is what the tiles of NEON have in common, several below each other: R8 and on point to rows, R4 to the
// panel; start makes the sums, row adds the products of a row's activations, in registers from one on, and weights in
// V16 to V19, and end leaves four registers of sums of a row behind each other from V0 on. four
// adds those of four groups of rows of weights, of the row in R8 and on in V24 and on.
func neonDot(d dotTile, f *frame, activations int, start, four string, row func(r int) string, end func(r int) string) string {
	before := f.arguments("MOVD", "tiles", "R13", "a", "R1", "rows", "R2", "ldb", "R14", "c", "R6", "ldc", "R7") +
		f.arguments("MOVWU", "flip", "R15") + "EOR $0x80808080, R15, R15\nVDUP R15, V21.S4\n"
	tile := f.arguments("MOVD", "off", "R3", "t", "R5", "b", "R4") + start
	segment, rows, after := "MOVD.P 8(R3), R12\nADD R1, R12, R12\n"+f.arguments("MOVD", "k", "R0"), "", ""
	loads, flips, singles, singleFlips := "", "", "", ""
	for r := range d.rows {
		segment += fmt.Sprintf("MOVD %d(R2), R%d\nADD R12, R%[2]d, R%[2]d\n", 8*r, 8+r)
		loads += fmt.Sprintf("FMOVQ.P 16(R%d), F%d\n", 8+r, 24+r)
		flips += fmt.Sprintf("VEOR V21.B16, V%d.B16, V%[1]d.B16\n", 24+r)
		singles += fmt.Sprintf("VLD1R.P 4(R%d), [V%d.S4]\n", 8+r, activations+r)
		singleFlips += fmt.Sprintf("VEOR V21.B16, V%d.B16, V%[1]d.B16\n", activations+r)
		rows += row(r)
		after += end(r) + "ADD R7, R6\n"
	}
	if four != "" {
		segment += "SUBS $4, R0\nBLT rest\nCBZ R15, same\n\nfour:\n" + loads + flips + encoded(four) + "SUBS $4, R0\nBGE four\nB rest\n\n" +
			"same:\n" + loads + encoded(four) + "SUBS $4, R0\nBGE same\n\nrest:\nADDS $4, R0\nBEQ next\n"
	}
	return lines(before) + "\ntile:\n" + lines(tile) + "\nsegment:\n" + lines(segment) + "\nloop:\n" +
		lines(singles, "VLD1.P 64(R4), [V16.B16, V17.B16, V18.B16, V19.B16]", singleFlips, encoded(lines(rows)), "SUBS $1, R0", "BNE loop") + "\nnext:\n" + lines("SUBS $1, R5", "BNE segment") + "\n" +
		lines(encoded(lines(after)), fmt.Sprintf("ADD $%d, R2", 8*d.rows), "SUBS $1, R13", "BNE tile", "RET")
}

// sdotTile multiplies lanes of a row's next sixteen activations, in V24 and on, and one group of the last ones at a time.
func sdotTile(d dotTile, f *frame) string {
	start := "VLD1.P 64(R4), [V0.S4, V1.S4, V2.S4, V3.S4]\n"
	for i := 4; i < 4*d.rows; i++ {
		start += moved(fmt.Sprint(i%4), fmt.Sprint(i))
	}
	four := ""
	for g := range 4 {
		four += "VLD1.P 64(R4), [V16.B16, V17.B16, V18.B16, V19.B16]\n"
		for i := range 4 * d.rows {
			four += fmt.Sprintf("SDOT%d(%d, %d, %d)\n", g, i, 16+i%4, 24+i/4)
		}
	}
	return neonDot(d, f, 24, start, four, func(r int) (text string) {
		for v := range 4 {
			text += fmt.Sprintf("SDOT(%d, %d, %d)\n", 4*r+v, 16+v, 24+r)
		}
		return text
	}, func(r int) string { return "VST1 " + registers(4*r, 4) + ", (R6)\n" })
}

// smullTile has eight registers of sums for a row, each of two columns' first and second
// two weights. All products of a row are in registers, V22 and on, before the first one is added: a core that executes in order
// would wait for each.
func smullTile(d dotTile, f *frame) string {
	start := "ADD $64, R4\n"
	for i := range 8 * d.rows {
		start += fmt.Sprintf("VEOR V%d.B16, V%[1]d.B16, V%[1]d.B16\n", i)
	}
	return neonDot(d, f, 30, start, "", func(r int) string {
		products, sums := "", ""
		for v := range 4 {
			products += fmt.Sprintf("SMULL(%d, %d, %d)\nSMULL2(%d, %[2]d, %[3]d)\n", 22+2*v, 16+v, 30+r, 23+2*v)
			sums += fmt.Sprintf("SADALP(%d, %d)\nSADALP(%d, %d)\n", 8*r+2*v, 22+2*v, 8*r+2*v+1, 23+2*v)
		}
		return products + sums
	}, func(r int) (text string) {
		if r == 0 {
			text = f.arguments("MOVD", "b", "R4") + load("R4", 24, 4)
		}
		for v := range 4 {
			text += fmt.Sprintf("ADDP(%d, %d, %d)\nVADD V%d.S4, V%[1]d.S4, V%[1]d.S4\n", 8*r+v, 8*r+2*v, 8*r+2*v+1, 24+v)
		}
		return text + "VST1 " + registers(8*r, 4) + ", (R6)\n"
	})
}
