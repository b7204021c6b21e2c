package plan

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/internal/pack"
)

// TestLowerBoundOfOtherPlans places random items at any offsets, as exporters with another alignment do: no sound plan is smaller
// than the bound, and the bound is that of some step.
func TestLowerBoundOfOtherPlans(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for round := range 300 {
		items := randomItems(r, 1+r.IntN(12), 10)
		places, size := make([]Place, len(items)), int64(0)
		for i, it := range items { // at the lowest free offset
			items[i].Bytes = int64(1 + r.IntN(40))
			for len(verify(items[:i+1], places[:i+1])) > 0 {
				places[i].Offset++
			}
			if it.First <= it.Last {
				size = max(size, places[i].Offset+items[i].Bytes)
			}
		}
		bound, most := pack.Pack(items).Bound, int64(0)
		for step := -1; step <= 12; step++ {
			sum := int64(0)
			for _, it := range items {
				if it.First <= step && step <= it.Last {
					sum += it.Bytes
				}
			}
			most = max(most, sum)
		}
		if bound > size || bound != most {
			t.Fatalf("round %d: bound %d, a plan of %d bytes, %d bytes are live: %+v", round, bound, size, most, items)
		}
	}
}

func TestVerifyAgreesWithBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for round := range 300 {
		items := randomItems(r, 2+r.IntN(8), 10)
		places := make([]Place, len(items))
		offsets := make([]int64, len(items))
		for i := range places {
			offsets[i] = int64(r.IntN(200))
			places[i] = Place{Offset: offsets[i]}
		}
		_, _, ok := overlap(items, offsets)
		if got := verify(items, places); (len(got) == 0) != ok {
			t.Fatalf("round %d: %v, want safe=%v; items %+v at %v", round, got, ok, items, offsets)
		}
	}
}

func TestVerifyNamesTheConflict(t *testing.T) {
	items := []pack.Item{{Bytes: 64, Last: 5}, {Bytes: 64, First: 3, Last: 9}, {Bytes: 64, First: 6, Last: 9}}
	places := []Place{{0, 0}, {0, 32}, {0, 128}}
	got := fmt.Sprint(verify(items, places))
	if want := "[storages 0 and 1 share bytes 32–64 of arena 0 at step 3]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func randomItems(r *rand.Rand, n, steps int) []pack.Item {
	items := make([]pack.Item, n)
	for i := range items {
		first := r.IntN(steps) - 1
		items[i] = pack.Item{Bytes: int64(r.IntN(100)), First: first, Last: first + r.IntN(8), Align: int64(r.IntN(2)) * 64}
	}
	return items
}

// overlap looks at every pair: the slow and obvious check.
func overlap(items []pack.Item, offsets []int64) (a, b int, ok bool) {
	for a := range items {
		for b := range a {
			if items[a].Bytes > 0 && items[b].Bytes > 0 && items[a].Overlaps(items[b]) &&
				offsets[a] < offsets[b]+items[b].Bytes && offsets[b] < offsets[a]+items[a].Bytes {
				return a, b, false
			}
		}
	}
	return 0, 0, true
}
