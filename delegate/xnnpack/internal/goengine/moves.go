package goengine

import (
	"slices"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/strided"
)

// Copies of elements of any datatype, by element size.

// copyBytes copies a value. It does nothing if the two values are the same bytes of an argument.
type copyBytes struct{}

func (copyBytes) bind(*frame, *graph.Node) {}

func (copyBytes) run(e *frame, n *graph.Node) {
	if to, from := e.data[n.Out[0]], e.data[n.In[0]]; !sameBytes(to, from) {
		copy(to, from)
	}
}

func sameBytes(a, b []byte) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// copies are the copies that a node makes.
type copies struct {
	plan    func(e *frame, n *graph.Node, c *copies) // plans and makes them
	planned bool
	box     graph.Box
	copier  strided.Copier
	plans   strided.Plans
}

func (c *copies) bind(*frame, *graph.Node) { c.planned = false }

func (c *copies) run(e *frame, n *graph.Node) {
	if c.planned {
		c.plans.Repeat(e)
		return
	}
	c.plans.Reset()
	c.plan(e, n, c)
	c.planned = true
}

// copy copies the box from a value to the output of the node.
func (c *copies) copy(e *frame, n *graph.Node, from int) {
	c.plans.Copy(e, &c.copier, e.elementSize(from), c.box.Shape(),
		strided.Buffer{Data: e.data[n.Out[0]], Offset: c.box.Into}, strided.Buffer{Data: e.data[from], Offset: c.box.FirstFrom})
}

func planTranspose(e *frame, n *graph.Node, c *copies) {
	out := e.shapes[n.Out[0]]
	c.box = graph.Box{Sizes: out, To: graph.Strides(out)}
	step := graph.Strides(e.shapes[n.In[0]])
	for i, p := range graph.Params[graph.TransposeParams](n).Perm {
		c.box.From[i] = step[p]
	}
	c.copy(e, n, n.In[0])
}

func planSlice(e *frame, n *graph.Node, c *copies) {
	out := e.shapes[n.Out[0]]
	c.box = graph.Box{Sizes: out, To: graph.Strides(out), From: graph.Strides(e.shapes[n.In[0]])}
	for i, offset := range graph.Params[graph.SliceParams](n).Offsets {
		c.box.FirstFrom += offset * c.box.From[i]
	}
	c.copy(e, n, n.In[0])
}

// padding fills the output with the padding value, then copies the input into it.
type padding struct{ copies }

func (p *padding) run(e *frame, n *graph.Node) {
	e.fill(n.Out[0], graph.Params[graph.PadParams](n).Value)
	p.copies.run(e, n)
}

func planPad(e *frame, n *graph.Node, c *copies) {
	in := e.shapes[n.In[0]]
	c.box = graph.Box{Sizes: in, To: graph.Strides(e.shapes[n.Out[0]]), From: graph.Strides(in)}
	for i, before := range graph.Params[graph.PadParams](n).Before {
		c.box.Into += before * c.box.To[i]
	}
	c.copy(e, n, n.In[0])
}

// fill sets every element of a value to x.
func (e *frame) fill(v int, x float32) {
	dst, size := e.data[v], e.elementSize(v)
	one := [1]float32{x}
	if e.graph.Values[v].Datatype == graph.FP32 {
		e.result(v)[0] = x
	} else {
		e.encode(v, one[:])
	}
	for done := size; done < len(dst); done *= 2 {
		copy(dst[done:], dst[:done])
	}
}

// planConcatenate copies each input to its offset along the axis.
func planConcatenate(e *frame, n *graph.Node, c *copies) {
	out := e.shapes[n.Out[0]]
	axis, _ := graph.Params[graph.ConcatenateParams](n).Dim(out.Rank)
	at := 0
	for _, v := range n.In {
		c.box = graph.Box{Sizes: e.shapes[v], To: graph.Strides(out), From: graph.Strides(e.shapes[v])}
		c.box.Into = at * c.box.To[axis]
		c.copy(e, n, v)
		at += c.box.Sizes.Dim[axis]
	}
}

func planRearrange(e *frame, n *graph.Node, c *copies) {
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
