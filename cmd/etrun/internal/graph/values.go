package graph

import (
	"fmt"
	"strings"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/plan"
)

// valueType formats the type of a value.
func (b *builder) valueType(v int) string {
	value := &b.m.Values[v]
	if value.Kind != tensor.KindTensor {
		return value.Kind.String()
	}
	return typeText(value.Tensor.DType, value.Tensor.Sizes)
}

// text formats a value of the loaded method.
func (b *builder) text(v, depth int) string {
	if v < 0 {
		return "none"
	}
	value := &b.m.Values[v]
	switch value.Kind {
	case tensor.KindTensor:
		return strings.TrimSpace(b.valueType(v) + " " + cut(value.Tensor.Name))
	case tensor.KindIntList, tensor.KindTensorList, tensor.KindOptionalTensorList:
		if depth > 1 {
			return "[…]"
		}
		var items []string
		for i, item := range value.Items() {
			if i == 16 {
				items = append(items, "…")
				break
			}
			items = append(items, b.text(item, depth+1))
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	if value.Changes {
		return value.Kind.String() + ", computed"
	}
	return scalarText(value.Scalar())
}

// scalarText formats a value that names no other value.
func scalarText(v tensor.Value) string {
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
		return fmt.Sprintf("%q", cut(v.Str))
	case tensor.KindBoolList:
		return cut(fmt.Sprint(v.Bools[:min(len(v.Bools), maxText)]))
	case tensor.KindDoubleList:
		return cut(fmt.Sprint(v.Doubles[:min(len(v.Doubles), maxText)]))
	}
	return v.Kind.String()
}

// live returns the bytes of the memory plan that are alive at each step: the most of its moments.
func live(p *plan.Memory) []int64 {
	moments := p.Moments
	change := make([]int64, moments[len(moments)-1]+3)
	for i := range p.Items {
		if it := &p.Items[i]; it.Bytes > 0 {
			change[it.First+1] += it.Bytes
			change[it.Last+2] -= it.Bytes
		}
	}
	list := make([]int64, len(p.Method.Steps))
	alive := change[0]
	for i := range list {
		for at := moments[i]; at < moments[i+1]; at++ {
			alive += change[at+1]
			list[i] = max(list[i], alive)
		}
	}
	return list
}
