//go:build arm64 && !purego && levels

package simd

import "golang.org/x/sys/cpu"

// EachLevel calls f with every instruction set that the machine has, the largest first, and "go" last.
func EachLevel(f func(level string)) {
	dots, matrices := cpu.ARM64.HasASIMDDP, cpu.ARM64.HasI8MM
	defer func() { vector, neon, cpu.ARM64.HasASIMDDP, cpu.ARM64.HasI8MM = true, true, dots, matrices }()
	if matrices {
		f("neon with matrix products")
	}
	if cpu.ARM64.HasI8MM = false; dots {
		f("neon with dot products")
	}
	cpu.ARM64.HasASIMDDP = false
	f("neon")
	vector, neon = false, false
	f("go")
}
