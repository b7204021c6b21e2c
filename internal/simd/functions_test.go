package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/internal/math32"
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

// exact are the functions that the vector loops and the Go implementations approximate.
var exact = map[string]struct {
	f     func(float64) float64
	ulps  float64
	floor float64 // smaller values are measured as if they were this large
}{
	"Exp":              {math.Exp, 1.5, 0},
	"Sigmoid":          {func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 3, 0x1p-100}, // subnormal results may be 0
	"SiLU":             {func(x float64) float64 { return x / (1 + math.Exp(-x)) }, 4, 0x1p-93},  // 88 times as much
	"Tanh":             {math.Tanh, 4, 0},
	"GELU":             {gelu64, 4, 1},
	"GELUTanh":         {geluTanh64, 4, 1},
	"Expm1":            {math.Expm1, 4, 0},
	"ELU(1.5, 2, 0.5)": {elu64, 6, 0},
	"Erf":              {math.Erf, 4, 0},
	"Log":              {math.Log, 4, 0},
	"Log2":             {math.Log2, 4, 0},
	"Log10":            {math.Log10, 4, 0},
	"Log1p":            {math.Log1p, 4, 0},
	"Sin":              {math.Sin, 4, 0},
	"Cos":              {math.Cos, 4, 0},
}

// allApproximations are those of the table, and the two that are not in it.
var allApproximations = append(slices.Clone(approximations),
	pair[func(dst, src []float32)]{"Sin", Sin, math32.Sin}, pair[func(dst, src []float32)]{"Cos", Cos, math32.Cos})

func TestApproximate(t *testing.T) {
	x := append([]float32(nil), odd...)
	step := uint32(1009)
	if testing.Short() {
		step *= 20
	}
	for bits := uint32(0x2f800000); bits < 0x49000000; bits += step { // 2^-32 to 2^19
		x = append(x, math.Float32frombits(bits), -math.Float32frombits(bits))
	}
	x = append(x, allExponents(1<<18-15)...)
	got := make([]float32, len(x))
	for _, c := range allApproximations {
		want, ok := exact[c.name]
		if !ok {
			t.Fatalf("%s: no exact function to compare with", c.name)
		}
		c.f(got, x)
		worst, at := 0.0, 0
		for i := range x {
			if d := ulps(got[i], want.f(float64(x[i])), want.floor); d > worst {
				worst, at = d, i
			}
		}
		t.Logf("%s: at most %.2f ulp, at %v", c.name, worst, x[at])
		if worst > want.ulps {
			t.Errorf("%s(%v): got %v, want %v, %.2f ulp away, at most %v", c.name, x[at], got[at], want.f(float64(x[at])), worst, want.ulps)
		}
	}
}

// allExponents are numbers of both signs from 0 to infinity, a step of their bits apart.
func allExponents(step uint32) (x []float32) {
	for bits := uint32(0); bits <= 0x7f800000; bits += step {
		x = append(x, math.Float32frombits(bits), -math.Float32frombits(bits))
	}
	return x
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
	for _, c := range allApproximations {
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
