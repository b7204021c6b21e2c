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

// Fits reports whether the number converts to d without overflow (c10::overflows): infinities fit floats, NaN fits no
// integer, fractions are truncated, and everything fits bool. Unlike negative floats, negative integers fit unsigned
// types, where they wrap.
func (s Scalar) Fits(d tensor.DType) bool {
	lo, hi := d.IntRange()
	switch {
	case d == tensor.Bool || d.IsComplex():
		return true
	case d.IsFloat():
		f := math.Abs(s.Float())
		return !(f > d.MaxFloat()) || math.IsInf(f, 0)
	case !d.IsInt():
		return false
	case s.IsFloat() && d == tensor.Uint64:
		return s.F >= 0 && s.F <= math.MaxUint64
	case s.IsFloat():
		return s.F >= float64(lo) && s.F <= float64(hi)
	case d == tensor.Uint64:
		return true
	case lo == 0:
		lo = -hi
	}
	return s.I >= lo && s.I <= hi
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
