package verify

import (
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// TestStepsOfMethods tracks values through operators, branches and views.
func TestStepsOfMethods(t *testing.T) {
	const scale = 0.5
	float := func(offset int64) pte.Value {
		return pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Float32, Sizes: []int{4}, DimOrder: []uint8{0}, Storage: pte.Planned, Offset: offset}}
	}
	codes := float(0)
	codes.Tensor.DType = tensor.Int8
	number := pte.Value{Kind: tensor.KindDouble, Double: scale}
	call := func(op int, args ...int) pte.Instruction {
		return pte.Instruction{Kind: pte.KernelCall, Index: op, Args: args}
	}
	const dequantize, view, sigmoid, sin = 0, 1, 2, 3
	m := pte.Method{
		Values: []pte.Value{codes, number, float(64), float(128), float(192), float(192), float(256)},
		Inputs: []int{0}, Outputs: []int{2, 3, 4, 5, 6, 0},
		Operators: []pte.Operator{{Name: "cortex_m::dequantize_per_tensor", Overload: "out"}, {Name: "aten::view_copy", Overload: "out"},
			{Name: "aten::sigmoid", Overload: "out"}, {Name: "aten::sin", Overload: "out"}},
		Chains: []pte.Chain{{Instructions: []pte.Instruction{
			call(dequantize, 0, 1, 2, 2), call(sigmoid, 2, 3, 3), call(view, 3, 1, 4, 4), // 5 is a view of 4
			call(view, 2, 1, 6, 6), call(sin, 2, 6, 6), // two branches
		}}},
	}
	got := OutputSteps(nil, &m)
	for i, want := range []float64{scale, scale / 4, scale / 4, scale / 4, 0, 0} {
		if got[i] != want {
			t.Errorf("output %d: got %v, want %v", i, got[i], want)
		}
	}
}
