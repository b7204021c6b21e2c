//go:build !purego

package simd

import "testing"

// EachLevel calls f with every instruction set that the machine has in use, the largest
// first, and "go" last.
func EachLevel(f func(level string)) {
	v, w, n := vector, avx512, avxVNNI
	defer func() { vector, avx512, avxVNNI = v, w, n }()
	if w {
		f("avx512")
	}
	if avx512 = false; n {
		f("avx2 with VNNI")
	}
	if avxVNNI = false; v {
		f("avx2")
	}
	vector = false
	f("go")
}

// Versus measures f at the machine's level and without vectors.
func Versus(b *testing.B, name string, elements int, f func()) {
	versus(b, name, elements, f, func() {
		v, w := vector, avx512
		vector, avx512 = false, false
		f()
		vector, avx512 = v, w
	})
}
