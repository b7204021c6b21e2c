package main

import (
	"fmt"
	"strings"
)

// peakSets have loops that do nothing but fused multiply-adds of registers, none of which waits for another: what products are
// compared with. Registers are zero, since some processors are slow with other numbers that may be in them.
var peakSets = []set{
	{"peak_amd64", "Fused multiply-adds of registers.", []routine{amd64Peak("peak8", "Y", 16, 12), amd64Peak("peak16", "Z", 32, 24)}},
	{"peak_arm64", "Fused multiply-adds of registers.", []routine{peakOf("peak4", 32, 24,
		"MOVD n+0(FP), R0", "VEOR V%[1]d.B16, V%[1]d.B16, V%[1]d.B16", "VFMLA V30.S4, V31.S4, V%d.S4", "SUBS $1, R0\nBNE loop\nRET")}},
}

// peakChains is the number of multiply-adds of a round: more than a processor starts before the first one ends.
const peakChains = 24

func amd64Peak(name, register string, registers, sums int) routine {
	return peakOf(name, registers, sums, "MOVQ n+0(FP), CX", strings.ReplaceAll("VXORPS @%[1]d, @%[1]d, @%[1]d", "@", register),
		strings.ReplaceAll("VFMADD231PS @14, @15, @%d", "@", register), amd64Count+"\nVZEROUPPER\nRET")
}

// peakOf has so many sums, in the first registers that are not 14 and 15, which AVX2 has its factors in, or in all.
func peakOf(name string, registers, sums int, argument, zero, add, end string) routine {
	zeros, adds := "", ""
	for i := range registers {
		zeros += fmt.Sprintf(zero, i) + "\n"
	}
	for i := range peakChains {
		register := i % sums
		if register >= 14 {
			register += 2
		}
		adds += fmt.Sprintf(add, register) + "\n"
	}
	return routine{"func " + name + "(n int)", lines(argument, zeros) + align + "\nloop:\n" + lines(adds, end)}
}
