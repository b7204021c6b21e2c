package main

import (
	"fmt"
	"strings"
)

// Transforms of Winograd's convolution F(2×2, 3×3), for as many channels at once as a register has lanes. Registers from 0 on
// have the block after the first half of a transform, row by row.

var winogradSets = []set{
	{"winograd_amd64", "Transforms of Winograd's convolution for AVX2.",
		[]routine{amd64WinogradInput("winogradInput8", "Y", 32), amd64WinogradOutput("winogradOutput8", "Y", 32)}},
	{"winograd512_amd64", "Transforms of Winograd's convolution for AVX-512.",
		[]routine{amd64WinogradInput("winogradInput16", "Z", 64), amd64WinogradOutput("winogradOutput16", "Z", 64)}},
	{"winograd_arm64", "Transforms of Winograd's convolution for NEON.", []routine{neonWinogradInput(), neonWinogradOutput()}},
}

// Parameters of the transforms. Distances are in bytes, n is the number of blocks of channels.
const (
	winogradInput  = "(n int, x *float32, row, pixel int, v *float32, each int)"
	winogradOutput = "(n int, m *float32, each int, y *float32, row, pixel int, lo, hi float32, faults *float32)"
)

// winogradRows are the addresses of four rows, R8 apart, from AX on; R11 is three times R8.
var winogradRows = []string{"(AX)", "(AX)(R8*1)", "(AX)(R8*2)", "(AX)(R11*1)"}

func amd64WinogradInput(name, register string, width int) routine {
	signature, text := "func "+name+winogradInput, ""
	reg := func(row, column int) string { return fmt.Sprint(register, 4*row+column) }
	for j := range 4 {
		for i, f := range []struct {
			from, op, with int
		}{{0, 0, 2}, {1, 1, 2}, {2, 0, 1}, {1, 0, 3}} {
			text += fmt.Sprintf("VMOVUPS %s, %[2]s\n%[3]s %[4]s, %[2]s, %[2]s\n", winogradRows[f.from], reg(i, j),
				[]string{"VSUBPS", "VADDPS"}[f.op], winogradRows[f.with])
		}
		text += "ADDQ R9, AX\n"
	}
	store := func(r string) string { return "VMOVUPS " + r + ", (BX)\nADDQ R10, BX\n" }
	for i := range 4 {
		a, b, c, d := reg(i, 0), reg(i, 1), reg(i, 2), reg(i, 3)
		text += fmt.Sprintf("VSUBPS %[2]s, %[1]s, %[1]s\n", a, c) + store(a) + fmt.Sprintf("VADDPS %s, %s, %s\n", c, b, a) + store(a) +
			fmt.Sprintf("VSUBPS %[1]s, %[2]s, %[2]s\n", b, c) + store(c) + fmt.Sprintf("VSUBPS %[2]s, %[1]s, %[2]s\n", b, d) + store(d)
	}
	return routine{signature, frameOf(signature).arguments("MOVQ", "n", "CX", "x", "SI", "row", "R8", "pixel", "R9", "v", "DI", "each", "R10") +
		"LEAQ (R8)(R8*2), R11\n" + align + "\nloop:\nMOVQ SI, AX\nMOVQ DI, BX\n" + text +
		fmt.Sprintf("ADDQ $%[1]d, SI\nADDQ $%[1]d, DI\n", width) + amd64Count + "\nVZEROUPPER\nRET\n"}
}

// winogradRegisters are those of a transform of sums behind its two rows of four.
var winogradRegisters = registerNames{"a", "8", "b", "9", "faults", "10", "zero", "11", "lo", "12", "hi", "13"}

// amd64WinogradOutput adds 0 times each sum to faults: that is NaN if a sum is not finite.
func amd64WinogradOutput(name, register string, width int) routine {
	signature, text := "func "+name+winogradOutput, ""
	f := frameOf(signature)
	for j := range 4 {
		text += fmt.Sprintf("VMOVUPS %[4]s, #<a>\nVMOVUPS %[5]s, #<b>\nVADDPS #<b>, #<a>, #%[1]d\nVADDPS %[3]s, #%[1]d, #%[1]d\n"+
			"VSUBPS #<b>, #<a>, #%[2]d\nVSUBPS %[6]s, #%[2]d, #%[2]d\nADDQ R12, AX\n",
			j, 4+j, winogradRows[0], winogradRows[1], winogradRows[2], winogradRows[3])
	}
	for i, pointer := range []string{"DI", "BX"} {
		text += fmt.Sprintf("VADDPS #%[2]d, #%[1]d, #%[1]d\nVADDPS #%[3]d, #%[1]d, #%[1]d\nVSUBPS #%[3]d, #%[2]d, #%[2]d\nVSUBPS #%[4]d, #%[2]d, #%[2]d\n",
			4*i, 4*i+1, 4*i+2, 4*i+3)
		for k, at := range []string{"(" + pointer + ")", "(" + pointer + ")(R9*1)"} {
			text += fmt.Sprintf("VFMADD231PS #<zero>, #%[1]d, #<faults>\nVMAXPS #%[1]d, #<lo>, #%[1]d\nVMINPS #%[1]d, #<hi>, #%[1]d\n"+
				"VMOVUPS #%[1]d, %[2]s\n", 4*i+k, at)
		}
	}
	text = f.arguments("MOVQ", "n", "CX", "m", "SI", "each", "R12", "y", "DI", "row", "R10", "pixel", "R9", "faults", "DX") +
		f.arguments("VBROADCASTSS", "lo", "#<lo>", "hi", "#<hi>") + lines("VXORPS X<faults>, X<faults>, X<faults>", "VXORPS X<zero>, X<zero>, X<zero>") +
		"LEAQ (R12*4), R8\nLEAQ (R8)(R8*2), R11\n" + align + "\nloop:\nMOVQ SI, AX\nLEAQ (DI)(R10*1), BX\n" + text +
		fmt.Sprintf("ADDQ $%[1]d, SI\nADDQ $%[1]d, DI\n", width) + amd64Count + "\nVMOVUPS #<faults>, (DX)\nVZEROUPPER\nRET\n"
	return routine{signature, strings.ReplaceAll(winogradRegisters.in(text), "#", register)}
}

