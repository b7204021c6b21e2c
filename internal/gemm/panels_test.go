package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func random(r *rand.Rand, n int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = r.Float32() - 0.5
	}
	return s
}

// TestPanels compares products with a sum in float64, also in parts of the columns and of
// the rows of the packed matrix.
func TestPanels(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 600 {
		m, n, k := 1+r.IntN(20), 1+r.IntN(150), r.IntN(60)
		if r.IntN(10) == 0 {
			k += 2 * Depth
		}
		row, col := n+r.IntN(3), 1
		if r.IntN(2) == 0 {
			row, col = 1, k+r.IntN(3)
		}
		lda, ldc := k+r.IntN(3), n+r.IntN(3)
		src, a, bias := random(r, k*row+n*col+1), random(r, m*lda+1), random(r, n)
		p := Pack(src, k, n, k, row, col)
		if r.IntN(2) == 0 {
			p = packIn(random(r, Size(k, n, k)+r.IntN(3)), src, k, n, k, row, col)
		}
		c, parts := random(r, m*ldc), make([]float32, m*ldc)
		untouched := append([]float32(nil), c...)
		split := r.IntN(p.Panels() + 1)
		p.Mul(m, a, lda, bias, c, ldc, -0.5, 1, 0, split)
		p.Mul(m, a, lda, bias, c, ldc, -0.5, 1, split, p.Panels())
		first := r.IntN(k/part+1) * part
		p.MulAdd(m, 0, first, a, lda, bias, 0, parts, ldc, -100, 100, 0, p.Panels())
		p.MulAdd(m, first, k-first, a[first:], lda, parts, ldc, parts, ldc, -0.5, 1, 0, p.Panels())
		for i := range c {
			name := fmt.Sprintf("%dx%dx%d, element (%d, %d)", m, n, k, i/ldc, i%ldc)
			if i%ldc >= n {
				if c[i] != untouched[i] {
					t.Fatalf("%s: written", name)
				}
				continue
			}
			want := float64(bias[i%ldc])
			for q := range k {
				want += float64(a[i/ldc*lda+q]) * float64(src[q*row+i%ldc*col])
			}
			want = min(max(want, -0.5), 1)
			if d := math.Abs(float64(c[i]) - want); d > 1e-5 {
				t.Fatalf("%s: got %v, want %v, off by %g", name, c[i], want, d)
			}
			if d := math.Abs(float64(parts[i]) - want); d > 1e-5 {
				t.Fatalf("%s in parts of %d: got %v, want %v, off by %g", name, first, parts[i], want, d)
			}
		}
	}
}

// TestPanelsOfRuns multiplies rows that are several runs, as they are, packed one behind the other and as
// a single run, by a matrix packed for runs.
func TestPanelsOfRuns(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 400 {
		m, n, runs, run := 1+r.IntN(20), 1+r.IntN(60), 1+r.IntN(4), 1+r.IntN(50)
		if r.IntN(8) == 0 {
			run += 2 * Depth / runs
		}
		k, apart := runs*run, run+r.IntN(4)
		lda := runs*apart + r.IntN(3)
		src, a, bias := random(r, k*n), random(r, m*lda), random(r, n)
		p := Pack(src, k, n, run, 1, k)
		dense, c, once, single := random(r, m*k), random(r, m*n), random(r, m*n), random(r, m*n)
		for i := range m {
			for q := range runs {
				copy(dense[i*k+q*run:], a[i*lda+q*apart:][:run])
			}
		}
		first := r.IntN(runs + 1)
		p.MulAdd(m, 0, first*run, dense, k, bias, 0, c, n, -100, 100, 0, p.Panels())
		if first < runs {
			p.MulAddRuns(m, first*run, runs-first, run, a[first*apart:], lda, apart, c, n, c, n, -0.5, 1, 0, p.Panels())
		} else {
			p.MulAdd(m, k, 0, nil, 0, c, n, c, n, -0.5, 1, 0, p.Panels())
		}
		p.Mul(m, dense, k, bias, once, n, -0.5, 1, 0, p.Panels())
		p.MulAddRuns(m, 0, 1, k, dense, k, 0, bias, 0, single, n, -0.5, 1, 0, p.Panels())
		for i := range c {
			want := float64(bias[i%n])
			for q := range k {
				want += float64(dense[i/n*k+q]) * float64(src[i%n*k+q])
			}
			want = min(max(want, -0.5), 1)
			for way, got := range map[string]float32{"in runs": c[i], "at once": once[i], "as a single run": single[i]} {
				if d := math.Abs(float64(got) - want); !(d <= 1e-5) {
					t.Fatalf("%dx%d, %d runs of %d, first %d, element (%d, %d) %s: got %v, want %v",
						m, n, runs, run, first, i/n, i%n, way, got, want)
				}
			}
		}
	}
}

// TestRunsDivideRows checks that a matrix cannot be packed in runs that do not divide its rows.
func TestRunsDivideRows(t *testing.T) {
	for _, c := range []struct {
		k, run int
		panics bool
	}{{6, 0, false}, {6, 2, false}, {6, 6, false}, {0, 3, false}, {6, 4, true}, {6, 7, true}} {
		for name, f := range map[string]func(){
			"Size": func() { Size(c.k, 3, c.run) },
			"Pack": func() { Pack(make([]float32, 3*c.k), c.k, 3, c.run, 3, 1) },
		} {
			if got := panics(f); got != c.panics {
				t.Errorf("%s of %d rows in runs of %d: panic %v, want %v", name, c.k, c.run, got, c.panics)
			}
		}
	}
}

func panics(f func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	f()
	return false
}

// TestMulTransposed compares products with the rows of a matrix with sums in float64.
func TestMulTransposed(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 300 {
		m, n, k := 1+r.IntN(9), 1+r.IntN(100), 1+r.IntN(60)
		if r.IntN(10) == 0 {
			k += 2 * Depth
		}
		lda, ldb, ldc := k+r.IntN(3), k+r.IntN(3), n+r.IntN(3)
		a, b, c, work := random(r, m*lda), random(r, n*ldb), random(r, m*ldc), make([]float32, TransposedWork(k))
		untouched := append([]float32(nil), c...)
		MulTransposed(m, n, k, a, lda, b, ldb, c, ldc, work)
		for i, got := range c {
			want := float64(untouched[i])
			if row, j := i/ldc, i%ldc; j < n {
				want = 0
				for p := range k {
					want += float64(a[row*lda+p]) * float64(b[j*ldb+p])
				}
			}
			if d := math.Abs(float64(got) - want); d > 1e-5 {
				t.Fatalf("%dx%dx%d, element (%d, %d): got %v, want %v, off by %g", m, n, k, i/ldc, i%ldc, got, want, d)
			}
		}
	}
}
