package graphtest

import (
	"math/rand/v2"

	"github.com/x448/float16"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Maker builds graphs for tests, with random constants.
type Maker struct {
	graph.Builder
	R *rand.Rand
	// range of the numbers of inputs and constants
	Lo, Hi float32
}

// NewMaker returns a maker of an empty graph; its numbers depend on the seed.
func NewMaker(seed uint64) *Maker {
	return &Maker{Builder: graph.NewBuilder(), R: rand.New(rand.NewPCG(seed, 1)), Lo: -2, Hi: 2}
}

// Value adds a value of a datatype with typical quantization.
func (m *Maker) Value(d graph.Datatype, dims ...int) int {
	var q graph.Quant
	switch d.Info().Quant {
	case graph.PerTensor:
		q.Scale = 0.02 + 0.01*m.R.Float32()
		if d == graph.QUInt8 {
			q.ZeroPoint = 128 + m.R.Int32N(11) - 5
		} else if d == graph.QInt8 {
			q.ZeroPoint = m.R.Int32N(11) - 5
		}
	case graph.PerToken:
		q.Nonbatch = 1
	}
	v := m.Builder.Value(d, graph.ShapeOf(dims...), q)
	m.Graph.Values[v].ID = EncodedID(v)
	return v
}

// Input adds an input of the graph.
func (m *Maker) Input(d graph.Datatype, dims ...int) int {
	v := m.Value(d, dims...)
	m.Graph.Values[v].Input = true
	return v
}

// Constant adds a constant with random elements. Per-channel scales are along dimension channel.
func (m *Maker) Constant(d graph.Datatype, channel int, dims ...int) int {
	v := m.Value(d, dims...)
	x := &m.Graph.Values[v]
	x.Data = m.Bytes(d, x.Shape)
	switch d.Info().Quant {
	case graph.PerTensor:
		if d != graph.QUInt8 {
			x.Quant.ZeroPoint = 0
		}
	case graph.PerChannel:
		x.Quant.ChannelDim = channel
		for range dims[channel] {
			x.Quant.Scales = append(x.Quant.Scales, 0.004+0.002*m.R.Float32())
		}
		if d == graph.QCInt4 {
			x.Quant.ZeroPoint = 8
		}
	case graph.PerGroup:
		x.Quant.GroupSize, x.Quant.ZeroPoint = 32, 8
		for range dims[0] * dims[1] / 32 {
			x.Quant.Blocks = append(x.Quant.Blocks, graph.ToBF16(0.05+0.02*m.R.Float32()))
		}
	}
	return v
}

// Bytes returns random elements.
func (m *Maker) Bytes(d graph.Datatype, s graph.Shape) []byte {
	b := tensor.AlignedBytes(d.Bytes(s))
	switch d {
	case graph.FP32:
		for i := range tensor.View[float32](b) {
			tensor.View[float32](b)[i] = m.number()
		}
	case graph.FP16:
		for i := range tensor.View[uint16](b) {
			tensor.View[uint16](b)[i] = float16.Fromfloat32(m.number()).Bits()
		}
	case graph.BF16:
		for i := range tensor.View[uint16](b) {
			tensor.View[uint16](b)[i] = graph.ToBF16(m.number())
		}
	case graph.QInt32, graph.QCInt32, graph.Int32:
		for i := range tensor.View[int32](b) {
			tensor.View[int32](b)[i] = m.R.Int32N(2001) - 1000
		}
	default:
		for i := range b {
			b[i] = uint8(m.R.Uint32())
		}
	}
	return b
}

func (m *Maker) number() float32 { return m.Lo + (m.Hi-m.Lo)*m.R.Float32() }

// Node adds a node of a type by name.
func (m *Maker) Node(name string, in, out []int, set ...func(*graph.Node)) *graph.Node {
	n := m.Builder.Node(TypeNamed(name), in, out...)
	for _, f := range set {
		f(n)
	}
	return n
}

// Quantized adds a node that quantizes v dynamically and returns its output. The nonbatch innermost
// dimensions share a scale.
func (m *Maker) Quantized(v, nonbatch int) int {
	q := m.Value(graph.QDInt8, m.Graph.Values[v].Shape.Dims()...)
	m.Graph.Values[q].Quant.Nonbatch = nonbatch
	m.Node("Convert", []int{v}, []int{q})
	return q
}

// Done marks values as outputs of the graph, numbers the arguments and returns the graph.
func (m *Maker) Done(outputs ...int) *graph.Graph {
	for _, v := range outputs {
		m.Graph.Values[v].Output = true
	}
	var lists [2][]int
	for v := range m.Graph.Values {
		if x := &m.Graph.Values[v]; x.Input {
			lists[0] = append(lists[0], v)
		} else if x.Output {
			lists[1] = append(lists[1], v)
		}
	}
	m.Externals(lists[0], lists[1])
	return m.Graph
}

// WithWindow sets a convolution's or pool's geometry.
func WithWindow(w graph.Window) func(*graph.Node) { return func(n *graph.Node) { n.Params = &w } }

// Sample is a test graph with its tolerances.
type Sample struct {
	Name  string
	Graph *graph.Graph
	// Steps is the tolerance of quantized outputs, in steps.
	Steps int
	// Loose is the tolerance of floats, relative to the largest one, if above the default.
	Loose float64
	Lo    float32 // smallest number of the inputs, -2 if 0
}

func (s *Sample) tolerance(d graph.Datatype) float64 {
	switch {
	case d == graph.FP16:
		return max(s.Loose, 4e-3)
	case d == graph.BF16:
		return max(s.Loose, 8e-3)
	}
	return max(s.Loose, 2e-6)
}

// Samples returns graphs of one node for every node type and combination of datatypes.
func Samples(seed uint64) []Sample {
	var list []Sample
	add := func(name string, steps int, loose float64, build func(m *Maker) *graph.Graph) {
		m := NewMaker(seed + uint64(len(list)))
		list = append(list, Sample{Name: name, Graph: build(m), Steps: steps, Loose: loose, Lo: max(m.Lo, 0)})
	}
	for i := range graph.UnaryNodes {
		t := &graph.UnaryNodes[i]
		if t.Tag == graph.TagConvert {
			continue
		}
		for _, d := range graph.ElementwiseTypes {
			add(t.Name+" "+d.String(), 1, 0, func(m *Maker) *graph.Graph { return m.UnarySample(t.Name, d) })
		}
	}
	for _, pair := range [][2]graph.Datatype{{graph.FP32, graph.FP16}, {graph.FP16, graph.FP32}, {graph.FP32, graph.QInt8}, {graph.FP32, graph.QUInt8}, {graph.QInt8, graph.FP32}, {graph.QUInt8, graph.FP32},
		{graph.FP16, graph.QInt8}, {graph.QInt8, graph.FP16}, {graph.QInt8, graph.QInt8}, {graph.FP32, graph.BF16}, {graph.BF16, graph.FP32}} {
		add("Convert "+pair[0].String()+" to "+pair[1].String(), 1, 1e-6, func(m *Maker) *graph.Graph {
			x, y := m.Input(pair[0], 2, 3, 7), m.Value(pair[1], 2, 3, 7)
			m.Node("Convert", []int{x}, []int{y})
			return m.Done(y)
		})
	}
	for i := range graph.BinaryNodes {
		t := &graph.BinaryNodes[i]
		for _, d := range graph.ElementwiseTypes {
			add(t.Name+" "+d.String(), 1, 0, func(m *Maker) *graph.Graph { return m.BinarySample(t.Name, d) })
		}
	}
	list = append(list, weightedSamples(seed)...)
	list = append(list, poolSamples(seed)...)
	return append(list, moveSamples(seed)...)
}

// UnarySample makes a graph of one node with one operand.
func (m *Maker) UnarySample(name string, d graph.Datatype) *graph.Graph {
	switch name {
	case "SquareRoot", "ReciprocalSquareRoot", "Log":
		m.Lo = 0.1
	}
	x, y := m.Input(d, 2, 3, 37), m.Value(d, 2, 3, 37)
	if m.Lo > 0 && d.Info().Quant == graph.PerTensor { // only elements of non-negative numbers
		m.Graph.Values[x].Quant.ZeroPoint = map[graph.Datatype]int32{graph.QInt8: -128, graph.QUInt8: 0}[d]
	}
	if name == "Clamp" { // the library requires the same quantization
		m.Graph.Values[y].Quant = m.Graph.Values[x].Quant
	}
	m.Node(name, []int{x}, []int{y}, func(n *graph.Node) {
		SetScalar(n, 0.3)
		if name == "Clamp" {
			n.Min, n.Max = -0.5, 1.25
		}
	})
	return m.Done(y)
}

// BinarySample makes a graph of one node with two operands.
func (m *Maker) BinarySample(name string, d graph.Datatype) *graph.Graph {
	if name == "Div" {
		m.Lo = 0.5
	}
	a, b, y := m.Input(d, 2, 3, 1, 9), m.Input(d, 3, 5, 1), m.Value(d, 2, 3, 5, 9)
	if name == "PReLU" {
		b = m.Constant(d, 0, 9)
		y = m.Value(d, 2, 3, 1, 9)
	}
	m.Node(name, []int{a, b}, []int{y})
	if n := &m.Graph.Nodes[0]; name == "Add" || name == "Subtract" || name == "Multiply" {
		n.Min, n.Max = -1, 1.5
	}
	return m.Done(y)
}

// Windows are the geometries of the sample convolutions.
var Windows = []struct {
	Name   string
	Window graph.Window
	same   bool
}{
	{"1x1", graph.Window{KernelH: 1, KernelW: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}, false},
	{"3x3 padded", graph.Window{Top: 1, Right: 1, Bottom: 1, Left: 1, KernelH: 3, KernelW: 3, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}, false},
	{"3x2 stride 2 dilation 2", graph.Window{Top: 2, Left: 1, KernelH: 3, KernelW: 2, StrideH: 2, StrideW: 2, DilationH: 2, DilationW: 1}, false},
	{"5x5 same stride 2", graph.Window{KernelH: 5, KernelW: 5, StrideH: 2, StrideW: 2, DilationH: 1, DilationW: 1}, true},
}

func weightedSamples(seed uint64) []Sample {
	var list []Sample
	for _, geometry := range Windows {
		for ti, types := range graph.ConvolutionTypes {
			for bias := range 2 {
				for _, kind := range []string{"Conv2d", "DepthwiseConv2d", "ConvTranspose2d"} {
					if kind == "ConvTranspose2d" && geometry.same || kind == "DepthwiseConv2d" && types.In == graph.QDInt8 && geometry.same {
						continue
					}
					m := NewMaker(seed + uint64(ti))
					g := m.ConvolutionSample(kind, geometry.Window, geometry.same, types, bias == 1)
					list = append(list, Sample{Name: kind + " " + geometry.Name + " " + WeightedName(types), Graph: g, Loose: ToleranceFor(types)})
				}
			}
		}
	}
	for ti, types := range graph.FullyConnectedTypes {
		for _, flags := range []uint32{0, graph.FlagTransposeWeights, graph.FlagReshape2D, graph.FlagTransposeWeights | graph.FlagReshape2D} {
			if flags&graph.FlagTransposeWeights != 0 && types.Filter.Info().Bits == 4 {
				continue
			}
			m := NewMaker(seed + uint64(ti))
			list = append(list, Sample{Name: "FullyConnected " + WeightedName(types), Graph: m.FullyConnectedSample(types, flags), Loose: ToleranceFor(types)})
		}
	}
	for _, types := range graph.BatchMatrixTypes {
		for _, batch := range []int{1, 3} {
			for flags := range uint32(2) {
				name := "BatchMatrixMultiply " + types[0].String() + " " + types[1].String()
				list = append(list, Sample{Name: name, Graph: NewMaker(seed).batchMatrixSample(types, batch, flags), Loose: 1e-2})
			}
		}
	}
	return list
}

// WeightedName names the datatypes for messages.
func WeightedName(w graph.Weighted) string {
	return w.In.String() + "," + w.Filter.String() + "," + w.Out.String()
}

// ToleranceFor returns the tolerance of floats. Some processors accumulate in half precision.
func ToleranceFor(t graph.Weighted) float64 {
	switch {
	case t.Out == graph.FP16:
		return 1e-2
	case t.In == graph.FP32 || t.In == graph.QDInt8:
		return 1e-5
	}
	return 0
}

// ConvolutionSample makes a graph of a convolution.
func (m *Maker) ConvolutionSample(kind string, w graph.Window, same bool, types graph.Weighted, bias bool) *graph.Graph {
	w.Groups, w.GroupIn, w.GroupOut = 2, 3, 5
	if kind == "DepthwiseConv2d" {
		w.Groups, w.GroupIn, w.GroupOut = 7, 1, 1
	}
	m.Lo, m.Hi = -1, 1
	in, out := types.In, w.Groups*w.GroupOut
	dims := []int{2, 9, 8, w.Groups * w.GroupIn}
	var x int
	if in == graph.QDInt8 {
		f := types.Out
		x = m.Quantized(m.Input(f, dims...), 3)
	} else {
		x = m.Input(in, dims...)
	}
	var filter int
	if kind == "DepthwiseConv2d" {
		filter = m.Constant(types.Filter, 3, 1, w.KernelH, w.KernelW, out)
	} else {
		filter = m.Constant(types.Filter, 0, out, w.KernelH, w.KernelW, w.GroupIn)
	}
	b := graph.None
	if bias {
		b = m.Constant(types.Bias, 0, out)
	}
	y := m.Value(types.Out, 2, 1, 1, out)
	m.Node(kind, []int{x, filter, b}, []int{y}, WithWindow(w), func(n *graph.Node) {
		if same {
			n.Flags = graph.FlagSamePadding
		}
		if bias {
			n.Min, n.Max = -1.5, 2
		}
	})
	return m.Fix(y)
}

// Fix finishes the graph and sets the shapes of the outputs to the inferred ones.
func (m *Maker) Fix(outputs ...int) *graph.Graph {
	g := m.Done(outputs...)
	s, err := g.Declared()
	if err != nil {
		panic(err)
	}
	for _, v := range outputs {
		g.Values[v].Shape = s[v]
	}
	return g
}

// FullyConnectedSample makes a graph of a fully connected node.
func (m *Maker) FullyConnectedSample(types graph.Weighted, flags uint32) *graph.Graph {
	m.Lo, m.Hi = -1, 1
	const rows, k, cols = 5, 64, 7
	var x int
	if types.In == graph.QDInt8 {
		x = m.Quantized(m.Input(types.Out, 2, rows, k), 1)
	} else {
		x = m.Input(types.In, 2, rows, k)
	}
	dims, channel := []int{cols, k}, 0
	if flags&graph.FlagTransposeWeights != 0 {
		dims, channel = []int{k, cols}, 1
	}
	filter := m.Constant(types.Filter, channel, dims...)
	bias := m.Constant(types.Bias, 0, cols)
	out := []int{2, rows, cols}
	if flags&graph.FlagReshape2D != 0 {
		out = []int{2 * rows, cols}
	}
	y := m.Value(types.Out, out...)
	m.Node("FullyConnected", []int{x, filter, bias}, []int{y}, func(n *graph.Node) { n.Flags = flags })
	return m.Done(y)
}

func (m *Maker) batchMatrixSample(types [3]graph.Datatype, batch int, flags uint32) *graph.Graph {
	m.Lo, m.Hi = -1, 1
	dims := []int{batch, 16, 5}
	if flags != 0 {
		dims = []int{batch, 5, 16}
	}
	var a, b int
	if types[0] == graph.QDInt8 {
		a = m.Quantized(m.Input(graph.FP32, 2, 3, 4, 16), 1)
		channel := 2
		if flags != 0 {
			channel = 1
		}
		b = m.Constant(types[1], channel, dims...)
	} else {
		a, b = m.Input(types[0], 2, 3, 4, 16), m.Input(types[1], dims...)
	}
	y := m.Value(types[2], 2, 3, 4, 5)
	m.Node("BatchMatrixMultiply", []int{a, b}, []int{y}, func(n *graph.Node) { n.Flags = flags })
	return m.Done(y)
}

func poolSamples(seed uint64) []Sample {
	var list []Sample
	pool := graph.Window{Top: 1, Left: 1, KernelH: 3, KernelW: 2, StrideH: 2, StrideW: 1, DilationH: 1, DilationW: 1}
	open := pool
	open.Top, open.Left = 0, 0
	dilated := pool
	dilated.DilationH, dilated.Top = 2, 2
	for di, d := range graph.ElementwiseTypes {
		same := func(name string, steps int, w graph.Window) {
			m := NewMaker(seed + uint64(di))
			x, y := m.Input(d, 2, 9, 8, 19), m.Value(d, 2, 1, 1, 19)
			m.Graph.Values[y].Quant = m.Graph.Values[x].Quant
			m.Node(name, []int{x}, []int{y}, WithWindow(w))
			list = append(list, Sample{Name: name + " " + d.String(), Graph: m.Fix(y), Steps: steps})
		}
		same("AvgPooling2d", 1, pool)
		same("AvgPooling2d", 1, open)
		same("MaxPooling2d", 0, pool)
		same("MaxPooling2d", 0, dilated)
		same("GlobalAvgPooling2d", 1, graph.Window{})
	}
	for di, d := range []graph.Datatype{graph.FP32, graph.FP16, graph.BF16} {
		m := NewMaker(seed + uint64(di))
		x, y := m.Input(d, 3, 4, 33), m.Value(d, 3, 4, 33)
		m.Node("Softmax", []int{x}, []int{y})
		list = append(list, Sample{Name: "Softmax " + d.String(), Graph: m.Done(y)})
	}
	m := NewMaker(seed)
	x, y, at := m.Input(graph.FP32, 2, 8, 6, 5), m.Value(graph.FP32, 2, 4, 2, 5), m.Value(graph.Int32, 2, 4, 2, 5)
	m.Node("ArgMaxPooling2d", []int{x}, []int{y, at}, WithWindow(graph.Window{KernelH: 2, KernelW: 3, StrideH: 2, StrideW: 3, DilationH: 1, DilationW: 1}))
	return append(list, Sample{Name: "ArgMaxPooling2d", Graph: m.Done(y, at)})
}

func moveSamples(seed uint64) []Sample {
	var list []Sample
	for di, d := range graph.ElementwiseTypes {
		add := func(name string, steps int, in []int, set func(*graph.Node)) {
			m := NewMaker(seed + uint64(di))
			x := m.Input(d, in...)
			y := m.Value(d, in...)
			m.Graph.Values[y].Quant = m.Graph.Values[x].Quant
			m.Node(name, []int{x}, []int{y}, set)
			list = append(list, Sample{Name: name + " " + d.String(), Graph: m.Fix(y), Steps: steps})
		}
		add("Copy", 0, []int{2, 3, 5}, func(*graph.Node) {})
		add("StaticTranspose", 0, []int{2, 3, 4, 5}, func(n *graph.Node) { graph.Params[graph.TransposeParams](n).Perm = []int{2, 0, 3, 1} })
		add("StaticReshape", 0, []int{2, 3, 4}, func(n *graph.Node) { graph.Params[graph.ReshapeParams](n).Sizes = []int{6, 0} })
		add("StaticSlice", 0, []int{4, 5, 6}, func(n *graph.Node) {
			*graph.Params[graph.SliceParams](n) = graph.SliceParams{Offsets: []int{1, 0, 2}, Sizes: []int{2, 5, 3}}
		})
		add("StaticConstantPad", 0, []int{2, 3, 4}, func(n *graph.Node) {
			*graph.Params[graph.PadParams](n) = graph.PadParams{Before: []int{1, 0, 2}, After: []int{0, 3, 1}, Value: 0.7}
		})
		add("StaticResizeBilinear2D", 1, []int{2, 5, 6, 3}, func(n *graph.Node) {
			*graph.Params[graph.ResizeParams](n), n.Flags = graph.ResizeParams{Height: 9, Width: 4}, graph.FlagAlignCorners
		})
		add("StaticResizeBilinear2D", 1, []int{2, 5, 6, 3}, func(n *graph.Node) { *graph.Params[graph.ResizeParams](n) = graph.ResizeParams{Height: 8, Width: 13} })
		for k := 2; k <= 5; k++ {
			m := NewMaker(seed + uint64(di))
			var in []int
			for i := range k {
				in = append(in, m.Input(d, 2, 1+i, 3))
				m.Graph.Values[in[i]].Quant = m.Graph.Values[in[0]].Quant
			}
			y := m.Value(d, 2, k*(k+1)/2, 3)
			m.Graph.Values[y].Quant = m.Graph.Values[in[0]].Quant
			name := []string{"Concatenate2", "Concatenate3", "Concatenate4", "Concatenate5"}[k-2]
			m.Node(name, in, []int{y}, func(n *graph.Node) { graph.Params[graph.ConcatenateParams](n).Axis = 1 - 3*(k%2) })
			list = append(list, Sample{Name: name + " " + d.String(), Graph: m.Done(y)})
		}
	}
	return list
}

// TypeNamed returns the node type of this name.
func TypeNamed(name string) *graph.NodeType {
	for _, t := range graph.NodeTypes {
		if t != nil && t.Name == name {
			return t
		}
	}
	panic("no node type " + name)
}

// SetScalar sets the number in a node's parameters, if there is one.
func SetScalar(n *graph.Node, x float32) {
	switch p := n.Params.(type) {
	case *graph.ScalarParams:
		p.Value = x
	case *graph.PadParams:
		p.Value = x
	}
}
