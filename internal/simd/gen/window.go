package main

import (
	"fmt"
	"strings"
)

// Windows over rows: sums and extremes of shifted rows; every second element of rows; and places of extremes. Strides are in
// bytes, offsets in elements.
//
// The taps of a window are rows of x, each shifted by its offset. A block of y stays in registers while the loop goes over its taps,
// so that y is written once; blocks of four registers keep four sums or extremes going, as each waits for its own. An extreme has the tag of
// its tap in a register beside it: where the tap's element is more extreme or NaN, both are replaced.

var windowSets = []set{
	{"window_amd64",
		"Rows of windows for AVX2, n blocks of eight and what the mask leaves on, and for AVX-512, n elements.",
		[]routine{
			amd64Taps8(sumTap), amd64Taps8(maxTap), amd64Taps8(firstMaxTap), amd64Taps8(firstMinTap),
			avx512Taps(sumTap), avx512Taps(maxTap), avx512Taps(firstMaxTap), avx512Taps(firstMinTap),
			avx512Stride2, avx512Zip2, amd64Zip2, amd64Places}},
	{"window_arm64",
		"Rows of windows for NEON, n blocks of four, then the last four of a row, which lie last bytes from its start.",
		[]routine{
			neonTaps(sumTap), neonTaps(maxTap), neonTaps(firstMaxTap), neonTaps(firstMinTap), neonZip2, neonPlaces}},
}

// tapKind is what is made of a window's elements.
type tapKind struct {
	name    string
	extreme bool // with the tag of the tap that has it
	order   int  // predicate of VCMPPS: an element is more extreme than the best one
}

var (
	sumTap      = &tapKind{name: "sumTaps"}
	maxTap      = &tapKind{name: "maxTaps"} // NaN where there is one
	firstMaxTap = &tapKind{"firstMaxTaps", true, 0x1e}
	firstMinTap = &tapKind{"firstMinTaps", true, 0x11}
)

// signature is the declaration of a loop for blocks of the given size.
func (k *tapKind) signature(block int, rest string) string {
	slices := "y, x *float32, off *int"
	if k.extreme {
		slices = "y *float32, at *int32, x *float32, off *int, tag *int32"
	}
	return fmt.Sprintf("func %s%d(rows, n int, %s, taps, ys, xs%s)", k.name, block, slices, rest)
}

// amd64Setup loads arguments: R11 and R12 are rows of y and x, R8 the offsets of R9 taps, CX their tags; at
// lies DX bytes behind y.
func (k *tapKind) amd64Setup(f *frame) string {
	text := f.arguments("MOVQ", "y", "R11", "x", "R12", "off", "R8", "taps", "R9")
	if k.extreme {
		text += f.arguments("MOVQ", "at", "DX", "tag", "CX") + "SUBQ R11, DX\n"
	}
	return text
}

func amd64NextRow(f *frame) string {
	return "ADDQ " + f.at("ys") + ", R11\nADDQ " + f.at("xs") + ", R12\nDECQ " + f.at("rows") + "\nJNZ row\nVZEROUPPER\nRET\n"
}

// amd64TapLoop is the loop over the taps of a block; first and each are its instructions with the offset
// of the tap in AX.
func amd64TapLoop(label, first, each string) string {
	return lines("MOVQ (R8), AX", first, "MOVQ $1, BX", "JMP "+label+"Test") + "\n" + label + "Tap:\n" +
		lines("MOVQ (R8)(BX*8), AX", each, "INCQ BX") + "\n" + label + "Test:\n" + lines("CMPQ BX, R9", "JLT "+label+"Tap")
}

// amd64TapRegisters are those beside blocks of y in Y0 and on, and their tags in Y4 and on: the tap's element and tag, where it
// replaces the best one, and the mask of the last block, which is incomplete.
var amd64TapRegisters = registerNames{"tag", "Y8", "x", "Y9", "better", "Y10", "nan", "Y11", "mask", "Y15"}

