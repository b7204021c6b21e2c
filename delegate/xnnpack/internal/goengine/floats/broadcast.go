package floats

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/frame"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/simd"
)

// Loops over elements. A binary loop iterates over rows of the output; dimensions along which both
// operands are contiguous are merged first. An operand that is repeated along a row, or from row to
// row, is expanded for as many rows as one call of the function computes.

// pieceLen is the number of elements per call of a function, which stay in the first-level cache.
const pieceLen = 2048

// binaryFuncs are the functions of two operands, by tag.
var binaryFuncs = map[uint8]func(dst, a, b []float32){
	graph.TagAdd: simd.Add, graph.TagSubtract: simd.Sub, graph.TagMultiply: simd.Mul, graph.TagDiv: simd.Div,
	graph.TagMinimum: simd.Minimum, graph.TagMaximum: simd.Maximum, graph.TagPReLU: simd.PReLU,
}

// unaryLoop applies a function element by element.
type unaryLoop struct {
	f     func(dst, src []float32)
	x, y  []float32
	grain int
}

// Range computes elements [lo, hi).
func (l *unaryLoop) Range(_, lo, hi int) {
	for ; lo < hi; lo += pieceLen {
		end := min(lo+pieceLen, hi)
		l.f(l.y[lo:end], l.x[lo:end])
	}
}

func (l *unaryLoop) Bind(e *frame.Frame, n *graph.Node) {
	l.x, l.y = e.Load(0, n.In[0]), e.Result(n.Out[0])
}

func (l *unaryLoop) Compute(e *frame.Frame, _ *graph.Node) { e.Parallel(len(l.y), l.grain, l) }

// Unary returns the loop of a function of each element.
func Unary(e *frame.Frame, n *graph.Node) frame.Loop {
	f := &frame.Elements[n.Type.Tag]
	return e.OnFloats(n, &unaryLoop{f: f.Of(n), grain: frame.ElementsPerRange / f.Cost})
}

// binaryLoop applies a function to two operands.
type binaryLoop struct {
	f      func(dst, a, b []float32)
	node   *graph.Node
	x      [2][]float32
	y      []float32
	outer  graph.Shape    // dimensions outside of the rows
	step   [2]graph.Steps // strides of the operands along outer
	rows   int            // consecutive rows of the output
	n      int            // elements of a row
	row    [2]int         // row strides of the operands
	one    [2]int         // element strides: 1, or 0 for a repeated element
	chunk  int            // rows at a time
	chunks int
	piece  int // elements of a row at a time
	pieces int

	e            *frame.Frame
	units, grain int  // of the parallel loop
	repeats      bool // operands are expanded
}

// Binary returns the loop of a function of two operands.
func Binary(e *frame.Frame, n *graph.Node) frame.Loop {
	return e.OnFloats(n, &binaryLoop{f: binaryFuncs[n.Type.Tag]})
}

func (l *binaryLoop) Bind(e *frame.Frame, n *graph.Node) {
	l.e, l.node, l.y = e, n, e.Result(n.Out[0])
	l.x[0], l.x[1] = e.Load(0, n.In[0]), e.Load(1, n.In[1])
	out := e.Shapes[n.Out[0]]
	l.plan(out, frame.Repeated(e.Shapes[n.In[0]], out), frame.Repeated(e.Shapes[n.In[1]], out))
}

func (l *binaryLoop) Compute(e *frame.Frame, _ *graph.Node) {
	if l.repeats {
		l.forgetRepeats()
	}
	e.Parallel(l.units, l.grain, l)
}

// forgetRepeats resets the expanded operands, of which each worker has its own.
func (l *binaryLoop) forgetRepeats() {
	a, b := l.expanded(0), l.expanded(1)
	l.e.Reserve(a + b)
	for i := range l.e.Workers {
		w := &l.e.Workers[i]
		w.Operands = frame.Pieces{Data: [2][]float32{w.Line[:a], w.Line[a : a+b]}, At: [2]int{-1, -1}}
	}
}

// expanded returns the number of elements of an operand that are expanded at a time, 0 if none are.
func (l *binaryLoop) expanded(i int) int {
	if l.runsOn(i) {
		return 0
	}
	return max(l.chunk*l.n, l.piece)
}

