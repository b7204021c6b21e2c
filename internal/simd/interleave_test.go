package simd

import (
	"math/rand/v2"
	"testing"
)

// TestInterleave compares rows put together with the definition, and wants nothing behind them to be written.
func TestInterleave(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 8))
	for n := 1; n <= 200; n++ {
		for rows := 1; rows <= 5; rows++ {
			checkInterleave(t, fillBytes[uint8](r, 6*n+40), n, rows, n+r.IntN(5))
			halves := make([]uint16, 6*n+40)
			for i := range halves {
				halves[i] = uint16(r.Uint32())
			}
			checkInterleave(t, halves, n, rows, n+r.IntN(5))
		}
	}
}

func checkInterleave[T uint8 | uint16](t *testing.T, src []T, n, rows, stride int) {
	t.Helper()
	dst := make([]T, n*rows+1)
	done := Interleave(dst, src, n, rows, stride)
	if done > n || neon && rows >= 2 && rows <= 4 && done < n-15 {
		t.Fatalf("%d rows of %d: %d are done", rows, n, done)
	}
	for i := range done {
		for j := range rows {
			if got, want := dst[i*rows+j], src[j*stride+i]; got != want {
				t.Fatalf("%d rows of %d, element %d of row %d: got %d, want %d", rows, n, i, j, got, want)
			}
		}
	}
	for i, v := range dst[done*rows:] {
		if v != 0 {
			t.Fatalf("%d rows of %d: element %d behind %d is written", rows, n, i, done)
		}
	}
}
