package cost

import (
	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// classesOf has the classes of nodes of floats, by tag; products have their own.
var classesOf = map[uint8]class{
	graph.TagAvgPooling2d: classPool32, graph.TagMaxPooling2d: classPool32, graph.TagArgMaxPooling2d: classPool32, graph.TagGlobalAvgPooling2d: classMean,
	graph.TagSoftmax: classSoftmax, graph.TagResizeBilinear2D: classResize, graph.TagResizePlanes: classResize, graph.TagStaticTranspose: classTranspose32, graph.TagRearrange: classTranspose32,
	graph.TagAdd: classBinary32, graph.TagSubtract: classBinary32, graph.TagMultiply: classBinary32, graph.TagDiv: classBinary32, graph.TagMaximum: classBinary32, graph.TagMinimum: classBinary32, graph.TagPReLU: classBinary32,
	graph.TagSigmoid: classFunction32, graph.TagTanh: classFunction32, graph.TagGelu: classFunction32, graph.TagSiLU: classFunction32, graph.TagELU: classFunction32,
	graph.TagReciprocalSquareRoot: classFunction32, graph.TagLog: classLogarithm, graph.TagExp: classLogarithm, graph.TagSin: classLogarithm, graph.TagCos: classLogarithm, graph.TagTable: classTable8,
	graph.TagFloor: classCopy32, graph.TagCeiling: classCopy32, graph.TagClamp: classCopy32, graph.TagAbs: classCopy32,
	graph.TagNegate: classCopy32, graph.TagSquare: classCopy32, graph.TagSquareRoot: classCopy32, graph.TagHardswish: classCopy32,
	graph.TagLeakyReLU: classCopy32, graph.TagStaticReshape: classCopy32, graph.TagStaticSlice: classCopy32,
	graph.TagStaticConstantPad: classCopy32, graph.TagCopy: classCopy32, graph.TagConcatenate2: classCopy32,
	graph.TagConcatenate3: classCopy32, graph.TagConcatenate4: classCopy32, graph.TagConcatenate5: classCopy32,
	graph.TagConvert: classConvert,
}

func classOf(tag uint8) class { return classesOf[tag] }

// ofBytes has the class of bytes for that of floats.
var ofBytes = [classes]class{classPool32: classPool8, classMean: classMean, classSoftmax: classSoftmax, classResize: classResize, classCopy32: classCopy8, classBinary32: classBinary8, classFunction32: classTable8,
	classLogarithm: classTable8, classTable8: classTable8, classTranspose32: classTranspose8}

// conversion returns the class of a conversion.
func (c *counter) conversion(n *graph.Node) class {
	switch {
	case c.Values[n.Out[0]].Datatype == graph.QDInt8:
		return classQuantizeRows
	case c.bits(n.In[0]) == 8 && c.bits(n.Out[0]) == 8:
		return classTable8
	case c.bits(n.Out[0]) == 8:
		return classQuantize
	}
	return classConvert
}

// elements returns the amounts of a node that computes elements one by one, or moves them.
func (c *counter) elements(n *graph.Node, kind class) amounts {
	y := c.shapes[n.Out[0]]
	a := amounts{termStart: 1, termElement: float64(y.Numel())}
	switch {
	case kind == classPool32 || kind == classPool8:
		w := n.Window()
		a[termRow], a[termWork] = float64(y.Leading(3)), a[termElement]*float64(w.KernelH*w.KernelW)
	case kind == classMean:
		in := c.shapes[n.In[0]]
		a[termWork] = float64(in.Numel() / max(in.Last(), 1) * graph.RoundUp(in.Last(), meanChannels))
	case n.Type.Tag == graph.TagStaticTranspose:
		a = c.move(n, c.shapes[n.In[0]], graph.Params[graph.TransposeParams](n).Perm)
	case n.Type.Tag == graph.TagRearrange:
		in, perm := graph.Params[graph.RearrangeParams](n).Moves()
		a = c.move(n, in, perm)
	default:
		a[termRow] = float64(c.rows(n, y))
		if kind == classResize {
			a[termWork] = float64(c.shapes[n.In[0]].Numel())
		}
		if c.bytesOf(n) > nearBytes {
			a[termTap] = a[termElement]
		}
	}
	return a
}

const (
	meanChannels = 16       // that a global average pool adds up at once
	nearBytes    = 32 << 10 // of the nearest cache
	farBytes     = 4 << 20  // of the caches of a core, and its part of the shared one
	shortMatrix  = 8        // rows and columns of a tile that a transpose moves at once
	interleaved  = 4        // rows or columns of a matrix that are put together, or taken apart, in one pass
)

// bytesOf returns the number of bytes that a node reads and writes.
func (c *counter) bytesOf(n *graph.Node) (sum int) {
	for _, list := range [...][]int{n.In, n.Out} {
		for _, v := range list {
			if v != graph.None {
				sum += c.shapes[v].Numel() * c.bits(v) / 8
			}
		}
	}
	return sum
}

// move returns the amounts of a transpose: elements that move in contiguous rows and these rows; or matrices, elements in tiles
// of these, or that are interleaved, and elements beside tiles; and the elements that do not stay in the cache of a core.
func (c *counter) move(n *graph.Node, in graph.Shape, perm []int) amounts {
	y := c.shapes[n.Out[0]]
	count := float64(y.Numel())
	a := amounts{termStart: 1, termRow: 1, termElement: count}
	switch rows, matrices, sides := transposedRuns(in, perm); {
	case rows > 0:
		a[termRow] = float64(rows)
	case matrices > 0:
		tiles := float64(matrices * (sides[0] &^ (shortMatrix - 1)) * (sides[1] &^ (shortMatrix - 1)))
		if c.engine == ByGo && min(sides[0], sides[1]) <= interleaved {
			tiles = count
		}
		a[termElement], a[termWeight], a[termTap], a[termRow] = 0, float64(matrices), tiles, count-tiles
	}
	if c.bytesOf(n) > farBytes {
		a[termWork] = count
	}
	return a
}

// transposedRuns classifies a transpose. It returns the number of rows that stay contiguous, or the
// number of transposed matrices and their sides. Both are 0 if no element moves.
func transposedRuns(in graph.Shape, perm []int) (rows, matrices int, sides [2]int) {
	type run struct{ first, last, size int } // of input dimensions
	var memory [xnn.MaxDims]run
	list := memory[:0]
	last := func(d int) int { // the dimension before d that has several elements
		for d--; d >= 0 && in.Dim[d] == 1; d-- {
		}
		return d
	}
	for _, d := range perm {
		switch k := len(list) - 1; {
		case in.Dim[d] == 1:
		case k >= 0 && list[k].last == last(d):
			list[k].last, list[k].size = d, list[k].size*in.Dim[d]
		default:
			list = append(list, run{d, d, in.Dim[d]})
		}
	}
	if len(list) < 2 {
		return 0, 0, sides
	}
	inner, outer := list[len(list)-1], list[0]
	for _, r := range list {
		if r.last > outer.last {
			outer = r
		}
	}
	if inner == outer {
		return in.Numel() / inner.size, 0, sides
	}
	return 0, in.Numel() / (inner.size * outer.size), [2]int{inner.size, outer.size}
}

// rows returns the number of runs of elements that a node computes one after the other. A run is a
// copy of a concatenation or slice, the elements that share a scale, the elements along which each of
// two operands is either contiguous or repeated, a row of a classSoftmax, else the whole output.
func (c *counter) rows(n *graph.Node, y graph.Shape) int {
	switch x := &c.Values[n.Out[0]]; {
	case x.Datatype == graph.QDInt8:
		return graph.ScalesOf(x, y)
	case n.IsConcatenate():
		axis, _ := graph.Params[graph.ConcatenateParams](n).Dim(y.Rank)
		return y.Leading(axis) * len(n.In)
	case n.Type.Tag == graph.TagStaticSlice:
		return y.Leading(inner(c.shapes[n.In[0]], y))
	case n.Type.Tag == graph.TagStaticConstantPad && c.engine == ByGo:
		return y.Leading(inner(c.shapes[n.In[0]], y))
	case n.Type.Tag == graph.TagStaticConstantPad || n.Type.Tag == graph.TagSoftmax || n.Type.Tag == graph.TagResizeBilinear2D || n.Type.Tag == graph.TagResizePlanes:
		return y.Numel() / max(y.Last(), 1)
	case len(n.In) == 2:
		return y.Numel() / max(c.pairRun(n.In[0], n.In[1], y), 1)
	}
	return 1
}

// inner returns the innermost dimension of which a part is read or written.
func inner(in, y graph.Shape) int {
	i := y.Rank - 1
	for ; i > 0 && in.Dim[i] == y.Dim[i]; i-- {
	}
	return i
}

// pairRun returns the number of innermost elements of y along which each operand is either contiguous
// or repeated.
func (c *counter) pairRun(a, b int, y graph.Shape) int {
	has := func(v, i int) bool { return i < c.shapes[v].Rank && c.shapes[v].FromEnd(i) == y.FromEnd(i) }
	run, continues := 1, [2]bool{}
	for i := range y.Rank {
		if y.FromEnd(i) == 1 {
			continue
		}
		now := [2]bool{has(a, i), has(b, i)}
		if run > 1 && now != continues {
			break
		}
		run, continues = run*y.FromEnd(i), now
	}
	return run
}
