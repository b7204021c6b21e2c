package goengine

import (
	"runtime"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/filters"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// TestFilterMemory checks that large filters have separate pages, which remain mapped while a unit
// uses them even if the image is unreachable.
func TestFilterMemory(t *testing.T) {
	for _, cols := range []int{8, 512} {
		m := mustCompile(t, chainGraph(cols))
		if own := m.packed.Memory != nil; own != (cols == 512) {
			t.Errorf("%d columns: separate pages: got %v, want %v", cols, own, cols == 512)
		}
		memory := m.packed.Memory
		u := newUnit(m, delegate.Instance{})
		args := graphtest.NewMaker(1).Arguments(m.Graph)
		mustExecute(t, u, args)
		want := graphtest.NumbersOf(args[1].Tensor)
		m = nil
		for range 3 {
			runtime.GC()
		}
		clear(args[1].Tensor.Data)
		mustExecute(t, u, args)
		if got := graphtest.NumbersOf(args[1].Tensor); !slices.Equal(got, want) {
			t.Errorf("%d columns: got %v, want %v", cols, got, want)
		}
		u.Close()
		if memory != nil && len(memory.Bytes()) == 0 {
			t.Error("filter memory is unmapped while a unit uses it")
		}
		memory.Close()
		memory.Close() // a second call has no effect
		if memory != nil && memory.Bytes() != nil {
			t.Error("filter memory is still mapped after close")
		}
	}
}

// TestPanelElements checks that panelElements returns the size of the packed panels.
func TestPanelElements(t *testing.T) {
	blocks := graphtest.Sample{Name: "blocks of pixels", Graph: convolutionGraph32("Conv2d", 12, 14, blockWindow(1, 48, 80), 0)}
	for _, s := range append(graphtest.Samples(1), blocks) {
		m, err := compile(t, s.Graph, nil)
		if err != nil {
			continue
		}
		for i := range m.Graph.Nodes {
			n, size := &m.Graph.Nodes[i], 0
			if f := m.packed.Floats[i]; f != nil {
				for _, p := range f.Panels {
					size += p.Size()
				}
				if f.Winograd != nil {
					for _, p := range f.Winograd.Matrices {
						size += p.Size()
					}
				}
				if want := filters.PanelElements(m.Graph, n, m.Shapes); size != want {
					t.Errorf("%s: got panels of %d elements, want %d", s.Name, size, want)
				}
			}
		}
	}
}
