package xnnpack

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/etrun-go/etrun/delegate"
)

// largeFilters are graphs of one product with a filter of a million elements, one for each form in which filters are
// packed.
func largeFilters() map[string]*graph {
	connected := func(in, filter, bias datatype) *graph {
		m := newMaker(5)
		x, f, b, y := m.input(fp32, 4, 1024), m.constant(filter, 0, 1024, 1024), m.constant(bias, 0, 1024), m.value(fp32, 1)
		if in == qdint8 {
			x = m.quantized(x, 1)
		}
		m.node("FullyConnected", []int{x, f, b}, []int{y})
		return m.fix(y)
	}
	return map[string]*graph{
		"floats":                 connected(fp32, fp32, fp32),
		"bytes":                  connected(qdint8, qcint8, fp32),
		"4 bits":                 connected(qdint8, qcint4, fp32),
		"4 bits in groups":       connected(qdint8, qbint4, fp32),
		"floats by bytes":        connected(fp32, qcint8, fp32),
		"floats by 4 bits":       connected(fp32, qcint4, fp32),
		"floats by 16-bit ones":  connected(fp32, bf16, fp32),
		"a convolution of bytes": convolutionGraph8(),
	}
}

func convolutionGraph8() *graph {
	m := newMaker(5)
	x, f, b, y := m.input(qint8, 1, 6, 6, 256), m.constant(qcint8, 0, 512, 3, 3, 256), m.constant(qcint32, 0, 512), m.value(qint8, 1)
	m.node("Conv2d", []int{x, f, b}, []int{y}, func(n *node) {
		*n.window() = window{kernelH: 3, kernelW: 3, strideH: 1, strideW: 1, dilationH: 1, dilationW: 1, groups: 1, groupIn: 256, groupOut: 512}
	})
	return m.fix(y)
}

// TestFirstRunPacksNothing checks that the first run of a unit allocates less than a filter has bytes: all filters were
// packed when the graph was compiled, and units share them.
func TestFirstRunPacksNothing(t *testing.T) {
	for name, g := range largeFilters() {
		t.Run(name, func(t *testing.T) {
			img, err := compile(t, encode(g), EngineGo)
			if err != nil {
				t.Fatal(err)
			}
			defer img.Close()
			args := newMaker(1).arguments(img.(*image).graph)
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
			s, err := g.declared()
			if err != nil {
				t.Fatal(err)
			}
			for i := range g.Nodes {
				g.Nodes[i].at = i
			}
			reason := errors.New("no longer wanted")
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(reason)
			if p, err := packConstants(g, ctx, s, 2, func(*node) bool { return false }); p != nil || !errors.Is(err, reason) {
				t.Errorf("got %v and %v, want %v", p, err, reason)
			}
			var outputs [2][]float64
			for k, threads := range []int{1, 3} {
				done := 0
				p, err := packConstants(g, context.Background(), s, threads, func(*node) bool { done++; return false })
				if err != nil {
					t.Fatal(err)
				}
				if done == 0 {
					t.Error("no filter is released")
				}
				m := &goImage{compilation: &compilation{graph: g, shapes: s}}
				m.packOnce.Do(func() { m.packed = p })
				args := newMaker(3).arguments(g)
				mustExecute(t, newReference(m, delegate.Instance{}), args)
				outputs[k] = numbersOf(args[1].Tensor)
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
		g.Nodes[i].at = i
	}
	s, err := g.declared()
	if err != nil {
		t.Fatal(err)
	}
	w := &packWork{release: func(*node) bool { return true }}
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
	w = &packWork{release: func(*node) bool { return false }, nodes: make([]packedNode, 1), total: 8 * goroutineElements}
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
	if p, err := packConstants(g, context.Background(), s, 2, func(*node) bool { return true }); err != nil || p == nil {
		t.Error(err)
	}
}
