package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestWide(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	for n := range 70 {
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
			{"sum", SumWide(x), sumWideGo(x)},
			{"squares", SquaresWide(x, 0.3), squaresWideGo(x, 0.3)},
		} {
			if math.Abs(f.got-f.want) > 1e-13 {
				t.Fatalf("%s of %d: got %v, want %v", f.name, n, f.got, f.want)
			}
		}
		scanned, scan := newGuarded(r, n), make([]float32, n)
		ScanWide(scanned.data, x)
		scanWideGo(scan, x, 0)
		scanned.check(t, "scan")
		near(t, "scan", scanned.data, scan, 1)
		AddWide(sums, x)
		addWideGo(want, x)
		AddSquaresWide(sums, x, mean)
		addSquaresWideGo(want, x, mean)
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
