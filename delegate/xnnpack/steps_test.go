package xnnpack

import (
	"math"
	"os"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/runtime/pte"
)

// TestThroughs compares the predicted change and range of a node's output with its function: inputs
// a step apart change the output by at most the predicted amount, within the predicted range.
func TestThroughs(t *testing.T) {
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	one := map[string]func(x float64) float64{
		"Abs": math.Abs, "Negate": func(x float64) float64 { return -x }, "Sigmoid": sigmoid, "Tanh": math.Tanh,
		"Hardswish": func(x float64) float64 { return x * max(0, min(6, x+3)) / 6 },
		"Gelu":      func(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) },
		"Convert":   func(x float64) float64 { return x },
	}
	two := map[string]func(a, b float64) float64{
		"Add": func(a, b float64) float64 { return a + b }, "Subtract": func(a, b float64) float64 { return a - b },
		"Multiply": func(a, b float64) float64 { return a * b }, "Maximum": math.Max, "Minimum": math.Min,
	}
	x := graph.Interval{Lo: -6, Hi: 4, By: 0.125}
	y := graph.Interval{Lo: -1, Hi: 3, By: 0.25}
	inside := func(t *testing.T, name string, m graph.Interval, from, to float64) {
		t.Helper()
		const slack = 1e-12
		if math.Abs(to-from) > m.By+slack || from < m.Lo-slack || from > m.Hi+slack {
			t.Fatalf("%s: got a step from %v to %v, want at most %v within %v to %v", name, from, to, m.By, m.Lo, m.Hi)
		}
	}
	for name, f := range one {
		m := graph.Intervals[name]([]graph.Interval{x})
		for v := x.Lo; v < x.Hi; v += 0.01 {
			inside(t, name, m, f(v), f(min(v+x.By, x.Hi)))
		}
	}
	for name, f := range two {
		m := graph.Intervals[name]([]graph.Interval{x, y})
		for a := x.Lo; a <= x.Hi; a += 0.1 {
			for b := y.Lo; b <= y.Hi; b += 0.1 {
				inside(t, name, m, f(a, b), f(min(a+x.By, x.Hi), max(b-y.By, y.Lo)))
				inside(t, name, m, f(a, b), f(max(a-x.By, x.Lo), max(b-y.By, y.Lo)))
			}
		}
	}
}

// TestOutputSteps checks the output steps of a quantized network's delegates: x·sigmoid(x) of a
// quantized value as float, and a quantized sum.
func TestOutputSteps(t *testing.T) {
	file, err := os.ReadFile("../../testdata/pte/bundle_int8.bpte")
	if err != nil {
		t.Fatal(err)
	}
	b, err := pte.ParseBundle(file, pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := pte.Parse(b.Program, pte.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range p.Methods[0].Delegates {
		g, err := graphtest.ReadGraph(d.Data, anyBytes(p.Named))
		if err != nil {
			t.Fatal(err)
		}
		scale := 0.0 // of the last quantized value
		for _, n := range g.Nodes {
			if v := &g.Values[n.Out[0]]; v.Quantized() {
				scale = float64(v.Quant.Scale)
			}
		}
		least, most := scale, scale
		if i == 0 {
			most = 1.6 * scale // the largest slope of x·sigmoid(x) is 1.1
		}
		steps, err := OutputSteps(d.Data, anyBytes(p.Named))
		if err != nil || len(steps) != len(g.Args)-g.Inputs || steps[0] < least || steps[0] > most {
			t.Errorf("delegate %d: got %v, %v, want %v to %v", i, steps, err, least, most)
		}
		if steps, err := OutputSteps(d.Data[:len(d.Data)/3], anyBytes(p.Named)); err == nil {
			t.Errorf("truncated delegate %d: got %v, want an error", i, steps)
		}
	}
}
