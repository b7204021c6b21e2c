package graph

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Runtimes of ExecuTorch 1.0 to 1.5 share a language of payloads. It has the node types up to the last tag of the first
// of them, without ArgMaxPooling, whose outputs have 64 bits. Constants that the library does not pack are inputs: these
// runtimes free the bytes of the payload after they have built the graph. Later releases have more node types.

// LastRelease is the minor version of the last of these releases.
const LastRelease = 5

// ReleaseName returns the name of a release by its minor version.
func ReleaseName(minor int) string { return "1." + strconv.Itoa(minor) }

// tagUnassigned is a number between tags that no node type has.
const tagUnassigned = 36

// sinceRelease has the node types that the first of these releases does not execute, with the first that does. Releases before
// 1.2 do not convert outputs to 64 bits.
var sinceRelease = map[uint8]int{TagSin: 1, TagCopy: 1, TagCos: 1, TagArgMaxPooling2d: 2}

// isCommon reports whether the runtimes from a release on execute a node type.
func isCommon(tag uint8, release int) bool {
	return tag >= TagAdd && tag <= TagCos && tag != tagUnassigned && sinceRelease[tag] <= release
}

// Release returns the minor version of the first release whose runtimes execute all nodes of a graph that may be in a payload.
func (g *Graph) Release() (minor int) {
	for i := range g.Nodes {
		minor = max(minor, sinceRelease[g.Nodes[i].Type.Tag])
	}
	return minor
}

// Common converts a repaired graph to what runtimes from a release on execute, by its minor version. It returns the constants that become
// inputs behind those of the graph. An error names what the runtimes do not have.
func (g *Graph) Common(release int) ([]Value, error) {
	if !isCommon(TagCopy, release) {
		g.copiesToReshapes()
	}
	if err := g.checkCommon(release); err != nil {
		return nil, err
	}
	g.keepDims()
	g.narrowFilters()
	constants := g.constantsToInputs()
	g.dropUnused()
	return constants, nil
}

// CheckCommon returns an error if runtimes from a release on do not execute a graph.
func (g *Graph) CheckCommon(release int) error { return InPayload(g.checkCommon(release)) }

// copiesToReshapes makes copies reshapes to the same sizes.
func (g *Graph) copiesToReshapes() {
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Type.Tag == TagCopy {
			sizes := slices.Clone(g.Values[n.In[0]].Shape.Dims())
			n.Type, n.Params = NodeTypes[TagStaticReshape], &ReshapeParams{Sizes: sizes}
		}
	}
}

// keepDims marks global pools. Without the flag they would drop the dimensions of size 1, in all of these runtimes.
func (g *Graph) keepDims() {
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Type.Tag == TagGlobalAvgPooling2d {
			n.Flags |= xnn.FlagKeepDims
		}
	}
}

// fixedNodes have sizes among their parameters, so that they do not fit operands whose sizes vary.
var fixedNodes = []uint8{TagStaticReshape, TagStaticSlice, TagResizeBilinear2D}

func (g *Graph) checkCommon(release int) error {
	changes := make([]bool, len(g.Values)) // values whose sizes vary
	for k, how := range g.Varies {
		changes[g.Args[k]] = how != nil
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if !isCommon(n.Type.Tag, release) {
			return n.unsupported("the runtimes of ExecuTorch %s do not have this node", ReleaseName(release))
		}
		if slices.ContainsFunc(n.In, func(v int) bool { return v != None && changes[v] }) {
			if slices.Contains(fixedNodes, n.Type.Tag) {
				return n.unsupported("the node has fixed sizes, and those of its operand vary")
			}
			for _, v := range n.Out {
				changes[v] = true
			}
			if n.Exact && g.mayRepeat(i) {
				return n.unsupported("the runtimes repeat an operand of size 1, and the operator does not: the sizes vary")
			}
		}
	}
	used := UsedValues(g)
	for v := range g.Values {
		x := &g.Values[v]
		if used[v] && x.Datatype == BF16 {
			return Unsupported("value "+itoa(x.ID), "the runtimes of ExecuTorch %s have no %v", ReleaseName(release), x.Datatype)
		}
	}
	return nil
}

// maxTried bounds the sizes that are tried, of which each doubles the work.
const maxTried = 12

