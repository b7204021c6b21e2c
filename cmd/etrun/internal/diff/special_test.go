package diff

import (
	"math"
	"testing"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func TestOnlySpecial(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	floats := func(v ...float32) tensor.Value { return tensor.TensorValue(tensor.Of(v, len(v))) }
	for _, c := range []struct {
		name      string
		got, want tensor.Value
		special   bool
	}{
		{"equal", floats(1, nan, inf), floats(1, nan, inf), false},
		{"a number for NaN", floats(1, 0), floats(1, nan), true},
		{"infinity for NaN", floats(inf, 2), floats(nan, 2), true},
		{"another number, too", floats(0, 2), floats(nan, 3), false},
		{"other numbers", floats(1, 2), floats(1, 3), false},
		{"sizes", floats(1), floats(nan, 1), false},
		{"integers", tensor.TensorValue(tensor.Of([]int64{1}, 1)), tensor.TensorValue(tensor.Of([]int64{2}, 1)), false},
		{"kinds", tensor.IntValue(1), floats(nan), false},
	} {
		if got := OnlySpecial(&c.got, &c.want, kernels.Tolerance{Abs: 1e-5}); got != c.special {
			t.Errorf("%s: got %t, want %t", c.name, got, c.special)
		}
	}
}
