package xnnpack

import (
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// An exporter that takes the dequantization behind a payload's last node for part of a
// quantized node, which then stays outside, leaves the output out: the call has an
// argument that no value has, and a value is computed that nothing reads.

// maxLost is how many outputs may be missing: each costs a look at every node for each
// value that nothing reads.
const maxLost = 8

// mendOutputs makes the values that nothing reads the outputs that are missing, if the
// program's types and sizes of the arguments leave one way only.
func (r *reader) mendOutputs() error {
	if len(r.lost) == 0 {
		return nil
	}
	g := r.graph
	leaves := g.leaves()
	if len(r.lost) > maxLost || len(g.specs) != len(g.Args) || len(leaves) != len(r.lost) {
		return lostArgument(r.lost[0], len(g.Args))
	}
	for _, arg := range r.lost {
		fits := func(v int) bool { return g.fitsArgument(v, g.specs[arg]) }
		i := slices.IndexFunc(leaves, fits)
		if i < 0 || slices.ContainsFunc(leaves[i+1:], fits) {
			return lostArgument(arg, len(g.Args))
		}
		g.makeOutput(leaves[i], arg)
		leaves = slices.Delete(leaves, i, i+1)
	}
	return nil
}

// leaves are the values that nodes compute and nothing reads.
func (g *graph) leaves() (list []int) {
	read := make([]bool, len(g.Values))
	for i := range g.Nodes {
		for _, v := range g.Nodes[i].In {
			if v != none {
				read[v] = true
			}
		}
	}
	for i := range g.Nodes {
		for _, v := range g.Nodes[i].Out {
			if !read[v] && !g.Values[v].Output {
				list = append(list, v)
			}
		}
	}
	return list
}

// fitsArgument reports a value that has the sizes of an argument of floats, in the order
// of memory, and numbers that can be dequantized to it.
func (g *graph) fitsArgument(v int, a *delegate.ArgSpec) bool {
	x := &g.Values[v]
	if a == nil || a.DType != tensor.Float32 || x.Datatype != fp32 && x.Datatype != qint8 && x.Datatype != quint8 {
		return false
	}
	return specShape(a) == x.Shape && g.provesOrder(v, a)
}

// makeOutput makes v, or its numbers as float32, argument arg of the call.
func (g *graph) makeOutput(v, arg int) {
	x := g.Values[v]
	at := slices.IndexFunc(g.Nodes, func(n node) bool { return slices.Contains(n.Out, v) })
	how := "returned"
	if x.Datatype != fp32 {
		how = "dequantized and returned"
		g.Values = append(g.Values, value{ID: x.ID, Datatype: fp32, Shape: x.Shape, Arg: none})
		g.Nodes = append(g.Nodes, conversion(&g.Nodes[at], v, len(g.Values)-1))
		v = len(g.Values) - 1
	}
	g.Values[v].Output, g.Values[v].Arg, g.Args[arg] = true, arg, v
	g.note(argumentPlace(g, arg), "missing in the payload: value %d, which nothing reads, %s", x.ID, how)
}
