package xnnpack

import "slices"

// fuseConversions lets functions of one operand that stand between conversions, from bytes and
// back to bytes of the same type, take and make the bytes: the Go engine then needs a table
// only. The library's own functions of bytes are others, so its graphs stay as they are.
func (g *graph) fuseConversions(shapes []shape) {
	f := newFuser(g, shapes)
	for i := range g.Nodes {
		if n := &g.Nodes[i]; len(n.Out) > 0 && n.Type.ofOneOperand() {
			f.conversions(n)
		}
	}
	g.Nodes = slices.DeleteFunc(g.Nodes, func(n node) bool { return len(n.Out) == 0 })
	for i := range g.Nodes {
		g.Nodes[i].at = i
	}
}

// ofOneOperand reports functions of the elements of one operand.
func (t *nodeType) ofOneOperand() bool {
	return t.tag != tagConvert && slices.ContainsFunc(unaryNodes, func(u nodeType) bool { return u.tag == t.tag })
}

// conversions merges a function with the conversions around it, at the place of the latter.
func (f *fuser) conversions(n *node) {
	x, y := n.In[0], n.Out[0]
	if !f.between(x) || !f.between(y) || f.producer[x] == nil || f.g.Values[x].Datatype != fp32 {
		return
	}
	before, after := f.producer[x], f.reader[y]
	if before.Type.tag != tagConvert || after.Type.tag != tagConvert {
		return
	}
	from, to := before.In[0], after.Out[0]
	if a, b := &f.g.Values[from], &f.g.Values[to]; !a.quantized() || a.Datatype != b.Datatype {
		return
	}
	merged := *n
	merged.In, merged.Out = []int{from}, []int{to}
	*after = merged
	f.reader[from], f.producer[to] = after, after
	before.Out, n.Out = nil, nil
}
