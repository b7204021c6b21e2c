// Package numbers (no compatibility promise) has the values of a graph, and the numbers that their bytes mean.
package numbers

import (
	"math"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/x448/float16"
)

// Values are the values of a graph.
type Values struct {
	Graph  *graph.Graph
	Shapes []graph.Shape
	Data   [][]byte  // of every value, including constants and arguments
	Tokens [][]Token // scales of dynamically quantized values
}

// Token is the scale and zero point of one group of dynamically quantized elements.
type Token struct {
	Scale float32
	Zero  int32
}

// BiasOf returns the node's bias as floats, zeros for none.
func (e *Values) BiasOf(n *graph.Node) []float32 {
	channels := e.Shapes[n.Out[0]].Last()
	if len(n.In) < 3 || n.In[2] == graph.None {
		return make([]float32, channels)
	}
	if v := n.In[2]; e.Graph.Values[v].Datatype == graph.FP32 {
		return tensor.View[float32](e.Data[v])[:channels]
	}
	numbers := make([]float32, channels)
	if e.Decode(numbers, n.In[2]); hasQuantizedInput(e.Graph, n) {
		for i, scale := range FilterScales(e.Graph, n, channels) {
			numbers[i] *= e.Graph.Values[n.In[0]].Quant.Scale * scale
		}
	}
	return numbers
}

func (e *Values) ElementSize(v int) int { return e.Graph.Values[v].Datatype.Info().Bits / 8 }

