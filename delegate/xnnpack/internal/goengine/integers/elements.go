package integers

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/frame"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/numbers"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/internal/simd"
)

// elements is the parallel loop of an elementwise node of bytes.
type elements struct {
	op      elementsOp
	q       simd.Quantized
	scale   float32
	half    bool
	in, out []uint8
	x, y    []float32
	table   *[256]uint8
	tokens  []numbers.Token
	row     int // elements that share a token
	units   int
	grain   int
}

// elementsOp is the operation of an elements loop.
type elementsOp int

const (
	lookUp elementsOp = iota
	quantizeAll
	dequantizeAll
	quantizeTokens
)

// Range implements cpu.Body over elements, or over rows of elements that share a token.
func (l *elements) Range(_, lo, hi int) {
	switch l.op {
	case lookUp:
		simd.Lookup(l.out[lo:hi], l.in[lo:hi], l.table)
	case quantizeAll:
		numbers.QuantizeFixed(&l.q, l.out[lo:hi], l.x[lo:hi], l.scale)
	case dequantizeAll:
		l.q.Dequantize(l.y[lo:hi], l.in[lo:hi], l.scale)
	case quantizeTokens:
		for g := lo; g < hi; g++ {
			x := l.x[g*l.row:][:l.row]
			t := numbers.DynamicToken(x)
			l.tokens[g] = t
			q := simd.Quantized{Signed: true, Zero: t.Zero, Lo: -128, Hi: 127}
			q.Quantize(l.out[g*l.row:], x, numbers.Reciprocal(t, l.half))
		}
	}
}

func (l *elements) Bind(e *frame.Frame, n *graph.Node) {
	in, out := &e.Graph.Values[n.In[0]], &e.Graph.Values[n.Out[0]]
	l.units, l.grain = e.Shapes[n.Out[0]].Numel(), frame.ElementsPerRange/2
	switch l.op {
	case lookUp:
		if n.Type.Tag == graph.TagTable {
			l.table = graph.Params[[256]uint8](n)
		} else if l.table == nil {
			l.table = tableOf(n, in, out)
		}
		l.in, l.out, l.grain = e.Data[n.In[0]][:l.units], e.Data[n.Out[0]][:l.units], frame.ElementsPerRange
	case dequantizeAll:
		l.q, _ = numbers.BytesAs(in)
		l.scale, l.in, l.y = in.Quant.Scale, e.Data[n.In[0]][:l.units], e.Result(n.Out[0])
	case quantizeAll:
		l.q, _ = numbers.BytesAs(out)
		l.scale, l.out, l.x = out.Quant.Scale, e.Data[n.Out[0]][:l.units], e.Load(0, n.In[0])
	case quantizeTokens:
		s := e.Shapes[n.Out[0]]
		groups := s.Leading(s.Rank - out.Quant.Nonbatch)
		e.Tokens[n.Out[0]] = pack.Grow(e.Tokens[n.Out[0]], groups)
		l.half, l.tokens, l.out, l.row = in.Datatype == graph.FP16, e.Tokens[n.Out[0]], e.Data[n.Out[0]], l.units/groups
		l.units, l.grain = groups, 1+frame.ElementsPerRange/4/l.row
	}
}

func (l *elements) Compute(e *frame.Frame, n *graph.Node) {
	if l.op == quantizeTokens {
		l.x = e.Load(0, n.In[0])
	}
	e.Parallel(l.units, l.grain, l)
}

// tableOf computes the result of an elementwise node from bytes to bytes for every byte.
func tableOf(n *graph.Node, from, to *graph.Value) *[256]uint8 {
	table, x, y := new([256]uint8), make([]float32, 256), make([]float32, 256)
	for i := range table {
		table[i] = uint8(i)
	}
	in, _ := numbers.BytesAs(from)
	out, _ := numbers.BytesAs(to)
	in.Dequantize(x, table[:], from.Quant.Scale)
	frame.Elements[n.Type.Tag].Apply(n, y, x)
	numbers.QuantizeFixed(&out, table[:], y, to.Quant.Scale)
	return table
}

// ConvertsBytes reports whether a conversion is from or to bytes, and has a loop over them.
func ConvertsBytes(g *graph.Graph, n *graph.Node) bool {
	in, out := g.Values[n.In[0]].Datatype, g.Values[n.Out[0]].Datatype
	return out == graph.QDInt8 || numbers.MapsBytes(g, n) || numbers.ReadsBytes(g, n) && out == graph.FP32 ||
		in == graph.FP32 && numbers.WritesBytes(g, n)
}

// Convert returns the loop of a conversion from or to bytes.
func Convert(e *frame.Frame, n *graph.Node) frame.Loop {
	switch {
	case e.Graph.Values[n.Out[0]].Datatype == graph.QDInt8:
		return &elements{op: quantizeTokens}
	case numbers.MapsBytes(e.Graph, n):
		return &elements{op: lookUp}
	case numbers.ReadsBytes(e.Graph, n):
		return &elements{op: dequantizeAll}
	}
	return &elements{op: quantizeAll}
}

// Table returns the loop of a function of bytes, which is in a table.
func Table(*frame.Frame, *graph.Node) frame.Loop { return &elements{op: lookUp} }

// binary is the parallel loop of a function of two byte operands. It runs over rows that are
// contiguous in both operands, split into chunks.
type binary struct {
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
	e         *frame.Frame
}

// byteChunk is the number of elements of a row that are computed at a time.
const byteChunk = 4096

var binaryOps = map[uint8]simd.BinaryOp{graph.TagAdd: simd.BinaryAdd, graph.TagMultiply: simd.BinaryMul, graph.TagSubtract: simd.BinarySub}

