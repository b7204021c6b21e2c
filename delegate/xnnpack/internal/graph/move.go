package graph

import "github.com/etrun-go/etrun/internal/flatbuf"

// Flags of StaticResizeBilinear2D.
const (
	FlagLegacyResize = 4 // XNN_FLAG_TENSORFLOW_LEGACY_MODE
	FlagAlignCorners = 8 // XNN_FLAG_ALIGN_CORNERS
)

// moveTypes are the datatypes that nodes that move elements support.
var moveTypes = []Datatype{FP32, FP16, QInt8, QUInt8, BF16, Int32}

// moveNodes are the types of nodes that move elements.
var moveNodes = []NodeType{
	{Tag: TagStaticTranspose, Name: "StaticTranspose", read: readTranspose, Check: checkTranspose, Params: newParams[TransposeParams],
		Shape: func(g *Graph, n *Node, s []Shape) error {
			perm := Params[TransposeParams](n).Perm
			if err := wantRank(g, n, n.In[0], s, len(perm)); err != nil {
				return err
			}
			s[n.Out[0]] = s[n.In[0]].Permuted(perm)
			return nil
		}},
	{Tag: TagStaticReshape, Name: "StaticReshape", read: readReshape, Shape: reshapeShape, InPlace: true, Params: newParams[ReshapeParams],
		Check: func(g *Graph, n *Node) error { return checkMove(g, n, moveTypes) }},
	{Tag: TagCopy, Name: "Copy", read: readUnary, Shape: sameShape, InPlace: true,
		Check: func(g *Graph, n *Node) error { return checkMove(g, n, moveTypes) }},
	{Tag: TagStaticSlice, Name: "StaticSlice", read: readSlice, Check: checkSlice, Shape: sliceShape, Params: newParams[SliceParams]},
	{Tag: TagStaticConstantPad, Name: "StaticConstantPad", read: readPad, Check: checkPad, Shape: padShape, Params: newParams[PadParams]},
	concatenate(TagConcatenate2, "Concatenate2", 2),
	concatenate(TagConcatenate3, "Concatenate3", 3),
	concatenate(TagConcatenate4, "Concatenate4", 4),
	concatenate(TagConcatenate5, "Concatenate5", 5),
	// [N, H, W, C] to [N, new height, new width, C]
	{Tag: TagResizeBilinear2D, Name: "StaticResizeBilinear2D", read: readResize, Check: checkResize, Params: newParams[ResizeParams],
		Shape: func(g *Graph, n *Node, s []Shape) error {
			if err := wantRank(g, n, n.In[0], s, 4); err != nil {
				return err
			}
			s[n.Out[0]] = Params[ResizeParams](n).Shape(s[n.In[0]])
			return nil
		},
		Cost: func(g *Graph, n *Node, s []Shape) int64 { return Times(4, s[n.Out[0]].Numel()) }},
}

func readTranspose(r *Reader, t flatbuf.Table, n *Node) {
	Params[TransposeParams](n).Perm = readDims(t, 1, "perm")
	readEnds(t, 2, n)
}

func readReshape(r *Reader, t flatbuf.Table, n *Node) {
	Params[ReshapeParams](n).Sizes = readDims(t, 1, "new_shape")
	readEnds(t, 2, n)
}

func readSlice(r *Reader, t flatbuf.Table, n *Node) {
	p := Params[SliceParams](n)
	p.Offsets, p.Sizes = readDims(t, 1, "offsets"), readDims(t, 2, "sizes")
	readEnds(t, 3, n)
}

func readPad(r *Reader, t flatbuf.Table, n *Node) {
	p := Params[PadParams](n)
	p.Before, p.After = readDims(t, 0, "pre_paddings"), readDims(t, 1, "post_paddings")
	p.Value = t.Float32(2, "padding_value", 0)
	readEnds(t, 3, n)
}

func readResize(r *Reader, t flatbuf.Table, n *Node) {
	p := Params[ResizeParams](n)
	p.Height, p.Width = extent(t, 0, "new_height"), extent(t, 1, "new_width")
	readEnds(t, 2, n)
}

// checkMove checks that inputs and output have the same datatype and quantization, one of types.
func checkMove(g *Graph, n *Node, types []Datatype) error {
	if err := wantDatatype(g, n, n.Out[0], types...); err != nil {
		return err
	}
	for _, v := range n.In {
		if err := WantSame(g, n, v, n.Out[0]); err != nil {
			return err
		}
	}
	return nil
}

