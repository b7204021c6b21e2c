package main

import (
	"fmt"
	"slices"
	"strings"
)

// tile is a block of a matrix product whose sums stay in registers: it adds Σ_p a[i,p]·b[p,j]
// to a tile of from, clamps the sum to [lo, hi] and stores it to c. A NaN stays. Strides are in
// bytes.
//
// One pass of the loop adds one p: it loads a row of b once, and multiplies it by an element of each row of a. A tile of r rows
// and v vectors so has r·v products for r+v loads, and as many independent sums, which hide the latency of a product. The
// sizes are the largest ones whose sums, row of b and elements of a fit in the registers.
type tile struct {
	rows, cols int
	last       string // an argument more, "name type": the columns that there are
}

// tiles makes routines of the tiles of an instruction set.
func tiles(write func(t tile) string, list ...tile) (routines []routine) {
	for _, t := range list {
		routines = append(routines, routine{t.signature(), write(t)})
	}
	return routines
}

var tileSets = []set{
	{"tiles_amd64", "Tiles of a matrix product for AVX2 and FMA. Those of 8 columns have a mask of the ones that there are. Rows of a are runs " +
		"of k elements; skip is from the end of a run to the next, in bytes. Those of 64 columns have one run.",
		append(tiles(avx2Tile, tile{6, 16, ahead}, tile{4, 16, ahead}, tile{3, 16, ahead}, tile{2, 16, ahead}, tile{1, 16, ahead}, tile{1, 64, ""},
			tile{6, 8, columnsMask}, tile{2, 8, columnsMask}, tile{1, 8, columnsMask}), avx2Row())},
	{"tiles512_amd64", "Tiles of a matrix product for AVX-512. Bits of cols are the columns that there are: one tile serves every width. " +
		"Rows of a are runs of k elements; skip is from the end of a run to the next, in bytes. There are several tiles, " +
		"one below the other.",
		slices.Concat(
			tiles(avx512Tile, columns(32)...), tiles(avx512Narrow, tile{12, 16, columnsThere}), tiles(avx512Narrow, columns(16)...), tiles(avx512Narrow, tile{12, 8, columnsThere}, tile{8, 8, columnsThere}, tile{4, 8, columnsThere}, tile{1, 8, columnsThere}),
			[]routine{avx512Panels()}, interleavedTiles())},
	{"tiles_arm64", "Tiles of a matrix product for NEON, one below the other. Rows of a are runs of k elements; skip is from the end " +
		"of a run to the next, in bytes.",
		append(neonTiles(), neonRow())},
}

// Last arguments of tiles: for AVX-512 the columns that there are, for AVX2 a mask of them. Tiles of panels also load what follows
// into the second-level cache: from next on, step bytes for each row of b. The first tile of the next panel would wait for memory.
const (
	columnsThere = "cols uint32"
	columnsMask  = "mask *int32"
	ahead        = "next uintptr, step int"
	columnsAhead = columnsThere + ", " + ahead
)

// amd64Ahead loads what follows.
const amd64Ahead = "PREFETCHT1 (R15)\nADDQ %s, R15\n"

// columns are the tiles of so many columns for AVX-512.
func columns(n int) (list []tile) {
	for _, rows := range []int{8, 6, 4, 3, 2, 1} {
		last := columnsThere
		if n == 32 {
			last = columnsAhead
		}
		list = append(list, tile{rows, n, last})
	}
	return list
}

func (t tile) signature() string {
	name := fmt.Sprintf("tile%dx%d", t.rows, t.cols)
	if t.cols < 32 && t.last == columnsThere {
		name += "cols"
	}
	const params = "k int, a *float32, ars, acs int, b *float32, ldb int, from *float32, ldf int, c *float32, ldc int, lo, hi float32"
	switch t.last {
	case "":
		return "func " + name + "(" + params + ")"
	case columnsThere, columnsAhead:
		return "func " + name + "(tiles, runs, " + strings.Replace(params, "acs int", "acs, skip int", 1) + ", " + t.last + ")"
	}
	return "func " + name + "(runs, " + strings.Replace(params, "acs int", "acs, skip int", 1) + ", " + t.last + ")"
}

