package goengine

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// projections returns a graph of an input x, whose projections in floats and in bytes depend on nothing else, and of an input y. A
// projection is a result, too.
func projections() *graph.Graph {
	m := graphtest.NewMaker(7)
	x, y := m.Input(graph.FP32, 40, 24), m.Input(graph.FP32, 1, 16)
	keys, values := m.Value(graph.FP32, 40, 16), m.Value(graph.FP32, 40, 16)
	sum, product, turned := m.Value(graph.FP32, 40, 16), m.Value(graph.FP32, 40, 16), m.Value(graph.FP32, 16, 40)
	m.Node("FullyConnected", []int{x, m.Constant(graph.FP32, 0, 16, 24), m.Constant(graph.FP32, 0, 16)}, []int{keys})
	m.Node("FullyConnected", []int{m.Quantized(x, 1), m.Constant(graph.QCInt8, 0, 16, 24), m.Constant(graph.FP32, 0, 16)}, []int{values})
	m.Node("Add", []int{keys, y}, []int{sum})
	m.Node("Multiply", []int{sum, values}, []int{product})
	m.Node("StaticTranspose", []int{keys}, []int{turned}, func(n *graph.Node) { graph.Params[graph.TransposeParams](n).Perm = []int{1, 0} })
	return m.Done(product, turned)
}

// marked returns marks of the inputs of a graph, or of the first.
func marked(g *graph.Graph, first bool) (marks []bool) {
	for k, v := range g.Args {
		marks = append(marks, g.Values[v].Input && (k == 0 || !first))
	}
	return marks
}

// check compares a call with that of a unit that repeats nothing, which has other memory.
func checkRepeat(t *testing.T, place string, u, plain *unit, args []*tensor.Value) {
	t.Helper()
	want := make([]*tensor.Value, len(args))
	for k, v := range u.Graph.Args {
		c := tensor.TensorValue(tensor.New(args[k].Tensor.DType, args[k].Tensor.Sizes...))
		if want[k] = &c; u.Graph.Values[v].Input {
			copy(c.Tensor.Data, args[k].Tensor.Data)
		} else {
			for i := range args[k].Tensor.Data {
				args[k].Tensor.Data[i] = 0xa5 // others use the memory between calls
			}
		}
	}
	mustExecute(t, u, args)
	mustExecute(t, plain, want)
	for k := range args {
		if !bytes.Equal(args[k].Tensor.Data, want[k].Tensor.Data) {
			t.Fatalf("%s: argument %d differs from that of a unit that repeats nothing", place, k)
		}
	}
}

func TestRepeats(t *testing.T) {
	u, plain := mustUnit(t, projections(), delegate.Instance{}), mustUnit(t, projections(), delegate.Instance{})
	const values = 4 * 16 * 40
	if n := u.Repeats(marked(u.Graph, true)); n < 3*values || n > 4*values {
		t.Errorf("%d bytes, want those of three values of %d", n, values)
	}
	m := graphtest.NewMaker(3)
	args := m.Arguments(u.Graph)
	for i, c := range []struct {
		same, kept bool
		fill       string
	}{{false, false, "xy"}, {false, false, "x"}, {true, true, "y"}, {true, true, "y"}, {false, true, "xy"}, {true, true, "y"}, {true, true, ""}, {false, true, "x"}} {
		for _, name := range c.fill {
			data := args[0].Tensor.Data
			if name == 'y' {
				data = args[1].Tensor.Data
			}
			copy(data, m.Bytes(graph.FP32, graph.ShapeOf(len(data)/4)))
		}
		u.Unchanged(c.same)
		checkRepeat(t, fmt.Sprintf("call %d", i), u, plain, args)
		if kept := u.Memory() > plain.Memory(); kept != c.kept {
			t.Errorf("call %d: memory of results: %v, want %v", i, kept, c.kept)
		}
	}
	if u.Repeats(marked(u.Graph, true)); u.Memory() != plain.Memory() {
		t.Error("results are kept after Repeats")
	}
	u.Unchanged(true)
	checkRepeat(t, "after Repeats", u, plain, args)
	if n := u.Repeats(make([]bool, len(u.Graph.Args))); n != 0 {
		t.Errorf("%d bytes without inputs", n)
	}
}

// Random graphs have the same results again, bit for bit.
func TestRepeatsRandom(t *testing.T) {
	kept := 0
	for seed := range uint64(200) {
		g := graphtest.RandomGraph(seed, 12)
		u, plain := mustUnit(t, g, delegate.Instance{}), mustUnit(t, graphtest.RandomGraph(seed, 12), delegate.Instance{})
		if u.Repeats(marked(u.Graph, false)) > 0 {
			kept++
		}
		args := graphtest.NewMaker(seed).Arguments(u.Graph)
		for i, same := range []bool{false, true, true, true} {
			u.Unchanged(same)
			checkRepeat(t, fmt.Sprintf("graph %d, call %d", seed, i), u, plain, args)
		}
	}
	if kept < 50 {
		t.Errorf("only %d graphs keep results", kept)
	}
}
