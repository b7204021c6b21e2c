package xnnpack

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
	g, err := readPayload(&delegate.Payload{Data: payload, Named: named}, true)
	if err != nil {
		return nil, err
	}
	moves := make([]movement, len(g.Values))
	for i := range g.Values {
		moves[i] = movement{lo: math.Inf(-1), hi: math.Inf(1)}
		if g.Values[i].quantized() {
			moves[i] = g.Values[i].step()
		}
	}
	for i := range g.Nodes {
		g.move(moves, &g.Nodes[i])
	}
	steps := make([]float64, 0, len(g.Args)-g.Inputs)
	for _, v := range g.Args[g.Inputs:] {
		step := 0.0
		if m := moves[v]; !m.unknown && g.Values[v].Datatype.isFloat() && !math.IsInf(m.by, 0) {
			step = m.by
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// movement is the range of a value's elements and the change that one step causes.
type movement struct {
	lo, hi, by float64
	unknown    bool // the value changes, but by an unknown amount
}

// quantized reports whether v has 8-bit elements with one scale.
func (v *value) quantized() bool { return v.Datatype == qint8 || v.Datatype == quint8 }

// step returns the movement of a quantized value.
func (v *value) step() movement {
	lo, hi := -128.0, 127.0
	if v.Datatype == quint8 {
		lo, hi = 0, 255
	}
	scale, zero := float64(v.Quant.Scale), float64(v.Quant.ZeroPoint)
	return movement{lo: (lo - zero) * scale, hi: (hi - zero) * scale, by: scale}
}

// move computes the movement of a node's outputs from those of its inputs.
func (g *graph) move(moves []movement, n *node) {
	in := make([]movement, 0, len(n.In))
	moved := false
	for _, v := range n.In {
		if v == none {
			continue
		}
		in = append(in, moves[v])
		dynamic := g.Values[v].Datatype == qdint8 // its scale is computed during the run
		moved = moved || moves[v].by > 0 || moves[v].unknown || dynamic
	}
	out := movement{lo: math.Inf(-1), hi: math.Inf(1), unknown: moved}
	if through := throughs[strings.TrimRight(n.Type.name, "0123456789")]; moved && through != nil {
		out = through(in)
		for _, m := range in {
			out.unknown = out.unknown || m.unknown
		}
		out.lo, out.hi = max(out.lo, float64(n.Min)), min(out.hi, float64(n.Max))
		out.unknown = out.unknown || out.by != out.by
	}
	for _, v := range n.Out {
		if !g.Values[v].quantized() { // otherwise it changes by one step of its own
			moves[v] = out
		}
	}
}

// throughs are the nodes whose outputs change by a known multiple of their inputs' changes.
var throughs = map[string]func(in []movement) movement{
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
	"Subtract": func(in []movement) movement {
		return sum([]movement{in[0], {lo: -in[1].hi, hi: -in[1].lo, by: in[1].by}})
	},
	"Multiply": multiply,
}

// together is for nodes whose output elements are input elements or between them.
func together(in []movement) movement {
	out := in[0]
	for _, m := range in[1:] {
		out.lo, out.hi, out.by = min(out.lo, m.lo), max(out.hi, m.hi), max(out.by, m.by)
	}
	return out
}

// slope is for functions of one operand whose slope is at most s and which, for operands up to x in
// magnitude, are between lo and min(hi, x).
func slope(s, lo, hi float64) func(in []movement) movement {
	return func(in []movement) movement {
		m := in[0]
		most := max(math.Abs(m.lo), math.Abs(m.hi))
		return movement{lo: max(lo, -most), hi: min(hi, max(most, 0)), by: s * m.by}
	}
}

func sum(in []movement) movement {
	return movement{lo: in[0].lo + in[1].lo, hi: in[0].hi + in[1].hi, by: in[0].by + in[1].by}
}

// multiply changes by the change of each factor times the magnitude of the other, plus the product
// of the changes.
func multiply(in []movement) movement {
	a, b := max(math.Abs(in[0].lo), math.Abs(in[0].hi)), max(math.Abs(in[1].lo), math.Abs(in[1].hi))
	by := in[0].by * in[1].by
	if in[1].by > 0 {
		by += a * in[1].by
	}
	if in[0].by > 0 {
		by += b * in[0].by
	}
	return movement{lo: -a * b, hi: a * b, by: by}
}
