package graph

import (
	"slices"

	"github.com/etrun-go/etrun/cbindings/xnn"
)

// rearrange merges a transpose or a reshape into the node before it, which is another one or a concatenation, if a copy of
// both takes no longer than the two.
func (f *fuser) rearrange(n *Node) {
	if !f.g.Static || n.Type.Tag != TagStaticTranspose && n.Type.Tag != TagStaticReshape || !f.between(n.In[0]) {
		return
	}
	p := f.values[n.In[0]].producer
	if p == nil {
		return
	}
	both, ok := f.rearranged(p)
	if !ok {
		return
	}
	alone, _ := f.rearranged(n)
	apart := moveTime(both) + moveTime(alone)
	if !follow(both, n, f.shapes[n.Out[0]]) || len(both.Flat(make([]Dimension, 0, ManyDims))) > xnn.MaxDims {
		return
	}
	if moveTime(both) > apart {
		return
	}
	*p = Node{Type: &rearrangeNode, In: p.In, Out: n.Out, Params: both, Index: p.Index,
		DebugHandle: p.DebugHandle, Min: -Inf, Max: Inf}
	f.values[n.Out[0]].producer = p
	n.Out = nil
}

// untransposed removes a transpose that undoes an earlier one, where the function of each element between them, if any, can be
// computed in either order.
func (f *fuser) untransposed(n *Node) {
	if n.Type.Tag != TagStaticTranspose || !f.between(n.In[0]) {
		return
	}
	op := f.values[n.In[0]].producer
	if op == nil {
		return
	}
	if op.Type.Tag == TagStaticTranspose {
		f.transposedTwice(op, n)
		return
	}
	at := f.elementOperand(op)
	if at == None || !f.between(op.In[at]) {
		return
	}
	first := f.values[op.In[at]].producer
	if first == nil || first.Type.Tag != TagStaticTranspose ||
		!undoes(Params[TransposeParams](n).Perm, Params[TransposeParams](first).Perm) {
		return
	}
	op.In, op.Out = slices.Clone(op.In), n.Out // estimates share the slices of the graph
	op.In[at] = first.In[0]
	f.values[n.Out[0]].producer, f.values[first.In[0]].reader = op, op
	first.Out, n.Out = nil, nil
}

// transposedTwice makes a copy of two transposes of which the second one undoes the first. With static sizes rearrange merges
// both, and more with them.
func (f *fuser) transposedTwice(first, n *Node) {
	if f.g.Static || !undoes(Params[TransposeParams](n).Perm, Params[TransposeParams](first).Perm) {
		return
	}
	n.Type, n.Params, n.In, first.Out = NodeTypes[TagCopy], nil, first.In, nil
	f.values[n.In[0]].reader = n
}

