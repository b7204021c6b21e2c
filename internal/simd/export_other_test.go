//go:build purego || !amd64

package simd

// EachLevel calls f with every instruction set that the machine has in use.
func EachLevel(f func(level string)) { f(level) }
