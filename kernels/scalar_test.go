package kernels

import (
	"math"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
)

func intScalar(i int64) Scalar     { return Scalar{Type: tensor.Int64, I: i} }
func floatScalar(f float64) Scalar { return Scalar{Type: tensor.Float64, F: f} }

func TestScalarFits(t *testing.T) {
	for _, c := range []struct {
		s    Scalar
		d    tensor.DType
		want bool
	}{
		{intScalar(255), tensor.Uint8, true}, {intScalar(256), tensor.Uint8, false},
		{intScalar(-255), tensor.Uint8, true}, {intScalar(-256), tensor.Uint8, false},
		{intScalar(127), tensor.Int8, true}, {intScalar(128), tensor.Int8, false}, {intScalar(-129), tensor.Int8, false},
		{intScalar(1 << 40), tensor.Bool, true}, {intScalar(1 << 40), tensor.Float32, true},
		{intScalar(65504), tensor.Float16, true}, {intScalar(65505), tensor.Float16, false},
		{floatScalar(-0.5), tensor.Uint8, false}, {floatScalar(2.7), tensor.Uint8, true}, {floatScalar(255.5), tensor.Uint8, false},
		{floatScalar(math.NaN()), tensor.Int32, false}, {floatScalar(math.NaN()), tensor.Float16, true},
		{floatScalar(math.Inf(1)), tensor.Float32, true}, {floatScalar(math.Inf(1)), tensor.Int64, false},
		{floatScalar(1e300), tensor.Float32, false}, {floatScalar(1e300), tensor.Float64, true},
		{floatScalar(1e19), tensor.Uint64, true}, {floatScalar(1e20), tensor.Uint64, false},
		{Scalar{Type: tensor.Bool, I: 1}, tensor.Int8, true}, {intScalar(1), tensor.QInt8, false},
	} {
		if got := c.s.Fits(c.d); got != c.want {
			t.Errorf("%v in %v: got %v, want %v", c.s, c.d, got, c.want)
		}
	}
}

func TestScalarAs(t *testing.T) {
	s := floatScalar(-2.75)
	if got := ScalarAs[int64](s); got != -2 {
		t.Errorf("int64: got %d, want -2", got)
	}
	if got := ScalarAs[float32](s); got != -2.75 {
		t.Errorf("float32: got %v, want -2.75", got)
	}
	if got := ScalarAs[float64](intScalar(7)); got != 7 {
		t.Errorf("float64: got %v, want 7", got)
	}
}