// amd64Taps8 has blocks of four registers, then of one, then of the elements that remain.
func amd64Taps8(k *tapKind) routine {
	signature := k.signature(8, " int, mask *int32")
	f := frameOf(signature)
	block := func(label string, vectors int, load string) string {
		first, each := "", ""
		for v := range vectors {
			at := offset(32*v) + "(SI)(AX*4)"
			first += fmt.Sprintf(load+"Y%d\n", at, v)
			if k.extreme {
				each += fmt.Sprintf(load+"<x>\nVCMPPS $%d, Y%d, <x>, <better>\nVCMPPS $3, <x>, <x>, <nan>\nVORPS <nan>, <better>, <better>\n", at, k.order, v)
				each += fmt.Sprintf("VBLENDVPS <better>, <x>, Y%d, Y%[1]d\nVBLENDVPS <better>, <tag>, Y%d, Y%[2]d\n", v, 4+v)
			} else if k == maxTap {
				each += fmt.Sprintf(load+"<x>\nVCMPPS $3, <x>, <x>, <better>\nVMAXPS Y%d, <x>, Y%[2]d\nVBLENDVPS <better>, <x>, Y%[2]d, Y%[2]d\n", at, v)
			} else {
				each += fmt.Sprintf(load+"<x>\nVADDPS <x>, Y%d, Y%[2]d\n", at, v)
			}
		}
		if k.extreme {
			each = "VBROADCASTSS (CX)(BX*4), <tag>\n" + each
			for v := range vectors {
				first += fmt.Sprintf("VBROADCASTSS (CX), Y%d\n", 4+v)
			}
		}
		return amd64TapLoop(label, first, each)
	}
	store := func(vectors int, mask string) (text string) {
		op := "VMOVUPS"
		if mask != "" {
			op = "VMASKMOVPS"
		}
		for v := range vectors {
			text += fmt.Sprintf("%s Y%d, %s%s(DI)\n", op, v, mask, offset(32*v))
			if k.extreme {
				text += fmt.Sprintf("%s Y%d, %s%s(DI)(DX*1)\n", op, 4+v, mask, offset(32*v))
			}
		}
		return text
	}
	whole := func(label string, vectors int) string {
		return block(label, vectors, "VMOVUPS %s, ") + lines(store(vectors, ""),
			fmt.Sprintf("ADDQ $%d, DI\nADDQ $%[1]d, SI\nSUBQ $%d, R10", 32*vectors, vectors))
	}
	return routine{signature, amd64TapRegisters.in(lines(k.amd64Setup(f), f.arguments("MOVQ", "mask", "AX"), "VMOVUPS (AX), <mask>", "VPTEST <mask>, <mask>", "SETNE R13") +
		"\nrow:\n" + lines("MOVQ R11, DI", "MOVQ R12, SI", f.arguments("MOVQ", "n", "R10")) +
		"\nfour:\n" + lines("CMPQ R10, $4", "JLT one") + whole("four", 4) + lines("JMP four") +
		"\none:\n" + lines("TESTQ R10, R10", "JZ last") + whole("one", 1) + lines("JMP one") +
		"\nlast:\n" + lines("TESTB R13, R13", "JZ next") + block("last", 1, "VMASKMOVPS %s, <mask>, ") + store(1, "<mask>, ") +
		"\nnext:\n" + amd64NextRow(f))}
}

// avx512Masks makes K1 and on the masks of the next R10 elements.
func avx512Masks(vectors int) string {
	text := "MOVQ $-1, AX\nBZHIQ R10, AX, AX\n"
	if vectors == 4 {
		text = "MOVL $64, BX\nCMPQ R10, $64\nCMOVQLT R10, BX\nMOVQ $-1, AX\nBZHIQ BX, AX, AX\n"
	}
	for v := range vectors {
		if v > 0 {
			text += "SHRQ $16, AX\n"
		}
		text += fmt.Sprintf("KMOVW AX, K%d\n", v+1)
	}
	return text
}