// plan merges dimensions, and splits the rows for threads and caches.
func (l *binaryLoop) plan(out graph.Shape, a, b graph.Steps) {
	dims, sa, sb := frame.Merged(out, a, b)
	last := dims.Rank - 1
	l.n, l.one = dims.Dim[last], [2]int{sa[last], sb[last]}
	l.rows, l.row, l.outer = 1, [2]int{}, graph.Shape{}
	if last > 0 {
		l.rows, l.row = dims.Dim[last-1], [2]int{sa[last-1], sb[last-1]}
		l.outer.Rank = last - 1
		copy(l.outer.Dim[:], dims.Dim[:last-1])
	}
	l.step = [2]graph.Steps{sa, sb}
	l.chunk, l.piece = min(l.rows, max(1, pieceLen/max(1, l.n))), max(1, min(l.n, pieceLen))
	l.chunks, l.pieces = graph.CeilDiv(l.rows, l.chunk), graph.CeilDiv(l.n, l.piece)
	l.units, l.grain = l.outer.Numel()*l.chunks*l.pieces, 1+frame.ElementsPerRange/(l.chunk*l.piece)
	l.repeats = !l.runsOn(0) || !l.runsOn(1)
}

// runsOn reports whether the rows of a chunk of an operand are always contiguous.
func (l *binaryLoop) runsOn(i int) bool { return l.one[i] == 1 && (l.chunk == 1 || l.row[i] == l.n) }

// Range computes chunks of rows, or pieces of a row, [lo, hi).
func (l *binaryLoop) Range(worker, lo, hi int) {
	var w *frame.Pieces
	if l.repeats {
		w = &l.e.Workers[worker].Operands
	}
	for t := lo; t < hi; t++ {
		at, first, outer := t%l.pieces*l.piece, t/l.pieces%l.chunks*l.chunk, t/l.pieces/l.chunks
		rows, n := min(l.chunk, l.rows-first), min(l.piece, l.n-at)
		y := l.y[(outer*l.rows+first)*l.n+at:][:(rows-1)*l.n+n]
		l.f(y, l.operand(w, 0, outer, first, at, rows, n), l.operand(w, 1, outer, first, at, rows, n))
		if l.node.Type.Bounded {
			frame.BoundFloats(l.node, y)
		}
	}
}

// operand returns contiguous rows of an operand: its own memory, or an expanded copy.
func (l *binaryLoop) operand(w *frame.Pieces, i, outer, first, at, rows, n int) []float32 {
	from := first*l.row[i] + at*l.one[i]
	for d := l.outer.Rank - 1; d >= 0; d-- {
		from += outer % l.outer.Dim[d] * l.step[i][d]
		outer /= l.outer.Dim[d]
	}
	if l.runsOn(i) {
		return l.x[i][from:][:rows*n]
	}
	dst := w.Data[i][:rows*n]
	if w.At[i] == from && w.Rows[i] >= rows && l.row[i] == 0 {
		return dst
	}
	w.At[i], w.Rows[i] = from, rows
	if l.one[i] == 0 && n <= shortRow {
		repeatElements(dst, l.x[i][from:], n, l.row[i])
		return dst
	}
	if l.row[i] == 0 {
		l.writeRow(dst[:n], i, from)
		for done := n; done < len(dst); done *= 2 {
			copy(dst[done:], dst[:done])
		}
		return dst
	}
	for r := range rows {
		l.writeRow(dst[r*n:][:n], i, from+r*l.row[i])
	}
	return dst
}

// shortRow is the length of rows up to which a call for each of them takes longer than its elements.
const shortRow = 16

// repeatElements writes rows of n elements, each of one element of x, which are step apart.
func repeatElements(dst, x []float32, n, step int) {
	for at := 0; len(dst) > 0; at += step {
		row, v := dst[:n], x[at]
		for j := range row {
			row[j] = v
		}
		dst = dst[n:]
	}
}

func (l *binaryLoop) writeRow(dst []float32, i, from int) {
	if l.one[i] == 0 {
		simd.Fill(dst, l.x[i][from])
	} else {
		copy(dst, l.x[i][from:])
	}
}

// BinaryWork is of functions of two operands, which are expanded piece by piece.
func BinaryWork(w *frame.Work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) {
	frame.DecodeWork(w, g, n, s, threads)
	out := s[n.Out[0]]
	var l binaryLoop
	l.plan(out, frame.Repeated(s[n.In[0]], out), frame.Repeated(s[n.In[1]], out))
	if l.repeats {
		w.Line = max(w.Line, 4*int64(l.expanded(0)+l.expanded(1)))
	}
}