func (l *binary) Bind(e *frame.Frame, n *graph.Node) {
	out := &e.Graph.Values[n.Out[0]]
	a, b := &e.Graph.Values[n.In[0]].Quant, &e.Graph.Values[n.In[1]].Quant
	q, _ := numbers.BytesAs(out)
	l.f = simd.Binary{A: simd.Operand{Zero: a.ZeroPoint, Scale: a.Scale}, B: simd.Operand{Zero: b.ZeroPoint, Scale: b.Scale},
		Min: n.Min, Max: n.Max, Scale: out.Quant.Scale, Out: q}
	l.e, l.dst, l.operands = e, e.Data[n.Out[0]], [2][]uint8{e.Data[n.In[0]], e.Data[n.In[1]]}
	for i := range e.Workers {
		if w := &e.Workers[i]; w.Binary == nil {
			w.Binary = new(simd.Binary)
		}
	}
	s := e.Shapes[n.Out[0]]
	l.plan(s, frame.Repeated(e.Shapes[n.In[0]], s), frame.Repeated(e.Shapes[n.In[1]], s))
}

func (l *binary) Compute(e *frame.Frame, _ *graph.Node) {
	e.Parallel(l.outer.Numel()*l.chunks, 1+frame.ElementsPerRange/4/min(l.n, l.chunk()), l)
}

// plan merges dimensions. Rows that one operand repeats while the other
// continues are merged into one row; the repeated operand is materialized chunk by chunk.
func (l *binary) plan(out graph.Shape, a, b graph.Steps) {
	dims, sa, sb := frame.Merged(out, a, b)
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
func (l *binary) chunk() int {
	if l.row > 0 {
		return byteChunk / l.row * l.row
	}
	return byteChunk
}

// Range computes chunks of rows.
func (l *binary) Range(worker, lo, hi int) {
	own := &l.e.Workers[worker]
	f := own.Binary
	*f = l.f
	for task := lo; task < hi; task++ {
		row, from := task/l.chunks, task%l.chunks*l.chunk()
		n := min(l.chunk(), l.n-from)
		var x [2][]uint8
		for k := range x {
			at := l.offset(k, row)
			switch {
			case l.row > 0 && k == l.repeats:
				x[k] = repeatRow(&own.Repeated[k], l.operands[k][at:][:l.row], n)
			case l.one[k] == 1:
				x[k] = l.operands[k][at+from:][:n]
			default:
				x[k] = repeatRow(&own.Repeated[k], l.operands[k][at:][:1], n)
			}
		}
		f.Apply(l.op, l.dst[row*l.n+from:][:n], x[0], x[1])
	}
}

// offset returns the offset of a row in an operand.
func (l *binary) offset(operand, row int) (at int) {
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

// maxPool computes the largest element of each window of bytes, which keep their scale. Padding is the smallest value. Where windows
// are mostly padding, bytes are decoded.
type maxPool struct {
	floats frame.Loop
	staged bool // windows are not mostly padding
	e      *frame.Frame
	node   *graph.Node
	stage  stage
	off    []int
	q      simd.Quantized
	a      []uint8
	out    graph.Shape
}

// MaxPool makes loops of a max pool of bytes; floats makes the loop over floats.
func MaxPool(floats frame.Maker) frame.Maker {
	return func(e *frame.Frame, n *graph.Node) frame.Loop { return &maxPool{floats: floats(e, n)} }
}

func (p *maxPool) Bind(e *frame.Frame, n *graph.Node) {
	in, out := e.Shapes[n.In[0]], e.Shapes[n.Out[0]]
	p.e, p.node, p.out = e, n, out
	p.q, _ = numbers.BytesAs(&e.Graph.Values[n.In[0]])
	if p.staged = p.stage.plan(n, in, out, -in.Dim[3]&(simd.DotCols-1)); p.staged {
		p.off = p.stage.Offsets(p.off[:0], false)
	}
}

func (p *maxPool) Compute(e *frame.Frame, n *graph.Node) {
	if !p.staged {
		p.floats.Compute(e, n)
		return
	}
	p.a = e.Data[n.In[0]]
	if p.stage.needed {
		e.Staged = pack.Grow(e.Staged, int(p.stage.bytes()))
		p.stage.Copy(e.Staged, p.a, func(int) uint8 { return uint8(p.q.Lo) })
		p.a = e.Staged
	}
	e.Parallel(p.out.Leading(2), max(1, frame.ElementsPerRange*4/(p.out.Trailing(2)*len(p.off))), p)
	if n.Min != -graph.Inf || n.Max != graph.Inf {
		boundBytes(e, n)
	}
}

// Range computes lines of the output.
func (p *maxPool) Range(_, lo, hi int) {
	c := p.out.Dim[3]
	for line := lo; line < hi; line++ {
		at := p.stage.Offset(line/p.out.Dim[1], line%p.out.Dim[1], 0)
		simd.MaximumRow(p.q.Signed, p.e.Data[p.node.Out[0]][line*p.out.Dim[2]*c:], c, p.a, at, p.stage.Stride[2]*c, p.off, p.out.Dim[2], c)
	}
}

// boundBytes clamps a node's output to its bounds.
func boundBytes(e *frame.Frame, n *graph.Node) {
	y := e.Result(n.Out[0])
	e.Decode(y, n.Out[0])
	frame.BoundFloats(n, y)
	e.Store(n.Out[0])
}

// ComputesBinary reports whether a function of two operands has a loop over bytes.
func ComputesBinary(g *graph.Graph, n *graph.Node) bool {
	_, ok := binaryOps[n.Type.Tag]
	return ok && numbers.WritesBytes(g, n)
}

// Binary returns the loop of a function of two operands of bytes.
func Binary(_ *frame.Frame, n *graph.Node) frame.Loop { return &binary{op: binaryOps[n.Type.Tag]} }
