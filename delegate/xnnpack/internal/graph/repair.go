package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// Repair fixes known faults of exporters, so that both engines get a valid graph. It returns the
// shapes at the declared sizes.
func (g *Graph) Repair() ([]Shape, error) {
	g.Prune()
	if err := g.repairLayout(); err != nil {
		return nil, InPayload(err)
	}
	if err := g.transposeCalls(); err != nil {
		return nil, InPayload(err)
	}
	g.splitDynamic()
	g.widenFilters()
	g.roundBounds()
	shapes, err := g.Declared()
	if err == nil {
		err = g.checkRepaired(shapes)
	}
	for i := range g.Nodes {
		g.Nodes[i].At = i
	}
	return shapes, InPayload(err)
}

// maxRepairs is the largest number of repairs that are listed.
const maxRepairs = 64

// note adds a repair to the list.
func (g *Graph) note(place, format string, args ...any) {
	if len(g.Repaired) < maxRepairs {
		g.Repaired = append(g.Repaired, place+": "+fmt.Sprintf(format, args...))
	}
}

// checkRepaired checks that the values of a repaired graph have the sizes that the payload declares.
// Otherwise the payload has another fault. Exporters declare the sizes of dynamically quantized
// values before their layout pass, so those are not checked.
func (g *Graph) checkRepaired(s []Shape) error {
	if len(g.Repaired) == 0 {
		return nil
	}
	for i := range g.Nodes {
		for _, v := range g.Nodes[i].Out {
			if x := &g.Values[v]; x.Datatype != QDInt8 && s[v] != x.Shape {
				return g.Nodes[i].unsupported("output of sizes %v, the payload declares %v; repaired so far: %s", s[v], x.Shape, strings.Join(g.Repaired, "; "))
			}
		}
	}
	return nil
}

// Prune removes nodes whose outputs are not used.
func (g *Graph) Prune() {
	needed := make([]bool, len(g.Values))
	for _, v := range g.Args {
		needed[v] = g.Values[v].Output
	}
	keep := make([]bool, len(g.Nodes))
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := &g.Nodes[i]
		keep[i] = slices.ContainsFunc(n.Out, func(v int) bool { return needed[v] })
		for _, v := range n.In {
			if v != None && keep[i] {
				needed[v] = true
			}
		}
	}
	i := -1
	g.Nodes = slices.DeleteFunc(g.Nodes, func(Node) bool { i++; return !keep[i] })
}

// reading is how the library reads the dynamically quantized input of a convolution.
type reading uint8

const (
	asProduct reading = 1 << iota // it makes a product of matrices of the convolution, with a scale for each pixel
	asPixels
	asWindows
)

func (n *Node) reading() reading {
	switch w := n.Window(); {
	case !w.AreInputPixels() || n.Type.Tag != TagConv2d:
		return asWindows
	case w.Groups > 1:
		return asPixels
	}
	return asProduct
}

// splitDynamic splits each dynamically quantized value that the library reads in several ways: it changes how many dimensions share
// a scale in the value, for all readers.
func (g *Graph) splitDynamic() {
	readings := make([]reading, len(g.Values))
	isRead := func(n *Node) bool { return n.Type.Convolution && g.Values[n.In[0]].Datatype == QDInt8 }
	for i := range g.Nodes {
		if n := &g.Nodes[i]; isRead(n) {
			readings[n.In[0]] |= n.reading()
		}
	}
	if !slices.ContainsFunc(readings, func(r reading) bool { return r&(r-1) != 0 }) {
		return
	}
	type copied struct {
		value int
		reading
	}
	copies := make(map[copied]int)
	var nodes []Node
	for _, n := range g.Nodes {
		if isRead(&n) {
			if own, ok := copies[copied{n.In[0], n.reading()}]; ok {
				n.In = append([]int{own}, n.In[1:]...)
			}
		}
		nodes = append(nodes, n)
		v := n.Out[0]
		if v >= len(readings) || g.Values[v].Datatype != QDInt8 || readings[v]&(readings[v]-1) == 0 {
			continue
		}
		g.note(n.Location(), "%s, which convolutions read in several ways: one for each", g.Describe(v))
		for rest := readings[v] & (readings[v] - 1); rest != 0; rest &= rest - 1 {
			own := len(g.Values)
			copies[copied{v, rest & -rest}] = own
			g.Values = append(g.Values, g.Values[v])
			n.In, n.Out = slices.Clone(n.In), []int{own}
			nodes = append(nodes, n)
		}
	}
	g.Nodes = nodes
}

// widenFilters converts 16-bit float constants to float32, which is exact, where the other operands
// of a node allow it: the library supports more nodes that way.
func (g *Graph) widenFilters() {
	wide := make(map[int]int) // constant to its copy
	widen := func(v int) int {
		if v == None || !g.Values[v].IsConst() || !g.Values[v].Datatype.IsFloat() || g.Values[v].Datatype == FP32 {
			return v
		}
		if w, ok := wide[v]; ok {
			return w
		}
		x := g.Values[v]
		data := tensor.AlignedBytes(4 * x.Shape.Numel())
		DecodeFloats(tensor.View[float32](data), x.Datatype, x.Data)
		x.Datatype, x.Data = FP32, data
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

// roundBounds rounds the bounds of quantized outputs to numbers that elements represent, as the
// library does, so that both engines use the same bounds.
func (g *Graph) roundBounds() {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		x := &g.Values[n.Out[0]]
		d, q := x.Datatype.Info(), &x.Quant
		if !n.Type.Bounded || d.Quant != PerTensor {
			continue
		}
		for _, bound := range [2]*float32{&n.Min, &n.Max} {
			if *bound == Inf || *bound == -Inf {
				continue
			}
			element := Quantize(*bound/q.Scale+float32(q.ZeroPoint), 0, d.MinZero, d.MaxZero)
			*bound = float32(element-q.ZeroPoint) * q.Scale
		}
	}
}
