package compare

import (
	"math"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func TestTensorsNamesTheFirstWrongElement(t *testing.T) {
	columns := tensor.Make(tensor.Int32, []int{2, 3}, []uint8{1, 0}, tensor.Static)
	columns.Bind(tensor.BytesOf([]int32{0, 10, 1, 11, 2, 12}))
	unbound := tensor.Make(tensor.Int8, []int{2}, nil, tensor.Static)
	for _, c := range []struct {
		name      string
		got, want *tensor.Tensor
		tol       kernels.Tolerance
		says      string
	}{
		{"equal", tensor.Of([]int8{1, 2}, 2), tensor.Of([]int8{1, 2}, 2), kernels.Tolerance{}, ""},
		{"within", tensor.Of([]float32{1}, 1), tensor.Of([]float32{1.5}, 1), kernels.Tolerance{Abs: 0.5}, ""},
		{"nan", tensor.Of([]float64{math.NaN()}, 1), tensor.Of([]float64{math.Copysign(math.NaN(), -1)}, 1), kernels.Tolerance{}, ""},
		{"zeros", tensor.Of([]float32{0}, 1), tensor.Of([]float32{float32(math.Copysign(0, -1))}, 1), kernels.Tolerance{}, ""},
		{"beyond", tensor.Of([]float32{1, 1, 3}, 3), tensor.Of([]float32{1, 2, 4}, 3), kernels.Tolerance{Abs: 0.5},
			"2 of 3 elements differ, first at [1]: got 1, want 2, distance 1 (0.5 + 0*|want| allowed)"},
		{"infinity", tensor.Of([]float32{1}, 1), tensor.Of([]float32{float32(math.Inf(1))}, 1), kernels.Tolerance{Abs: 1, Rel: 1}, "1 of 1"},
		{"integer", tensor.Of([]int64{math.MaxInt64 - 1}, 1), tensor.Of([]int64{math.MaxInt64}, 1), kernels.Tolerance{Abs: 9},
			"got 9223372036854775806, want 9223372036854775807"},
		{"complex", tensor.Of([]complex64{1 + 2i}, 1), tensor.Of([]complex64{1 + 3i}, 1), kernels.Tolerance{Abs: 0.5}, "got 1+2i, want 1+3i, distance 1"},
		{"dim orders", columns, tensor.Of([]int32{0, 1, 2, 10, 11, 12}, 2, 3), kernels.Tolerance{}, ""},
		{"dim orders, beyond", tensor.Of([]int32{0, 1, 2, 10, 9, 9}, 2, 3), columns, kernels.Tolerance{}, "2 of 6 elements differ, first at [1 1]: got 9, want 11"},
		{"scalar", tensor.Of([]bool{true}), tensor.Of([]bool{false}), kernels.Tolerance{}, "1 of 1 elements differ, first at []: got 1, want 0"},
		{"no elements", tensor.New(tensor.Int8, 0, 2), tensor.New(tensor.Int8, 0, 2), kernels.Tolerance{}, ""},
		{"unbound", unbound, tensor.New(tensor.Int8, 2), kernels.Tolerance{}, "0 bytes for int8 2"},
		{"type", tensor.New(tensor.Int8, 2), tensor.New(tensor.Uint8, 2), kernels.Tolerance{}, "got int8 2, want uint8 2"},
		{"sizes", tensor.New(tensor.Int8, 2, 1), tensor.New(tensor.Int8, 2), kernels.Tolerance{}, "got int8 2x1, want int8 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Tensors(c.got, c.want, c.tol)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}
