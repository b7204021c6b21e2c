// Package moves (no compatibility promise) has the loops that copy elements of any datatype.
package moves

import (
	"slices"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/frame"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/strided"
)

// copyBytes copies a value. It does nothing if the two values are the same bytes of an argument.
type copyBytes struct{}

// Copy returns the loop of a copy of all elements.
func Copy(*frame.Frame, *graph.Node) frame.Loop { return copyBytes{} }

func (copyBytes) Bind(*frame.Frame, *graph.Node) {}

func (copyBytes) Compute(e *frame.Frame, n *graph.Node) {
	if to, from := e.Data[n.Out[0]], e.Data[n.In[0]]; !sameBytes(to, from) {
		copy(to, from)
	}
}

func sameBytes(a, b []byte) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// copies are the copies that a node makes.
type copies struct {
	plan    func(e *frame.Frame, n *graph.Node, c *copies) // plans and makes them
	planned bool
	box     graph.Box
	copier  strided.Copier
	plans   strided.Plans
}

func (c *copies) Bind(*frame.Frame, *graph.Node) { c.planned = false }

func (c *copies) Compute(e *frame.Frame, n *graph.Node) {
	if c.planned {
		c.plans.Repeat(e)
		return
	}
	c.plans.Reset()
	c.plan(e, n, c)
	c.planned = true
}

// copy copies the box from a value to the output of the node.
func (c *copies) copy(e *frame.Frame, n *graph.Node, from int) {
	c.plans.Copy(e, &c.copier, e.ElementSize(from), c.box.Shape(),
		strided.Buffer{Data: e.Data[n.Out[0]], Offset: c.box.Into}, strided.Buffer{Data: e.Data[from], Offset: c.box.FirstFrom})
}

// The loops that copy elements.
var Transpose, Slice, Concatenate, Rearrange = by(planTranspose), by(planSlice), by(planConcatenate), by(planRearrange)

func by(plan func(e *frame.Frame, n *graph.Node, c *copies)) func(*frame.Frame, *graph.Node) frame.Loop {
	return func(*frame.Frame, *graph.Node) frame.Loop { return &copies{plan: plan} }
}

func planTranspose(e *frame.Frame, n *graph.Node, c *copies) {
	out := e.Shapes[n.Out[0]]
	c.box = graph.Box{Sizes: out, To: graph.Strides(out)}
	step := graph.Strides(e.Shapes[n.In[0]])
	for i, p := range graph.Params[graph.TransposeParams](n).Perm {
		c.box.From[i] = step[p]
	}
	c.copy(e, n, n.In[0])
}

func planSlice(e *frame.Frame, n *graph.Node, c *copies) {
	out := e.Shapes[n.Out[0]]
	c.box = graph.Box{Sizes: out, To: graph.Strides(out), From: graph.Strides(e.Shapes[n.In[0]])}
	for i, offset := range graph.Params[graph.SliceParams](n).Offsets {
		c.box.FirstFrom += offset * c.box.From[i]
	}
	c.copy(e, n, n.In[0])
}

// Pad returns the loop of a padded copy.
func Pad(*frame.Frame, *graph.Node) frame.Loop { return &padding{copies{plan: planPad}} }

// padding fills the output with the padding value, then copies the input into it.
type padding struct{ copies }

func (p *padding) Compute(e *frame.Frame, n *graph.Node) {
	fill(e, n.Out[0], graph.Params[graph.PadParams](n).Value)
	p.copies.Compute(e, n)
}

func planPad(e *frame.Frame, n *graph.Node, c *copies) {
	in := e.Shapes[n.In[0]]
	c.box = graph.Box{Sizes: in, To: graph.Strides(e.Shapes[n.Out[0]]), From: graph.Strides(in)}
	for i, before := range graph.Params[graph.PadParams](n).Before {
		c.box.Into += before * c.box.To[i]
	}
	c.copy(e, n, n.In[0])
}

// fill sets every element of a value to x.
func fill(e *frame.Frame, v int, x float32) {
	dst, size := e.Data[v], e.ElementSize(v)
	one := [1]float32{x}
	if e.Graph.Values[v].Datatype == graph.FP32 {
		e.Result(v)[0] = x
	} else {
		e.Encode(v, one[:])
	}
	for done := size; done < len(dst); done *= 2 {
		copy(dst[done:], dst[:done])
	}
}

// planConcatenate copies each input to its offset along the axis.
func planConcatenate(e *frame.Frame, n *graph.Node, c *copies) {
	out := e.Shapes[n.Out[0]]
	axis, _ := graph.Params[graph.ConcatenateParams](n).Dim(out.Rank)
	at := 0
	for _, v := range n.In {
		c.box = graph.Box{Sizes: e.Shapes[v], To: graph.Strides(out), From: graph.Strides(e.Shapes[v])}
		c.box.Into = at * c.box.To[axis]
		c.copy(e, n, v)
		at += c.box.Sizes.Dim[axis]
	}
}

func planRearrange(e *frame.Frame, n *graph.Node, c *copies) {
	r := graph.Params[graph.RearrangeParams](n)
	flat := r.Flat(make([]graph.Dimension, 0, graph.ManyDims))
	sizes, order := graph.Source(flat)
	perm := order[:len(flat)]
	to, at := graph.Strides(sizes.Permuted(perm)), 0
	for i, v := range n.In {
		in := sizes
		c.box = graph.Box{To: to}
		if axis := slices.IndexFunc(flat, func(d graph.Dimension) bool { return d.Step == r.Axis }); axis >= 0 {
			count := r.In[i].Numel() * flat[axis].N / sizes.Numel()
			in.Dim[perm[axis]], c.box.Into = count, at*to[axis]
			at += count
		}
		from := graph.Strides(in)
		for j, p := range perm {
			c.box.From[j] = from[p]
		}
		c.box.Sizes = in.Permuted(perm)
		c.copy(e, n, v)
	}
}
