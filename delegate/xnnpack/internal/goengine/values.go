package goengine

import (
	"math"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// values are the values of a graph.
type values struct {
	graph  *graph.Graph
	shapes []graph.Shape
	data   [][]byte  // of every value, including constants and arguments
	tokens [][]token // scales of dynamically quantized values
}

// token is the scale and zero point of one group of dynamically quantized elements.
type token struct {
	scale float32
	zero  int32
}

// biasOf returns the node's bias as floats, zeros for none.
func (e *values) biasOf(n *graph.Node) []float32 {
	channels := e.shapes[n.Out[0]].Last()
	if len(n.In) < 3 || n.In[2] == graph.None {
		return make([]float32, channels)
	}
	if v := n.In[2]; e.graph.Values[v].Datatype == graph.FP32 {
		return tensor.View[float32](e.data[v])[:channels]
	}
	numbers := make([]float32, channels)
	if e.decode(numbers, n.In[2]); hasQuantizedInput(e.graph, n) {
		for i, scale := range filterScales(e.graph, n, channels) {
			numbers[i] *= e.graph.Values[n.In[0]].Quant.Scale * scale
		}
	}
	return numbers
}

func (e *values) elementSize(v int) int { return e.graph.Values[v].Datatype.Info().Bits / 8 }

// decode converts the elements of value v to float32 numbers.
func (e *values) decode(dst []float32, v int) {
	x, b := &e.graph.Values[v], e.data[v]
	switch x.Datatype {
	case graph.FP16, graph.BF16, graph.FP32:
		graph.DecodeFloats(dst, x.Datatype, b)
	case graph.QInt8, graph.QUInt8:
		q, _ := bytesAs(x)
		q.Dequantize(dst, b, x.Quant.Scale)
	case graph.QDInt8:
		each := len(dst) / len(e.tokens[v])
		for i, t := range e.tokens[v] {
			q := simd.Quantized{Signed: true, Zero: t.zero, Lo: -128, Hi: 127}
			q.Dequantize(dst[i*each:][:each], b[i*each:], t.scale)
		}
	case graph.QCInt4, graph.QBInt4:
		e.decodeNibbles(dst, v)
	case graph.Int32, graph.QInt32, graph.QCInt32:
		for i, q := range tensor.View[int32](b)[:len(dst)] {
			dst[i] = float32(q)
		}
	case graph.QCInt8:
		e.decodeChannels(dst, v)
	}
}

// decodeChannels is like decode, for int8 with one scale per channel.
func (e *values) decodeChannels(dst []float32, v int) {
	x := &e.graph.Values[v]
	inner, channels := e.shapes[v].Trailing(x.Quant.ChannelDim+1), e.shapes[v].Dim[x.Quant.ChannelDim]
	for i, q := range tensor.View[int8](e.data[v])[:len(dst)] {
		dst[i] = float32(q) * x.Quant.Scales[i/inner%channels]
	}
}

// decodeNibbles is like decode, for 4-bit elements of rows with one scale each, or one for each group of elements.
func (e *values) decodeNibbles(dst []float32, v int) {
	x, b := &e.graph.Values[v], e.data[v]
	q, cols := &x.Quant, x.Shape.Last()
	for i := range dst {
		row, col, scale := i/cols, i%cols, float32(0)
		if x.Datatype == graph.QBInt4 {
			scale = math.Float32frombits(uint32(q.Blocks[row*(cols/q.GroupSize)+col/q.GroupSize]) << 16)
		} else {
			scale = q.Scales[row]
		}
		dst[i] = float32(int32(b[row*((cols+1)/2)+col/2]>>(4*(col&1))&15)-q.ZeroPoint) * scale
	}
}

// encode rounds numbers to the elements of value v: 16-bit floats to nearest even, quantized
// elements to the nearest within the range of the type.
func (e *values) encode(v int, src []float32) {
	x, b := &e.graph.Values[v], e.data[v]
	switch x.Datatype {
	case graph.FP16:
		graph.EncodeFP16(tensor.View[uint16](b), src)
	case graph.BF16:
		graph.EncodeBF16(tensor.View[uint16](b), src)
	case graph.QInt8, graph.QUInt8:
		q, _ := bytesAs(x)
		quantizeFixed(&q, b, src, x.Quant.Scale)
	}
}

// filterNumbers returns the numbers of a filter, in memory that must not be modified.
func (e *values) filterNumbers(v int) []float32 {
	x := &e.graph.Values[v]
	n := e.shapes[v].Numel()
	if x.Datatype == graph.FP32 {
		return tensor.View[float32](e.data[v])[:n]
	}
	numbers := make([]float32, n)
	e.decode(numbers, v)
	return numbers
}

// numberBytes returns the size of a value's float32 copy, 0 if it is float32 already.
func numberBytes(g *graph.Graph, v int, s []graph.Shape) int64 {
	if g.Values[v].Datatype == graph.FP32 {
		return 0
	}
	return graph.Times(4, s[v].Numel())
}

// bytesAs returns the quantization of a value's bytes, and false if the value does not consist of
// bytes with one scale.
func bytesAs(x *graph.Value) (simd.Quantized, bool) {
	switch x.Datatype {
	case graph.QInt8:
		return simd.Quantized{Signed: true, Zero: x.Quant.ZeroPoint, Lo: -128, Hi: 127}, true
	case graph.QUInt8:
		return simd.Quantized{Zero: x.Quant.ZeroPoint, Lo: 0, Hi: 255}, true
	}
	return simd.Quantized{}, false
}

// readsBytes reports whether a node's first input consists of bytes with one scale.
func readsBytes(g *graph.Graph, n *graph.Node) bool {
	_, ok := bytesAs(&g.Values[n.In[0]])
	return ok
}

// writesBytes reports whether a node's output consists of bytes with one scale.
func writesBytes(g *graph.Graph, n *graph.Node) bool {
	_, ok := bytesAs(&g.Values[n.Out[0]])
	return ok
}

// mapsBytes reports whether a node computes bytes from bytes.
func mapsBytes(g *graph.Graph, n *graph.Node) bool { return readsBytes(g, n) && writesBytes(g, n) }

// quantizeFixed quantizes numbers with a scale of the file. The library and the operators multiply by the rounded reciprocal, too: a
// quotient may be on the other side of the middle between two elements. NaN becomes the element 0, as in the operators.
func quantizeFixed(q *simd.Quantized, dst []uint8, src []float32, scale float32) {
	q.Quantize(dst, src, 1/scale)
	if sum := simd.Sum(src); sum == sum {
		return
	}
	for i, x := range src {
		if x != x {
			dst[i] = 0
		}
	}
}

// constantsOf returns the values of a graph, of which only constants have bytes.
func constantsOf(g *graph.Graph, shapes []graph.Shape) values {
	e := values{graph: g, shapes: shapes, data: make([][]byte, len(g.Values)), tokens: make([][]token, len(g.Values))}
	for v := range g.Values {
		e.data[v] = g.Values[v].Data
	}
	return e
}

// filterScales returns the scales of the columns, which are 1 if groups of rows have their own.
func filterScales(g *graph.Graph, n *graph.Node, columns int) []float32 {
	x, scales := &g.Values[n.In[1]], make([]float32, columns)
	for i := range scales {
		switch x.Datatype.Info().Quant {
		case graph.PerTensor:
			scales[i] = x.Quant.Scale
		case graph.PerChannel:
			scales[i] = x.Quant.Scales[i]
		default:
			scales[i] = 1
		}
	}
	return scales
}

// overread is the number of bytes that 8-bit products may read past the last element that they use.
const overread = 16

// hasQuantizedInput reports whether a node's first input is not floating-point.
func hasQuantizedInput(g *graph.Graph, n *graph.Node) bool {
	return !g.Values[n.In[0]].Datatype.IsFloat()
}
