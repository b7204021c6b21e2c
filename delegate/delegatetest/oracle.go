// Package delegatetest (no compatibility promise) has a backend that takes graphs and
// executes their calls with the program's own operators. What lowering does to a program
// is tested with it: results must be the same to the byte.
package delegatetest

import (
	"context"
	"errors"
	"hash/crc32"
	"time"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/interpreter"
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

// Estimate asks Accept for each call, and then Cost.
func (o Oracle) Estimate(g *delegate.Graph, share float64) (time.Duration, error) {
	for i := range g.Calls {
		if why := o.Accepts(g, i); why != "" {
			return 0, errors.New(why)
		}
	}
	if o.Cost == nil {
		return 0, nil
	}
	return o.Cost(g, share), nil
}

// Version is empty: the program's operators do the work.
func (Oracle) Version() string { return "" }

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
	return delegate.Needs{Inputs: len(m.g.Inputs), Scratch: interpreter.Bytes(m.g)}
}

func (m *image) Info() delegate.Info {
	info := delegate.Info{Needs: m.Needs(), Engine: "oracle"}
	for i := range m.g.Calls {
		info.Nodes = append(info.Nodes, delegate.Node{Name: interpreter.Name(&m.g.Calls[i]), Detail: m.g.Calls[i].Place})
	}
	return info
}

func (*image) Close() error { return nil }

// Unit gives every tensor of the graph that no caller brings memory of its own.
func (m *image) Unit(in delegate.Instance) (delegate.Unit, error) {
	return &unit{image: m, Unit: interpreter.New(m.g, in.Pool)}, nil
}

type unit struct {
	*image
	*interpreter.Unit
}

// Check asks Reject.
func (u *unit) Check(args []*tensor.Value) error {
	if u.reject == nil {
		return nil
	}
	return u.reject(u.g, args)
}

// Execute makes the calls of the graph, in order.
func (u *unit) Execute(ctx context.Context, args []*tensor.Value) error {
	if u.poison != 0 {
		if err := u.Bind(args); err != nil {
			return err
		}
		if err := u.spoil(); err != nil {
			return err
		}
	}
	return u.Unit.Execute(ctx, args)
}

// spoil fills the unit's own memory. It reports an output whose bytes an input has.
func (u *unit) spoil() error {
	for _, b := range u.Blocks() {
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
		h.Write(u.Value(v).Tensor.Data)
	}
	return h.Sum32()
}

func (u *unit) flipOutputs() {
	for _, v := range u.g.Outputs {
		b := u.Value(v).Tensor.Storage()
		for i := range b {
			b[i] ^= 0xFF
		}
	}
}

func (u *unit) Close() error { return u.Unit.Close() }
