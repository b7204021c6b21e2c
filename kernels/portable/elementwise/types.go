package elementwise

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// ResultType collects operands for PyTorch's type promotion (at::result_type): tensors with dimensions come before
// tensors without, and those before numbers; the lesser ones count only if they are of a higher category.
type ResultType struct{ dims, zeros, numbers tensor.DType }

// NewResultType returns the type of no operands.
func NewResultType() ResultType {
	return ResultType{tensor.NoDType, tensor.NoDType, tensor.NoDType}
}

// Tensor adds a tensor.
func (r *ResultType) Tensor(t *tensor.Tensor) {
	if t.Rank() > 0 {
		r.dims = promote(r.dims, t.DType)
	} else {
		r.zeros = promote(r.zeros, t.DType)
	}
}

// Number adds a number.
func (r *ResultType) Number(s kernels.Scalar) {
	d := s.Type
	if s.IsFloat() {
		d = tensor.Float32 // PyTorch's default type
	}
	r.numbers = promote(r.numbers, d)
}

// Result returns the common type, NoDType if there is none.
func (r *ResultType) Result() tensor.DType {
	return combine(r.dims, combine(r.zeros, r.numbers))
}

// promote is tensor.Promote, except that NoDType means no operand yet.
func promote(a, b tensor.DType) tensor.DType {
	switch {
	case a == tensor.NoDType:
		return b
	case b == tensor.NoDType:
		return a
	}
	return tensor.Promote(a, b)
}

func combine(higher, lower tensor.DType) tensor.DType {
	raises := lower.IsComplex() && !higher.IsComplex() ||
		lower.IsFloat() && !higher.IsFloat() && !higher.IsComplex() || higher == tensor.Bool
	if higher == tensor.NoDType || raises {
		return promote(higher, lower)
	}
	return higher
}

// A rule returns the compute type for a common type. ok is false if the operator does not accept it.
type rule func(common tensor.DType) (compute tensor.DType, ok bool)

// numeric computes every type in its own compute type.
func numeric(common tensor.DType) (tensor.DType, bool) {
	if common.IsComplex() {
		return tensor.Complex128, true
	}
	c, ok := tensor.ComputeType(common)
	if c == tensor.Int64 && tensor.FitsInt32(common) {
		c = tensor.Int32
	}
	return c, ok && common != tensor.Uint64 // int64 would take its upper half for negative
}

// arithmetic is numeric without bool.
func arithmetic(common tensor.DType) (tensor.DType, bool) {
	c, ok := numeric(common)
	return c, ok && common != tensor.Bool
}

// floating computes integers and bool as float32.
func floating(common tensor.DType) (tensor.DType, bool) {
	c, ok := numeric(common)
	if c.IsInt() {
		c = tensor.Float32
	}
	return c, ok
}

// fractional takes floats only.
func fractional(common tensor.DType) (tensor.DType, bool) {
	c, ok := numeric(common)
	return c, ok && common.IsFloat()
}

// integral takes integers and bool only.
func integral(common tensor.DType) (tensor.DType, bool) {
	c, ok := numeric(common)
	return c, ok && c.IsInt()
}

// shiftable takes integers only.
func shiftable(common tensor.DType) (tensor.DType, bool) {
	c, ok := integral(common)
	return c, ok && common != tensor.Bool
}

// wrap converts a number to the common type if that is an integer type: an operand of -1 is 255 among uint8 tensors.
func wrap(s kernels.Scalar, common tensor.DType) kernels.Scalar {
	if !common.IsInt() || s.IsFloat() {
		return s
	}
	shift := 64 - 8*common.Size()
	if lo, _ := common.IntRange(); lo == 0 {
		s.I = int64(uint64(s.I) << shift >> shift)
	} else {
		s.I = s.I << shift >> shift
	}
	return s
}