// avx512TapRegisters are as amd64TapRegisters, beside blocks of y in Z0 and on with masks in K1 and on, and their tags in Z4 and on.
var avx512TapRegisters = registerNames{"tag", "Z8", "x", "Z9", "better", "K5", "nan", "K6"}

// avx512Taps has blocks of four registers, and of two and one for the rest of a row, all with masks.
func avx512Taps(k *tapKind) routine {
	signature := k.signature(16, " int")
	f := frameOf(signature)
	block := func(label string, vectors int) string {
		first, each, store := "", "", ""
		for v := range vectors {
			at := offset(64*v) + "(SI)(AX*4)"
			first += fmt.Sprintf("VMOVUPS.Z %s, K%d, Z%d\n", at, v+1, v)
			store += fmt.Sprintf("VMOVUPS Z%d, K%d, %s(DI)\n", v, v+1, offset(64*v))
			if k == maxTap {
				each += fmt.Sprintf("VMOVUPS.Z %s, K%d, <x>\nVCMPPS $3, <x>, <x>, <better>\nVMAXPS Z%d, <x>, Z%[3]d\nVMOVAPS <x>, <better>, Z%[3]d\n", at, v+1, v)
				continue
			}
			if !k.extreme {
				each += fmt.Sprintf("VADDPS %s, Z%d, K%d, Z%[2]d\n", at, v, v+1)
				continue
			}
			store += fmt.Sprintf("VMOVDQU32 Z%d, K%d, %s(DI)(DX*1)\n", 4+v, v+1, offset(64*v))
			each += fmt.Sprintf("VMOVUPS.Z %s, K%d, <x>\nVCMPPS $%d, Z%d, <x>, <better>\nVCMPPS $3, <x>, <x>, <nan>\nKORW <better>, <nan>, <better>\n",
				at, v+1, k.order, v)
			each += fmt.Sprintf("VMOVAPS <x>, <better>, Z%d\nVMOVDQA32 <tag>, <better>, Z%d\n", v, 4+v)
		}
		if k.extreme {
			each = "VPBROADCASTD (CX)(BX*4), <tag>\n" + each
			for v := range vectors {
				first += fmt.Sprintf("VPBROADCASTD (CX), Z%d\n", 4+v)
			}
		}
		return "\n" + label + ":\n" + lines(avx512Masks(vectors)) + amd64TapLoop(label, first, each) +
			lines(store, fmt.Sprintf("ADDQ $%d, DI\nADDQ $%[1]d, SI\nSUBQ $%d, R10\nJG block\nJMP next", 64*vectors, 16*vectors))
	}
	return routine{signature, avx512TapRegisters.in(lines(k.amd64Setup(f)) + "\nrow:\n" + lines("MOVQ R11, DI", "MOVQ R12, SI", f.arguments("MOVQ", "n", "R10")) +
		"\nblock:\n" + lines("CMPQ R10, $32", "JGT four", "CMPQ R10, $16", "JGT two") +
		block("one", 1) + block("two", 2) + block("four", 4) + "\nnext:\n" + amd64NextRow(f))}
}

// lanesOf writes numbers into a register of 16 lanes by way of bytes, from first on, step apart.
func lanesOf(first, step int, register string) string {
	text := ""
	for half := range 2 {
		bits := uint64(0)
		for i := range 8 {
			bits |= uint64(first+step*(8*half+i)) << (8 * i)
		}
		text += fmt.Sprintf("MOVQ $0x%016x, AX\nVPINSRQ $%d, AX, X15, X15\n", bits, half)
	}
	return text + "VPMOVZXBD X15, " + register + "\n"
}

const rowsOfPairs = "(rows, n int, dst, src *float32, ds, ss int)"

