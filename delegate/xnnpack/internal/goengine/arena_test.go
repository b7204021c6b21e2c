package goengine

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// chainGraph returns two fully connected nodes with an intermediate value of shape 2×cols.
func chainGraph(cols int) *graph.Graph {
	m := graphtest.NewMaker(7)
	x, a, b := m.Input(graph.FP32, 2, 64), m.Constant(graph.FP32, 0, cols, 64), m.Constant(graph.FP32, 0, 8, cols)
	h, y := m.Value(graph.FP32, 2, cols), m.Value(graph.FP32, 2, 8)
	m.Node("FullyConnected", []int{x, a, graph.None}, []int{h})
	m.Node("FullyConnected", []int{h, b, graph.None}, []int{y})
	return m.Done(y)
}

// TestArena runs several units with one scratch: they share its memory. A larger unit created later enlarges it, and the others use the
// new memory. Units that run after the scratch is closed have memory again.
func TestArena(t *testing.T) {
	scratch := new(delegate.Scratch)
	defer scratch.Close()
	check := func(t *testing.T, u *unit, g *graph.Graph) {
		t.Helper()
		args := graphtest.NewMaker(1).Arguments(g)
		mustExecute(t, u, args)
		got := graphtest.NumbersOf(args[1].Tensor)
		mustExecute(t, mustUnit(t, g, delegate.Instance{}), args)
		if want := graphtest.NumbersOf(args[1].Tensor); !slices.Equal(got, want) {
			t.Errorf("shared scratch: got %v, want %v", got, want)
		}
	}
	var units []*unit
	graphs := []*graph.Graph{chainGraph(16), chainGraph(512), chainGraph(64)}
	for _, g := range graphs {
		units = append(units, mustUnit(t, g, delegate.Instance{Scratch: scratch}))
	}
	for range 2 {
		for i, u := range units {
			check(t, u, graphs[i])
		}
	}
	shared := func(t *testing.T) {
		t.Helper()
		for i, u := range units {
			if v := u.Graph.Nodes[0].Out[0]; &u.Data[v][0] != &u.arena.bytes[0] {
				t.Errorf("unit %d: the intermediate value is not in the shared scratch", i)
			}
		}
	}
	shared(t)
	large := chainGraph(4096)
	late := mustUnit(t, large, delegate.Instance{Scratch: scratch})
	for range 2 {
		check(t, late, large)
		for i, u := range units {
			check(t, u, graphs[i])
		}
	}
	shared(t)
	pages := units[0].arena.pages
	scratch.Close()
	if pages == nil || pages.Bytes() != nil || scratch.Memory() != 0 {
		t.Errorf("after Close: pages %v, %d bytes", pages, scratch.Memory())
	}
	check(t, late, large)
	check(t, units[0], graphs[0])
	other := mustUnit(t, graphs[0], delegate.Instance{Scratch: new(delegate.Scratch)})
	check(t, other, graphs[0])
	if &other.arena.bytes[0] == &units[0].arena.bytes[0] {
		t.Error("a unit with another scratch has the same memory")
	}
}

// TestArenaDropped checks that an arena of units that nobody has closed is collected, and with it its pages.
func TestArenaDropped(t *testing.T) {
	g, collected := chainGraph(4096), make(chan bool)
	u := mustUnit(t, g, delegate.Instance{})
	mustExecute(t, u, graphtest.NewMaker(1).Arguments(g))
	runtime.AddCleanup(u.arena, func(c chan bool) { close(c) }, collected)
	u = nil
	for range 1000 {
		runtime.GC()
		select {
		case <-collected:
			return
		case <-time.After(time.Millisecond):
		}
	}
	t.Error("the arena is still reachable")
}
