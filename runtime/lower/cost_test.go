package lower_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/delegatetest"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable"
	"github.com/etrun-go/etrun/kernels/quantized"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/lower"
)

// shape is a float32 argument of this shape.
type shape []int

// int8s and int64s are arguments of this shape.
type (
	int8s  []int
	int64s []int
)

// ints is a list; arguments are those of a call.
type (
	ints      = []int
	arguments = []any
)

// costCases are calls whose estimates are compared with measurements: an argument is a shape, a
// list of ints, a number, a bool, or nil. The last shapes are the outs.
var costCases = []struct {
	op   string
	args []any
}{
	{"aten::add.out", arguments{shape{64, 1024}, shape{64, 1024}, 1, shape{64, 1024}}},
	{"aten::mul.out", arguments{shape{8, 64}, shape{8, 64}, shape{8, 64}}},
	{"aten::mul.out", arguments{shape{1, 64, 56, 56}, shape{1, 64, 1, 1}, shape{1, 64, 56, 56}}},
	{"aten::relu.out", arguments{shape{1, 64, 56, 56}, shape{1, 64, 56, 56}}},
	{"aten::sigmoid.out", arguments{shape{1, 64, 28, 28}, shape{1, 64, 28, 28}}},
	{"aten::gelu.out", arguments{shape{196, 768}, "none", shape{196, 768}}},
	{"aten::_softmax.out", arguments{shape{12, 196, 196}, -1, false, shape{12, 196, 196}}},
	{"aten::permute_copy.out", arguments{shape{1, 196, 12, 64}, ints{0, 2, 1, 3}, shape{1, 12, 196, 64}}},
	{"aten::convolution.out", arguments{shape{1, 3, 224, 224}, shape{32, 3, 3, 3}, shape{32}, ints{2, 2}, ints{1, 1}, ints{1, 1}, false, ints{0, 0}, 1, shape{1, 32, 112, 112}}},
	{"aten::convolution.out", arguments{shape{1, 64, 56, 56}, shape{64, 64, 3, 3}, shape{64}, ints{1, 1}, ints{1, 1}, ints{1, 1}, false, ints{0, 0}, 1, shape{1, 64, 56, 56}}},
	{"aten::convolution.out", arguments{shape{1, 96, 28, 28}, shape{192, 96, 1, 1}, nil, ints{1, 1}, ints{0, 0}, ints{1, 1}, false, ints{0, 0}, 1, shape{1, 192, 28, 28}}},
	{"aten::convolution.out", arguments{shape{1, 96, 56, 56}, shape{96, 1, 3, 3}, nil, ints{1, 1}, ints{1, 1}, ints{1, 1}, false, ints{0, 0}, 96, shape{1, 96, 56, 56}}},
	{"aten::convolution.out", arguments{shape{1, 1, 49, 10}, shape{24, 1, 10, 4}, shape{24}, ints{2, 2}, ints{5, 1}, ints{1, 1}, false, ints{0, 0}, 1, shape{1, 24, 25, 5}}},
	{"aten::convolution.out", arguments{shape{1, 24, 25, 5}, shape{24, 1, 3, 3}, shape{24}, ints{1, 1}, ints{1, 1}, ints{1, 1}, false, ints{0, 0}, 24, shape{1, 24, 25, 5}}},
	{"aten::convolution.out", arguments{shape{1, 24, 25, 5}, shape{24, 24, 1, 1}, shape{24}, ints{1, 1}, ints{0, 0}, ints{1, 1}, false, ints{0, 0}, 1, shape{1, 24, 25, 5}}},
	{"aten::convolution.out", arguments{shape{1, 1, 28, 28}, shape{8, 1, 3, 3}, shape{8}, ints{1, 1}, ints{1, 1}, ints{1, 1}, false, ints{0, 0}, 1, shape{1, 8, 28, 28}}},
	{"aten::convolution.out", arguments{shape{1, 16, 14, 14}, shape{32, 16, 3, 3}, shape{32}, ints{2, 2}, ints{1, 1}, ints{1, 1}, false, ints{0, 0}, 1, shape{1, 32, 7, 7}}},
	{"aten::convolution.out", arguments{shape{1, 192, 7, 7}, shape{192, 1, 7, 7}, shape{192}, ints{1, 1}, ints{3, 3}, ints{1, 1}, false, ints{0, 0}, 192, shape{1, 192, 7, 7}}},
	{"aten::convolution.out", arguments{shape{1, 48, 128}, shape{48, 48, 7}, shape{48}, ints{1}, ints{3}, ints{1}, false, ints{0}, 1, shape{1, 48, 128}}},
	{"aten::convolution.out", arguments{shape{1, 3, 64, 64}, shape{48, 3, 16, 16}, shape{48}, ints{16, 16}, ints{0, 0}, ints{1, 1}, false, ints{0, 0}, 1, shape{1, 48, 4, 4}}},
	{"aten::linear.out", arguments{shape{196, 768}, shape{768, 768}, shape{768}, shape{196, 768}}},
	{"aten::linear.out", arguments{shape{1, 512}, shape{10, 512}, shape{10}, shape{1, 10}}},
	{"aten::addmm.out", arguments{shape{256}, shape{64, 256}, shape{256, 256}, 1, 1, shape{64, 256}}},
	{"aten::bmm.out", arguments{shape{12, 196, 64}, shape{12, 64, 196}, shape{12, 196, 196}}},
	{"aten::max_pool2d_with_indices.out", arguments{shape{1, 64, 112, 112}, ints{3, 3}, ints{2, 2}, ints{1, 1}, ints{1, 1}, false, shape{1, 64, 56, 56}, int64s{1, 64, 56, 56}}},
	{"aten::avg_pool2d.out", arguments{shape{1, 64, 56, 56}, ints{2, 2}, ints{2, 2}, ints{0, 0}, false, true, nil, shape{1, 64, 28, 28}}},
	{"aten::mean.out", arguments{shape{1, 512, 7, 7}, ints{-1, -2}, true, nil, shape{1, 512, 1, 1}}},
	{"aten::constant_pad_nd.out", arguments{shape{1, 64, 56, 56}, ints{1, 1, 1, 1}, 0, shape{1, 64, 58, 58}}},
	{"aten::cat.out", arguments{[]shape{{1, 64, 28, 28}, {1, 64, 28, 28}}, 1, shape{1, 128, 28, 28}}},
	{"quantized_decomposed::quantize_per_tensor.out", arguments{shape{1, 64, 28, 28}, 0.1, 3, -128, 127, 1, int8s{1, 64, 28, 28}}},
	{"quantized_decomposed::dequantize_per_tensor.out", arguments{int8s{1, 64, 28, 28}, 0.1, 3, -128, 127, 1, nil, shape{1, 64, 28, 28}}},
	{"aten::_native_batch_norm_legit_no_training.out", arguments{shape{1, 24, 25, 5}, shape{24}, shape{24}, shape{24}, shape{24}, 0.1, 1e-5, shape{1, 24, 25, 5}, shape{0}, shape{0}}},
	{"aten::native_layer_norm.out", arguments{shape{1, 196, 768}, ints{768}, shape{768}, shape{768}, 1e-5, shape{1, 196, 768}, shape{1, 196, 1}, shape{1, 196, 1}}},
}

