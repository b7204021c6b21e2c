package kernels

import (
	"math"
	"testing"

	"github.com/etrun-go/etrun/kernels/tensor"
)

func TestToleranceOfFamilies(t *testing.T) {
	for _, c := range []struct {
		family Family
		d      tensor.DType
		scale  float64
		want   Tolerance
	}{
		{Exact, tensor.Float32, 100, Tolerance{}},
		{Arith, tensor.Float32, 100, Tolerance{0, 2 * 0x1p-23}},
		{Arith, tensor.Float16, 100, Tolerance{0, 1.01 * 0x1p-10}},
		{Pointwise, tensor.Float64, 100, Tolerance{2 * 0x1p-52, 16 * 0x1p-52}},
		{Pointwise, tensor.BFloat16, 100, Tolerance{0x1p-9, 2 * 0x1p-7}},
		{Sum, tensor.Float32, 0.5, Tolerance{8 * 0x1p-23, 32 * 0x1p-23}},
		{Sum, tensor.Float16, 3, Tolerance{6 * 0x1p-10, 4 * 0x1p-10}},
		{Loose, tensor.Float32, 0.5, Tolerance{32 * 0x1p-23, 64 * 0x1p-23}},
		{Loose, tensor.Complex64, 2, Tolerance{64 * 0x1p-23, 64 * 0x1p-23}},
		{Loose, tensor.Int32, 2, Tolerance{}},
		{Sum, tensor.Bool, 2, Tolerance{}},
	} {
		if got := c.family.Tolerance(c.d, c.scale); got != c.want {
			t.Errorf("%v, %v, scale %v: got %v, want %v", c.family, c.d, c.scale, got, c.want)
		}
	}
}

func TestToleranceAllows(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		got, want float64
		ok        bool
	}{
		{1, 1, true}, {1.5, 1, true}, {1.6, 1, false}, {-1, 1, false},
		{inf, inf, true}, {-inf, inf, false}, {1, inf, false}, {inf, 1, false},
		{nan, nan, true}, {nan, 1, false}, {1, nan, false},
	} {
		if got := (Tolerance{Abs: 0.25, Rel: 0.25}).Allows(c.got, c.want); got != c.ok {
			t.Errorf("%v for %v: allowed %v, want %v", c.got, c.want, got, c.ok)
		}
	}
}
