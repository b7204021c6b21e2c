package xnnpack

import (
	"math/rand/v2"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/x448/float16"
)

// maker builds graphs for tests, with random constants.
type maker struct {
	graph.Builder
	r *rand.Rand
	// range of the numbers of inputs and constants
	lo, hi float32
}

func newMaker(seed uint64) *maker {
	return &maker{Builder: graph.NewBuilder(), r: rand.New(rand.NewPCG(seed, 1)), lo: -2, hi: 2}
}

// value adds a value of a datatype with typical quantization.
func (m *maker) value(d graph.Datatype, dims ...int) int {
	var q graph.Quant
	switch d.Info().Quant {
	case graph.PerTensor:
		q.Scale = 0.02 + 0.01*m.r.Float32()
		if d == graph.QUInt8 {
			q.ZeroPoint = 128 + m.r.Int32N(11) - 5
		} else if d == graph.QInt8 {
			q.ZeroPoint = m.r.Int32N(11) - 5
		}
	case graph.PerToken:
		q.Nonbatch = 1
	}
	v := m.Builder.Value(d, graph.ShapeOf(dims...), q)
	m.Graph.Values[v].ID = encodedID(v)
	return v
}

// input adds an input of the graph.
func (m *maker) input(d graph.Datatype, dims ...int) int {
	v := m.value(d, dims...)
	m.Graph.Values[v].Input = true
	return v
}

// constant adds a constant with random elements. Per-channel scales are along dimension channel.
func (m *maker) constant(d graph.Datatype, channel int, dims ...int) int {
	v := m.value(d, dims...)
	x := &m.Graph.Values[v]
	x.Data = m.bytes(d, x.Shape)
	switch d.Info().Quant {
	case graph.PerTensor:
		if d != graph.QUInt8 {
			x.Quant.ZeroPoint = 0
		}
	case graph.PerChannel:
		x.Quant.ChannelDim = channel
		for range dims[channel] {
			x.Quant.Scales = append(x.Quant.Scales, 0.004+0.002*m.r.Float32())
		}
		if d == graph.QCInt4 {
			x.Quant.ZeroPoint = 8
		}
	case graph.PerGroup:
		x.Quant.GroupSize, x.Quant.ZeroPoint = 32, 8
		for range dims[0] * dims[1] / 32 {
			x.Quant.Blocks = append(x.Quant.Blocks, graph.ToBF16(0.05+0.02*m.r.Float32()))
		}
	}
	return v
}

// bytes returns random elements.
func (m *maker) bytes(d graph.Datatype, s graph.Shape) []byte {
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
			tensor.View[int32](b)[i] = m.r.Int32N(2001) - 1000
		}
	default:
		for i := range b {
			b[i] = uint8(m.r.Uint32())
		}
	}
	return b
}

func (m *maker) number() float32 { return m.lo + (m.hi-m.lo)*m.r.Float32() }

// node adds a node of a type by name.
func (m *maker) node(name string, in, out []int, set ...func(*graph.Node)) *graph.Node {
	n := m.Builder.Node(typeNamed(name), in, out...)
	for _, f := range set {
		f(n)
	}
	return n
}

// quantized adds a node that quantizes v dynamically and returns its output. The nonbatch innermost
// dimensions share a scale.
func (m *maker) quantized(v, nonbatch int) int {
	q := m.value(graph.QDInt8, m.Graph.Values[v].Shape.Dims()...)
	m.Graph.Values[q].Quant.Nonbatch = nonbatch
	m.node("Convert", []int{v}, []int{q})
	return q
}