func checkTranspose(g *Graph, n *Node) error {
	var seen [16]bool
	perm := Params[TransposeParams](n).Perm
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
func reshapeShape(g *Graph, n *Node, s []Shape) error {
	in, want := s[n.In[0]], Params[ReshapeParams](n).Sizes
	if len(want) > len(in.Dim) {
		return n.unsupported("%d dimensions, at most %d", len(want), len(in.Dim))
	}
	out := ShapeOf(want...)
	if out.Rank == 0 {
		out = ShapeOf(1)
	}
	rest, known := None, 1
	for i, d := range out.Dims() {
		if d == 0 {
			if rest != None {
				return n.fault("sizes %v, at most one to infer", out)
			}
			rest = i
			continue
		}
		if d > MaxElements/known {
			return n.fault("sizes %v, at most %d elements", out, MaxElements)
		}
		known *= d
	}
	if rest != None {
		out.Dim[rest] = in.Numel() / known
	}
	if out.Numel() != in.Numel() {
		return n.fault("sizes %v for an input of sizes %v", out, in)
	}
	s[n.Out[0]] = out
	return nil
}

func checkSlice(g *Graph, n *Node) error {
	p := Params[SliceParams](n)
	if len(p.Offsets) != len(p.Sizes) || len(p.Offsets) == 0 {
		return n.fault("%d offsets and %d sizes", len(p.Offsets), len(p.Sizes))
	}
	return checkMove(g, n, moveTypes)
}

// sliceShape sets the output's sizes to the node's; 0 at offset 0 means all of a dimension.
func sliceShape(g *Graph, n *Node, s []Shape) error {
	p := Params[SliceParams](n)
	if err := wantRank(g, n, n.In[0], s, len(p.Offsets)); err != nil {
		return err
	}
	out := s[n.In[0]]
	for i, size := range out.Dims() {
		offset, length := p.Offsets[i], p.Sizes[i]
		if length == 0 && offset == 0 {
			continue
		}
		if length < 1 || offset+length > size {
			return n.fault("dimension %d: %d elements at %d of %d", i, length, offset, size)
		}
		out.Dim[i] = length
	}
	s[n.Out[0]] = out
	return nil
}

func checkPad(g *Graph, n *Node) error {
	p := Params[PadParams](n)
	if len(p.Before) != len(p.After) || len(p.Before) == 0 {
		return n.fault("%d paddings before and %d behind", len(p.Before), len(p.After))
	}
	return checkMove(g, n, moveTypes)
}

func padShape(g *Graph, n *Node, s []Shape) error {
	p := Params[PadParams](n)
	if err := wantRank(g, n, n.In[0], s, len(p.Before)); err != nil {
		return err
	}
	out := s[n.In[0]]
	for i := range out.Dims() {
		out.Dim[i] += p.Before[i] + p.After[i]
	}
	s[n.Out[0]] = out
	return nil
}

// concatenate returns the type of a concatenation of k values.
func concatenate(tag uint8, name string, k int) NodeType {
	return NodeType{Tag: tag, Name: name, Shape: concatenateShape, Params: newParams[ConcatenateParams],
		read:  func(_ *Reader, t flatbuf.Table, n *Node) { readConcatenate(t, n, k) },
		Check: func(g *Graph, n *Node) error { return checkMove(g, n, moveTypes) }}
}

func readConcatenate(t flatbuf.Table, n *Node, k int) {
	Params[ConcatenateParams](n).Axis = int(int32(t.Uint32(0, "axis", 0)))
	for i := range min(k, 4) {
		n.In = append(n.In, id(t, 1+i, "input_id"))
	}
	readOutput(t, 5, n)
	if k == 5 {
		n.In = append(n.In, id(t, 7, "input5_id"))
	}
}

// Dim returns the dimension along which values of rank r are concatenated. ok is false if they have
// no such dimension.
func (p *ConcatenateParams) Dim(r int) (int, bool) {
	a := p.Axis
	if a < 0 {
		a += r
	}
	return a, a >= 0 && a < r
}

func concatenateShape(g *Graph, n *Node, s []Shape) error {
	out, p := s[n.In[0]], Params[ConcatenateParams](n)
	axis, ok := p.Dim(out.Rank)
	if !ok {
		return n.fault("axis %d of %d dimensions", p.Axis, out.Rank)
	}
	for _, v := range n.In[1:] {
		next := s[v]
		size := next.Dim[axis]
		next.Dim[axis] = s[n.In[0]].Dim[axis]
		if next != s[n.In[0]] {
			return n.fault("sizes %v and %v along axis %d", s[n.In[0]], s[v], axis)
		}
		out.Dim[axis] += size
	}
	s[n.Out[0]] = out
	return nil
}

func checkResize(g *Graph, n *Node) error {
	if err := wantFlags(n, FlagLegacyResize|FlagAlignCorners); err != nil {
		return err
	}
	if n.Flags == FlagLegacyResize|FlagAlignCorners {
		return n.fault("flags %#x exclude each other", n.Flags)
	}
	p := Params[ResizeParams](n)
	for _, d := range [2]int{p.Height, p.Width} {
		if d < 1 || d >= 1<<24 {
			return n.fault("new sizes %v, want 1 to %d each", []int{p.Height, p.Width}, 1<<24-1)
		}
	}
	return checkMove(g, n, ElementwiseTypes)
}
