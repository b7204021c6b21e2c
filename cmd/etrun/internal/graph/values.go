package graph

import (
	"github.com/etrun-go/etrun/cmd/etrun/internal/valuetext"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/plan"
)

// valueType formats the type of a value.
func (b *builder) valueType(v int) string {
	value := &b.m.Values[v]
	if value.Kind != tensor.KindTensor {
		return value.Kind.String()
	}
	return valuetext.Type(value.Tensor.DType, value.Tensor.Sizes)
}

// live returns the bytes of the memory plan that are alive at each instruction: the most of its moments. p may be nil.
func live(p *plan.Memory) map[ir.Origin]int64 {
	if p == nil {
		return nil
	}
	moments := p.Moments
	change := make([]int64, moments[len(moments)-1]+3)
	for i := range p.Items {
		if it := &p.Items[i]; it.Bytes > 0 {
			change[it.First+1] += it.Bytes
			change[it.Last+2] -= it.Bytes
		}
	}
	list := make(map[ir.Origin]int64, len(p.Method.Steps))
	alive := change[0]
	for i := range p.Method.Steps {
		for at := moments[i]; at < moments[i+1]; at++ {
			alive += change[at+1]
			origin := p.Method.Steps[i].Origin
			list[origin] = max(list[origin], alive)
		}
	}
	return list
}
