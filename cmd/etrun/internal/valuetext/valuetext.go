// Package valuetext (no compatibility promise) formats the values of programs for pages and graphs. Names and strings are
// those of an untrusted file: all texts are short.
package valuetext

import (
	"fmt"
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

// Of formats value v of a loaded method. An optional value that is absent has a negative index.
func Of(m *ir.Method, v int) string { return nested(m, v, 0) }

func nested(m *ir.Method, v, depth int) string {
	if v < 0 {
		return "none"
	}
	value := &m.Values[v]
	switch value.Kind {
	case tensor.KindTensor:
		return strings.TrimSpace(Type(value.Tensor.DType, value.Tensor.Sizes) + " " + Cut(value.Tensor.Name))
	case tensor.KindIntList, tensor.KindTensorList, tensor.KindOptionalTensorList:
		if depth > 1 {
			return "[…]"
		}
		var items []string
		for i, item := range value.Items() {
			if i == maxItems {
				items = append(items, "…")
				break
			}
			items = append(items, nested(m, item, depth+1))
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	if value.Changes {
		return value.Kind.String() + ", computed"
	}
	return scalar(value.Scalar())
}

// InFile formats value v of a method that does not load, without the names that it has only then.
func InFile(m *pte.Method, v int) string {
	value := &m.Values[v]
	if value.Kind == tensor.KindTensor {
		return Type(value.Tensor.DType, value.Tensor.Sizes)
	}
	return scalar(value.Scalar())
}

// scalar formats a value that names no other value.
func scalar(v tensor.Value) string {
	switch v.Kind {
	case tensor.None:
		return "none"
	case tensor.KindInt:
		return fmt.Sprint(v.Int)
	case tensor.KindDouble:
		return fmt.Sprint(v.Double)
	case tensor.KindBool:
		return fmt.Sprint(v.Bool)
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