func neonWinogradInput() routine {
	signature, text := "func winogradInput4"+winogradInput, ""
	for j := range 4 {
		text += "MOVD R6, R7\n"
		for i := range 4 {
			text += fmt.Sprintf("VLD1 (R7), [V%d.S4]\nADD R2, R7\n", 16+i)
		}
		text += fmt.Sprintf("FSUB(%d, 16, 18)\nFADD(%d, 17, 18)\nFSUB(%d, 18, 17)\nFSUB(%d, 17, 19)\nADD R3, R6\n", j, 4+j, 8+j, 12+j)
	}
	for i := range 4 {
		text += fmt.Sprintf("FSUB(16, %[1]d, %[3]d)\nFADD(17, %[2]d, %[3]d)\nFSUB(18, %[3]d, %[2]d)\nFSUB(19, %[2]d, %[4]d)\n", 4*i, 4*i+1, 4*i+2, 4*i+3)
		for j := range 4 {
			text += fmt.Sprintf("VST1 [V%d.S4], (R8)\nADD R5, R8\n", 16+j)
		}
	}
	return routine{signature, encoded(frameOf(signature).arguments("MOVD", "n", "R0", "x", "R1", "row", "R2", "pixel", "R3", "v", "R4", "each", "R5") +
		"\nloop:\nMOVD R1, R6\nMOVD R4, R8\n" + text + "ADD $16, R1\nADD $16, R4\nSUBS $1, R0\nBNE loop\nRET\n")}
}

func neonWinogradOutput() routine {
	signature, text := "func winogradOutput4"+winogradOutput, ""
	f := frameOf(signature)
	for j := range 4 {
		text += "MOVD R6, R7\n"
		for i := range 4 {
			text += fmt.Sprintf("VLD1 (R7), [V%d.S4]\nADD R10, R7\n", 16+i)
		}
		text += fmt.Sprintf("FADD(%[1]d, 17, 18)\nFADD(%[1]d, %[1]d, 16)\nFSUB(%[2]d, 17, 18)\nFSUB(%[2]d, %[2]d, 19)\nADD R2, R6\n", j, 4+j)
	}
	for i := range 2 {
		text += fmt.Sprintf("FADD(16, %[1]d, %[2]d)\nFADD(16, 16, %[3]d)\nFSUB(17, %[2]d, %[3]d)\nFSUB(17, 17, %[4]d)\nMOVD R8, R7\n", 4*i, 4*i+1, 4*i+2, 4*i+3)
		for v := 16; v < 18; v++ {
			text += fmt.Sprintf("VFMLA V28.S4, V%[1]d.S4, V27.S4\nFMAX(%[1]d, %[1]d, 29)\nFMIN(%[1]d, %[1]d, 30)\nVST1 [V%[1]d.S4], (R7)\nADD R5, R7\n", v)
		}
		text += "ADD R4, R8\n"
	}
	return routine{signature, encoded(f.arguments("MOVD", "n", "R0", "m", "R1", "each", "R2", "y", "R3", "row", "R4", "pixel", "R5", "faults", "R9") +
		f.arguments("FMOVS", "lo", "F29", "hi", "F30") + "VDUP V29.S[0], V29.S4\nVDUP V30.S[0], V30.S4\n" +
		"VEOR V27.B16, V27.B16, V27.B16\nVEOR V28.B16, V28.B16, V28.B16\nLSL $2, R2, R10\n" +
		"\nloop:\nMOVD R1, R6\nMOVD R3, R8\n" + text + "ADD $16, R1\nADD $16, R3\nSUBS $1, R0\nBNE loop\nVST1 [V27.S4], (R9)\nRET\n")}
}
