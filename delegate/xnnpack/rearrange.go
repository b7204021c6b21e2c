package xnnpack

import (
	"slices"

	"github.com/etrun-go/etrun/cbindings/xnn"
)

// rearrangeNode is a node type of the Go engine only: transposes and reshapes one after the other, of an input or of the
// concatenation of several, which are one strided copy of each input. Sizes must not change.
var rearrangeNode = nodeType{tag: tagRearrange, name: "Rearrange", check: unchecked, shape: rearrangeShape}

// rearrangeParams are the dimensions of the output as it is copied: some of those of its shape, split or merged.
type rearrangeParams struct {
	in   [maxJoined]shape // of the inputs
	dims [][]dimension    // of each dimension of the output, outermost first
	axis int              // the step of the dimension along which inputs follow each other; 0 for one input
}

// maxJoined is the largest number of inputs of a concatenation.
const maxJoined = 5

// dimension is the n > 1 indices of a dimension, step elements apart in the concatenated inputs.
type dimension struct{ n, step int }

// mayRearrange reports whether the graph has nodes that rearrange or untransposed may merge.
func mayRearrange(g *graph) bool {
	moves, mergeable := 0, false
	for i := range g.Nodes {
		switch n := &g.Nodes[i]; {
		case n.Type.tag == tagStaticTranspose || n.Type.tag == tagStaticReshape:
			moves, mergeable = moves+1, true
		case n.isConcatenate():
			moves++
		}
	}
	return moves > 1 && mergeable
}

// rearrange merges a transpose or a reshape into the node before it, which is another one or a concatenation, if a copy of
// both takes no longer than the two.
func (f *fuser) rearrange(n *node) {
	if !f.g.static || n.Type.tag != tagStaticTranspose && n.Type.tag != tagStaticReshape || !f.between(n.In[0]) {
		return
	}
	p := f.values[n.In[0]].producer
	if p == nil {
		return
	}
	both, ok := f.rearranged(p)
	if !ok || !follow(both, n, f.shapes[n.Out[0]]) || len(both.flat(make([]dimension, 0, manyDims))) > xnn.MaxDims {
		return
	}
	old, apart := *p, f.time(p)+f.time(n)
	*p = node{Type: &rearrangeNode, In: p.In, Out: n.Out, Params: both, index: p.index, DebugHandle: p.DebugHandle, Min: -inf, Max: inf}
	if f.time(p) > apart {
		*p = old
		return
	}
	f.values[n.Out[0]].producer = p
	n.Out = nil
}

// untransposed removes a transpose that undoes an earlier one, where the function of each element between them can be
// computed in either order.
func (f *fuser) untransposed(n *node) {
	if n.Type.tag != tagStaticTranspose || !f.between(n.In[0]) {
		return
	}
	op := f.values[n.In[0]].producer
	if op == nil {
		return
	}
	at := f.elementOperand(op)
	if at == none || !f.between(op.In[at]) {
		return
	}
	first := f.values[op.In[at]].producer
	if first == nil || first.Type.tag != tagStaticTranspose || !undoes(params[transposeParams](n).perm, params[transposeParams](first).perm) {
		return
	}
	op.In, op.Out = slices.Clone(op.In), n.Out // estimates share the slices of the graph
	op.In[at] = first.In[0]
	f.values[n.Out[0]].producer, f.values[first.In[0]].reader = op, op
	first.Out, n.Out = nil, nil
}

// elementOperand returns the index of the operand, of the size of the output, of a function of each element of it; none if
// it depends on the order of the elements.
func (f *fuser) elementOperand(n *node) int {
	switch {
	case n.Type.isIn(unaryNodes) && f.g.Values[n.Out[0]].Datatype != qdint8:
		return 0
	case n.Type.isIn(binaryNodes):
		for i, v := range n.In {
			fixed := f.g.static || f.g.Values[v].isConst()
			if fixed && f.shapes[v].numel() == 1 && f.shapes[v].rank <= f.shapes[n.In[1-i]].rank {
				return 1 - i
			}
		}
	}
	return none
}

// undoes reports whether a permutation is the inverse of another one.
func undoes(a, b []int) bool {
	for i, p := range a {
		if b[p] != i {
			return false
		}
	}
	return true
}

// time estimates a node of the Go engine.
func (f *fuser) time(n *node) float64 {
	e := estimator{graph: f.g, shapes: f.shapes, engine: byGo}
	return nodeTime[byGo] + e.rateTime(n, e.rateOf(n))
}

