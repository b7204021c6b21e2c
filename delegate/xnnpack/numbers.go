package xnnpack

import (
	"math"

	"github.com/x448/float16"

	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// decode converts the elements of value v to float32 numbers.
func (e *reference) decode(dst []float32, v int) {
	x, b := &e.graph.Values[v], e.bytes[v]
	switch x.Datatype {
	case fp16, bf16, fp32:
		decodeFloats(dst, x.Datatype, b)
	case qint8, quint8:
		q, _ := bytesAs(x)
		q.Dequantize(dst, b, x.Quant.Scale)
	case plainInt32, qint32:
		for i, q := range tensor.View[int32](b)[:len(dst)] {
			dst[i] = float32(q)
		}
	case qcint8:
		e.decodeChannels(dst, v)
	}
}

func decodeFloats(dst []float32, d datatype, b []byte) {
	switch d {
	case fp16:
		done := simd.HalfToFloat(dst, b)
		for i, h := range tensor.View[uint16](b)[done:len(dst)] {
			dst[done+i] = float16.Frombits(h).Float32()
		}
	case bf16:
		done := simd.BFloatToFloat(dst, b)
		for i, h := range tensor.View[uint16](b)[done:len(dst)] {
			dst[done+i] = math.Float32frombits(uint32(h) << 16)
		}
	case fp32:
		copy(dst, tensor.View[float32](b))
	}
}

// decodeChannels is like decode, for int8 with one scale per channel.
func (e *reference) decodeChannels(dst []float32, v int) {
	x := &e.graph.Values[v]
	inner, channels := e.shapes[v].trailing(x.Quant.ChannelDim+1), e.shapes[v].dim[x.Quant.ChannelDim]
	for i, q := range tensor.View[int8](e.bytes[v])[:len(dst)] {
		dst[i] = float32(q) * x.Quant.Scales[i/inner%channels]
	}
}

// encode rounds numbers to the elements of value v: 16-bit floats to nearest even, quantized
// elements to the nearest within the range of the type.
func (e *reference) encode(v int, src []float32) {
	x, b := &e.graph.Values[v], e.bytes[v]
	switch x.Datatype {
	case fp16:
		encodeFP16(tensor.View[uint16](b), src)
	case bf16:
		encodeBF16(tensor.View[uint16](b), src)
	case qint8, quint8:
		q, _ := bytesAs(x)
		quantizeFixed(&q, b, src, x.Quant.Scale)
	}
}

// quantizeFixed quantizes numbers with a scale of the file. NaN becomes the element 0, as in the operators.
func quantizeFixed(q *simd.Quantized, dst []uint8, src []float32, scale float32) {
	q.Quantize(dst, src, scale, true)
	if sum := simd.Sum(src); sum == sum {
		return
	}
	for i, x := range src {
		if x != x {
			dst[i] = 0
		}
	}
}

func encodeFP16(dst []uint16, src []float32) {
	done := simd.FloatToHalf(tensor.BytesOf(dst), src)
	for i, f := range src[done:] {
		dst[done+i] = float16.Fromfloat32(f).Bits()
	}
}

func encodeBF16(dst []uint16, src []float32) {
	done := simd.FloatToBFloat(tensor.BytesOf(dst), src)
	for i, f := range src[done:] {
		dst[done+i] = toBF16(f)
	}
}

func toBF16(f float32) uint16 {
	u := math.Float32bits(f)
	if f != f {
		return 0x7fc0
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

// quantize rounds x half to even, adds the zero point and clamps to [lo, hi], which are byte
// bounds. It returns lo for NaN.
func quantize(x float32, zero, lo, hi int32) int32 {
	if !(x > float32(lo-zero)) {
		return lo
	}
	if x >= float32(hi-zero) {
		return hi
	}
	const whole = 3 << 22 // adding it leaves no fraction bits
	return int32(float32(x+whole)-whole) + zero
}

// quantizeDynamic computes scale and zero point of each group of inner dimensions from its minimum,
// its maximum and 0, and quantizes the group. If half is set, it multiplies by a scale that is
// rounded to float16 too.
func (e *reference) quantizeDynamic(v int, x []float32, half bool) {
	if !e.plain {
		e.quantizeRows(v, x, half)
		return
	}
	s := e.shapes[v]
	groups := s.leading(s.rank - e.graph.Values[v].Quant.Nonbatch)
	e.tokens[v] = grow(e.tokens[v], groups)
	out := tensor.View[int8](e.bytes[v])
	n := len(x) / groups
	for g := range groups {
		t := dynamicToken(x[g*n : (g+1)*n])
		e.tokens[v][g] = t
		scale := reciprocal(t, half)
		for i, f := range x[g*n : (g+1)*n] {
			out[g*n+i] = int8(quantize(f*scale, t.zero, -128, 127))
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
