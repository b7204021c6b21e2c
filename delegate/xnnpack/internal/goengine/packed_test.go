package goengine

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/filters"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// TestPackingEnds checks that packing ends with its context, with the cause, and that several threads pack the same as one,
// and all the same once a filter is released.
func TestPackingEnds(t *testing.T) {
	for name, g := range largeFilters() {
		t.Run(name, func(t *testing.T) {
			s, err := g.Declared()
			if err != nil {
				t.Fatal(err)
			}
			for i := range g.Nodes {
				g.Nodes[i].At = i
			}
			reason := errors.New("no longer wanted")
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(reason)
			if p, err := filters.NewPacking(g, s, nil).Pack(ctx, 2); p != nil || !errors.Is(err, reason) {
				t.Errorf("got %v and %v, want %v", p, err, reason)
			}
			var outputs [2][]float64
			for k, threads := range []int{1, 3} {
				done := 0
				p, err := filters.NewPacking(g, s, func(*graph.Node) bool { done++; return threads > 1 }).Pack(context.Background(), threads)
				if err != nil {
					t.Fatal(err)
				}
				if done == 0 {
					t.Error("no filter is released")
				}
				m := &Image{Compilation: &graph.Compilation{Graph: g, Shapes: s}}
				m.packOnce.Do(func() { m.packed = p })
				args := graphtest.NewMaker(3).Arguments(g)
				if err := newUnit(m, delegate.Instance{}).Execute(t.Context(), args); err != nil {
					t.Fatal(err)
				}
				outputs[k] = graphtest.NumbersOf(args[1].Tensor)
			}
			for i, want := range outputs[0] {
				if got := outputs[1][i]; got != want && want == want {
					t.Fatalf("element %d: %v packed by three threads, %v by one", i, got, want)
				}
			}
		})
	}
}

// TestPackingLimits checks for all kinds of filters that packed ones are counted in full, and that nothing is packed, or
// stored, beyond a limit.
func TestPackingLimits(t *testing.T) {
	for name, g := range largeFilters() {
		own := compilation(t, g)
		m, err := NewImage(t.Context(), own, graph.WeightsCache{})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		needs := m.Needs()
		if n := int64(len(panelsOf(m))); n > needs.Weights || n < needs.Weights/4 {
			t.Errorf("%s: panels of %d bytes, counted as %d", name, n, needs.Weights)
		}
		for _, less := range []int64{0, 1} {
			own.Limits, own.Release = delegate.Limits{Memory: needs.Weights + needs.Scratch - less}, func([]byte) bool { return true }
			folder := t.TempDir()
			m, err := NewImage(t.Context(), own, graph.WeightsCache{Folder: folder})
			if less == 0 && err != nil || less > 0 && !errors.Is(err, delegate.ErrMemory) {
				t.Errorf("%s: a limit of %d bytes less than needed: %v", name, less, err)
			}
			if files, _ := os.ReadDir(folder); less > 0 && len(files) > 0 {
				t.Errorf("%s: a graph beyond the limit has files %v", name, files)
			}
			if m != nil {
				m.Close()
			}
		}
	}
}
