package sound

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"
)

// The transform equals its definition.
func TestTransform(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 6, 12, 25, 30, 400} {
		r := rand.New(rand.NewPCG(1, uint64(n)))
		x := make([]complex128, n)
		for i := range x {
			x[i] = complex(r.NormFloat64(), r.NormFloat64())
		}
		got := newTransform(n).run(x)
		for k := range x {
			var want complex128
			for i, v := range x {
				want += v * cmplx.Exp(complex(0, -2*math.Pi*float64(i)*float64(k)/float64(n)))
			}
			if d := cmplx.Abs(got[k] - want); d > 1e-10 {
				t.Fatalf("length %d, frequency %d: got %v, want %v, distance %g", n, k, got[k], want, d)
			}
		}
	}
}
