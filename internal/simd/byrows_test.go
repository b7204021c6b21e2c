package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

var byRowsFunctions = []struct {
	name string
	f    func(dst, a, b []float32, n int)
	of   func(x, v float32) float32
}{
	{"AddRows", AddRows, func(x, v float32) float32 { return x + v }},
	{"SubRows", SubRows, func(x, v float32) float32 { return x - v }},
	{"MulRows", MulRows, func(x, v float32) float32 { return x * v }},
	{"DivRows", DivRows, func(x, v float32) float32 { return x / v }},
}

// TestByRows compares rows of every length around the block sizes with plain loops, also in place.
func TestByRows(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 5))
	for _, p := range byRowsFunctions {
		for n := 1; n <= 75; n++ {
			for _, rows := range []int{0, 1, 3} {
				a, b, y := newGuarded(r, rows*n), operands(r, rows+1), newGuarded(r, rows*n)
				want := make([]float32, rows*n)
				for i := range want {
					want[i] = p.of(a.data[i], b[i/n])
				}
				p.f(y.data, a.data, b, n)
				p.f(a.data, a.data, b, n)
				for name, got := range map[string]guarded{"": y, ", in place": a} {
					checkRows(t, fmt.Sprintf("%s, %d rows of %d%s", p.name, rows, n, name), got, want)
				}
			}
		}
		for name, f := range map[string]func(){
			"a short operand":   func() { p.f(make([]float32, 20), make([]float32, 19, 20), make([]float32, 2), 10) },
			"too few numbers":   func() { p.f(make([]float32, 20), make([]float32, 20), make([]float32, 1, 2), 10) },
			"an incomplete row": func() { p.f(make([]float32, 20), make([]float32, 20), make([]float32, 4), 9) },
		} {
			if recovered(f) == nil {
				t.Errorf("%s with %s: no panic", p.name, name)
			}
		}
	}
	y := make([]float32, 9)
	if AddRows(y, []float32{1, 2, 3, 4, 5, 6, 7, 8, float32(math.NaN())}, []float32{1}, 9); y[8] == y[8] || y[7] != 9 {
		t.Errorf("got %v for a row that ends with NaN", y)
	}
}

func BenchmarkByRows(b *testing.B) {
	const rows = 16
	for _, n := range benchmarkLengths {
		dst, x, v := make([]float32, rows*n), make([]float32, rows*n), make([]float32, rows)
		for i := range x {
			x[i], v[i%rows] = float32(i%13)-6, 1.5
		}
		for _, p := range byRowsFunctions {
			versus(b, named(p.name, n), rows*n, func() { p.f(dst, x, v, n) }, func() { byRowsGo(dst, x, v, n, p.of) })
		}
	}
}
