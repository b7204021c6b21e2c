package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var (
	inf32 = float32(math.Inf(1))
	nan32 = float32(math.NaN())
)

// odd numbers are among the operands of every test.
var odd = []float32{0, float32(math.Copysign(0, -1)), inf32, -inf32, nan32, math.SmallestNonzeroFloat32,
	math.MaxFloat32, -math.MaxFloat32, 1, -1, 0.5, 6, -6, 88, -88, 1e-30}

// operands are n numbers, odd ones among them, in an order of their own.
func operands(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		if x[i] = float32(r.NormFloat64() * 3); r.IntN(3) == 0 {
			x[i] = odd[r.IntN(len(odd))]
		}
	}
	return x
}

// exactly holds the functions whose twins give the same bits.
var exactly = []struct {
	name     string
	f, plain func(dst, a, b []float32)
	zeros    bool // of either sign are the same
}{
	{"add", Add, addGo[float32], false},
	{"sub", Sub, subGo[float32], false},
	{"mul", Mul, mulGo[float32], false},
	{"div", Div, divGo, false},
	{"maximum", Maximum, maximumGo[float32], true},
	{"minimum", Minimum, minimumGo[float32], true},
	{"add scaled", func(d, a, b []float32) { AddScaled(d, a, b, 2.7) }, func(d, a, b []float32) { addScaledGo(d, a, b, 2.7) }, false},
	{"clamp", func(d, a, _ []float32) { Clamp(d, a, -1, 6) }, func(d, a, _ []float32) { clampGo(d, a, -1, 6) }, true},
	{"clamp crossed", func(d, a, _ []float32) { Clamp(d, a, 3, 1) }, func(d, a, _ []float32) { clampGo(d, a, 3, 1) }, true},
	{"relu", func(d, a, _ []float32) { Clamp(d, a, 0, inf32) }, func(d, a, _ []float32) { clampGo(d, a, 0, inf32) }, true},
	{"leaky relu", func(d, a, _ []float32) { LeakyReLU(d, a, 0.01) }, func(d, a, _ []float32) { leakyReLUGo(d, a, 0.01) }, false},
	{"abs", first(Abs), first(absGo), false},
	{"neg", first(Neg), first(negGo[float32]), false},
	{"sign", first(Sign), first(signGo), false},
	{"floor", first(Floor), first(floorGo), false},
	{"ceil", first(Ceil), first(ceilGo), false},
	{"trunc", first(Trunc), first(truncGo), false},
	{"round", first(Round), first(roundGo), false},
	{"reciprocal", first(Reciprocal), first(reciprocalGo), false},
	{"sqrt", first(Sqrt), first(sqrtGo), false},
	{"rsqrt", first(Rsqrt), first(rsqrtGo), false},
}

// first is a function of the first operand.
func first[C any](f func(dst, src []C)) func(dst, a, b []C) {
	return func(dst, a, _ []C) { f(dst, a) }
}

func TestSelect(t *testing.T) {
	const unset = 0xa5a5a5a5
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 40 {
		a, b, mask := make([]uint32, n), make([]uint32, n), make([]uint8, n)
		for i := range mask {
			a[i], b[i], mask[i] = r.Uint32(), r.Uint32(), []uint8{0, 1, 0xff, 0x80}[r.IntN(4)]
		}
		got, want := slices.Repeat([]uint32{unset}, n+lanes), make([]uint32, n)
		Select(got[:n], mask, a, b)
		selectGo(want, mask, a, b)
		Select(a, mask, a, b) // in place
		for i, w := range want {
			if got[i] != w || a[i] != w {
				t.Fatalf("element %d of %d: got %#x and %#x in place, want %#x", i, n, got[i], a[i], w)
			}
		}
		if i := slices.IndexFunc(got[n:], func(v uint32) bool { return v != unset }); i >= 0 {
			t.Fatalf("%d elements: wrote %#x at %d", n, got[n+i], n+i)
		}
	}
}

func TestPointwise(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 70 {
		for _, c := range exactly {
			a, b := operands(r, n), operands(r, n)
			got, want := newGuarded(r, n), make([]float32, n)
			c.f(got.data, a, b)
			c.plain(want, a, b)
			got.check(t, c.name)
			c.f(a, a, b) // in place
			for i, w := range want {
				for _, g := range []float32{got.data[i], a[i]} {
					if g != w && (g == g || w == w) || math.Signbit(float64(g)) != math.Signbit(float64(w)) && w == 0 && !c.zeros {
						t.Fatalf("%s, element %d of %d: got %v and %v in place, want %v", c.name, i, n, got.data[i], a[i], w)
					}
				}
			}
		}
	}
}

