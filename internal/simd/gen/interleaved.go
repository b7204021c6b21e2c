package main

import (
	"fmt"
	"strings"
)

// interleavedTiles are tiles of 4 columns for AVX-512: 4 elements of a row of a are multiplied at a
// time, by as many of each column, which are adjacent in b. A run of k elements may end with fewer.
func interleavedTiles() (routines []routine) {
	for _, rows := range []int{8, 1} {
		signature := fmt.Sprintf("func interleaved%dx4(tiles, runs, k int, a *float32, ars, skip int, b *float32, "+
			"from *float32, ldf int, c *float32, ldc int, lo, hi float32, cols uint32)", rows)
		routines = append(routines, routine{signature, interleavedTile(tile{rows: rows}, frameOf(signature))})
	}
	return routines
}

// interleavedTile has a row of the tile in a register from Z0 on, 16 elements of b in Z24. K2 has the
// last elements of a run, R10 their bytes, K3 the first element of each column.
func interleavedTile(t tile, f *frame) string {
	whole, part, zeros := "VMOVUPS (DI), Z24\nADDQ $64, DI\n", "VMOVUPS (DI), Z24\nADDQ $64, DI\n", ""
	for r := range t.rows {
		a, product := 25+r%6, fmt.Sprintf("VFMADD231PS Z24, Z%d, Z%d\n", 25+r%6, r)
		zeros += fmt.Sprintf("VPXORQ Z%[1]d, Z%[1]d, Z%[1]d\n", r)
		whole += fmt.Sprintf("VBROADCASTF32X4 %s, Z%d\n", avx512Row(r), a) + product + strings.Replace(avx512Column(t, r), "R9", "$16", 1)
		part += fmt.Sprintf("VMOVUPS.Z %s, K2, Z%[2]d\nVSHUFF32X4 $0, Z%[2]d, Z%[2]d, Z%[2]d\n", avx512Row(r), a) +
			product + strings.Replace(avx512Column(t, r), "R9", "R10", 1)
	}
	tile, loaded, following := eachTile(t, f)
	return lines(f.arguments("MOVQ", "k", "CX", "a", "SI", "ars", "R8", "b", "DI", "c", "DX", "ldc", "R11"),
		"ANDQ $3, CX\nLEAQ (CX*4), R10\nMOVQ $1, R9\nSHLQ CX, R9\nDECQ R9\nKMOVW R9, K2",
		f.arguments("MOVL", "cols", "R9"), "KMOVW R9, K1\nMOVL $0x1111, R9\nKMOVW R9, K3",
		tile, f.arguments("MOVQ", "runs", "AX"), zeros) +
		"\nrun:\n" + lines(f.arguments("MOVQ", "k", "CX"), "SHRQ $2, CX\nJZ rest", align) +
		"\nloop:\n" + lines(whole, amd64Count) +
		"\nrest:\n" + lines("TESTQ R10, R10\nJZ next", part) +
		"\nnext:\n" + lines(skipRun(t, f), "DECQ AX\nJNZ run", f.arguments("MOVQ", "from", "AX", "ldf", "R14"), interleavedSums(t), loaded,
		amd64Clamp(f, "X", t.rows, "X24", "X25"),
		t.each(1, "ADDQ R11, DX", func(r, _ int) string { return fmt.Sprintf("VMOVUPS X%d, K1, (DX)", r) }), following)
}

// interleavedSums adds the elements of each column, and those of from.
func interleavedSums(t tile) string {
	return t.each(1, "ADDQ R14, AX", func(r, _ int) (text string) {
		for _, swap := range []string{"$0xB1", "$0x4E"} {
			text += fmt.Sprintf("VPERMILPS %[2]s, Z%[1]d, Z25\nVADDPS Z25, Z%[1]d, Z%[1]d\n", r, swap)
		}
		return text + fmt.Sprintf("VCOMPRESSPS.Z Z%[1]d, K3, Z%[1]d\nVADDPS (AX), X%[1]d, K1, X%[1]d", r)
	})
}
