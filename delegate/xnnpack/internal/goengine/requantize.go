package goengine

import (
	"math"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/internal/simd"
)

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
