package xnnpack

import (
	"math"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// prepared returns the node's filter: the image's with the unit's bias, or one of the operands of this call.
func (e *reference) prepared(n *node) *filter {
	f := e.filters[n.at]
	if f == nil || !e.graph.Values[n.In[1]].isConst() {
		f = new(filter)
		if constant := e.packed.plain[n.at]; constant != nil {
			*f = *constant
		} else {
			*f = *e.newFilter(n)
		}
		e.filters[n.at] = f
	}
	e.prepareBias(f, n)
	return f
}

// newFilter decodes a node's filter, except its bias.
func (e *reference) newFilter(n *node) *filter {
	v := n.In[1]
	f, at := filterOrder(e.graph, n)
	f.values = make([]float32, f.groups*f.k*f.n)
	in := e.graph.Values[n.In[0]].Datatype
	f.exact = in == qint8 || in == quint8 || in == qdint8
	element := e.elements(v)
	for g := range f.groups {
		for i := range f.k {
			e.run.Poll()
			row := f.values[(g*f.k+i)*f.n:][:f.n]
			for j := range row {
				row[j] = element(at(g, i, j))
			}
		}
	}
	f.prepareScales(&e.graph.Values[v])
	return f
}

// filterOrder returns a filter of the node's size, and a function that returns the index, in the filter's value, of
// the element in group g, row i and column j of the products.
func filterOrder(g *graph, n *node) (f *filter, at func(g, i, j int) int) {
	w := n.window()
	switch {
	case w == nil:
		k, cols := n.inputChannels(g), n.outputChannels(g)
		if n.Flags&flagTransposeWeights != 0 {
			return &filter{groups: 1, k: k, n: cols}, func(_, i, j int) int { return i*cols + j }
		}
		return &filter{groups: 1, k: k, n: cols}, func(_, i, j int) int { return j*k + i }
	case n.Type.tag == tagDepthwiseConv2d:
		channels := w.groups * w.groupOut
		return &filter{groups: 1, k: w.kernelH * w.kernelW, n: channels}, func(_, i, j int) int { return i*channels + j }
	}
	k := w.kernelH * w.kernelW * w.groupIn
	return &filter{groups: w.groups, k: k, n: w.groupOut}, func(g, i, j int) int { return (g*w.groupOut+j)*k + i }
}

// elements returns a function that reads a filter. Quantized elements are integers, less the zero
// point.
func (e *reference) elements(v int) func(i int) float32 {
	x, b := &e.graph.Values[v], e.bytes[v]
	switch x.Datatype {
	case qint8, qcint8:
		q := tensor.View[int8](b)
		return func(i int) float32 { return float32(q[i]) }
	case quint8:
		return func(i int) float32 { return float32(int32(b[i]) - x.Quant.ZeroPoint) }
	case qcint4, qbint4:
		cols := x.Shape.last()
		row := (cols + 1) / 2
		return func(i int) float32 {
			r, c := i/cols, i%cols
			return float32(int32(b[r*row+c/2]>>(4*(c&1))&15) - x.Quant.ZeroPoint)
		}
	}
	numbers := e.load(2, v)
	return func(i int) float32 { return numbers[i] }
}

// prepareScales sets the scale of each column, or of each block of rows and column.
func (f *filter) prepareScales(x *value) {
	switch x.Datatype.info().quant {
	case perTensor:
		f.scales = make([]float32, f.groups*f.n)
		for i := range f.scales {
			f.scales[i] = x.Quant.Scale
		}
	case perChannel:
		f.scales = x.Quant.Scales
	case perGroup:
		f.block = x.Quant.GroupSize
		blocks := f.k / f.block
		f.blockScales = make([]float32, blocks*f.n)
		for j := range f.n {
			for b := range blocks {
				f.blockScales[b*f.n+j] = math.Float32frombits(uint32(x.Quant.Blocks[j*blocks+b]) << 16)
			}
		}
	}
}

// prepareBias sets the bias, which may be computed at run time.
func (e *reference) prepareBias(f *filter, n *node) {
	if len(n.In) < 3 || n.In[2] == none {
		return
	}
	switch e.graph.Values[n.In[2]].Datatype {
	case qint32, qcint32:
		f.wholeBias = tensor.View[int32](e.bytes[n.In[2]])
	case fp32:
		f.bias = tensor.View[float32](e.bytes[n.In[2]])
	default:
		f.bias = e.constant(n.In[2])
	}
}

// fullyConnected multiplies rows of the input by the filter.
func (e *reference) fullyConnected(n *node) {
	if e.int8(n) {
		return
	}
	if !e.plain && !hasQuantizedInput(e.graph, n) {
		e.floatFullyConnected(n)
		return
	}
	f := e.prepared(n)
	e.rows = denseRows{e.whole(0, n.In[0]), f.k}
	e.product = product{e: e, node: n, filter: f, source: &e.rows, rows: e.shapes[n.Out[0]].numel() / f.n,
		out: n.Out[0], result: requantizerOf(e.graph, n), work: e.product.work}
	e.product.multiply()
}

// denseRows is a source of the rows of a matrix.
type denseRows struct {
	x []float32
	k int
}

func (r *denseRows) row(dst []float32, _, p int) { copy(dst, r.x[p*r.k:(p+1)*r.k]) }

// batchMatrix multiplies batches of matrices. Outer dimensions of size 1 are broadcast.
func (e *reference) batchMatrix(n *node) {
	if e.int8(n) {
		return
	}
	if !e.plain && !hasQuantizedInput(e.graph, n) && e.graph.Values[n.In[1]].Datatype.isFloat() {
		e.floatBatch(n)
		return
	}
	a, b, out := e.shapes[n.In[0]], e.shapes[n.In[1]], e.shapes[n.Out[0]]
	m, cols, k := out.fromEnd(1), out.fromEnd(0), a.fromEnd(0)
	transposed := n.Flags&flagTransposeWeights != 0
	x := e.whole(0, n.In[0])
	w := e.whole(1, n.In[1])
	if e.graph.Values[n.In[1]].Datatype == qcint8 {
		w = e.wholeConstant(n.In[1])
	}
	f := e.matrix(n, k, cols)
	for batch := range out.leading(out.rank - 2) {
		from := w[batchOffset(batch, out, b)*k*cols:][:k*cols]
		for i := range k {
			e.run.Poll()
			for j := range cols {
				if transposed {
					f.values[i*cols+j] = from[j*k+i]
				} else {
					f.values[i*cols+j] = from[i*cols+j]
				}
			}
		}
		e.rows = denseRows{x[batchOffset(batch, out, a)*m*k:][:m*k], k}
		if f.exact {
			f.scales = e.graph.Values[n.In[1]].Quant.Scales
		}
		e.product = product{e: e, node: n, filter: f, source: &e.rows, rows: m, out: n.Out[0], first: batch * m * cols,
			work: e.product.work}
		e.product.multiply()
	}
}

// matrix returns a filter for one matrix [k, cols] of a batch. Its memory is reused.
func (e *reference) matrix(n *node, k, cols int) *filter {
	f := e.filters[n.at]
	if f == nil {
		f = &filter{groups: 1, exact: e.graph.Values[n.In[0]].Datatype == qdint8}
		e.filters[n.at] = f
	}
	f.k, f.n, f.values = k, cols, grow(f.values, k*cols)
	return f
}

// wholeConstant returns the elements of an int8 constant as floats, converted once.
func (e *reference) wholeConstant(v int) []float32 {
	if e.floats[v] == nil {
		for _, q := range tensor.View[int8](e.bytes[v]) {
			e.floats[v] = append(e.floats[v], float32(q))
		}
	}
	return e.floats[v]
}

// batchOffset returns the index of the operand's matrix for matrix i of the output.
func batchOffset(i int, out, operand shape) int {
	at, stride := 0, 1
	for d := 2; d < out.rank; d++ {
		index := i % out.fromEnd(d)
		i /= out.fromEnd(d)
		if size := operand.fromEnd(d); size > 1 {
			at += index * stride
			stride *= size
		}
	}
	return at
}
