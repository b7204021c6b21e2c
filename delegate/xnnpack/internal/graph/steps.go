package graph

import (
	"math"
	"strings"

	"github.com/etrun-go/etrun/delegate"
)

// OutputSteps returns, for each output of a payload, how much it may change if the quantized values
// from which it is computed change by one step: the possible difference between two exact
// implementations. It is 0 for an output that is not computed from quantized values, is itself
// quantized, or for which the bound is unknown. named looks up the constants that the payload
// refers to.
func OutputSteps(payload []byte, named delegate.NamedData) ([]float64, error) {
	g, err := ReadPayload(&delegate.Payload{Data: payload, Named: named}, true)
	if err != nil {
		return nil, err
	}
	moves := make([]Interval, len(g.Values))
	for i := range g.Values {
		moves[i] = Interval{Lo: math.Inf(-1), Hi: math.Inf(1)}
		if g.Values[i].Quantized() {
			moves[i] = g.Values[i].step()
		}
	}
	for i := range g.Nodes {
		g.move(moves, &g.Nodes[i])
	}
	steps := make([]float64, 0, len(g.Args)-g.Inputs)
	for _, v := range g.Args[g.Inputs:] {
		step := 0.0
		if m := moves[v]; !m.unknown && g.Values[v].Datatype.IsFloat() && !math.IsInf(m.By, 0) {
			step = m.By
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// Interval is the range of a value's elements and the change that one step causes.
type Interval struct {
	Lo, Hi, By float64
	unknown    bool // the value changes, but by an unknown amount
}

// Quantized reports whether v has 8-bit elements with one scale.
func (v *Value) Quantized() bool { return v.Datatype == QInt8 || v.Datatype == QUInt8 }

// step returns the movement of a quantized value.
func (v *Value) step() Interval {
	lo, hi := -128.0, 127.0
	if v.Datatype == QUInt8 {
		lo, hi = 0, 255
	}
	scale, zero := float64(v.Quant.Scale), float64(v.Quant.ZeroPoint)
	return Interval{Lo: (lo - zero) * scale, Hi: (hi - zero) * scale, By: scale}
}

// move computes the movement of a node's outputs from those of its inputs.
func (g *Graph) move(moves []Interval, n *Node) {
	in := make([]Interval, 0, len(n.In))
	moved := false
	for _, v := range n.In {
		if v == None {
			continue
		}
		in = append(in, moves[v])
		dynamic := g.Values[v].Datatype == QDInt8 // its scale is computed during the run
		moved = moved || moves[v].By > 0 || moves[v].unknown || dynamic
	}
	out := Interval{Lo: math.Inf(-1), Hi: math.Inf(1), unknown: moved}
	if through := intervals[strings.TrimRight(n.Type.Name, "0123456789")]; moved && through != nil {
		out = through(in)
		for _, m := range in {
			out.unknown = out.unknown || m.unknown
		}
		out.Lo, out.Hi = max(out.Lo, float64(n.Min)), min(out.Hi, float64(n.Max))
		out.unknown = out.unknown || out.By != out.By
	}
	for _, v := range n.Out {
		if !g.Values[v].Quantized() { // otherwise it changes by one step of its own
			moves[v] = out
		}
	}
}

// intervals are the nodes whose outputs change by a known multiple of their inputs' changes.
var intervals = map[string]func(in []Interval) Interval{
	"Convert": together, "Copy": together, "StaticTranspose": together, "StaticReshape": together, "StaticSlice": together,
	"Concatenate": together, "MaxPooling2d": together, "AvgPooling2d": together, "GlobalAvgPooling2d": together,
	"StaticResizeBilinear2D": together, "Maximum": together, "Minimum": together, "Clamp": together,
	"Abs":       slope(1, 0, math.Inf(1)),
	"Negate":    slope(1, math.Inf(-1), math.Inf(1)),
	"Sigmoid":   slope(0.25, 0, 1),
	"Softmax":   slope(0.5, 0, 1), // summed over a row
	"Tanh":      slope(1, -1, 1),
	"Hardswish": slope(1.5, -0.375, math.Inf(1)),
	"Gelu":      slope(1.13, -0.17, math.Inf(1)),
	"Add":       sum,
	"Subtract": func(in []Interval) Interval {
		return sum([]Interval{in[0], {Lo: -in[1].Hi, Hi: -in[1].Lo, By: in[1].By}})
	},
	"Multiply": multiply,
}

// together is for nodes whose output elements are input elements or between them.
func together(in []Interval) Interval {
	out := in[0]
	for _, m := range in[1:] {
		out.Lo, out.Hi, out.By = min(out.Lo, m.Lo), max(out.Hi, m.Hi), max(out.By, m.By)
	}
	return out
}

// slope is for functions of one operand whose slope is at most s and which, for operands up to x in
// magnitude, are between lo and min(hi, x).
func slope(s, lo, hi float64) func(in []Interval) Interval {
	return func(in []Interval) Interval {
		m := in[0]
		most := max(math.Abs(m.Lo), math.Abs(m.Hi))
		return Interval{Lo: max(lo, -most), Hi: min(hi, max(most, 0)), By: s * m.By}
	}
}

func sum(in []Interval) Interval {
	return Interval{Lo: in[0].Lo + in[1].Lo, Hi: in[0].Hi + in[1].Hi, By: in[0].By + in[1].By}
}

// multiply changes by the change of each factor times the magnitude of the other, plus the product
// of the changes.
func multiply(in []Interval) Interval {
	a, b := max(math.Abs(in[0].Lo), math.Abs(in[0].Hi)), max(math.Abs(in[1].Lo), math.Abs(in[1].Hi))
	by := in[0].By * in[1].By
	if in[1].By > 0 {
		by += a * in[1].By
	}
	if in[0].By > 0 {
		by += b * in[0].By
	}
	return Interval{Lo: -a * b, Hi: a * b, By: by}
}
