package graphtest

import (
	"fmt"
	"math"

	"github.com/x448/float16"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Resized returns arguments whose inputs have up to twice the declared batch size, and heights and
// widths up to the declared ones.
func (m *Maker) Resized(g *graph.Graph) []*tensor.Value {
	factor := [3]float64{2 * m.R.Float64(), m.R.Float64(), m.R.Float64()}
	if m.R.IntN(3) == 0 {
		factor[1], factor[2] = 1, 1
	}
	var args []*tensor.Value
	for _, v := range g.Args {
		x := &g.Values[v]
		s := x.Shape
		for i := range min(3, s.Rank) {
			s.Dim[i] = max(1, int(float64(s.Dim[i])*factor[i]+0.5))
		}
		t := tensor.Make(x.Datatype.Info().Tensor, s.Dims(), nil, tensor.DynamicUnbound)
		t.Bind(tensor.AlignedBytes(t.NBytes()))
		if x.Input {
			copy(t.Data, m.Bytes(x.Datatype, s))
		}
		value := tensor.TensorValue(t)
		args = append(args, &value)
	}
	return args
}

// Arguments returns tensors for a graph's arguments. Inputs have random elements.
func (m *Maker) Arguments(g *graph.Graph) []*tensor.Value {
	var args []*tensor.Value
	for _, v := range g.Args {
		x := &g.Values[v]
		t := tensor.New(x.Datatype.Info().Tensor, x.ArgumentShape(x.Shape).Dims()...)
		if x.Input {
			copy(t.Data, m.Bytes(x.Datatype, x.Shape))
		}
		value := tensor.TensorValue(t)
		args = append(args, &value)
	}
	return args
}

// NumbersOf returns an argument's elements as numbers, without dequantization.
func NumbersOf(t *tensor.Tensor) []float64 {
	out := make([]float64, t.Numel())
	for i := range out {
		switch t.DType {
		case tensor.Float32:
			out[i] = float64(tensor.View[float32](t.Data)[i])
		case tensor.Float16:
			out[i] = float64(float16.Frombits(tensor.View[uint16](t.Data)[i]).Float32())
		case tensor.BFloat16:
			out[i] = float64(math.Float32frombits(uint32(tensor.View[uint16](t.Data)[i]) << 16))
		case tensor.Int8:
			out[i] = float64(tensor.View[int8](t.Data)[i])
		case tensor.Uint8:
			out[i] = float64(t.Data[i])
		case tensor.Int32:
			out[i] = float64(tensor.View[int32](t.Data)[i])
		case tensor.Int64:
			out[i] = float64(tensor.View[int64](t.Data)[i])
		}
	}
	return out
}

// Differ returns an error for the first output element whose difference exceeds the sample's
// tolerance.
func (s *Sample) Differ(got, want []*tensor.Value, g *graph.Graph) error {
	for i := g.Inputs; i < len(g.Args); i++ {
		a, b := got[i].Tensor, want[i].Tensor
		if !equalShapes(graph.ShapeOf(a.Sizes...), b.Sizes) {
			return fmt.Errorf("output %d: got sizes %v, want %v", i-g.Inputs, a.Sizes, b.Sizes)
		}
		x, y := NumbersOf(a), NumbersOf(b)
		allowed := float64(s.Steps)
		if d := g.Values[g.Args[i]].Datatype; d.IsFloat() {
			allowed = s.tolerance(d) * max(Largest(y), 1e-3)
		}
		for j := range y {
			if x[j] != y[j] && !(math.Abs(x[j]-y[j]) <= allowed) && !(math.IsNaN(x[j]) && math.IsNaN(y[j])) {
				return fmt.Errorf("output %d, element %d: native %v, reference %v, difference %g, allowed %g",
					i-g.Inputs, j, x[j], y[j], math.Abs(x[j]-y[j]), allowed)
			}
		}
	}
	return nil
}

func equalShapes(s graph.Shape, sizes []int) bool { return s == graph.ShapeOf(sizes...) }

// Largest returns the largest absolute value.
func Largest(x []float64) float64 {
	most := 0.0
	for _, v := range x {
		if a := math.Abs(v); a > most && !math.IsInf(v, 0) {
			most = a
		}
	}
	return most
}

// DynamicArguments returns arguments of a graph with one input of the given sizes.
func DynamicArguments(g *graph.Graph, output []int, sizes ...int) []*tensor.Value {
	m := NewMaker(1)
	in := tensor.New(tensor.Float32, sizes...)
	copy(in.Data, m.Bytes(graph.FP32, graph.ShapeOf(sizes...)))
	out := tensor.Make(tensor.Float32, output, nil, tensor.DynamicBound)
	out.Bind(tensor.AlignedBytes(out.NBytes()))
	a, b := tensor.TensorValue(in), tensor.TensorValue(out)
	return []*tensor.Value{&a, &b}
}

// ArgSpecs returns specs of a graph's arguments, with fixed sizes unless dynamic is set.
func ArgSpecs(g *graph.Graph, dynamic bool) (args []*delegate.ArgSpec) {
	for _, v := range g.Args {
		x := &g.Values[v]
		a := &delegate.ArgSpec{DType: x.Datatype.Info().Tensor, Sizes: x.Shape.Dims()}
		if dynamic {
			a.Dynamism = tensor.DynamicBound
		}
		args = append(args, a)
	}
	return args
}
