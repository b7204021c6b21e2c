package graph

import "slices"

// NoRows is the dimension of rows of a value that is the same for all rows.
const NoRows = -1

// rowRule returns the dimension of the rows of a node's output. rows has those of all values so far; at least one operand of
// the node has some. ok is false if an element of the output may depend on several rows.
type rowRule func(g *Graph, n *Node, s []Shape, rows []int) (dim int, ok bool)

// rowRules are the rules by tag. Nodes of other types are not computed row by row, nor those that rearrange elements for one size.
var rowRules = [256]rowRule{
	TagFullyConnected:  fullyConnectedRows,
	TagStaticReshape:   reshapeRows,
	TagStaticSlice:     sliceRows,
	TagStaticTranspose: transposeRows,
	TagSoftmax:         innerRows,
	TagConvert:         innerRows,
	TagCopy:            sameRows,
	TagSiLU:            sameRows,
	TagConcatenate2:    concatenateRows,
	TagConcatenate3:    concatenateRows,
	TagConcatenate4:    concatenateRows,
	TagConcatenate5:    concatenateRows,
}

func init() {
	for i := range BinaryNodes {
		rowRules[BinaryNodes[i].Tag] = broadcastRows
	}
	for i := range UnaryNodes {
		if t := UnaryNodes[i].Tag; rowRules[t] == nil {
			rowRules[t] = sameRows
		}
	}
}

// Rows returns the dimension of the rows of the outputs from those of the inputs, NoRows for constants; s has the shapes at
// the declared sizes. The dimensions before it have size 1. ok means that every row is computed from the same row of
// the inputs alone, whatever their number.
func (g *Graph) Rows(s []Shape, inputs []int) (outputs []int, ok bool) {
	if len(inputs) != g.Inputs || len(g.Args) < g.Inputs {
		return nil, false
	}
	rows := make([]int, len(g.Values))
	for v := range rows {
		rows[v] = NoRows
	}
	if slices.ContainsFunc(g.Args, func(v int) bool { return g.Values[v].Viewed.Rank > 0 }) {
		return nil, false // their sizes are fixed
	}
	for i, v := range g.Args[:g.Inputs] {
		if d := inputs[i]; d >= s[v].Rank || d >= 0 && s[v].Leading(d) != 1 {
			return nil, false
		}
		rows[v] = inputs[i]
	}
	for i := range g.Nodes {
		if !g.Nodes[i].addRows(g, s, rows) {
			return nil, false
		}
	}
	for _, v := range g.Args[g.Inputs:] {
		if rows[v] == NoRows {
			return nil, false
		}
		outputs = append(outputs, rows[v])
	}
	return outputs, true
}

// addRows sets the dimension of the rows of a node's output.
func (n *Node) addRows(g *Graph, s []Shape, rows []int) bool {
	any := false
	for _, v := range n.In {
		any = any || v != None && rows[v] != NoRows
	}
	if !any {
		return true
	}
	rule := rowRules[n.Type.Tag]
	if rule == nil || len(n.Out) != 1 {
		return false
	}
	d, ok := rule(g, n, s, rows)
	if y := s[n.Out[0]]; !ok || d < 0 || d >= y.Rank || y.Leading(d) != 1 {
		return false
	}
	rows[n.Out[0]] = d
	return true
}

func sameRows(_ *Graph, n *Node, _ []Shape, rows []int) (int, bool) { return rows[n.In[0]], true }

// innerRows is the rule of nodes that combine the elements of inner dimensions: of the last one, or of those that share a
// scale.
func innerRows(g *Graph, n *Node, s []Shape, rows []int) (int, bool) {
	inner := max(g.Values[n.Out[0]].Quant.Nonbatch, 0)
	if n.Type.Tag == TagSoftmax {
		inner = 1
	}
	d := rows[n.In[0]]
	return d, d < s[n.In[0]].Rank-inner
}

// broadcastRows requires that operands with rows have them in the same dimension from the end, and that others have one
// element there.
func broadcastRows(_ *Graph, n *Node, s []Shape, rows []int) (int, bool) {
	behind := NoRows
	for _, v := range n.In {
		if rows[v] == NoRows {
			continue
		}
		if k := s[v].Rank - 1 - rows[v]; behind == NoRows {
			behind = k
		} else if k != behind {
			return 0, false
		}
	}
	for _, v := range n.In {
		if rows[v] == NoRows && s[v].Rank > behind && s[v].Leading(s[v].Rank-behind) != 1 {
			return 0, false
		}
	}
	return s[n.Out[0]].Rank - 1 - behind, true
}

// fullyConnectedRows requires that the rows are not the input channels, and that filter and bias are constants.
func fullyConnectedRows(_ *Graph, n *Node, s []Shape, rows []int) (int, bool) {
	d := rows[n.In[0]]
	for _, v := range n.In[1:] {
		if v != None && rows[v] != NoRows {
			return 0, false
		}
	}
	if n.Flags&FlagReshape2D != 0 {
		return 0, d == s[n.In[0]].Rank-2
	}
	return d, d >= 0 && d < s[n.In[0]].Rank-1
}

// reshapeRows requires that the inferred size is the number of rows.
func reshapeRows(_ *Graph, n *Node, s []Shape, rows []int) (int, bool) {
	want, inner := Params[ReshapeParams](n).Sizes, 1
	for d := len(want) - 1; d >= 0; d-- {
		if want[d] == 0 {
			return d, inner == s[n.In[0]].Trailing(rows[n.In[0]]+1)
		}
		inner *= want[d]
	}
	return 0, false
}

// sliceRows requires that all rows are kept.
func sliceRows(_ *Graph, n *Node, _ []Shape, rows []int) (int, bool) {
	p, d := Params[SliceParams](n), rows[n.In[0]]
	return d, d < len(p.Offsets) && p.Offsets[d] == 0 && p.Sizes[d] == 0
}

// transposeRows requires that the rows stay outermost.
func transposeRows(_ *Graph, n *Node, _ []Shape, rows []int) (int, bool) {
	d := rows[n.In[0]]
	for i, p := range Params[TransposeParams](n).Perm {
		if i <= d && p != i {
			return 0, false
		}
	}
	return d, true
}

// concatenateRows requires that all operands have rows in one dimension, and that they are joined along another.
func concatenateRows(_ *Graph, n *Node, s []Shape, rows []int) (int, bool) {
	d := rows[n.In[0]]
	for _, v := range n.In {
		if rows[v] != d {
			return 0, false
		}
	}
	axis, ok := Params[ConcatenateParams](n).Dim(s[n.In[0]].Rank)
	return d, ok && axis != d
}
