package goengine

import (
	"math"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/x448/float16"
)

// int8Elements is the parallel loop of an elementwise node of bytes.
type int8Elements struct {
	op      elementsOp
	q       simd.Quantized
	scale   float32
	half    bool
	in, out []uint8
	x, y    []float32
	table   *[256]uint8
	tokens  []token
	row     int       // elements that share a token
	f       unaryFunc // of which the table is made; nil if it is given
	units   int
	grain   int
}

// elementsOp is the operation of an int8Elements loop.
type elementsOp int

const (
	lookUp elementsOp = iota
	quantizeAll
	dequantizeAll
	quantizeTokens
)

// Range implements cpu.Body over elements, or over rows of elements that share a token.
func (l *int8Elements) Range(_, lo, hi int) {
	switch l.op {
	case lookUp:
		simd.Lookup(l.out[lo:hi], l.in[lo:hi], l.table)
	case quantizeAll:
		quantizeFixed(&l.q, l.out[lo:hi], l.x[lo:hi], l.scale)
	case dequantizeAll:
		l.q.Dequantize(l.y[lo:hi], l.in[lo:hi], l.scale)
	case quantizeTokens:
		for g := lo; g < hi; g++ {
			x := l.x[g*l.row:][:l.row]
			t := dynamicToken(x)
			l.tokens[g] = t
			q := simd.Quantized{Signed: true, Zero: t.zero, Lo: -128, Hi: 127}
			q.Quantize(l.out[g*l.row:], x, reciprocal(t, l.half))
		}
	}
}

func (l *int8Elements) bind(e *frame, n *graph.Node) {
	in, out := &e.graph.Values[n.In[0]], &e.graph.Values[n.Out[0]]
	l.units, l.grain = e.shapes[n.Out[0]].Numel(), elementsPerRange/2
	switch l.op {
	case lookUp:
		if l.table == nil {
			l.table = tableOf(n, in, out, l.f)
		}
		l.in, l.out, l.grain = e.data[n.In[0]][:l.units], e.data[n.Out[0]][:l.units], elementsPerRange
	case dequantizeAll:
		l.q, _ = bytesAs(in)
		l.scale, l.in, l.y = in.Quant.Scale, e.data[n.In[0]][:l.units], e.result(n.Out[0])
	case quantizeAll:
		l.q, _ = bytesAs(out)
		l.scale, l.out, l.x = out.Quant.Scale, e.data[n.Out[0]][:l.units], e.load(0, n.In[0])
	case quantizeTokens:
		s := e.shapes[n.Out[0]]
		groups := s.Leading(s.Rank - out.Quant.Nonbatch)
		e.tokens[n.Out[0]] = pack.Grow(e.tokens[n.Out[0]], groups)
		l.half, l.tokens, l.out, l.row = in.Datatype == graph.FP16, e.tokens[n.Out[0]], e.data[n.Out[0]], l.units/groups
		l.units, l.grain = groups, 1+elementsPerRange/4/l.row
	}
}

func (l *int8Elements) run(e *frame, n *graph.Node) {
	if l.op == quantizeTokens {
		l.x = e.load(0, n.In[0])
	}
	e.Parallel(l.units, l.grain, l)
}

// tableOf computes the result of an elementwise node from bytes to bytes for every byte.
func tableOf(n *graph.Node, from, to *graph.Value, f unaryFunc) *[256]uint8 {
	table, x, y := new([256]uint8), make([]float32, 256), make([]float32, 256)
	for i := range table {
		table[i] = uint8(i)
	}
	in, _ := bytesAs(from)
	out, _ := bytesAs(to)
	in.Dequantize(x, table[:], from.Quant.Scale)
	f(n, y, x)
	quantizeFixed(&out, table[:], y, to.Quant.Scale)
	return table
}

// copyFloats is the loop of conversions between floats.
type copyFloats struct{ x, y []float32 }

func (l *copyFloats) bind(e *frame, n *graph.Node) { l.x, l.y = e.load(0, n.In[0]), e.result(n.Out[0]) }

func (l *copyFloats) run(*frame, *graph.Node) { copy(l.y, l.x) }

// convert returns the loop of a conversion.
func convert(e *frame, n *graph.Node) loop {
	in, out := e.graph.Values[n.In[0]].Datatype, e.graph.Values[n.Out[0]].Datatype
	switch {
	case out == graph.QDInt8:
		return &int8Elements{op: quantizeTokens}
	case mapsBytes(e.graph, n):
		return &int8Elements{op: lookUp, f: func(_ *graph.Node, dst, src []float32) { copy(dst, src) }}
	case readsBytes(e.graph, n) && out == graph.FP32:
		return &int8Elements{op: dequantizeAll}
	case in == graph.FP32 && writesBytes(e.graph, n):
		return &int8Elements{op: quantizeAll}
	}
	return e.onFloats(n, &copyFloats{})
}

