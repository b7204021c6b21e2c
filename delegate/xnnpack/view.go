package xnnpack

import (
	"context"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// showValues makes every value that a node computes an argument, with its own memory: the engines
// write it like the outputs of the call. Dynamically quantized values cannot be arguments.
func showValues(g *graph.Graph) {
	for i := range g.Nodes {
		for _, v := range g.Nodes[i].Out {
			x := &g.Values[v]
			if x.Arg != graph.None || x.Datatype == graph.QDInt8 || len(g.Args) >= graph.MaxArgs {
				continue
			}
			x.Arg, x.Output = len(g.Args), true
			g.Args = append(g.Args, v)
		}
	}
}

// viewed is a unit that passes the values of its nodes to a callback.
type viewed struct {
	delegate.Unit
	delegate.Profiler
	graph  *graph.Graph
	args   []*tensor.Value // of the call, followed by shown
	shown  []*tensor.Value
	see    func(*delegate.NodeValues)
	values delegate.NodeValues
}

// Execute runs the graph, then passes the values that its nodes read and wrote to the callback.
func (w *viewed) Execute(ctx context.Context, args []*tensor.Value) error {
	if len(args)+len(w.shown) != len(w.graph.Args) {
		return delegate.Errorf(ID, delegate.ErrArgument, "", "%d arguments, want %d", len(args), len(w.graph.Args)-len(w.shown))
	}
	w.args = append(append(w.args[:0], args...), w.shown...)
	if err := w.Unit.Execute(ctx, w.args); err != nil || w.see == nil {
		return err
	}
	for i := range w.graph.Nodes {
		n := &w.graph.Nodes[i]
		w.emit(i, n, n.In, false)
		w.emit(i, n, n.Out, true)
	}
	return nil
}

func (w *viewed) emit(i int, n *graph.Node, values []int, written bool) {
	list := w.values.Values[:0]
	for _, v := range values {
		if v == graph.None {
			continue
		}
		switch x := &w.graph.Values[v]; {
		case x.Arg != graph.None:
			list = append(list, delegate.NodeValue{Index: int(x.ID), Value: *w.args[x.Arg]})
		case x.IsConst():
			list = append(list, delegate.NodeValue{Index: int(x.ID), Value: constantTensor(x)})
		}
	}
	w.values = delegate.NodeValues{Index: i, Name: n.Type.Name, Written: written, Values: list}
	w.see(&w.values)
}

// constantTensor returns the tensor of a constant; 4-bit elements become the bytes that contain
// them.
func constantTensor(x *graph.Value) tensor.Value {
	sizes := x.Shape.Dims()
	if x.Datatype.Info().Bits < 8 {
		sizes = []int{len(x.Data)}
	}
	t := tensor.Make(x.Datatype.Info().Tensor, sizes, nil, tensor.Static)
	t.Const, t.Data = true, x.Data[:t.NBytes():t.NBytes()]
	return tensor.TensorValue(t)
}

// View implements delegate.Viewer.
func (w *viewed) View(see func(*delegate.NodeValues)) { w.see = see }
