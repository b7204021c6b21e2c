package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var integers = []struct {
	name     string
	f, plain func(dst, a, b []int32)
}{
	{"add", AddInt32, addGo[int32]},
	{"sub", SubInt32, subGo[int32]},
	{"mul", MulInt32, mulGo[int32]},
	{"max", MaxInt32, maximumGo[int32]},
	{"min", MinInt32, minimumGo[int32]},
	{"and", BitAndInt32, bitAndGo},
	{"or", BitOrInt32, bitOrGo},
	{"xor", BitXorInt32, bitXorGo},
	{"clamp", func(d, a, _ []int32) { ClampInt32(d, a, -3, 200) }, func(d, a, _ []int32) { clampGo(d, a, -3, 200) }},
	{"clamp crossed", func(d, a, _ []int32) { ClampInt32(d, a, 3, -1) }, func(d, a, _ []int32) { clampGo(d, a, 3, -1) }},
	{"abs", first(AbsInt32), first(absIntGo)},
	{"neg", first(NegInt32), first(negGo[int32])},
}

// oddIntegers are among the operands of every test.
var oddIntegers = []int32{0, 1, -1, math.MaxInt32, math.MinInt32, 1 << 16, -3, 200}

func integerOperands(r *rand.Rand, n int) []int32 {
	x := make([]int32, n)
	for i := range x {
		if x[i] = int32(r.Uint32()); r.IntN(2) == 0 {
			x[i] = oddIntegers[r.IntN(len(oddIntegers))]
		}
	}
	return x
}

func TestInt32(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 40 {
		for _, c := range integers {
			a, b := integerOperands(r, n), integerOperands(r, n)
			got, want := make([]int32, n+lanes), make([]int32, n)
			c.f(got[:n], a, b)
			c.plain(want, a, b)
			c.f(a, a, b) // in place
			for i, w := range want {
				if got[i] != w || a[i] != w {
					t.Fatalf("%s, element %d of %d: got %d and %d in place, want %d", c.name, i, n, got[i], a[i], w)
				}
			}
			if i := slices.IndexFunc(got[n:], func(v int32) bool { return v != 0 }); i >= 0 {
				t.Fatalf("%s of %d elements: wrote %d at %d", c.name, n, got[n+i], n+i)
			}
		}
	}
}

func TestCompare(t *testing.T) {
	checkCompare(t, operands, []comparison[float32]{
		{"equal", Equal, equalGo[float32]}, {"not equal", NotEqual, notEqualGo[float32]},
		{"less", Less, lessGo[float32]}, {"less or equal", LessEqual, lessEqualGo[float32]},
	})
	checkCompare(t, integerOperands, []comparison[int32]{
		{"equal integers", EqualInt32, equalGo[int32]}, {"not equal integers", NotEqualInt32, notEqualGo[int32]},
		{"less integers", LessInt32, lessGo[int32]}, {"less or equal integers", LessEqualInt32, lessEqualGo[int32]},
		{"and", AndInt32, andGo}, {"or", OrInt32, orGo}, {"xor", XorInt32, xorGo}, {"nor", NorInt32, norGo},
	})
}

type comparison[C any] struct {
	name     string
	f, plain func(dst []uint8, a, b []C)
}

func checkCompare[C float32 | int32](t *testing.T, operands func(r *rand.Rand, n int) []C, comparisons []comparison[C]) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 60 {
		for _, c := range comparisons {
			a, b := operands(r, n), operands(r, n)
			for i := range b {
				if r.IntN(3) == 0 {
					b[i] = a[i]
				}
			}
			const unset = 0xa5
			got, want := slices.Repeat([]uint8{unset}, n+lanes), make([]uint8, n)
			c.f(got[:n], a, b)
			c.plain(want, a, b)
			for i, w := range want {
				if got[i] != w {
					t.Fatalf("%s, element %d of %d: got %d of %v and %v, want %d", c.name, i, n, got[i], a[i], b[i], w)
				}
			}
			if i := slices.IndexFunc(got[n:], func(v uint8) bool { return v != unset }); i >= 0 {
				t.Fatalf("%s of %d elements: wrote %d at %d", c.name, n, got[n+i], n+i)
			}
		}
	}
}
