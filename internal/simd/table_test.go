package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// pair is a function of the table and its Go implementation.
type pair[F any] struct {
	name    string
	f, pure F
}

// conversion is a conversion from or to bytes, size for each element.
type conversion[F any] struct {
	name string
	size int
	f    F
}

// twoOperands gives functions of one operand a second one.
func twoOperands[C any](list []pair[func(dst, src []C)]) (out []pair[func(dst, a, b []C)]) {
	for _, p := range list {
		out = append(out, pair[func(dst, a, b []C)]{p.name, func(dst, a, _ []C) { p.f(dst, a) }, func(dst, a, _ []C) { p.pure(dst, a) }})
	}
	return out
}

// TestTable compares every function of the table that gives the same bits at every level
// with its Go implementation.
func TestTable(t *testing.T) {
	sameInt := func(_ string, got, want int32) bool { return got == want }
	sameByte := func(_ string, got, want uint8) bool { return got == want }
	checkPairs(t, binaryFloats, operands, sameFloat)
	checkPairs(t, twoOperands(unaryFloats), operands, sameFloat)
	checkPairs(t, binaryInts, integerOperands, sameInt)
	checkPairs(t, twoOperands(unaryInts), integerOperands, sameInt)
	checkPairs(t, compareFloats, operands, sameByte)
	checkPairs(t, compareInts, integerOperands, sameByte)
	r := rand.New(rand.NewPCG(5, 6))
	for _, p := range selections {
		masked := func(f func(dst []uint32, mask []uint8, a, b []uint32)) func(dst, a, b []uint32) {
			return func(dst, a, b []uint32) {
				mask := make([]uint8, len(dst))
				for i := range mask {
					mask[i] = []uint8{0, 1, 0xff, 0x80}[(i*i+len(dst))%7%4]
				}
				f(dst, mask, a, b)
			}
		}
		wordOperands := func(r *rand.Rand, n int) (x []uint32) {
			for range n {
				x = append(x, r.Uint32())
			}
			return x
		}
		checkPair(t, r, pair[func(dst, a, b []uint32)]{p.name, masked(p.f), masked(p.pure)}, wordOperands,
			func(_ string, got, want uint32) bool { return got == want })
	}
}

// TestExponents compares functions of one operand at numbers of all exponents.
func TestExponents(t *testing.T) {
	x := allExponents(1<<14 - 3)
	got, want := make([]float32, len(x)), make([]float32, len(x))
	for _, p := range unaryFloats {
		p.f(got, x)
		p.pure(want, x)
		for i := range x {
			if !sameFloat(p.name, got[i], want[i]) {
				t.Fatalf("%s(%v), element %d of %d: got %v, want %v", p.name, x[i], i, len(x), got[i], want[i])
			}
		}
	}
}

// sameFloat wants the same number, of the same sign but for zeros of functions that choose
// between operands.
func sameFloat(name string, got, want float32) bool {
	if got != got && want != want {
		return true
	}
	chooses := strings.HasPrefix(name, "Maximum") || strings.HasPrefix(name, "Minimum") || strings.HasPrefix(name, "Clamp")
	return got == want && (want != 0 || chooses || math.Signbit(float64(got)) == math.Signbit(float64(want)))
}

func checkPairs[D, C float32 | int32 | uint32 | uint8](t *testing.T, list []pair[func(dst []D, a, b []C)],
	operands func(r *rand.Rand, n int) []C, same func(name string, got, want D) bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	for _, p := range list {
		checkPair(t, r, p, operands, same)
	}
}

// checkPair goes over lengths around those of blocks: into other memory, whose guard must
// not change, and in place where the types allow that.
func checkPair[D, C float32 | int32 | uint32 | uint8](t *testing.T, r *rand.Rand, p pair[func(dst []D, a, b []C)],
	operands func(r *rand.Rand, n int) []C, same func(name string, got, want D) bool) {
	t.Helper()
	for n := range 70 {
		a, b := operands(r, n), operands(r, n)
		for i := range b {
			if r.IntN(4) == 0 {
				b[i] = a[i]
			}
		}
		const unset = 0xa5
		got, want := slices.Repeat([]D{unset}, n+guard), make([]D, n)
		p.f(got[:n:n], a, b)
		p.pure(want, a, b)
		check := func(got []D) {
			t.Helper()
			for i, w := range want {
				if !same(p.name, got[i], w) {
					t.Fatalf("%s, element %d of %d: got %v of %v and %v, want %v", p.name, i, n, got[i], a[i], b[i], w)
				}
			}
		}
		check(got)
		if i := slices.IndexFunc(got[n:], func(v D) bool { return v != unset }); i >= 0 {
			t.Fatalf("%s of %d elements: wrote %v at %d", p.name, n, got[n+i], n+i)
		}
		if dst, ok := any(slices.Clone(a)).([]D); ok {
			p.f(dst, any(dst).([]C), b)
			check(dst)
		}
		checkShort(t, p, a, b)
	}
}

