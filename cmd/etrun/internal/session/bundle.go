package session

import (
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// bundledInputs returns the inputs of the first test case of a method, nil without one.
func bundledInputs(b *pte.Bundle, method string) []tensor.Value {
	if b == nil {
		return nil
	}
	for _, s := range b.Suites {
		if s.Method == method && len(s.Cases) > 0 {
			return BundledValues(s.Cases[0].Inputs)
		}
	}
	return nil
}

// BundledValues returns copies of the inputs or outputs of a test case.
func BundledValues(list []pte.BundleValue) []tensor.Value {
	values := make([]tensor.Value, len(list))
	for i := range list {
		values[i] = bundledValue(&list[i])
	}
	return values
}

func bundledValue(v *pte.BundleValue) tensor.Value {
	if v.Kind != tensor.KindTensor {
		return tensor.Value{Kind: v.Kind, Bool: v.Bool, Int: v.Int, Double: v.Double}
	}
	t := tensor.Make(v.DType, v.Sizes, v.DimOrder, tensor.Static)
	t.Bind(tensor.AlignedBytes(t.NBytes())) // bytes in a file may be unaligned
	copy(t.Data, v.Data)
	return tensor.TensorValue(t)
}

// CountCases returns the number of test cases of a bundle, 0 without one.
func CountCases(b *pte.Bundle) (n int) {
	if b == nil {
		return 0
	}
	for _, s := range b.Suites {
		n += len(s.Cases)
	}
	return n
}