// int8Binary is the parallel loop of a function of two byte operands. It runs over rows that are
// contiguous in both operands, split into chunks.
type int8Binary struct {
	f         simd.Binary
	op        simd.BinaryOp
	dst       []uint8
	operands  [2][]uint8
	outer     graph.Shape
	step      [2]graph.Steps
	one       [2]int // step between elements of a row: 1, or 0 if the element is repeated
	n, chunks int
	row       int // elements of a row that one operand repeats, 0 if neither does
	repeats   int // index of that operand
	e         *frame
}

// byteChunk is the number of elements of a row that are computed at a time.
const byteChunk = 4096

var binaryOps = map[uint8]simd.BinaryOp{graph.TagAdd: simd.BinaryAdd, graph.TagMultiply: simd.BinaryMul, graph.TagSubtract: simd.BinarySub}

func (l *int8Binary) bind(e *frame, n *graph.Node) {
	out := &e.graph.Values[n.Out[0]]
	a, b := &e.graph.Values[n.In[0]].Quant, &e.graph.Values[n.In[1]].Quant
	q, _ := bytesAs(out)
	l.f = simd.Binary{A: simd.Operand{Zero: a.ZeroPoint, Scale: a.Scale}, B: simd.Operand{Zero: b.ZeroPoint, Scale: b.Scale},
		Min: n.Min, Max: n.Max, Scale: out.Quant.Scale, Out: q}
	l.e, l.dst, l.operands = e, e.data[n.Out[0]], [2][]uint8{e.data[n.In[0]], e.data[n.In[1]]}
	for i := range e.workers {
		if w := &e.workers[i]; w.binary == nil {
			w.binary = new(simd.Binary)
		}
	}
	s := e.shapes[n.Out[0]]
	l.plan(s, repeated(e.shapes[n.In[0]], s), repeated(e.shapes[n.In[1]], s))
}

func (l *int8Binary) run(e *frame, _ *graph.Node) {
	e.Parallel(l.outer.Numel()*l.chunks, 1+elementsPerRange/4/min(l.n, l.chunk()), l)
}

// plan merges dimensions. Rows that one operand repeats while the other
// continues are merged into one row; the repeated operand is materialized chunk by chunk.
func (l *int8Binary) plan(out graph.Shape, a, b graph.Steps) {
	dims, sa, sb := merged(out, a, b)
	last := dims.Rank - 1
	l.n, l.row, l.one, l.step = dims.Dim[last], 0, [2]int{sa[last], sb[last]}, [2]graph.Steps{sa, sb}
	if up := last - 1; up >= 0 && l.one == [2]int{1, 1} && 2*l.n <= byteChunk && (sa[up] == 0 || sb[up] == 0) {
		l.row, l.repeats = l.n, 0
		if sb[up] == 0 {
			l.repeats = 1
		}
		l.n *= dims.Dim[up]
		last = up
	}
	l.outer = dims
	l.outer.Rank = last
	l.chunks = graph.CeilDiv(l.n, l.chunk())
}

// chunk returns the number of elements that are computed at a time: whole rows if one operand
// repeats them.
func (l *int8Binary) chunk() int {
	if l.row > 0 {
		return byteChunk / l.row * l.row
	}
	return byteChunk
}

// Range computes chunks of rows.
func (l *int8Binary) Range(worker, lo, hi int) {
	own := &l.e.workers[worker]
	f := own.binary
	*f = l.f
	for task := lo; task < hi; task++ {
		row, from := task/l.chunks, task%l.chunks*l.chunk()
		n := min(l.chunk(), l.n-from)
		var x [2][]uint8
		for k := range x {
			at := l.offset(k, row)
			switch {
			case l.row > 0 && k == l.repeats:
				x[k] = repeatRow(&own.repeated[k], l.operands[k][at:][:l.row], n)
			case l.one[k] == 1:
				x[k] = l.operands[k][at+from:][:n]
			default:
				x[k] = repeatRow(&own.repeated[k], l.operands[k][at:][:1], n)
			}
		}
		f.Apply(l.op, l.dst[row*l.n+from:][:n], x[0], x[1])
	}
}

// offset returns the offset of a row in an operand.
func (l *int8Binary) offset(operand, row int) (at int) {
	for i := l.outer.Rank - 1; i >= 0; i-- {
		at += row % l.outer.Dim[i] * l.step[operand][i]
		row /= l.outer.Dim[i]
	}
	return at
}

// repeatRow returns n elements of repetitions of row, in *memory.
func repeatRow(memory *[]uint8, row []uint8, n int) []uint8 {
	b := pack.Grow(*memory, n)
	*memory = b
	for done := copy(b, row); done < n; done *= 2 {
		copy(b[done:], b[:done])
	}
	return b
}

// int8MaxPool computes the largest element of each window of bytes, which keep their scale. Padding is the smallest value. Where windows
// are mostly padding, bytes are decoded.
type int8MaxPool struct {
	floats decoded
	staged bool // windows are not mostly padding
	e      *frame
	node   *graph.Node
	stage  stage
	off    []int
	q      simd.Quantized
	a      []uint8
	out    graph.Shape
}