func (t tile) frame() *frame { return frameOf(t.signature()) }

// each writes the lines of a format for every row and every vector of it, step behind
// the vectors of a row but the last.
func (t tile) each(vectors int, step string, line func(row, vector int) string) (text string) {
	for r := range t.rows {
		for v := range vectors {
			text += line(r, v) + "\n"
		}
		if r < t.rows-1 {
			text += step + "\n"
		}
	}
	return text
}

// body is what all tiles have around them.
func (t tile) body(arguments, load, product, count, clamp, store, end string) string {
	return lines(arguments, load) + align + "\nloop:\n" + lines(product, count) + "\n" + lines(clamp, store, end)
}

// amd64Clamp clamps n registers; lo and hi are registers that are free then. The second
// operand of VMAXPS and VMINPS, the first here, is what they give for a NaN.
func amd64Clamp(f *frame, register string, n int, lo, hi string) string {
	text := f.arguments("VBROADCASTSS", "lo", lo, "hi", hi)
	for i := range n {
		text += fmt.Sprintf("VMAXPS %[1]s%[2]d, %[3]s, %[1]s%[2]d\nVMINPS %[1]s%[2]d, %[4]s, %[1]s%[2]d\n", register, i, lo, hi)
	}
	return text
}

const amd64Count = "DECQ CX\nJNZ loop"

// nextRun are the instructions before a loop over runs and behind that over a run, which goes on with
// the next.
func nextRun(t tile) (before, behind string) {
	f := t.frame()
	return f.arguments("MOVQ", "runs", "AX"), amd64Count + "\n" + skipRun(t, f) + f.arguments("MOVQ", "k", "CX") + "DECQ AX\nJNZ loop"
}

// eachTile has the instructions before and behind those of a tile, and behind the loads of from. The
// arguments a, from and tiles change in their places.
func eachTile(t tile, f *frame) (before, loaded, behind string) {
	below := map[int]string{12: "R12*4", 8: "R8*8", 6: "R12*2", 4: "R8*4", 3: "R12*1", 2: "R8*2", 1: "R8*1"}[t.rows]
	return "\ntile:\nLEAQ (R8)(R8*2), R12\nLEAQ (R8)(R8*4), R13\nLEAQ (SI)(R13*1), BX\nADDQ BX, R13", "ADDQ R14, AX\nMOVQ AX, " + f.at("from"),
		fmt.Sprintf("ADDQ R11, DX\n%sLEAQ (SI)(%s), SI\nMOVQ SI, %s\n", f.arguments("MOVQ", "a", "SI"), below, f.at("a")) +
			f.arguments("MOVQ", "b", "DI", "k", "CX") + fmt.Sprintf("DECQ %s\nJNZ tile\nVZEROUPPER\nRET", f.at("tiles"))
}

// skipRun moves the pointers of rows of a from the end of a run to the next. CX, the elements that are left, is 0.
func skipRun(t tile, f *frame) string {
	text := f.arguments("MOVQ", "skip", "CX")
	for _, pointer := range avx512Pointers[:(t.rows+4)/5] {
		text += "ADDQ CX, " + pointer + "\n"
	}
	return text
}

// avx512Pointers point to rows 0, 5 and 10 of a.
var avx512Pointers = []string{"SI", "BX", "R13"}

// avx512Row is the address of an element of a row of a, R8 and R12 being one stride and three.
func avx512Row(row int) string {
	return "(" + avx512Pointers[row/5] + ")" + []string{"", "(R8*1)", "(R8*2)", "(R12*1)", "(R8*4)"}[row%5]
}

// avx512Column moves the pointer of five rows of a on behind the last of them.
func avx512Column(t tile, row int) string {
	if row%5 == 4 || row == t.rows-1 {
		return fmt.Sprintf("ADDQ R9, %s\n", avx512Pointers[row/5])
	}
	return ""
}

