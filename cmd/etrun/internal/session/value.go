package session

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// ValueReport describes an input or output of a method.
type ValueReport struct {
	Kind     string `json:"kind"`
	Name     string `json:"name,omitempty"`
	DType    string `json:"dtype,omitempty"`
	Shape    []int  `json:"shape,omitzero"` // upper bounds if dynamic
	DimOrder []int  `json:"dim_order,omitzero"`
	Order    string `json:"order,omitempty"` // name of the dim order
	Dynamism string `json:"dynamism,omitempty"`
	Storage  string `json:"storage,omitempty"`
	Value    any    `json:"value,omitempty"`
}

// MethodSpec returns the description of an existing method.
func MethodSpec(prog *etrun.Program, name string) *pte.Method {
	return &prog.Spec().Methods[slices.Index(prog.MethodNames(), name)]
}

// NewValueReport describes a value of a method m.
func NewValueReport(v etrun.ValueMeta, m *pte.Method) ValueReport {
	r := ValueReport{Kind: strings.ReplaceAll(v.Kind.String(), " ", "_"), Name: v.Name}
	switch v.Kind {
	case tensor.KindTensor:
		r.DType, r.Shape, r.DimOrder, r.Order = v.DType.String(), append([]int{}, v.Sizes...), []int{}, orderName(v.DimOrder)
		for _, d := range v.DimOrder {
			r.DimOrder = append(r.DimOrder, int(d))
		}
		r.Dynamism, r.Storage = v.Dynamism.String(), m.Values[v.Value].Tensor.Storage.String()
	case tensor.KindInt:
		r.Value = v.Scalar.Int
	case tensor.KindDouble:
		r.Value = v.Scalar.Double
	case tensor.KindBool:
		r.Value = v.Scalar.Bool
	case tensor.KindString:
		r.Value = v.Scalar.Str
	}
	return r
}

// orderName names a dim order.
func orderName(order []uint8) string {
	text := fmt.Sprint(order)
	for _, known := range []struct {
		order []uint8
		name  string
	}{
		{[]uint8{0, 1, 2, 3}, "contiguous (NCHW)"}, {[]uint8{0, 2, 3, 1}, "channels last (NHWC)"},
		{[]uint8{0, 1, 2, 3, 4}, "contiguous (NCDHW)"}, {[]uint8{0, 2, 3, 4, 1}, "channels last (NDHWC)"},
	} {
		if text == fmt.Sprint(known.order) {
			return known.name
		}
	}
	if text == fmt.Sprint(tensor.ContiguousOrder(len(order))) {
		return "contiguous"
	}
	return "dim order " + strings.ReplaceAll(strings.Trim(text, "[]"), " ", ",")
}

// ShapeText formats a value's type and sizes.
func (v ValueReport) ShapeText() string {
	if v.Kind != "tensor" {
		if v.Value != nil {
			return fmt.Sprintf("%s, %v in the file", v.Kind, v.Value)
		}
		return v.Kind
	}
	text := v.DType + " " + tensor.FormatSizes(v.Shape)
	if v.Dynamism != tensor.Static.String() {
		text += " at most"
	}
	return text
}
