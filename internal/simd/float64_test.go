package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestFloat64(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	for n := range 201 {
		x := newGuarded(r, n).data
		all := make([]float64, 3*(n+2))
		for i := range all {
			all[i] = r.Float64()
		}
		sums, want, mean := all[1:n+1:n+1], append([]float64(nil), all[1:n+1]...), all[2*n+4:][:n]
		before, after := all[0], all[n+1]
		for _, f := range []struct {
			name      string
			got, want float64
		}{
			{"sum", SumFloat64(x), SumAs[float64](x)},
			{"squares", SumSquaresFloat64(x, 0.3), SumSquaresAs[float64](x, 0.3)},
		} {
			if math.Abs(f.got-f.want) > 1e-13 {
				t.Fatalf("%s of %d: got %v, want %v", f.name, n, f.got, f.want)
			}
		}
		scanned, scan := newGuarded(r, n), make([]float32, n)
		CumSum(scanned.data, x)
		cumSumGo(scan, x, 0)
		scanned.check(t, "scan")
		near(t, "scan", scanned.data, scan, 1)
		AddFloat64(sums, x)
		addFloat64Go(want, x)
		AddSquaresFloat64(sums, x, mean)
		addSquaresFloat64Go(want, x, mean)
		for i, v := range want {
			if math.Abs(sums[i]-v) > 1e-15*8 {
				t.Fatalf("n=%d: sum %d: got %v, want %v", n, i, sums[i], v)
			}
		}
		if all[0] != before || all[n+1] != after {
			t.Fatalf("n=%d: wrote outside", n)
		}
	}
}
