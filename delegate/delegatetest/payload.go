package delegatetest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var _ lowering.Merger = Oracle{}

// Compile compiles a payload that Payload reads.
func (o Oracle) Compile(ctx context.Context, p *delegate.Payload) (delegate.Image, error) {
	x, err := o.Open(p)
	if err != nil {
		return nil, err
	}
	return x.Compile(ctx)
}

// Open implements lowering.Merger. A payload is the call of an operator of its own.
func (o Oracle) Open(p *delegate.Payload) (lowering.Opened, error) {
	if o.Payload == nil {
		return nil, delegate.Errorf("oracle", delegate.ErrUnsupported, "", "it takes graphs only")
	}
	x := &opened{Oracle: o, args: p.Args}
	var do func(args []*tensor.Tensor) error
	x.inputs, do = o.Payload(p.Data)
	var in, out []string
	for k := range p.Args {
		if k < x.inputs {
			in = append(in, fmt.Sprintf("Tensor a%d", k))
		} else {
			out = append(out, fmt.Sprintf("Tensor(%c!) b%d", 'a'+k-x.inputs, k))
		}
	}
	x.op = &kernels.Op{Pure: true, Schema: fmt.Sprintf("oracle::payload.out(%s, *, %s)", strings.Join(in, ", "), strings.Join(out, ", ")),
		Func: func(_ *kernels.Ctx, a kernels.Args) error {
			var list []*tensor.Tensor
			for k := range p.Args {
				list = append(list, a.Tensor(k))
			}
			return do(list)
		}}
	var err error
	x.sig, err = kernels.ParseSchema(x.op.Schema)
	return x, err
}

// opened is a payload.
type opened struct {
	Oracle
	op     *kernels.Op
	sig    *kernels.Signature
	inputs int
	args   []*delegate.ArgSpec
}

func (x *opened) Inputs() int { return x.inputs }

// Compile makes an image of the call alone.
func (x *opened) Compile(context.Context) (delegate.Image, error) {
	g := &lowering.Graph{Calls: []lowering.GraphCall{{Payload: x, Place: "payload"}}}
	for v, a := range x.args {
		g.Values = append(g.Values, lowering.GraphValue{Kind: tensor.KindTensor, DType: a.DType, Sizes: a.Sizes, DimOrder: a.DimOrder, Dynamism: a.Dynamism})
		g.Calls[0].Args = append(g.Calls[0].Args, v)
		if v < x.inputs {
			g.Inputs = append(g.Inputs, v)
		} else {
			g.Outputs = append(g.Outputs, v)
		}
	}
	return &image{g: merged(g), poison: x.Poison}, nil
}

// merged is a graph with the operators of its payloads.
func merged(g *lowering.Graph) *lowering.Graph {
	m := &lowering.Graph{Method: g.Method, Index: g.Index, Values: slices.Clone(g.Values), Calls: slices.Clone(g.Calls),
		Inputs: g.Inputs, Outputs: g.Outputs, Limits: g.Limits}
	for i := range m.Calls {
		c := &m.Calls[i]
		x, ok := c.Payload.(*opened)
		if !ok {
			continue
		}
		c.Op, c.Sig, c.Payload = x.op, x.sig, nil
		result := c.Args[len(c.Args)-1]
		if outs := c.Args[x.inputs:]; len(outs) > 1 {
			result = len(m.Values)
			m.Values = append(m.Values, lowering.GraphValue{Kind: tensor.KindTensorList, Items: outs})
		}
		c.Args = append(slices.Clone(c.Args), result)
	}
	return m
}