// avx512Stride2 takes every second of the elements up to the last one that is wanted.
var avx512Stride2 = func() routine {
	signature := "func stride2Rows" + rowsOfPairs
	f := frameOf(signature)
	return routine{signature, lines(f.arguments("MOVQ", "rows", "CX", "dst", "R11", "src", "R12", "ds", "R8", "ss", "R9"),
		lanesOf(0, 2, "Z14")) + "\nrow:\n" + lines("MOVQ R11, DI", "MOVQ R12, SI", f.arguments("MOVQ", "n", "R10"),
		"SUBQ $17, R10", "JLT last") + "\nblock:\n" +
		lines("VMOVUPS (SI), Z0", "VMOVDQA32 Z14, Z2", "VPERMI2PS 64(SI), Z0, Z2", "VMOVUPS Z2, (DI)",
			"ADDQ $64, DI", "ADDQ $128, SI", "SUBQ $16, R10", "JGE block") +
		"\nlast:\n" + // one to 16 elements
		lines("ADDQ $17, R10", "MOVQ $-1, AX", "BZHIQ R10, AX, BX", "KMOVW BX, K3", "LEAQ -1(R10)(R10*1), R10", "BZHIQ R10, AX, AX",
			"KMOVW AX, K1", "SHRQ $16, AX", "KMOVW AX, K2", "VMOVUPS.Z (SI), K1, Z0", "VMOVUPS.Z 64(SI), K2, Z1", "VMOVDQA32 Z14, Z2",
			"VPERMI2PS Z1, Z0, Z2", "VMOVUPS Z2, K3, (DI)", "ADDQ R8, R11", "ADDQ R9, R12", "DECQ CX", "JNZ row", "VZEROUPPER", "RET")}
}()

const rowsOfTwo = "(rows, n int, dst, a, b *float32, ds, ss int)"

// avx512Zip2 stores elements of a and b in turn.
var avx512Zip2 = func() routine {
	signature := "func zip2Rows16" + rowsOfTwo
	f := frameOf(signature)
	zipped := "VMOVDQA32 Z10, Z2\nVPERMI2PS Z1, Z0, Z2\nVMOVDQA32 Z11, Z3\nVPERMI2PS Z1, Z0, Z3"
	ramp := func(first int, register string) string { // 0, 16, 1, 17 and so on
		low := strings.Replace(lanesOf(first, 1, "Z12"), "VPMOVZXBD X15, Z12\n", "", 1)
		return low + "VPADDB X13, X15, X14\nVPUNPCKLBW X14, X15, X15\nVPMOVZXBD X15, " + register + "\n"
	}
	return routine{signature, lines(f.arguments("MOVQ", "rows", "CX", "dst", "R11", "a", "R12", "b", "R13", "ds", "R8", "ss", "R9"),
		"MOVQ $0x1010101010101010, AX", "VMOVQ AX, X13", "VPBROADCASTQ X13, X13", ramp(0, "Z10"), ramp(8, "Z11")) +
		"\nrow:\n" + lines("MOVQ R11, DI", "MOVQ R12, SI", "MOVQ R13, DX", f.arguments("MOVQ", "n", "R10"),
		"SUBQ $17, R10", "JLT last") + "\nblock:\n" +
		lines("VMOVUPS (SI), Z0", "VMOVUPS (DX), Z1", zipped, "VMOVUPS Z2, (DI)", "VMOVUPS Z3, 64(DI)",
			"ADDQ $128, DI", "ADDQ $64, SI", "ADDQ $64, DX", "SUBQ $16, R10", "JGE block") +
		"\nlast:\n" + // one to 16 elements
		lines("ADDQ $17, R10", "MOVQ $-1, AX", "BZHIQ R10, AX, BX", "KMOVW BX, K3", "ADDQ R10, R10", "BZHIQ R10, AX, AX", "KMOVW AX, K1",
			"SHRQ $16, AX", "KMOVW AX, K2", "VMOVUPS.Z (SI), K3, Z0", "VMOVUPS.Z (DX), K3, Z1", zipped,
			"VMOVUPS Z2, K1, (DI)", "VMOVUPS Z3, K2, 64(DI)",
			"ADDQ R8, R11", "ADDQ R9, R12", "ADDQ R9, R13", "DECQ CX", "JNZ row", "VZEROUPPER", "RET")}
}()

