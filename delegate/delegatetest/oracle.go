// Package delegatetest (no compatibility promise) provides the conformance suite of backends, [Run]; checks of graphs
// and images; and a backend that compiles graphs and executes their calls with the program's own operators. It tests
// lowering: results must be identical.
package delegatetest

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Oracle is the test backend.
type Oracle struct {
	// Accept returns the reason why call i of a graph is not supported; nil accepts every call.
	Accept func(g *lowering.Graph, i int) string
	// Refuse returns an error for a graph that cannot be compiled after all; nil compiles every
	// graph.
	Refuse func(g *lowering.Graph) error
	// Work is the result of Measure; nil means none.
	Work func(g *lowering.Graph) lowering.Work
	// Reject returns an error for the arguments of a run that a unit does not support; nil accepts
	// all.
	Reject func(g *lowering.Graph, args []*tensor.Value) error
	// Payload returns how many arguments of a payload's calls are inputs, and what they compute;
	// nil: no payload is supported.
	Payload func(data []byte) (inputs int, do func(args []*tensor.Tensor) error)
	// Poison, if not 0, fills a unit's own memory before each run; inputs must then not share
	// memory with outputs.
	Poison byte
}

// AtRandom accepts calls, and compiles graphs, pseudorandomly: share of 10 of the calls and, if hard,
// three of four regions, those of varying sizes at half of them.
func AtRandom(seed, share uint64, hard bool) Oracle {
	chance := func(text string) uint64 {
		h := fnv.New64a()
		fmt.Fprint(h, seed, text)
		return h.Sum64() >> 11
	}
	return Oracle{Poison: 0xAA,
		Accept: func(g *lowering.Graph, i int) string {
			c := &g.Calls[i]
			if chance(c.Place)%10 >= share {
				return "by chance"
			}
			if hard && len(g.Readers(g.Writes(nil, i)[0])) == 0 && chance(c.Place+"!")%3 == 0 {
				return "not read in the region"
			}
			return ""
		},
		Refuse: func(g *lowering.Graph) error {
			if hard && chance(g.Calls[0].Place+"?")%4 == 0 {
				return errors.New("by chance")
			}
			return nil
		},
		Reject: func(g *lowering.Graph, args []*tensor.Value) error {
			text := g.Calls[0].Place
			for _, a := range args[:len(g.Inputs)] {
				text += fmt.Sprint(a.Tensor.Sizes)
			}
			if hard && chance(text)%2 == 0 {
				return errors.New("by chance")
			}
			return nil
		}}
}

// ID returns "oracle".
func (Oracle) ID() string { return "oracle" }

// Probe reports that the backend is available.
func (Oracle) Probe() delegate.Status { return delegate.Status{Loaded: true} }

// Accepts calls Accept.
func (o Oracle) Accepts(g *lowering.Graph, i int) string {
	if o.Accept == nil {
		return ""
	}
	return o.Accept(g, i)
}

// Measure calls Accept for each call, and then Work.
func (o Oracle) Measure(g *lowering.Graph) (w lowering.Work, err error) {
	for i := range g.Calls {
		if why := o.Accepts(g, i); why != "" {
			return w, errors.New(why)
		}
	}
	if o.Work == nil {
		return w, nil
	}
	return o.Work(g), nil
}

// CompileGraph checks that a graph satisfies the rules of lowering, and compiles it.
func (o Oracle) CompileGraph(_ context.Context, g *lowering.Graph) (delegate.Image, error) {
	whole := merged(g)
	if err := check(whole); err != nil {
		return nil, err
	}
	if o.Refuse != nil {
		if err := o.Refuse(g); err != nil {
			return nil, err
		}
	}
	img := &image{g: whole, poison: o.Poison, reject: o.Reject}
	return img, g.Limits.Check("oracle", 0, img.Needs().Scratch)
}

// image is an unmodified graph.
type image struct {
	g      *lowering.Graph
	poison byte
	reject func(g *lowering.Graph, args []*tensor.Value) error
}

