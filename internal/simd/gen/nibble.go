package main

import "fmt"

// Tiles of products with 4-bit weights, see simd.Nibbles. A panel is 16 columns: for every
// group of rows, eight of them in 64 bytes, column by column four bytes whose lower halves
// are the first four weights and whose upper halves are the next; behind them 16 scales, the upper halves of float32. Weights count
// 16 times what they are. With AVX-512 the 64 bytes, and the scales, of several panels are side by side: a tile of all of them
// reads the weights as one stream. The activations of a tile's rows are in the order in which it reads them: eight of each row
// in turn. A tile adds to the sums in c.

const (
	// for the same rows, panels behind each other
	nibbleParams = "(panels, k, groups int, a, b *uint8, c *float32, ldc int)"
	// of panels side by side: count tiles, from panel from of wide
	besideParams = "(k, groups int, a, b *uint8, wide, from, count int, c *float32, ldc int)"
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
		nibbleTiles("nibble512x", besideParams, nibble512, dotTile{8, 2}, dotTile{4, 2}, dotTile{2, 2}, dotTile{1, 4},
			dotTile{8, 1}, dotTile{4, 1}, dotTile{2, 1}, dotTile{1, 1})},
	{"nibble256_amd64", "Tiles of products with 4-bit weights for AVX-VNNI.",
		nibbleTiles("nibble256x", nibbleParams, nibble256, dotTile{4, 1}, dotTile{2, 1}, dotTile{1, 1})},
	{"nibble_amd64", "Tiles of products with 4-bit weights for AVX2, and their packing.",
		append(nibbleTiles("nibble", nibbleParams, nibbleAVX2, dotTile{4, 1}, dotTile{2, 1}, dotTile{1, 1}), packNibbles())},
}

// nibbleAhead is how many bytes ahead a tile loads weights into the cache. A processor that sees that they follow each other stops
// at the end of each page: one row without it reads 9 GB/s, and 17 with it (Xeon with AMX, see BenchmarkDecode).
const nibbleAhead = 2048

// nibble512 has whole sums in Z0 to Z15, weights in Z16 to Z23, lower halves, then upper ones, and two rows' activations in Z24
// and on. Its float sums stay in c: registers hold the whole sums of twice as many rows instead. DI is a group, R11 the bytes
// of the panels before the first one, R9 and R10 the weights and the scales of a tile, and AX its activations.
func nibble512(d dotTile, f *frame) string {
	before := f.arguments("MOVQ", "groups", "R15", "a", "AX", "b", "DI", "wide", "R12", "from", "R11") +
		"SHLQ $5, R12\nLEAQ (R12)(R12*1), SI\nSHLQ $6, R11\nMOVL $0xf0f0f0f0, CX\nVPBROADCASTD CX, Z30\n"
	group := f.arguments("MOVQ", "k", "R10", "count", "R14", "c", "R13") +
		"LEAQ (DI)(R11*1), R9\nIMULQ SI, R10\nADDQ R10, DI\nMOVQ R11, R10\nSHRQ $1, R10\nADDQ DI, R10\n"
	start, product, rows := f.arguments("MOVQ", "k", "CX")+"MOVQ AX, R8\nMOVQ R9, BX\n", "", ""
	finish := f.arguments("MOVQ", "ldc", "CX") + "MOVQ R13, DX\n"
	for p := range d.panels {
		product += fmt.Sprintf("PREFETCHT0 %d(BX)\n", nibbleAhead+64*p)
		product += fmt.Sprintf("VMOVDQU32 %s(BX), Z%d\nVPANDD Z30, Z%[2]d, Z%d\nVPSLLD $4, Z%[2]d, Z%[2]d\nVPANDD Z30, Z%[2]d, Z%[2]d\n",
			offset(64*p), 16+p, 16+d.panels+p)
		if p%2 == 0 {
			finish += fmt.Sprintf("PREFETCHT0 %d(R10)\n", nibbleAhead+32*p)
		}
		finish += fmt.Sprintf("VPMOVZXWD %s(R10), Z%d\nVPSLLD $16, Z%[2]d, Z%[2]d\n", offset(32*p), 16+p)
	}
	for r := range d.rows {
		low := 24 + r%2*2
		product += fmt.Sprintf("VPBROADCASTD %s(R8), Z%d\nVPBROADCASTD %d(R8), Z%d\n", offset(8*r), low, 8*r+4, low+1)
		for p := range d.panels {
			acc := r*d.panels + p
			start += fmt.Sprintf("VPXORD Z%d, Z%[1]d, Z%[1]d\n", acc)
			product += fmt.Sprintf("VPDPBUSD Z%d, Z%d, Z%d\n", 16+p, low, acc)
			rows += nibbleScaled("Z", acc, 16+p, offset(64*p)+"(DX)")
		}
		for p := range d.panels {
			product += fmt.Sprintf("VPDPBUSD Z%d, Z%d, Z%d\n", 16+d.panels+p, low+1, r*d.panels+p)
		}
		rows += "ADDQ CX, DX\n"
	}
	return lines(before) + "\ngroup:\n" + lines(group) + "\ntile:\n" + lines(start) + align + "\nloop:\n" +
		lines(product, fmt.Sprintf("ADDQ SI, BX\nADDQ $%d, R8\nDECQ CX\nJNZ loop", 8*d.rows)) + "\n" +
		lines(finish, rows, fmt.Sprintf("ADDQ $%d, R9\nADDQ $%d, R10\nADDQ $%[1]d, R13\nDECQ R14\nJNZ tile", 64*d.panels, 32*d.panels)) + "\n" +
		lines("MOVQ R8, AX\nADDQ R12, DI\nDECQ R15\nJNZ group\nVZEROUPPER\nRET")
}