func gelu64(x float64) float64 { return max(x, -1e300) / 2 * math.Erfc(-x/math.Sqrt2) }

func geluTanh64(x float64) float64 {
	return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

func elu64(x float64) float64 {
	if x > 0 {
		return x * 0.5
	}
	return 1.5 * math.Expm1(2*x)
}

// approximate holds the functions whose twins round otherwise.
var approximate = []struct {
	name  string
	f     func(dst, src []float32)
	exact func(float64) float64
	ulps  float64
	floor float64 // smaller values are measured as if they were this large
}{
	{"sigmoid", Sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 3, 0x1p-100}, // subnormal results may be 0
	{"tanh", Tanh, math.Tanh, 4, 0},
	{"gelu", GELU, gelu64, 4, 1},
	{"gelu tanh", GELUTanh, geluTanh64, 4, 1},
	{"expm1", Expm1, math.Expm1, 4, 0},
	{"elu", func(d, s []float32) { ELU(d, s, 1.5, 2, 0.5) }, elu64, 6, 0},
	{"erf", Erf, math.Erf, 4, 0},
	{"log", Log, math.Log, 4, 0},
	{"log2", Log2, math.Log2, 4, 0},
	{"log10", Log10, math.Log10, 4, 0},
	{"log1p", Log1p, math.Log1p, 4, 0},
	{"sin", Sin, math.Sin, 4, 0},
	{"cos", Cos, math.Cos, 4, 0},
}

func TestApproximate(t *testing.T) {
	x := append([]float32(nil), odd...)
	step := uint32(1009)
	if testing.Short() {
		step *= 20
	}
	for bits := uint32(0x2f800000); bits < 0x49000000; bits += step { // 2^-32 to 2^19
		x = append(x, math.Float32frombits(bits), -math.Float32frombits(bits))
	}
	got := make([]float32, len(x))
	for _, c := range approximate {
		c.f(got, x)
		worst, at := 0.0, 0
		for i := range x {
			if d := ulps(got[i], c.exact(float64(x[i])), c.floor); d > worst {
				worst, at = d, i
			}
		}
		t.Logf("%s: at most %.2f ulp, at %v", c.name, worst, x[at])
		if worst > c.ulps {
			t.Errorf("%s(%v): got %v, want %v, %.2f ulp away, at most %v", c.name, x[at], got[at], c.exact(float64(x[at])), worst, c.ulps)
		}
	}
}

// ulps is the distance of got from want in units of want's last place.
func ulps(got float32, want, floor float64) float64 {
	switch {
	case got != got && want != want, float64(got) == want, got == float32(want):
		return 0
	case got != got || want != want || math.IsInf(float64(got), 0):
		return math.Inf(1)
	}
	_, e := math.Frexp(max(math.Abs(want), floor))
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(e-24, -149))
}

// TestPlaceDoesNotMatter computes an element at every place of slices of every length.
func TestPlaceDoesNotMatter(t *testing.T) {
	for _, c := range approximate {
		const at = 1.2345
		var one [1]float32
		c.f(one[:], []float32{at})
		for n := range 20 {
			x := make([]float32, n)
			for i := range x {
				x[i] = at
			}
			c.f(x, x)
			for i := range x {
				if x[i] != one[0] {
					t.Fatalf("%s, element %d of %d: got %v, alone %v", c.name, i, n, x[i], one[0])
				}
			}
		}
	}
}

func BenchmarkPointwise(b *testing.B) {
	const n = 512
	x, y, z := make([]float32, n), make([]float32, n), make([]float32, n)
	for i := range x {
		x[i], y[i] = float32(i%97)/10-5, float32(i%89)/10+1
	}
	run := func(name string, f func()) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/element")
		})
	}
	for _, c := range exactly {
		run(c.name, func() { c.f(z, x, y) })
		run(fmt.Sprint(c.name, " go"), func() { c.plain(z, x, y) })
	}
	for _, c := range approximate {
		run(c.name, func() { c.f(z, x) })
	}
}
