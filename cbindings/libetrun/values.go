//go:build cgo

package main

// #define ETRUN_TYPES_ONLY // cgo declares the functions, without const
// #include "etrun.h"
import "C"

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// elements are the elements of a value of any kind, as C sees them.
type elements struct {
	kind  tensor.Kind
	dtype tensor.DType
	shape []int
	from  *tensor.Value
}

// elementTypes are the element types of kinds other than tensors.
var elementTypes = map[tensor.Kind]tensor.DType{
	tensor.KindInt: tensor.Int64, tensor.KindDouble: tensor.Float64, tensor.KindBool: tensor.Bool, tensor.KindString: tensor.Uint8,
	tensor.KindIntList: tensor.Int64, tensor.KindDoubleList: tensor.Float64, tensor.KindBoolList: tensor.Bool,
}

// elementsOf returns the elements of a value. Those of None have no type.
func elementsOf(v *tensor.Value) (e elements, err error) {
	e = elements{v.Kind, tensor.NoDType, nil, v}
	d, ok := elementTypes[v.Kind]
	switch {
	case v.Kind == tensor.KindTensor:
		e.dtype, e.shape = v.Tensor.DType, v.Tensor.Sizes
	case ok:
		e.dtype, e.shape = d, lengthOf(v)
	case v.Kind != tensor.None:
		return e, fmt.Errorf("%w: a value of kind %v", etrun.ErrUnsupported, v.Kind)
	}
	return e, nil
}

// lengthOf returns the shape of a value that is not a tensor: none for a scalar.
func lengthOf(v *tensor.Value) []int {
	switch v.Kind {
	case tensor.KindString:
		return []int{len(v.Str)}
	case tensor.KindIntList:
		return []int{len(v.Items)}
	case tensor.KindDoubleList:
		return []int{len(v.Doubles)}
	case tensor.KindBoolList:
		return []int{len(v.Bools)}
	}
	return nil
}

func (e *elements) String() string {
	if e.dtype == tensor.NoDType {
		return "None"
	}
	return fmt.Sprintf("%v %s", e.dtype, tensor.FormatSizes(e.shape))
}

// bytes is the size of all elements.
func (e *elements) bytes() int {
	if e.dtype == tensor.NoDType {
		return 0
	}
	n, _ := tensor.Product(e.shape) // checked at load
	return n * e.dtype.Size()
}

// data returns the elements in logical order. They share the value's memory where it has that order.
func (e *elements) data() []byte {
	switch v := e.from; v.Kind {
	case tensor.KindTensor:
		return v.Tensor.Logical()
	case tensor.KindInt:
		return tensor.BytesOf([]int64{v.Int})
	case tensor.KindDouble:
		return tensor.BytesOf([]float64{v.Double})
	case tensor.KindBool:
		return tensor.BytesOf([]bool{v.Bool})
	case tensor.KindString:
		return []byte(v.Str)
	case tensor.KindIntList:
		return tensor.BytesOf(slices.Clone(v.IntList()))
	case tensor.KindDoubleList:
		return tensor.BytesOf(v.Doubles)
	case tensor.KindBoolList:
		return tensor.BytesOf(v.Bools)
	}
	return nil
}

// check compares the elements of output i with what a caller asks for.
func (e *elements) check(i int, d tensor.DType, shape []int) error {
	if d != e.dtype || !slices.Equal(shape, e.shape) {
		return argument("output %d: got %v %s, want %v", i, d, tensor.FormatSizes(shape), e)
	}
	return nil
}

// output returns the elements of output i of the last run.
func (m *method) output(i C.size_t) (e elements, err error) {
	if err := checkIndex("output", i, m.NumOutputs()); err != nil {
		return e, err
	}
	v, err := m.Output(int(i))
	if err != nil {
		return e, err
	}
	if e, err = elementsOf(&v); err != nil {
		err = fmt.Errorf("output %d: %w", i, err)
	}
	return e, err
}