// nibbleScaled adds a register of whole sums, with scales in another, to float ones in memory.
func nibbleScaled(kind string, sums, scales int, at string) string {
	return fmt.Sprintf("VCVTDQ2PS %s%d, %[1]s%[2]d\nVMULPS %[1]s%[3]d, %[1]s%[2]d, %[1]s%[2]d\n"+
		"VADDPS %[4]s, %[1]s%[2]d, %[1]s%[2]d\nVMOVUPS %[1]s%[2]d, %[4]s\n", kind, sums, scales, at)
}

// nibbleGroups wraps the loop over the groups' rows, 64 bytes of weights and eight activations of each row, and their scales. R10
// counts panels, R11 points to the first row of a panel's float sums, and SI to the one that is added to.
func nibbleGroups(rows int, f *frame, before, start, product, finish string) string {
	return lines(f.arguments("MOVQ", "panels", "R10", "b", "DI", "c", "R11", "ldc", "R8"), before) + "\npanel:\n" +
		lines(f.arguments("MOVQ", "groups", "DX", "a", "AX")) + "\ngroup:\n" +
		lines(start) + align + "\nloop:\n" +
		lines(fmt.Sprintf("PREFETCHT0 %d(DI)", nibbleAhead), product, fmt.Sprintf("ADDQ $64, DI\nADDQ $%d, AX\nDECQ CX\nJNZ loop", 8*rows)) + "\n" +
		lines(finish, "ADDQ $32, DI\nDECQ DX\nJNZ group") + "\n" +
		lines("ADDQ $64, R11\nDECQ R10\nJNZ panel\nVZEROUPPER\nRET")
}

