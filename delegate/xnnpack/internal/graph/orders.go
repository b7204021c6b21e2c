package graph

import (
	"slices"

	"github.com/etrun-go/etrun/delegate"
)

// Memory orders of images: [N, C, H, W] from [N, H, W, C] and back.
var (
	toChannelsFirst = []int{0, 3, 1, 2}
	ToChannelsLast  = []int{0, 2, 3, 1}
)

// imageOrder is the memory order of a value with four dimensions.
type imageOrder uint8

const (
	orderUnknown imageOrder = iota // not determined
	orderFirst                     // [N, C, H, W]
	orderLast                      // [N, H, W, C]
	orderBoth                      // conflicting
)

// nodeOrders are the orders that exporters use for operands and outputs of nodes that depend on the
// order. Nodes that are not listed compute in the order of their operands.
var nodeOrders = map[uint8]imageOrder{
	TagConv2d: orderLast, TagDepthwiseConv2d: orderLast, TagConvTranspose2d: orderLast,
	TagAvgPooling2d: orderLast, TagMaxPooling2d: orderLast, TagArgMaxPooling2d: orderLast, TagGlobalAvgPooling2d: orderLast,
	TagResizeBilinear2D: orderLast, TagPReLU: orderLast,
	TagFullyConnected: orderFirst, TagBatchMatrixMultiply: orderFirst, TagStaticReshape: orderFirst,
}

// imageOrders are the orders that the exporter assumed for values. Values that are connected by
// nodes without an order of their own form a class, which has one order. Transposes connect
// nothing: they may change the order or be part of the model.
type imageOrders struct {
	g          *Graph
	parent     []int
	found      []imageOrder // by root
	transposed []bool       // by root: a member is transposed to channels last order
	back       []bool       // by root: a member is the output of a transpose to channels first order
	copies     map[int]int
}

// connected returns the classes of values that have one order, which is not known yet.
func (g *Graph) connected(copies map[int]int) *imageOrders {
	n := len(g.Values)
	o := &imageOrders{g: g, parent: make([]int, n), found: make([]imageOrder, n), transposed: make([]bool, n), back: make([]bool, n), copies: copies}
	for v := range o.parent {
		o.parent[v] = v
	}
	for i := range g.Nodes {
		o.connect(&g.Nodes[i])
	}
	return o
}

// findOrders determines the orders. The keys of copies are outputs of copies, which are read in
// either order, so they belong to no class.
func (g *Graph) findOrders(copies map[int]int) *imageOrders {
	o := g.connected(copies)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if own, ok := nodeOrders[n.Type.Tag]; ok {
			o.set(n.In[0], own)
			o.set(n.Out[0], own)
		} else if n.IsTranspose(ToChannelsLast) {
			o.transposed[o.find(n.In[0])] = true
		} else if n.IsTranspose(toChannelsFirst) {
			o.back[o.find(n.Out[0])] = true
		}
	}
	for i, v := range g.Args {
		if v != None && i < len(g.specs) {
			o.set(v, specOrder(g.specs[i]))
		}
	}
	return o
}

func (o *imageOrders) find(v int) int {
	for o.parent[v] != v {
		o.parent[v] = o.parent[o.parent[v]]
		v = o.parent[v]
	}
	return v
}

// connect puts the images of a node without an order of its own into one class.
func (o *imageOrders) connect(n *Node) {
	if _, own := nodeOrders[n.Type.Tag]; own || n.Type.Tag == TagStaticTranspose || !o.isImage(n.Out[0]) {
		return
	}
	for _, v := range n.In {
		if v != None && o.isImage(v) {
			o.parent[o.find(v)] = o.find(n.Out[0])
		}
	}
}

// isImage reports whether the order of a value matters.
func (o *imageOrders) isImage(v int) bool {
	x := &o.g.Values[v]
	_, copied := o.copies[v]
	if k := x.Arg; k != None && k < len(o.g.specs) && o.g.specs[k] != nil && isConstantVector(o.g.specs[k]) {
		return false
	}
	return x.Shape.Rank == 4 && !x.IsConst() && x.Datatype != QDInt8 && !copied
}

// set adds the order of a value to its class.
func (o *imageOrders) set(v int, own imageOrder) {
	if o.isImage(v) {
		o.found[o.find(v)] |= own
	}
}

// order returns the order of a value's class.
func (o *imageOrders) order(v int) imageOrder { return o.found[o.find(v)] }

// specOrder returns the order of an argument of the program.
func specOrder(a *delegate.ArgSpec) imageOrder {
	switch {
	case a == nil || len(a.Sizes) != 4 || isConstantVector(a):
		return orderUnknown
	case a.DimOrder == nil || slices.Equal(a.DimOrder, []uint8{0, 1, 2, 3}):
		return orderFirst
	case slices.Equal(a.DimOrder, []uint8{0, 2, 3, 1}):
		return orderLast
	}
	return orderUnknown
}

// isConstantVector reports whether an argument is a constant with at most one size that is not 1: it is broadcast in any order.
func isConstantVector(a *delegate.ArgSpec) bool {
	wide := 0
	for _, n := range a.Sizes {
		if n != 1 {
			wide++
		}
	}
	return a.Const != nil && wide <= 1
}

// specShape returns the sizes of an argument in memory order.
func specShape(a *delegate.ArgSpec) Shape {
	if len(a.Sizes) == 0 || len(a.Sizes) > len(Shape{}.Dim) {
		return ShapeOf(1)
	}
	s := ShapeOf(a.Sizes...)
	if len(a.DimOrder) == len(a.Sizes) {
		for i, d := range a.DimOrder {
			s.Dim[i] = a.Sizes[min(int(d), len(a.Sizes)-1)]
		}
	}
	return s
}

// provesOrder reports whether value v certainly has the order of argument a: from its sizes alone,
// or from the nodes that compute and read it.
func (g *Graph) provesOrder(v int, a *delegate.ArgSpec) bool {
	s := g.Values[v].Shape
	if s.Rank != 4 || s.Permuted(ToChannelsLast).squeezed() != s.squeezed() {
		return true
	}
	own := g.findOrders(nil).order(v)
	if n := g.producer(v); own == orderUnknown && n != nil && n.IsTranspose(toChannelsFirst) {
		own = orderFirst
	}
	return own == specOrder(a) && own != orderUnknown
}

// producer returns the node that computes v, nil for none.
func (g *Graph) producer(v int) *Node {
	for i := range g.Nodes {
		if slices.Contains(g.Nodes[i].Out, v) {
			return &g.Nodes[i]
		}
	}
	return nil
}

// IsTranspose reports whether a node transposes by this permutation.
func (n *Node) IsTranspose(perm []int) bool {
	return n.Type.Tag == TagStaticTranspose && slices.Equal(Params[TransposeParams](n).Perm, perm)
}
