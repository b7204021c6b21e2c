package kerneltest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/compare"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// maxShown is the largest number of elements that a tensor's text includes.
const maxShown = 32

// describe formats a call for [ParseCall].
func describe(sig *kernels.Signature, args []any) string {
	texts := make([]string, len(args))
	for i, a := range args {
		texts[i] = sig.Args[i].Name + "=" + argText(a)
	}
	return sig.Name + "(" + strings.Join(texts, ", ") + ")"
}

func argText(a any) string {
	switch a := a.(type) {
	case nil:
		return "None"
	case string:
		return strconv.Quote(a)
	case float64:
		return floatText(a)
	case tensor.DType:
		return fmt.Sprint(int(a))
	case *tensor.Tensor:
		return tensorText(a)
	case []*tensor.Tensor:
		return listText(a, tensorText)
	case []float64:
		return listText(a, floatText)
	}
	return fmt.Sprint(a)
}

// floatText formats a float so that it is not parsed as an integer.
func floatText(f float64) string {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if strings.ContainsAny(s, ".eIN") {
		return s
	}
	return s + ".0"
}

func listText[T any](list []T, text func(T) string) string {
	items := make([]string, len(list))
	for i, v := range list {
		items[i] = text(v)
	}
	return "[" + strings.Join(items, " ") + "]"
}

// tensorText formats a tensor's type and sizes, dim order and capacity if they are not the default,
// and the elements of a small one.
func tensorText(t *tensor.Tensor) string {
	if t == nil {
		return "None"
	}
	s := fmt.Sprintf("%v%v", t.DType, t.Sizes)
	if !slices.Equal(t.DimOrder, tensor.ContiguousOrder(t.Rank())) {
		s += fmt.Sprintf("order%v", t.DimOrder)
	}
	if t.Dynamism != tensor.Static {
		s += fmt.Sprintf("max%d", t.Capacity())
	}
	if n := t.Numel(); n > 0 && n <= maxShown && len(t.Data) == t.NBytes() && !t.DType.IsComplex() {
		size := t.DType.Size()
		items := make([]string, n)
		for i := range items {
			items[i] = compare.Format(t.DType, t.Data[i*size:(i+1)*size])
		}
		s += "{" + strings.Join(items, " ") + "}"
	}
	return s
}
