//go:build purego || !(amd64 || (arm64 && levels))

package simd

// EachLevel calls f with every instruction set that the machine has in use.
func EachLevel(f func(level string)) { f(level) }