// nibble256 has two registers of whole sums for each row from Y0 on, and weights from Y8 on: lower halves, then upper ones.
func nibble256(d dotTile, f *frame) string {
	start, product, finish := f.arguments("MOVQ", "k", "CX"), "", "MOVQ R11, SI\n"+nibbleScales256()
	for v := range 2 {
		product += fmt.Sprintf("VMOVDQU %d(DI), Y%d\nVPAND Y14, Y%[2]d, Y%d\nVPSLLD $4, Y%[2]d, Y%[2]d\nVPAND Y14, Y%[2]d, Y%[2]d\n", 32*v, 8+v, 10+v)
	}
	for r := range d.rows {
		product += fmt.Sprintf("VPBROADCASTD %s(AX), Y12\nVPBROADCASTD %d(AX), Y13\n", offset(8*r), 8*r+4)
		for v := range 2 {
			start += fmt.Sprintf("VPXOR Y%d, Y%[1]d, Y%[1]d\n", 2*r+v)
			product += vexDot(8+v, 12, 2*r+v) + vexDot(10+v, 13, 2*r+v)
			finish += nibbleScaled("Y", 2*r+v, 10+v, offset(32*v)+"(SI)")
		}
		if r < d.rows-1 {
			finish += "ADDQ R8, SI\n"
		}
	}
	return nibbleGroups(d.rows, f, "MOVL $0xf0f0f0f0, CX\nVMOVD CX, X14\nVPBROADCASTD X14, Y14\n", start, product, finish)
}

// nibbleScales256 loads the scales of a group to Y10 and Y11.
func nibbleScales256() (text string) {
	for v := range 2 {
		text += fmt.Sprintf("VPMOVZXWD %d(DI), Y%d\nVPSLLD $16, Y%[2]d, Y%[2]d\n", 16*v, 10+v)
	}
	return text
}

// nibbleAVX2 sums products of two rows of weights in words of 16 bits, in Y0 to Y3, eight times two at most, which fit, and those
// sums times 16 in Y4 to Y7. Two rows of activations have two registers each. Four have one each, as weights take fewer instructions
// where more rows multiply them: a group's first eight columns come before the other eight. R12 is where the columns are in 64 bytes
// of weights, BX and R13 are a group's weights and activations, R9 counts the blocks that remain. Y15 has what halves of bytes are.
func nibbleAVX2(d dotTile, f *frame) string {
	before := "MOVL $0x0f0f0f0f, CX\nVMOVD CX, X14\nVPBROADCASTD X14, Y14\n" +
		"MOVQ $0x0706050403020100, CX\nVMOVQ CX, X15\nMOVQ $0xfffefdfcfbfaf9f8, CX\nVPINSRQ $1, CX, X15, X15\nVINSERTI128 $1, X15, Y15, Y15\n" +
		"MOVL $0x00100010, CX\nVMOVD CX, X13\nVPBROADCASTD X13, Y13\nXORQ R12, R12\n"
	vectors, start, after := 2, f.arguments("MOVQ", "k", "R9"), ""
	finish := "MOVQ R11, SI\n" + nibbleScales256()
	if d.rows > 2 {
		vectors, start = 1, "MOVQ DI, BX\nMOVQ AX, R13\nhalf:\n"+start
		finish = "LEAQ (R11)(R12*1), SI\nMOVQ R12, CX\nSHRQ $1, CX\nVPMOVZXWD (DI)(CX*1), Y10\nVPSLLD $16, Y10, Y10\n"
		after = "XORQ $32, R12\nJEQ next\nMOVQ BX, DI\nMOVQ R13, AX\nJMP half\nnext:\n"
	}
	clear, product, added := "", "", ""
	for v := range vectors {
		product += fmt.Sprintf("VMOVDQU %s(DI)(R12*1), Y8\nVPSRLW $4, Y8, Y9\n", offset(32*v))
		for half := range 2 {
			product += fmt.Sprintf("VPAND Y14, Y%d, Y%[1]d\nVPSHUFB Y%[1]d, Y15, Y%[1]d\n", 8+half)
		}
		for r := range d.rows {
			acc := vectors*r + v
			for half := range 2 {
				product += fmt.Sprintf("VPBROADCASTD %s(AX), Y%d\nVPMADDUBSW Y%d, Y%[2]d, Y%[2]d\n", offset(8*r+4*half), 10+half, 8+half)
			}
			product += fmt.Sprintf("VPADDW Y10, Y%d, Y%[1]d\nVPADDW Y11, Y%[1]d, Y%[1]d\n", acc)
			start += fmt.Sprintf("VPXOR Y%d, Y%[1]d, Y%[1]d\n", 4+acc)
			clear += fmt.Sprintf("VPXOR Y%d, Y%[1]d, Y%[1]d\n", acc)
			added += fmt.Sprintf("VPMADDWD Y13, Y%d, Y%[1]d\nVPADDD Y%[1]d, Y%[2]d, Y%[2]d\n", acc, 4+acc)
		}
	}
	for r := range d.rows {
		for v := range vectors {
			finish += nibbleScaled("Y", 4+vectors*r+v, 10+v, offset(32*v)+"(SI)")
		}
		if r < d.rows-1 {
			finish += "ADDQ R8, SI\n"
		}
	}
	return nibbleGroups(d.rows, f, before, start+"chunk:\nMOVQ $4, CX\nCMPQ R9, CX\nCMOVQLT R9, CX\nSUBQ CX, R9\n"+clear, product,
		added+"TESTQ R9, R9\nJNZ chunk\n"+finish+after)
}