// amd64Row is the address of an element of a row of a: SI and BX point to rows 0 and 3.
func amd64Row(row int) string {
	return []string{"(SI)", "(BX)"}[row/3] + []string{"", "(R8*1)", "(R8*2)"}[row%3]
}

// avx2Registers are those of a tile behind its sums, which have cols/8 registers for each row from Y0 on.
var avx2Registers = registerNames{"b0", "Y12", "b1", "Y13", "a", "Y14", "mask", "Y15"}

// avx2Runs are the instructions before a loop over runs, for the tiles that have them, and behind that over a run.
func avx2Runs(t tile) (before, behind string) {
	if t.last == "" {
		return "", amd64Count
	}
	f := t.frame()
	behind = amd64Count + "\n" + f.arguments("MOVQ", "skip", "CX") + "ADDQ CX, SI\n"
	if t.rows > 3 {
		behind += "ADDQ CX, BX\n"
	}
	return f.arguments("MOVQ", "runs", "AX"), behind + f.arguments("MOVQ", "k", "CX") + "DECQ AX\nJNZ loop"
}

// avx2Tile broadcasts each element of a, and reads b in place if there is one row: then it is read once anyway.
func avx2Tile(t tile) string {
	vectors, masked := t.cols/8, t.last == columnsMask
	arguments := t.frame().arguments("MOVQ", "k", "CX", "a", "SI", "ars", "R8", "acs", "R9", "b", "DI", "ldb", "R10", "c", "DX", "ldc", "R11",
		"from", "AX", "ldf", "R14")
	if t.rows > 3 {
		arguments += "LEAQ (R8)(R8*2), BX\nADDQ SI, BX\n"
	}
	load, store := "VMOVUPS %s%s, %s", "VMOVUPS %[3]s, %[1]s%[2]s"
	if masked {
		arguments += t.frame().arguments("MOVQ", "mask", "R12") + "VMOVUPS (R12), <mask>\n"
		load, store = "VMASKMOVPS %s%s, <mask>, %s", "VMASKMOVPS %[3]s, <mask>, %[1]s%[2]s"
	}
	acc := func(r, v int) string { return fmt.Sprint("Y", r*vectors+v) }
	product, inMemory := "", t.rows == 1 && !masked
	if t.last == ahead {
		arguments += t.frame().arguments("MOVQ", "next", "R15", "step", "R13")
		product = fmt.Sprintf(amd64Ahead, "R13")
	}
	for v := range vectors {
		if !inMemory {
			product += fmt.Sprintf(load+"\n", offset(32*v), "(DI)", fmt.Sprintf("<b%d>", v))
		}
	}
	for r := range t.rows {
		product += fmt.Sprintf("VBROADCASTSS %s, <a>\n", amd64Row(r))
		for v := range vectors {
			b := fmt.Sprintf("<b%d>", v)
			if inMemory {
				b = offset(32*v) + "(DI)"
			}
			product += fmt.Sprintf("VFMADD231PS %s, <a>, %s\n", b, acc(r, v))
		}
		product += nextColumn(t, r)
	}
	before, behind := avx2Runs(t)
	return avx2Registers.in(t.body(arguments,
		t.each(vectors, "ADDQ R14, AX", func(r, v int) string { return fmt.Sprintf(load, offset(32*v), "(AX)", acc(r, v)) })+before,
		product, "ADDQ R10, DI\n"+behind, amd64Clamp(t.frame(), "Y", t.rows*vectors, "<b1>", "<a>"),
		t.each(vectors, "ADDQ R11, DX", func(r, v int) string { return fmt.Sprintf(store, offset(32*v), "(DX)", acc(r, v)) }),
		"VZEROUPPER\nRET"))
}

// nextColumn moves the pointer of three rows of a on behind the last of them.
func nextColumn(t tile, row int) string {
	if row%3 == 2 || row == t.rows-1 {
		return fmt.Sprintf("ADDQ R9, %s\n", []string{"SI", "BX"}[row/3])
	}
	return ""
}

