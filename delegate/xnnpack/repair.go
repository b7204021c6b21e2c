package xnnpack

import (
	"errors"
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// Memory orders that exporters mix up: [N, C, H, W] from [N, H, W, C] and back.
var (
	toChannelsFirst = []int{0, 3, 1, 2}
	toChannelsLast  = []int{0, 2, 3, 1}
)

// maxRepairs is how many operands repair turns; each one costs a look at every node.
const maxRepairs = 64

// repair mends what exporters are known to get wrong, so that both engines see a
// sound graph, and returns the shapes at the declared sizes.
func (g *graph) repair() ([]shape, error) {
	g.prune()
	g.splitDynamic()
	g.widenFilters()
	g.roundBounds()
	for turned := 0; ; turned++ {
		shapes, err := g.declared()
		var mixed *layoutError
		if err == nil || !errors.As(err, &mixed) {
			for i := range g.Nodes {
				g.Nodes[i].at = i
			}
			return shapes, inPayload(err)
		}
		if turned == maxRepairs || !mixed.node.Type.relayout(g, mixed.node, shapes) {
			return nil, inPayload(mixed.error)
		}
	}
}

// prune removes nodes whose outputs nothing needs.
func (g *graph) prune() {
	needed := make([]bool, len(g.Values))
	for _, v := range g.Args {
		needed[v] = g.Values[v].Output
	}
	keep := make([]bool, len(g.Nodes))
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := &g.Nodes[i]
		keep[i] = slices.ContainsFunc(n.Out, func(v int) bool { return needed[v] })
		for _, v := range n.In {
			if v != none && keep[i] {
				needed[v] = true
			}
		}
	}
	i := -1
	g.Nodes = slices.DeleteFunc(g.Nodes, func(node) bool { i++; return !keep[i] })
}

// splitDynamic gives convolutions of one element and larger ones a dynamically
// quantized value each: the library lays it out for either, not for both.
func (g *graph) splitDynamic() {
	const small, large = 1, 2
	readers := make([]uint8, len(g.Values))
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Type.convolution && n.window().kernelH*n.window().kernelW == 1 {
			readers[n.In[0]] |= small
		} else if n.Type.convolution {
			readers[n.In[0]] |= large
		}
	}
	if !slices.Contains(readers, small|large) {
		return
	}
	twins := make(map[int]int) // value to its copy for the larger convolutions
	var nodes []node
	for _, n := range g.Nodes {
		if twin, ok := twins[n.In[0]]; ok && n.Type.convolution && n.window().kernelH*n.window().kernelW > 1 {
			n.In = append([]int{twin}, n.In[1:]...)
		}
		nodes = append(nodes, n)
		if v := n.Out[0]; g.Values[v].Datatype == qdint8 && readers[v] == small|large {
			twins[v] = len(g.Values)
			g.Values = append(g.Values, g.Values[v])
			n.In, n.Out = slices.Clone(n.In), []int{twins[v]}
			nodes = append(nodes, n)
		}
	}
	g.Nodes = nodes
}

// widenFilters turns constants of 16-bit floats into float32, exactly, where a node's
// other operands allow for that: the library takes more nodes so.
func (g *graph) widenFilters() {
	wide := make(map[int]int) // constant to its copy
	widen := func(v int) int {
		if v == none || !g.Values[v].isConst() || !g.Values[v].Datatype.isFloat() || g.Values[v].Datatype == fp32 {
			return v
		}
		if w, ok := wide[v]; ok {
			return w
		}
		x := g.Values[v]
		data := tensor.AlignedBytes(4 * x.Shape.numel())
		decodeFloats(tensor.View[float32](data), x.Datatype, x.Data)
		x.Datatype, x.Data = fp32, data
		wide[v] = len(g.Values)
		g.Values = append(g.Values, x)
		return wide[v]
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		in := g.Values[n.In[0]].Datatype
		if n.Type.widens != nil && n.Type.widens(in) {
			n.In = []int{n.In[0], widen(n.In[1]), widen(n.In[2])}
		}
	}
}

// roundBounds makes bounds of quantized outputs numbers that elements stand for, rounded
// as the library rounds them, so that both engines have the same ones.
func (g *graph) roundBounds() {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		x := &g.Values[n.Out[0]]
		d, q := x.Datatype.info(), &x.Quant
		if !n.Type.bounded || d.quant != perTensor {
			continue
		}
		for _, bound := range [2]*float32{&n.Min, &n.Max} {
			if *bound == inf || *bound == -inf {
				continue
			}
			element := quantize(*bound/q.Scale+float32(q.ZeroPoint), 0, d.minZero, d.maxZero)
			*bound = float32(element-q.ZeroPoint) * q.Scale
		}
	}
}

// layoutError is a node whose operands' shapes do not go together, in a way that a
// wrong memory order of one of them explains.
type layoutError struct {
	error
	node *node
}

func (e *layoutError) Unwrap() error { return e.error }

// repairImage turns the input of a convolution, which has its channels where they are
// in [N, C, H, W]. A dynamically quantized one is turned before it is quantized.
func (g *graph) repairImage(n *node, _ []shape) bool {
	if g.Values[n.In[0]].Datatype != qdint8 {
		g.insertTranspose(n, 0, toChannelsLast)
		return true
	}
	for i := range g.Nodes {
		if g.Nodes[i].Out[0] == n.In[0] {
			g.insertTranspose(&g.Nodes[i], 0, toChannelsLast)
			return true
		}
	}
	return false
}

// repairBroadcast turns one of two operands. The declared output says which order is
// meant: of the four ways to turn one operand, exactly one must lead to it.
func (g *graph) repairBroadcast(n *node, s []shape) bool {
	want := g.Values[n.Out[0]].Shape
	type way struct {
		operand int
		perm    []int
	}
	var ways []way
	for operand := range n.In {
		for _, perm := range [][]int{toChannelsFirst, toChannelsLast} {
			in := [2]shape{s[n.In[0]], s[n.In[1]]}
			if in[operand].rank != 4 {
				continue
			}
			in[operand] = in[operand].permuted(perm)
			if out, ok := broadcast(in[0], in[1]); ok && out == want {
				ways = append(ways, way{operand, perm})
			}
		}
	}
	if len(ways) != 1 {
		return false
	}
	g.insertTranspose(n, ways[0].operand, ways[0].perm)
	return true
}

// insertTranspose turns one operand of a node.
func (g *graph) insertTranspose(n *node, operand int, perm []int) {
	at := slices.IndexFunc(g.Nodes, func(m node) bool { return m.Out[0] == n.Out[0] })
	v := n.In[operand]
	turned := g.Values[v]
	turned.Shape, turned.Arg, turned.Input, turned.Output, turned.Data = turned.Shape.permuted(perm), none, false, false, nil
	g.Values = append(g.Values, turned)
	n.In[operand] = len(g.Values) - 1
	transpose := node{Type: nodeTypes[tagStaticTranspose], In: []int{v}, Out: []int{n.In[operand]}, Min: -inf, Max: inf,
		Params: &transposeParams{perm}, index: n.index, DebugHandle: n.DebugHandle}
	g.Nodes = slices.Insert(g.Nodes, at, transpose)
}
