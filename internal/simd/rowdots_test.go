package simd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRowDots compares with the loop in Go, and wants each sum to have the bits that it has alone.
func TestRowDots(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, k := range []int{0, 1, 7, 8, 9, 16, 23, 24, 33, 64, 72, 128} {
		for m := 1; m <= 8; m++ {
			for _, n := range []int{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 31, 33, 70} {
				checkRowDots(t, r, m, n, k)
			}
		}
	}
}

func checkRowDots(t *testing.T, r *rand.Rand, m, n, k int) {
	t.Helper()
	name := fmt.Sprintf("m=%d n=%d k=%d", m, n, k)
	lda, ldb, ldc := k+r.IntN(3), k+r.IntN(5), n+r.IntN(5)
	a, b, c := newGuarded(r, (m-1)*lda+k), newGuarded(r, (n-1)*ldb+k), newGuarded(r, (m-1)*ldc+n)
	want := slices.Clone(c.data)
	rowDotsGo(m, n, k, a.data, lda, b.data, ldb, want, ldc)
	RowDots(m, n, k, a.data, lda, b.data, ldb, c.data, ldc)
	near(t, name, c.data, want, k)
	c.check(t, name)
	for i := range m {
		for j := range n {
			var alone [1]float32
			RowDots(1, 1, k, a.data[i*lda:], lda, b.data[j*ldb:], ldb, alone[:], 1)
			if got := c.data[i*ldc+j]; got != alone[0] {
				t.Fatalf("%s: sum (%d, %d) is %v, alone %v", name, i, j, got, alone[0])
			}
		}
	}
}

func BenchmarkRowDots(b *testing.B) {
	const n = 128
	for _, k := range []int{64, 128} {
		for _, m := range []int{1, 2, 3, 4, 8, 16, 32} {
			a, keys, c, work := make([]float32, m*k), make([]float32, 3*n*k), make([]float32, m*n), make([]float32, k*n)
			versus(b, named(fmt.Sprint("RowDots/", k), m), m*n*k, func() { RowDots(m, n, k, a, k, keys, 3*k, c, n) }, func() {
				for j := 0; j < n; j += PanelCols {
					Transpose(work, keys[j*3*k:], PanelCols, k, PanelCols, 3*k)
					MulAddTo(m, PanelCols, k, a, k, 1, work, PanelCols, work, 0, c[j:], n)
				}
			})
		}
	}
}
