package xnnpack

import (
	"context"
	"math"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// unaryOf are functions of one number as PyTorch computes them, by name.
var unaryOf = map[string]func(x float64) float64{
	"Sigmoid": func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
	"Clamp":   func(x float64) float64 { return min(max(x, -0.5), 1.25) },
	"Floor":   math.Floor, "Ceiling": math.Ceil, "Abs": math.Abs, "SquareRoot": math.Sqrt, "Log": math.Log, "Tanh": math.Tanh,
	"Exp": math.Exp, "Sin": math.Sin, "Cos": math.Cos,
	"Negate":               func(x float64) float64 { return -x },
	"Square":               func(x float64) float64 { return x * x },
	"ReciprocalSquareRoot": func(x float64) float64 { return 1 / math.Sqrt(x) },
	"Hardswish":            func(x float64) float64 { return float64(float32(x*min(max(x+3, 0), 6))) / 6 }, // the product may be infinite
	"Gelu": func(x float64) float64 {
		if math.IsInf(x, -1) {
			return 0 // the limit; PyTorch computes the product of 0 and infinity
		}
		return x * (0.5 * (1 + math.Erf(x/math.Sqrt2)))
	},
	"LeakyReLU": func(x float64) float64 {
		if x > 0 {
			return x
		}
		return x * 0.3
	},
	"ELU": func(x float64) float64 {
		if x > 0 {
			return x
		}
		return 0.3 * math.Expm1(x)
	},
}

// binaryOf are functions of two numbers as PyTorch computes them.
var binaryOf = map[string]func(a, b float64) float64{
	"Add": func(a, b float64) float64 { return a + b }, "Subtract": func(a, b float64) float64 { return a - b },
	"Multiply": func(a, b float64) float64 { return a * b }, "Div": func(a, b float64) float64 { return a / b },
	"Minimum": func(a, b float64) float64 { return min(a, b) }, "Maximum": func(a, b float64) float64 { return max(a, b) },
	"PReLU": func(a, b float64) float64 {
		if !math.Signbit(a) && a == a { // the library decides by the sign, too
			return a
		}
		return a * b
	},
}

// TestSpecialElements checks every elementwise node of the Go engine with special numbers, in vectors and in
// the elements behind them.
func TestSpecialElements(t *testing.T) {
	n := len(specials) * len(specials) // 81 elements
	run := func(t *testing.T, name string, want func(a, b float64) float64, set func(*graph.Node), in int) {
		m := graphtest.NewMaker(1)
		var list []int
		for range in {
			list = append(list, m.Input(graph.FP32, n))
		}
		y := m.Value(graph.FP32, n)
		m.Node(name, list, []int{y}, set)
		u, g := mustUnit(t, m.Done(y), EngineGo, delegate.Instance{})
		args := m.Arguments(g)
		for i := range n {
			tensor.View[float32](args[0].Tensor.Data)[i] = specials[i%len(specials)]
			if in > 1 {
				tensor.View[float32](args[1].Tensor.Data)[i] = specials[i/len(specials)]
			}
		}
		if err := u.Execute(context.Background(), args); err != nil {
			t.Fatal(err)
		}
		for i, got := range graphtest.NumbersOf(args[in].Tensor) {
			a, b := specials[i%len(specials)], specials[i/len(specials)]
			w := float64(float32(want(float64(a), float64(b))))
			least := 0x1p-149
			if name == "Gelu" { // its loop for AVX2 ends in a subnormal number instead of 0
				least = 0x1p-126
			}
			if got != w && !(math.IsNaN(got) && math.IsNaN(w)) && !(math.Abs(got-w) <= 1e-6*math.Abs(w)+least) {
				t.Errorf("%s of %v, %v at %d: got %v, want %v", name, a, b, i, got, w)
			}
		}
	}
	for i := range graph.UnaryNodes {
		u := &graph.UnaryNodes[i]
		if f := unaryOf[u.Name]; f != nil {
			run(t, u.Name, func(a, _ float64) float64 { return f(a) }, func(x *graph.Node) {
				if graphtest.SetScalar(x, 0.3); u.Name == "Clamp" {
					x.Min, x.Max = -0.5, 1.25
				}
			}, 1)
		} else if u.Tag != graph.TagConvert {
			t.Errorf("no expected values of %s", u.Name)
		}
	}
	for i := range graph.BinaryNodes {
		run(t, graph.BinaryNodes[i].Name, binaryOf[graph.BinaryNodes[i].Name], func(*graph.Node) {}, 2)
	}
}
