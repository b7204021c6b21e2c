//go:build cgo

package main

// #define ETRUN_TYPES_ONLY // cgo declares the functions, without const
// #include "etrun.h"
import "C"

import (
	"fmt"
	"math"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// scalarBytes are the sizes of kinds other than tensors.
var scalarBytes = map[tensor.Kind]int{tensor.KindInt: 8, tensor.KindDouble: 8, tensor.KindBool: 1}

// declared describes an input as declared.
func declared(meta *etrun.ValueMeta) C.etrun_info {
	info := C.etrun_info{kind: C.int32_t(meta.Kind), bytes: C.uint64_t(scalarBytes[meta.Kind])}
	if meta.Kind == tensor.KindTensor {
		describe(&info, meta.DType, meta.Sizes)
		if meta.Dynamism != tensor.Static {
			info.dynamic = 1
		}
	}
	return info
}

// described describes an output.
func described(v *tensor.Value) C.etrun_info {
	info := C.etrun_info{kind: C.int32_t(v.Kind), bytes: C.uint64_t(scalarBytes[v.Kind])}
	switch v.Kind {
	case tensor.KindTensor:
		describe(&info, v.Tensor.DType, v.Tensor.Sizes)
	case tensor.KindString:
		info.bytes = C.uint64_t(len(v.Str))
	}
	return info
}

func describe(info *C.etrun_info, d tensor.DType, sizes []int) {
	info.dtype, info.rank = C.int32_t(d), C.int32_t(len(sizes))
	elements, _ := tensor.Product(sizes) // checked at load
	info.bytes = C.uint64_t(elements * d.Size())
	for i, n := range sizes {
		info.sizes[i] = C.int64_t(n)
	}
}

// elementType converts a type, which comes from a caller.
func elementType(dtype C.int32_t) (tensor.DType, error) {
	if d := tensor.DType(dtype); dtype >= 0 && dtype < tensor.NumDTypes && d.Valid() {
		return d, nil
	}
	return 0, fmt.Errorf("%w of etrun_set_typed: %d is no element type", errArgument, int32(dtype))
}

// set copies an input from a caller's memory, which need not be aligned.
func set(m *etrun.Method, i int, data []byte, sizes []C.int64_t) error {
	meta := &m.Meta().Inputs[i]
	if meta.Kind != tensor.KindTensor {
		return setScalar(m, i, meta.Kind, data)
	}
	shape := meta.Sizes
	if len(sizes) > 0 {
		shape = shapeOf(sizes)
	}
	return setTensor(m, i, meta.DType, shape, data)
}

// scalarTypes are the element types of kinds other than tensors.
var scalarTypes = map[tensor.Kind]tensor.DType{
	tensor.KindInt: tensor.Int64, tensor.KindDouble: tensor.Float64, tensor.KindBool: tensor.Bool, tensor.KindString: tensor.Uint8,
}

// setTyped is set for data of a stated type and sizes.
func setTyped(m *etrun.Method, i int, d tensor.DType, data []byte, sizes []C.int64_t) error {
	kind, shape := m.Meta().Inputs[i].Kind, shapeOf(sizes)
	if kind == tensor.KindTensor {
		return setTensor(m, i, d, shape, data)
	}
	want, rank := scalarTypes[kind], 0
	if kind == tensor.KindString {
		rank = 1
	}
	switch {
	case d != want || len(shape) != rank:
		return fmt.Errorf("%w: input %d: got %v of rank %d, want %v of rank %d for %v", errArgument, i, d, len(shape), want, rank, kind)
	case rank == 1 && shape[0] != len(data):
		return fmt.Errorf("%w: input %d: got %d bytes, want %d", errArgument, i, len(data), shape[0])
	}
	return setScalar(m, i, kind, data)
}

// shapeOf converts sizes to int. Those that do not fit become the largest one, which no tensor has.
func shapeOf(sizes []C.int64_t) []int {
	shape := make([]int, len(sizes))
	for k, n := range sizes {
		shape[k] = int(max(min(n, math.MaxInt), -1))
	}
	return shape
}

// setTensor copies elements of type d.
func setTensor(m *etrun.Method, i int, d tensor.DType, shape []int, data []byte) error {
	if err := tensor.CheckShape(shape, tensor.ContiguousOrder(len(shape))); err != nil {
		return fmt.Errorf("%w: input %d: %w", errArgument, i, err)
	}
	t := tensor.Make(d, shape, nil, tensor.Static)
	if len(data) != t.NBytes() {
		return fmt.Errorf("%w: input %d: got %d bytes, want %d of %v", errArgument, i, len(data), t.NBytes(), t)
	}
	if len(data) > 0 && !tensor.Aligned(data, tensor.Alignment) {
		data = append(tensor.AlignedBytes(len(data))[:0], data...)
	}
	t.Bind(data)
	return m.SetInput(i, t)
}

func setScalar(m *etrun.Method, i int, kind tensor.Kind, data []byte) error {
	if kind == tensor.KindString {
		return m.SetValue(i, tensor.StringValue(string(data)))
	}
	if want, ok := scalarBytes[kind]; !ok || len(data) != want {
		return fmt.Errorf("%w: input %d: got %d bytes, want %d of %v", errArgument, i, len(data), want, kind)
	}
	data = append(tensor.AlignedBytes(len(data))[:0], data...)
	switch kind {
	case tensor.KindInt:
		return m.SetValue(i, tensor.IntValue(tensor.View[int64](data)[0]))
	case tensor.KindDouble:
		return m.SetValue(i, tensor.DoubleValue(tensor.View[float64](data)[0]))
	}
	return m.SetValue(i, tensor.BoolValue(data[0] != 0))
}

func output(m *etrun.Method, i C.size_t) (v tensor.Value, err error) {
	if uint64(i) >= uint64(m.NumOutputs()) {
		return v, fmt.Errorf("%w: output %d, the method has %d", errArgument, uint64(i), m.NumOutputs())
	}
	return m.Output(int(i))
}

// get copies an output to a caller's memory, which need not be aligned.
func get(to []byte, v *tensor.Value) {
	switch v.Kind {
	case tensor.KindTensor:
		from := v.Tensor
		if !from.IsContiguous() {
			from = tensor.Make(v.Tensor.DType, v.Tensor.Sizes, nil, tensor.Static)
			from.Bind(tensor.AlignedBytes(from.NBytes()))
			tensor.CopyLayout(from, v.Tensor)
		}
		copy(to, from.Data)
	case tensor.KindInt:
		copy(to, tensor.BytesOf([]int64{v.Int}))
	case tensor.KindDouble:
		copy(to, tensor.BytesOf([]float64{v.Double}))
	case tensor.KindBool:
		copy(to, tensor.BytesOf([]bool{v.Bool}))
	case tensor.KindString:
		copy(to, v.Str)
	}
}
