package xnnpack

import "slices"

// fuse merges nodes, so that both engines run fewer of them. libXNNPACK would merge the same nodes
// itself, but after the checks. Its fusion is therefore disabled, and it runs exactly the graph that
// was checked. shapes are those at the declared sizes.
//
//   - A copy of a value, or into an internal value, is dropped.
//   - A zero pad of height and width becomes padding of the convolution that reads it.
//   - A clamp becomes the bounds of the node before it, if that supports bounds.
//
// Two nodes are merged only if the value between them is internal and has one reader, and if the
// native engine, which refuses nodes, accepts the merged node wherever it accepts the original one.
func fuse(g *graph, shapes []shape, refuses func(*graph, *node, []shape) string) {
	dropCopies(g)
	if slices.ContainsFunc(g.Nodes, mayMerge) {
		f := newFuser(g, shapes)
		f.refuses = refuses
		f.merge((*fuser).copy, (*fuser).pad, (*fuser).clamp)
		g.Nodes = slices.DeleteFunc(g.Nodes, func(n node) bool { return len(n.Out) == 0 })
	}
	for i := range g.Nodes {
		g.Nodes[i].at = i
	}
}

// mayMerge reports whether fuse may merge a node into another.
func mayMerge(n node) bool {
	return n.Type.tag == tagCopy || n.Type.tag == tagStaticConstantPad || n.Type.tag == tagClamp
}

// dropCopies removes copies into internal values; their readers read the original.
func dropCopies(g *graph) {
	original := make(map[int]int)
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n node) bool {
		for i, v := range n.In {
			if from, ok := original[v]; ok {
				n.In[i] = from
			}
		}
		if n.Type.tag != tagCopy || g.Values[n.Out[0]].Arg != none || g.Values[n.In[0]].isConst() {
			return false
		}
		original[n.Out[0]] = n.In[0]
		return true
	})
}

// fuser contains the producer and the readers of each value. A node that has been merged into another
// has no outputs.
type fuser struct {
	g      *graph
	shapes []shape
	values []usage
	// refuses returns the reason why the native engine does not run a node, "" if it does.
	refuses func(*graph, *node, []shape) string
}

// usage is what computes and reads a value.
type usage struct {
	producer, reader *node // reader is the last one
	readers          int   // number of operands that are the value
}

func newFuser(g *graph, shapes []shape) *fuser {
	f := &fuser{g: g, shapes: shapes, values: make([]usage, len(g.Values))}
	for i := range g.Nodes {
		node := &g.Nodes[i]
		for _, v := range node.Out {
			f.values[v].producer = node
		}
		for _, v := range node.In {
			if v != none {
				f.values[v].readers++
				f.values[v].reader = node
			}
		}
	}
	return f
}

// merge applies one rule after the other to all nodes.
func (f *fuser) merge(rules ...func(f *fuser, n *node)) {
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
	return x.Arg == none && !x.isConst() && f.values[v].readers == 1
}

// copy removes a copy: the node before it writes the copy's output.
func (f *fuser) copy(n *node) {
	from, to := n.In[0], n.Out[0]
	if n.Type.tag != tagCopy || !f.between(from) {
		return
	}
	p := f.values[from].producer
	p.Out[slices.Index(p.Out, from)] = to
	f.values[to].producer = p
	n.Out = nil
}

// pad merges a zero pad of height and width into the padding of the following convolution.
func (f *fuser) pad(n *node) {
	if n.Type.tag != tagStaticConstantPad || !f.between(n.Out[0]) || !padsZeros(f.g, n) {
		return
	}
	c := f.values[n.Out[0]].reader
	if c.Type.tag != tagConv2d && c.Type.tag != tagDepthwiseConv2d || c.In[0] != n.Out[0] || c.Flags&flagSamePadding != 0 {
		return
	}
	merged := *c
	w, p := *c.window(), params[padParams](n)
	w.top, w.bottom, w.left, w.right = w.top+p.before[1], w.bottom+p.after[1], w.left+p.before[2], w.right+p.after[2]
	merged.Params = &w
	merged.In = slices.Clone(c.In)
	merged.In[0] = n.In[0]
	if !f.takes(&merged, c) {
		return
	}
	*c = merged
	f.values[n.In[0]].reader = c
	n.Out = nil
}

// takes reports whether the native engine accepts the merged node, or rejects the old one anyway.
func (f *fuser) takes(merged, old *node) bool {
	return f.refuses(f.g, merged, f.shapes) == "" || f.refuses(f.g, old, f.shapes) != ""
}

// padsZeros reports whether a node pads height and width of [N, H, W, C] with zeros.
func padsZeros(g *graph, n *node) bool {
	p := params[padParams](n)
	if len(p.before) != 4 || p.before[0]|p.before[3]|p.after[0]|p.after[3] != 0 {
		return false
	}
	return p.value == 0 // exact for quantized values too: the zero point represents 0
}

// clamp merges a clamp into the bounds of the node before it.
func (f *fuser) clamp(n *node) {
	if n.Type.tag != tagClamp || !f.between(n.In[0]) || wantSame(f.g, n, n.In[0], n.Out[0]) != nil {
		return
	}
	p := f.values[n.In[0]].producer
	if p == nil || !p.Type.bounded {
		return
	}
	merged := *p
	merged.Min, merged.Max = max(p.Min, n.Min), min(p.Max, n.Max)
	if merged.Min >= merged.Max || !f.takes(&merged, p) {
		return
	}
	p.Min, p.Max = merged.Min, merged.Max
	p.Out = n.Out
	f.values[n.Out[0]].producer = p
	n.Out = nil
}
