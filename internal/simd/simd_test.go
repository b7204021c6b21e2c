package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The vector loops are compared with the Go loops at every length around their block sizes.
// Slices lie in the middle of larger ones, whose other elements must not change.

const guard = 40

// guarded is n random elements between two guards.
type guarded struct{ all, data []float32 }

func newGuarded(r *rand.Rand, n int) guarded {
	all := make([]float32, n+2*guard)
	for i := range all {
		all[i] = float32(math.NaN())
	}
	g := guarded{all, all[guard : guard+n : guard+n]}
	for i := range g.data {
		g.data[i] = r.Float32()*2 - 1
	}
	return g
}

func (g guarded) check(t *testing.T, name string) {
	t.Helper()
	for i, v := range g.all {
		if (i < guard || i >= len(g.all)-guard) && v == v {
			t.Fatalf("%s: wrote %v at %d, outside 0 to %d", name, v, i-guard, len(g.data))
		}
	}
}

// near compares results with a bound that grows with the terms of a sum.
func near(t *testing.T, name string, got, want []float32, terms int) {
	t.Helper()
	for i := range want {
		bound := 1e-6 * (1 + math.Sqrt(float64(terms))) * (1 + math.Abs(float64(want[i])))
		if got[i] == want[i] || got[i] != got[i] && want[i] != want[i] {
			continue
		}
		if d := math.Abs(float64(got[i] - want[i])); !(d <= bound) || math.IsInf(bound, 0) {
			t.Fatalf("%s: element %d: got %v, want %v, off by %g", name, i, got[i], want[i], d)
		}
	}
}

func TestMulAdd(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for m := 1; m <= 13; m++ {
		for _, n := range []int{1, 3, 4, 7, 8, 9, 15, 16, 17, 24, 31, 49, 64, 65, 130} {
			for _, k := range []int{1, 2, 5, 33} {
				for _, packed := range []bool{false, true} {
					checkMulAdd(t, r, m, n, k, packed)
				}
			}
		}
	}
}

func checkMulAdd(t *testing.T, r *rand.Rand, m, n, k int, columnMajor bool) {
	t.Helper()
	name := fmt.Sprintf("m=%d n=%d k=%d column major %v", m, n, k, columnMajor)
	ars, acs := k+r.IntN(3), 1
	if columnMajor {
		ars, acs = 1, m+r.IntN(3)
	}
	ldb, ldc := n+r.IntN(5), n+r.IntN(5)
	a, b := newGuarded(r, (m-1)*ars+(k-1)*acs+1), newGuarded(r, (k-1)*ldb+n)
	c := newGuarded(r, (m-1)*ldc+n)
	want := append([]float32(nil), c.data...)
	mulAddToGo(m, n, k, a.data, ars, acs, b.data, ldb, want, ldc, want, ldc)
	MulAdd(m, n, k, a.data, ars, acs, b.data, ldb, c.data, ldc)
	near(t, name, c.data, want, k)
	row := newGuarded(r, n)
	mulAddToGo(m, n, k, a.data, ars, acs, b.data, ldb, row.data, 0, want, ldc)
	MulAddTo(m, n, k, a.data, ars, acs, b.data, ldb, row.data, 0, c.data, ldc)
	near(t, name+" onto a row", c.data, want, k)
	c.check(t, name)
}

func TestTaps(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 200 {
		for _, taps := range []int{1, 3, 9, 25} {
			off, w := make([]int, taps), make([]float32, taps)
			for i := range off {
				off[i], w[i] = r.IntN(100), r.Float32()
			}
			x, y := newGuarded(r, n+100), newGuarded(r, n)
			want := append([]float32(nil), y.data...)
			tapsGo(want, x.data, off, w)
			addTaps(y.data, x.data, off, w)
			name := fmt.Sprintf("n=%d taps=%d", n, taps)
			near(t, name, y.data, want, taps)
			y.check(t, name)
		}
	}
}

