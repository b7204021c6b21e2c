package xnnpack

import (
	"math"
	"math/rand/v2"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// bytesSource reads random numbers from pairs of bytes, and from a generator after the last byte. A
// fuzzer that changes a byte changes one decision.
type bytesSource struct {
	data []byte
	rest rand.Source
}

func (s *bytesSource) Uint64() uint64 {
	if len(s.data) < 2 {
		return s.rest.Uint64()
	}
	x := uint64(s.data[0]) | uint64(s.data[1])<<8
	s.data = s.data[2:]
	return x * 0x0001_0001_0001_0001
}

// mutator changes fields of a graph's values and nodes.
type mutator struct {
	*graphtest.Maker
	wild bool // has changes after settle
}

// mutate returns a changed copy of a graph. It changes a few fields and nodes and usually makes the
// graph consistent again. Sometimes it then changes fields that remain inconsistent.
func mutate(g *graph.Graph, r *rand.Rand) *graph.Graph {
	m := &mutator{Maker: &graphtest.Maker{Builder: graph.Builder{Graph: cloneGraph(g)}, R: r, Lo: -2, Hi: 2}}
	if r.IntN(4) == 0 {
		m.shrink()
	}
	for range 1 + r.IntN(5) {
		m.step(changes)
	}
	if r.IntN(8) > 0 {
		m.settle()
	}
	if compact(m.Graph); r.IntN(3) == 0 {
		m.wild = true
		for range 1 + r.IntN(2) {
			m.step(invalidChanges)
		}
	}
	return m.Graph
}

// change is one way to change a graph, chosen with the given weight.
type change struct {
	name   string
	weight int
	do     func(m *mutator)
}

// changes are applied before settle.
var changes = []change{
	{"input sizes", 3, (*mutator).changeInputSizes},
	{"window", 8, (*mutator).changeWindow},
	{"bounds", 5, (*mutator).changeBounds},
	{"quantization", 6, (*mutator).changeQuant},
	{"flags", 4, (*mutator).changeFlags},
	{"parameter", 3, (*mutator).changeParam},
	{"dims", 4, (*mutator).changeDims},
	{"axis", 1, (*mutator).changeAxis},
	{"constant", 3, (*mutator).changeConstant},
	{"datatypes", 2, (*mutator).retype},
	{"node type", 3, (*mutator).changeType},
	{"clamp after", 5, (*mutator).insertClamp},
	{"pad before", 4, (*mutator).insertPad},
	{"copy", 3, (*mutator).insertCopy},
	{"reader", 3, (*mutator).changeReader},
	{"output", 3, (*mutator).changeOutput},
	{"growth", 4, (*mutator).growNode},
	{"removal", 2, (*mutator).removeNode},
}

// invalidChanges are applied at the end. They make most graphs invalid.
var invalidChanges = []change{
	{"sizes", 6, func(m *mutator) { m.changeSize(&m.someValue().Shape) }},
	{"datatype", 2, func(m *mutator) { m.someValue().Datatype = graph.Datatype(1 + m.R.IntN(14)) }},
	{"quantization", 4, (*mutator).changeQuant},
	{"scales", 3, (*mutator).changeScales},
	{"window", 3, (*mutator).changeWindow},
	{"channels", 3, (*mutator).changeChannels},
	{"bounds", 3, (*mutator).changeBounds},
	{"flags", 2, (*mutator).changeFlags},
	{"dims", 3, (*mutator).changeDims},
	{"node order", 2, func(m *mutator) {
		i, j := m.R.IntN(len(m.Graph.Nodes)), m.R.IntN(len(m.Graph.Nodes))
		m.Graph.Nodes[i], m.Graph.Nodes[j] = m.Graph.Nodes[j], m.Graph.Nodes[i]
	}},
	{"operand", 2, func(m *mutator) { n := m.someNode(); n.In[m.R.IntN(len(n.In))] = m.R.IntN(len(m.Graph.Values)+1) - 1 }},
	{"result", 1, func(m *mutator) { n := m.someNode(); n.Out[m.R.IntN(len(n.Out))] = m.R.IntN(len(m.Graph.Values)) }},
	{"argument", 1, func(m *mutator) { m.someValue().Arg = m.R.IntN(len(m.Graph.Args)+2) - 1 }},
	{"input or output", 1, func(m *mutator) {
		v := m.someValue()
		v.Input, v.Output = m.R.IntN(2) == 0, m.R.IntN(2) == 0
	}},
	{"constant's bytes", 1, func(m *mutator) {
		if v := m.someValue(); v.IsConst() {
			v.Data = v.Data[:m.R.IntN(len(v.Data)+1)]
		}
	}},
}

func (m *mutator) step(list []change) {
	total := 0
	for _, c := range list {
		total += c.weight
	}
	at := m.R.IntN(total)
	for _, c := range list {
		if at -= c.weight; at < 0 {
			if len(m.Graph.Nodes) > 0 && len(m.Graph.Values) > 0 {
				c.do(m)
			}
			return
		}
	}
}

func (m *mutator) someNode() *graph.Node   { return &m.Graph.Nodes[m.R.IntN(len(m.Graph.Nodes))] }
func (m *mutator) someValue() *graph.Value { return &m.Graph.Values[m.R.IntN(len(m.Graph.Values))] }

// one returns a random element of a list.
func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// extent returns a size near d, a common one, or one at a limit.
func (m *mutator) extent(d int) int {
	switch m.R.IntN(8) {
	case 0:
		return d + 1
	case 1:
		return max(0, d-1)
	case 2:
		return one(m.R, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65)
	case 3:
		return one(m.R, 0, 1, 2*d, d/2, 127, 128, 255, 257, 1<<12)
	case 4:
		if m.R.IntN(8) == 0 {
			return one(m.R, 1<<14, 1<<15, 1<<15+1, 1<<16, 1<<20, 1<<24, 1<<30, 1<<31-1, math.MaxInt/2, math.MaxInt)
		}
	}
	return 1 + m.R.IntN(6)
}

func (m *mutator) changeSize(s *graph.Shape) {
	switch i := m.R.IntN(max(s.Rank, 1)); m.R.IntN(6) {
	case 0:
		s.Rank = m.R.IntN(len(s.Dim) + 1)
		for j := range s.Dim {
			s.Dim[j] = max(s.Dim[j], 1)
		}
	case 1:
		j := m.R.IntN(max(s.Rank, 1))
		s.Dim[i], s.Dim[j] = s.Dim[j], s.Dim[i]
	default:
		s.Dim[i] = m.extent(s.Dim[i])
	}
}

func (m *mutator) changeInputSizes() {
	for range 8 {
		if v := m.someValue(); v.Input {
			m.changeSize(&v.Shape)
			return
		}
	}
}

// changeWindow changes the geometry of a convolution or pool, sometimes to a padding near the size of
// the dilated kernel.
func (m *mutator) changeWindow() {
	n := m.windowNode()
	if n == nil {
		return
	}
	w := n.Window()
	h, v := w.DilationH*(w.KernelH-1)+1, w.DilationW*(w.KernelW-1)+1
	switch m.R.IntN(6) {
	case 0:
		w.Top, w.Bottom = m.padding(h), m.padding(h)
	case 1:
		w.Left, w.Right = m.padding(v), m.padding(v)
	case 2:
		w.Top, w.Bottom, w.Left, w.Right = 0, 0, 0, 0
		n.Flags ^= graph.FlagSamePadding
	case 3:
		w.DilationH, w.DilationW = 1+m.R.IntN(5), 1+m.R.IntN(5)
	default:
		*one(m.R, &w.Top, &w.Right, &w.Bottom, &w.Left, &w.KernelH, &w.KernelW, &w.StrideH, &w.StrideW,
			&w.DilationH, &w.DilationW, &w.AdjustH, &w.AdjustW) = m.extent(3)
	}
}

// padding returns a padding for a window of size h, valid or near the limit.
func (m *mutator) padding(h int) int {
	h = min(h, 1<<30) // windows may be larger than any image
	return max(0, one(m.R, 0, 1, h/2, h-2, h-1, h, h+1, m.R.IntN(2*max(h, 0)+1)))
}

func (m *mutator) windowNode() *graph.Node {
	for range 8 {
		if n := m.someNode(); n.Geometry().KernelH > 0 {
			return n
		}
	}
	return nil
}

func (m *mutator) changeChannels() {
	if n := m.windowNode(); n != nil {
		w := n.Window()
		c := one(m.R, &w.Groups, &w.GroupIn, &w.GroupOut)
		*c = m.extent(*c)
	}
}

// number32 returns a float at a limit, near a dequantized element of v, or random.
func (m *mutator) number32(v *graph.Value) float32 {
	switch m.R.IntN(5) {
	case 0:
		return one(m.R, 0, 1, -1, 0.5, 6, graph.Inf, -graph.Inf, float32(math.NaN()), math.MaxFloat32, -math.MaxFloat32,
			0x1p-126, 0x1p-149, -0x1p-149, 65504, 65520, 1e-7, float32(math.Copysign(0, -1)))
	case 1, 2:
		if v.Quant.Scale > 0 {
			q := one(m.R, -129, -128, -127, -1, 0, 1, 127, 128, 254, 255, 256, m.R.Int32N(256)-128)
			return float32(q-v.Quant.ZeroPoint) * v.Quant.Scale * one(m.R, float32(1), 1, 1.001, 0.999)
		}
	}
	return float32(m.R.NormFloat64()) * one(m.R, float32(1), 1, 0.01, 100)
}

func (m *mutator) changeBounds() {
	n := m.someNode()
	out := &m.Graph.Values[n.Out[0]]
	lo, hi := m.number32(out), m.number32(out)
	switch m.R.IntN(6) {
	case 0:
		n.Min = lo
	case 1:
		n.Max = hi
	case 2:
		n.Min, n.Max = lo, lo
	case 3:
		n.Min, n.Max = 0, graph.Inf
	default:
		n.Min, n.Max = min(lo, hi), max(lo, hi)
	}
}

// scale returns a quantization scale near s or at a limit.
func (m *mutator) scale(s float32) float32 {
	switch m.R.IntN(5) {
	case 0:
		return s * float32(math.Ldexp(1, m.R.IntN(81)-40))
	case 1:
		return s * one[float32](m.R, 0x1p-10, 0x1p-8, 0x1p7, 0x1p8, 0x1p-16, 0x1p-32, 0x1.FFFFFEp7, 1, 2, 0.5)
	case 2:
		return one(m.R, 0x1p-126, 0x1p-127, 0, -s, graph.Inf, float32(math.NaN()), math.MaxFloat32, 1, 1.0/256, 0x1p-24)
	}
	return s * (0.5 + m.R.Float32())
}

func (m *mutator) changeQuant() {
	v := m.someValue()
	q := &v.Quant
	switch m.R.IntN(4) {
	case 0:
		q.Scale = m.scale(max(q.Scale, 0x1p-20))
	case 1:
		d := v.Datatype.Info()
		q.ZeroPoint = one(m.R, d.MinZero, d.MaxZero, 0, d.MinZero+m.R.Int32N(d.MaxZero-d.MinZero+1), q.ZeroPoint+1, -129, 256)
	case 2:
		if len(q.Scales) > 0 {
			i := m.R.IntN(len(q.Scales))
			q.Scales[i] = m.scale(q.Scales[i])
		} else if len(q.Blocks) > 0 {
			q.Blocks[m.R.IntN(len(q.Blocks))] = uint16(m.R.Uint32())
		}
	case 3:
		if v.Datatype == graph.QDInt8 {
			q.Nonbatch = m.R.IntN(7)
		}
	}
}

// changeScales changes the number of scales, their dimension or the group size.
func (m *mutator) changeScales() {
	q := &m.someValue().Quant
	switch m.R.IntN(4) {
	case 0:
		if len(q.Scales) > 1 {
			q.Scales = q.Scales[:m.R.IntN(len(q.Scales))]
		}
	case 1:
		q.Scales = append(q.Scales, 0.01)
	case 2:
		q.ChannelDim = m.R.IntN(8) - 1
	case 3:
		q.GroupSize = m.extent(q.GroupSize)
	}
}

func (m *mutator) changeFlags() {
	n := m.someNode()
	if n.Flags ^= 1 << one(m.R, 0, 2, 2, 2, 3, 6, m.R.IntN(32)); m.R.IntN(2) == 0 {
		n.Flags &= graph.FlagTransposeWeights | graph.FlagReshape2D | graph.FlagAlignCorners
	}
}

func (m *mutator) changeParam() {
	n := m.someNode()
	graphtest.SetScalar(n, m.number32(&m.Graph.Values[n.Out[0]]))
}

func (m *mutator) changeAxis() {
	if p, ok := m.someNode().Params.(*graph.ConcatenateParams); ok {
		p.Axis = m.R.IntN(13) - 6
	}
}

func (m *mutator) changeDims() {
	for range 8 {
		n := m.someNode()
		lists := dimLists(n)
		if len(lists) == 0 {
			continue
		}
		list := *one(m.R, lists...)
		if len(list) == 0 {
			continue
		}
		i, j := m.R.IntN(len(list)), m.R.IntN(len(list))
		if list[i], list[j] = list[j], list[i]; m.R.IntN(3) > 0 {
			list[i] = m.extent(list[i])
		}
		return
	}
}

// changeConstant changes a constant's elements: some numbers, the same byte for all, or random bytes.
func (m *mutator) changeConstant() {
	v := m.someValue()
	if !v.IsConst() || len(v.Data) == 0 || len(v.Data) > 1<<20 {
		return
	}
	data := tensor.AlignedBytes(len(v.Data))
	copy(data, v.Data)
	v.Data = data
	switch {
	case v.Datatype == graph.FP32:
		list := tensor.View[float32](data)
		for range 1 + m.R.IntN(3) {
			list[m.R.IntN(len(list))] = m.number32(v)
		}
	case m.R.IntN(2) == 0:
		b := one[byte](m.R, 0, 0x7f, 0x80, 0xff)
		for i := range data {
			data[i] = b
		}
	default:
		for i := range data {
			data[i] = uint8(m.R.Uint32())
		}
	}
}
