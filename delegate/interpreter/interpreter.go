// Package interpreter (no compatibility promise) executes graphs call by call, with the
// operators that the calls name: what a backend's units do with a graph, it does as well.
package interpreter

import (
	"context"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Unit executes a graph. It has memory of its own for tensors that no caller brings; those
// that are not needed at the same time share it. One goroutine uses it at a time.
type Unit struct {
	graph  *delegate.Graph
	ctx    *kernels.Ctx
	values []tensor.Value
	args   []int // the values that callers bring
	blocks [][]byte
	calls  []kernels.Call // of the arguments last given
}

// Bytes is the size of a unit's own memory.
func Bytes(g *delegate.Graph) (n int64) {
	for _, size := range place(g).sizes {
		n += size
	}
	return n
}

// New makes a unit of a graph, whose calls its operators must accept.
func New(g *delegate.Graph, pool *cpu.Pool) *Unit {
	u := &Unit{graph: g, ctx: kernels.NewCtx(pool), values: make([]tensor.Value, len(g.Values)), args: slices.Concat(g.Inputs, g.Outputs)}
	places := place(g)
	for _, size := range places.sizes {
		u.blocks = append(u.blocks, tensor.AlignedBytes(int(size)))
	}
	brought := make(map[int]bool)
	for _, v := range u.args {
		brought[v] = true
	}
	for v := range g.Values {
		from := &g.Values[v]
		u.values[v] = from.Scalar()
		if from.Kind == tensor.KindTensor && !brought[v] {
			u.values[v].Tensor = u.tensor(from, places.block[v])
		}
	}
	for v := range g.Values {
		switch from := &g.Values[v]; from.Kind {
		case tensor.KindIntList, tensor.KindTensorList, tensor.KindOptionalTensorList:
			u.values[v] = tensor.NewList(from.Kind, u.slots(from.Items))
		}
	}
	return u
}

// tensor makes a constant, or a tensor in a block of the unit's memory; a view has no block.
func (u *Unit) tensor(from *delegate.GraphValue, block int) *tensor.Tensor {
	t := tensor.Make(from.DType, from.Sizes, from.DimOrder, from.Dynamism)
	switch {
	case from.Data != nil:
		t.Const = true
		t.Bind(from.Data)
	case block >= 0:
		t.Bind(u.blocks[block][:from.NBytes()])
	}
	return t
}

var none tensor.Value

func (u *Unit) slots(items []int) []*tensor.Value {
	list := make([]*tensor.Value, len(items))
	for i, v := range items {
		if list[i] = &none; v >= 0 {
			list[i] = &u.values[v]
		}
	}
	return list
}

// Blocks is the unit's own memory. Nothing in it outlasts an Execute.
func (u *Unit) Blocks() [][]byte { return u.blocks }

// Value is the value of the graph as the last Execute left it, of a tensor that no other
// one has taken the memory of.
func (u *Unit) Value(v int) *tensor.Value { return &u.values[v] }

// Execute makes the calls of the graph, in order.
func (u *Unit) Execute(_ context.Context, args []*tensor.Value) error {
	if err := u.Bind(args); err != nil {
		return err
	}
	for i := range u.graph.Calls {
		c := &u.graph.Calls[i]
		if c.View {
			u.values[c.Args[1]].Tensor.Bind(u.values[c.Args[0]].Tensor.Data)
			continue
		}
		if err := u.calls[i].Do(u.ctx); err != nil {
			return &delegate.Error{Backend: "interpreter", Reason: delegate.ErrArgument, Place: c.Place + " (" + Name(c) + ")", Err: err}
		}
	}
	return nil
}

// Name is that of a call's operator.
func Name(c *delegate.GraphCall) string {
	if c.View {
		return "view"
	}
	return c.Op.Name()
}

// Bind gives the graph's values the tensors of the arguments of the next Execute.
func (u *Unit) Bind(args []*tensor.Value) error {
	same := u.calls != nil
	for k, v := range u.args {
		same = same && u.values[v].Tensor == args[k].Tensor
	}
	if same {
		return nil
	}
	for k, v := range u.args {
		from := &u.graph.Values[v]
		if t := args[k].Tensor; args[k].Kind != tensor.KindTensor || t.DType != from.DType || t.Rank() != len(from.Sizes) {
			return delegate.Errorf("interpreter", delegate.ErrArgument, fmt.Sprintf("argument %d", k), "%v, want %v%v", t, from.DType, from.Sizes)
		}
		u.values[v].Tensor = args[k].Tensor
	}
	u.calls = make([]kernels.Call, len(u.graph.Calls))
	for i := range u.graph.Calls {
		if c := &u.graph.Calls[i]; !c.View {
			a := kernels.Args(u.slots(c.Args))
			if err := c.Sig.Check(a); err != nil {
				return err
			}
			u.calls[i] = kernels.NewCall(c.Op.Func, a, true)
		}
	}
	return nil
}

// Close does nothing: the memory is Go's.
func (*Unit) Close() error { return nil }