// done marks values as outputs of the graph, numbers the arguments and returns the graph.
func (m *maker) done(outputs ...int) *graph.Graph {
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

// withWindow sets a convolution's or pool's geometry.
func withWindow(w graph.Window) func(*graph.Node) { return func(n *graph.Node) { n.Params = &w } }

// sample is a test graph with its tolerances.
type sample struct {
	name  string
	graph *graph.Graph
	// steps is the tolerance of quantized outputs, in steps.
	steps int
	// loose is the tolerance of floats, relative to the largest one, if above the default.
	loose float64
	lo    float32 // smallest number of the inputs, -2 if 0
}

func (s *sample) tolerance(d graph.Datatype) float64 {
	switch {
	case d == graph.FP16:
		return max(s.loose, 4e-3)
	case d == graph.BF16:
		return max(s.loose, 8e-3)
	}
	return max(s.loose, 2e-6)
}

// samples returns graphs of one node for every node type and combination of datatypes.
func samples(seed uint64) []sample {
	var list []sample
	add := func(name string, steps int, loose float64, build func(m *maker) *graph.Graph) {
		m := newMaker(seed + uint64(len(list)))
		list = append(list, sample{name: name, graph: build(m), steps: steps, loose: loose, lo: max(m.lo, 0)})
	}
	for i := range graph.UnaryNodes {
		t := &graph.UnaryNodes[i]
		if t.Tag == graph.TagConvert {
			continue
		}
		for _, d := range graph.ElementwiseTypes {
			add(t.Name+" "+d.String(), 1, 0, func(m *maker) *graph.Graph { return m.unarySample(t.Name, d) })
		}
	}
	for _, pair := range [][2]graph.Datatype{{graph.FP32, graph.FP16}, {graph.FP16, graph.FP32}, {graph.FP32, graph.QInt8}, {graph.FP32, graph.QUInt8}, {graph.QInt8, graph.FP32}, {graph.QUInt8, graph.FP32},
		{graph.FP16, graph.QInt8}, {graph.QInt8, graph.FP16}, {graph.QInt8, graph.QInt8}, {graph.FP32, graph.BF16}, {graph.BF16, graph.FP32}} {
		add("Convert "+pair[0].String()+" to "+pair[1].String(), 1, 1e-6, func(m *maker) *graph.Graph {
			x, y := m.input(pair[0], 2, 3, 7), m.value(pair[1], 2, 3, 7)
			m.node("Convert", []int{x}, []int{y})
			return m.done(y)
		})
	}
	for i := range graph.BinaryNodes {
		t := &graph.BinaryNodes[i]
		for _, d := range graph.ElementwiseTypes {
			add(t.Name+" "+d.String(), 1, 0, func(m *maker) *graph.Graph { return m.binarySample(t.Name, d) })
		}
	}
	list = append(list, weightedSamples(seed)...)
	list = append(list, poolSamples(seed)...)
	return append(list, moveSamples(seed)...)
}

func (m *maker) unarySample(name string, d graph.Datatype) *graph.Graph {
	switch name {
	case "SquareRoot", "ReciprocalSquareRoot", "Log":
		m.lo = 0.1
	}
	x, y := m.input(d, 2, 3, 37), m.value(d, 2, 3, 37)
	if m.lo > 0 && d.Info().Quant == graph.PerTensor { // only elements of non-negative numbers
		m.Graph.Values[x].Quant.ZeroPoint = map[graph.Datatype]int32{graph.QInt8: -128, graph.QUInt8: 0}[d]
	}
	if name == "Clamp" { // the library requires the same quantization
		m.Graph.Values[y].Quant = m.Graph.Values[x].Quant
	}
	m.node(name, []int{x}, []int{y}, func(n *graph.Node) {
		setScalar(n, 0.3)
		if name == "Clamp" {
			n.Min, n.Max = -0.5, 1.25
		}
	})
	return m.done(y)
}

func (m *maker) binarySample(name string, d graph.Datatype) *graph.Graph {
	if name == "Div" {
		m.lo = 0.5
	}
	a, b, y := m.input(d, 2, 3, 1, 9), m.input(d, 3, 5, 1), m.value(d, 2, 3, 5, 9)
	if name == "PReLU" {
		b = m.constant(d, 0, 9)
		y = m.value(d, 2, 3, 1, 9)
	}
	m.node(name, []int{a, b}, []int{y})
	if n := &m.Graph.Nodes[0]; name == "Add" || name == "Subtract" || name == "Multiply" {
		n.Min, n.Max = -1, 1.5
	}
	return m.done(y)
}

// windows are the geometries of the sample convolutions.
var windows = []struct {
	name string
	w    graph.Window
	same bool
}{
	{"1x1", graph.Window{KernelH: 1, KernelW: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}, false},
	{"3x3 padded", graph.Window{Top: 1, Right: 1, Bottom: 1, Left: 1, KernelH: 3, KernelW: 3, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}, false},
	{"3x2 stride 2 dilation 2", graph.Window{Top: 2, Left: 1, KernelH: 3, KernelW: 2, StrideH: 2, StrideW: 2, DilationH: 2, DilationW: 1}, false},
	{"5x5 same stride 2", graph.Window{KernelH: 5, KernelW: 5, StrideH: 2, StrideW: 2, DilationH: 1, DilationW: 1}, true},
}

func weightedSamples(seed uint64) []sample {
	var list []sample
	for _, geometry := range windows {
		for ti, types := range graph.ConvolutionTypes {
			for bias := range 2 {
				for _, kind := range []string{"Conv2d", "DepthwiseConv2d", "ConvTranspose2d"} {
					if kind == "ConvTranspose2d" && geometry.same || kind == "DepthwiseConv2d" && types.In == graph.QDInt8 && geometry.same {
						continue
					}
					m := newMaker(seed + uint64(ti))
					g := m.convolutionSample(kind, geometry.w, geometry.same, types, bias == 1)
					list = append(list, sample{name: kind + " " + geometry.name + " " + weightedName(types), graph: g, loose: looseFor(types)})
				}
			}
		}
	}
	for ti, types := range graph.FullyConnectedTypes {
		for _, flags := range []uint32{0, graph.FlagTransposeWeights, graph.FlagReshape2D, graph.FlagTransposeWeights | graph.FlagReshape2D} {
			if flags&graph.FlagTransposeWeights != 0 && types.Filter.Info().Bits == 4 {
				continue
			}
			m := newMaker(seed + uint64(ti))
			list = append(list, sample{name: "FullyConnected " + weightedName(types), graph: m.fullyConnectedSample(types, flags), loose: looseFor(types)})
		}
	}
	for _, types := range graph.BatchMatrixTypes {
		for _, batch := range []int{1, 3} {
			for flags := range uint32(2) {
				name := "BatchMatrixMultiply " + types[0].String() + " " + types[1].String()
				list = append(list, sample{name: name, graph: newMaker(seed).batchMatrixSample(types, batch, flags), loose: 1e-2})
			}
		}
	}
	return list
}

func weightedName(w graph.Weighted) string {
	return w.In.String() + "," + w.Filter.String() + "," + w.Out.String()
}

// looseFor returns the tolerance of floats. Some processors accumulate in half precision.
func looseFor(t graph.Weighted) float64 {
	switch {
	case t.Out == graph.FP16:
		return 1e-2
	case t.In == graph.FP32 || t.In == graph.QDInt8:
		return 1e-5
	}
	return 0
}

func (m *maker) convolutionSample(kind string, w graph.Window, same bool, types graph.Weighted, bias bool) *graph.Graph {
	w.Groups, w.GroupIn, w.GroupOut = 2, 3, 5
	if kind == "DepthwiseConv2d" {
		w.Groups, w.GroupIn, w.GroupOut = 7, 1, 1
	}
	m.lo, m.hi = -1, 1
	in, out := types.In, w.Groups*w.GroupOut
	dims := []int{2, 9, 8, w.Groups * w.GroupIn}
	var x int
	if in == graph.QDInt8 {
		f := types.Out
		x = m.quantized(m.input(f, dims...), 3)
	} else {
		x = m.input(in, dims...)
	}
	var filter int
	if kind == "DepthwiseConv2d" {
		filter = m.constant(types.Filter, 3, 1, w.KernelH, w.KernelW, out)
	} else {
		filter = m.constant(types.Filter, 0, out, w.KernelH, w.KernelW, w.GroupIn)
	}
	b := graph.None
	if bias {
		b = m.constant(types.Bias, 0, out)
	}
	y := m.value(types.Out, 2, 1, 1, out)
	m.node(kind, []int{x, filter, b}, []int{y}, withWindow(w), func(n *graph.Node) {
		if same {
			n.Flags = graph.FlagSamePadding
		}
		if bias {
			n.Min, n.Max = -1.5, 2
		}
	})
	return m.fix(y)
}

// fix finishes the graph and sets the shapes of the outputs to the inferred ones.
func (m *maker) fix(outputs ...int) *graph.Graph {
	g := m.done(outputs...)
	s, err := g.Declared()
	if err != nil {
		panic(err)
	}
	for _, v := range outputs {
		g.Values[v].Shape = s[v]
	}
	return g
}

func (m *maker) fullyConnectedSample(types graph.Weighted, flags uint32) *graph.Graph {
	m.lo, m.hi = -1, 1
	const rows, k, cols = 5, 64, 7
	var x int
	if types.In == graph.QDInt8 {
		x = m.quantized(m.input(types.Out, 2, rows, k), 1)
	} else {
		x = m.input(types.In, 2, rows, k)
	}
	dims, channel := []int{cols, k}, 0
	if flags&graph.FlagTransposeWeights != 0 {
		dims, channel = []int{k, cols}, 1
	}
	filter := m.constant(types.Filter, channel, dims...)
	bias := m.constant(types.Bias, 0, cols)
	out := []int{2, rows, cols}
	if flags&graph.FlagReshape2D != 0 {
		out = []int{2 * rows, cols}
	}
	y := m.value(types.Out, out...)
	m.node("FullyConnected", []int{x, filter, bias}, []int{y}, func(n *graph.Node) { n.Flags = flags })
	return m.done(y)
}

func (m *maker) batchMatrixSample(types [3]graph.Datatype, batch int, flags uint32) *graph.Graph {
	m.lo, m.hi = -1, 1
	dims := []int{batch, 16, 5}
	if flags != 0 {
		dims = []int{batch, 5, 16}
	}
	var a, b int
	if types[0] == graph.QDInt8 {
		a = m.quantized(m.input(graph.FP32, 2, 3, 4, 16), 1)
		channel := 2
		if flags != 0 {
			channel = 1
		}
		b = m.constant(types[1], channel, dims...)
	} else {
		a, b = m.input(types[0], 2, 3, 4, 16), m.input(types[1], dims...)
	}
	y := m.value(types[2], 2, 3, 4, 5)
	m.node("BatchMatrixMultiply", []int{a, b}, []int{y}, func(n *graph.Node) { n.Flags = flags })
	return m.done(y)
}

func poolSamples(seed uint64) []sample {
	var list []sample
	pool := graph.Window{Top: 1, Left: 1, KernelH: 3, KernelW: 2, StrideH: 2, StrideW: 1, DilationH: 1, DilationW: 1}
	open := pool
	open.Top, open.Left = 0, 0
	dilated := pool
	dilated.DilationH, dilated.Top = 2, 2
	for di, d := range graph.ElementwiseTypes {
		same := func(name string, steps int, w graph.Window) {
			m := newMaker(seed + uint64(di))
			x, y := m.input(d, 2, 9, 8, 19), m.value(d, 2, 1, 1, 19)
			m.Graph.Values[y].Quant = m.Graph.Values[x].Quant
			m.node(name, []int{x}, []int{y}, withWindow(w))
			list = append(list, sample{name: name + " " + d.String(), graph: m.fix(y), steps: steps})
		}
		same("AvgPooling2d", 1, pool)
		same("AvgPooling2d", 1, open)
		same("MaxPooling2d", 0, pool)
		same("MaxPooling2d", 0, dilated)
		same("GlobalAvgPooling2d", 1, graph.Window{})
	}
	for di, d := range []graph.Datatype{graph.FP32, graph.FP16, graph.BF16} {
		m := newMaker(seed + uint64(di))
		x, y := m.input(d, 3, 4, 33), m.value(d, 3, 4, 33)
		m.node("Softmax", []int{x}, []int{y})
		list = append(list, sample{name: "Softmax " + d.String(), graph: m.done(y)})
	}
	m := newMaker(seed)
	x, y, at := m.input(graph.FP32, 2, 8, 6, 5), m.value(graph.FP32, 2, 4, 2, 5), m.value(graph.Int32, 2, 4, 2, 5)
	m.node("ArgMaxPooling2d", []int{x}, []int{y, at}, withWindow(graph.Window{KernelH: 2, KernelW: 3, StrideH: 2, StrideW: 3, DilationH: 1, DilationW: 1}))
	return append(list, sample{name: "ArgMaxPooling2d", graph: m.done(y, at)})
}

func moveSamples(seed uint64) []sample {
	var list []sample
	for di, d := range graph.ElementwiseTypes {
		add := func(name string, steps int, in []int, set func(*graph.Node)) {
			m := newMaker(seed + uint64(di))
			x := m.input(d, in...)
			y := m.value(d, in...)
			m.Graph.Values[y].Quant = m.Graph.Values[x].Quant
			m.node(name, []int{x}, []int{y}, set)
			list = append(list, sample{name: name + " " + d.String(), graph: m.fix(y), steps: steps})
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
			m := newMaker(seed + uint64(di))
			var in []int
			for i := range k {
				in = append(in, m.input(d, 2, 1+i, 3))
				m.Graph.Values[in[i]].Quant = m.Graph.Values[in[0]].Quant
			}
			y := m.value(d, 2, k*(k+1)/2, 3)
			m.Graph.Values[y].Quant = m.Graph.Values[in[0]].Quant
			name := []string{"Concatenate2", "Concatenate3", "Concatenate4", "Concatenate5"}[k-2]
			m.node(name, in, []int{y}, func(n *graph.Node) { graph.Params[graph.ConcatenateParams](n).Axis = 1 - 3*(k%2) })
			list = append(list, sample{name: name + " " + d.String(), graph: m.done(y)})
		}
	}
	return list
}
