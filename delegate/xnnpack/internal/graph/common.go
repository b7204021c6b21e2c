package graph

import (
	"slices"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// Runtimes of ExecuTorch 1.0 to 1.5 share a language of payloads. It has the node types up to the last tag of the first
// of them, without ArgMaxPooling, whose outputs have 64 bits. Constants that the library does not pack are inputs: these
// runtimes free the bytes of the payload after they have built the graph.

// tagUnassigned is a number between tags that no node type has.
const tagUnassigned = 36

// commonTag reports whether all these runtimes know a node type.
func commonTag(tag uint8) bool {
	return tag >= TagAdd && tag <= TagExp && tag != TagArgMaxPooling2d && tag != tagUnassigned
}

// Common converts a repaired graph to the common language; inputs k with varies[k] have sizes that vary. It returns
// the constants that become inputs behind those of the graph. An error names what the language does not have.
func (g *Graph) Common(varies []bool) ([]Value, error) {
	if err := g.checkCommon(varies); err != nil {
		return nil, err
	}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Type.Tag == TagCopy {
			sizes := slices.Clone(g.Values[n.In[0]].Shape.Dims())
			n.Type, n.Params = NodeTypes[TagStaticReshape], &ReshapeParams{Sizes: sizes}
		}
	}
	g.narrowFilters()
	constants := g.constantsToInputs()
	g.dropUnused()
	return constants, nil
}

// fixedNodes have sizes among their parameters, so that they do not fit operands whose sizes vary.
var fixedNodes = []uint8{TagStaticReshape, TagStaticSlice, TagResizeBilinear2D, TagCopy}

func (g *Graph) checkCommon(varies []bool) error {
	changes := make([]bool, len(g.Values)) // values whose sizes vary
	for k, v := range g.Args[:g.Inputs] {
		changes[v] = k < len(varies) && varies[k]
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Type.Tag != TagCopy && !commonTag(n.Type.Tag) {
			return n.unsupported("the runtimes of ExecuTorch 1.0 do not have this node")
		}
		if slices.ContainsFunc(n.In, func(v int) bool { return v != None && changes[v] }) {
			if slices.Contains(fixedNodes, n.Type.Tag) {
				return n.unsupported("the node has fixed sizes, and those of its operand vary")
			}
			for _, v := range n.Out {
				changes[v] = true
			}
		}
	}
	used := UsedValues(g)
	for v := range g.Values {
		x := &g.Values[v]
		if used[v] && x.Datatype == BF16 {
			return Unsupported("value "+itoa(x.ID), "the runtimes of ExecuTorch 1.0 have no %v", x.Datatype)
		}
	}
	return nil
}

// packedOperand reports whether operand k of a node is one that the library packs, so that its bytes are not read later.
func (n *Node) packedOperand(k int) bool { return n.Type.Weighted() && k > 0 }

// constantsToInputs makes constants that nodes read as they are inputs of the graph, and returns them.
func (g *Graph) constantsToInputs() (list []Value) {
	at := make(map[int]int) // by constant: the input
	var added []int
	for i := range g.Nodes {
		n := &g.Nodes[i]
		for k, v := range n.In {
			if v == None || !g.Values[v].IsConst() || n.packedOperand(k) {
				continue
			}
			if _, ok := at[v]; !ok {
				x := g.Values[v]
				list = append(list, x)
				x.ID, x.Data, x.Found, x.Input = uint32(len(g.Values)), nil, nil, true
				at[v] = len(g.Values)
				g.Values = append(g.Values, x)
				added = append(added, at[v])
			}
			n.In = slices.Clone(n.In)
			n.In[k] = at[v]
		}
	}
	g.Args = slices.Insert(slices.Clone(g.Args), g.Inputs, added...)
	g.Inputs += len(added)
	for k, v := range g.Args {
		g.Values[v].Arg = k
	}
	return list
}

// dropUnused removes the values that nothing refers to.
func (g *Graph) dropUnused() {
	used, to := UsedValues(g), make([]int, len(g.Values))
	var kept []Value
	for v := range g.Values {
		if to[v] = len(kept); used[v] {
			x := g.Values[v]
			x.ID = uint32(len(kept))
			kept = append(kept, x)
		}
	}
	renumber := func(list []int) []int {
		list = slices.Clone(list)
		for i, v := range list {
			if v != None {
				list[i] = to[v]
			}
		}
		return list
	}
	g.Values, g.Args = kept, renumber(g.Args)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		n.In, n.Out = renumber(n.In), renumber(n.Out)
	}
}

// Tensor returns the type of the tensor that has the elements of a value.
func (v *Value) Tensor() tensor.DType { return v.Datatype.Info().Tensor }
