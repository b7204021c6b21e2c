package filters

import (
	"context"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// TestPackingContinues checks that packing ends all the same once a filter is released, although its context ends, and
// that a panic in another goroutine is one of the caller.
func TestPackingContinues(t *testing.T) {
	w := &partition{release: func(*graph.Node) bool { return true }}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w.nodes, w.total = make([]packedNode, 2), 8*goroutineElements
	ran := 0
	for i := range w.nodes {
		w.nodes[i].finish, w.last = cancel, &w.nodes[i]
		w.part(0, func() { ran++ })
	}
	if err := w.run(ctx, 1); err != nil || ran != 2 {
		t.Errorf("got %v after %d parts, want both: the first filter was released", err, ran)
	}
	w = &partition{release: func(*graph.Node) bool { return false }, nodes: make([]packedNode, 1), total: 8 * goroutineElements}
	w.last = &w.nodes[0]
	for range 4 {
		w.part(0, func() { panic("planted") })
	}
	func() {
		defer func() {
			if fault := recover(); fault != "planted" {
				t.Errorf("got panic %v, want the part's", fault)
			}
		}()
		_ = w.run(context.Background(), 3)
	}()
}
