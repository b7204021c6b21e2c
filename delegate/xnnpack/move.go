package xnnpack

import (
	"github.com/etrun-go/etrun/internal/flatbuf"
)

// Flags of StaticResizeBilinear2D.
const (
	flagLegacyResize = 4 // XNN_FLAG_TENSORFLOW_LEGACY_MODE
	flagAlignCorners = 8 // XNN_FLAG_ALIGN_CORNERS
)

// moveTypes are the datatypes that nodes that move elements support.
var moveTypes = []datatype{fp32, fp16, qint8, quint8, bf16, plainInt32}

// moveNodes are the types of nodes that move elements.
var moveNodes = []nodeType{
	{tag: tagStaticTranspose, name: "StaticTranspose", read: readTranspose, check: checkTranspose, params: newParams[transposeParams],
		shape: func(g *graph, n *node, s []shape) error {
			perm := params[transposeParams](n).perm
			if err := wantRank(g, n, n.In[0], s, len(perm)); err != nil {
				return err
			}
			s[n.Out[0]] = s[n.In[0]].permuted(perm)
			return nil
		}},
	{tag: tagStaticReshape, name: "StaticReshape", read: readReshape, shape: reshapeShape, inPlace: true, params: newParams[reshapeParams],
		check: func(g *graph, n *node) error { return checkMove(g, n, moveTypes) }},
	{tag: tagCopy, name: "Copy", read: readUnary, shape: sameShape, inPlace: true,
		check: func(g *graph, n *node) error { return checkMove(g, n, moveTypes) }},
	{tag: tagStaticSlice, name: "StaticSlice", read: readSlice, check: checkSlice, shape: sliceShape, params: newParams[sliceParams]},
	{tag: tagStaticConstantPad, name: "StaticConstantPad", read: readPad, check: checkPad, shape: padShape, params: newParams[padParams]},
	concatenate(tagConcatenate2, "Concatenate2", 2),
	concatenate(tagConcatenate3, "Concatenate3", 3),
	concatenate(tagConcatenate4, "Concatenate4", 4),
	concatenate(tagConcatenate5, "Concatenate5", 5),
	// [N, H, W, C] to [N, new height, new width, C]
	{tag: tagResizeBilinear2D, name: "StaticResizeBilinear2D", read: readResize, check: checkResize, params: newParams[resizeParams],
		shape: func(g *graph, n *node, s []shape) error {
			if err := wantRank(g, n, n.In[0], s, 4); err != nil {
				return err
			}
			s[n.Out[0]] = params[resizeParams](n).shape(s[n.In[0]])
			return nil
		},
		cost: func(g *graph, n *node, s []shape) int64 { return times(4, s[n.Out[0]].numel()) }},
}

func readTranspose(r *reader, t flatbuf.Table, n *node) {
	params[transposeParams](n).perm = readDims(t, 1, "perm")
	n.In = []int{id(t, 2, "input_id")}
	n.Out = []int{id(t, 3, "output_id")}
	n.Flags = t.Uint32(4, "flags", 0)
}

func readReshape(r *reader, t flatbuf.Table, n *node) {
	params[reshapeParams](n).sizes = readDims(t, 1, "new_shape")
	n.In = []int{id(t, 2, "input_id")}
	n.Out = []int{id(t, 3, "output_id")}
	n.Flags = t.Uint32(4, "flags", 0)
}

func readSlice(r *reader, t flatbuf.Table, n *node) {
	p := params[sliceParams](n)
	p.offsets, p.sizes = readDims(t, 1, "offsets"), readDims(t, 2, "sizes")
	n.In = []int{id(t, 3, "input_id")}
	n.Out = []int{id(t, 4, "output_id")}
	n.Flags = t.Uint32(5, "flags", 0)
}

func readPad(r *reader, t flatbuf.Table, n *node) {
	p := params[padParams](n)
	p.before, p.after = readDims(t, 0, "pre_paddings"), readDims(t, 1, "post_paddings")
	p.value = t.Float32(2, "padding_value", 0)
	n.In = []int{id(t, 3, "input_id")}
	n.Out = []int{id(t, 4, "output_id")}
	n.Flags = t.Uint32(5, "flags", 0)
}

func readResize(r *reader, t flatbuf.Table, n *node) {
	p := params[resizeParams](n)
	p.height, p.width = extent(t, 0, "new_height"), extent(t, 1, "new_width")
	n.In = []int{id(t, 2, "input_id")}
	n.Out = []int{id(t, 3, "output_id")}
	n.Flags = t.Uint32(4, "flags", 0)
}

// checkMove checks that inputs and output have the same datatype and quantization, one of types.
func checkMove(g *graph, n *node, types []datatype) error {
	if err := wantDatatype(g, n, n.Out[0], types...); err != nil {
		return err
	}
	for _, v := range n.In {
		if err := wantSame(g, n, v, n.Out[0]); err != nil {
			return err
		}
	}
	return nil
}

func checkTranspose(g *graph, n *node) error {
	var seen [16]bool
	perm := params[transposeParams](n).perm
	for _, p := range perm {
		if p >= len(perm) || p >= len(seen) || seen[p] {
			return n.fault("permutation %v", perm)
		}
		seen[p] = true
	}
	if len(perm) == 0 {
		return n.fault("empty permutation")
	}
	return checkMove(g, n, moveTypes)
}

