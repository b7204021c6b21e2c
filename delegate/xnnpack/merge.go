package xnnpack

import (
	"context"
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/flatbuf"
)

var _ lowering.Merger = Backend{}

// payload is one that was read and checked. Its graph can be merged into another one.
type payload struct {
	backend Backend
	of      *delegate.Payload
	graph   *graph.Graph // as read; only Compile modifies it
}

// Open implements lowering.Merger.
func (b Backend) Open(p *delegate.Payload) (lowering.Opened, error) {
	g, err := b.read(p)
	if err != nil {
		return nil, err
	}
	return &payload{backend: b, of: p, graph: g}, nil
}

// Inputs implements lowering.Opened.
func (o *payload) Inputs() int { return o.graph.Inputs }

// Compile implements lowering.Opened. The payload is read again only after an error, for the next attempt.
func (o *payload) Compile(ctx context.Context) (delegate.Image, error) {
	img, err := o.backend.compileRead(ctx, o.of, o.graph)
	if err != nil {
		if g, unread := o.backend.read(o.of); unread == nil {
			o.graph = g
		}
	}
	return img, err
}

// Reaches implements lowering.Examined.
func (o *payload) Reaches(inputs []bool) (outputs []bool) {
	g := o.graph
	reached := make([]bool, len(g.Values))
	for i := range g.Values {
		v := &g.Values[i]
		reached[i] = v.Input && v.Arg >= 0 && v.Arg < len(inputs) && inputs[v.Arg]
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if slices.ContainsFunc(n.In, func(v int) bool { return v >= 0 && reached[v] }) {
			for _, v := range n.Out {
				reached[v] = true
			}
		}
	}
	outputs = make([]bool, len(g.Args)-g.Inputs)
	for i := range g.Values {
		if v := &g.Values[i]; v.Output && v.Arg >= g.Inputs && reached[i] {
			outputs[v.Arg-g.Inputs] = true
		}
	}
	return outputs
}

// Size implements lowering.Examined.
func (o *payload) Size() int { return len(o.graph.Values) + len(o.graph.Nodes) }

// Constants implements lowering.Examined.
func (o *payload) Constants() (list []lowering.Constant) {
	for i := range o.graph.Values {
		if v := &o.graph.Values[i]; v.Data != nil && !v.Lent {
			list = append(list, lowering.Constant{Elements: v.Shape.Numel(), Data: v.Data})
		}
	}
	return list
}

// Graph returns the graph for lowering, which does not modify it.
func (o *payload) Graph() *graph.Graph { return o.graph }

// Names implements delegate.Namer. It returns each key once.
func (Backend) Names(payload []byte) ([]string, error) {
	cpu.Forget()
	flat, base, _, err := graph.SplitHeader(payload)
	if err != nil {
		return nil, err
	}
	r := &graph.Reader{Flat: flatbuf.New(flat, base, 0)}
	r.Table.Read(r.Flat.Root())
	if err := r.FlatError(); err != nil {
		return nil, err
	}
	var keys []string
	seen := make(map[string]bool)
	for _, p := range r.Table.Places {
		if p.Key != "" && !seen[p.Key] {
			seen[p.Key] = true
			keys = append(keys, p.Key)
		}
	}
	return keys, nil
}
