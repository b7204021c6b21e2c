package lower

import (
	"math"
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
)

// maskedRowsOp is the operator of a "safe softmax".
const maskedRowsOp = "etrun::zero_masked_rows.out"

// fuseMaskedRows replaces the steps behind a softmax that make zeros of rows whose scores are all -∞ by one call:
//
//	where(not(any(not(scores == -∞), -1, keepdim)), 0, x)
//
// Where x comes from does not matter: it is the result of an operator, or of a delegate.
func fuseMaskedRows(p *pass, i int) bool {
	s := &p.m.Steps[i]
	x, out := s.Args[2], s.Args[3]
	steps, scores := p.allMasked(i, s.Args[0])
	zeros, ok := p.zeros(i, s.Args[1], out)
	if steps == nil || !ok || !p.alike(x, out) || !p.alike(scores, out) || !p.hasRows(out) {
		return false
	}
	last := steps[len(steps)-1]
	if p.m.Values[x].Tensor.Const || p.m.Values[scores].Tensor.Const || !p.stays(p.definition(last, scores), i) {
		return false
	}
	if !p.call(i, maskedRowsOp, x, scores, out, out) {
		return false
	}
	p.drop(slices.Concat(steps, zeros)...)
	p.record(0, i)
	return true
}

// hasRows reports whether v is a tensor of floats in the usual order, with a last dimension.
func (p *pass) hasRows(v int) bool {
	t := p.m.Values[v].Tensor
	return t.DType.IsFloat() && len(t.Sizes) > 0 && slices.IsSorted(t.DimOrder)
}

// allMasked returns the steps, the last one first, that compute for step i in v whether all scores along the last dimension are -∞;
// nil if v is something else.
func (p *pass) allMasked(i, v int) (steps []int, scores int) {
	for _, class := range []opclass.Class{opclass.LogicalNot, opclass.AnyDim, opclass.LogicalNot, opclass.EqScalar} {
		j, ok := p.producer(i, v)
		if !ok || !p.isClass(j, class) {
			return nil, 0
		}
		i, v, steps = j, p.m.Steps[j].Args[0], append(steps, j)
		if class == opclass.AnyDim && !p.alongLast(j) {
			return nil, 0
		}
	}
	n, ok := p.number(p.m.Steps[i].Args[1])
	if !ok || !math.IsInf(n, -1) {
		return nil, 0
	}
	return steps, v
}

// alongLast reports whether a reduction is along the last dimension, which it keeps.
func (p *pass) alongLast(i int) bool {
	s := &p.m.Steps[i]
	dim, ok := p.number(s.Args[1])
	keep := p.m.Values[s.Args[2]].Scalar()
	rank := len(p.m.Values[s.Args[0]].Tensor.Sizes)
	return ok && (dim == -1 || dim == float64(rank-1)) && kernels.Args{&keep}.Bool(0)
}

// zeros returns the steps that compute v for step i, with the sizes of out and all zero: one, or none of a constant.
func (p *pass) zeros(i, v, out int) (steps []int, ok bool) {
	if !p.alike(v, out) {
		return nil, false
	}
	if t := p.m.Values[v].Tensor; t.Const {
		return nil, !slices.ContainsFunc(p.m.Storages[p.m.Values[v].Storage].Data[:t.NBytes()], func(b byte) bool { return b != 0 })
	}
	j, ok := p.producer(i, v)
	if !ok || !p.isClass(j, opclass.FullLike) || !p.alike(p.m.Steps[j].Args[0], out) {
		return nil, false
	}
	n, ok := p.number(p.m.Steps[j].Args[1])
	return []int{j}, ok && math.Float64bits(n) == 0
}
