package xnnpack

import (
	"slices"
	"strings"
)

// settle makes a changed graph consistent again where possible. In node order, it fits the sizes of
// constants and parameters to the inputs and sets the shapes of the outputs. It stops at the first
// node that it cannot correct.
func (m *mutator) settle() {
	s := make([]shape, len(m.g.Values))
	for v := range m.g.Values {
		x := &m.g.Values[v]
		if x.Input {
			if x.Shape.check() != nil || x.Shape.numel() > 1<<24 {
				return
			}
			s[v] = x.Shape
		} else if x.isConst() {
			s[v] = x.Shape
		}
	}
	for i := range m.g.Nodes {
		if !m.ready(&m.g.Nodes[i], s) {
			return
		}
		m.settleNode(i, s)
		for len(s) < len(m.g.Values) {
			s = append(s, m.g.Values[len(s)].Shape)
		}
		n := &m.g.Nodes[i]
		if !m.ready(n, s) || n.Type.shape(m.g, n, s) != nil {
			return
		}
		for _, v := range n.Out {
			if s[v].check() != nil {
				return
			}
			m.g.Values[v].Shape = s[v]
			m.keepQuant(n, v)
		}
	}
}

// ready reports whether all inputs of a node have valid shapes.
func (m *mutator) ready(n *node, s []shape) bool {
	for i, v := range n.In {
		if v == none && i == 2 {
			continue
		}
		if v == none || s[v].rank == 0 || s[v].check() != nil {
			return false
		}
	}
	return true
}

// keepQuant copies the input's quantization to the output of a node that moves elements, mostly.
func (m *mutator) keepQuant(n *node, v int) {
	moves := slices.ContainsFunc(moveNodes, func(t nodeType) bool { return t.tag == n.Type.tag }) || n.Type.name == "MaxPooling2d"
	if x := &m.g.Values[n.In[0]]; moves && x.Datatype == m.g.Values[v].Datatype && m.r.IntN(16) > 0 {
		m.g.Values[v].Quant = x.Quant
		for _, in := range n.In[1:] {
			if y := &m.g.Values[in]; y.Datatype == x.Datatype {
				y.Quant = x.Quant
			}
		}
	}
}

// refit replaces a node's constant operand j, which other nodes may read, by a new constant of the
// given datatype and sizes.
func (m *mutator) refit(n *node, j int, d datatype, dims ...int) {
	x := m.g.Values[n.In[j]]
	want := shapeOf(dims...)
	if !x.isConst() || want.check() != nil || d.bytes(want) > 1<<16 || x.Shape == want && x.Datatype == d {
		return
	}
	channel := 0
	if n.Type.tag == tagDepthwiseConv2d && j == 1 {
		channel = 3
	} else if n.Type.tag == tagFullyConnected && j == 1 && n.Flags&flagTransposeWeights != 0 {
		channel = 1
	} else if n.Type.name == "BatchMatrixMultiply" {
		channel = want.rank - 1 - int(n.Flags&flagTransposeWeights)
	}
	if d == qbint4 && want.dim[1]%32 != 0 {
		return
	}
	old := x.Quant
	n.In[j] = m.constant(d, min(channel, want.rank-1), dims...)
	if y := &m.g.Values[n.In[j]]; d == x.Datatype && old.Scale > 0 {
		y.Quant.Scale, y.Quant.ZeroPoint = old.Scale, old.ZeroPoint
	} else {
		for c := range min(len(old.Scales), len(y.Quant.Scales)) {
			y.Quant.Scales[c] = old.Scales[c]
		}
	}
}

