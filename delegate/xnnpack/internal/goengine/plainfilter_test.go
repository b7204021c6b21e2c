package goengine

import (
	"math"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// newFilter decodes a node's filter, except its bias.
func (e *frame) newFilter(n *graph.Node) *filter {
	v := n.In[1]
	f, at := filterOrder(e.graph, n)
	f.values = make([]float32, f.groups*f.k*f.n)
	in := e.graph.Values[n.In[0]].Datatype
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
	f.prepareScales(&e.graph.Values[v])
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
func (e *frame) elements(v int) func(i int) float32 {
	x, b := &e.graph.Values[v], e.data[v]
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
func (e *frame) prepareBias(f *filter, n *graph.Node) {
	if len(n.In) < 3 || n.In[2] == graph.None {
		return
	}
	switch e.graph.Values[n.In[2]].Datatype {
	case graph.QInt32, graph.QCInt32:
		f.int32Bias = tensor.View[int32](e.data[n.In[2]])
	case graph.FP32:
		f.bias = tensor.View[float32](e.data[n.In[2]])
	default:
		f.bias = make([]float32, e.shapes[n.In[2]].Numel())
		e.decode(f.bias, n.In[2])
	}
}
