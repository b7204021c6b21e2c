package graph

import (
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// An exporter may treat the dequantization after a payload's last node as part of a quantized node
// that stays outside of the payload. Then the payload has no such output: the call has an argument
// without a value, and a computed value is not read.

// maxLost is the largest number of missing outputs that are repaired. Each one is compared with
// every unread value, which visits every node.
const maxLost = 8

// repairOutputs makes unread values the missing outputs if the program's types and sizes of the
// arguments determine which value is which output.
func (r *Reader) repairOutputs() error {
	if len(r.missing) == 0 {
		return nil
	}
	g := r.graph
	leaves := g.leaves()
	if len(r.missing) > maxLost || len(g.specs) != len(g.Args) || len(leaves) != len(r.missing) {
		return lostArgument(r.missing[0], len(g.Args))
	}
	for _, arg := range r.missing {
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

// leaves returns the values that nodes compute and that are not read.
func (g *Graph) leaves() (list []int) {
	read := make([]bool, len(g.Values))
	for i := range g.Nodes {
		for _, v := range g.Nodes[i].In {
			if v != None {
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

// fitsArgument reports whether a value has the sizes of a float32 argument, in memory order, and
// can be dequantized to it.
func (g *Graph) fitsArgument(v int, a *delegate.ArgSpec) bool {
	x := &g.Values[v]
	if a == nil || a.DType != tensor.Float32 || x.Datatype != FP32 && x.Datatype != QInt8 && x.Datatype != QUInt8 {
		return false
	}
	return specShape(a) == x.Shape && g.provesOrder(v, a)
}

// makeOutput makes v, dequantized to float32 if necessary, argument arg of the call.
func (g *Graph) makeOutput(v, arg int) {
	x := g.Values[v]
	at := slices.IndexFunc(g.Nodes, func(n Node) bool { return slices.Contains(n.Out, v) })
	how := "returned"
	if x.Datatype != FP32 {
		how = "dequantized and returned"
		g.Values = append(g.Values, Value{ID: x.ID, Datatype: FP32, Shape: x.Shape, Arg: None})
		g.Nodes = append(g.Nodes, conversion(&g.Nodes[at], v, len(g.Values)-1))
		v = len(g.Values) - 1
	}
	g.Values[v].Output, g.Values[v].Arg, g.Args[arg] = true, arg, v
	g.note(ArgumentLocation(g, arg), "missing in the payload: value %d, which nothing reads, %s", x.ID, how)
}
