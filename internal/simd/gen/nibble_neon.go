package main

import "fmt"

// Tiles of products with 4-bit weights for NEON, see nibble.go.

var nibbleNeonSets = []set{{"nibble_arm64", "Tiles of products with 4-bit weights for NEON, with its dot products and without, and their packing.",
	append(append(nibbleTiles("nibble", nibbleParams, nibbleNeon, dotTile{4, 1}, dotTile{2, 1}, dotTile{1, 1}),
		nibbleTiles("smullNibble", nibbleParams, smullNibble, dotTile{1, 1})...), packNibblesNeon())}}

// neonGroups wraps the loop over the rows of groups: R4 points to weights, R1 to activations and R6 to a panel's float sums; R10
// counts panels. Register v of row r's four registers of whole sums is sums(r, v). The float sums of one or two rows are in V8 to
// V15, those of more stay in c.
func neonGroups(d dotTile, f *frame, before, start, product, after string, sums func(r, v int) int) string {
	const first = "MOVD R6, R9\n"
	few := d.rows <= 2
	loads, adds, stores := first, after+scales(), first
	if !few {
		loads, adds, stores = "", adds+first, ""
	}
	for r := range d.rows {
		to := 24
		if few {
			to = 8 + 4*r
		}
		load, add, store := "VLD1 (R9), "+registers(to, 4)+"\n", scaled(r, to, sums), "VST1 "+registers(to, 4)+", (R9)\nADD R7, R9\n"
		if few {
			loads, adds, stores = loads+load+"ADD R7, R9\n", adds+add, stores+store
		} else {
			adds += load + add + store
		}
	}
	return lines(f.arguments("MOVD", "panels", "R10", "b", "R4", "c", "R6", "ldc", "R7"), before) + "\npanel:\n" +
		lines(f.arguments("MOVD", "groups", "R5", "a", "R1"), loads) + "\ngroup:\n" +
		lines(f.arguments("MOVD", "k", "R0"), start) + "\nloop:\n" + lines(encoded(lines(product)), "SUBS $1, R0\nBNE loop") + "\n" +
		lines(encoded(lines(adds)), "SUBS $1, R5\nBNE group", stores, "ADD $64, R6\nSUBS $1, R10\nBNE panel\nRET")
}

// cleared makes a register 0.
func cleared(v int) string { return fmt.Sprintf("VEOR V%d.B16, V%[1]d.B16, V%[1]d.B16\n", v) }

// scales loads a group's scales to V20 to V23.
func scales() string {
	text := load("R4", 16, 2)
	for v := range 2 {
		text += fmt.Sprintf("SHLL16(%d, %d)\nSHLL16_2(%d, %[2]d)\n", 20+2*v, 16+v, 21+2*v)
	}
	return text
}

// scaled adds a row's scaled sums to the float ones in the registers from to on.
func scaled(r, to int, sums func(r, v int) int) (text string) {
	for v := range 4 {
		text += fmt.Sprintf("SCVTF(%d, %[1]d)\nFMUL(%[1]d, %[1]d, %[2]d)\n", sums(r, v), 20+v)
	}
	for v := range 4 {
		text += fmt.Sprintf("FADD(%d, %[1]d, %[2]d)\n", to+v, sums(r, v))
	}
	return text
}

// activations loads eight activations of each row, of two rows to a register from V24 on.
func activations(rows int) string {
	if rows == 1 {
		return "FMOVD.P 8(R1), F24\n"
	}
	return load("R1", 24, rows/2)
}

// nibbleNeon multiplies lanes of activations. A row has four registers of sums from V0 on.
func nibbleNeon(d dotTile, f *frame) string {
	start, product := "", load("R4", 16, 4)+activations(d.rows)
	for v := range 4 {
		product += fmt.Sprintf("VSHL $4, V%d.B16, V20.B16\nVAND V28.B16, V%[1]d.B16, V21.B16\n", 16+v)
		for half := range 2 {
			for r := range d.rows {
				product += fmt.Sprintf("SDOT%d(%d, %d, %d)\n", r%2*2+half, 4*r+v, 20+half, 24+r/2)
			}
		}
		for r := range d.rows {
			start += cleared(4*r + v)
		}
	}
	return neonGroups(d, f, "MOVD $0xf0f0f0f0, R0\nVDUP R0, V28.S4\n", start, product, "", func(r, v int) int { return 4*r + v })
}

// smullNibble sums products of two columns in eight words of 16 bits, in V16 to V23, fifteen times two at most, which fit, and
// those sums in V0 to V7. R12 counts the rows that remain.
func smullNibble(d dotTile, f *frame) string {
	start, clear, added, pairs := "MOVD R0, R12\n", "", "", ""
	product := "VLD1.P 64(R4), [V12.B16, V13.B16, V14.B16, V15.B16]\nVLD1R.P 4(R1), [V24.S4]\nVLD1R.P 4(R1), [V25.S4]\n"
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
	return neonGroups(d, f, "", start+"chunk:\nMOVD $15, R0\nCMP R0, R12\nCSEL LT, R12, R0, R0\nSUB R0, R12\n"+clear, product,
		added+"CBNZ R12, chunk\n"+pairs, func(_, v int) int { return v })
}

// packNibblesNeon is packNibbles, of four columns at a time, whose sums are in V8.
func packNibblesNeon() routine {
	f := frameOf(packSignature)
	text := f.arguments("MOVD", "dst", "R6", "step", "R2", "src", "R7", "sums", "R4") + "MOVD $64, R8\nMOVD $4, R9\n"
	for i, mask := range []string{"0f0f0f0f", "00f000f0", "88888888"} {
		text += fmt.Sprintf("MOVD $0x%s, R5\nVDUP R5, V%d.S4\n", mask, 28+i)
	}
	text += "MOVD $0x0705060403010200, R5\nVMOV R5, V31.D[0]\nMOVD $0x0f0d0e0c0b090a08, R5\nVMOV R5, V31.D[1]\n"
	loop := "VLD1.P (R3)(R8), [V0.B16]\nVAND V28.B16, V0.B16, V20.B16\nVUSHR $4, V0.B16, V21.B16\nVADD V20.B16, V21.B16, V20.B16\n" +
		"SADDLP8(20, 20)\nSADALP(8, 20)\nVTBL V31.B16, [V0.B16], V0.B16\nVUSHR $4, V0.S4, V20.S4\nVEOR V0.B16, V20.B16, V20.B16\n" +
		"VAND V29.B16, V20.B16, V20.B16\nVEOR V20.B16, V0.B16, V0.B16\nVSHL $4, V20.S4, V20.S4\nVEOR V20.B16, V0.B16, V0.B16\n" +
		"VEOR V30.B16, V0.B16, V0.B16\nVST1.P [V0.B16], (R1)(R2)\n"
	return routine{packSignature, lines(text) + "\nquarter:\n" + lines(f.arguments("MOVD", "n", "R0"), "MOVD R7, R3\nMOVD R6, R1\nVLD1 (R4), [V8.S4]") + "\nloop:\n" +
		lines(encoded(lines(loop)), "SUBS $1, R0\nBNE loop", "VST1.P [V8.S4], 16(R4)\nADD $16, R6\nADD $16, R7\nSUBS $1, R9\nBNE quarter\nRET")}
}
