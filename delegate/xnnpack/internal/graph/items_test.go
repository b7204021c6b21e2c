package graph_test

import (
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// TestPackedInOrder checks that items which are alive at the same time do not overlap.
func TestPackedInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for round := range 500 {
		list, live := make([]graph.Item, 1+r.IntN(100)), int64(0)
		for i := range list {
			first := r.IntN(40)
			list[i] = graph.Item{Bytes: int64(1+r.IntN(4)) << 6, First: first, Last: first + r.IntN(20), ID: i}
			live += list[i].Bytes
		}
		size := graph.PackedInOrder(list)
		if size > live {
			t.Fatalf("round %d: %d bytes, want at most the sum, %d", round, size, live)
		}
		for i, a := range list {
			if a.Offset < 0 || a.Offset+a.Bytes > size {
				t.Fatalf("round %d: item %d: bytes %d to %d of %d", round, i, a.Offset, a.Offset+a.Bytes, size)
			}
			for k, b := range list[:i] {
				together := a.First <= b.Last && b.First <= a.Last
				if together && a.Offset < b.Offset+b.Bytes && b.Offset < a.Offset+a.Bytes {
					t.Fatalf("round %d: items %d and %d overlap: %+v, %+v", round, k, i, b, a)
				}
			}
		}
	}
}