// elementOperand returns the index of the operand, of the size of the output, of a function of each element of it; none if
// it depends on the order of the elements.
func (f *fuser) elementOperand(n *Node) int {
	switch {
	case n.Type.IsIn(UnaryNodes) && f.g.Values[n.Out[0]].Datatype != QDInt8:
		return 0
	case n.Type.IsIn(BinaryNodes):
		for i, v := range n.In {
			fixed := f.g.Static || f.g.Values[v].IsConst()
			if fixed && f.shapes[v].Numel() == 1 && f.shapes[v].Rank <= f.shapes[n.In[1-i]].Rank {
				return 1 - i
			}
		}
	}
	return None
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

// moveTime returns about how long a rearrangement takes, in elements that are copied in runs: transposes of matrices are
// computed in tiles, other elements one by one.
func moveTime(r *RearrangeParams) int {
	const longRun, ofTiles, single = 8, 2, 6
	flat := r.Flat(make([]Dimension, 0, ManyDims))
	run, elements, rows := 1, 1, 1
	for _, d := range slices.Backward(flat) {
		if d.Step == run && run == elements {
			run *= d.N
		}
		if elements *= d.N; d.Step == 1 {
			rows = d.N
		}
	}
	switch {
	case run == elements || run >= longRun:
		return elements
	case run == 1 && min(rows, flat[len(flat)-1].N) >= longRun:
		return ofTiles * elements
	}
	return single * elements
}

// rearranged returns a node as a rearrangement.
func (f *fuser) rearranged(p *Node) (*RearrangeParams, bool) {
	switch {
	case p.Type == &rearrangeNode:
		r := *Params[RearrangeParams](p)
		r.Dims = slices.Clone(r.Dims)
		return &r, true
	case p.IsConcatenate():
		return f.joined(p)
	case p.Type.Tag != TagStaticTranspose && p.Type.Tag != TagStaticReshape:
		return nil, false
	}
	in := f.shapes[p.In[0]]
	r := &RearrangeParams{In: [maxJoined]Shape{in}, Dims: denseDims(in)}
	return r, follow(r, p, f.shapes[p.Out[0]])
}

// denseDims are the dimensions of a value in memory, without those of one index.
func denseDims(s Shape) [][]Dimension {
	dims, all, steps := make([][]Dimension, s.Rank), make([]Dimension, s.Rank), Strides(s)
	for i, n := range s.Dims() {
		if all[i] = (Dimension{N: n, Step: steps[i]}); n > 1 {
			dims[i] = all[i : i+1 : i+1]
		}
	}
	return dims
}

// joined returns a concatenation as a rearrangement. Its axis is split into parts of a size that divides those of the
// inputs.
func (f *fuser) joined(p *Node) (*RearrangeParams, bool) {
	out := f.shapes[p.Out[0]]
	axis, _ := Params[ConcatenateParams](p).Dim(out.Rank)
	r, part := &RearrangeParams{Dims: denseDims(out)}, 0
	for i, v := range p.In {
		r.In[i] = f.shapes[v]
		part = gcd(f.shapes[v].Dim[axis], part)
	}
	step := Strides(out)[axis]
	r.Axis = part * step
	r.Dims[axis] = []Dimension{{N: out.Dim[axis] / part, Step: r.Axis}}
	if part > 1 {
		r.Dims[axis] = append(r.Dims[axis], Dimension{N: part, Step: step})
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
func follow(r *RearrangeParams, n *Node, out Shape) bool {
	if n.Type.Tag == TagStaticTranspose {
		var dims [xnn.MaxDims][]Dimension
		copy(dims[:], r.Dims)
		for i, p := range Params[TransposeParams](n).Perm {
			r.Dims[i] = dims[p]
		}
		return true
	}
	flat := r.Flat(make([]Dimension, 0, ManyDims))
	r.Dims = make([][]Dimension, out.Rank)
	all := make([]Dimension, 0, len(flat)+out.Rank)
	for i, size := range out.Dims() {
		from := len(all)
		for size > 1 {
			d := flat[0]
			flat = flat[1:]
			if size%d.N != 0 {
				if d.N%size != 0 || d.Step == r.Axis {
					return false
				}
				inner := d.N / size
				flat = append([]Dimension{{N: inner, Step: d.Step}}, flat...)
				d = Dimension{N: size, Step: d.Step * inner}
			}
			all, size = append(all, d), size/d.N
		}
		r.Dims[i] = all[from:len(all):len(all)]
	}
	return true
}

// rearrangeNode is a node type of the Go engine only: transposes and reshapes one after the other, of an input or of the
// concatenation of several, which are one strided copy of each input. Sizes must not change.
var rearrangeNode = NodeType{Tag: TagRearrange, Name: "Rearrange", Check: unchecked, Shape: rearrangeShape}

// RearrangeParams are the dimensions of the output as it is copied: some of those of its shape, split or merged.
type RearrangeParams struct {
	In   [maxJoined]Shape // of the inputs
	Dims [][]Dimension    // of each dimension of the output, outermost first
	Axis int              // the step of the dimension along which inputs follow each other; 0 for one input
}

// maxJoined is the largest number of inputs of a concatenation.
const maxJoined = 5

// Dimension is the n > 1 indices of a dimension, step elements apart in the concatenated inputs.
type Dimension struct{ N, Step int }

// Flat appends the dimensions that are copied to list, outermost in the output first.
func (r *RearrangeParams) Flat(list []Dimension) []Dimension {
	for _, dim := range r.Dims {
		list = append(list, dim...)
	}
	return list
}

// ManyDims is as many dimensions as most rearrangements have.
const ManyDims = xnn.MaxDims + 2

// Moves returns the sizes in the order of the input's memory, and for each dimension of the output its index among them.
func (r *RearrangeParams) Moves() (in Shape, perm []int) {
	in, order := Source(r.Flat(make([]Dimension, 0, ManyDims)))
	return in, order[:in.Rank]
}

// Source returns the sizes in the order of the inputs' memory, and for each dimension of flat its index among them.
func Source(flat []Dimension) (sizes Shape, perm [xnn.MaxDims]int) {
	sizes.Rank = len(flat)
	for i, d := range flat {
		for _, other := range flat {
			if other.Step > d.Step {
				perm[i]++
			}
		}
		sizes.Dim[perm[i]] = d.N
	}
	return sizes, perm
}

func rearrangeShape(_ *Graph, n *Node, s []Shape) error {
	r := Params[RearrangeParams](n)
	for i, v := range n.In {
		if s[v] != r.In[i] {
			return n.fault("sizes %v, declared as %v", s[v], r.In[i])
		}
	}
	out := Shape{Rank: len(r.Dims)}
	for i, dim := range r.Dims {
		out.Dim[i] = 1
		for _, d := range dim {
			out.Dim[i] *= d.N
		}
	}
	s[n.Out[0]] = out
	return nil
}
