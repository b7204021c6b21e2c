package main

import "fmt"

// Arithmetic of rows with a number for each: n elements of dst and a, at least a block, and one of b.

var byRowsOps = []struct{ name, amd64, arm64 string }{
	{"add", "VADDPS", "FADD"},
	{"sub", "VSUBPS", "FSUB"},
	{"mul", "VMULPS", "FMUL"},
	{"div", "VDIVPS", "FDIV"},
}

var byRowsSets = func() []set {
	amd64 := set{file: "byrows_amd64", about: "Rows and a number for each, for AVX2."}
	arm64 := set{file: "byrows_arm64", about: "Rows and a number for each, for NEON."}
	for _, op := range byRowsOps {
		amd64.routines = append(amd64.routines, amd64ByRows(op.name, op.amd64))
		arm64.routines = append(arm64.routines, neonByRows(op.name, op.arm64))
	}
	return []set{amd64, arm64}
}()

func byRowsSignature(name string) string {
	return fmt.Sprintf("func %sRows(rows, n int, dst, a, b *float32)", name)
}

// amd64ByRows computes the last block of a row, which overlaps the one before, first: dst may be a.
func amd64ByRows(name, op string) routine {
	signature := byRowsSignature(name)
	compute := func(at string, register int) string {
		return fmt.Sprintf("VMOVUPS %s, Y%d\n%s Y15, Y%[2]d, Y%[2]d\n", at, register, op)
	}
	four, stores := "", ""
	for i := range 4 {
		four += compute(offset(32*i)+"(SI)", i)
		stores += fmt.Sprintf("VMOVUPS Y%d, %s(DI)\n", i, offset(32*i))
	}
	return routine{signature, frameOf(signature).arguments("MOVQ", "rows", "CX", "n", "R8", "dst", "DI", "a", "SI", "b", "DX") +
		"\nrow:\n" + lines("VBROADCASTSS (DX), Y15", compute("-32(SI)(R8*4)", 14), "MOVQ R8, R9", "SUBQ $32, R9", "JLT rest") +
		"\nfour:\n" + lines(four, stores, "ADDQ $128, SI", "ADDQ $128, DI", "SUBQ $32, R9", "JGE four") +
		"\nrest:\n" + lines("ADDQ $24, R9", "JLE last") +
		"\none:\n" + lines(compute("(SI)", 0), "VMOVUPS Y0, (DI)", "ADDQ $32, SI", "ADDQ $32, DI", "SUBQ $8, R9", "JGT one") +
		"\nlast:\n" + lines("VMOVUPS Y14, (DI)(R9*4)", "LEAQ 32(SI)(R9*4), SI", "LEAQ 32(DI)(R9*4), DI", "ADDQ $4, DX",
		"DECQ CX", "JNZ row", "VZEROUPPER", "RET")}
}

func neonByRows(name, op string) routine {
	signature := byRowsSignature(name)
	return routine{signature, frameOf(signature).arguments("MOVD", "rows", "R0", "n", "R1", "dst", "R2", "a", "R3", "b", "R4") +
		lines("LSL $2, R1, R5", "SUB $16, R5, R5") +
		"\nrow:\n" + encoded(lines("VLD1R.P 4(R4), [V2.S4]", "ADD R5, R3, R6", "ADD R5, R2, R7", "VLD1 (R6), [V1.S4]", op+"(1, 1, 2)",
		"SUBS $4, R1, R8", "BLE last")) +
		"\none:\n" + encoded(lines("VLD1.P 16(R3), [V0.S4]", op+"(0, 0, 2)", "VST1.P [V0.S4], 16(R2)", "SUBS $4, R8, R8", "BGT one")) +
		"\nlast:\n" + lines("VST1 [V1.S4], (R7)", "ADD $16, R6, R3", "ADD $16, R7, R2", "SUBS $1, R0", "BNE row", "RET")}
}
