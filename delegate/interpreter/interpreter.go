// Package interpreter (no compatibility promise) executes graphs call by call with the operators of
// the calls, as a reference for the units of backends.
package interpreter

import (
	"context"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Unit executes a graph. It has its own memory for tensors that are not arguments; tensors with
// disjoint lifetimes share it. One goroutine uses it at a time.
type Unit struct {
	graph  *lowering.Graph
	ctx    *kernels.Ctx
	values []tensor.Value
	args   []int // the values passed as arguments
	memory []byte
	calls  []kernels.Call // for the last arguments
}

// Bytes returns the size of a unit's own memory.
func Bytes(g *lowering.Graph) (n int64) { return place(g).layout.Size }

// New returns a unit of a graph without payloads. The operators must accept its calls.
func New(g *lowering.Graph, pool *cpu.Pool) *Unit {
	u := &Unit{graph: g, ctx: kernels.NewCtx(pool), values: make([]tensor.Value, len(g.Values)), args: slices.Concat(g.Inputs, g.Outputs)}
	places := place(g)
	u.memory = tensor.AlignedBytes(int(places.layout.Size))
	external := make(map[int]bool)
	for _, v := range u.args {
		external[v] = true
	}
	for v := range g.Values {
		from := &g.Values[v]
		u.values[v] = from.Scalar()
		if from.Kind == tensor.KindTensor && !external[v] {
			u.values[v].Tensor = newTensor(from, places.cut(u.memory, v))
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

// newTensor creates a constant, or a tensor in a unit's memory; a view has none.
func newTensor(from *lowering.GraphValue, memory []byte) *tensor.Tensor {
	t := tensor.Make(from.DType, from.Sizes, from.DimOrder, from.Dynamism)
	switch {
	case from.Data != nil:
		t.Const = true
		t.Bind(from.Data)
	case memory != nil:
		t.Bind(memory)
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

// Memory returns the unit's own memory. Its contents are not preserved between calls of Execute.
func (u *Unit) Memory() []byte { return u.memory }

// Value returns a value of the graph after the last Execute. A tensor's memory may have been
// reused.
func (u *Unit) Value(v int) *tensor.Value { return &u.values[v] }

// Execute executes the calls of the graph in order.
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

// Name returns the name of a call's operator.
func Name(c *lowering.GraphCall) string {
	switch {
	case c.View:
		return "view"
	case c.Payload != nil:
		return "payload"
	}
	return c.Op.Name()
}

// Bind assigns the arguments of the next Execute to the graph's values.
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
			return delegate.Errorf("interpreter", delegate.ErrArgument, fmt.Sprintf("argument %d", k), "got %v, want %v %s", t, from.DType, tensor.FormatSizes(from.Sizes))
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

// Close does nothing: the memory is garbage collected.
func (*Unit) Close() error { return nil }
