package graph

import (
	"slices"

	"github.com/etrun-go/etrun/delegate"
)

// The exporter knows two orders of memory: contiguous, and channels last of images. An argument in another one, such as an
// example input that was a transposed view, is declared in that order by the program, while the payload reads or writes it as
// contiguous. The repair transposes between both in the payload, whose argument gets the sizes in memory order. If all
// dimensions that move have the same size, sizes do not show whether a payload has the fault. A copy beside the transpose, which
// costs nothing, then shows that it is repaired.

// repairOrders transposes the arguments of other orders.
func (g *Graph) repairOrders() {
	if !g.MayRepair || len(g.specs) != len(g.Args) {
		return
	}
	for k, v := range g.Args {
		x := &g.Values[v]
		a := g.specs[k]
		if a == nil || x.Input && x.Output {
			continue
		}
		if hasOtherOrder(a) && x.Shape == ShapeOf(a.Sizes...) && !g.isLaidOut(v, a) {
			g.transposeArgument(v, a, contiguousOrder[:len(a.Sizes)])
			g.note(ArgumentLocation(g, k), "of dim order %v, which the payload takes for contiguous: transposed", a.DimOrder)
		} else if order := orderOfOnes(a, x.Shape); order != nil {
			g.transposeArgument(v, a, order)
			g.note(ArgumentLocation(g, k), "of dim order %v, which the payload takes for %v: transposed", a.DimOrder, order)
		}
	}
}

// The orders that the exporter knows.
var (
	contiguousOrder   = []uint8{0, 1, 2, 3, 4, 5, 6, 7}
	channelsLastOrder = []uint8{0, 2, 3, 1}
)

// orderOfOnes returns the order that a payload takes an argument for, if it differs from the argument's only in the places of dimensions
// of size 1, so that the same bytes have other sizes: ExecuTorch's runtime does not run that. Otherwise it returns nil.
func orderOfOnes(a *delegate.ArgSpec, s Shape) []uint8 {
	rank := len(a.Sizes)
	if rank > len(Shape{}.Dim) || len(a.DimOrder) != rank || specShape(a) == s {
		return nil
	}
	one := func(d uint8) bool { return a.Sizes[d] == 1 }
	same := slices.DeleteFunc(slices.Clone(a.DimOrder), one)
	for _, order := range [2][]uint8{contiguousOrder[:rank], channelsLastOrder} {
		is := len(order) == rank && specShape(&delegate.ArgSpec{Sizes: a.Sizes, DimOrder: order}) == s
		if is && slices.Equal(slices.DeleteFunc(slices.Clone(order), one), same) {
			return order
		}
	}
	return nil
}

// hasOtherOrder reports whether the order of an argument is neither contiguous nor channels last, apart from dimensions of size 1.
func hasOtherOrder(a *delegate.ArgSpec) bool {
	rank := len(a.Sizes)
	if rank > len(Shape{}.Dim) || len(a.DimOrder) != rank {
		return false
	}
	one := func(d uint8) bool { return a.Sizes[d] == 1 }
	order := slices.DeleteFunc(slices.Clone(a.DimOrder), one)
	last := slices.DeleteFunc(slices.Clone(channelsLastOrder), func(d uint8) bool { return rank != 4 || one(d) })
	return !slices.IsSorted(order) && !slices.Equal(order, last)
}

// isLaidOut reports whether a payload was repaired although sizes do not show it: the argument is only copied from or to a
// transpose.
func (g *Graph) isLaidOut(v int, a *delegate.ArgSpec) bool {
	if specShape(a) != g.Values[v].Shape {
		return false
	}
	list, next := g.readersOf(v), g.readersOf
	if g.Values[v].Output {
		list, next = g.writerOf(v), g.writerOf
		return len(list) == 1 && list[0].Type.Tag == TagCopy && isTransposed(next(list[0].In[0]))
	}
	return len(list) == 1 && list[0].Type.Tag == TagCopy && isTransposed(next(list[0].Out[0]))
}

func isTransposed(list []*Node) bool {
	return len(list) == 1 && list[0].Type.Tag == TagStaticTranspose
}

// readersOf returns the nodes that read a value.
func (g *Graph) readersOf(v int) (list []*Node) {
	for i := range g.Nodes {
		if slices.Contains(g.Nodes[i].In, v) {
			list = append(list, &g.Nodes[i])
		}
	}
	return list
}

// writerOf returns the node that computes a value, if there is one.
func (g *Graph) writerOf(v int) (list []*Node) {
	if n := g.producer(v); n != nil {
		list = append(list, n)
	}
	return list
}

// transposeArgument puts a transpose between an argument and the nodes that read and write it in another order.
func (g *Graph) transposeArgument(v int, a *delegate.ArgSpec, order []uint8) {
	own := g.addLike(v, g.Values[v].Shape)
	for i := range g.Nodes {
		g.Nodes[i].replaceOperand(v, own)
		if k := slices.Index(g.Nodes[i].Out, v); k >= 0 {
			g.Nodes[i].Out = slices.Clone(g.Nodes[i].Out)
			g.Nodes[i].Out[k] = own
		}
	}
	memory := specShape(a)
	beside := v
	if memory == g.Values[v].Shape {
		beside = g.addLike(v, memory)
	}
	g.Values[v].Shape = memory
	move := func(tag uint8, from, to int, params any) Node {
		return Node{Type: NodeTypes[tag], In: []int{from}, Out: []int{to}, Min: -Inf, Max: Inf, Params: params, Index: len(g.Nodes)}
	}
	if g.Values[v].Output {
		g.Nodes = append(g.Nodes, move(TagStaticTranspose, own, beside, &TransposeParams{placesOf(a.DimOrder, order)}))
		if beside != v {
			g.Nodes = append(g.Nodes, move(TagCopy, beside, v, nil))
		}
		return
	}
	nodes := []Node{move(TagStaticTranspose, beside, own, &TransposeParams{placesOf(order, a.DimOrder)})}
	if beside != v {
		nodes = append([]Node{move(TagCopy, v, beside, nil)}, nodes...)
	}
	g.Nodes = append(nodes, g.Nodes...)
}

// placesOf returns the permutation from one order of memory to another.
func placesOf(to, from []uint8) (perm []int) {
	for _, d := range to {
		perm = append(perm, slices.Index(from, d))
	}
	return perm
}

// addLike adds a value of a shape with the type of another one, which nodes compute.
func (g *Graph) addLike(v int, s Shape) int {
	x := g.Values[v]
	x.Shape, x.Arg, x.Input, x.Output, x.Data = s, None, false, false, nil
	g.Values = append(g.Values, x)
	return len(g.Values) - 1
}
