package goengine

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/x448/float16"
)

// bytesAs returns the quantization of a value's bytes, and false if the value does not consist of
// bytes with one scale.
func bytesAs(x *graph.Value) (simd.Quantized, bool) {
	switch x.Datatype {
	case graph.QInt8:
		return simd.Quantized{Signed: true, Zero: x.Quant.ZeroPoint, Lo: -128, Hi: 127}, true
	case graph.QUInt8:
		return simd.Quantized{Zero: x.Quant.ZeroPoint, Lo: 0, Hi: 255}, true
	}
	return simd.Quantized{}, false
}

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
	row     int // elements that share a token
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
			q := simd.Quantized{Signed: true, Zero: t.Zero, Lo: -128, Hi: 127}
			q.Quantize(l.out[g*l.row:], x, reciprocal(t, l.half))
		}
	}
}

// tabled computes an elementwise node from bytes to bytes with a table of all 256 results of f. It
// reports false for other nodes.
func (e *Unit) tabled(n *graph.Node, f unaryFunc) bool {
	in, ok := bytesAs(&e.Graph.Values[n.In[0]])
	out, too := bytesAs(&e.Graph.Values[n.Out[0]])
	if !ok || !too || e.Plain {
		return false
	}
	if e.tables == nil {
		e.tables = make([]*[256]uint8, len(e.Graph.Nodes))
	}
	if e.tables[n.At] == nil {
		e.tables[n.At] = e.tableOf(n, &in, &out, f)
	}
	e.lookUp(n, e.tables[n.At])
	return true
}

// tableOf computes the result for every byte.
func (e *Unit) tableOf(n *graph.Node, in, out *simd.Quantized, f unaryFunc) *[256]uint8 {
	table, x, y := new([256]uint8), make([]float32, 256), make([]float32, 256)
	for i := range table {
		table[i] = uint8(i)
	}
	in.Dequantize(x, table[:], e.Graph.Values[n.In[0]].Quant.Scale)
	f(n, y, x)
	quantizeFixed(out, table[:], y, e.Graph.Values[n.Out[0]].Quant.Scale)
	return table
}

// int8Convert converts between bytes, and between bytes and float32. It reports false for other
// datatypes.
func (e *Unit) int8Convert(n *graph.Node) bool {
	in, out := &e.Graph.Values[n.In[0]], &e.Graph.Values[n.Out[0]]
	from, bytes := bytesAs(in)
	to, toBytes := bytesAs(out)
	count := e.Shapes[n.Out[0]].Numel()
	l := &e.byteLoop
	switch {
	case e.Plain:
		return false
	case bytes && toBytes:
		return e.tabled(n, func(_ *graph.Node, dst, src []float32) { copy(dst, src) })
	case bytes && out.Datatype == graph.FP32:
		*l = int8Elements{op: dequantizeAll, q: from, scale: in.Quant.Scale, in: e.Bytes[n.In[0]][:count], y: e.result(n.Out[0])}
	case in.Datatype == graph.FP32 && toBytes:
		*l = int8Elements{op: quantizeAll, q: to, scale: out.Quant.Scale, out: e.Bytes[n.Out[0]][:count], x: e.load(0, n.In[0])}
	default:
		return false
	}
	e.Parallel(count, elementsPerRange/2, l)
	return true
}

// quantizeRows is quantizeDynamic on the unit's threads.
func (e *Unit) quantizeRows(v int, x []float32, half bool) {
	groups := e.Shapes[v].Leading(e.Shapes[v].Rank - e.Graph.Values[v].Quant.Nonbatch)
	e.Tokens[v] = grow(e.Tokens[v], groups)
	row := len(x) / groups
	e.byteLoop = int8Elements{op: quantizeTokens, half: half, x: x, out: e.Bytes[v], tokens: e.Tokens[v], row: row}
	e.Parallel(groups, 1+elementsPerRange/4/row, &e.byteLoop)
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
	workers   []simd.Binary
	repeated  [][2][]uint8 // by worker: repeated elements, materialized
}

// byteChunk is the number of elements of a row that are computed at a time.
const byteChunk = 4096

var binaryOps = map[uint8]simd.BinaryOp{graph.TagAdd: simd.BinaryAdd, graph.TagMultiply: simd.BinaryMul, graph.TagSubtract: simd.BinarySub}

