// Package valuetext (no compatibility promise) formats the values of programs for pages and graphs. Names and strings are
// those of an untrusted file: all texts are short.
package valuetext

import (
	"fmt"
	"math"
	"strings"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/pte"
)

const (
	maxText  = 300 // characters
	maxItems = 16
)

// Cut truncates a text of the file.
func Cut(text string) string {
	if r := []rune(text[:min(len(text), 4*maxText)]); len(r) > maxText || len(text) > 4*maxText {
		return string(r[:min(len(r), maxText)]) + "…"
	}
	return text
}

// Type formats the type of a tensor.
func Type(t tensor.DType, sizes []int) string {
	return t.String() + " " + tensor.FormatSizes(sizes)
}

// Of formats value v of a method. An optional value that is absent has a negative index.
func Of(m *ir.Method, v int) string { return Text(jsonOf(m, v)) }

// InFile formats value v of the description of a method.
func InFile(m *pte.Method, v int) string { return Text(JSONInFile(m, v)) }

// jsonOf returns value v as encoding/json writes it: a number, a list, or the text of a type.
func jsonOf(m *ir.Method, v int) any {
	return nested(func(v int) (x value) {
		from := &m.Values[v]
		if t := from.Tensor; from.Kind == tensor.KindTensor {
			x.text = strings.TrimSpace(Type(t.DType, t.Sizes) + " " + Cut(t.Name))
		} else if from.Changes {
			x.text = from.Kind.String() + ", computed"
		}
		x.Value, x.items = from.Scalar(), from.Items()
		return x
	}, v, 0)
}

// JSONInFile is jsonOf for the description of a method.
func JSONInFile(m *pte.Method, v int) any {
	return nested(func(v int) (x value) {
		from := &m.Values[v]
		if t := from.Tensor; from.Kind == tensor.KindTensor {
			x.text = strings.TrimSpace(Type(t.DType, t.Sizes) + " " + Cut(t.Name))
		}
		x.Value, x.items = from.Scalar(), from.Items
		return x
	}, v, 0)
}

// value is a value that refers to others by index.
type value struct {
	tensor.Value
	items []int
	text  string // of a tensor, or of what instructions compute
}

// Text formats what JSONInFile returns, or an attribute of a delegate's operation.
func Text(x any) string {
	switch x := x.(type) {
	case nil:
		return "none"
	case string:
		return Cut(x)
	case []any:
		var items []string
		for _, item := range x {
			items = append(items, Text(item))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case []int:
		return Cut(strings.ReplaceAll(fmt.Sprint(x), " ", ", "))
	}
	return Cut(fmt.Sprint(x))
}

func nested(get func(v int) value, v, depth int) any {
	if v < 0 {
		return nil
	}
	x := get(v)
	switch x.Kind {
	case tensor.None:
		return nil
	case tensor.KindIntList, tensor.KindTensorList, tensor.KindOptionalTensorList:
		if depth > 1 {
			return "[…]"
		}
		items := []any{}
		for i, item := range x.items {
			if i == maxItems {
				items = append(items, "…")
				break
			}
			items = append(items, nested(get, item, depth+1))
		}
		return items
	}
	if x.text != "" {
		return x.text
	}
	return scalar(x.Value)
}

// scalar returns a value that names no other value.
func scalar(v tensor.Value) any {
	switch v.Kind {
	case tensor.KindInt:
		return v.Int
	case tensor.KindDouble:
		if math.IsNaN(v.Double) || math.IsInf(v.Double, 0) {
			return fmt.Sprint(v.Double)
		}
		return v.Double
	case tensor.KindBool:
		return v.Bool
	case tensor.KindString:
		return fmt.Sprintf("%q", Cut(v.Str))
	case tensor.KindBoolList:
		return Cut(fmt.Sprint(v.Bools[:min(len(v.Bools), maxText)]))
	case tensor.KindDoubleList:
		return Cut(fmt.Sprint(v.Doubles[:min(len(v.Doubles), maxText)]))
	}
	return v.Kind.String()
}

// Argument is the name of argument i of a step, empty if the instruction has no names.
func Argument(s *ir.Step, i int) string {
	switch {
	case s.Kind == ir.KernelCall && i < len(s.Sig.Args):
		return s.Sig.Args[i].Name
	case s.Kind == ir.DelegateCall && i < s.Inputs:
		return fmt.Sprintf("input %d", i)
	case s.Kind == ir.DelegateCall:
		return fmt.Sprintf("output %d", i-s.Inputs)
	}
	return ""
}
