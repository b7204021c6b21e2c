package xnnpack

import "github.com/etrun-go/etrun/kernels/strided"

// Copies of elements of any datatype, by element size.

func (e *reference) elementSize(v int) int { return e.graph.Values[v].Datatype.info().bits / 8 }

func (e *reference) copy(n *node) { copy(e.bytes[n.Out[0]], e.bytes[n.In[0]]) }

// strides returns the strides of a dense value, in elements.
func strides(s shape) (out steps) {
	step := 1
	for i := s.rank - 1; i >= 0; i-- {
		out[i] = step
		step *= s.dim[i]
	}
	return out
}

// box is a strided copy. Element (i, j, …) of sizes is copied from the sum of i·from to the sum of
// i·to, in elements relative to firstFrom and into.
type box struct {
	sizes           shape
	from, to        steps
	firstFrom, into int
}

func (b *box) shape() strided.Shape {
	n := b.sizes.rank
	return strided.Shape{Sizes: b.sizes.dim[:n], Dst: b.to[:n], Src: b.from[:n]}
}

// copies are the copies that a node makes.
type copies struct {
	box    box
	copier strided.Copier
	plans  strided.Plans
}

// copyBoxes replays the copies of a node. If they are not planned for the current addresses, it
// calls plan instead, which plans and makes them.
func (e *reference) copyBoxes(n *node, plan func(e *reference, n *node, c *copies)) {
	c, stale := loopOf[copies](e, n, true)
	if !stale {
		c.plans.Repeat(e)
		return
	}
	c.plans.Reset()
	plan(e, n, c)
}

// copy copies the box from a value to the output of the node.
func (c *copies) copy(e *reference, n *node, from int) {
	c.plans.Copy(e, &c.copier, e.elementSize(from), c.box.shape(),
		strided.Buffer{Data: e.bytes[n.Out[0]], Offset: c.box.into}, strided.Buffer{Data: e.bytes[from], Offset: c.box.firstFrom})
}

func (e *reference) transpose(n *node) { e.copyBoxes(n, planTranspose) }

func planTranspose(e *reference, n *node, c *copies) {
	out := e.shapes[n.Out[0]]
	c.box = box{sizes: out, to: strides(out)}
	step := strides(e.shapes[n.In[0]])
	for i, p := range params[transposeParams](n).perm {
		c.box.from[i] = step[p]
	}
	c.copy(e, n, n.In[0])
}

func (e *reference) slice(n *node) { e.copyBoxes(n, planSlice) }

func planSlice(e *reference, n *node, c *copies) {
	out := e.shapes[n.Out[0]]
	c.box = box{sizes: out, to: strides(out), from: strides(e.shapes[n.In[0]])}
	for i, offset := range params[sliceParams](n).offsets {
		c.box.firstFrom += offset * c.box.from[i]
	}
	c.copy(e, n, n.In[0])
}

// pad fills the output with the padding value, then copies the input into it.
func (e *reference) pad(n *node) {
	e.fill(n.Out[0], params[padParams](n).value)
	e.copyBoxes(n, planPad)
}

func planPad(e *reference, n *node, c *copies) {
	in := e.shapes[n.In[0]]
	c.box = box{sizes: in, to: strides(e.shapes[n.Out[0]]), from: strides(in)}
	for i, before := range params[padParams](n).before {
		c.box.into += before * c.box.to[i]
	}
	c.copy(e, n, n.In[0])
}

// fill sets every element of a value to x.
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

// concatenate copies each input to its offset along the axis.
func (e *reference) concatenate(n *node) { e.copyBoxes(n, planConcatenate) }

func planConcatenate(e *reference, n *node, c *copies) {
	out := e.shapes[n.Out[0]]
	axis, _ := params[concatenateParams](n).of(out.rank)
	at := 0
	for _, v := range n.In {
		c.box = box{sizes: e.shapes[v], to: strides(out), from: strides(e.shapes[v])}
		c.box.into = at * c.box.to[axis]
		c.copy(e, n, v)
		at += c.box.sizes.dim[axis]
	}
}
