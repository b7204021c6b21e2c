package main

import "fmt"

// Tiles of products with 4-bit weights, see simd.Nibbles. A panel is 16 columns: for every
// group of rows, eight of them in 64 bytes, column by column four bytes whose lower halves
// are the first four weights and whose upper halves are the next; behind them 16 scales, the upper halves of float32. Weights count
// 16 times what they are. With AVX-512 the 64 bytes, and the scales, of several panels are side by side: those that a tile of one row
// takes, which then reads all weights as one stream.

const (
	nibbleParams = "(k int, a *uint8, rows *int, groups, step int, b *uint8, c *float32, ldc int, flip uint32)"
	besideParams = "(k int, a *uint8, rows *int, groups, step int, b *uint8, wide, from int, c *float32, ldc int, flip uint32)"
)

func nibbleTiles(name, params string, write func(d dotTile, f *frame) string, list ...dotTile) (routines []routine) {
	for _, d := range list {
		s := fmt.Sprintf("func %s%dx%d%s", name, d.rows, 16*d.panels, params)
		routines = append(routines, routine{s, write(d, frameOf(s))})
	}
	return routines
}

var nibbleSets = []set{
	{"nibble512_amd64", "Tiles of products with 4-bit weights for AVX-512 with VNNI.",
		nibbleTiles("nibble512x", besideParams, nibble512, dotTile{4, 2}, dotTile{1, 4}, dotTile{1, 2}, dotTile{4, 1}, dotTile{1, 1})},
	{"nibble256_amd64", "Tiles of products with 4-bit weights for AVX-VNNI.", nibbleTiles("nibble256x", nibbleParams, nibble256, dotTile{2, 1}, dotTile{1, 1})},
	{"nibble_amd64", "Tiles of products with 4-bit weights for AVX2.", nibbleTiles("nibble", nibbleParams, nibbleAVX2, dotTile{1, 1})},
}

// nibbleGroups wraps the loop over the groups' rows, whose bytes are rows apart, and their scales. R15 is where a group begins.
func nibbleGroups(before, start, product, finish, after, rows, scales string) string {
	return before + "\ngroup:\n" + lines(start, "MOVQ R15, AX", "MOVQ k+0(FP), CX") + align + "\nloop:\n" +
		lines(product, "ADDQ "+rows+", DI", "ADDQ $8, AX", "DECQ CX", "JNZ loop") + "\n" +
		lines(finish, "ADDQ "+scales+", DI", "ADDQ BX, R15", "DECQ DX", "JNZ group") + "\n" + after
}

func nibbleArguments(f *frame, rows int) string {
	return amd64RowPointers(f, rows) +
		f.arguments("MOVQ", "groups", "DX", "step", "BX", "b", "DI") + "XORQ R15, R15\n"
}

// nibble512 has float sums from Z0 on, whole ones from Z8 on, and weights in Z16 and on:
// lower halves, then upper ones. DI plus R13 are the scales when it has passed a group's weights: panel from is that much nearer
// to its own.
func nibble512(d dotTile, f *frame) string {
	before := nibbleArguments(f, d.rows) + "VBROADCASTSS " + f.at("flip") + ", Z31\nMOVL $0xf0f0f0f0, AX\nVPBROADCASTD AX, Z30\n"
	before += f.arguments("MOVQ", "wide", "R12", "from", "R13") + "SHLQ $5, R12\nLEAQ (R12)(R12*1), SI\nSHLQ $5, R13\nNEGQ R13\n"
	start, product, finish, after := "", "", "", f.arguments("MOVQ", "c", "DX", "ldc", "R8")
	for p := range d.panels {
		finish += fmt.Sprintf("VPMOVZXWD %s(DI)(R13*1), Z%d\nVPSLLD $16, Z%[2]d, Z%[2]d\n", offset(32*p), 20+p)
		product += fmt.Sprintf("VMOVDQU32 %s(DI), Z%d\nVPANDD Z30, Z%[2]d, Z%d\nVPSLLD $4, Z%[2]d, Z%[2]d\nVPANDD Z30, Z%[2]d, Z%[2]d\n",
			offset(64*p), 16+p, 20+p)
	}
	for r := range d.rows {
		product += fmt.Sprintf("VPBROADCASTD (R%d)(AX*1), Z24\nVPXORD Z31, Z24, Z24\nVPBROADCASTD 4(R%[1]d)(AX*1), Z25\nVPXORD Z31, Z25, Z25\n", 8+r)
		for p := range d.panels {
			acc := r*d.panels + p
			before += fmt.Sprintf("VPXORD Z%d, Z%[1]d, Z%[1]d\n", acc)
			start += fmt.Sprintf("VPXORD Z%d, Z%[1]d, Z%[1]d\n", 8+acc)
			product += fmt.Sprintf("VPDPBUSD Z%d, Z24, Z%d\nVPDPBUSD Z%d, Z25, Z%[2]d\n", 16+p, 8+acc, 20+p)
			finish += fmt.Sprintf("VCVTDQ2PS Z%d, Z%[1]d\nVMULPS Z%d, Z%[1]d, Z%[1]d\nVADDPS Z%[1]d, Z%[3]d, Z%[3]d\n", 8+acc, 20+p, acc)
			after += fmt.Sprintf("VMOVUPS Z%d, %s(DX)\n", acc, offset(64*p))
		}
		if r < d.rows-1 {
			after += "ADDQ R8, DX\n"
		}
	}
	return nibbleGroups(lines(before), start, product, finish, lines(after, "VZEROUPPER\nRET"), "SI", "R12")
}