// declared describes an input or output as declared.
func declared(meta *etrun.ValueMeta, s *cStrings) C.etrun_info {
	e := elementsOfMeta(meta)
	info, scalar := described(&e, s.of(meta.Name)), e.from
	info.dynamic, info.double_value = C.int32_t(meta.Dynamism), C.double(scalar.Double)
	if meta.Planned {
		info.planned = 1
	}
	switch {
	case scalar.Kind == tensor.KindInt:
		info.int_value = C.int64_t(scalar.Int)
	case scalar.Bool:
		info.int_value = 1
	}
	return info
}

// elementsOfMeta returns the elements of an input or output as declared; kinds that C has no type for are without.
func elementsOfMeta(meta *etrun.ValueMeta) elements {
	v := meta.Scalar
	if meta.Kind == tensor.KindTensor {
		v = tensor.TensorValue(&tensor.Tensor{DType: meta.DType, Sizes: meta.Sizes})
	}
	e, _ := elementsOf(&v)
	return e
}

// described describes elements.
func described(e *elements, name *C.char) C.etrun_info {
	info := C.etrun_info{kind: C.int32_t(e.kind), dtype: C.int32_t(e.dtype), rank: C.int32_t(len(e.shape)), name: name}
	info.bytes = C.uint64_t(e.bytes())
	for i, n := range e.shape {
		info.shape[i] = C.int64_t(n)
	}
	return info
}

// elementType converts a type, which comes from a caller.
func elementType(dtype C.int32_t) (tensor.DType, error) {
	if d := tensor.DType(dtype); dtype >= 0 && dtype < tensor.NumDTypes && d.Valid() {
		return d, nil
	}
	return 0, argument("dtype is %d, which is not an element type", int32(dtype))
}

// request converts the type and the shape of a caller's elements.
func (m *method) request(dtype C.int32_t, shape *C.int64_t, rank C.size_t) (tensor.DType, []int, error) {
	d, err := elementType(dtype)
	switch {
	case err != nil:
		return 0, nil, err
	case rank > C.ETRUN_MAX_RANK:
		return 0, nil, argument("rank is %d, at most %d", uint64(rank), C.ETRUN_MAX_RANK)
	case shape == nil && rank > 0:
		return 0, nil, argument("shape is NULL, with rank %d", uint64(rank))
	}
	sizes := shapeOf(unsafe.Slice(shape, rank))
	if err := tensor.CheckShape(sizes, tensor.ContiguousOrder(len(sizes))); err != nil {
		return 0, nil, argument("shape: %v", err)
	}
	return d, sizes, nil
}

// shapeOf converts sizes to int. Those that do not fit become the largest one, which no tensor has.
func shapeOf(sizes []C.int64_t) []int {
	shape := make([]int, len(sizes))
	for k, n := range sizes {
		shape[k] = int(max(min(n, math.MaxInt), -1))
	}
	return shape
}

// set copies an input from a caller's memory, which need not be aligned.
func (m *method) set(i int, d tensor.DType, shape []int, data []byte) error {
	from := elements{dtype: d, shape: shape}
	if want := from.bytes(); len(data) != want {
		return argument("input %d: got %d bytes for %v, which is %d bytes; want %s", i, len(data), &from, want, wanted(&m.meta.Inputs[i]))
	}
	if m.meta.Inputs[i].Kind != tensor.KindTensor {
		return m.setScalar(i, &from, data)
	}
	t := m.inputs[i].last
	if t == nil || t.DType != d || !slices.Equal(t.Sizes, shape) {
		t = tensor.Make(d, shape, nil, tensor.Static)
	}
	if len(data) > 0 && !tensor.Aligned(data, min(d.Size(), 8)) {
		data = append(tensor.AlignedBytes(len(data))[:0], data...)
	}
	t.Bind(data)
	err := m.SetInput(i, t)
	t.Bind(nil)
	if err == nil {
		m.inputs[i].last = t
	}
	return err
}

