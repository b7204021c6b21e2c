package index

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/kerneltest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestSelectFirst checks selection against sorting, for all lengths around the
// algorithms' limits, many equal keys and inputs that defeat quicksort.
func TestSelectFirst(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{1, 2, 3, 4, 5, 15, 16, 17, 18, 40, 100, 129, 1000} {
		for _, kinds := range []uint64{1, 2, 5, 1 << 40} {
			for _, sorted := range []bool{true, false} {
				k := 1 + r.IntN(n)
				pairs := make([]pair[uint64], n)
				keys := make([]uint64, n)
				for i := range pairs {
					keys[i] = r.Uint64N(kinds)
					pairs[i] = pair[uint64]{keys[i], uint64(i)}
				}
				checkFirst(t, selectFirst(kernels.NewCtx(nil), pairs, k, sorted), keys, sorted)
			}
		}
	}
}

func checkFirst(t *testing.T, first []pair[uint64], keys []uint64, sorted bool) {
	t.Helper()
	n, k := len(keys), len(first)
	seen := make(map[uint64]bool)
	got := make([]uint64, k)
	for i, p := range first {
		if seen[p.at] || keys[p.at] != p.key {
			t.Fatalf("first %d of %d: place %d holds index %d with key %d", k, n, i, p.at, p.key)
		}
		seen[p.at] = true
		got[i] = p.key
	}
	want := slices.Sorted(slices.Values(keys))[:k]
	if !sorted {
		slices.Sort(got)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("first %d of %d, sorted %v: got keys %v, want %v", k, n, sorted, got, want)
	}
}

// TestSelectionEnds runs orders that make a median of three choose badly: the limit
// of partitions must step in.
func TestSelectionEnds(t *testing.T) {
	const n = 1 << 14
	orders := map[string]func(i int) uint64{
		"rising":     func(i int) uint64 { return uint64(i) },
		"falling":    func(i int) uint64 { return uint64(n - i) },
		"equal":      func(int) uint64 { return 3 },
		"organ pipe": func(i int) uint64 { return uint64(min(i, n-i)) },
		"killer": func(i int) uint64 { // Musser's sequence against medians of three
			switch {
			case i >= n/2:
				return uint64(2 * (i - n/2 + 1))
			case i%2 == 0:
				return uint64(i + 1)
			}
			return uint64(n/2 + i)
		},
	}
	for name, key := range orders {
		t.Run(name, func(t *testing.T) {
			for _, k := range []int{n / 100, n / 3, n} {
				pairs, keys := make([]pair[uint64], n), make([]uint64, n)
				for i := range pairs {
					keys[i] = key(i)
					pairs[i] = pair[uint64]{keys[i], uint64(i)}
				}
				checkFirst(t, selectFirst(kernels.NewCtx(nil), pairs, k, true), keys, true)
			}
		})
	}
}

// TestRadixSort holds both halves of a long key against sorting by comparisons, where
// keys are equal too.
func TestRadixSort(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{1, 2, 160, 1000} {
		for _, kinds := range []uint64{1, 3, 1 << 20, 1 << 63} {
			keys, got, want := make([]uint64, n), make([]int64, n), make([]int64, n)
			for i := range keys {
				keys[i], want[i] = r.Uint64N(kinds)*0x10001, int64(i)
			}
			slices.SortStableFunc(want, func(a, b int64) int { return cmp.Compare(keys[a], keys[b]) })
			sortHalves(kernels.NewCtx(nil), got, keys, make([]uint64, n), make([]uint64, n))
			if !slices.Equal(got, want) {
				t.Fatalf("%d keys of %d kinds: got order %v, want %v", n, kinds, got, want)
			}
		}
	}
}

// TestFewOfMany holds the way that looks at most elements in passing against the one
// that makes pairs of all: equal elements come out in the same order.
func TestFewOfMany(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, d := range []tensor.DType{tensor.Float32, tensor.BFloat16, tensor.Int32, tensor.Uint8} {
		for _, n := range []int{64, 200, 1000} {
			for _, down := range []bool{false, true} {
				x := kerneltest.Noise(r, d, []int{n}, nil)
				if xs := tensor.Data[float32](x); d == tensor.Float32 {
					for i := range xs {
						xs[i] = []float32{float32(math.NaN()), float32(math.Inf(1)), xs[i], 1, -1, 0, float32(math.Copysign(0, -1))}[r.IntN(7)]
					}
				}
				k := 1 + r.IntN(n/64)
				s := sorter{c: kernels.NewCtx(nil), dtype: d, n: n, k: k, descending: down, keys32: make([]uint32, n), pairs32: make([]pair[uint32], n), floats: make([]float32, n), wide: make([]int64, n)}
				got, want := make([]int64, k), make([]int64, k)
				s.few32(got, x.Data, span{0, n})
				s.makeKeys32(s.keys32, x.Data, span{0, n})
				first(kernels.NewCtx(nil), want, s.pairs32, s.keys32, true)
				if !slices.Equal(got, want) {
					t.Fatalf("%d of %d %v, down %v: got %v, want %v", k, n, d, down, got, want)
				}
			}
		}
	}
}