func (m *image) Needs() delegate.Needs {
	size := int64(0)
	for v := range m.g.Values {
		size += m.bytes(v)
	}
	return delegate.Needs{Inputs: len(m.g.Inputs), Scratch: size}
}

// bytes returns the size of a tensor in a unit's own memory, aligned: that of those that are neither constants nor arguments.
func (m *image) bytes(v int) int64 {
	if x := &m.g.Values[v]; x.Kind == tensor.KindTensor && x.Data == nil && !slices.Contains(m.g.Inputs, v) && !slices.Contains(m.g.Outputs, v) {
		return (x.NBytes() + tensor.Alignment - 1) &^ (tensor.Alignment - 1)
	}
	return 0
}

func (m *image) Info() delegate.Info {
	info := delegate.Info{Needs: m.Needs(), Engine: "oracle"}
	for i := range m.g.Calls {
		info.Nodes = append(info.Nodes, delegate.Node{Name: nameOf(&m.g.Calls[i]), Detail: m.g.Calls[i].Place})
	}
	return info
}

// nameOf returns the name of a call's operator.
func nameOf(c *lowering.GraphCall) string {
	switch {
	case c.View:
		return "view"
	case c.Payload != nil:
		return "payload"
	}
	return c.Op.Name()
}

func (*image) Close() error { return nil }

// Unit allocates all tensors of the graph that are not arguments.
func (m *image) Unit(in delegate.Instance) (delegate.Unit, error) {
	u := &unit{image: m, ctx: kernels.NewCtx(in.Pool), values: make([]tensor.Value, len(m.g.Values)), args: slices.Concat(m.g.Inputs, m.g.Outputs),
		memory: tensor.AlignedBytes(int(m.Needs().Scratch))}
	rest := u.memory
	for v := range m.g.Values {
		from := &m.g.Values[v]
		u.values[v] = from.Scalar()
		if from.Kind != tensor.KindTensor || slices.Contains(u.args, v) {
			continue
		}
		t := tensor.Make(from.DType, from.Sizes, from.DimOrder, from.Dynamism)
		if t.Const = from.Data != nil; t.Const {
			t.Bind(from.Data)
		} else {
			n := from.NBytes()
			t.Bind(rest[:n:n])
			rest = rest[m.bytes(v):]
		}
		u.values[v].Tensor = t
	}
	for v := range m.g.Values {
		switch from := &m.g.Values[v]; from.Kind {
		case tensor.KindIntList, tensor.KindTensorList, tensor.KindOptionalTensorList:
			u.values[v] = tensor.NewList(from.Kind, u.slots(from.Items))
		}
	}
	return u, nil
}

// unit executes a graph call by call. One goroutine uses it at a time.
type unit struct {
	*image
	ctx    *kernels.Ctx
	values []tensor.Value
	args   []int // the values passed as arguments
	memory []byte
	calls  []kernels.Call // for the last arguments
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

// check calls Reject.
func (u *unit) Check(args []*tensor.Value) error {
	if u.reject == nil {
		return nil
	}
	return u.reject(u.g, args)
}

// Execute executes the calls of the graph in order.
func (u *unit) Execute(_ context.Context, args []*tensor.Value) error {
	if err := u.bind(args); err != nil {
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
		if err := u.calls[i].Do(u.ctx); err != nil {
			return &delegate.Error{Backend: "oracle", Reason: delegate.ErrArgument, Place: c.Place + " (" + nameOf(c) + ")", Err: err}
		}
	}
	return nil
}

// bind assigns the arguments to the graph's values.
func (u *unit) bind(args []*tensor.Value) error {
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
			return delegate.Errorf("oracle", delegate.ErrArgument, fmt.Sprintf("argument %d", k), "got %v, want %v %s", t, from.DType, tensor.FormatSizes(from.Sizes))
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

// spoil fills the unit's own memory. It fails if an output shares memory with an input.
func (u *unit) spoil() error {
	for i := range u.memory {
		u.memory[i] = u.poison
	}
	before := u.sum()
	u.flipOutputs()
	after := u.sum()
	u.flipOutputs()
	if before != after {
		return delegate.Errorf("oracle", delegate.ErrArgument, "", "an input shares memory with an output")
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