func (m *mutator) settleNode(i int, s []shape) {
	n := &m.g.Nodes[i]
	x := s[n.In[0]]
	switch {
	case n.Type.convolution && x.rank == 4 && len(n.In) == 3 && n.geometry().kernelH > 0:
		m.settleConvolution(n, x)
	case n.Type.tag == tagFullyConnected:
		m.settleFullyConnected(n, x)
	case n.Type.name == "BatchMatrixMultiply" && s[n.In[1]].rank >= 2:
		m.settleBatchMatrix(n, x, s[n.In[1]])
	case n.geometry().kernelH > 0 && x.rank == 4:
		settleWindow(n, x)
	case n.Type.tag == tagStaticTranspose && !permutes(params[transposeParams](n).perm, x.rank):
		params[transposeParams](n).perm = m.r.Perm(x.rank)
	case n.Type.name == "StaticReshape":
		m.settleReshape(n, x)
	case n.Type.name == "StaticSlice":
		m.settleSlice(n, x)
	case n.Type.name == "StaticConstantPad" && len(params[padParams](n).before) != x.rank:
		p := params[padParams](n)
		p.before, p.after = make([]int, x.rank), make([]int, x.rank)
		p.before[m.r.IntN(x.rank)], p.after[m.r.IntN(x.rank)] = m.r.IntN(3), m.r.IntN(3)
	case len(n.In) >= 2 && (isBinary(n) || strings.HasPrefix(n.Type.name, "Concatenate")):
		m.settleOperands(n, s)
	}
}

func isBinary(n *node) bool {
	return slices.ContainsFunc(binaryNodes, func(t nodeType) bool { return t.tag == n.Type.tag })
}

// settleOperands makes the operands of elementwise nodes and concatenations compatible.
func (m *mutator) settleOperands(n *node, s []shape) {
	x := s[n.In[0]]
	if isBinary(n) {
		if _, ok := broadcast(x, s[n.In[1]]); ok {
			return
		}
		for j, other := range []int{1, 0} {
			if v := &m.g.Values[n.In[other]]; v.isConst() {
				m.refit(n, other, v.Datatype, s[n.In[j]].last())
				return
			}
		}
		n.In[1] = n.In[0]
		return
	}
	axis, ok := params[concatenateParams](n).of(x.rank)
	if !ok {
		axis = m.r.IntN(x.rank)
		params[concatenateParams](n).axis = axis
	}
	for j, v := range n.In[1:] {
		next := s[v]
		if next.dim[axis] = x.dim[axis]; next != x {
			n.In[1+j] = n.In[0]
		}
	}
}

func (m *mutator) settleConvolution(n *node, x shape) {
	w := n.window()
	c := x.dim[3]
	switch {
	case n.Type.tag == tagDepthwiseConv2d:
		w.groups, w.groupIn = c, 1
		w.groupOut = min(max(w.groupOut, 1), 3)
	case w.groups < 1 || c%w.groups != 0:
		w.groups, w.groupIn = 1, c
	default:
		w.groupIn = c / w.groups
	}
	if w.groupOut = max(w.groupOut, 1); w.groups*w.groupOut > 64 {
		w.groupOut = max(1, 64/w.groups)
	}
	settleWindow(n, x)
	out := w.groups * w.groupOut
	if n.Type.tag == tagDepthwiseConv2d {
		m.refit(n, 1, m.g.Values[n.In[1]].Datatype, 1, w.kernelH, w.kernelW, out)
	} else {
		m.refit(n, 1, m.g.Values[n.In[1]].Datatype, out, w.kernelH, w.kernelW, w.groupIn)
	}
	if n.In[2] != none {
		m.refit(n, 2, m.g.Values[n.In[2]].Datatype, out)
	}
}