func (p *int8MaxPool) bind(e *frame, n *graph.Node) {
	in, out := e.shapes[n.In[0]], e.shapes[n.Out[0]]
	p.e, p.node, p.out = e, n, out
	p.q, _ = bytesAs(&e.graph.Values[n.In[0]])
	if p.staged = p.stage.plan(n, in, out, -in.Dim[3]&(simd.DotCols-1)); p.staged {
		p.off = p.stage.Offsets(p.off[:0], false)
	}
}

func (p *int8MaxPool) run(e *frame, n *graph.Node) {
	if !p.staged {
		p.floats.run(e, n)
		return
	}
	p.a = e.data[n.In[0]]
	if p.stage.needed {
		e.staged = pack.Grow(e.staged, int(p.stage.bytes()))
		p.stage.Copy(e.staged, p.a, func(int) uint8 { return uint8(p.q.Lo) })
		p.a = e.staged
	}
	e.Parallel(p.out.Leading(2), max(1, elementsPerRange*4/(p.out.Trailing(2)*len(p.off))), p)
	if n.Min != -graph.Inf || n.Max != graph.Inf {
		e.boundBytes(n)
	}
}

// Range computes lines of the output.
func (p *int8MaxPool) Range(_, lo, hi int) {
	c := p.out.Dim[3]
	for line := lo; line < hi; line++ {
		at := p.stage.Offset(line/p.out.Dim[1], line%p.out.Dim[1], 0)
		simd.MaximumRow(p.q.Signed, p.e.data[p.node.Out[0]][line*p.out.Dim[2]*c:], c, p.a, at, p.stage.Stride[2]*c, p.off, p.out.Dim[2], c)
	}
}

// boundBytes clamps a node's output to its bounds.
func (e *frame) boundBytes(n *graph.Node) {
	y := e.result(n.Out[0])
	e.decode(y, n.Out[0])
	boundFloats(n, y)
	e.store(n.Out[0])
}

// reciprocal returns the factor that converts numbers to elements. For halves the factor is rounded
// to a half, too.
func reciprocal(t token, half bool) float32 {
	x := 1 / t.scale
	if half {
		x = float16.Fromfloat32(x).Float32()
	}
	return x
}

// tableWork is of functions of bytes.
func tableWork(w *work, _ *graph.Graph, _ *graph.Node, _ []graph.Shape, _ int) {
	w.kept = graph.Plus(w.kept, tableBytes)
}

const tableBytes = 256

// convertWork is of conversions. A dynamically quantized value has a token for each group.
func convertWork(w *work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) {
	in, out := &g.Values[n.In[0]], &g.Values[n.Out[0]]
	switch {
	case out.Datatype == graph.QDInt8:
		w.slot(0, numberBytes(g, n.In[0], s))
		w.kept = graph.Plus(w.kept, graph.Times(8, s[n.Out[0]].Leading(max(0, s[n.Out[0]].Rank-out.Quant.Nonbatch))))
	case mapsBytes(g, n):
		tableWork(w, g, n, s, threads)
	case readsBytes(g, n) && out.Datatype == graph.FP32, in.Datatype == graph.FP32 && writesBytes(g, n):
	default:
		decodeWork(w, g, n, s, threads)
	}
}

// byteBinaryWork is of functions of two operands of bytes.
func byteBinaryWork(w *work, _ *graph.Graph, _ *graph.Node, _ []graph.Shape, _ int) {
	w.tile = max(w.tile, 2*byteChunk)
}

// maxPoolWork is of largest bytes: the input with padding. Those with bounds, or windows that are mostly padding, are decoded, too.
func maxPoolWork(floats workFunc) workFunc {
	return func(w *work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) {
		in := s[n.In[0]]
		var st stage
		if st.plan(n, in, s[n.Out[0]], -in.Dim[3]&(simd.DotCols-1)) {
			w.staged = max(w.staged, st.bytes())
			if n.Min == -graph.Inf && n.Max == graph.Inf {
				return
			}
		}
		floats(w, g, n, s, threads)
	}
}

// dynamicToken maps int8 to the range of x, extended to contain 0, so that an element represents 0
// exactly (xnn_f32_qd8_asymmetric_quantization_params).
func dynamicToken(x []float32) token {
	lo, hi := min(0, simd.Min(x)), max(0, simd.Max(x))
	const qmin, qmax = -128, 127
	if hi-lo-(hi-lo) != 0 { // no scale represents NaN or infinities: all elements become NaN
		return token{scale: float32(math.NaN())}
	}
	scale := float32(1)
	if lo != hi {
		scale = (qmax - qmin) / (hi - lo)
	}
	fromMin, fromMax := float32(lo*scale), float32(hi*scale)
	zero := float32(qmin - fromMin)
	if float32(qmin+fromMin)+float32(qmax+fromMax) <= 0 {
		zero = qmax - fromMax
	}
	zero = max(zero, qmin)
	zero = min(zero, qmax)
	return token{scale: 1 / scale, zero: int32(math.RoundToEven(float64(zero)))}
}
