package lowering

import (
	"slices"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Weights are often read through calls that only change their representation: dequantization, and
// permutation of dimensions. Such calls become no node. Their results are constants of the
// lowering, which are dequantized when a node needs floats.

// int8Constant is the int8 data of a quantized constant, in the constant's own memory order.
type int8Constant struct {
	int8s  []byte    // int8, with zero point 0
	scales []float32 // one for each index along axis, or one for all
	axis   int
	filled bool // the constant's data is dequantized
}

// folds replaces the result of a call with a constant, if the operator's row can fold it and its
// operands are constants. It reports whether it did.
func (l *Lowering) folds(c *lowerCall) bool {
	row := c.loweringAt(c.index)
	if row == nil || row.fold == nil {
		return false
	}
	x := c.arg(0)
	return x.IsConst() && checkTensor(x) == nil && row.fold(c)
}

// prepare folds the calls that compute constants for a call.
func (l *Lowering) prepare(c *lowerCall) {
	for _, v := range c.ins() {
		w := l.in.Writer(v)
		if w < 0 || l.done[w] {
			continue
		}
		if row := l.loweringAt(w); row == nil || row.fold == nil {
			continue
		}
		if l.constantCall(w) {
			l.done[w] = true
		}
	}
}

// constantCall folds a call, after the calls that compute its operands.
func (l *Lowering) constantCall(i int) bool {
	c := l.newCall(i, nil)
	l.prepare(c)
	return l.folds(c)
}

// own clones the values before they are first changed, so that those of the graph stay unchanged.
func (l *Lowering) own() {
	if len(l.vals) > 0 && &l.vals[0] == &l.in.Values[0] {
		l.copies = append(l.copies[:0], l.vals...)
		l.vals = l.copies
	}
}

// placeholder returns n bytes that are neither read nor written.
func (l *Lowering) placeholder(n int) []byte {
	if len(l.unwritten) < n {
		l.unwritten = make([]byte, n)
	}
	return l.unwritten[:n:n]
}

// mayBecome reports whether a call's result can be replaced by constant x: it is declared as that, in any order that
// values support. Nothing may be changed before.
func (c *lowerCall) mayBecome(x *lowering.GraphValue) bool {
	y := &c.vals[c.out()]
	return y.DType == x.DType && slices.Equal(y.Sizes, x.Sizes) && checkTensor(y) == nil
}

// foldPermute permutes the dimensions of a constant. The bytes stay unchanged.
func foldPermute(c *lowerCall, perm []int) bool {
	x := c.arg(0)
	rank := len(x.Sizes)
	if !slices.Equal(slices.Sorted(slices.Values(perm)), contiguous.perm(rank)) {
		return false
	}
	at := inverse(perm)
	seen := *x
	seen.Sizes, seen.DimOrder = make([]int, rank), make([]uint8, rank)
	for i, p := range perm {
		seen.Sizes[i] = x.Sizes[p]
	}
	for i := range rank {
		d := i
		if len(x.DimOrder) > 0 {
			d = int(x.DimOrder[i])
		}
		seen.DimOrder[i] = uint8(at[d])
	}
	if !c.mayBecome(&seen) {
		return false
	}
	if short := c.int8Constants[c.call.Args[0]]; short != nil {
		turned := *short
		turned.axis = at[short.axis]
		c.int8Constants[c.out()] = &turned
	}
	c.own()
	c.vals[c.out()] = seen
	return true
}

// sameOrder reports whether two tensors of the same sizes declare the same dim order.
func sameOrder(a, b *lowering.GraphValue) bool {
	_, x := padDims(a, 0)
	_, y := padDims(b, 0)
	return slices.Equal(x, y)
}

// foldDequantize folds a dequantization. Constants with a nonzero zero point are not folded.
func foldDequantize(c *lowerCall) bool {
	x := c.arg(0)
	if x.DType != tensor.Int8 || len(x.Sizes) == 0 || !c.isTyped() {
		return false
	}
	short := &int8Constant{int8s: x.Data}
	if c.call.Op.Class == opclass.Dequantize {
		if c.int(2) != 0 {
			return false
		}
		short.scales = []float32{c.float(1)}
	} else {
		scales, zeros := c.arg(1), c.arg(2)
		short.axis = wrap(c.int(3), len(x.Sizes))
		if !scales.IsConst() || scales.DType != tensor.Float32 || checkTensor(scales) != nil || short.axis < 0 || !allZero(zeros) {
			return false
		}
		short.scales = tensor.View[float32](scales.Data)
		if len(short.scales) != x.Sizes[short.axis] {
			return false
		}
	}
	for _, s := range short.scales {
		if graph.CheckScale(s, "", 0) != nil {
			return false
		}
	}
	numbers := *x
	numbers.DType, numbers.Data = tensor.Float32, c.placeholder(4*len(x.Data)) // until numbers is called
	if !c.mayBecome(&numbers) || !sameOrder(x, &c.vals[c.out()]) {
		return false
	}
	c.own()
	c.vals[c.out()] = numbers
	c.int8Constants[c.out()] = short
	return true
}

func allZero(x *lowering.GraphValue) bool {
	return x.Kind == tensor.None || x.IsConst() && !slices.ContainsFunc(x.Data, func(b byte) bool { return b != 0 })
}

// numbers returns a constant with its data. Quantized constants are dequantized by the first call.
func (l *Lowering) numbers(v int) *lowering.GraphValue {
	x, short := &l.vals[v], l.int8Constants[v]
	if short == nil || short.filled {
		return x
	}
	if l.shapeOnly {
		l.partial = true
		return x
	}
	short.filled = true
	x.Data = allocPadded(4 * len(short.int8s))
	_, step := padDims(x, 0)
	out := tensor.View[float32](x.Data)
	for i, q := range tensor.View[int8](short.int8s) {
		out[i] = float32(q) * short.scales[i/step[short.axis]%x.Sizes[short.axis]%len(short.scales)]
	}
	return x
}

// asFloat32 returns a constant as float32, which is the type of weights in nodes of float16.
func (l *Lowering) asFloat32(v int) *lowering.GraphValue {
	x := l.numbers(v)
	if x.DType != tensor.Float16 {
		return x
	}
	if l.float32s[v] == nil {
		y := *x
		y.DType = tensor.Float32
		if l.shapeOnly {
			y.Data, l.partial = l.placeholder(2*len(x.Data)), true
		} else {
			y.Data = allocPadded(2 * len(x.Data))
			if !l.in.DescribeOnly || len(y.Data) < blankBytes {
				tensor.Loader[float32](tensor.Float16)(tensor.View[float32](y.Data), x.Data)
			}
		}
		l.float32s[v] = &y
	}
	return l.float32s[v]
}

// int8Filter returns a filter of int8 in its node's layout. It returns none if the constant
// has no quantized form, or has scales along another dimension.
func (c *lowerCall) int8Filter(v, axis int, s graph.Shape, channel int, dims, step, perm []int) int {
	short := c.int8Constants[v]
	if short == nil || len(short.scales) > 1 && short.axis != axis {
		return graph.None
	}
	scales := short.scales
	if len(scales) == 1 {
		scales = slices.Repeat(scales, s.Dim[channel])
	}
	int8s := lowering.GraphValue{DType: tensor.Int8, Data: short.int8s}
	data, same := c.relaid(&int8s, dims, step, perm, false)
	v = c.Constant(graph.QCInt8, s, graph.Quant{Scales: scales, ChannelDim: channel}, data)
	if !same && c.shapeOnly {
		c.postpone(DeferredConstant{v, &int8s, dims, step, perm, false})
	}
	return v
}
