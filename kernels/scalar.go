package kernels

import (
	"fmt"
	"math"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// Scalar is a number argument (at::Scalar): an int64, a bool or a double.
type Scalar struct {
	Type tensor.DType // Int64, Bool (in I) or Float64 (in F)
	I    int64
	F    float64
}

// Float returns the number as a double.
func (s Scalar) Float() float64 {
	if s.Type == tensor.Float64 {
		return s.F
	}
	return float64(s.I)
}

// Int returns the number as an int64, truncated by [tensor.FloatToInt].
func (s Scalar) Int() int64 {
	if s.Type == tensor.Float64 {
		return tensor.FloatToInt(s.F)
	}
	return s.I
}

// IsFloat reports whether the number is a double.
func (s Scalar) IsFloat() bool { return s.Type == tensor.Float64 }

// ScalarAs converts the number to a compute type.
func ScalarAs[C tensor.Convertible](s Scalar) C {
	if s.Type == tensor.Float64 {
		switch any(C(0)).(type) {
		case int32, int64:
			return C(tensor.FloatToInt(s.F))
		}
		return C(s.F)
	}
	return C(s.I)
}

// intRanges are the ranges of numbers that convert to each integer type. As in PyTorch, unsigned
// types accept negative integers, which wrap.
var intRanges = [tensor.NumDTypes]struct{ lo, hi int64 }{
	tensor.Uint8:  {-math.MaxUint8, math.MaxUint8},
	tensor.Int8:   {math.MinInt8, math.MaxInt8},
	tensor.Int16:  {math.MinInt16, math.MaxInt16},
	tensor.Int32:  {math.MinInt32, math.MaxInt32},
	tensor.Int64:  {math.MinInt64, math.MaxInt64},
	tensor.Uint16: {-math.MaxUint16, math.MaxUint16},
	tensor.Uint32: {-math.MaxUint32, math.MaxUint32},
	tensor.Uint64: {math.MinInt64, math.MaxInt64},
}

// floatLimits are the largest finite values of the float types.
var floatLimits = [tensor.NumDTypes]float64{
	tensor.Float16:  65504,
	tensor.BFloat16: 0x1.fep127,
	tensor.Float32:  math.MaxFloat32,
	tensor.Float64:  math.MaxFloat64,
}

// Fits reports whether the number converts to d without overflow (c10::overflows): infinities fit
// floats, NaN fits no integer, fractions are truncated, and everything fits bool.
func (s Scalar) Fits(d tensor.DType) bool {
	switch {
	case d == tensor.Bool || d.IsComplex():
		return true
	case d.IsFloat():
		f := math.Abs(s.Float())
		return !(f > floatLimits[d]) || math.IsInf(f, 0)
	case !d.IsInt():
		return false
	case s.IsFloat():
		lo, hi := floatRange(d)
		return s.F >= lo && s.F <= hi
	}
	return s.I >= intRanges[d].lo && s.I <= intRanges[d].hi
}

// floatRange returns the range of doubles that fit an integer type. Unlike negative integers,
// negative doubles do not fit unsigned types.
func floatRange(d tensor.DType) (lo, hi float64) {
	switch d {
	case tensor.Uint64:
		return 0, math.MaxUint64
	case tensor.Uint8, tensor.Uint16, tensor.Uint32:
		return 0, float64(intRanges[d].hi)
	}
	return float64(intRanges[d].lo), float64(intRanges[d].hi)
}

// CheckFits returns an error for argument i if its value s does not fit d.
func CheckFits(i int, s Scalar, d tensor.DType) error {
	if s.Fits(d) {
		return nil
	}
	return Badf(i, "a number that fits "+d.String(), "%v", s)
}

// Put stores the number as an element of type d at the start of dst, which must be aligned to it.
// ok is false for types that operators do not compute on.
func (s Scalar) Put(dst []byte, d tensor.DType) (ok bool) {
	if s.IsFloat() {
		return tensor.Put(dst, d, s.F)
	}
	return tensor.Put(dst, d, s.I)
}

func (s Scalar) String() string {
	switch s.Type {
	case tensor.Float64:
		return fmt.Sprint(s.F)
	case tensor.Bool:
		return fmt.Sprint(s.I != 0)
	}
	return fmt.Sprint(s.I)
}