// BenchmarkEstimate reports the estimated time of calls relative to their measured time.
func BenchmarkEstimate(b *testing.B) {
	set := kernels.NewSet(portable.Ops(), quantized.Ops())
	for _, tt := range costCases {
		b.Run(tt.op, func(b *testing.B) {
			op, sig, _, err := set.Lookup(tt.op)
			if err != nil || op == nil {
				b.Fatal(tt.op, err)
			}
			g, args := oneCall(op, sig, tt.args)
			img, err := delegatetest.Oracle{}.CompileGraph(context.Background(), g)
			if err != nil {
				b.Fatal(err)
			}
			unit, err := img.Unit(delegate.Instance{})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := unit.Execute(context.Background(), args); err != nil {
					b.Fatal(err)
				}
			}
			took := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			b.ReportMetric(float64(lower.Estimate(g, 1))/took, "estimated/measured")
		})
	}
}

// oneCall returns a graph of one call, and its arguments.
func oneCall(op *kernels.Op, sig *kernels.Signature, args []any) (*delegate.Graph, []*tensor.Value) {
	g := new(delegate.Graph)
	c := delegate.GraphCall{Op: op, Sig: sig}
	for k, a := range args {
		v := addValue(g, a)
		c.Args = append(c.Args, v)
		switch {
		case g.Values[v].Kind != tensor.KindTensor || g.Values[v].Data != nil:
		case sig.Args[k].Out:
			g.Outputs = append(g.Outputs, v)
		default:
			g.Inputs = append(g.Inputs, v)
		}
		if g.Values[v].Kind == tensor.KindTensorList {
			g.Inputs = append(g.Inputs, g.Values[v].Items...)
		}
		if name := sig.Args[k].Name; name == "weight" || name == "mat2" && len(g.Values[v].Sizes) == 2 {
			g.Values[v].Data = tensor.AlignedBytes(4 * product(g.Values[v].Sizes))
			g.Inputs = g.Inputs[:len(g.Inputs)-1]
		}
	}
	g.Calls = []delegate.GraphCall{c}
	g.Calls[0].Args = append(c.Args, c.Args[len(c.Args)-1])
	var values []*tensor.Value
	for _, v := range append(append(ints{}, g.Inputs...), g.Outputs...) {
		t := tensor.New(g.Values[v].DType, g.Values[v].Sizes...)
		for i := range tensor.Data[float32](t) {
			tensor.Data[float32](t)[i] = float32(math.Sin(float64(i)))
		}
		value := tensor.TensorValue(t)
		values = append(values, &value)
	}
	return g, values
}