func TestFilter(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for i := range 400 {
		f := Filter{InRows: 1 + r.IntN(20), InCols: 1 + r.IntN(40), KernelRows: 1 + r.IntN(5), KernelCols: 1 + r.IntN(5),
			Top: r.IntN(4), Left: r.IntN(4), Stride: 1 + r.IntN(3), DilateRows: 1 + r.IntN(3), DilateCols: 1 + r.IntN(3)}
		f.Rows = 1 + r.IntN(1+(f.InRows+f.Top)/f.Stride)
		f.Cols = 1 + r.IntN(1+(f.InCols+f.Left)/f.Stride)
		x, w, y := newGuarded(r, f.InRows*f.InCols), newGuarded(r, f.KernelRows*f.KernelCols), newGuarded(r, f.Rows*f.Cols)
		if i%8 == 0 { // which makes NaN of what is outside
			w.data[r.IntN(len(w.data))] = float32(math.Inf(1))
		}
		want := make([]float32, len(y.data))
		f.applyGo(want, x.data, w.data, 0.5)
		fast := f.Plan()
		f.Apply(y.data, x.data, w.data, 0.5)
		name := fmt.Sprintf("filter %d, planned %v: %+v", i, fast, f)
		near(t, name, y.data, want, f.KernelRows*f.KernelCols)
		y.check(t, name)
	}
}

func TestFill(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for n := range 80 {
		dst := newGuarded(r, n)
		Fill(dst.data, float32(n)+0.5)
		for i, v := range dst.data {
			if v != float32(n)+0.5 {
				t.Fatalf("element %d of %d: got %v, want %v", i, n, v, float32(n)+0.5)
			}
		}
		dst.check(t, fmt.Sprint(n, " elements"))
	}
}

func TestCopyRows(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for n := 1; n < 150; n++ {
		rows, ds, ss := 1+r.IntN(4), n+r.IntN(9), n+r.IntN(9)
		dst, src := newGuarded(r, (rows-1)*ds+n), newGuarded(r, (rows-1)*ss+n)
		want := append([]float32(nil), dst.data...)
		for i := range rows * n {
			want[i/n*ds+i%n] = src.data[i/n*ss+i%n]
		}
		CopyRows(dst.data, src.data, rows, n, ds, ss)
		name := fmt.Sprintf("%d rows of %d", rows, n)
		for i := range want {
			if dst.data[i] != want[i] {
				t.Fatalf("%s: element %d: got %v, want %v", name, i, dst.data[i], want[i])
			}
		}
		dst.check(t, name)
	}
}

func TestTranspose(t *testing.T) {
	for _, c := range [][4]int{{8, 8, 8, 8}, {16, 16, 16, 16}, {16, 8, 17, 31}, {8, 24, 40, 24}, {32, 16, 32, 19}} {
		checkTranspose[uint32](t, c[0], c[1], c[2], c[3])
		checkTranspose[uint16](t, c[0], c[1], c[2], c[3])
		checkTranspose[uint8](t, c[0], c[1], c[2], c[3])
		checkTranspose[uint64](t, c[0], c[1], c[2], c[3])
	}
}

func checkTranspose[T uint8 | uint16 | uint32 | uint64](t *testing.T, rows, cols, ds, ss int) {
	t.Helper()
	const outside = 251
	dst, src := make([]T, cols*ds), make([]T, (rows-1)*ss+cols)
	for i := range dst {
		dst[i] = outside
	}
	for i := range src {
		src[i] = T(i * 7)
	}
	Transpose(dst, src, rows, cols, ds, ss)
	for k, got := range dst {
		want := T(outside)
		if i, j := k%ds, k/ds; i < rows {
			want = src[i*ss+j]
		}
		if got != want {
			t.Fatalf("%d×%d, strides %d and %d: element %d: got %d, want %d", rows, cols, ds, ss, k, got, want)
		}
	}
}