// amd64Zip2 stores n blocks of eight elements of a and b in turn, row by row.
var amd64Zip2 = func() routine {
	signature := "func zip2Rows" + rowsOfTwo
	f := frameOf(signature)
	return routine{signature, lines(f.arguments("MOVQ", "rows", "CX", "dst", "R11", "a", "R12", "b", "R13", "ds", "R8", "ss", "R9")) +
		"\nrow:\n" + lines("MOVQ R11, DI", "MOVQ R12, SI", "MOVQ R13, DX", f.arguments("MOVQ", "n", "R10")) + "\nblock:\n" +
		lines("VMOVUPS (SI), Y0", "VMOVUPS (DX), Y1", "VUNPCKLPS Y1, Y0, Y2", "VUNPCKHPS Y1, Y0, Y3",
			"VPERM2F128 $0x20, Y3, Y2, Y0", "VPERM2F128 $0x31, Y3, Y2, Y1", "VMOVUPS Y0, (DI)", "VMOVUPS Y1, 32(DI)",
			"ADDQ $64, DI", "ADDQ $32, SI", "ADDQ $32, DX", "DECQ R10", "JNZ block",
			"ADDQ R8, R11", "ADDQ R9, R12", "ADDQ R9, R13", "DECQ CX", "JNZ row", "VZEROUPPER", "RET")}
}()

// neonZip2 does so with blocks of four.
var neonZip2 = func() routine {
	signature := "func zip2Rows" + rowsOfTwo
	f := frameOf(signature)
	return routine{signature, lines(f.arguments("MOVD", "rows", "R0", "n", "R1", "dst", "R2", "a", "R3", "b", "R4", "ds", "R5", "ss", "R6")) +
		"\nrow:\n" + lines("MOVD R2, R7", "MOVD R3, R8", "MOVD R4, R9", "MOVD R1, R10") + "\nblock:\n" +
		lines("VLD1.P 16(R8), [V0.S4]", "VLD1.P 16(R9), [V1.S4]", "VST2.P [V0.S4, V1.S4], 32(R7)", "SUBS $1, R10", "BNE block",
			"ADD R5, R2", "ADD R6, R3", "ADD R6, R4", "SUBS $1, R0", "BNE row", "RET")}
}()

const placesSignature = "func placesLanes(n int, dst *int64, at *int32, start, step int)"

// amd64Places is dst[j] = at[j] + start + j·step for n blocks of four: Y1 is start and on.
var amd64Places = routine{placesSignature, lines(frameOf(placesSignature).arguments("MOVQ",
	"n", "CX", "dst", "DI", "at", "SI", "start", "AX", "step", "BX"),
	"VMOVQ AX, X1", "ADDQ BX, AX", "VPINSRQ $1, AX, X1, X1", "ADDQ BX, AX", "VMOVQ AX, X2", "ADDQ BX, AX", "VPINSRQ $1, AX, X2, X2",
	"VINSERTI128 $1, X2, Y1, Y1", "SHLQ $2, BX", "VMOVQ BX, X2", "VPBROADCASTQ X2, Y2") +
	"\nblock:\n" + lines("VPMOVSXDQ (SI), Y0", "VPADDQ Y1, Y0, Y0", "VPADDQ Y2, Y1, Y1", "VMOVDQU Y0, (DI)", "ADDQ $16, SI", "ADDQ $32, DI",
	"DECQ CX", "JNZ block", "VZEROUPPER", "RET")}

