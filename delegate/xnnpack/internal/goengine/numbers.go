package goengine

import (
	"math"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// decode converts the elements of value v to float32 numbers.
func (e *frame) decode(dst []float32, v int) {
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
func (e *frame) decodeChannels(dst []float32, v int) {
	x := &e.graph.Values[v]
	inner, channels := e.shapes[v].Trailing(x.Quant.ChannelDim+1), e.shapes[v].Dim[x.Quant.ChannelDim]
	for i, q := range tensor.View[int8](e.data[v])[:len(dst)] {
		dst[i] = float32(q) * x.Quant.Scales[i/inner%channels]
	}
}

// decodeNibbles is like decode, for 4-bit elements of rows with one scale each, or one for each group of elements.
func (e *frame) decodeNibbles(dst []float32, v int) {
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
func (e *frame) encode(v int, src []float32) {
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

// dynamicToken maps int8 to the range of x, extended to contain 0, so that an element represents 0
// exactly (xnn_f32_qd8_asymmetric_quantization_params).
func dynamicToken(x []float32) token {
	lo, hi := min(0, simd.Min(x)), max(0, simd.Max(x))
	const qmin, qmax = -128, 127
	if hi-lo-(hi-lo) != 0 { // no scale represents NaN or infinities: all elements become NaN
		return token{scale: float32(math.NaN())}
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
	return token{scale: 1 / scale, zero: int32(math.RoundToEven(float64(zero)))}
}

// requantizer converts sums of quantized products to elements of the output.
type requantizer struct {
	in, out      float32 // scales
	zero, lo, hi int32
}

func (r *requantizer) scale(filter float32) float32 { return float32(r.in*filter) / r.out }

// requantizerOf returns the conversion of a node from the scale of its input to that of its output.
func requantizerOf(g *graph.Graph, n *graph.Node) requantizer {
	in, out := &g.Values[n.In[0]], &g.Values[n.Out[0]]
	r := requantizer{in: in.Quant.Scale, out: out.Quant.Scale, zero: out.Quant.ZeroPoint}
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

// boundFloats clamps numbers to the node's bounds, in place.
func boundFloats(n *graph.Node, x []float32) {
	if n.Min == -graph.Inf && n.Max == graph.Inf {
		return
	}
	simd.Clamp(x, x, n.Min, n.Max)
}

// reserve makes sure that each worker has so many floats in its line. Only loops that work cannot
// know, those of tests, allocate.
func (e *frame) reserve(floats int) {
	for i := range e.workers {
		e.workers[i].line = pack.Grow(e.workers[i].line, floats)
	}
}
