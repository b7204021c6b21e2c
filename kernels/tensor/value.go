package tensor

import "fmt"

// Kind is the type of a [Value]. The values are the ExecuTorch runtime's tags (runtime/core/tag.h),
// not the file's KernelTypes.
type Kind uint8

// Kinds of values.
const (
	None Kind = iota
	KindTensor
	KindString
	KindDouble
	KindInt
	KindBool
	KindBoolList
	KindDoubleList
	KindIntList
	KindTensorList
	_ // ListScalar, never in a file
	KindOptionalTensorList
)

func (k Kind) String() string {
	names := [...]string{"none", "tensor", "string", "double", "int", "bool", "bool list", "double list",
		"int list", "tensor list", "scalar list", "optional tensor list"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Value is one slot of a method's value table (ExecuTorch's EValue): a tagged union. Only the field
// selected by Kind is meaningful.
type Value struct {
	Kind    Kind
	Bool    bool
	Int     int64
	Double  float64
	Tensor  *Tensor
	Str     string
	Bools   []bool
	Doubles []float64
	Items   []*Value // IntList: Int slots; TensorList and OptionalTensorList: Tensor or None slots

	unwrapped *unwrapped // of lists only
}

// unwrapped is memory for the contents of a list's Items.
type unwrapped struct {
	ints    []int64
	tensors []*Tensor
}

// NewList returns a list value that refers to other slots: a symbolic int in an IntList is read at
// each use.
func NewList(k Kind, items []*Value) Value {
	u := new(unwrapped)
	if k == KindIntList {
		u.ints = make([]int64, len(items))
	} else {
		u.tensors = make([]*Tensor, len(items))
	}
	return Value{Kind: k, Items: items, unwrapped: u}
}

// IntList returns the current integers of an IntList. The slice is valid until the next call.
func (v *Value) IntList() []int64 {
	if v.unwrapped == nil && len(v.Items) == 0 {
		return nil
	}
	ints := v.unwrapped.ints
	for i, item := range v.Items {
		ints[i] = item.Int
	}
	return ints
}

// TensorList returns the current tensors of a TensorList or OptionalTensorList, nil for None. The
// slice is valid until the next call.
func (v *Value) TensorList() []*Tensor {
	if v.unwrapped == nil && len(v.Items) == 0 {
		return nil
	}
	tensors := v.unwrapped.tensors
	for i, item := range v.Items {
		tensors[i] = nil
		if item.Kind == KindTensor {
			tensors[i] = item.Tensor
		}
	}
	return tensors
}

// Scalar constructors.
func IntValue(i int64) Value      { return Value{Kind: KindInt, Int: i} }
func DoubleValue(d float64) Value { return Value{Kind: KindDouble, Double: d} }
func BoolValue(b bool) Value      { return Value{Kind: KindBool, Bool: b} }
func StringValue(s string) Value  { return Value{Kind: KindString, Str: s} }
func TensorValue(t *Tensor) Value { return Value{Kind: KindTensor, Tensor: t} }