// nibble256 has two registers of float sums for each row from Y0 on, of whole ones from Y4 on, and weights from Y8 on: lower
// halves, then upper ones.
func nibble256(d dotTile, f *frame) string {
	before := nibbleArguments(f, d.rows) + "VBROADCASTSS " + f.at("flip") + ", Y15\nMOVL $0xf0f0f0f0, AX\nVMOVD AX, X14\nVPBROADCASTD X14, Y14\n"
	start, product, finish, after := "", "", nibbleScales256(), f.arguments("MOVQ", "c", "DX", "ldc", "R8")
	for v := range 2 {
		product += fmt.Sprintf("VMOVDQU %d(DI), Y%d\nVPAND Y14, Y%[2]d, Y%d\nVPSLLD $4, Y%[2]d, Y%[2]d\nVPAND Y14, Y%[2]d, Y%[2]d\n", 32*v, 8+v, 10+v)
	}
	for r := range d.rows {
		product += fmt.Sprintf("VPBROADCASTD (R%d)(AX*1), Y12\nVPXOR Y15, Y12, Y12\nVPBROADCASTD 4(R%[1]d)(AX*1), Y13\nVPXOR Y15, Y13, Y13\n", 8+r)
		for v := range 2 {
			acc := 2*r + v
			before += fmt.Sprintf("VXORPS Y%d, Y%[1]d, Y%[1]d\n", acc)
			start += fmt.Sprintf("VPXOR Y%d, Y%[1]d, Y%[1]d\n", 4+acc)
			product += vexDot(8+v, 12, 4+acc) + vexDot(10+v, 13, 4+acc)
			finish += fmt.Sprintf("VCVTDQ2PS Y%d, Y%[1]d\nVMULPS Y%d, Y%[1]d, Y%[1]d\nVADDPS Y%[1]d, Y%[3]d, Y%[3]d\n", 4+acc, 10+v, acc)
			after += fmt.Sprintf("VMOVUPS Y%d, %s(DX)\n", acc, offset(32*v))
		}
		if r < d.rows-1 {
			after += "ADDQ R8, DX\n"
		}
	}
	return nibbleGroups(lines(before), start, product, finish, lines(after, "VZEROUPPER\nRET"), "$64", "$32")
}

// nibbleScales256 loads the scales of a group to Y10 and Y11.
func nibbleScales256() (text string) {
	for v := range 2 {
		text += fmt.Sprintf("VPMOVZXWD %d(DI), Y%d\nVPSLLD $16, Y%[2]d, Y%[2]d\n", 16*v, 10+v)
	}
	return text
}

// nibbleAVX2 has float sums in Y4 and Y5, and whole ones in Y0 to Y3 as maddTile has.
func nibbleAVX2(_ dotTile, f *frame) string {
	before := nibbleArguments(f, 1) + "VBROADCASTSS " + f.at("flip") + ", X12\nMOVL $0xfff0fff0, AX\nMOVQ AX, X13\nVPBROADCASTD X13, Y13\n" +
		"VXORPS Y4, Y4, Y4\nVXORPS Y5, Y5, Y5\n"
	start := ""
	product := `
		VPBROADCASTD (R8)(AX*1), X6
		VPXOR        X12, X6, X6
		VPMOVZXBW    X6, Y6
		VPBROADCASTD 4(R8)(AX*1), X7
		VPXOR        X12, X7, X7
		VPMOVZXBW    X7, Y7
	`
	finish := nibbleScales256()
	for v := range 4 {
		start += fmt.Sprintf("VPXOR Y%d, Y%[1]d, Y%[1]d\n", v)
		product += fmt.Sprintf(`VPMOVSXBW %d(DI), Y8
			VPAND     Y13, Y8, Y9
			VPSLLW    $12, Y8, Y8
			VPSRAW    $8, Y8, Y8
			VPMADDWD  Y8, Y6, Y10
			VPADDD    Y10, Y%d, Y%[2]d
			VPMADDWD  Y9, Y7, Y11
			VPADDD    Y11, Y%[2]d, Y%[2]d
		`, 16*v, v)
	}
	for v := range 2 {
		finish += fmt.Sprintf(`VPHADDD Y%d, Y%d, Y%[2]d
			VPERMQ    $0xd8, Y%[2]d, Y%[2]d
			VCVTDQ2PS Y%[2]d, Y%[2]d
			VMULPS    Y%[3]d, Y%[2]d, Y%[2]d
			VADDPS    Y%[2]d, Y%[4]d, Y%[4]d
		`, 2*v+1, 2*v, 10+v, 4+v)
	}
	after := f.arguments("MOVQ", "c", "DX", "ldc", "R8") + "VMOVUPS Y4, (DX)\nVMOVUPS Y5, 32(DX)\n"
	return nibbleGroups(lines(before), start, product, finish, lines(after, "VZEROUPPER\nRET"), "$64", "$32")
}