// int8Binary computes a node of two byte operands. It reports false for other nodes.
func (e *Unit) int8Binary(n *graph.Node) bool {
	out := &e.Graph.Values[n.Out[0]]
	q, ok := bytesAs(out)
	if !ok || e.Plain {
		return false
	}
	op, ok := binaryOps[n.Type.Tag]
	if !ok {
		return false
	}
	a, b, l := &e.Graph.Values[n.In[0]].Quant, &e.Graph.Values[n.In[1]].Quant, &e.bytesBinary
	l.op = op
	l.f = simd.Binary{A: simd.Operand{Zero: a.ZeroPoint, Scale: a.Scale}, B: simd.Operand{Zero: b.ZeroPoint, Scale: b.Scale},
		Min: n.Min, Max: n.Max, Scale: out.Quant.Scale, Out: q}
	l.dst, l.operands = e.Bytes[n.Out[0]], [2][]uint8{e.Bytes[n.In[0]], e.Bytes[n.In[1]]}
	s := e.Shapes[n.Out[0]]
	l.plan(s, repeated(e.Shapes[n.In[0]], s), repeated(e.Shapes[n.In[1]], s), e.threads())
	e.Parallel(l.outer.Numel()*l.chunks, 1+elementsPerRange/4/min(l.n, l.chunk()), l)
	return true
}

// plan merges dimensions and allocates the workers. Rows that one operand repeats while the other
// continues are merged into one row; the repeated operand is materialized chunk by chunk.
func (l *int8Binary) plan(out graph.Shape, a, b graph.Steps, threads int) {
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
	for len(l.workers) < threads {
		l.workers, l.repeated = append(l.workers, simd.Binary{}), append(l.repeated, [2][]uint8{})
	}
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
	f := &l.workers[worker]
	*f = l.f
	for task := lo; task < hi; task++ {
		row, from := task/l.chunks, task%l.chunks*l.chunk()
		n := min(l.chunk(), l.n-from)
		var x [2][]uint8
		for k := range x {
			at := l.place(k, row)
			switch {
			case l.row > 0 && k == l.repeats:
				x[k] = repeatRow(&l.repeated[worker][k], l.operands[k][at:][:l.row], n)
			case l.one[k] == 1:
				x[k] = l.operands[k][at+from:][:n]
			default:
				x[k] = repeatRow(&l.repeated[worker][k], l.operands[k][at:][:1], n)
			}
		}
		f.Apply(l.op, l.dst[row*l.n+from:][:n], x[0], x[1])
	}
}

// place returns the offset of a row in an operand.
func (l *int8Binary) place(operand, row int) (at int) {
	for i := l.outer.Rank - 1; i >= 0; i-- {
		at += row % l.outer.Dim[i] * l.step[operand][i]
		row /= l.outer.Dim[i]
	}
	return at
}

// repeatRow returns n elements of repetitions of row, in *memory.
func repeatRow(memory *[]uint8, row []uint8, n int) []uint8 {
	b := grow(*memory, n)
	*memory = b
	for done := copy(b, row); done < n; done *= 2 {
		copy(b[done:], b[:done])
	}
	return b
}

// int8MaxPool computes the largest element of each window. Padding is the smallest value.
type int8MaxPool struct {
	e     *Unit
	node  *graph.Node
	stage stage
	off   []int
	q     simd.Quantized
	a     []uint8
	out   graph.Shape
}

// int8MaxPool computes a max pool of bytes, which keep their scale. It reports false for other
// nodes, and for windows that are mostly padding.
func (e *Unit) int8MaxPool(n *graph.Node) bool {
	q, ok := bytesAs(&e.Graph.Values[n.In[0]])
	p, in, out := &e.bytesPool, e.Shapes[n.In[0]], e.Shapes[n.Out[0]]
	if !ok || e.Plain || !p.stage.plan(n, in, out, -in.Dim[3]&(simd.DotCols-1)) {
		return false
	}
	p.e, p.node, p.q, p.out = e, n, q, out
	p.off = p.stage.Offsets(p.off[:0], false)
	p.a = e.Bytes[n.In[0]]
	if p.stage.needed {
		e.staged = grow(e.staged, int(p.stage.bytes()))
		p.stage.Copy(e.staged, p.a, func(int) uint8 { return uint8(q.Lo) })
		p.a = e.staged
	}
	e.Parallel(out.Leading(2), max(1, elementsPerRange*4/(out.Trailing(2)*len(p.off))), p)
	if n.Min != -graph.Inf || n.Max != graph.Inf {
		e.boundBytes(n)
	}
	return true
}

// Range computes lines of the output.
func (p *int8MaxPool) Range(_, lo, hi int) {
	c := p.out.Dim[3]
	for line := lo; line < hi; line++ {
		at := p.stage.Offset(line/p.out.Dim[1], line%p.out.Dim[1], 0)
		simd.MaximumRow(p.q.Signed, p.e.Bytes[p.node.Out[0]][line*p.out.Dim[2]*c:], c, p.a, at, p.stage.Stride[2]*c, p.off, p.out.Dim[2], c)
	}
}

// boundBytes clamps a node's output to its bounds.
func (e *Unit) boundBytes(n *graph.Node) {
	y := e.result(n.Out[0])
	e.Decode(y, n.Out[0])
	boundFloats(n, y)
	e.store(n.Out[0])
}

// reciprocal returns the factor that converts numbers to elements. For halves the factor is rounded
// to a half, too.
func reciprocal(t token, half bool) float32 {
	x := 1 / t.Scale
	if half {
		x = float16.Fromfloat32(x).Float32()
	}
	return x
}
