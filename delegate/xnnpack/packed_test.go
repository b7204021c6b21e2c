package xnnpack

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// largeFilters are graphs of one product with a filter of a million elements, one for each form in which filters are
// packed.
func largeFilters() map[string]*graph.Graph {
	connected := func(in, filter, bias graph.Datatype) *graph.Graph {
		m := graphtest.NewMaker(5)
		x, f, b, y := m.Input(graph.FP32, 4, 1024), m.Constant(filter, 0, 1024, 1024), m.Constant(bias, 0, 1024), m.Value(graph.FP32, 1)
		if in == graph.QDInt8 {
			x = m.Quantized(x, 1)
		}
		m.Node("FullyConnected", []int{x, f, b}, []int{y})
		return m.Fix(y)
	}
	return map[string]*graph.Graph{
		"floats":                 connected(graph.FP32, graph.FP32, graph.FP32),
		"bytes":                  connected(graph.QDInt8, graph.QCInt8, graph.FP32),
		"4 bits":                 connected(graph.QDInt8, graph.QCInt4, graph.FP32),
		"4 bits in groups":       connected(graph.QDInt8, graph.QBInt4, graph.FP32),
		"floats by bytes":        connected(graph.FP32, graph.QCInt8, graph.FP32),
		"floats by 4 bits":       connected(graph.FP32, graph.QCInt4, graph.FP32),
		"floats by 16-bit ones":  connected(graph.FP32, graph.BF16, graph.FP32),
		"a convolution of bytes": convolutionGraph8(),
	}
}

func convolutionGraph8() *graph.Graph {
	m := graphtest.NewMaker(5)
	x, f, b, y := m.Input(graph.QInt8, 1, 6, 6, 256), m.Constant(graph.QCInt8, 0, 512, 3, 3, 256), m.Constant(graph.QCInt32, 0, 512), m.Value(graph.QInt8, 1)
	m.Node("Conv2d", []int{x, f, b}, []int{y}, func(n *graph.Node) {
		*n.Window() = graph.Window{KernelH: 3, KernelW: 3, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, Groups: 1, GroupIn: 256, GroupOut: 512}
	})
	return m.Fix(y)
}

// TestFirstRunPacksNothing checks that the first run of a unit allocates less than a filter has bytes: all filters were
// packed when the graph was compiled, and units share them.
func TestFirstRunPacksNothing(t *testing.T) {
	for name, g := range largeFilters() {
		t.Run(name, func(t *testing.T) {
			img, err := compile(t, graphtest.Encode(g), EngineGo)
			if err != nil {
				t.Fatal(err)
			}
			defer img.Close()
			args := graphtest.NewMaker(1).Arguments(img.(*image).Graph)
			for range 2 {
				u, err := img.Unit(delegate.Instance{})
				if err != nil {
					t.Fatal(err)
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				mustExecute(t, u, args)
				runtime.ReadMemStats(&after)
				if n := after.TotalAlloc - before.TotalAlloc; n > 1<<18 {
					t.Errorf("the first run of a unit allocates %d bytes", n)
				}
				u.Close()
			}
		})
	}
}

// TestPackingEnds checks that packing ends with its context, with the cause, and that several threads pack the same as one.
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
			if p, err := goengine.PackConstants(ctx, g, s, 2, func(*graph.Node) bool { return false }); p != nil || !errors.Is(err, reason) {
				t.Errorf("got %v and %v, want %v", p, err, reason)
			}
			var outputs [2][]float64
			for k, threads := range []int{1, 3} {
				done := 0
				p, err := goengine.PackConstants(context.Background(), g, s, threads, func(*graph.Node) bool { done++; return false })
				if err != nil {
					t.Fatal(err)
				}
				if done == 0 {
					t.Error("no filter is released")
				}
				m := &goengine.Image{Compilation: &graph.Compilation{Graph: g, Shapes: s}}
				m.PackOnce.Do(func() { m.Packed = p })
				args := graphtest.NewMaker(3).Arguments(g)
				mustExecute(t, goengine.NewUnit(m, delegate.Instance{}), args)
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

// TestPackingContinues checks that packing ends all the same once a filter is released, although its context ends, and
// that a panic in another goroutine is one of the caller.
func TestPackingContinues(t *testing.T) {
	g := largeFilters()["bytes"]
	for i := range g.Nodes {
		g.Nodes[i].At = i
	}
	s, err := g.Declared()
	if err != nil {
		t.Fatal(err)
	}
	w := &goengine.PackWork{Release: func(*graph.Node) bool { return true }}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w.Nodes, w.Total = make([]goengine.PackedNode, 2), 8*goengine.GoroutineElements
	ran := 0
	for i := range w.Nodes {
		w.Nodes[i].Finish, w.Last = cancel, &w.Nodes[i]
		w.Part(0, func() { ran++ })
	}
	if err := w.Run(ctx, 1); err != nil || ran != 2 {
		t.Errorf("got %v after %d parts, want both: the first filter was released", err, ran)
	}
	w = &goengine.PackWork{Release: func(*graph.Node) bool { return false }, Nodes: make([]goengine.PackedNode, 1), Total: 8 * goengine.GoroutineElements}
	w.Last = &w.Nodes[0]
	for range 4 {
		w.Part(0, func() { panic("planted") })
	}
	func() {
		defer func() {
			if fault := recover(); fault != "planted" {
				t.Errorf("got panic %v, want the part's", fault)
			}
		}()
		_ = w.Run(context.Background(), 3)
	}()
	if p, err := goengine.PackConstants(context.Background(), g, s, 2, func(*graph.Node) bool { return true }); err != nil || p == nil {
		t.Error(err)
	}
}
