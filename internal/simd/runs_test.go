package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestMulAddRuns compares products of rows that are several runs with sums in order, at every level. What lies
// between runs is NaN.
func TestMulAddRuns(t *testing.T) {
	EachLevel(func(level string) {
		r := rand.New(rand.NewPCG(31, 2))
		for range 600 {
			m, n, runs, k := 1+r.IntN(35), 1+r.IntN(70), 1+r.IntN(4), 1+r.IntN(40)
			run, ldc := k+r.IntN(5), n+r.IntN(5)
			ars := (runs-1)*run + k + r.IntN(3)
			if runs == 1 || run == k {
				ars = 1 + r.IntN(2*k) // rows may share elements
			}
			a, from, c := newGuarded(r, (m-1)*ars+(runs-1)*run+k), newGuarded(r, n), newGuarded(r, (m-1)*ldc+n)
			if ars >= runs*run {
				markGaps(a.data, m, runs, k, ars, run)
			}
			name := fmt.Sprintf("%s m=%d n=%d runs=%d k=%d run=%d ars=%d", level, m, n, runs, k, run, ars)
			src := newGuarded(r, runs*k*n)
			want := append([]float32(nil), c.data...)
			mulAddRunsGo(m, n, runs, k, a.data, ars, run, src.data, from.data, want, ldc, -0.4, 0.4)
			MulAddRuns(m, n, runs, k, a.data, ars, run, src.data, n, from.data, 0, c.data, ldc, -0.4, 0.4, 0)
			near(t, name, c.data, want, runs*k)
			checkInterleaved(t, r, name+" interleaved", m, min(n, MaxInterleaved), n, runs, k, a.data, ars, run, src.data, ldc)
			c.check(t, name)
		}
	})
}

// checkInterleaved checks the first n columns of src, packed by rows and by columns.
func checkInterleaved(t *testing.T, r *rand.Rand, name string, m, n, pitch, runs, k int, a []float32, ars, run int, src []float32, ldc int) {
	t.Helper()
	from, c, b := newGuarded(r, n), newGuarded(r, (m-1)*ldc+n), newGuarded(r, InterleavedSize(runs, k))
	narrow, turned := make([]float32, runs*k*n), make([]float32, runs*k*n)
	for p := range runs * k {
		for j := range n {
			narrow[p*n+j], turned[j*runs*k+p] = src[p*pitch+j], src[p*pitch+j]
		}
	}
	PackInterleaved(b.data, src, n, runs, k, pitch, 1)
	other := make([]float32, len(b.data))
	PackInterleaved(other, turned, n, runs, k, 1, runs*k)
	near(t, name+" packed by columns", other, b.data, 0)
	want := append([]float32(nil), c.data...)
	mulAddRunsGo(m, n, runs, k, a, ars, run, narrow, from.data, want, ldc, -0.4, 0.4)
	MulAddInterleaved(m, n, runs, k, a, ars, run, b.data, from.data, 0, c.data, ldc, -0.4, 0.4)
	near(t, name, c.data, want, runs*k)
	c.check(t, name)
	b.check(t, name)
	copy(want, c.data)
	MulAddInterleaved(m, n, runs, k, a, ars, run, b.data, c.data, ldc, c.data, ldc, -3, 3)
	mulAddClampGo(m, n, 0, nil, 0, 1, nil, n, want, ldc, want, ldc, -3, 3)
	for i := range runs {
		mulAddToGo(m, n, k, a[i*run:], ars, 1, narrow[i*k*n:], n, want, ldc, want, ldc)
	}
	clampRows(want, m, n, ldc, -3, 3)
	near(t, name+" onto c", c.data, want, runs*k)
}

func clampRows(c []float32, m, n, ldc int, lo, hi float32) {
	for i := range m {
		clampGo(c[i*ldc:][:n], c[i*ldc:][:n], lo, hi)
	}
}

// markGaps sets the elements between runs of k elements to NaN.
func markGaps(a []float32, m, runs, k, ars, run int) {
	used := make([]bool, len(a))
	for i := range m {
		for q := range runs {
			for p := range k {
				used[i*ars+q*run+p] = true
			}
		}
	}
	for i := range a {
		if !used[i] {
			a[i] = float32(math.NaN())
		}
	}
}

func mulAddRunsGo(m, n, runs, k int, a []float32, ars, run int, b, from, c []float32, ldc int, lo, hi float32) {
	for i := range m {
		copy(c[i*ldc:][:n], from)
	}
	for i := range runs {
		mulAddToGo(m, n, k, a[i*run:], ars, 1, b[i*k*n:], n, c, ldc, c, ldc)
	}
	clampRows(c, m, n, ldc, lo, hi)
}

// BenchmarkInterleaved compares products of few columns with those of other tiles.
func BenchmarkInterleaved(b *testing.B) {
	for _, s := range [][4]int{{56, 4, 1, 24}, {48, 3, 3, 48}, {112, 4, 3, 9}, {49, 1, 1, 64}} {
		m, n, runs, k := s[0], s[1], s[2], s[3]
		x, y, z := make([]float32, m*k*runs), make([]float32, runs*k*16), make([]float32, m*n)
		versus(b, fmt.Sprintf("%dx%dx%dx%d", m, n, runs, k), m*n*k*runs,
			func() { MulAddInterleaved(m, n, runs, k, x, k*runs, k, y, z, 0, z, n, -inf, inf) },
			func() { MulAddRuns(m, n, runs, k, x, k*runs, k, y, 16, z, 0, z, n, -inf, inf, 0) })
	}
}

// BenchmarkCopyRows compares copies of rows with calls of copy.
func BenchmarkCopyRows(b *testing.B) {
	for _, n := range []int{8, 24, 48, 128} {
		const rows = 200
		dst, src := make([]float32, 2*n*rows), make([]float32, n*rows)
		versus(b, named("CopyRows", n), rows*n, func() { CopyRows(dst, src, rows, n, 2*n, n) }, func() {
			for i := range rows {
				copy(dst[2*i*n:][:n], src[i*n:])
			}
		})
	}
}
