package math32

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

var functions = []struct {
	name  string
	f     func(dst, src []float32)
	exact func(float64) float64
	ulps  float64 // largest distance from the exact value
	floor float64 // values below are measured as if they were this large
}{
	{"Expm1", Expm1, math.Expm1, 0.51, 0},
	{"Sigmoid", Sigmoid, sigmoid, 0.51, 0},
	{"Tanh", Tanh, math.Tanh, 0.51, 0},
	{"Sinh", Sinh, math.Sinh, 0.51, 0},
	{"Cosh", Cosh, math.Cosh, 0.51, 0},
	{"Erf", Erf, math.Erf, 0.51, 0},
	{"GELU", GELU, func(x float64) float64 { return max(x, -1e300) / 2 * math.Erfc(-x/math.Sqrt2) }, 1, 0.5},
	{"GELUTanh", GELUTanh, func(x float64) float64 {
		return x * sigmoid(2*math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))
	}, 0.6, 0.5},
	{"Log", Log, math.Log, 0.51, 0},
	{"Log2", Log2, math.Log2, 0.51, 0},
	{"Log10", Log10, math.Log10, 0.51, 0},
	{"Log1p", Log1p, math.Log1p, 0.51, 0},
	{"Sin", Sin, math.Sin, 0.52, 0},
	{"Cos", Cos, math.Cos, 0.52, 0},
}

// samples covers all magnitudes of both signs, densely from 2^-30 to 2^10, and the special numbers.
func samples() []float32 {
	inf := float32(math.Inf(1))
	s := []float32{0, float32(math.Copysign(0, -1)), inf, -inf, float32(math.NaN()), math.Float32frombits(0x7fffffff),
		math.Float32frombits(0xffc0007f), math.SmallestNonzeroFloat32, math.MaxFloat32, -math.MaxFloat32, 1, -1}
	for bits := uint32(1); bits < 0x7f800000; {
		f := math.Float32frombits(bits)
		s = append(s, f, -f)
		if f > 0x1p-30 && f < 0x1p10 {
			bits += 997
		} else {
			bits += 99991
		}
	}
	return s
}

func TestFunctions(t *testing.T) {
	src := samples()
	dst := make([]float32, len(src))
	for _, c := range functions {
		t.Run(c.name, func(t *testing.T) {
			c.f(dst, src)
			worst, at := 0.0, 0
			for i, x := range src {
				want := c.exact(float64(x))
				d := distance(dst[i], want, c.floor)
				if d > worst {
					worst, at = d, i
				}
			}
			t.Logf("largest distance %.4f ulp, at %v", worst, src[at])
			if worst > c.ulps {
				t.Errorf("of %v: got %v, want %v, %.3f ulp away, at most %v", src[at], dst[at], c.exact(float64(src[at])), worst, c.ulps)
			}
		})
	}
}

// distance returns the distance of got from want in units in the last place of want as float32.
func distance(got float32, want, floor float64) float64 {
	if want != want || got != got {
		if want != want && got != got {
			return 0
		}
		return math.Inf(1)
	}
	if float64(got) == want || got == float32(want) {
		return 0.5
	}
	_, e := math.Frexp(max(math.Abs(want), floor))
	unit := math.Ldexp(1, max(e-24, -149))
	return math.Abs(float64(got)-want) / unit
}

func TestInPlace(t *testing.T) {
	for _, c := range functions {
		src := []float32{-3, -0.5, 0.25, 1.75, 6}
		dst := make([]float32, len(src))
		c.f(dst, src)
		c.f(src, src)
		if fmt.Sprint(src) != fmt.Sprint(dst) {
			t.Errorf("%s in place: got %v, want %v", c.name, src, dst)
		}
	}
}

// TestShort checks that a src shorter than dst panics, and nothing is written, whatever its
// capacity.
func TestShort(t *testing.T) {
	for _, c := range functions {
		dst, src := make([]float32, 5), []float32{1, 1, 1, 1, 1}
		func() {
			defer func() {
				if recover() == nil || slices.ContainsFunc(dst, func(x float32) bool { return x != 0 }) {
					t.Errorf("%s of 4 elements into 5: no panic, or wrote %v", c.name, dst)
				}
			}()
			c.f(dst, src[:4])
		}()
	}
}

// pairs returns numbers of all magnitudes, and special ones.
func pairs(n int) (a, b []float32) {
	r := rand.New(rand.NewPCG(1, 2))
	inf := float32(math.Inf(1))
	odd := []float32{0, float32(math.Copysign(0, -1)), inf, -inf, float32(math.NaN()), 1, -1, 2, 0.5, math.MaxFloat32, math.SmallestNonzeroFloat32, 3}
	one := func() float32 {
		switch r.IntN(5) {
		case 0:
			return odd[r.IntN(len(odd))]
		case 1:
			return math.Float32frombits(r.Uint32())
		case 2:
			return float32(r.IntN(200) - 100)
		}
		return float32(r.NormFloat64() * 10)
	}
	for range n {
		a, b = append(a, one()), append(b, one())
	}
	return a, b
}

func TestPow(t *testing.T) {
	a, b := pairs(200000)
	for i := range a[:50000] {
		a[i] = float32(math.Abs(float64(a[i])))
	}
	dst := make([]float32, len(a))
	Pow(dst, a, b)
	for i, got := range dst {
		want := math.Pow(float64(a[i]), float64(b[i]))
		if d := distance(got, want, 0); d > 0.51 {
			t.Fatalf("%v to the power %v: got %v, want %v, %.3f ulp away", a[i], b[i], got, want, d)
		}
	}
}

func TestMod(t *testing.T) {
	a, b := pairs(500000)
	for i := range a {
		if i%3 == 0 {
			a[i] = b[i] * float32(i%1000) // close to integer quotients
		}
		got, want := Mod(a[i], b[i]), float32(math.Mod(float64(a[i]), float64(b[i])))
		if got != want && (got == got || want == want) || math.Signbit(float64(got)) != math.Signbit(float64(want)) && want == want {
			t.Fatalf("%v mod %v: got %v, want %v", a[i], b[i], got, want)
		}
	}
}

func BenchmarkFunctions(b *testing.B) {
	src, dst := make([]float32, 512), make([]float32, 512)
	for i := range src {
		src[i] = float32(i*37%512)/50 - 5
	}
	for _, c := range functions {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				c.f(dst, src)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/elem")
		})
		b.Run(c.name+"/math", func(b *testing.B) {
			for b.Loop() {
				for i, x := range src {
					dst[i] = float32(c.exact(float64(x)))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/elem")
		})
	}
}
