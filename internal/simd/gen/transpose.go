package main

import "fmt"

// Transposes for NEON: n tiles, one below the other in src and side by side in dst. Rows
// are zipped with those half a tile further down, once for each factor of two: then they
// are the columns.
var transposeSets = []set{{"transpose_arm64", "Transposes for NEON: tiles of 4×4 words, and of 8×8 halves and bytes. Strides are in bytes.", []routine{
	zipped("func transposeLanes(n int, dst *uint32, ds int, src *uint32, ss int)", 4, "S4", 16),
	zipped("func transposeHalves(n int, dst *uint16, ds int, src *uint16, ss int)", 8, "H8", 16),
	zipped("func transposeBytes(n int, dst *uint8, ds int, src *uint8, ss int)", 8, "B8", 8),
}}}

// zipped has the rows in V0 and on, and every other time in V16 and on. R1 is the tile in
// dst and R5 a row of it, R3 runs down src.
func zipped(signature string, rows int, shape string, bytes int) routine {
	load, zips, store := "", "", ""
	from, to := 0, 16
	for n := rows; n > 1; n /= 2 {
		for i := range rows {
			a, b := from+i/2, from+i/2+rows/2
			zips += fmt.Sprintf("VZIP%d V%d.%s, V%d.%[3]s, V%[5]d.%[3]s\n", 1+i%2, b, shape, a, to+i)
		}
		from, to = to, from
	}
	for i := range rows {
		load += fmt.Sprintf("VLD1 (R3), [V%d.%s]\nADD R4, R3\n", i, shape)
		store += fmt.Sprintf("VST1 [V%d.%s], (R5)\nADD R2, R5\n", from+i, shape)
	}
	return routine{signature, lines(frameOf(signature).arguments("MOVD", "n", "R0", "dst", "R1", "ds", "R2", "src", "R3", "ss", "R4")) +
		"\ntile:\n" + lines(load, zips, "MOVD R1, R5", store, fmt.Sprintf("ADD $%d, R1", bytes), "SUBS $1, R0", "BNE tile", "RET")}
}