// checkShort wants a panic, and nothing written, where an operand is shorter than dst,
// however large the memory behind it is.
func checkShort[D, C float32 | int32 | uint32 | uint8](t *testing.T, p pair[func(dst []D, a, b []C)], a, b []C) {
	t.Helper()
	if len(a) == 0 {
		return
	}
	dst := make([]D, len(a))
	defer func() {
		if recover() == nil {
			t.Fatalf("%s: %d results of %d elements: no panic", p.name, len(dst), len(dst)-1)
		}
		if i := slices.IndexFunc(dst, func(v D) bool { return v != 0 }); i >= 0 {
			t.Fatalf("%s: wrote %v at %d of %d before it panicked", p.name, dst[i], i, len(dst))
		}
	}()
	p.f(dst, a[:len(a)-1], b)
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

// TestShort wants what checkShort does of the functions that are not exact or not in the
// table.
func TestShort(t *testing.T) {
	list := append(slices.Clone(allApproximations), []pair[func(dst, src []float32)]{
		{name: "Axpy", f: func(d, s []float32) { Axpy(d, s, 2) }},
		{name: "ScaleShift", f: func(d, s []float32) { ScaleShift(d, s, 2, 1) }},
		{name: "Center", f: func(d, s []float32) { Center(d, s, 2, 1, nil, nil) }},
		{name: "Center, weight", f: func(d, s []float32) { Center(d, d, 2, 1, s, nil) }},
		{name: "Center, bias", f: func(d, s []float32) { Center(d, d, 2, 1, nil, s) }},
		{name: "ExpSum", f: func(d, s []float32) { ExpSum(d, s, 0) }},
		{name: "CumSum", f: CumSum},
		{name: "Dot", f: func(d, s []float32) { Dot(d, s) }},
		{name: "SoftmaxRows", f: func(d, s []float32) { SoftmaxRows(d, s, len(d)) }},
		{name: "NormRows", f: func(d, s []float32) { NormRows(d, s, len(d), make([]float32, 1), make([]float32, 1), nil, nil, 1) }},
		{name: "Taps", f: func(d, s []float32) { addTaps(d, s[:len(s):len(s)], []int{0}, []float32{1}) }},
	}...)
	r := rand.New(rand.NewPCG(7, 8))
	for _, p := range twoOperands(list) {
		for n := 1; n < 70; n++ {
			checkShort(t, p, operands(r, n), nil)
		}
	}
	for name, f := range map[string]func(){
		"AddFloat64":              func() { AddFloat64(make([]float64, 20), make([]float32, 19, 20)) },
		"AddSquaresFloat64":       func() { AddSquaresFloat64(make([]float64, 20), make([]float32, 19, 20), make([]float64, 20)) },
		"AddSquaresFloat64, mean": func() { AddSquaresFloat64(make([]float64, 20), make([]float32, 20), make([]float64, 19, 20)) },
		"Stride2":                 func() { Stride2(make([]float32, 20), make([]float32, 38, 40)) },
		"Stride2 of integers":     func() { Stride2(make([]int32, 20), make([]int32, 38, 40)) },
		"Zip3":                    func() { Zip3(make([]float32, 59, 60), make([]float32, 20), make([]float32, 20), make([]float32, 20)) },
		"Zip3, c":                 func() { Zip3(make([]float32, 60), make([]float32, 20), make([]float32, 20), make([]float32, 19, 20)) },
		"Unzip3":                  func() { Unzip3(make([]float32, 20), make([]float32, 20), make([]float32, 20), make([]float32, 59, 60)) },
		"CopyRows":                func() { CopyRows(make([]float32, 20), make([]float32, 19, 20), 2, 10, 10, 10) },
		"FloatTo8":                func() { FloatTo8(make([]byte, 19), make([]float32, 32)) },
	} {
		if name == "FloatTo8" && !vector {
			continue
		}
		if recovered(f) == nil {
			t.Errorf("%s of a short slice: no panic", name)
		}
	}
}

func recovered(f func()) (reason any) {
	defer func() { reason = recover() }()
	f()
	return nil
}
