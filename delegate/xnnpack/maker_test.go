package xnnpack

import (
	"math/rand/v2"

	"github.com/x448/float16"

	"github.com/etrun-go/etrun/kernels/tensor"
)

// maker builds graphs for tests, with random constants.
type maker struct {
	graphBuilder
	r *rand.Rand
	// range of the numbers of inputs and constants
	lo, hi float32
}

func newMaker(seed uint64) *maker {
	return &maker{graphBuilder: newGraphBuilder(), r: rand.New(rand.NewPCG(seed, 1)), lo: -2, hi: 2}
}

// value adds a value of a datatype with typical quantization.
func (m *maker) value(d datatype, dims ...int) int {
	var q quant
	switch d.info().quant {
	case perTensor:
		q.Scale = 0.02 + 0.01*m.r.Float32()
		if d == quint8 {
			q.ZeroPoint = 128 + m.r.Int32N(11) - 5
		} else if d == qint8 {
			q.ZeroPoint = m.r.Int32N(11) - 5
		}
	case perToken:
		q.Nonbatch = 1
	}
	v := m.graphBuilder.value(d, shapeOf(dims...), q)
	m.g.Values[v].ID = encodedID(v)
	return v
}

// input adds an input of the graph.
func (m *maker) input(d datatype, dims ...int) int {
	v := m.value(d, dims...)
	m.g.Values[v].Input = true
	return v
}

// constant adds a constant with random elements. Per-channel scales are along dimension channel.
func (m *maker) constant(d datatype, channel int, dims ...int) int {
	v := m.value(d, dims...)
	x := &m.g.Values[v]
	x.Data = m.bytes(d, x.Shape)
	switch d.info().quant {
	case perTensor:
		if d != quint8 {
			x.Quant.ZeroPoint = 0
		}
	case perChannel:
		x.Quant.ChannelDim = channel
		for range dims[channel] {
			x.Quant.Scales = append(x.Quant.Scales, 0.004+0.002*m.r.Float32())
		}
		if d == qcint4 {
			x.Quant.ZeroPoint = 8
		}
	case perGroup:
		x.Quant.GroupSize, x.Quant.ZeroPoint = 32, 8
		for range dims[0] * dims[1] / 32 {
			x.Quant.Blocks = append(x.Quant.Blocks, toBF16(0.05+0.02*m.r.Float32()))
		}
	}
	return v
}

