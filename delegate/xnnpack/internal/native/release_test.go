package native

import (
	"errors"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// TestReleaseFails compiles with memory limits that the estimate meets but the packed weights, with
// their padded last tile, exceed. Some filters are released by then, and the image reports it: another engine must not run the graph.
func TestReleaseFails(t *testing.T) {
	xnntest.Library(t)
	defer func(old int64) { keptBytes = old }(keptBytes)
	keptBytes = 0
	g, failures := graphtest.TwoLayers(false), 0
	for limit := int64(64 << 10); ; limit += 512 {
		if limit > 1<<20 {
			t.Fatal("no limit suffices for the library")
		}
		released := make(map[*byte]int)
		p := &delegate.Payload{Data: graphtest.Encode(g), Args: graphtest.ArgSpecs(g, false), Limits: delegate.Limits{Memory: limit},
			Release: func(b []byte) bool { released[&b[0]]++; return true }}
		img, err := open(p, graph.WeightsCache{}, func(error) {})
		for _, times := range released {
			if times > 1 {
				t.Fatalf("limit %d: a filter is released %d times", limit, times)
			}
		}
		if err != nil && !errors.Is(err, delegate.ErrMemory) {
			t.Fatalf("limit %d: got %v, want %v", limit, err, delegate.ErrMemory)
		}
		if img.HasReleased() != (len(released) > 0) {
			t.Fatalf("limit %d: %d filters are released, the image reports %t", limit, len(released), img.HasReleased())
		}
		img.Close()
		if err == nil {
			break
		}
		if len(released) > 0 {
			failures++
		}
	}
	if failures == 0 {
		t.Error("no limit failed after filters were released")
	}
}
