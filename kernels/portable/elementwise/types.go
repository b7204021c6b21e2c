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

// A rule is the set of categories that the common type of an operator's operands may have, and how it is computed.
type rule uint8

const (
	takesBool rule = 1 << iota
	takesInts
	takesFloats
	takesComplex
	takesUint64 // which int64 stands for: its upper half would be negative
	intsToFloat // bool and integers are computed as float32

	numeric     = takesBool | takesInts | takesFloats | takesComplex
	arithmetic  = takesInts | takesFloats | takesComplex
	floating    = numeric | intsToFloat
	fractional  = takesFloats
	integral    = takesBool | takesInts
	shiftable   = takesInts
	complexOnly = takesComplex
	anyType     = numeric | takesUint64 // for kernels that only move elements
)

// compute returns the compute type for a common type. ok is false if the operator does not accept it.
func (r rule) compute(common tensor.DType) (compute tensor.DType, ok bool) {
	compute, ok = tensor.ComputeType(common)
	category := takesInts
	switch {
	case common.IsComplex():
		compute, category, ok = tensor.Complex128, takesComplex, true
	case common.IsFloat():
		category = takesFloats
	case common == tensor.Bool:
		category = takesBool
	case common == tensor.Uint64:
		category = takesUint64
	}
	switch {
	case compute.IsInt() && r&intsToFloat != 0:
		compute = tensor.Float32
	case compute == tensor.Int64 && tensor.FitsInt32(common):
		compute = tensor.Int32
	}
	return compute, ok && r&category != 0
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