func TestRows(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for n := range 150 {
		x, y := newGuarded(r, n), newGuarded(r, n)
		w, b := newGuarded(r, n), newGuarded(r, n)
		for _, f := range []struct {
			name         string
			vector, want func(dst []float32)
		}{
			{"axpy", func(d []float32) { Axpy(d, x.data, 1.5) }, func(d []float32) { axpyGo(d, x.data, 1.5) }},
			{"scale", func(d []float32) { ScaleShift(d, x.data, 1.5, .25) }, func(d []float32) { scaleShiftGo(d, x.data, 1.5, .25) }},
			{"exp", func(d []float32) { Exp(d, x.data) }, func(d []float32) { expGo(d, x.data) }},
			{"exp sum", func(d []float32) { d[:1][0] = ExpSum(d, x.data, .5) }, func(d []float32) { d[:1][0] = expSumGo(d, x.data, .5) }},
			{"center", func(d []float32) { Center(d, x.data, .5, 2, w.data, b.data) },
				func(d []float32) { centerGo(d, x.data, .5, 2, w.data, b.data) }},
			{"center only", func(d []float32) { Center(d, x.data, .5, 2, nil, nil) }, func(d []float32) { centerGo(d, x.data, .5, 2, nil, nil) }},
			{"stride 2", func(d []float32) { Stride2(d[:(n+1)/2], x.data) }, func(d []float32) { stride2Go(d[:(n+1)/2], x.data) }},
			{"dot", func(d []float32) { d[0] = Dot(x.data, y.data) }, func(d []float32) { d[0] = dotGo(x.data, y.data) }},
			{"sum", func(d []float32) { d[0] = Sum(x.data) }, func(d []float32) { d[0] = sumGo(x.data) }},
			{"squares", func(d []float32) { d[0] = SumSquares(x.data, .1) }, func(d []float32) { d[0] = SumSquaresAs[float32](x.data, .1) }},
			{"max", func(d []float32) { d[0] = Max(x.data) }, func(d []float32) { d[0] = maxGo(-inf, x.data) }},
		} {
			if n == 0 && f.name != "axpy" && f.name != "scale" {
				continue
			}
			out := newGuarded(r, n)
			want := append([]float32(nil), out.data...)
			f.vector(out.data)
			f.want(want)
			name := fmt.Sprintf("%s n=%d", f.name, n)
			near(t, name, out.data, want, n)
			out.check(t, name)
		}
	}
}

func TestNormRows(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	lengths := []int{127, 128, 255, 256, 257, 264} // around longRow
	for n := 1; n <= 200; n++ {
		lengths = append(lengths, n)
	}
	for _, n := range lengths {
		rows := 1 + r.IntN(4)
		x, w, b := newGuarded(r, rows*n), newGuarded(r, n), newGuarded(r, n)
		name := fmt.Sprintf("%d rows of %d", rows, n)

		soft, want := newGuarded(r, rows*n), make([]float32, rows*n)
		SoftmaxRows(soft.data, x.data, n)
		softmaxByRow(want, x.data, n)
		near(t, "softmax "+name, soft.data, want, n)
		soft.check(t, name)
		copy(soft.data, x.data)
		SoftmaxRows(soft.data, soft.data, n)
		near(t, "softmax in place, "+name, soft.data, want, n)

		y, mean, rstd := newGuarded(r, rows*n), newGuarded(r, rows), newGuarded(r, rows)
		wantMean, wantRstd := make([]float32, rows), make([]float32, rows)
		NormRows(y.data, x.data, n, mean.data, rstd.data, w.data, b.data, 0.1)
		normByRow(want, x.data, n, wantMean, wantRstd, w.data, b.data, 0.1)
		near(t, "norm "+name, y.data, want, n)
		near(t, "mean "+name, mean.data, wantMean, n)
		near(t, "rstd "+name, rstd.data, wantRstd, n)
		for _, g := range []guarded{y, mean, rstd} {
			g.check(t, name)
		}
		copy(y.data, x.data)
		NormRows(y.data, y.data, n, mean.data, rstd.data, w.data, b.data, 0.1)
		near(t, "norm in place, "+name, y.data, want, n)
	}
}

