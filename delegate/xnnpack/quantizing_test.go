package xnnpack

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestQuantizedMiddles quantizes numbers next to the middle between two elements. The element is that of the number times the rounded
// reciprocal of the scale, as in the operators: the quotient may be on the other side.
func TestQuantizedMiddles(t *testing.T) {
	forEngines(t, func(t *testing.T, engine Engine) {
		r, differ := rand.New(rand.NewPCG(1, 1)), 0
		for range 40 {
			m := graphtest.NewMaker(r.Uint64())
			x, q := m.Input(graph.FP32, 255), m.Value(graph.QInt8, 255)
			m.Node("Convert", []int{x}, []int{q})
			g := m.Done(q)
			scale, zero := g.Values[q].Quant.Scale, g.Values[q].Quant.ZeroPoint
			img, err := Backend{Engine: engine}.Compile(context.Background(), &delegate.Payload{Data: graphtest.Encode(g), Args: graphtest.ArgSpecs(g, false)})
			if err != nil {
				t.Fatal(err)
			}
			args := graphtest.NewMaker(2).Arguments(g)
			numbers := tensor.Data[float32](args[0].Tensor)
			for i := range numbers {
				numbers[i] = (float32(i) - 127.5) * scale
			}
			if err := runOnce(img, args); err != nil {
				t.Fatal(err)
			}
			img.Close()
			for i, got := range tensor.Data[int8](args[1].Tensor) {
				want := nearest(numbers[i]*(1/scale), zero)
				if got != want {
					t.Fatalf("scale %v, zero point %d, number %v: got %d, want %d", scale, zero, numbers[i], got, want)
				}
				if want != nearest(numbers[i]/scale, zero) {
					differ++
				}
			}
		}
		if differ == 0 {
			t.Error("quotients have the same elements")
		}
	})
}

// nearest rounds to the nearest element, in the middle to the even integer.
func nearest(x float32, zero int32) int8 {
	return int8(max(-128, min(127, math.RoundToEven(float64(x))+float64(zero))))
}
