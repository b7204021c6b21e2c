package graph

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// noRows is the dimension of rows of a value that is the same for all rows.
const noRows = -1

// rowRule returns the dimension of the rows of a node's outputs. rows has those of all values so far; at least one operand of
// the node has some. The size of a dimension of rows is a multiple of their number. ok is false if an element of the outputs may
// depend on several rows.
type rowRule func(g *Graph, n *Node, s []Shape, rows []int) (dim int, ok bool)

// rowRules are the rules by tag. Nodes of other types are not computed row by row, nor those that rearrange elements for one size.
var rowRules = [Tags]rowRule{
	TagFullyConnected:      fullyConnectedRows,
	TagBatchMatrixMultiply: matrixRows,
	TagStaticReshape:       reshapeRows,
	TagStaticSlice:         sliceRows,
	TagStaticConstantPad:   padRows,
	TagStaticTranspose:     transposeRows,
	TagSoftmax:             innerRows,
	TagConvert:             innerRows,
	TagCopy:                sameRows,
	TagSiLU:                sameRows,
	TagTable:               sameRows,
	TagConcatenate2:        concatenateRows,
	TagConcatenate3:        concatenateRows,
	TagConcatenate4:        concatenateRows,
	TagConcatenate5:        concatenateRows,
	TagConv2d:              imageRows,
	TagDepthwiseConv2d:     imageRows,
	TagConvTranspose2d:     imageRows,
	TagAvgPooling2d:        imageRows,
	TagMaxPooling2d:        imageRows,
	TagArgMaxPooling2d:     imageRows,
	TagGlobalAvgPooling2d:  imageRows,
	TagResizeBilinear2D:    imageRows,
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

// Rows returns the dimension of the rows of each output of a call with n rows from those of the inputs, noRows for what is the same
// for all rows. The error names the first node of which an element may depend on several rows.
func (g *Graph) Rows(n int, bound []*Argument, args []*tensor.Tensor, dims []int) (outputs []int, err error) {
	if len(bound) != len(args) || len(dims) != g.Inputs || n < 1 {
		return nil, fmt.Errorf("%d arguments, want %d", len(args), len(bound))
	}
	s, rows := make([]Shape, len(g.Values)), make([]int, len(g.Values))
	for v := range rows {
		rows[v] = noRows
	}
	for i, v := range g.Args[:g.Inputs] {
		if s[v], err = bound[i].physical(g, i, args[i]); err != nil {
			return nil, err
		}
		if rows[v], err = bound[i].rowsIn(g, i, args[i], s[v], dims[i]); err != nil {
			return nil, err
		}
	}
	if err := g.Infer(s); err != nil {
		return nil, err
	}
	for i := range g.Nodes {
		if !g.Nodes[i].addRows(g, n, s, rows) {
			return nil, fmt.Errorf("%s", g.Nodes[i].Location())
		}
	}
	for i := g.Inputs; i < len(g.Args); i++ {
		v := g.Args[i]
		d, err := bound[i].rowsOut(g, i, args[i], s[v], rows[v])
		if err != nil {
			return nil, err
		}
		outputs = append(outputs, d)
	}
	return outputs, nil
}

// rowsIn returns the dimension of a value that is dimension d of a tensor.
func (a *Argument) rowsIn(g *Graph, i int, t *tensor.Tensor, s Shape, d int) (int, error) {
	if d == noRows {
		return noRows, nil
	}
	at := slices.Index(a.dimOrder(t), uint8(d))
	if a.Value.Viewed.Rank > 0 || at < 0 || t.Rank() != s.Rank || s.Dim[at] != t.Sizes[d] {
		return 0, badArgument(g, i, "fixed sizes")
	}
	return at, nil
}

// rowsOut is the inverse of rowsIn.
func (a *Argument) rowsOut(g *Graph, i int, t *tensor.Tensor, s Shape, at int) (int, error) {
	if at == noRows {
		return noRows, nil
	}
	if a.Value.Viewed.Rank > 0 || t.Rank() != s.Rank || t.Rank() > xnn.MaxDims || t.Sizes[a.dimOrder(t)[at]] != s.Dim[at] {
		return 0, badArgument(g, i, "fixed sizes")
	}
	return int(a.dimOrder(t)[at]), nil
}

// addRows sets the dimension of the rows of a node's outputs.
func (n *Node) addRows(g *Graph, count int, s []Shape, rows []int) bool {
	some := false
	for _, v := range n.In {
		some = some || v != None && rows[v] != noRows
	}
	if !some {
		return true
	}
	rule := rowRules[n.Type.Tag]
	if rule == nil {
		return false
	}
	d, ok := rule(g, n, s, rows)
	for _, v := range n.Out {
		if y := s[v]; !ok || d < 0 || d >= y.Rank || y.Dim[d]%count != 0 {
			return false
		}
		rows[v] = d
	}
	return true
}

// onlyFirst returns the dimension of the rows of the first operand, if the others have none.
func onlyFirst(n *Node, rows []int) (dim int, ok bool) {
	for _, v := range n.In[1:] {
		if v != None && rows[v] != noRows {
			return 0, false
		}
	}
	d := rows[n.In[0]]
	return d, d != noRows
}

func sameRows(_ *Graph, n *Node, _ []Shape, rows []int) (int, bool) { return onlyFirst(n, rows) }

// imageRows is the rule of nodes over [N, H, W, C]: the rows are images.
func imageRows(_ *Graph, n *Node, _ []Shape, rows []int) (int, bool) {
	d, ok := onlyFirst(n, rows)
	return d, ok && d == 0
}

// innerRows is the rule of nodes that combine the elements of inner dimensions: of the last one, or of those that share a
// scale.
func innerRows(g *Graph, n *Node, s []Shape, rows []int) (int, bool) {
	inner := max(g.Values[n.Out[0]].Quant.Nonbatch, 0)
	if n.Type.Tag == TagSoftmax {
		inner = 1
	}
	d, ok := onlyFirst(n, rows)
	return d, ok && d < s[n.In[0]].Rank-inner
}

// broadcastRows requires that operands with rows have as many in the same dimension from the end, and that others have one
// element there.
func broadcastRows(_ *Graph, n *Node, s []Shape, rows []int) (int, bool) {
	behind := noRows
	for _, v := range n.In {
		if rows[v] == noRows {
			continue
		}
		if k := s[v].Rank - 1 - rows[v]; behind == noRows {
			behind = k
		} else if k != behind {
			return 0, false
		}
	}
	d := s[n.Out[0]].Rank - 1 - behind
	for _, v := range n.In {
		if k := s[v].FromEnd(behind); rows[v] == noRows && k != 1 || rows[v] != noRows && k != s[n.Out[0]].FromEnd(behind) {
			return 0, false
		}
	}
	return d, true
}

// fullyConnectedRows requires that the rows are not the input channels, and that filter and bias are the same for all.
func fullyConnectedRows(_ *Graph, n *Node, s []Shape, rows []int) (int, bool) {
	d, ok := onlyFirst(n, rows)
	if x := s[n.In[0]]; !ok || d >= x.Rank-1 {
		return 0, false
	} else if n.Flags&FlagReshape2D != 0 {
		return 0, x.Leading(d) == 1
	}
	return d, true
}

// matrixRows requires that either operand has rows in its outer dimension, or both among the lists of matrices.
func matrixRows(g *Graph, n *Node, s []Shape, rows []int) (int, bool) {
	a, b := n.In[0], n.In[1]
	rank := s[n.Out[0]].Rank
	switch {
	case rows[b] == noRows && rows[a] == s[a].Rank-2:
		return rank - 2, true
	case rows[a] == noRows && rows[b] == s[b].Rank-1:
		return rank - 1, true
	}
	d, ok := broadcastRows(g, n, s, rows)
	return d, ok && d < rank-2
}

// reshapeRows requires that the inferred size is that of the rows.
func reshapeRows(_ *Graph, n *Node, s []Shape, rows []int) (int, bool) {
	d := slices.Index(Params[ReshapeParams](n).Sizes, 0)
	return d, d >= 0 && s[n.Out[0]].Leading(d) == s[n.In[0]].Leading(rows[n.In[0]])
}

// padRows requires that no rows are added.
func padRows(_ *Graph, n *Node, _ []Shape, rows []int) (int, bool) {
	p, d := Params[PadParams](n), rows[n.In[0]]
	return d, d < len(p.Before) && p.Before[d] == 0 && p.After[d] == 0
}

// sliceRows requires that all rows are kept.
func sliceRows(_ *Graph, n *Node, _ []Shape, rows []int) (int, bool) {
	p, d := Params[SliceParams](n), rows[n.In[0]]
	return d, d < len(p.Offsets) && p.Offsets[d] == 0 && p.Sizes[d] == 0
}

func transposeRows(_ *Graph, n *Node, _ []Shape, rows []int) (int, bool) {
	d := slices.Index(Params[TransposeParams](n).Perm, rows[n.In[0]])
	return d, d >= 0
}

// concatenateRows requires that all operands have as many rows in one dimension, and that they are joined along another.
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