// Decode converts the elements of value v to float32 numbers.
func (e *Values) Decode(dst []float32, v int) {
	x, b := &e.Graph.Values[v], e.Data[v]
	switch x.Datatype {
	case graph.FP16, graph.BF16, graph.FP32:
		graph.DecodeFloats(dst, x.Datatype, b)
	case graph.QInt8, graph.QUInt8:
		q, _ := BytesAs(x)
		q.Dequantize(dst, b, x.Quant.Scale)
	case graph.QDInt8:
		each := len(dst) / len(e.Tokens[v])
		for i, t := range e.Tokens[v] {
			q := simd.Quantized{Signed: true, Zero: t.Zero, Lo: -128, Hi: 127}
			q.Dequantize(dst[i*each:][:each], b[i*each:], t.Scale)
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
func (e *Values) decodeChannels(dst []float32, v int) {
	x := &e.Graph.Values[v]
	inner, channels := e.Shapes[v].Trailing(x.Quant.ChannelDim+1), e.Shapes[v].Dim[x.Quant.ChannelDim]
	for i, q := range tensor.View[int8](e.Data[v])[:len(dst)] {
		dst[i] = float32(q) * x.Quant.Scales[i/inner%channels]
	}
}

// decodeNibbles is like decode, for 4-bit elements of rows with one scale each, or one for each group of elements.
func (e *Values) decodeNibbles(dst []float32, v int) {
	x, b := &e.Graph.Values[v], e.Data[v]
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

// Encode rounds numbers to the elements of value v: 16-bit floats to nearest even, quantized
// elements to the nearest within the range of the type.
func (e *Values) Encode(v int, src []float32) {
	x, b := &e.Graph.Values[v], e.Data[v]
	switch x.Datatype {
	case graph.FP16:
		graph.EncodeFP16(tensor.View[uint16](b), src)
	case graph.BF16:
		graph.EncodeBF16(tensor.View[uint16](b), src)
	case graph.QInt8, graph.QUInt8:
		q, _ := BytesAs(x)
		QuantizeFixed(&q, b, src, x.Quant.Scale)
	}
}

// FilterNumbers returns the numbers of a filter, in memory that must not be modified.
func (e *Values) FilterNumbers(v int) []float32 {
	x := &e.Graph.Values[v]
	n := e.Shapes[v].Numel()
	if x.Datatype == graph.FP32 {
		return tensor.View[float32](e.Data[v])[:n]
	}
	numbers := make([]float32, n)
	e.Decode(numbers, v)
	return numbers
}

// NumberBytes returns the size of a value's float32 copy, 0 if it is float32 already.
func NumberBytes(g *graph.Graph, v int, s []graph.Shape) int64 {
	if g.Values[v].Datatype == graph.FP32 {
		return 0
	}
	return graph.Times(4, s[v].Numel())
}

// BytesAs returns the quantization of a value's bytes, and false if the value does not consist of
// bytes with one scale.
func BytesAs(x *graph.Value) (simd.Quantized, bool) {
	switch x.Datatype {
	case graph.QInt8:
		return simd.Quantized{Signed: true, Zero: x.Quant.ZeroPoint, Lo: -128, Hi: 127}, true
	case graph.QUInt8:
		return simd.Quantized{Zero: x.Quant.ZeroPoint, Lo: 0, Hi: 255}, true
	}
	return simd.Quantized{}, false
}

// ReadsBytes reports whether a node's first input consists of bytes with one scale.
func ReadsBytes(g *graph.Graph, n *graph.Node) bool { return isBytes(&g.Values[n.In[0]]) }

// WritesBytes reports whether a node's output consists of bytes with one scale.
func WritesBytes(g *graph.Graph, n *graph.Node) bool { return isBytes(&g.Values[n.Out[0]]) }

func isBytes(x *graph.Value) bool { return x.Datatype == graph.QInt8 || x.Datatype == graph.QUInt8 }

// MapsBytes reports whether a node computes bytes from bytes.
func MapsBytes(g *graph.Graph, n *graph.Node) bool { return ReadsBytes(g, n) && WritesBytes(g, n) }

// QuantizeFixed quantizes numbers with a scale of the file. The library and the operators multiply by the rounded reciprocal, too: a
// quotient may be on the other side of the middle between two elements. NaN becomes the element 0, as in the operators.
func QuantizeFixed(q *simd.Quantized, dst []uint8, src []float32, scale float32) {
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

// ConstantsOf returns the values of a graph, of which only constants have bytes.
func ConstantsOf(g *graph.Graph, shapes []graph.Shape) Values {
	e := Values{Graph: g, Shapes: shapes, Data: make([][]byte, len(g.Values)), Tokens: make([][]Token, len(g.Values))}
	for v := range g.Values {
		e.Data[v] = g.Values[v].Data
	}
	return e
}

// FilterScales returns the scales of the columns, which are 1 if groups of rows have their own.
func FilterScales(g *graph.Graph, n *graph.Node, columns int) []float32 {
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

// Overread is the number of bytes that 8-bit products may read past the last element that they use.
const Overread = 16

// hasQuantizedInput reports whether a node's first input is not floating-point.
func hasQuantizedInput(g *graph.Graph, n *graph.Node) bool {
	return !g.Values[n.In[0]].Datatype.IsFloat()
}

// DynamicToken maps int8 to the range of x, extended to contain 0, so that an element represents 0
// exactly (xnn_f32_qd8_asymmetric_quantization_params).
func DynamicToken(x []float32) Token {
	lo, hi := min(0, simd.Min(x)), max(0, simd.Max(x))
	const qmin, qmax = -128, 127
	if hi-lo-(hi-lo) != 0 { // no scale represents NaN or infinities: all elements become NaN
		return Token{Scale: float32(math.NaN())}
	}
	scale := float32(1)
	if lo != hi {
		scale = (qmax - qmin) / (hi - lo)
	}
	fromMin, fromMax := float32(lo*scale), float32(hi*scale)
	zero := float32(qmin - fromMin)
	if float32(qmin+fromMin)+float32(qmax+fromMax) <= 0 {
		zero = qmax - fromMax
	}
	zero = max(zero, qmin)
	zero = min(zero, qmax)
	return Token{Scale: 1 / scale, Zero: int32(math.RoundToEven(float64(zero)))}
}

// Requantizer converts sums of quantized products to elements of the output.
type Requantizer struct {
	in, out      float32 // scales
	zero, lo, hi int32
}

func (r *Requantizer) Quantized(signed bool) simd.Quantized {
	return simd.Quantized{Signed: signed, Zero: r.zero, Lo: r.lo, Hi: r.hi}
}

func (r *Requantizer) Scale(filter float32) float32 { return float32(r.in*filter) / r.out }

// RequantizerOf returns the conversion of a node from the scale of its input to that of its output.
func RequantizerOf(g *graph.Graph, n *graph.Node) Requantizer {
	in, out := &g.Values[n.In[0]], &g.Values[n.Out[0]]
	r := Requantizer{in: in.Quant.Scale, out: out.Quant.Scale, zero: out.Quant.ZeroPoint}
	switch out.Datatype {
	case graph.QInt8:
		r.lo, r.hi = -128, 127
	case graph.QUInt8:
		r.lo, r.hi = 0, 255
	default:
		return r
	}
	lo, hi := r.lo, r.hi
	if !math.IsInf(float64(n.Min), -1) {
		r.lo = graph.Quantize(n.Min/r.out, r.zero, lo, hi)
	}
	if !math.IsInf(float64(n.Max), 1) {
		r.hi = graph.Quantize(n.Max/r.out, r.zero, lo, hi)
	}
	return r
}

// Reciprocal returns the factor that converts numbers to elements. For halves the factor is rounded
// to a half, too.
func Reciprocal(t Token, half bool) float32 {
	x := 1 / t.Scale
	if half {
		x = float16.Fromfloat32(x).Float32()
	}
	return x
}
