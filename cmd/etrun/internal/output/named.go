package output

import "github.com/etrun-go/etrun/kernels/tensor"

// Put writes a value under a name: a list under several names, text and None not at all.
func (a *Archive) Put(name string, v *tensor.Value) error {
	if err := a.value(name, v); err != nil {
		return &Error{err}
	}
	return nil
}

// AsTensor returns a tensor, or a number as a tensor of rank 0; nil for other values.
func AsTensor(v *tensor.Value) *tensor.Tensor {
	switch v.Kind {
	case tensor.KindTensor:
		return v.Tensor
	case tensor.KindInt:
		return tensor.Of([]int64{v.Int})
	case tensor.KindDouble:
		return tensor.Of([]float64{v.Double})
	case tensor.KindBool:
		return tensor.Of([]bool{v.Bool})
	}
	return nil
}