// rearranged returns a node as a rearrangement.
func (f *fuser) rearranged(p *node) (*rearrangeParams, bool) {
	switch {
	case p.Type == &rearrangeNode:
		r := *params[rearrangeParams](p)
		r.dims = slices.Clone(r.dims)
		return &r, true
	case p.isConcatenate():
		return f.joined(p)
	case p.Type.tag != tagStaticTranspose && p.Type.tag != tagStaticReshape:
		return nil, false
	}
	in := f.shapes[p.In[0]]
	r := &rearrangeParams{in: [maxJoined]shape{in}, dims: denseDims(in)}
	return r, follow(r, p, f.shapes[p.Out[0]])
}

// denseDims are the dimensions of a value in memory, without those of one index.
func denseDims(s shape) [][]dimension {
	dims, all, steps := make([][]dimension, s.rank), make([]dimension, s.rank), strides(s)
	for i, n := range s.dims() {
		if all[i] = (dimension{n, steps[i]}); n > 1 {
			dims[i] = all[i : i+1 : i+1]
		}
	}
	return dims
}

// joined returns a concatenation as a rearrangement. Its axis is split into parts of a size that divides those of the
// inputs.
func (f *fuser) joined(p *node) (*rearrangeParams, bool) {
	out := f.shapes[p.Out[0]]
	axis, _ := params[concatenateParams](p).of(out.rank)
	r, part := &rearrangeParams{dims: denseDims(out)}, 0
	for i, v := range p.In {
		r.in[i] = f.shapes[v]
		part = gcd(f.shapes[v].dim[axis], part)
	}
	step := strides(out)[axis]
	r.axis = part * step
	r.dims[axis] = []dimension{{out.dim[axis] / part, r.axis}}
	if part > 1 {
		r.dims[axis] = append(r.dims[axis], dimension{part, step})
	}
	return r, true
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// follow appends a transpose or a reshape whose output has this shape. It returns false if a dimension would be split into
// parts of different sizes, or the one along which inputs follow each other.
func follow(r *rearrangeParams, n *node, out shape) bool {
	if n.Type.tag == tagStaticTranspose {
		var dims [xnn.MaxDims][]dimension
		copy(dims[:], r.dims)
		for i, p := range params[transposeParams](n).perm {
			r.dims[i] = dims[p]
		}
		return true
	}
	flat := r.flat(make([]dimension, 0, manyDims))
	r.dims = make([][]dimension, out.rank)
	all := make([]dimension, 0, len(flat)+out.rank)
	for i, size := range out.dims() {
		from := len(all)
		for size > 1 {
			d := flat[0]
			flat = flat[1:]
			if size%d.n != 0 {
				if d.n%size != 0 || d.step == r.axis {
					return false
				}
				inner := d.n / size
				flat = slices.Insert(flat, 0, dimension{inner, d.step})
				d = dimension{size, d.step * inner}
			}
			all, size = append(all, d), size/d.n
		}
		r.dims[i] = all[from:len(all):len(all)]
	}
	return true
}

// flat appends the dimensions that are copied to list, outermost in the output first.
func (r *rearrangeParams) flat(list []dimension) []dimension {
	for _, dim := range r.dims {
		list = append(list, dim...)
	}
	return list
}

// manyDims is as many dimensions as most rearrangements have.
const manyDims = xnn.MaxDims + 2

// source returns the sizes in the order of the inputs' memory, and for each dimension of flat its index among them.
func source(flat []dimension) (sizes shape, perm [xnn.MaxDims]int) {
	sizes.rank = len(flat)
	for i, d := range flat {
		for _, other := range flat {
			if other.step > d.step {
				perm[i]++
			}
		}
		sizes.dim[perm[i]] = d.n
	}
	return sizes, perm
}

func rearrangeShape(_ *graph, n *node, s []shape) error {
	r := params[rearrangeParams](n)
	for i, v := range n.In {
		if s[v] != r.in[i] {
			return n.fault("sizes %v, declared as %v", s[v], r.in[i])
		}
	}
	out := shape{rank: len(r.dims)}
	for i, dim := range r.dims {
		out.dim[i] = 1
		for _, d := range dim {
			out.dim[i] *= d.n
		}
	}
	s[n.Out[0]] = out
	return nil
}

func planRearrange(e *reference, n *node, c *copies) {
	r := params[rearrangeParams](n)
	flat := r.flat(make([]dimension, 0, manyDims))
	whole, order := source(flat)
	perm := order[:len(flat)]
	to, at := strides(whole.permuted(perm)), 0
	for i, v := range n.In {
		in := whole
		c.box = box{to: to}
		if axis := slices.IndexFunc(flat, func(d dimension) bool { return d.step == r.axis }); axis >= 0 {
			count := r.in[i].numel() * flat[axis].n / whole.numel()
			in.dim[perm[axis]], c.box.into = count, at*to[axis]
			at += count
		}
		from := strides(in)
		for j, p := range perm {
			c.box.from[j] = from[p]
		}
		c.box.sizes = in.permuted(perm)
		c.copy(e, n, v)
	}
}
