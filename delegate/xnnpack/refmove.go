package xnnpack

import "github.com/etrun-go/etrun/kernels/strided"

// Moves copy elements of any datatype by their size.

func (e *reference) elementSize(v int) int { return e.graph.Values[v].Datatype.info().bits / 8 }

func (e *reference) copy(n *node) { copy(e.bytes[n.Out[0]], e.bytes[n.In[0]]) }

// strides of a dense value, in elements.
func strides(s shape) (out steps) {
	step := 1
	for i := s.rank - 1; i >= 0; i-- {
		out[i] = step
		step *= s.dim[i]
	}
	return out
}

// box is a copy of elements: element (i, j, …) of sizes goes from sum of i·from to sum of i·to,
// counted in elements from the first ones on.
type box struct {
	sizes           shape
	from, to        steps
	firstFrom, into int
	copier          strided.Copier
}

// copy copies elements of size bytes, on the threads of t.
func (b *box) copy(t strided.Threads, dst, src []byte, size int) {
	n := b.sizes.rank
	b.copier.Copy(t, size, strided.Shape{Sizes: b.sizes.dim[:n], Dst: b.to[:n], Src: b.from[:n]},
		strided.Buffer{Data: dst, Offset: b.into}, strided.Buffer{Data: src, Offset: b.firstFrom})
}

// copyBox copies from the node's first input to its output.
func (e *reference) copyBox(n *node) {
	e.box.copy(e, e.bytes[n.Out[0]], e.bytes[n.In[0]], e.elementSize(n.Out[0]))
}

// setBox starts a copy of elements of the given sizes.
func (e *reference) setBox(sizes shape) *box {
	b := &e.box
	b.sizes, b.firstFrom, b.into = sizes, 0, 0
	return b
}

func (e *reference) transpose(n *node) {
	b := e.setBox(e.shapes[n.Out[0]])
	b.to = strides(b.sizes)
	step := strides(e.shapes[n.In[0]])
	for i, p := range params[transposeParams](n).perm {
		b.from[i] = step[p]
	}
	e.copyBox(n)
}

func (e *reference) slice(n *node) {
	b := e.setBox(e.shapes[n.Out[0]])
	b.to, b.from = strides(b.sizes), strides(e.shapes[n.In[0]])
	for i, offset := range params[sliceParams](n).offsets {
		b.firstFrom += offset * b.from[i]
	}
	e.copyBox(n)
}

// pad writes the padding value everywhere, then the input into its place.
func (e *reference) pad(n *node) {
	b := e.setBox(e.shapes[n.In[0]])
	b.to, b.from = strides(e.shapes[n.Out[0]]), strides(b.sizes)
	p := params[padParams](n)
	for i, before := range p.before {
		b.into += before * b.to[i]
	}
	e.fill(n.Out[0], p.value)
	e.copyBox(n)
}

// fill gives every element of a value the same number.
func (e *reference) fill(v int, x float32) {
	dst, size := e.bytes[v], e.elementSize(v)
	one := [1]float32{x}
	if e.graph.Values[v].Datatype == fp32 {
		e.result(v)[0] = x
	} else {
		e.encode(v, one[:])
	}
	for done := size; done < len(dst); done *= 2 {
		copy(dst[done:], dst[:done])
	}
}

// concatenate copies each input into its part along the axis.
func (e *reference) concatenate(n *node) {
	out := e.shapes[n.Out[0]]
	axis, _ := params[concatenateParams](n).of(out.rank)
	at := 0
	for _, v := range n.In {
		b := e.setBox(e.shapes[v])
		b.to, b.from = strides(out), strides(b.sizes)
		b.into = at * b.to[axis]
		b.copy(e, e.bytes[n.Out[0]], e.bytes[v], e.elementSize(v))
		at += b.sizes.dim[axis]
	}
}
