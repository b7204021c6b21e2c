package ethosu

import (
	"math"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func rec(elemSize int, shape ...int) *record {
	r := &record{shape: [6]int{1, 1, 1, 1, 1, 1}, elemSize: elemSize, region: 1}
	copy(r.shape[6-len(shape):], shape)
	return r
}

func arg(d tensor.DType, sizes ...int) *delegate.ArgSpec {
	return &delegate.ArgSpec{DType: d, Sizes: sizes}
}

// TestOutputs covers all conversions from the NPU's memory to a tensor.
func TestOutputs(t *testing.T) {
	q := &delegate.Quantization{Scale: 0.5, ZeroPoint: 3}
	tests := []struct {
		name string
		rec  *record
		arg  *delegate.ArgSpec
		q    *delegate.Quantization
		src  []byte
		want any // elements, or part of the error
	}{
		{"unchanged", rec(1, 4), arg(tensor.Int8, 2, 2), nil, []byte{1, 2, 3, 255}, []int8{1, 2, 3, -1}},
		{"32 bits", rec(4, 1), arg(tensor.Int32, 1), nil, []byte{1, 2, 0, 0}, []int32{513}},
		{"rows with padding", rec(1, 2, 4), arg(tensor.Int8, 2, 3), nil, []byte{1, 2, 3, 9, 4, 5, 6, 9}, []int8{1, 2, 3, 4, 5, 6}},
		{"4-bit numbers", rec(1, 2, 1), arg(tensor.Int8, 2, 2), nil, []byte{0x1f, 0x87}, []int8{-1, 1, 7, -8}},
		{"rows not divisible", rec(1, 4, 3), arg(tensor.Int8, 5), nil, nil, "not divisible by the 4 rows"},
		{"rows not expandable", rec(1, 2, 2), arg(tensor.Int8, 2, 3), nil, nil, "rows of 3 bytes"},
		{"expanded four times", rec(1, 2, 2), arg(tensor.Int8, 2, 8), nil, nil, "expansion factor 4, element size 1"},
		{"4-bit numbers that are not int8", rec(1, 2, 2), arg(tensor.Uint8, 2, 4), nil, nil, "declared uint8"},
		{"stale float32", rec(1, 3), arg(tensor.Float32, 3), nil, nil, "declared float32, the NPU writes int8 (expansion factor 4, element size 1)"},
		{"stale float32 as float", rec(1, 3), arg(tensor.Float32, 3), q, []byte{3, 5, 0xff}, []float32{0, 1, -2}},
		{"stale float32 of 16 bits", rec(2, 2), arg(tensor.Float32, 2), q, []byte{5, 0, 0xff, 0xff}, []float32{1, -2}},
		{"stale float32 of 32 bits", rec(4, 1), arg(tensor.Float32, 1), q, []byte{5, 0, 1, 0}, []float32{32769}},
		{"float32 of 32 bits without its scale", rec(4, 1), arg(tensor.Float32, 1), nil, nil, "the NPU writes int32"},
		{"stale int16", rec(1, 2), arg(tensor.Int16, 2), nil, nil, "declared int16, the NPU writes int8"},
		{"stale int16 by value", rec(1, 2), arg(tensor.Int16, 2), q, []byte{5, 0xff}, []int16{5, -1}},
		{"stale int32 by value", rec(2, 1), arg(tensor.Int32, 1), q, []byte{0xfe, 0xff}, []int32{-2}},
		{"stale float16", rec(1, 2), arg(tensor.Float16, 2), q, nil, "no conversion"},
		{"scale 0", rec(1, 2), arg(tensor.Float32, 2), &delegate.Quantization{}, nil, "scale 0"},
		{"infinite scale", rec(1, 2), arg(tensor.Float32, 2), &delegate.Quantization{Scale: math.Inf(1)}, nil, "scale +Inf"},
		{"float of other sizes", rec(1, 8), arg(tensor.Float32, 2), q, nil, "float32 2, the NPU writes int8 1x1x1x1x1x8"},
		{"not a tensor", rec(1, 8), nil, nil, nil, "not a tensor"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr, err := planOutput(tt.rec, tt.arg, false, staleOutput(tt.rec, tt.arg, tt.q), false)
			if want, isError := tt.want.(string); isError {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Fatalf("got %v, want …%s…", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			out := tensor.New(tt.arg.DType, tt.arg.Sizes...)
			tr.copy(&tr, out.Data, tt.src)
			if want := bytesOf(t, tt.want); string(want) != string(out.Data) {
				t.Fatalf("got bytes %v, want %v (%v)", out.Data, want, tt.want)
			}
		})
	}
}

// staleOutput describes an output quantized by q, if it is not nil.
func staleOutput(r *record, a *delegate.ArgSpec, q *delegate.Quantization) *StaleOutput {
	o := &StaleOutput{Written: written(r.elemSize)}
	if a != nil {
		o.Declared, o.Sizes = a.DType, a.Sizes
	}
	if q != nil {
		o.Known = &delegate.QuantUse{Quantization: *q}
	}
	return o
}

func bytesOf(t *testing.T, v any) []byte {
	switch v := v.(type) {
	case []int8:
		return tensor.BytesOf(v)
	case []int16:
		return tensor.BytesOf(v)
	case []int32:
		return tensor.BytesOf(v)
	case []float32:
		return tensor.BytesOf(v)
	}
	t.Fatalf("no bytes of %T", v)
	return nil
}

func TestInputs(t *testing.T) {
	tests := []struct {
		name string
		rec  *record
		arg  *delegate.ArgSpec
		want string // part of the error, "" for none
	}{
		{"int8", rec(1, 4), arg(tensor.Int8, 4), ""},
		{"uint8", rec(1, 4), arg(tensor.Uint8, 4), ""},
		{"bool", rec(1, 4), arg(tensor.Bool, 4), ""},
		{"int16", rec(2, 4), arg(tensor.Int16, 2, 2), ""},
		{"int32", rec(4, 4), arg(tensor.Int32, 4), ""},
		{"float32", rec(4, 4), arg(tensor.Float32, 4), "got elements of float32, want 4 bytes each"},
		{"int64", rec(8, 4), arg(tensor.Int64, 4), "elements of int64"},
		{"other size", rec(1, 4), arg(tensor.Int16, 4), "got elements of int16, want 1 bytes each"},
		{"other count", rec(1, 4), arg(tensor.Int8, 5), "with 5 elements"},
		{"not a tensor", rec(1, 4), nil, "not a tensor"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := planInput(tt.rec, tt.arg, false)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
		})
	}
}
