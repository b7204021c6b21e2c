package native

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// TestProfilingInTurn switches profiling at random between runs of changing sizes. The outputs equal
// those of a unit without profiling, a profile exists only if it was enabled, and no runtime is
// replaced.
func TestProfilingInTurn(t *testing.T) {
	xnntest.Library(t)
	m := graphtest.NewMaker(8)
	x := m.Input(graph.FP32, 1, 12, 12, 3)
	f, b, y := m.Constant(graph.FP32, 0, 4, 3, 3, 3), m.Constant(graph.FP32, 0, 4), m.Value(graph.FP32, 1, 10, 10, 4)
	m.Node("Conv2d", []int{x, f, b}, []int{y}, graphtest.WithWindow(graph.Window{KernelH: 3, KernelW: 3, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1,
		Groups: 1, GroupIn: 3, GroupOut: 4}))
	z := m.Value(graph.FP32, 1, 10, 10, 4)
	m.Node("Abs", []int{y}, []int{z})
	graph := m.Done(z)
	timed, g := mustUnit(t, graph)
	plain, _ := mustUnit(t, graph)
	r := rand.New(rand.NewPCG(1, 1))
	sizes := [][]int{{1, 12, 12, 3}, {1, 5, 7, 3}, {3, 4, 4, 3}}
	var runtimes [2]xnn.Runtime
	for round := range 60 {
		on := r.IntN(2) == 1
		if err := timed.SetProfiling(on); err != nil {
			t.Fatal(err)
		}
		size := sizes[r.IntN(len(sizes))]
		got, want := graphtest.DynamicArguments(g, []int{1, 40, 40, 4}, size...), graphtest.DynamicArguments(g, []int{1, 40, 40, 4}, size...)
		for range 1 + r.IntN(2) { // also repeat a call unchanged
			run(t, timed, got)
		}
		run(t, plain, want)
		if a, b := graphtest.NumbersOf(got[1].Tensor), graphtest.NumbersOf(want[1].Tensor); !slices.Equal(a, b) {
			t.Fatalf("round %d, profiling %v, sizes %v: outputs differ from those without profiling", round, on, size)
		}
		if times := timed.Profile(nil); len(times) != 0 != on {
			t.Fatalf("round %d, profiling %v: got times %v", round, on, times)
		}
		if round > 20 && runtimes != [2]xnn.Runtime{timed.Plain[0].Runtime, timed.Timed[0].Runtime} {
			t.Fatalf("round %d: a runtime was replaced", round)
		}
		runtimes = [2]xnn.Runtime{timed.Plain[0].Runtime, timed.Timed[0].Runtime}
	}
}

// TestProfilingFromTheStart enables profiling before the first run: only the timed runtime is created.
func TestProfilingFromTheStart(t *testing.T) {
	xnntest.Library(t)
	u, g := mustUnit(t, graphtest.ConvolutionGraph())
	if err := u.SetProfiling(true); err != nil {
		t.Fatal(err)
	}
	run(t, u, graphtest.NewMaker(1).Arguments(g))
	if u.Plain[0].Runtime != 0 || u.Timed[0].Runtime == 0 {
		t.Errorf("got runtimes %#x and %#x, want only the second", u.Plain[0].Runtime, u.Timed[0].Runtime)
	}
}

// BenchmarkProfiling runs a graph with little computation: without profiling, with it, and with
// profiling switched on and off around each run.
func BenchmarkProfiling(b *testing.B) {
	xnntest.Library(b)
	m := graphtest.NewMaker(1)
	v := m.Input(graph.FP32, 1, 64)
	for range 10 {
		next := m.Value(graph.FP32, 1, 64)
		m.Node("Abs", []int{v}, []int{next})
		v = next
	}
	u, g := mustUnit(b, m.Done(v))
	args := graphtest.NewMaker(1).Arguments(g)
	for _, c := range []struct {
		name      string
		on, after bool
	}{{"plain", false, false}, {"timed", true, true}, {"in turn", true, false}} {
		b.Run(c.name, func(b *testing.B) {
			var times []delegate.NodeTime
			run(b, u, args)
			b.ReportAllocs()
			for b.Loop() {
				if err := u.SetProfiling(c.on); err != nil {
					b.Fatal(err)
				}
				if err := u.Execute(context.Background(), args); err != nil {
					b.Fatal(err)
				}
				times = u.Profile(times[:0])
				if err := u.SetProfiling(c.after); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