// Rows in place have the same bytes, also if they are computed in parts.
func TestSoftmaxRowsInPlace(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 11))
	for _, n := range []int{1, 5, 16, 17, 100, 256, 257, 600} {
		x, want := newGuarded(r, n*(1+2048/n)), []float32(nil)
		want = append(want, x.data...)
		SoftmaxRows(want, x.data, n)
		SoftmaxRows(x.data, x.data, n)
		if !slices.Equal(x.data, want) {
			t.Errorf("rows of %d elements differ in place", n)
		}
		x.check(t, "in place")
	}
}

func TestSoftmaxRowsWithNaN(t *testing.T) {
	for n := 1; n < 20; n++ {
		for i := range n {
			x := make([]float32, n)
			x[i] = float32(math.NaN())
			SoftmaxRows(x, x, n)
			for j, v := range x {
				if v == v {
					t.Fatalf("NaN at %d of %d: element %d is %v", i, n, j, v)
				}
			}
		}
	}
}

// TestExpSumFlushes checks that a sum's terms are never subnormal.
func TestExpSumFlushes(t *testing.T) {
	x := make([]float32, 40)
	for i := range x {
		x[i] = -86 - float32(i)*0.1
	}
	y := make([]float32, len(x))
	ExpSum(y, x, 0)
	for i, v := range y {
		want := exp32(x[i])
		if want < 0x1p-126 {
			want = 0
		}
		if math.Abs(float64(v-want)) > 1e-6*float64(want) {
			t.Fatalf("exp(%v): got %v, want %v", x[i], v, want)
		}
	}
}

func TestExtremes(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	inf := float32(math.Inf(1))
	for _, e := range []struct {
		name   string
		f      func([]float32) float32
		plain  func(float32, []float32) float32
		beaten float32 // by any other number
	}{{"max", Max, maxGo, -inf}, {"min", Min, minGo, inf}} {
		for n := range 75 {
			x := newGuarded(r, n).data
			if got, want := e.f(x), e.plain(e.beaten, x); got != want {
				t.Fatalf("%s of %d: got %v, want %v", e.name, n, got, want)
			}
			for i := range n {
				was := x[i]
				x[i] = float32(math.NaN())
				if m := e.f(x); m == m {
					t.Fatalf("%s: NaN at %d of %d: got %v", e.name, i, n, m)
				}
				if x[i] = -2 * e.beaten; e.f(x) != x[i] {
					t.Fatalf("%s: %v at %d of %d: got %v", e.name, x[i], i, n, e.f(x))
				}
				if x[i] = e.beaten; e.f(x[i:i+1]) != x[i] {
					t.Fatalf("%s of %v: got %v", e.name, x[i], e.f(x[i:i+1]))
				}
				x[i] = was
			}
		}
	}
}

// TestExp compares both implementations with float64, in units of the last place.
func TestExp(t *testing.T) {
	xs := []float32{0, 1, -1, 88.7, 88.72284, 88.8, 1e30, -87.3, -88, -100, -103.9, -104, -1e30,
		float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	for x := float32(-104); x < 89; x += 0.0137 {
		xs = append(xs, x)
	}
	got := make([]float32, len(xs))
	for name, f := range map[string]func(dst, src []float32){"exported": Exp, "go": expGo} {
		f(got, xs)
		for i, x := range xs {
			want := float32(math.Exp(float64(x)))
			if got[i] == want || want != want && got[i] != got[i] {
				continue
			}
			ulp := math.Nextafter32(want, float32(math.Inf(1))) - want
			if d := math.Abs(float64(got[i]-want)) / float64(ulp); !(d <= 1) {
				t.Fatalf("%s: exp(%v): got %v, want %v, off by %v ulp", name, x, got[i], want, d)
			}
		}
	}
}