// bytes returns random elements.
func (m *maker) bytes(d datatype, s shape) []byte {
	b := tensor.AlignedBytes(d.bytes(s))
	switch d {
	case fp32:
		for i := range tensor.View[float32](b) {
			tensor.View[float32](b)[i] = m.number()
		}
	case fp16:
		for i := range tensor.View[uint16](b) {
			tensor.View[uint16](b)[i] = float16.Fromfloat32(m.number()).Bits()
		}
	case bf16:
		for i := range tensor.View[uint16](b) {
			tensor.View[uint16](b)[i] = toBF16(m.number())
		}
	case qint32, qcint32, plainInt32:
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
func (m *maker) node(name string, in, out []int, set ...func(*node)) *node {
	n := m.graphBuilder.node(typeNamed(name), in, out...)
	for _, f := range set {
		f(n)
	}
	return n
}

// quantized adds a node that quantizes v dynamically and returns its output. The nonbatch innermost
// dimensions share a scale.
func (m *maker) quantized(v, nonbatch int) int {
	q := m.value(qdint8, m.g.Values[v].Shape.dims()...)
	m.g.Values[q].Quant.Nonbatch = nonbatch
	m.node("Convert", []int{v}, []int{q})
	return q
}

// done marks values as outputs of the graph, numbers the arguments and returns the graph.
func (m *maker) done(outputs ...int) *graph {
	for _, v := range outputs {
		m.g.Values[v].Output = true
	}
	var lists [2][]int
	for v := range m.g.Values {
		if x := &m.g.Values[v]; x.Input {
			lists[0] = append(lists[0], v)
		} else if x.Output {
			lists[1] = append(lists[1], v)
		}
	}
	m.externals(lists[0], lists[1])
	return m.g
}

// withWindow sets a convolution's or pool's geometry.
func withWindow(w window) func(*node) { return func(n *node) { n.Params = &w } }

// sample is a test graph with its tolerances.
type sample struct {
	name  string
	graph *graph
	// steps is the tolerance of quantized outputs, in steps.
	steps int
	// loose is the tolerance of floats, relative to the largest one, if above the default.
	loose float64
	lo    float32 // smallest number of the inputs, -2 if 0
}

func (s *sample) tolerance(d datatype) float64 {
	switch {
	case d == fp16:
		return max(s.loose, 4e-3)
	case d == bf16:
		return max(s.loose, 8e-3)
	}
	return max(s.loose, 2e-6)
}

// samples returns graphs of one node for every node type and combination of datatypes.
func samples(seed uint64) []sample {
	var list []sample
	add := func(name string, steps int, loose float64, build func(m *maker) *graph) {
		m := newMaker(seed + uint64(len(list)))
		list = append(list, sample{name: name, graph: build(m), steps: steps, loose: loose, lo: max(m.lo, 0)})
	}
	for i := range unaryNodes {
		t := &unaryNodes[i]
		if t.tag == tagConvert {
			continue
		}
		for _, d := range elementwiseTypes {
			add(t.name+" "+d.String(), 1, 0, func(m *maker) *graph { return m.unarySample(t.name, d) })
		}
	}
	for _, pair := range [][2]datatype{{fp32, fp16}, {fp16, fp32}, {fp32, qint8}, {fp32, quint8}, {qint8, fp32}, {quint8, fp32},
		{fp16, qint8}, {qint8, fp16}, {qint8, qint8}, {fp32, bf16}, {bf16, fp32}} {
		add("Convert "+pair[0].String()+" to "+pair[1].String(), 1, 1e-6, func(m *maker) *graph {
			x, y := m.input(pair[0], 2, 3, 7), m.value(pair[1], 2, 3, 7)
			m.node("Convert", []int{x}, []int{y})
			return m.done(y)
		})
	}
	for i := range binaryNodes {
		t := &binaryNodes[i]
		for _, d := range elementwiseTypes {
			add(t.name+" "+d.String(), 1, 0, func(m *maker) *graph { return m.binarySample(t.name, d) })
		}
	}
	list = append(list, weightedSamples(seed)...)
	list = append(list, poolSamples(seed)...)
	return append(list, moveSamples(seed)...)
}

func (m *maker) unarySample(name string, d datatype) *graph {
	switch name {
	case "SquareRoot", "ReciprocalSquareRoot", "Log":
		m.lo = 0.1
	}
	x, y := m.input(d, 2, 3, 37), m.value(d, 2, 3, 37)
	if m.lo > 0 && d.info().quant == perTensor { // only elements of non-negative numbers
		m.g.Values[x].Quant.ZeroPoint = map[datatype]int32{qint8: -128, quint8: 0}[d]
	}
	if name == "Clamp" { // the library requires the same quantization
		m.g.Values[y].Quant = m.g.Values[x].Quant
	}
	m.node(name, []int{x}, []int{y}, func(n *node) {
		setScalar(n, 0.3)
		if name == "Clamp" {
			n.Min, n.Max = -0.5, 1.25
		}
	})
	return m.done(y)
}

func (m *maker) binarySample(name string, d datatype) *graph {
	if name == "Div" {
		m.lo = 0.5
	}
	a, b, y := m.input(d, 2, 3, 1, 9), m.input(d, 3, 5, 1), m.value(d, 2, 3, 5, 9)
	if name == "PReLU" {
		b = m.constant(d, 0, 9)
		y = m.value(d, 2, 3, 1, 9)
	}
	m.node(name, []int{a, b}, []int{y})
	if n := &m.g.Nodes[0]; name == "Add" || name == "Subtract" || name == "Multiply" {
		n.Min, n.Max = -1, 1.5
	}
	return m.done(y)
}

// windows are the geometries of the sample convolutions.
var windows = []struct {
	name string
	w    window
	same bool
}{
	{"1x1", window{kernelH: 1, kernelW: 1, strideH: 1, strideW: 1, dilationH: 1, dilationW: 1}, false},
	{"3x3 padded", window{top: 1, right: 1, bottom: 1, left: 1, kernelH: 3, kernelW: 3, strideH: 1, strideW: 1, dilationH: 1, dilationW: 1}, false},
	{"3x2 stride 2 dilation 2", window{top: 2, left: 1, kernelH: 3, kernelW: 2, strideH: 2, strideW: 2, dilationH: 2, dilationW: 1}, false},
	{"5x5 same stride 2", window{kernelH: 5, kernelW: 5, strideH: 2, strideW: 2, dilationH: 1, dilationW: 1}, true},
}

func weightedSamples(seed uint64) []sample {
	var list []sample
	for _, geometry := range windows {
		for ti, types := range convolutionTypes {
			for bias := range 2 {
				for _, kind := range []string{"Conv2d", "DepthwiseConv2d", "ConvTranspose2d"} {
					if kind == "ConvTranspose2d" && geometry.same || kind == "DepthwiseConv2d" && types.in == qdint8 && geometry.same {
						continue
					}
					m := newMaker(seed + uint64(ti))
					g := m.convolutionSample(kind, geometry.w, geometry.same, types, bias == 1)
					list = append(list, sample{name: kind + " " + geometry.name + " " + weightedName(types), graph: g, loose: looseFor(types)})
				}
			}
		}
	}
	for ti, types := range fullyConnectedTypes {
		for _, flags := range []uint32{0, flagTransposeWeights, flagReshape2D, flagTransposeWeights | flagReshape2D} {
			if flags&flagTransposeWeights != 0 && types.filter.info().bits == 4 {
				continue
			}
			m := newMaker(seed + uint64(ti))
			list = append(list, sample{name: "FullyConnected " + weightedName(types), graph: m.fullyConnectedSample(types, flags), loose: looseFor(types)})
		}
	}
	for _, types := range batchMatrixTypes {
		for _, batch := range []int{1, 3} {
			for flags := range uint32(2) {
				name := "BatchMatrixMultiply " + types[0].String() + " " + types[1].String()
				list = append(list, sample{name: name, graph: newMaker(seed).batchMatrixSample(types, batch, flags), loose: 1e-2})
			}
		}
	}
	return list
}

func weightedName(w weighted) string {
	return w.in.String() + "," + w.filter.String() + "," + w.out.String()
}

// looseFor returns the tolerance of floats. Some processors accumulate in half precision.
func looseFor(t weighted) float64 {
	switch {
	case t.out == fp16:
		return 1e-2
	case t.in == fp32 || t.in == qdint8:
		return 1e-5
	}
	return 0
}

func (m *maker) convolutionSample(kind string, w window, same bool, types weighted, bias bool) *graph {
	w.groups, w.groupIn, w.groupOut = 2, 3, 5
	if kind == "DepthwiseConv2d" {
		w.groups, w.groupIn, w.groupOut = 7, 1, 1
	}
	m.lo, m.hi = -1, 1
	in, out := types.in, w.groups*w.groupOut
	dims := []int{2, 9, 8, w.groups * w.groupIn}
	var x int
	if in == qdint8 {
		f := types.out
		x = m.quantized(m.input(f, dims...), 3)
	} else {
		x = m.input(in, dims...)
	}
	var filter int
	if kind == "DepthwiseConv2d" {
		filter = m.constant(types.filter, 3, 1, w.kernelH, w.kernelW, out)
	} else {
		filter = m.constant(types.filter, 0, out, w.kernelH, w.kernelW, w.groupIn)
	}
	b := none
	if bias {
		b = m.constant(types.bias, 0, out)
	}
	y := m.value(types.out, 2, 1, 1, out)
	m.node(kind, []int{x, filter, b}, []int{y}, withWindow(w), func(n *node) {
		if same {
			n.Flags = flagSamePadding
		}
		if bias {
			n.Min, n.Max = -1.5, 2
		}
	})
	return m.fix(y)
}

// fix finishes the graph and sets the shapes of the outputs to the inferred ones.
func (m *maker) fix(outputs ...int) *graph {
	g := m.done(outputs...)
	s, err := g.declared()
	if err != nil {
		panic(err)
	}
	for _, v := range outputs {
		g.Values[v].Shape = s[v]
	}
	return g
}

func (m *maker) fullyConnectedSample(types weighted, flags uint32) *graph {
	m.lo, m.hi = -1, 1
	const rows, k, cols = 5, 64, 7
	var x int
	if types.in == qdint8 {
		x = m.quantized(m.input(types.out, 2, rows, k), 1)
	} else {
		x = m.input(types.in, 2, rows, k)
	}
	dims, channel := []int{cols, k}, 0
	if flags&flagTransposeWeights != 0 {
		dims, channel = []int{k, cols}, 1
	}
	filter := m.constant(types.filter, channel, dims...)
	bias := m.constant(types.bias, 0, cols)
	out := []int{2, rows, cols}
	if flags&flagReshape2D != 0 {
		out = []int{2 * rows, cols}
	}
	y := m.value(types.out, out...)
	m.node("FullyConnected", []int{x, filter, bias}, []int{y}, func(n *node) { n.Flags = flags })
	return m.done(y)
}

func (m *maker) batchMatrixSample(types [3]datatype, batch int, flags uint32) *graph {
	m.lo, m.hi = -1, 1
	dims := []int{batch, 16, 5}
	if flags != 0 {
		dims = []int{batch, 5, 16}
	}
	var a, b int
	if types[0] == qdint8 {
		a = m.quantized(m.input(fp32, 2, 3, 4, 16), 1)
		channel := 2
		if flags != 0 {
			channel = 1
		}
		b = m.constant(types[1], channel, dims...)
	} else {
		a, b = m.input(types[0], 2, 3, 4, 16), m.input(types[1], dims...)
	}
	y := m.value(types[2], 2, 3, 4, 5)
	m.node("BatchMatrixMultiply", []int{a, b}, []int{y}, func(n *node) { n.Flags = flags })
	return m.done(y)
}

func poolSamples(seed uint64) []sample {
	var list []sample
	pool := window{top: 1, left: 1, kernelH: 3, kernelW: 2, strideH: 2, strideW: 1, dilationH: 1, dilationW: 1}
	open := pool
	open.top, open.left = 0, 0
	dilated := pool
	dilated.dilationH, dilated.top = 2, 2
	for di, d := range elementwiseTypes {
		same := func(name string, steps int, w window) {
			m := newMaker(seed + uint64(di))
			x, y := m.input(d, 2, 9, 8, 19), m.value(d, 2, 1, 1, 19)
			m.g.Values[y].Quant = m.g.Values[x].Quant
			m.node(name, []int{x}, []int{y}, withWindow(w))
			list = append(list, sample{name: name + " " + d.String(), graph: m.fix(y), steps: steps})
		}
		same("AvgPooling2d", 1, pool)
		same("AvgPooling2d", 1, open)
		same("MaxPooling2d", 0, pool)
		same("MaxPooling2d", 0, dilated)
		same("GlobalAvgPooling2d", 1, window{})
	}
	for di, d := range []datatype{fp32, fp16, bf16} {
		m := newMaker(seed + uint64(di))
		x, y := m.input(d, 3, 4, 33), m.value(d, 3, 4, 33)
		m.node("Softmax", []int{x}, []int{y})
		list = append(list, sample{name: "Softmax " + d.String(), graph: m.done(y)})
	}
	m := newMaker(seed)
	x, y, at := m.input(fp32, 2, 8, 6, 5), m.value(fp32, 2, 4, 2, 5), m.value(plainInt32, 2, 4, 2, 5)
	m.node("ArgMaxPooling2d", []int{x}, []int{y, at}, withWindow(window{kernelH: 2, kernelW: 3, strideH: 2, strideW: 3, dilationH: 1, dilationW: 1}))
	return append(list, sample{name: "ArgMaxPooling2d", graph: m.done(y, at)})
}

func moveSamples(seed uint64) []sample {
	var list []sample
	for di, d := range elementwiseTypes {
		add := func(name string, steps int, in []int, set func(*node)) {
			m := newMaker(seed + uint64(di))
			x := m.input(d, in...)
			y := m.value(d, in...)
			m.g.Values[y].Quant = m.g.Values[x].Quant
			m.node(name, []int{x}, []int{y}, set)
			list = append(list, sample{name: name + " " + d.String(), graph: m.fix(y), steps: steps})
		}
		add("Copy", 0, []int{2, 3, 5}, func(*node) {})
		add("StaticTranspose", 0, []int{2, 3, 4, 5}, func(n *node) { params[transposeParams](n).perm = []int{2, 0, 3, 1} })
		add("StaticReshape", 0, []int{2, 3, 4}, func(n *node) { params[reshapeParams](n).sizes = []int{6, 0} })
		add("StaticSlice", 0, []int{4, 5, 6}, func(n *node) { *params[sliceParams](n) = sliceParams{[]int{1, 0, 2}, []int{2, 5, 3}} })
		add("StaticConstantPad", 0, []int{2, 3, 4}, func(n *node) { *params[padParams](n) = padParams{[]int{1, 0, 2}, []int{0, 3, 1}, 0.7} })
		add("StaticResizeBilinear2D", 1, []int{2, 5, 6, 3}, func(n *node) { *params[resizeParams](n), n.Flags = resizeParams{9, 4}, flagAlignCorners })
		add("StaticResizeBilinear2D", 1, []int{2, 5, 6, 3}, func(n *node) { *params[resizeParams](n) = resizeParams{8, 13} })
		for k := 2; k <= 5; k++ {
			m := newMaker(seed + uint64(di))
			var in []int
			for i := range k {
				in = append(in, m.input(d, 2, 1+i, 3))
				m.g.Values[in[i]].Quant = m.g.Values[in[0]].Quant
			}
			y := m.value(d, 2, k*(k+1)/2, 3)
			m.g.Values[y].Quant = m.g.Values[in[0]].Quant
			name := []string{"Concatenate2", "Concatenate3", "Concatenate4", "Concatenate5"}[k-2]
			m.node(name, in, []int{y}, func(n *node) { params[concatenateParams](n).axis = 1 - 3*(k%2) })
			list = append(list, sample{name: name + " " + d.String(), graph: m.done(y)})
		}
	}
	return list
}
