package graph

import (
	"slices"
)

// Fuse merges nodes, so that both engines run fewer of them. libXNNPACK would merge the same nodes
// itself, but after the checks. Its fusion is therefore disabled, and it runs exactly the graph that
// was checked. shapes are those at the declared sizes; those of arguments may change, see [Graph.ViewArguments].
//
//   - A copy of a value, or into an internal value, is dropped, and so are reshapes that nothing needs.
//   - A zero pad of height and width becomes padding of the convolution that reads it.
//   - A clamp becomes the bounds of the node before it, if that supports bounds.
//
// Two nodes are merged only if the value between them is internal and has one reader, and if the
// native engine, which refuses nodes, accepts the merged node wherever it accepts the original one.
func Fuse(g *Graph, shapes []Shape, refuses func(*Graph, *Node, []Shape) string) {
	g.FoldMoves(shapes)
	if slices.ContainsFunc(g.Nodes, mayMerge) {
		f := newFuser(g, shapes)
		f.refuses = refuses
		f.merge((*fuser).copy, (*fuser).pad, (*fuser).clamp)
	}
	g.ViewArguments(shapes)
	g.removeMerged()
}

// removeMerged removes the nodes that were merged into others, which have no outputs, and numbers the rest.
func (g *Graph) removeMerged() {
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n Node) bool { return len(n.Out) == 0 })
	for i := range g.Nodes {
		g.Nodes[i].At = i
	}
}

// mayMerge reports whether fuse may merge a node into another.
func mayMerge(n Node) bool {
	return n.Type.Tag == TagCopy || n.Type.Tag == TagStaticConstantPad || n.Type.Tag == TagClamp
}

// fuser contains the producer and the readers of each value. A node that has been merged into another
// has no outputs.
type fuser struct {
	g      *Graph
	shapes []Shape
	values []usage
	// refuses returns the reason why the native engine does not run a node, "" if it does.
	refuses func(*Graph, *Node, []Shape) string
}

// usage is what computes and reads a value.
type usage struct {
	producer, reader *Node // reader is the last one
	readers          int   // number of operands that are the value
}

func newFuser(g *Graph, shapes []Shape) *fuser {
	f := &fuser{g: g, shapes: shapes, values: make([]usage, len(g.Values))}
	for i := range g.Nodes {
		node := &g.Nodes[i]
		for _, v := range node.Out {
			f.values[v].producer = node
		}
		for _, v := range node.In {
			if v != None {
				f.values[v].readers++
				f.values[v].reader = node
			}
		}
	}
	return f
}

// merge applies one rule after the other to all nodes.
func (f *fuser) merge(rules ...func(f *fuser, n *Node)) {
	for _, rule := range rules {
		for i := range f.g.Nodes {
			if n := &f.g.Nodes[i]; len(n.Out) > 0 {
				rule(f, n)
			}
		}
	}
}

// between reports whether a value is internal and has one reader.
func (f *fuser) between(v int) bool {
	x := &f.g.Values[v]
	return x.Arg == None && !x.IsConst() && f.values[v].readers == 1
}

// copy removes a copy: the node before it writes the copy's output.
func (f *fuser) copy(n *Node) {
	from, to := n.In[0], n.Out[0]
	if n.Type.Tag != TagCopy || !f.between(from) {
		return
	}
	p := f.values[from].producer
	p.Out[slices.Index(p.Out, from)] = to
	f.values[to].producer = p
	n.Out = nil
}

// pad merges a zero pad of height and width into the padding of the following convolution.
func (f *fuser) pad(n *Node) {
	if n.Type.Tag != TagStaticConstantPad || !f.between(n.Out[0]) || !padsZeros(f.g, n) {
		return
	}
	c := f.values[n.Out[0]].reader
	if c.Type.Tag != TagConv2d && c.Type.Tag != TagDepthwiseConv2d || c.In[0] != n.Out[0] || c.Flags&FlagSamePadding != 0 {
		return
	}
	merged := *c
	w, p := *c.Window(), Params[PadParams](n)
	w.Top, w.Bottom, w.Left, w.Right = w.Top+p.Before[1], w.Bottom+p.After[1], w.Left+p.Before[2], w.Right+p.After[2]
	merged.Params = &w
	merged.In = slices.Clone(c.In)
	merged.In[0] = n.In[0]
	if !f.accepts(&merged, c) {
		return
	}
	*c = merged
	f.values[n.In[0]].reader = c
	n.Out = nil
}

// accepts reports whether the native engine accepts the merged node, or rejects the old one anyway.
func (f *fuser) accepts(merged, old *Node) bool {
	return f.refuses(f.g, merged, f.shapes) == "" || f.refuses(f.g, old, f.shapes) != ""
}

// padsZeros reports whether a node pads height and width of [N, H, W, C] with zeros.
func padsZeros(g *Graph, n *Node) bool {
	p := Params[PadParams](n)
	if len(p.Before) != 4 || p.Before[0]|p.Before[3]|p.After[0]|p.After[3] != 0 {
		return false
	}
	return p.Value == 0 // exact for quantized values too: the zero point represents 0
}

// clamp merges a clamp into the bounds of the node before it.
func (f *fuser) clamp(n *Node) {
	if n.Type.Tag != TagClamp || !f.between(n.In[0]) || WantSame(f.g, n, n.In[0], n.Out[0]) != nil {
		return
	}
	p := f.values[n.In[0]].producer
	if p == nil || !p.Type.Bounded {
		return
	}
	merged := *p
	merged.Min, merged.Max = max(p.Min, n.Min), min(p.Max, n.Max)
	if merged.Min >= merged.Max || !f.accepts(&merged, p) {
		return
	}
	p.Min, p.Max = merged.Min, merged.Max
	p.Out = n.Out
	f.values[n.Out[0]].producer = p
	n.Out = nil
}
