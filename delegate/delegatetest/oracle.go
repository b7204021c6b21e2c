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

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/interpreter"
	"github.com/etrun-go/etrun/delegate/lowering"
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

// Unit allocates all tensors of the graph that are not arguments.
func (m *image) Unit(in delegate.Instance) (delegate.Unit, error) {
	return &unit{image: m, Unit: interpreter.New(m.g, in.Pool)}, nil
}

type unit struct {
	*image
	*interpreter.Unit
}

// check calls Reject.
func (u *unit) Check(args []*tensor.Value) error {
	if u.reject == nil {
		return nil
	}
	return u.reject(u.g, args)
}

// Execute executes the calls of the graph in order.
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

// spoil fills the unit's own memory. It fails if an output shares memory with an input.
func (u *unit) spoil() error {
	own := u.Memory()
	for i := range own {
		own[i] = u.poison
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
