//go:build !purego

package simd

// EachLevel calls f with every instruction set that the machine has in use, the largest
// first, and "go" last.
func EachLevel(f func(level string)) {
	v, w := vector, wide
	defer func() { vector, wide = v, w }()
	if w {
		f("avx512")
	}
	if wide = false; v {
		f("avx2")
	}
	vector = false
	f("go")
}