// packSignature is of the loop that stores n words of each of 16 columns, step bytes apart, with their eight elements in the order of
// simd.interleave, and adds the elements to sums.
const packSignature = "func packNibbles(n int, dst *uint8, step int, src *uint32, sums *int32)"

// packNibbles swaps the second byte of a word with the third one, and then the upper half of each even byte with the lower half of the
// next one, of eight columns at a time. Y8 are their sums, Y10 and Y11 ones of 8 and of 16 bits.
func packNibbles() routine {
	f := frameOf(packSignature)
	text := f.arguments("MOVQ", "dst", "R9", "step", "DX", "src", "R10", "sums", "R8") + "MOVQ $2, R11\n"
	for i, mask := range []string{"01010101", "00010001", "0f0f0f0f", "00f000f0", "88888888"} {
		text += fmt.Sprintf("MOVL $0x%s, AX\nVMOVD AX, X%d\nVPBROADCASTD X%[2]d, Y%[2]d\n", mask, 10+i)
	}
	text += "MOVQ $0x0705060403010200, AX\nVMOVQ AX, X15\nMOVQ $0x0f0d0e0c0b090a08, AX\nVPINSRQ $1, AX, X15, X15\nVINSERTI128 $1, X15, Y15, Y15\n"
	loop := "VMOVDQU (SI), Y0\nVPSRLW $4, Y0, Y2\nVPAND Y12, Y0, Y1\nVPAND Y12, Y2, Y2\nVPADDB Y1, Y2, Y1\nVPMADDUBSW Y10, Y1, Y1\n" +
		"VPMADDWD Y11, Y1, Y1\nVPADDD Y1, Y8, Y8\nVPSHUFB Y15, Y0, Y0\nVPSRLD $4, Y0, Y1\nVPXOR Y0, Y1, Y1\nVPAND Y13, Y1, Y1\nVPXOR Y1, Y0, Y0\n" +
		"VPSLLD $4, Y1, Y1\nVPXOR Y1, Y0, Y0\nVPXOR Y14, Y0, Y0\nVMOVDQU Y0, (DI)\n"
	return routine{packSignature, lines(text) + "\nhalf:\n" + lines(f.arguments("MOVQ", "n", "CX"), "MOVQ R10, SI\nMOVQ R9, DI\nVMOVDQU (R8), Y8") + "\nloop:\n" +
		lines(loop, "ADDQ $64, SI\nADDQ DX, DI\nDECQ CX\nJNZ loop", "VMOVDQU Y8, (R8)\nADDQ $32, R8\nADDQ $32, R9\nADDQ $32, R10\nDECQ R11\nJNZ half\nVZEROUPPER\nRET")}
}