// mayRepeat reports whether an operand of node i is repeated, see Node.Exact, at some sizes of the inputs that it depends on. Those that
// vary are tried as 1 and as declared: only operands of size 1 are repeated.
func (g *Graph) mayRepeat(i int) bool {
	before, needed := g.upTo(i)
	declared, groups := g.sizesThatVary(needed)
	if len(groups) > maxTried {
		return true
	}
	s, n := make([]Shape, len(g.Values)), &g.Nodes[i]
	for set := range 1 << len(groups) {
		copy(s, declared)
		for k, dims := range groups {
			for _, x := range dims {
				if set>>k&1 != 0 {
					s[x[0]].Dim[x[1]] = 1
				}
			}
		}
		if before.Infer(s) == nil && n.Type.Shape(g, n, s) == nil && n.repeats(s) {
			return true
		}
	}
	return false
}

// sizesThatVary returns the declared shapes of the inputs, and of those that are needed the dimensions that vary, as values and dimensions:
// the ones of a group in the same way.
func (g *Graph) sizesThatVary(needed []bool) (declared []Shape, groups [][][2]int) {
	declared = make([]Shape, len(g.Values))
	known := make(map[int]int) // the group, plus one
	for k, v := range g.Args[:g.Inputs] {
		declared[v] = g.Values[v].Shape
		if k >= len(g.Varies) || !needed[v] {
			continue
		}
		for d, how := range g.Varies[k] {
			switch at := known[how]; {
			case how == 0 || declared[v].Dim[d] <= 1:
			case at > 0:
				groups[at-1] = append(groups[at-1], [2]int{v, d})
			default:
				groups = append(groups, [][2]int{{v, d}})
				if how > 0 {
					known[how] = len(groups)
				}
			}
		}
	}
	return declared, groups
}

// upTo returns the nodes that node i depends on, and the values that these and it read.
func (g *Graph) upTo(i int) (before Graph, needed []bool) {
	before, needed = *g, make([]bool, len(g.Values))
	before.Nodes = nil
	for k := i; k >= 0; k-- {
		n := &g.Nodes[k]
		if k < i && !slices.ContainsFunc(n.Out, func(v int) bool { return needed[v] }) {
			continue
		}
		for _, v := range n.In {
			if v != None {
				needed[v] = true
			}
		}
		if k < i {
			before.Nodes = append(before.Nodes, *n)
		}
	}
	slices.Reverse(before.Nodes)
	return before, needed
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

// narrowFilters makes the constants of fully connected nodes of halves halves, as exporters do, if they have the numbers: the graph
// has them as floats. The filters of convolutions remain floats, as in payloads of exporters: the XNNPACK of runtimes before 1.5
// has no convolution of halves with a filter of halves.
func (g *Graph) narrowFilters() {
	halves := make(map[int]int) // by constant, None if it has other numbers
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Type.Tag != TagFullyConnected || g.Values[n.In[0]].Datatype != FP16 || g.Values[n.Out[0]].Datatype != FP16 {
			continue
		}
		in := []int{n.In[0], g.half(halves, n.In[1]), None}
		if n.In[2] != None {
			if in[2] = g.half(halves, n.In[2]); in[2] == None {
				continue
			}
		}
		if in[1] != None {
			n.In = in
		}
	}
}

// half returns a constant of floats as halves, None if it is not one, or has numbers that halves do not have.
func (g *Graph) half(known map[int]int, v int) int {
	if to, ok := known[v]; ok {
		return to
	}
	known[v] = None
	x := g.Values[v]
	if !x.IsConst() || x.Datatype != FP32 {
		return None
	}
	n := x.Shape.Numel()
	if len(x.Data) < 4*n {
		return None
	}
	halves, back := make([]uint16, n), make([]float32, n)
	EncodeFP16(halves, tensor.View[float32](x.Data)[:n])
	DecodeFloats(back, FP16, tensor.BytesOf(halves))
	if !bytes.Equal(tensor.BytesOf(back), x.Data[:4*n]) {
		return None
	}
	x.Datatype, x.Data, x.Found = FP16, tensor.BytesOf(halves), nil
	x.ID = uint32(len(g.Values))
	known[v] = len(g.Values)
	g.Values = append(g.Values, x)
	return known[v]
}