// settleWindow limits a window to its input and padding.
func settleWindow(n *node, x shape) {
	w := n.window()
	for _, f := range []*int{&w.kernelH, &w.kernelW, &w.strideH, &w.strideW, &w.dilationH, &w.dilationW} {
		*f = min(max(*f, 1), 1<<15)
	}
	if n.Type.name == "ArgMaxPooling2d" {
		w.strideH, w.strideW, w.dilationH, w.dilationW = w.kernelH, w.kernelW, 1, 1
	}
	if n.Type.tag == tagConvTranspose2d {
		n.Flags &^= flagSamePadding
		w.adjustH, w.adjustW = min(w.adjustH, w.strideH-1), min(w.adjustW, w.strideW-1)
		if w.strideH*x.dim[1] > 256 || w.strideW*x.dim[2] > 256 || w.dilationH*w.kernelH > 64 || w.dilationW*w.kernelW > 64 {
			w.strideH, w.strideW, w.dilationH, w.dilationW, w.adjustH, w.adjustW = 2, 1, 1, 1, 0, 0
			w.kernelH, w.kernelW = min(w.kernelH, 5), min(w.kernelW, 5)
		}
		return
	}
	if n.Flags&flagSamePadding != 0 {
		w.top, w.right, w.bottom, w.left = 0, 0, 0, 0
		return
	}
	for _, side := range [2]struct{ size, before, after, kernel, dilation *int }{
		{&x.dim[1], &w.top, &w.bottom, &w.kernelH, &w.dilationH}, {&x.dim[2], &w.left, &w.right, &w.kernelW, &w.dilationW},
	} {
		room := *side.size + *side.before + *side.after
		if *side.dilation*(*side.kernel-1)+1 > room {
			*side.dilation = 1
			*side.kernel = min(*side.kernel, room)
		}
	}
}

func (m *mutator) settleFullyConnected(n *node, x shape) {
	k, cols := x.last(), n.outputChannels(m.g)
	if old := n.inputChannels(m.g); n.Flags&flagReshape2D != 0 && old > 0 && x.numel()%old == 0 {
		k = old
	}
	dims := []int{cols, k}
	if n.Flags&flagTransposeWeights != 0 {
		dims = []int{k, cols}
	}
	m.refit(n, 1, m.g.Values[n.In[1]].Datatype, dims...)
	if n.In[2] != none {
		m.refit(n, 2, m.g.Values[n.In[2]].Datatype, cols)
	}
}

func (m *mutator) settleBatchMatrix(n *node, a, b shape) {
	if a.rank < 2 {
		return
	}
	if n.Flags&flagTransposeWeights != 0 {
		b.dim[b.rank-1] = a.last()
	} else {
		b.dim[b.rank-2] = a.last()
	}
	m.refit(n, 1, m.g.Values[n.In[1]].Datatype, b.dims()...)
}

func permutes(list []int, rank int) bool {
	sorted := slices.Sorted(slices.Values(list))
	for i, p := range sorted {
		if i != p {
			return false
		}
	}
	return len(list) == rank
}

// settleReshape keeps sizes that match the number of elements; otherwise it splits or joins dimensions.
func (m *mutator) settleReshape(n *node, x shape) {
	known, zeros, p := 1, 0, params[reshapeParams](n)
	for _, d := range p.sizes {
		if d == 0 {
			zeros++
		} else if known < 1<<30 {
			known *= d
		}
	}
	if len(p.sizes) <= len(x.dim) && (zeros == 0 && known == x.numel() || zeros == 1 && known > 0 && x.numel()%known == 0) {
		return
	}
	switch m.r.IntN(4) {
	case 0:
		p.sizes = []int{x.numel()}
	case 1:
		p.sizes = []int{x.dim[0], 0}
	case 2:
		p.sizes = []int{0, x.last()}
	case 3:
		p.sizes = []int{1, x.leading(x.rank - 1), 1, x.last()}
	}
}

func (m *mutator) settleSlice(n *node, x shape) {
	p := params[sliceParams](n)
	if len(p.offsets) != x.rank || len(p.sizes) != x.rank {
		p.offsets, p.sizes = make([]int, x.rank), slices.Clone(x.dims())
	}
	for i, d := range x.dims() {
		p.offsets[i] = min(p.offsets[i], d-1)
		p.sizes[i] = min(p.sizes[i], d-p.offsets[i])
		if p.sizes[i] < 1 && p.offsets[i] > 0 {
			p.sizes[i] = 1
		}
	}
}
