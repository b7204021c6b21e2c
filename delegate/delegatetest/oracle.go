// Package delegatetest (no compatibility promise) has a backend that takes graphs and
// executes their calls with the program's own operators. What lowering does to a program
// is tested with it: results must be the same to the byte.
package delegatetest

import (
	"context"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Oracle is the backend.
type Oracle struct {
	// Accept says why call i of a graph is not taken; nil takes every call.
	Accept func(g *delegate.Graph, i int) string
	// Refuse says why a graph cannot be compiled after all; nil compiles every graph.
	Refuse func(g *delegate.Graph) error
	// Cost is what Estimate gives; nil for nothing.
	Cost func(g *delegate.Graph, share float64) time.Duration
	// Reject says why a unit does not take the arguments of a run; nil takes them.
	Reject func(g *delegate.Graph, args []*tensor.Value) error
	// Poison fills a unit's own memory before each execute; with it, no input may share
	// bytes with an output. 0 leaves both alone.
	Poison byte
}

// ID is "oracle".
func (Oracle) ID() string { return "oracle" }

// Probe says that it runs here.
func (Oracle) Probe() delegate.Status { return delegate.Status{Loaded: true} }

// Compile refuses every payload: none is made for it.
func (Oracle) Compile(context.Context, *delegate.Payload) (delegate.Image, error) {
	return nil, delegate.Errorf("oracle", delegate.ErrUnsupported, "", "it takes graphs only")
}

// Accepts asks Accept.
func (o Oracle) Accepts(g *delegate.Graph, i int) string {
	if o.Accept == nil {
		return ""
	}
	return o.Accept(g, i)
}

// Estimate asks Cost.
func (o Oracle) Estimate(g *delegate.Graph, share float64) time.Duration {
	if o.Cost == nil {
		return 0
	}
	return o.Cost(g, share)
}

// CompileGraph checks a graph by the rules that lowering keeps, and makes an image.
func (o Oracle) CompileGraph(_ context.Context, g *delegate.Graph) (delegate.Image, error) {
	if err := Check(g); err != nil {
		return nil, err
	}
	if o.Refuse != nil {
		if err := o.Refuse(g); err != nil {
			return nil, err
		}
	}
	img := &image{g: g, poison: o.Poison, reject: o.Reject}
	return img, g.Limits.Check("oracle", 0, img.Needs().Scratch)
}

// image is a graph as it is.
type image struct {
	g      *delegate.Graph
	poison byte
	reject func(g *delegate.Graph, args []*tensor.Value) error
}

func (m *image) Needs() delegate.Needs {
	n := delegate.Needs{Inputs: len(m.g.Inputs)}
	outside := make(map[int]bool)
	for _, list := range [...][]int{m.g.Inputs, m.g.Outputs} {
		for _, v := range list {
			outside[v] = true
		}
	}
	for v := range m.g.Values {
		if t := &m.g.Values[v]; t.Kind == tensor.KindTensor && t.Data == nil && !outside[v] {
			n.Scratch += nbytes(t)
		}
	}
	return n
}

func nbytes(v *delegate.GraphValue) int64 {
	n, _ := tensor.Product(v.Sizes)
	return int64(n) * int64(v.DType.Size())
}

func (m *image) Info() delegate.Info {
	info := delegate.Info{Needs: m.Needs(), Engine: "oracle"}
	for i := range m.g.Calls {
		info.Nodes = append(info.Nodes, delegate.Node{Name: name(&m.g.Calls[i]), Detail: m.g.Calls[i].Place})
	}
	return info
}

func name(c *delegate.GraphCall) string {
	if c.View {
		return "view"
	}
	return c.Op.Name()
}

func (*image) Close() error { return nil }

// Unit gives every tensor of the graph that no caller brings memory of its own.
func (m *image) Unit(in delegate.Instance) (delegate.Unit, error) {
	u := &unit{image: m, k: kernels.NewCtx(in.Pool), values: make([]tensor.Value, len(m.g.Values))}
	u.args = append(append(u.args, m.g.Inputs...), m.g.Outputs...)
	brought := make(map[int]bool)
	for _, v := range u.args {
		brought[v] = true
	}
	for v := range m.g.Values {
		from := &m.g.Values[v]
		u.values[v] = from.Scalar()
		if from.Kind == tensor.KindTensor && !brought[v] {
			u.values[v].Tensor = u.tensor(v, from)
		}
	}
	for v := range m.g.Values {
		switch from := &m.g.Values[v]; from.Kind {
		case tensor.KindIntList, tensor.KindTensorList, tensor.KindOptionalTensorList:
			u.values[v] = tensor.NewList(from.Kind, u.slots(from.Items))
		}
	}
	return u, nil
}

// unit is the values of a graph, and its calls.
type unit struct {
	*image
	k      *kernels.Ctx
	values []tensor.Value
	args   []int // the values that callers bring
	own    []*tensor.Tensor
	calls  []kernels.Call // of the arguments last given
}

func (u *unit) tensor(v int, from *delegate.GraphValue) *tensor.Tensor {
	t := tensor.Make(from.DType, from.Sizes, from.DimOrder, from.Dynamism)
	if from.Data != nil {
		t.Const = true
		t.Bind(from.Data)
		return t
	}
	t.Bind(tensor.AlignedBytes(int(nbytes(from))))
	if w := u.g.Writer(v); w < 0 || !u.g.Calls[w].View && u.g.Calls[w].Sig.Result == nil {
		u.own = append(u.own, t)
	}
	return t
}

var none tensor.Value

func (u *unit) slots(items []int) []*tensor.Value {
	list := make([]*tensor.Value, len(items))
	for i, v := range items {
		if list[i] = &none; v >= 0 {
			list[i] = &u.values[v]
		}
	}
	return list
}

// Check asks Reject.
func (u *unit) Check(args []*tensor.Value) error {
	if u.reject == nil {
		return nil
	}
	return u.reject(u.g, args)
}

// Execute makes the calls of the graph, in order.
func (u *unit) Execute(_ context.Context, args []*tensor.Value) error {
	if err := u.take(args); err != nil {
		return err
	}
	if u.poison != 0 {
		if err := u.spoil(); err != nil {
			return err
		}
	}
	for i := range u.g.Calls {
		c := &u.g.Calls[i]
		if c.View {
			u.values[c.Args[1]].Tensor.Bind(u.values[c.Args[0]].Tensor.Data)
			continue
		}
		if err := u.calls[i].Do(u.k); err != nil {
			return &delegate.Error{Backend: "oracle", Reason: delegate.ErrArgument, Place: c.Place + " (" + name(c) + ")", Err: err}
		}
	}
	return nil
}

// spoil fills the unit's own memory. It reports an output whose bytes an input has.
func (u *unit) spoil() error {
	for _, t := range u.own {
		b := t.Storage()
		for i := range b {
			b[i] = u.poison
		}
	}
	before := u.sum()
	u.flipOutputs()
	after := u.sum()
	u.flipOutputs()
	if before != after {
		return delegate.Errorf("oracle", delegate.ErrArgument, "", "an input lies where an output does")
	}
	return nil
}

// sum is a checksum of the inputs.
func (u *unit) sum() uint32 {
	h := crc32.NewIEEE()
	for _, v := range u.g.Inputs {
		h.Write(u.values[v].Tensor.Data)
	}
	return h.Sum32()
}

func (u *unit) flipOutputs() {
	for _, v := range u.g.Outputs {
		b := u.values[v].Tensor.Storage()
		for i := range b {
			b[i] ^= 0xFF
		}
	}
}

// take gives the graph's values the tensors of the arguments.
func (u *unit) take(args []*tensor.Value) error {
	same := u.calls != nil
	for k, v := range u.args {
		same = same && u.values[v].Tensor == args[k].Tensor
	}
	if same {
		return nil
	}
	for k, v := range u.args {
		from := &u.g.Values[v]
		if t := args[k].Tensor; args[k].Kind != tensor.KindTensor || t.DType != from.DType || t.Rank() != len(from.Sizes) {
			return delegate.Errorf("oracle", delegate.ErrArgument, fmt.Sprintf("argument %d", k), "%v, want %v%v", t, from.DType, from.Sizes)
		}
		u.values[v].Tensor = args[k].Tensor
	}
	u.calls = make([]kernels.Call, len(u.g.Calls))
	for i := range u.g.Calls {
		if c := &u.g.Calls[i]; !c.View {
			a := kernels.Args(u.slots(c.Args))
			if err := c.Sig.Check(a); err != nil {
				return err
			}
			u.calls[i] = kernels.NewCall(c.Op.Func, a, true)
		}
	}
	return nil
}

func (*unit) Close() error { return nil }