// reshapeShape sets the output's sizes to the node's. One of them may be 0, which is then inferred.
func reshapeShape(g *graph, n *node, s []shape) error {
	in, want := s[n.In[0]], params[reshapeParams](n).sizes
	if len(want) > len(in.dim) {
		return n.beyond("%d dimensions, at most %d", len(want), len(in.dim))
	}
	out := shapeOf(want...)
	if out.rank == 0 {
		out = shapeOf(1)
	}
	rest, known := none, 1
	for i, d := range out.dims() {
		if d == 0 {
			if rest != none {
				return n.fault("sizes %v, at most one to infer", out)
			}
			rest = i
			continue
		}
		if d > maxElements/known {
			return n.fault("sizes %v, at most %d elements", out, maxElements)
		}
		known *= d
	}
	if rest != none {
		out.dim[rest] = in.numel() / known
	}
	if out.numel() != in.numel() {
		return n.fault("sizes %v for an input of sizes %v", out, in)
	}
	s[n.Out[0]] = out
	return nil
}

func checkSlice(g *graph, n *node) error {
	p := params[sliceParams](n)
	if len(p.offsets) != len(p.sizes) || len(p.offsets) == 0 {
		return n.fault("%d offsets and %d sizes", len(p.offsets), len(p.sizes))
	}
	return checkMove(g, n, moveTypes)
}

// sliceShape sets the output's sizes to the node's; 0 at offset 0 means all of a dimension.
func sliceShape(g *graph, n *node, s []shape) error {
	p := params[sliceParams](n)
	if err := wantRank(g, n, n.In[0], s, len(p.offsets)); err != nil {
		return err
	}
	out := s[n.In[0]]
	for i, size := range out.dims() {
		offset, length := p.offsets[i], p.sizes[i]
		if length == 0 && offset == 0 {
			continue
		}
		if length < 1 || offset+length > size {
			return n.fault("dimension %d: %d elements at %d of %d", i, length, offset, size)
		}
		out.dim[i] = length
	}
	s[n.Out[0]] = out
	return nil
}

func checkPad(g *graph, n *node) error {
	p := params[padParams](n)
	if len(p.before) != len(p.after) || len(p.before) == 0 {
		return n.fault("%d paddings before and %d behind", len(p.before), len(p.after))
	}
	return checkMove(g, n, moveTypes)
}

func padShape(g *graph, n *node, s []shape) error {
	p := params[padParams](n)
	if err := wantRank(g, n, n.In[0], s, len(p.before)); err != nil {
		return err
	}
	out := s[n.In[0]]
	for i := range out.dims() {
		out.dim[i] += p.before[i] + p.after[i]
	}
	s[n.Out[0]] = out
	return nil
}

// concatenate returns the type of a concatenation of k values.
func concatenate(tag uint8, name string, k int) nodeType {
	return nodeType{tag: tag, name: name, shape: concatenateShape, params: newParams[concatenateParams],
		read:  func(_ *reader, t flatbuf.Table, n *node) { readConcatenate(t, n, k) },
		check: func(g *graph, n *node) error { return checkMove(g, n, moveTypes) }}
}

func readConcatenate(t flatbuf.Table, n *node, k int) {
	params[concatenateParams](n).axis = int(int32(t.Uint32(0, "axis", 0)))
	for i := range min(k, 4) {
		n.In = append(n.In, id(t, 1+i, "input_id"))
	}
	n.Out = []int{id(t, 5, "output_id")}
	n.Flags = t.Uint32(6, "flags", 0)
	if k == 5 {
		n.In = append(n.In, id(t, 7, "input5_id"))
	}
}

// of returns the dimension along which values of rank r are concatenated. ok is false if they have
// no such dimension.
func (p *concatenateParams) of(r int) (int, bool) {
	a := p.axis
	if a < 0 {
		a += r
	}
	return a, a >= 0 && a < r
}

func concatenateShape(g *graph, n *node, s []shape) error {
	out, p := s[n.In[0]], params[concatenateParams](n)
	axis, ok := p.of(out.rank)
	if !ok {
		return n.fault("axis %d of %d dimensions", p.axis, out.rank)
	}
	for _, v := range n.In[1:] {
		next := s[v]
		size := next.dim[axis]
		next.dim[axis] = s[n.In[0]].dim[axis]
		if next != s[n.In[0]] {
			return n.fault("sizes %v and %v along axis %d", s[n.In[0]], s[v], axis)
		}
		out.dim[axis] += size
	}
	s[n.Out[0]] = out
	return nil
}

func checkResize(g *graph, n *node) error {
	if err := wantFlags(n, flagLegacyResize|flagAlignCorners); err != nil {
		return err
	}
	if n.Flags == flagLegacyResize|flagAlignCorners {
		return n.fault("flags %#x exclude each other", n.Flags)
	}
	p := params[resizeParams](n)
	for _, d := range [2]int{p.height, p.width} {
		if d < 1 || d >= 1<<24 {
			return n.fault("new sizes %v, want 1 to %d each", []int{p.height, p.width}, 1<<24-1)
		}
	}
	return checkMove(g, n, elementwiseTypes)
}
