package graph

import "slices"

// Copies and reshapes change no byte: what they read and what they write can often be the same value.

// FoldMoves removes nodes that only copy, from a repaired graph whose values have the shapes s at the declared sizes:
//
//   - A copy into an internal value is dropped, and so is a reshape to the same static sizes.
//   - A transpose of static sizes that moves only dimensions of size 1 becomes a reshape.
//   - A reshape of another one reads what that one reads.
func (g *Graph) FoldMoves(s []Shape) {
	if !slices.ContainsFunc(g.Nodes, isMove) {
		return
	}
	f := moveFolder{Graph: g, shapes: s, original: make(map[int]int), source: make(map[int]int)}
	kept := g.Nodes[:0]
	for i := range g.Nodes {
		if n := g.Nodes[i]; !f.drops(&n) {
			kept = append(kept, n)
		}
	}
	clear(g.Nodes[len(kept):])
	if g.Nodes = kept; f.passed {
		g.Prune()
	}
}

// isMove reports whether FoldMoves may change a node.
func isMove(n Node) bool {
	return n.Type.Tag == TagCopy || n.Type.Tag == TagStaticReshape || n.Type.Tag == TagStaticTranspose
}

// moveFolder visits the nodes of a graph in order.
type moveFolder struct {
	*Graph
	shapes   []Shape
	original map[int]int // by value of a dropped node: the one that it would be a copy of
	source   map[int]int // by result of a reshape: what it reads
	passed   bool        // a reshape reads another value than before
}

// drops reads the originals of copies, and makes a node a reshape if it is one. It reports whether nothing needs the node.
func (f *moveFolder) drops(n *Node) bool {
	for _, v := range n.In {
		if from, ok := f.original[v]; ok {
			n.replaceOperand(v, from)
		}
	}
	if !isMove(*n) || f.Values[n.In[0]].IsConst() {
		return false
	}
	in, out := n.In[0], n.Out[0]
	if p, ok := n.Params.(*TransposeParams); ok && f.Static && KeepsMemory(p.Perm, f.shapes[in]) {
		n.Type, n.Params = NodeTypes[TagStaticReshape], &ReshapeParams{Sizes: f.shapes[out].Dims()}
	}
	reshape := n.Type.Tag == TagStaticReshape
	if n.Type.Tag == TagCopy || reshape && f.Static && f.shapes[in] == f.shapes[out] {
		if f.Values[out].Arg == None {
			f.original[out] = in
			return true
		}
	}
	if reshape {
		f.pass(n)
	}
	return false
}

// pass makes a reshape read what the reshape before it reads.
func (f *moveFolder) pass(n *Node) {
	if from, ok := f.source[n.In[0]]; ok {
		n.replaceOperand(n.In[0], from)
		f.passed = true
	}
	f.source[n.Out[0]] = n.In[0]
}

// replaceOperand makes a node read another value. Other graphs may have the same list of operands.
func (n *Node) replaceOperand(v, by int) {
	n.In = slices.Clone(n.In)
	for i := range n.In {
		if n.In[i] == v {
			n.In[i] = by
		}
	}
}

// KeepsMemory reports whether a permutation of the dimensions of a shape moves only those of size 1.
func KeepsMemory(perm []int, s Shape) bool {
	return slices.IsSorted(slices.DeleteFunc(slices.Clone(perm), func(p int) bool { return s.Dim[p] == 1 }))
}

// ViewArguments drops copies and reshapes between arguments and internal values, in a graph of static sizes: nodes use the bytes
// of the argument as those of the internal value. The argument's shape in s becomes that of the value.
func (g *Graph) ViewArguments(s []Shape) {
	if !g.Static || !slices.ContainsFunc(g.Nodes, isCopy) {
		return
	}
	w := argumentViews{Graph: g, shapes: s, readers: make([][]*Node, len(g.Values))}
	for i := range g.Nodes {
		for _, v := range g.Nodes[i].In {
			if v != None {
				w.readers[v] = append(w.readers[v], &g.Nodes[i])
			}
		}
	}
	for _, v := range g.Args[:g.Inputs] {
		w.input(v)
	}
	g.Args = slices.Clone(g.Args) // snapshots share them
	for i := range g.Nodes {
		w.output(&g.Nodes[i])
	}
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n Node) bool { return len(n.Out) == 0 })
}

func isCopy(n Node) bool { return n.Type.Tag == TagCopy || n.Type.Tag == TagStaticReshape }

// argumentViews makes internal values arguments. A node that is not needed any more has no outputs.
type argumentViews struct {
	*Graph
	shapes  []Shape
	readers [][]*Node // by value
}

// input makes an input the internal value that it is copied to, if all its readers only copy it.
func (w *argumentViews) input(v int) {
	list := w.readers[v]
	first := slices.IndexFunc(list, func(n *Node) bool { return w.Values[n.Out[0]].Arg == None })
	if first < 0 || slices.ContainsFunc(list, func(n *Node) bool { return !isCopy(*n) }) {
		return
	}
	x, s := &w.Values[v], w.shapes[list[first].Out[0]]
	x.Viewed, x.Shape, w.shapes[v] = w.shapes[v], s, s
	for _, n := range list {
		if out := n.Out[0]; w.Values[out].Arg == None && w.shapes[out] == s {
			w.replace(out, v)
			n.Out = nil
		} else if n.Type.Tag == TagCopy {
			n.Type, n.Params = NodeTypes[TagStaticReshape], &ReshapeParams{Sizes: w.shapes[out].Dims()}
		}
	}
}

// replace makes the readers of a value read another one.
func (w *argumentViews) replace(v, by int) {
	for _, n := range w.readers[v] {
		n.replaceOperand(v, by)
	}
	w.readers[by], w.readers[v] = append(w.readers[by], w.readers[v]...), nil
}

// output makes the internal value that a node copies to an output of the graph that output.
func (w *argumentViews) output(n *Node) {
	if len(n.Out) == 0 || !isCopy(*n) {
		return
	}
	v, out := n.In[0], n.Out[0]
	x, y := &w.Values[v], &w.Values[out]
	if x.Arg != None || x.IsConst() || !y.Output || len(w.readers[out]) > 0 {
		return
	}
	x.Arg, x.Output, x.Viewed = y.Arg, true, w.shapes[out]
	y.Arg, y.Output = None, false
	w.Args[x.Arg] = v
	n.Out = nil
}

// ArgumentShape returns the sizes, in memory order, of the tensor of an argument whose value has the shape s.
func (v *Value) ArgumentShape(s Shape) Shape {
	if v.Viewed.Rank > 0 {
		return v.Viewed
	}
	return s
}
