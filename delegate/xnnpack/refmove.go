package xnnpack

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

// box copies a box of elements: element (i, j, …) of sizes goes from sum of i·from to
// sum of i·to, counted in elements from the given ones on.
type box struct {
	sizes    shape
	from, to steps
}

func (b *box) copy(dst, src []byte, size int) { b.level(0, dst, src, 0, 0, size) }

func (b *box) level(d int, dst, src []byte, to, from, size int) {
	if d == b.sizes.rank {
		copy(dst[to*size:(to+1)*size], src[from*size:])
		return
	}
	if d == b.sizes.rank-1 && b.from[d] == 1 && b.to[d] == 1 {
		n := b.sizes.dim[d] * size
		copy(dst[to*size:to*size+n], src[from*size:])
		return
	}
	for i := range b.sizes.dim[d] {
		b.level(d+1, dst, src, to+i*b.to[d], from+i*b.from[d], size)
	}
}

func (e *reference) transpose(n *node) {
	in, out := e.shapes[n.In[0]], e.shapes[n.Out[0]]
	b := box{sizes: out, to: strides(out)}
	step := strides(in)
	for i, p := range params[transposeParams](n).perm {
		b.from[i] = step[p]
	}
	b.copy(e.bytes[n.Out[0]], e.bytes[n.In[0]], e.elementSize(n.Out[0]))
}

func (e *reference) slice(n *node) {
	in, out := e.shapes[n.In[0]], e.shapes[n.Out[0]]
	b := box{sizes: out, to: strides(out), from: strides(in)}
	first, size := 0, e.elementSize(n.Out[0])
	for i, offset := range params[sliceParams](n).offsets {
		first += offset * b.from[i]
	}
	b.copy(e.bytes[n.Out[0]], e.bytes[n.In[0]][first*size:], size)
}

// pad writes the padding value everywhere, then the input into its place.
func (e *reference) pad(n *node) {
	in, out := e.shapes[n.In[0]], e.shapes[n.Out[0]]
	b := box{sizes: in, to: strides(out), from: strides(in)}
	first, size := 0, e.elementSize(n.Out[0])
	p := params[padParams](n)
	for i, before := range p.before {
		first += before * b.to[i]
	}
	e.fill(n.Out[0], p.value)
	b.copy(e.bytes[n.Out[0]][first*size:], e.bytes[n.In[0]], size)
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
	dst, size := e.bytes[n.Out[0]], e.elementSize(n.Out[0])
	row := out.trailing(axis) * size
	at := 0
	for _, v := range n.In {
		part := e.shapes[v].trailing(axis) * size
		for i := range out.leading(axis) {
			copy(dst[i*row+at:], e.bytes[v][i*part:(i+1)*part])
		}
		at += part
	}
}

// broadcaster walks two operands that are broadcast to an output.
type broadcaster struct {
	out  shape
	a, b steps // strides, 0 where an operand is repeated
}

func (e *reference) mapBinary(n *node, bounded bool, f func(a, b float32) float32) {
	out := e.shapes[n.Out[0]]
	m := broadcaster{out: out, a: repeated(e.shapes[n.In[0]], out), b: repeated(e.shapes[n.In[1]], out)}
	x, w, y := e.load(0, n.In[0]), e.load(1, n.In[1]), e.result(n.Out[0])
	m.rows(0, 0, 0, 0, func(at, i, j int) {
		da, db := m.a[out.rank-1], m.b[out.rank-1]
		for k := range out.last() {
			y[at+k] = f(x[i+k*da], w[j+k*db])
		}
	})
	if bounded {
		n.bound(y)
	}
	e.store(n.Out[0])
}

// repeated are the strides of an operand along the output's dimensions.
func repeated(in, out shape) (s steps) {
	own := strides(in)
	for i := range in.rank {
		if in.dim[i] > 1 {
			s[out.rank-in.rank+i] = own[i]
		}
	}
	return s
}

// rows calls visit for each innermost row with its places in the output and operands.
func (m *broadcaster) rows(d, at, i, j int, visit func(at, i, j int)) int {
	if d >= m.out.rank-1 {
		visit(at, i, j)
		return at + m.out.last()
	}
	for k := range m.out.dim[d] {
		at = m.rows(d+1, at, i+k*m.a[d], j+k*m.b[d], visit)
	}
	return at
}
