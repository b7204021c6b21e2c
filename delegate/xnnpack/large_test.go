package xnnpack

import (
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// manyNodes is the number of nodes of graphs that no exporter makes. An algorithm of quadratic time
// would take minutes for them.
const manyNodes = 100_000

// TestLargeGraphs compiles and runs large graphs with few and with many values that are alive
// together.
func TestLargeGraphs(t *testing.T) {
	for name, live := range map[string]int{"a chain": 2, "a stack": manyNodes / 2, "waves": 1000} {
		t.Run(name, func(t *testing.T) {
			data := graphtest.Encode(waves(live))
			for _, engine := range []Engine{EngineGo, EngineAuto} {
				img, err := compile(t, data, engine)
				if err != nil {
					t.Fatal(err)
				}
				args := graphtest.NewMaker(7).Arguments(img.(*image).Graph)
				if err := runOnce(img, args); err != nil {
					t.Fatal(err)
				}
				in, got := tensor.View[float32](args[0].Tensor.Data), tensor.View[float32](args[1].Tensor.Data)
				for i, x := range in {
					if want := waved(x, live); got[i] != want {
						t.Fatalf("%s: element %d: got %v, want %v, difference %g", engine, i, got[i], want, got[i]-want)
					}
				}
				img.Close()
			}
		})
	}
}

// waves returns a graph that repeatedly computes live values, each from the one before, and then
// their differences from the last one to the first.
func waves(live int) *graph.Graph {
	m := graphtest.NewMaker(1)
	x, step := m.Input(graph.FP32, 1, 4), m.Given(tensor.New(tensor.Float32, 1), 1)
	tensor.View[float32](m.Graph.Values[step].Data)[0] = 0.25
	for range manyNodes / (2 * live) {
		stack := make([]int, live)
		for i := range stack {
			stack[i] = m.Value(graph.FP32, 1, 4)
			m.Node("Add", []int{x, step}, []int{stack[i]})
			x = stack[i]
		}
		for i := range stack {
			out := m.Value(graph.FP32, 1, 4)
			m.Node("Subtract", []int{stack[live-1-i], x}, []int{out})
			x = out
		}
	}
	return m.Done(x)
}

// waved returns the result of waves for an element x.
func waved(x float32, live int) float32 {
	stack := make([]float32, live)
	for range manyNodes / (2 * live) {
		for i := range stack {
			x += 0.25
			stack[i] = x
		}
		for i := range stack {
			x = stack[live-1-i] - x
		}
	}
	return x
}