// avx512Registers are those of a tile behind its sums, which have two registers for each row from Z0 on, or one if it is narrow.
// Rows of a alternate between six registers, so that a load does not wait for the products of the row before it.
var avx512Registers = registerNames{"b0", "Z24", "b1", "Z25", "a0", "Z26", "a1", "Z27", "a2", "Z28", "a3", "Z29", "a4", "Z30", "a5", "Z31",
	"cols0", "K1", "cols1", "K2"}

// avx512Tile has 32 columns. R15 is what follows, R14 its step.
func avx512Tile(t tile) string {
	first, loaded, next := eachTile(t, t.frame())
	arguments := t.frame().arguments("MOVQ", "k", "CX", "a", "SI", "ars", "R8", "acs", "R9", "b", "DI", "ldb", "R10", "c", "DX", "ldc", "R11",
		"next", "R15") +
		t.frame().arguments("MOVL", "cols", "AX") + "KMOVW AX, <cols0>\nSHRL $16, AX\nKMOVW AX, <cols1>\n" +
		first + "\n" + t.frame().arguments("MOVQ", "from", "AX", "ldf", "R14")
	load := func(address, to string, v int) string {
		return fmt.Sprintf("VMOVUPS.Z %s(%s), <cols%d>, %s", offset(64*v), address, v, to)
	}
	acc := func(r, v int) string { return fmt.Sprint("Z", 2*r+v) }
	product := load("DI", "<b0>", 0) + "\n" + load("DI", "<b1>", 1) + "\nADDQ R10, DI\n" + fmt.Sprintf(amd64Ahead, "R14")
	for r := range t.rows {
		product += fmt.Sprintf("VBROADCASTSS %s, <a%[2]d>\nVFMADD231PS <b0>, <a%[2]d>, %[3]s\nVFMADD231PS <b1>, <a%[2]d>, %[4]s\n",
			avx512Row(r), r%6, acc(r, 0), acc(r, 1)) + avx512Column(t, r)
	}
	before, behind := nextRun(t)
	before += t.frame().arguments("MOVQ", "step", "R14")
	return avx512Registers.in(t.body(arguments,
		t.each(2, "ADDQ R14, AX", func(r, v int) string { return load("AX", acc(r, v), v) })+loaded+"\n"+before,
		product, behind, amd64Clamp(t.frame(), "Z", 2*t.rows, "<b0>", "<b1>"),
		t.each(2, "ADDQ R11, DX", func(r, v int) string { return fmt.Sprintf("VMOVUPS %s, <cols%d>, %s(DX)", acc(r, v), v, offset(64*v)) }),
		next))
}

// avx512Narrow has 16 or 8 columns; elements of a are broadcast as they are multiplied: each has one product only. Tiles of 8 columns have
// shorter registers, of which some processors multiply twice as many.
func avx512Narrow(t tile) string {
	z := map[int]string{16: "Z", 8: "Y"}[t.cols]
	first, loaded, next := eachTile(t, t.frame())
	arguments := t.frame().arguments("MOVQ", "k", "CX", "a", "SI", "ars", "R8", "acs", "R9", "b", "DI", "ldb", "R10", "c", "DX", "ldc", "R11") +
		t.frame().arguments("MOVL", "cols", "AX") + "KMOVW AX, K1\n" +
		first + "\n" + t.frame().arguments("MOVQ", "from", "AX", "ldf", "R14")
	product := fmt.Sprintf("VMOVUPS.Z (DI), K1, %s24\nADDQ R10, DI\n", z)
	for r := range t.rows {
		product += fmt.Sprintf("VFMADD231PS.BCST %s, %[2]s24, %[2]s%[3]d\n", avx512Row(r), z, r) + avx512Column(t, r)
	}
	before, behind := nextRun(t)
	return t.body(arguments,
		t.each(1, "ADDQ R14, AX", func(r, _ int) string { return fmt.Sprintf("VMOVUPS.Z (AX), K1, %s%d", z, r) })+loaded+"\n"+before,
		product, behind, amd64Clamp(t.frame(), z, t.rows, z+"24", z+"25"),
		t.each(1, "ADDQ R11, DX", func(r, _ int) string { return fmt.Sprintf("VMOVUPS %s%d, K1, (DX)", z, r) }),
		next)
}