// wanted describes the elements of an input.
func wanted(meta *etrun.ValueMeta) string {
	e := elementsOfMeta(meta)
	return fmt.Sprintf("%v%s, %d bytes", &e, [...]string{"", " at most", " or other sizes"}[meta.Dynamism], e.bytes())
}

// setScalar sets an input that is not a tensor.
func (m *method) setScalar(i int, from *elements, data []byte) error {
	meta := &m.meta.Inputs[i]
	kind := meta.Kind
	if kind == tensor.None { // accepts a value of any kind
		kind = kindOf(from)
	}
	d, ok := elementTypes[kind]
	rank := 0
	if kind == tensor.KindString {
		rank = 1
	}
	switch {
	case !ok || kind > tensor.KindBool:
		return argument("input %d: got %v, but a value of kind %v cannot be set", i, from, meta.Kind)
	case d != from.dtype || len(from.shape) != rank:
		return argument("input %d: got %v, want %v of rank %d, for a value of kind %v", i, from, d, rank, kind)
	}
	return m.SetValue(i, valueOf(kind, append(tensor.AlignedBytes(len(data))[:0], data...)))
}

// kindOf returns the kind of value that elements of a caller are.
func kindOf(from *elements) tensor.Kind {
	switch {
	case from.dtype == tensor.Uint8 && len(from.shape) == 1:
		return tensor.KindString
	case from.dtype == tensor.Float64:
		return tensor.KindDouble
	case from.dtype == tensor.Bool:
		return tensor.KindBool
	}
	return tensor.KindInt
}

// valueOf makes a value of bytes that have its size.
func valueOf(kind tensor.Kind, data []byte) tensor.Value {
	switch kind {
	case tensor.KindString:
		return tensor.StringValue(string(data))
	case tensor.KindInt:
		return tensor.IntValue(tensor.View[int64](data)[0])
	case tensor.KindDouble:
		return tensor.DoubleValue(tensor.View[float64](data)[0])
	}
	return tensor.BoolValue(data[0] != 0)
}

// lend makes the method read an input from memory that C writes, and returns it.
func (m *method) lend(i int, d tensor.DType, shape []int) ([]byte, error) {
	meta, in := &m.meta.Inputs[i], &m.inputs[i]
	if meta.Kind != tensor.KindTensor || meta.Dynamism == tensor.DynamicUnbound {
		return nil, argument("input %d has no memory to write to: it is a value of kind %v, or of unlimited size; use etrun_set", i, meta.Kind)
	}
	t := tensor.Make(d, shape, nil, tensor.Static)
	if !slices.Equal(meta.DimOrder, tensor.ContiguousOrder(len(meta.Sizes))) {
		return nil, argument("input %d has no memory to write to: its elements are in dim order %v; use etrun_set", i, meta.DimOrder)
	}
	memory := in.memory
	if memory == nil {
		n, _ := tensor.Product(meta.Sizes) // the largest sizes, checked at load
		memory = tensor.AlignedBytes(n * meta.DType.Size())
	}
	if t.NBytes() <= len(memory) { // if not, the sizes are refused
		t.Bind(memory)
	}
	if err := m.BindInput(i, t); err != nil {
		return nil, bindingFault(i, err)
	}
	if in.memory == nil && len(memory) > 0 {
		in.memory = memory
		in.pinned.Pin(unsafe.SliceData(memory))
	}
	return memory[:t.NBytes()], nil
}

// bindingFault returns an error of [etrun.Method.BindInput] in the words of C.
func bindingFault(i int, err error) error {
	if e, ok := errors.AsType[*etrun.InputError](err); ok && (e.Got == "BindInput" || strings.HasSuffix(e.Want, "other values share")) {
		return argument("input %d has no memory to write to: it is state, or shares memory with other values; use etrun_set", i)
	}
	return err
}
