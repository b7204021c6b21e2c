package goengine

import (
	"math"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// prepared returns the node's filter: the image's with the unit's bias, or one of the operands of this call.
func (e *Unit) prepared(n *graph.Node) *filter {
	f := e.filters[n.At]
	if f == nil || !e.Graph.Values[n.In[1]].IsConst() {
		f = new(filter)
		*f = *e.newFilter(n)
		e.filters[n.At] = f
	}
	e.prepareBias(f, n)
	return f
}

// newFilter decodes a node's filter, except its bias.
func (e *Unit) newFilter(n *graph.Node) *filter {
	v := n.In[1]
	f, at := filterOrder(e.Graph, n)
	f.values = make([]float32, f.groups*f.k*f.n)
	in := e.Graph.Values[n.In[0]].Datatype
	f.exact = in == graph.QInt8 || in == graph.QUInt8 || in == graph.QDInt8
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
	f.prepareScales(&e.Graph.Values[v])
	return f
}

// filterOrder returns a filter of the node's size, and a function that returns the index, in the filter's value, of
// the element in group g, row i and column j of the products.
func filterOrder(g *graph.Graph, n *graph.Node) (f *filter, at func(g, i, j int) int) {
	w := n.Window()
	switch {
	case w == nil:
		k, cols := n.InputChannels(g), n.OutputChannels(g)
		if n.Flags&graph.FlagTransposeWeights != 0 {
			return &filter{groups: 1, k: k, n: cols}, func(_, i, j int) int { return i*cols + j }
		}
		return &filter{groups: 1, k: k, n: cols}, func(_, i, j int) int { return j*k + i }
	case n.Type.Tag == graph.TagDepthwiseConv2d:
		channels := w.Groups * w.GroupOut
		return &filter{groups: 1, k: w.KernelH * w.KernelW, n: channels}, func(_, i, j int) int { return i*channels + j }
	}
	k := w.KernelH * w.KernelW * w.GroupIn
	return &filter{groups: w.Groups, k: k, n: w.GroupOut}, func(g, i, j int) int { return (g*w.GroupOut+j)*k + i }
}

// elements returns a function that reads a filter. Quantized elements are integers, less the zero
// point.
func (e *Unit) elements(v int) func(i int) float32 {
	x, b := &e.Graph.Values[v], e.Bytes[v]
	switch x.Datatype {
	case graph.QInt8, graph.QCInt8:
		q := tensor.View[int8](b)
		return func(i int) float32 { return float32(q[i]) }
	case graph.QUInt8:
		return func(i int) float32 { return float32(int32(b[i]) - x.Quant.ZeroPoint) }
	case graph.QCInt4, graph.QBInt4:
		cols := x.Shape.Last()
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
func (f *filter) prepareScales(x *graph.Value) {
	switch x.Datatype.Info().Quant {
	case graph.PerTensor:
		f.scales = make([]float32, f.groups*f.n)
		for i := range f.scales {
			f.scales[i] = x.Quant.Scale
		}
	case graph.PerChannel:
		f.scales = x.Quant.Scales
	case graph.PerGroup:
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
func (e *Unit) prepareBias(f *filter, n *graph.Node) {
	if len(n.In) < 3 || n.In[2] == graph.None {
		return
	}
	switch e.Graph.Values[n.In[2]].Datatype {
	case graph.QInt32, graph.QCInt32:
		f.int32Bias = tensor.View[int32](e.Bytes[n.In[2]])
	case graph.FP32:
		f.bias = tensor.View[float32](e.Bytes[n.In[2]])
	default:
		f.bias = e.constant(n.In[2])
	}
}

// fullyConnected multiplies rows of the input by the filter.
func (e *Unit) fullyConnected(n *graph.Node) {
	if e.int8(n) {
		return
	}
	if !e.Plain {
		e.floatFullyConnected(n)
		return
	}
	f := e.prepared(n)
	e.rows = denseRows{e.factors(0, n.In[0]), f.k}
	e.product = product{e: e, node: n, filter: f, source: &e.rows, rows: e.Shapes[n.Out[0]].Numel() / f.n,
		out: n.Out[0], result: requantizerOf(e.Graph, n), work: e.product.work}
	e.product.multiply()
}

// batchMatrix multiplies batches of matrices. Outer dimensions of size 1 are broadcast.
func (e *Unit) batchMatrix(n *graph.Node) {
	if e.int8(n) {
		return
	}
	if !e.Plain {
		e.floatBatch(n)
		return
	}
	a, b, out := e.Shapes[n.In[0]], e.Shapes[n.In[1]], e.Shapes[n.Out[0]]
	m, cols, k := out.FromEnd(1), out.FromEnd(0), a.FromEnd(0)
	transposed := n.Flags&graph.FlagTransposeWeights != 0
	x := e.factors(0, n.In[0])
	w := e.factors(1, n.In[1])
	if e.Graph.Values[n.In[1]].Datatype == graph.QCInt8 {
		w = e.differences(n.In[1])
	}
	f := e.matrix(n, k, cols)
	for batch := range out.Leading(out.Rank - 2) {
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
			f.scales = e.Graph.Values[n.In[1]].Quant.Scales
		}
		e.product = product{e: e, node: n, filter: f, source: &e.rows, rows: m, out: n.Out[0], first: batch * m * cols,
			work: e.product.work}
		e.product.multiply()
	}
}

// matrix returns a filter for one matrix [k, cols] of a batch. Its memory is reused.
func (e *Unit) matrix(n *graph.Node, k, cols int) *filter {
	f := e.filters[n.At]
	if f == nil {
		f = &filter{groups: 1, exact: e.Graph.Values[n.In[0]].Datatype == graph.QDInt8}
		e.filters[n.At] = f
	}
	f.k, f.n, f.values = k, cols, grow(f.values, k*cols)
	return f
}

// differences returns the elements of an int8 constant as floats, converted once.
func (e *Unit) differences(v int) []float32 {
	if e.floats[v] == nil {
		for _, q := range tensor.View[int8](e.Bytes[v]) {
			e.floats[v] = append(e.floats[v], float32(q))
		}
	}
	return e.floats[v]
}
