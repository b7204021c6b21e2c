package lower

import (
	"slices"

	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
)

// permuteOp is the operator that two permutations become.
const permuteOp = "aten::permute_copy.out"

// permutation is a class of operators that permute dimensions.
type permutation struct {
	class opclass.Class
	// order returns, for each of rank dimensions of the result, that of the operand; negative ones
	// count from the end.
	order func(p *pass, s *ir.Step, rank int) []int
}

var permutations = []permutation{
	{opclass.Permute, func(p *pass, s *ir.Step, _ int) []int {
		var order []int
		for _, item := range p.m.Values[s.Args[1]].Items() {
			order = append(order, int(p.m.Values[item].Int))
		}
		return order
	}},
	{opclass.Transpose, func(p *pass, s *ir.Step, rank int) []int {
		a, b := int(p.m.Values[s.Args[1]].Int), int(p.m.Values[s.Args[2]].Int)
		return exchanged(rank, a, b)
	}},
	{opclass.T, func(_ *pass, _ *ir.Step, rank int) []int {
		if rank > 2 { // the operator refuses it
			return nil
		}
		return exchanged(rank, 0, rank-1)
	}},
}

func permuteClasses() (list []opclass.Class) {
	for i := range permutations {
		list = append(list, permutations[i].class)
	}
	return list
}

// exchanged returns the order of dimensions after two of them are exchanged, nil if there are no
// such dimensions.
func exchanged(rank, a, b int) []int {
	if min(a, b) < -rank || max(a, b) >= rank {
		return nil
	}
	order := make([]int, rank)
	for k := range order {
		order[k] = k
	}
	a, b = (a+rank)%rank, (b+rank)%rank
	order[a], order[b] = b, a
	return order
}

// permuted returns the order of its operand's dimensions that step i produces, for tensors in
// default dimension order; nil for other steps.
func (p *pass) permuted(i int) []int {
	s := &p.m.Steps[i]
	for n := range permutations {
		q := &permutations[n]
		if !p.isClass(i, q.class) {
			continue
		}
		x, y := p.m.Values[s.Args[0]].Tensor, p.m.Values[s.Args[firstOut(s)]].Tensor
		order := q.order(p, s, len(x.Sizes))
		if len(order) != len(x.Sizes) || !slices.IsSorted(x.DimOrder) || !slices.IsSorted(y.DimOrder) {
			return nil
		}
		for k := range order {
			if order[k] < 0 {
				order[k] += len(order)
			}
		}
		if sorted := slices.Sorted(slices.Values(order)); !slices.Equal(sorted, exchanged(len(order), 0, 0)) {
			return nil
		}
		return order
	}
	return nil
}

// joinPermutations replaces two permutations by one if that one is a matrix transposition: moving
// elements once is then faster than twice. Otherwise it may not be.
func joinPermutations(p *pass, i int) bool {
	s := &p.m.Steps[i]
	second := p.permuted(i)
	if len(second) < 2 || p.m.Values[s.Args[0]].Tensor.Const {
		return false
	}
	j, ok := p.producer(i, s.Args[0])
	if !ok {
		return false
	}
	first := p.permuted(j)
	x := p.m.Steps[j].Args[0]
	if len(first) != len(second) || p.m.Values[x].Tensor.Const || !p.stays(p.definition(j, x), i) {
		return false
	}
	order := make([]int, len(second))
	for k, d := range second {
		order[k] = first[d]
	}
	out := s.Args[len(s.Args)-1]
	if !isTransposition(p.m.Values[x].Tensor.Sizes, order) || !p.call(i, permuteOp, x, p.ints(order), out, out) {
		return false
	}
	p.drop(j)
	p.record(0, i)
	return true
}

// isTransposition reports whether an order exchanges two runs of dimensions, apart from those of
// size 1.
func isTransposition(sizes, order []int) bool {
	order = slices.DeleteFunc(slices.Clone(order), func(d int) bool { return sizes[d] == 1 })
	places := slices.Sorted(slices.Values(order))
	breaks := 0
	for k := 1; k < len(order); k++ {
		if slices.Index(places, order[k]) != slices.Index(places, order[k-1])+1 {
			breaks++
		}
	}
	return breaks == 1
}

// ints adds a list of integers and returns its value.
func (p *pass) ints(list []int) int {
	items := make([]int, len(list))
	for i, n := range list {
		items[i] = p.change().AddValue(ir.Value{Kind: tensor.KindInt, Int: int64(n)})
	}
	return p.change().AddValue(ir.List(tensor.KindIntList, items))
}