// rowSignature is that of a row of a times as many panels of 32 columns of b as registers
// hold; panel is from one panel to the next, in bytes.
const rowSignature = "func rowPanels(k int, a, b *float32, panel int, from, c *float32, lo, hi float32)"

// avx512Panels has four panels in Z0 to Z7.
func avx512Panels() routine {
	return rowRoutine("rowPanels512", 4, "Z", 64, "LEAQ (R10)(R10*2), R12\n", []string{"(DI)", "(DI)(R10*1)", "(DI)(R10*2)", "(DI)(R12*1)"})
}

// avx2Row has two panels in Y0 to Y7.
func avx2Row() routine {
	return rowRoutine("rowPanels", 2, "Y", 32, "", []string{"(DI)", "(DI)(R10*1)"})
}

func rowRoutine(name string, panels int, register string, width int, setup string, addresses []string) routine {
	signature := strings.Replace(rowSignature, "rowPanels", name, 1)
	f := frameOf(signature)
	load, product, store, n := "", fmt.Sprintf("VBROADCASTSS (SI), %s8\n", register), "", 128/width
	for v := range panels * n {
		at := offset(width * v)
		load += fmt.Sprintf("VMOVUPS %s(AX), %s%d\n", at, register, v)
		product += fmt.Sprintf("VFMADD231PS %s%s, %[3]s8, %[3]s%[4]d\n", offset(v%n*width), addresses[v/n], register, v)
		store += fmt.Sprintf("VMOVUPS %s%d, %s(DX)\n", register, v, at)
	}
	return routine{signature, tile{}.body(f.arguments("MOVQ", "k", "CX", "a", "SI", "b", "DI", "panel", "R10", "from", "AX", "c", "DX")+setup, load,
		product+"ADDQ $4, SI\nADDQ $128, DI\n", amd64Count, amd64Clamp(f, register, panels*n, register+"9", register+"10"), store, "VZEROUPPER\nRET")}
}

// neonRow has a panel in V0 to V7.
func neonRow() routine {
	f := frameOf(rowSignature)
	product := "VLD1R.P 4(R1), [V28.S4]\nVLD1.P 64(R2), " + registers(16, 4) + "\nVLD1.P 64(R2), " + registers(20, 4) + "\n"
	for v := range 8 {
		product += fmt.Sprintf("VFMLA V%d.S4, V28.S4, V%d.S4\n", 16+v, v)
	}
	return routine{rowSignature, lines(f.arguments("MOVD", "k", "R0", "a", "R1", "b", "R2", "panel", "R5", "from", "R3", "c", "R4"),
		"VLD1.P 64(R3), "+registers(0, 4), "VLD1 (R3), "+registers(4, 4)) + "\nloop:\n" + lines(product, "SUBS $1, R0\nBNE loop") + "\n" +
		arm64Clamp(f, 8) + lines("VST1.P "+registers(0, 4)+", 64(R4)", "VST1 "+registers(4, 4)+", (R4)", "RET")}
}

// arm64Clamp clamps V0 and on, n registers; FMAX and FMIN hand a NaN on.
func arm64Clamp(f *frame, n int) string {
	text := f.arguments("FMOVS", "lo", "F29", "hi", "F30") + "VDUP V29.S[0], V29.S4\nVDUP V30.S[0], V30.S4\n"
	for v := range n {
		text += fmt.Sprintf("FMAX(%[1]d, %[1]d, 29)\nFMIN(%[1]d, %[1]d, 30)\n", v)
	}
	return lines(encoded(text))
}

// registers is a list of words of vector registers.
func registers(first, n int) string {
	var names []string
	for v := range n {
		names = append(names, fmt.Sprintf("V%d.S4", first+v))
	}
	return "[" + strings.Join(names, ", ") + "]"
}
