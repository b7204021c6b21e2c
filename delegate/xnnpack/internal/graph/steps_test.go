package graph

import (
	"math"
	"testing"
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
	x := Interval{Lo: -6, Hi: 4, By: 0.125}
	y := Interval{Lo: -1, Hi: 3, By: 0.25}
	inside := func(t *testing.T, name string, m Interval, from, to float64) {
		t.Helper()
		const slack = 1e-12
		if math.Abs(to-from) > m.By+slack || from < m.Lo-slack || from > m.Hi+slack {
			t.Fatalf("%s: got a step from %v to %v, want at most %v within %v to %v", name, from, to, m.By, m.Lo, m.Hi)
		}
	}
	for name, f := range one {
		m := intervals[name]([]Interval{x})
		for v := x.Lo; v < x.Hi; v += 0.01 {
			inside(t, name, m, f(v), f(min(v+x.By, x.Hi)))
		}
	}
	for name, f := range two {
		m := intervals[name]([]Interval{x, y})
		for a := x.Lo; a <= x.Hi; a += 0.1 {
			for b := y.Lo; b <= y.Hi; b += 0.1 {
				inside(t, name, m, f(a, b), f(min(a+x.By, x.Hi), max(b-y.By, y.Lo)))
				inside(t, name, m, f(a, b), f(max(a-x.By, x.Lo), max(b-y.By, y.Lo)))
			}
		}
	}
}
