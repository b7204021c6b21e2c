package index

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSelectFirst checks selection against sorting, for all lengths around the
// algorithms' limits, many equal keys and inputs that defeat quicksort.
func TestSelectFirst(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{1, 2, 3, 4, 5, 15, 16, 17, 18, 40, 100, 129, 1000} {
		for _, kinds := range []uint64{1, 2, 5, 1 << 40} {
			for _, sorted := range []bool{true, false} {
				k := 1 + r.IntN(n)
				pairs := make([]pair, n)
				keys := make([]uint64, n)
				for i := range pairs {
					keys[i] = r.Uint64N(kinds)
					pairs[i] = pair{keys[i], int64(i)}
				}
				checkFirst(t, selectFirst(pairs, k, sorted), keys, sorted)
			}
		}
	}
}

func checkFirst(t *testing.T, first []pair, keys []uint64, sorted bool) {
	t.Helper()
	n, k := len(keys), len(first)
	seen := make(map[int64]bool)
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
				pairs, keys := make([]pair, n), make([]uint64, n)
				for i := range pairs {
					keys[i] = key(i)
					pairs[i] = pair{keys[i], int64(i)}
				}
				checkFirst(t, selectFirst(pairs, k, true), keys, true)
			}
		})
	}
}