func product(sizes []int) int {
	n, _ := tensor.Product(sizes)
	return n
}

// addValue adds a Go value as a graph value.
func addValue(g *delegate.Graph, a any) int {
	var v delegate.GraphValue
	switch a := a.(type) {
	case shape:
		v = delegate.GraphValue{Kind: tensor.KindTensor, DType: tensor.Float32, Sizes: a}
	case int8s:
		v = delegate.GraphValue{Kind: tensor.KindTensor, DType: tensor.Int8, Sizes: a}
	case int64s:
		v = delegate.GraphValue{Kind: tensor.KindTensor, DType: tensor.Int64, Sizes: a}
	case []shape:
		v.Kind = tensor.KindTensorList
		for _, s := range a {
			v.Items = append(v.Items, addValue(g, s))
		}
	case []int:
		v.Kind = tensor.KindIntList
		for _, n := range a {
			v.Items = append(v.Items, addValue(g, n))
		}
	case int:
		v = delegate.GraphValue{Kind: tensor.KindInt, Int: int64(a)}
	case float64:
		v = delegate.GraphValue{Kind: tensor.KindDouble, Double: a}
	case bool:
		v = delegate.GraphValue{Kind: tensor.KindBool, Bool: a}
	case string:
		v = delegate.GraphValue{Kind: tensor.KindString, Str: a}
	}
	g.Values = append(g.Values, v)
	return len(g.Values) - 1
}

// TestEstimateAnyDeclarations estimates calls whose tensors have other ranks and sizes, whose numbers are
// others, and which have fewer arguments.
func TestEstimateAnyDeclarations(t *testing.T) {
	set := kernels.NewSet(portable.Ops(), quantized.Ops())
	for _, tt := range costCases {
		op, sig, _, err := set.Lookup(tt.op)
		if err != nil || op == nil {
			t.Fatal(tt.op, err)
		}
		g, _ := oneCall(op, sig, tt.args)
		values, args := g.Values, g.Calls[0].Args
		for seed := range uint64(500) {
			r := rand.New(rand.NewPCG(seed, 3))
			g.Values, g.Calls[0].Args = slices.Clone(values), args
			for range 1 + r.IntN(3) {
				changeDeclaration(&g.Values[r.IntN(len(values))], r)
			}
			if r.IntN(4) == 0 {
				g.Calls[0].Args = args[:r.IntN(len(args))]
			}
			if d := lower.Estimate(g, r.Float64()); d < 0 {
				t.Fatalf("%s, seed %d: %v", tt.op, seed, d)
			}
		}
	}
}

func changeDeclaration(v *delegate.GraphValue, r *rand.Rand) {
	edges := []int64{-1, 0, 1, 2, 3, 17, math.MaxInt64, math.MinInt64}
	v.Int, v.Bool, v.Dynamism = edges[r.IntN(len(edges))], r.IntN(2) == 0, tensor.Dynamism(r.IntN(3))
	if v.Kind != tensor.KindTensor {
		return
	}
	v.Sizes = make([]int, r.IntN(6))
	for i := range v.Sizes {
		v.Sizes[i] = r.IntN(20)
	}
}
