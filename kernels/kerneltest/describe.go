package kerneltest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// describe writes a call as text: its name and each argument by name.
func describe(sig *kernels.Signature, args []any) string {
	var b strings.Builder
	b.WriteString(sig.Name + "(")
	for i, a := range args {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(sig.Args[i].Name + "=" + argText(a))
	}
	b.WriteString(")")
	return b.String()
}

func argText(a any) string {
	switch a := a.(type) {
	case nil:
		return "None"
	case string:
		return fmt.Sprintf("%q", a)
	case *tensor.Tensor:
		return tensorText(a)
	case []*tensor.Tensor:
		items := make([]string, len(a))
		for i, t := range a {
			items[i] = tensorText(t)
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	return fmt.Sprint(a)
}

// tensorText shows a tensor's form, and a small one's elements.
func tensorText(t *tensor.Tensor) string {
	if t == nil {
		return "None"
	}
	s := t.String()
	if !slices.Equal(t.DimOrder, tensor.ContiguousOrder(t.Rank())) {
		s += fmt.Sprintf(" order %v", t.DimOrder)
	}
	if t.Dynamism != tensor.Static {
		s += fmt.Sprintf(" up to %d", t.Capacity())
	}
	if n := t.Numel(); n > 0 && n <= 4 && len(t.Data) == t.NBytes() {
		size := t.DType.Size()
		for i := range n {
			s += " " + show(t.DType, t.Data[i*size:(i+1)*size])
		}
	}
	return s
}
