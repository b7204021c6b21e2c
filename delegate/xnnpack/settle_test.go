package xnnpack

import (
	"slices"
	"strings"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// settle makes a changed graph consistent again where possible. In node order, it fits the sizes of
// constants and parameters to the inputs and sets the shapes of the outputs. It stops at the first
// node that it cannot correct.
func (m *mutator) settle() {
	s := make([]graph.Shape, len(m.Graph.Values))
	for v := range m.Graph.Values {
		x := &m.Graph.Values[v]
		if x.Input {
			if x.Shape.Check() != nil || x.Shape.Numel() > 1<<24 {
				return
			}
			s[v] = x.Shape
		} else if x.IsConst() {
			s[v] = x.Shape
		}
	}
	for i := range m.Graph.Nodes {
		if !m.ready(&m.Graph.Nodes[i], s) {
			return
		}
		m.settleNode(i, s)
		for len(s) < len(m.Graph.Values) {
			s = append(s, m.Graph.Values[len(s)].Shape)
		}
		n := &m.Graph.Nodes[i]
		if !m.ready(n, s) || n.Type.Shape(m.Graph, n, s) != nil {
			return
		}
		for _, v := range n.Out {
			if s[v].Check() != nil {
				return
			}
			m.Graph.Values[v].Shape = s[v]
			m.keepQuant(n, v)
		}
	}
}

// ready reports whether all inputs of a node have valid shapes.
func (m *mutator) ready(n *graph.Node, s []graph.Shape) bool {
	for i, v := range n.In {
		if v == graph.None && i == 2 {
			continue
		}
		if v == graph.None || s[v].Rank == 0 || s[v].Check() != nil {
			return false
		}
	}
	return true
}

// keepQuant copies the input's quantization to the output of a node that moves elements, mostly.
func (m *mutator) keepQuant(n *graph.Node, v int) {
	name := n.Type.Name
	moves := strings.HasPrefix(name, "Static") || strings.HasPrefix(name, "Concatenate") || name == "Copy" || name == "MaxPooling2d"
	if x := &m.Graph.Values[n.In[0]]; moves && x.Datatype == m.Graph.Values[v].Datatype && m.R.IntN(16) > 0 {
		m.Graph.Values[v].Quant = x.Quant
		for _, in := range n.In[1:] {
			if y := &m.Graph.Values[in]; y.Datatype == x.Datatype {
				y.Quant = x.Quant
			}
		}
	}
}

// refit replaces a node's constant operand j, which other nodes may read, by a new constant of the
// given datatype and sizes.
func (m *mutator) refit(n *graph.Node, j int, d graph.Datatype, dims ...int) {
	x := m.Graph.Values[n.In[j]]
	want := graph.ShapeOf(dims...)
	if !x.IsConst() || want.Check() != nil || d.Bytes(want) > 1<<16 || x.Shape == want && x.Datatype == d {
		return
	}
	channel := 0
	if n.Type.Tag == graph.TagDepthwiseConv2d && j == 1 {
		channel = 3
	} else if n.Type.Tag == graph.TagFullyConnected && j == 1 && n.Flags&graph.FlagTransposeWeights != 0 {
		channel = 1
	} else if n.Type.Name == "BatchMatrixMultiply" {
		channel = want.Rank - 1 - int(n.Flags&graph.FlagTransposeWeights)
	}
	if d == graph.QBInt4 && want.Dim[1]%32 != 0 {
		return
	}
	old := x.Quant
	n.In[j] = m.Constant(d, min(channel, want.Rank-1), dims...)
	if y := &m.Graph.Values[n.In[j]]; d == x.Datatype && old.Scale > 0 {
		y.Quant.Scale, y.Quant.ZeroPoint = old.Scale, old.ZeroPoint
	} else {
		for c := range min(len(old.Scales), len(y.Quant.Scales)) {
			y.Quant.Scales[c] = old.Scales[c]
		}
	}
}

func (m *mutator) settleNode(i int, s []graph.Shape) {
	n := &m.Graph.Nodes[i]
	x := s[n.In[0]]
	switch {
	case n.Type.Convolution && x.Rank == 4 && len(n.In) == 3 && n.Geometry().KernelH > 0:
		m.settleConvolution(n, x)
	case n.Type.Tag == graph.TagFullyConnected:
		m.settleFullyConnected(n, x)
	case n.Type.Name == "BatchMatrixMultiply" && s[n.In[1]].Rank >= 2:
		m.settleBatchMatrix(n, x, s[n.In[1]])
	case n.Geometry().KernelH > 0 && x.Rank == 4:
		settleWindow(n, x)
	case n.Type.Tag == graph.TagStaticTranspose && !permutes(graph.Params[graph.TransposeParams](n).Perm, x.Rank):
		graph.Params[graph.TransposeParams](n).Perm = m.R.Perm(x.Rank)
	case n.Type.Name == "StaticReshape":
		m.settleReshape(n, x)
	case n.Type.Name == "StaticSlice":
		m.settleSlice(n, x)
	case n.Type.Name == "StaticConstantPad" && len(graph.Params[graph.PadParams](n).Before) != x.Rank:
		p := graph.Params[graph.PadParams](n)
		p.Before, p.After = make([]int, x.Rank), make([]int, x.Rank)
		p.Before[m.R.IntN(x.Rank)], p.After[m.R.IntN(x.Rank)] = m.R.IntN(3), m.R.IntN(3)
	case len(n.In) >= 2 && (isBinary(n) || strings.HasPrefix(n.Type.Name, "Concatenate")):
		m.settleOperands(n, s)
	}
}

func isBinary(n *graph.Node) bool {
	return slices.ContainsFunc(graph.BinaryNodes, func(t graph.NodeType) bool { return t.Tag == n.Type.Tag })
}

// settleOperands makes the operands of elementwise nodes and concatenations compatible.
func (m *mutator) settleOperands(n *graph.Node, s []graph.Shape) {
	x := s[n.In[0]]
	if isBinary(n) {
		if _, ok := graph.Broadcast(x, s[n.In[1]]); ok {
			return
		}
		for j, other := range []int{1, 0} {
			if v := &m.Graph.Values[n.In[other]]; v.IsConst() {
				m.refit(n, other, v.Datatype, s[n.In[j]].Last())
				return
			}
		}
		n.In[1] = n.In[0]
		return
	}
	axis, ok := graph.Params[graph.ConcatenateParams](n).Dim(x.Rank)
	if !ok {
		axis = m.R.IntN(x.Rank)
		graph.Params[graph.ConcatenateParams](n).Axis = axis
	}
	for j, v := range n.In[1:] {
		next := s[v]
		if next.Dim[axis] = x.Dim[axis]; next != x {
			n.In[1+j] = n.In[0]
		}
	}
}

func (m *mutator) settleConvolution(n *graph.Node, x graph.Shape) {
	w := n.Window()
	c := x.Dim[3]
	switch {
	case n.Type.Tag == graph.TagDepthwiseConv2d:
		w.Groups, w.GroupIn = c, 1
		w.GroupOut = min(max(w.GroupOut, 1), 3)
	case w.Groups < 1 || c%w.Groups != 0:
		w.Groups, w.GroupIn = 1, c
	default:
		w.GroupIn = c / w.Groups
	}
	if w.GroupOut = max(w.GroupOut, 1); w.Groups*w.GroupOut > 64 {
		w.GroupOut = max(1, 64/w.Groups)
	}
	settleWindow(n, x)
	out := w.Groups * w.GroupOut
	if n.Type.Tag == graph.TagDepthwiseConv2d {
		m.refit(n, 1, m.Graph.Values[n.In[1]].Datatype, 1, w.KernelH, w.KernelW, out)
	} else {
		m.refit(n, 1, m.Graph.Values[n.In[1]].Datatype, out, w.KernelH, w.KernelW, w.GroupIn)
	}
	if n.In[2] != graph.None {
		m.refit(n, 2, m.Graph.Values[n.In[2]].Datatype, out)
	}
}

// settleWindow limits a window to its input and padding.
func settleWindow(n *graph.Node, x graph.Shape) {
	w := n.Window()
	for _, f := range []*int{&w.KernelH, &w.KernelW, &w.StrideH, &w.StrideW, &w.DilationH, &w.DilationW} {
		*f = min(max(*f, 1), 1<<15)
	}
	if n.Type.Name == "ArgMaxPooling2d" {
		w.StrideH, w.StrideW, w.DilationH, w.DilationW = w.KernelH, w.KernelW, 1, 1
	}
	if n.Type.Tag == graph.TagConvTranspose2d {
		n.Flags &^= graph.FlagSamePadding
		w.AdjustH, w.AdjustW = min(w.AdjustH, w.StrideH-1), min(w.AdjustW, w.StrideW-1)
		if w.StrideH*x.Dim[1] > 256 || w.StrideW*x.Dim[2] > 256 || w.DilationH*w.KernelH > 64 || w.DilationW*w.KernelW > 64 {
			w.StrideH, w.StrideW, w.DilationH, w.DilationW, w.AdjustH, w.AdjustW = 2, 1, 1, 1, 0, 0
			w.KernelH, w.KernelW = min(w.KernelH, 5), min(w.KernelW, 5)
		}
		return
	}
	if n.Flags&graph.FlagSamePadding != 0 {
		w.Top, w.Right, w.Bottom, w.Left = 0, 0, 0, 0
		return
	}
	for _, side := range [2]struct{ size, before, after, kernel, dilation *int }{
		{&x.Dim[1], &w.Top, &w.Bottom, &w.KernelH, &w.DilationH}, {&x.Dim[2], &w.Left, &w.Right, &w.KernelW, &w.DilationW},
	} {
		room := *side.size + *side.before + *side.after
		if *side.dilation*(*side.kernel-1)+1 > room {
			*side.dilation = 1
			*side.kernel = min(*side.kernel, room)
		}
	}
}

func (m *mutator) settleFullyConnected(n *graph.Node, x graph.Shape) {
	k, cols := x.Last(), n.OutputChannels(m.Graph)
	if old := n.InputChannels(m.Graph); n.Flags&graph.FlagReshape2D != 0 && old > 0 && x.Numel()%old == 0 {
		k = old
	}
	dims := []int{cols, k}
	if n.Flags&graph.FlagTransposeWeights != 0 {
		dims = []int{k, cols}
	}
	m.refit(n, 1, m.Graph.Values[n.In[1]].Datatype, dims...)
	if n.In[2] != graph.None {
		m.refit(n, 2, m.Graph.Values[n.In[2]].Datatype, cols)
	}
}

func (m *mutator) settleBatchMatrix(n *graph.Node, a, b graph.Shape) {
	if a.Rank < 2 {
		return
	}
	if n.Flags&graph.FlagTransposeWeights != 0 {
		b.Dim[b.Rank-1] = a.Last()
	} else {
		b.Dim[b.Rank-2] = a.Last()
	}
	m.refit(n, 1, m.Graph.Values[n.In[1]].Datatype, b.Dims()...)
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
func (m *mutator) settleReshape(n *graph.Node, x graph.Shape) {
	known, zeros, p := 1, 0, graph.Params[graph.ReshapeParams](n)
	for _, d := range p.Sizes {
		if d == 0 {
			zeros++
		} else if known < 1<<30 {
			known *= d
		}
	}
	if len(p.Sizes) <= len(x.Dim) && (zeros == 0 && known == x.Numel() || zeros == 1 && known > 0 && x.Numel()%known == 0) {
		return
	}
	switch m.R.IntN(4) {
	case 0:
		p.Sizes = []int{x.Numel()}
	case 1:
		p.Sizes = []int{x.Dim[0], 0}
	case 2:
		p.Sizes = []int{0, x.Last()}
	case 3:
		p.Sizes = []int{1, x.Leading(x.Rank - 1), 1, x.Last()}
	}
}

func (m *mutator) settleSlice(n *graph.Node, x graph.Shape) {
	p := graph.Params[graph.SliceParams](n)
	if len(p.Offsets) != x.Rank || len(p.Sizes) != x.Rank {
		p.Offsets, p.Sizes = make([]int, x.Rank), slices.Clone(x.Dims())
	}
	for i, d := range x.Dims() {
		p.Offsets[i] = min(p.Offsets[i], d-1)
		p.Sizes[i] = min(p.Sizes[i], d-p.Offsets[i])
		if p.Sizes[i] < 1 && p.Offsets[i] > 0 {
			p.Sizes[i] = 1
		}
	}
}
