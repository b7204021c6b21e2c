package xnnpack

import (
	"runtime"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
)

// TestFilterMemory checks that large filters have separate pages, which remain mapped while a unit
// uses them even if the image is unreachable.
func TestFilterMemory(t *testing.T) {
	for _, cols := range []int{8, 512} {
		g := chainGraph(cols)
		img, err := compile(t, encode(g), EngineGo)
		if err != nil {
			t.Fatal(err)
		}
		m := goOf(img)
		if own := m.packed.memory != nil; own != (cols == 512) {
			t.Errorf("%d columns: separate pages: got %v, want %v", cols, own, cols == 512)
		}
		memory := m.packed.memory
		u, err := img.Unit(delegate.Instance{})
		if err != nil {
			t.Fatal(err)
		}
		args := newMaker(1).arguments(m.graph)
		mustExecute(t, u, args)
		want := numbersOf(args[1].Tensor)
		img, m = nil, nil
		for range 3 {
			runtime.GC()
		}
		clear(args[1].Tensor.Data)
		mustExecute(t, u, args)
		if got := numbersOf(args[1].Tensor); !slices.Equal(got, want) {
			t.Errorf("%d columns: got %v, want %v", cols, got, want)
		}
		u.Close()
		if memory != nil && len(memory.pages.Bytes()) == 0 {
			t.Error("filter memory is unmapped while a unit uses it")
		}
		memory.close()
		memory.close() // a second call has no effect
		if memory != nil && memory.pages.Bytes() != nil {
			t.Error("filter memory is still mapped after close")
		}
	}
}

// TestPanelElements checks that panelElements returns the size of the packed panels.
func TestPanelElements(t *testing.T) {
	for _, s := range samples(1) {
		img, err := compile(t, encode(s.graph), EngineGo)
		if err != nil {
			continue
		}
		m := goOf(img)
		for i := range m.graph.Nodes {
			n, size := &m.graph.Nodes[i], 0
			if f := m.packed.floats[i]; f != nil {
				for _, p := range f.panels {
					size += p.Size()
				}
				if want := panelElements(m.graph, n, m.shapes); size != want {
					t.Errorf("%s: got panels of %d elements, want %d", s.name, size, want)
				}
			}
		}
		img.Close()
	}
}
