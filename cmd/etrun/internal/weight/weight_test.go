package weight

import (
	"math"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func TestLoad(t *testing.T) {
	floats := tensor.BytesOf([]float32{1, -2, 3})
	for _, tt := range []struct {
		name   string
		dtype  tensor.DType
		sizes  []int
		data   []byte
		e      *delegate.Elements
		kind   string
		stored []float64
		real   []float64
	}{
		{"floats", tensor.Float32, []int{3}, floats, nil, "float32 3", []float64{1, -2, 3}, []float64{1, -2, 3}},
		{"unaligned floats", tensor.Float32, []int{3}, append([]byte{0}, floats...)[1:], nil, "float32 3", []float64{1, -2, 3}, []float64{1, -2, 3}},
		{"one scale", tensor.Uint8, []int{2}, []byte{3, 5}, &delegate.Elements{Bits: 8, ZeroPoint: 4, Scales: []float32{0.5}}, "uint8 2",
			[]float64{3, 5}, []float64{-0.5, 0.5}},
		{"scales of channels", tensor.Int8, []int{2, 2}, []byte{1, 2, 3, 4}, &delegate.Elements{Bits: 8, Scales: []float32{1, 10}, Dim: 1}, "int8 2x2",
			[]float64{1, 2, 3, 4}, []float64{1, 20, 3, 40}},
		{"zeros of channels", tensor.Int8, []int{2, 2}, []byte{1, 2, 3, 4}, &delegate.Elements{Bits: 8, Scales: []float32{1, 10}, Zeros: []float32{1, 2}},
			"int8 2x2", []float64{1, 2, 3, 4}, []float64{0, 1, 10, 20}},
		{"four bits, low first, odd rows", tensor.Uint8, []int{4}, []byte{0x98, 0x0f, 0x70, 0x01},
			&delegate.Elements{Bits: 4, Sizes: []int{2, 3}, ZeroPoint: 8, Scales: []float32{1, 10}}, "int4 2x3",
			[]float64{0, 1, 7, -8, -1, -7}, []float64{0, 1, 7, -80, -10, -70}},
		{"four bits, high first, groups", tensor.Uint8, []int{1, 2}, []byte{0x98, 0x0f},
			&delegate.Elements{Bits: 4, Sizes: []int{1, 4}, HighFirst: true, ZeroPoint: 8, Scales: []float32{1, 10}, Group: 2}, "int4 1x4",
			[]float64{1, 0, -8, 7}, []float64{1, 0, -80, 70}},
		{"two bits", tensor.Uint8, []int{1}, []byte{0b11_10_01_00}, &delegate.Elements{Bits: 2, Sizes: []int{1, 4}, ZeroPoint: 2, Scales: []float32{2}},
			"int2 1x4", []float64{-2, -1, 0, 1}, []float64{-4, -2, 0, 2}},
		// what contradicts the bytes does not count
		{"too few scales", tensor.Int8, []int{2, 2}, []byte{1, 2, 3, 4}, &delegate.Elements{Bits: 8, Scales: []float32{1, 10, 100}}, "int8 2x2",
			[]float64{1, 2, 3, 4}, []float64{1, 2, 3, 4}},
		{"packed sizes of other bytes", tensor.Uint8, []int{2}, []byte{1, 2}, &delegate.Elements{Bits: 4, Sizes: []int{2, 3}, Scales: []float32{1}},
			"uint8 2", []float64{1, 2}, []float64{1, 2}},
		{"three bits", tensor.Uint8, []int{2}, []byte{1, 2}, &delegate.Elements{Bits: 3, Sizes: []int{1, 4}, Scales: []float32{1}},
			"uint8 2", []float64{1, 2}, []float64{1, 2}},
	} {
		w := New(tt.name, tt.dtype, tt.sizes, nil, tt.data, tt.e)
		if w == nil || w.Type() != tt.kind || w.Count() != len(tt.stored) {
			t.Errorf("%s: got %+v, want %s", tt.name, w, tt.kind)
			continue
		}
		for _, real := range []bool{false, true} {
			want, got := tt.stored, make([]float64, len(tt.stored))
			if real {
				want = tt.real
			}
			if !w.Load(got, 0, real) || !slices.Equal(got, want) {
				t.Errorf("%s, real %v: got %v, want %v", tt.name, real, got, want)
			}
			one := make([]float64, 1)
			if w.Load(one, len(want)-1, real); one[0] != want[len(want)-1] {
				t.Errorf("%s, real %v: the last element is %v, want %v", tt.name, real, one[0], want[len(want)-1])
			}
			x := w.Tensor(real)
			tensor.Loader[float64](x.DType)(got, append(tensor.AlignedBytes(0), slices.Clone(x.Data)...))
			if !slices.Equal(got, want) || !slices.Equal(x.Sizes, w.Sizes) {
				t.Errorf("%s, real %v: the tensor is %v %v, want %v", tt.name, real, x, got, want)
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, tt := range []struct {
		name  string
		sizes []int
		data  []byte
	}{
		{"too few bytes", []int{3}, make([]byte, 8)},
		{"sizes that overflow", []int{math.MaxInt, math.MaxInt}, make([]byte, 8)},
		{"no bytes", []int{0}, nil},
	} {
		if w := New("", tensor.Float32, tt.sizes, nil, tt.data, nil); w != nil {
			t.Errorf("%s: got %+v", tt.name, w)
		}
	}
}