var neonPlaces = routine{placesSignature, lines(frameOf(placesSignature).arguments("MOVD",
	"n", "R0", "dst", "R1", "at", "R2", "start", "R3", "step", "R4"),
	"VMOV R3, V1.D[0]", "ADD R4, R3", "VMOV R3, V1.D[1]", "ADD R4, R3", "VMOV R3, V2.D[0]", "ADD R4, R3", "VMOV R3, V2.D[1]",
	"LSL $2, R4", "VDUP R4, V3.D2") +
	"\nblock:\n" + lines(encoded(lines("VLD1.P 16(R2), [V0.S4]", "SXTL32(4, 0)", "SXTL32_2(5, 0)",
	"VADD V1.D2, V4.D2, V4.D2", "VADD V2.D2, V5.D2, V5.D2",
	"VADD V3.D2, V1.D2, V1.D2", "VADD V3.D2, V2.D2, V2.D2", "VST1.P [V4.D2, V5.D2], 32(R1)", "SUBS $1, R0", "BNE block", "RET")))}

// neonTapRegisters are the tap's element and tag, the best ones, where the element replaces the best one, and where it is a number.
var neonTapRegisters = registerNames{"x", "0", "y", "1", "best tag", "2", "tag", "3", "better", "5", "number", "6"}

// neonTaps has blocks of one register: the row's last one overlaps the one before it.
func neonTaps(k *tapKind) routine {
	signature := k.signature(4, ", last int")
	f := frameOf(signature)
	setup := f.arguments("MOVD", "rows", "R0", "n", "R10", "y", "R11", "x", "R12", "off", "R3", "taps", "R5",
		"ys", "R13", "xs", "R14", "last", "R15")
	row, last, first, each, store, next := "", "", "", "FADD(<y>, <y>, <x>)", "", ""
	if k == maxTap {
		each = "FMAX(<y>, <y>, <x>)"
	}
	if k.extreme {
		setup += f.arguments("MOVD", "at", "R16", "tag", "R17")
		row, last, first = "MOVD R16, R4", "ADD R15, R16, R4", "MOVD R17, R19\nVLD1R.P 4(R19), [V<best tag>.S4]"
		compare := "FCMGT(<better>, <x>, <y>)"
		if k == firstMinTap {
			compare = "FCMGT(<better>, <y>, <x>)"
		}
		each = "VLD1R.P 4(R19), [V<tag>.S4]\n" + compare + "\nFCMEQ(<number>, <x>, <x>)\nORN(<better>, <better>, <number>)\n" +
			"BIT(<y>, <x>, <better>)\nBIT(<best tag>, <tag>, <better>)"
		store, next = "VST1.P [V<best tag>.S4], 16(R4)", "ADD R13, R16"
	}
	names := neonTapRegisters
	return routine{signature, names.in(lines(setup) + "\nrow:\n" + lines("MOVD R11, R1", "MOVD R12, R2", "MOVD R10, R9", row) +
		"\nblock:\n" + lines("CBNZ R9, taps", "ADD R15, R11, R1", "ADD R15, R12, R2", last) +
		"\ntaps:\n" + lines("MOVD R3, R6", "MOVD R5, R8", "MOVD.P 8(R6), R7", "ADD R7<<2, R2, R7", "VLD1 (R7), [V<y>.S4]", first, "B test") +
		"\ntap:\n" + encoded(names.in(lines("MOVD.P 8(R6), R7", "ADD R7<<2, R2, R7", "VLD1 (R7), [V<x>.S4]", each))) +
		"\ntest:\n" + lines("SUBS $1, R8", "BNE tap", "VST1.P [V<y>.S4], 16(R1)", store, "ADD $16, R2", "SUBS $1, R9", "BPL block",
		"ADD R13, R11", "ADD R14, R12", next, "SUBS $1, R0", "BNE row", "RET"))}
}
