package cost

import (
	"time"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
)

// vectors returns the effect of the processor's vectors on products. slower is the time relative to
// the rates (AVX2 is as fast as AVX-512 on processors that split its vectors). tile is the number of
// output channels that are computed together; one channel takes as long as tile channels.
func vectors() (slower float64, tile int) {
	switch {
	case cpu.Has("avx512f"):
		return 1, 32
	case cpu.Has("avx2"):
		return 1, 16
	}
	return 2, 8
}

// Estimate returns the approximate time of a run of the graph on one thread. share is the fraction of
// elements that inputs with varying sizes have. A library of unknown version is assumed to be
// Debian's.
func Estimate(g *graph.Graph, lib *xnn.Soname, s []graph.Shape, engine int, varies []bool, share float64) time.Duration {
	slower, tile := vectors()
	if engine == ByGo {
		tile /= 2
	}
	e := Estimator{Graph: g, Shapes: s, Engine: engine, slower: slower, tile: tile, part: make([]float64, len(g.Values)),
		narrow: lib != nil && lib.NarrowProducts, tiles: engine == ByLibrary && hasTiles(lib)}
	for v := range e.part {
		e.part[v] = 1
	}
	for i, v := range g.Args[:g.Inputs] {
		if varies[i] {
			e.part[v] = share
		}
	}
	total := callTime[engine]
	for i := range g.Nodes {
		total += NodeTime[engine] + e.nodeTime(&g.Nodes[i])
	}
	return time.Duration(total)
}

// Estimator computes the times of nodes.
type Estimator struct {
	*graph.Graph
	Shapes []graph.Shape
	Engine int
	slower float64   // see vectors
	tile   int       // see vectors
	narrow bool      // see xnn.Soname
	tiles  bool      // see libraryTiles
	part   []float64 // by value: the fraction of its elements
}

// NodeTime returns a node's own time. It must be called for the nodes in order, since it also sets
// the part of their outputs.
func (e *Estimator) nodeTime(n *graph.Node) float64 {
	part := 1.0
	for _, v := range n.In {
		if v != graph.None {
			part = min(part, e.part[v])
		}
	}
	for _, v := range n.Out {
		e.part[v] = part
	}
	time := 0.0
	switch {
	case e.inTiles(n):
		time = e.tilesTime(n)
	case n.Type.Convolution:
		time = e.convolutionTime(n)
	default:
		time = e.RateTime(n, e.RateOf(n))
	}
	if e.Engine == ByGo {
		time += e.goTime(n)
	}
	return part*time + e.weightTime(n)
}

// RateTime returns the time of a node by its rates.
func (e *Estimator) RateTime(n *graph.Node, r rate) float64 {
	y, time := e.Shapes[n.Out[0]], r.start[e.Engine]+e.workTime(n, r)
	switch {
	case n.Type.Tag == graph.TagStaticTranspose:
		return time + e.transposeTime(n, r, e.Shapes[n.In[0]], graph.Params[graph.TransposeParams](n).Perm)
	case n.Type == &graph.RearrangeNode:
		in, perm := graph.Source(graph.Params[graph.RearrangeParams](n).Flat(make([]graph.Dimension, 0, graph.ManyDims)))
		return time*float64(len(n.In)) + e.transposeTime(n, r, in, perm[:in.Rank])
	}
	rows, elements := e.rows(n, y), y.Numel()
	if n.Type.Name == "Softmax" {
		elements = rows * graph.RoundUp(y.Last(), softmaxVector)
	}
	if n.Type.Name == "StaticResizeBilinear2D" && e.Engine == ByLibrary {
		elements = rows * graph.RoundUp(y.Last(), resizeVector)
	}
	return time + e.elementTime(n, r)*float64(elements) + r.row[e.Engine]*float64(rows)
}

// RateOf returns a node's rates.
func (e *Estimator) RateOf(n *graph.Node) rate {
	name := n.Type.Name
	switch {
	case e.Values[n.Out[0]].Datatype == graph.QDInt8:
		name = convertRowsTo8
	case n.Type.Tag == graph.TagConvert && e.Values[n.Out[0]].Datatype.Info().Bits == 8:
		name = convertTo8
	case n.Type.Tag == graph.TagStaticConstantPad && e.Shapes[n.In[0]] == e.Shapes[n.Out[0]]:
		name = "Copy"
	}
	if r, ok := Rates[name]; ok {
		return r
	}
	return rateOfOthers
}

// isShort reports whether a node reads or writes elements of 8 bits.
func (e *Estimator) isShort(n *graph.Node) bool {
	return min(e.Values[n.In[0]].Datatype.Info().Bits, e.Values[n.Out[0]].Datatype.Info().Bits) == 8
}

// elementTime returns a node's time per element of its output. It is shorter for few elements, which
// fit into the first-level cache, if memory takes longer than the arithmetic.
func (e *Estimator) elementTime(n *graph.Node, r rate) float64 {
	if time := r.Codes[e.Engine]; time > 0 && e.isShort(n) {
		return time
	}
	time, count := r.Element[e.Engine], e.Shapes[n.Out[0]].Numel()
	for _, v := range n.In {
		if v != graph.None {
			count += e.Shapes[v].Numel()
		}
	}
	if count < nearElements && time < nearTime {
		time *= nearShare
	}
	return time
}

// transposeTime returns the time to copy rows of a permuted shape that stay contiguous, or to transpose matrices.
func (e *Estimator) transposeTime(n *graph.Node, r rate, in graph.Shape, perm []int) float64 {
	y := e.Shapes[n.Out[0]]
	elements, rows, matrices, shorter, few := float64(y.Numel()), 0, 0, 0, false
	switch rows, matrices, shorter, few = transposeRuns(in, perm); {
	case rows > 0:
		row := r.row[e.Engine]
		if e.Engine == ByGo && y.Numel() <= 4*rows { // copied like elements
			row = turnShortRow
		}
		return e.elementTime(n, r)*elements + row*float64(rows)
	case matrices == 0:
		return e.elementTime(n, Rates["Copy"]) * elements
	}
	if bits := e.Values[n.Out[0]].Datatype.Info().Bits; few && e.Engine == ByGo && bits == 32 {
		return turnFew*elements + turnFewMatrix*float64(matrices)
	}
	time, narrow, long := turnTime[e.Engine], turnNarrow[e.Engine], turnLong
	if e.isShort(n) {
		time, narrow, long = turnShort[e.Engine], turnNarrowShort[e.Engine], turnLongShort
	} else if y.Numel() > nearTurned {
		time += turnFar
	}
	if shorter < narrowMatrix {
		if y.Numel() >= matrices*shorter*longMatrix {
			narrow = long[e.Engine]
		}
		time = narrow / float64(shorter)
	}
	if y.Numel() > farElements {
		time += farTime
	}
	return time*elements + turnMatrix[e.Engine]*float64(matrices)
}

// transposeRuns classifies a transpose. It returns the number of rows that stay contiguous, or the
// number of transposed matrices and their shorter side. All are 0 if no element moves. few is set for matrices of two or
// three dense rows or columns that follow each other.
func transposeRuns(in graph.Shape, perm []int) (rows, matrices, shorter int, few bool) {
	type run struct{ first, last, size int } // of input dimensions
	var memory [xnn.MaxDims]run
	runs := memory[:0]
	last := func(d int) int { // the dimension before d that has several elements
		for d--; d >= 0 && in.Dim[d] == 1; d-- {
		}
		return d
	}
	for _, d := range perm {
		switch k := len(runs) - 1; {
		case in.Dim[d] == 1:
		case k >= 0 && runs[k].last == last(d):
			runs[k].last, runs[k].size = d, runs[k].size*in.Dim[d]
		default:
			runs = append(runs, run{d, d, in.Dim[d]})
		}
	}
	if len(runs) < 2 {
		return 0, 0, 0, false
	}
	inner, outer := runs[len(runs)-1], runs[0]
	for _, r := range runs {
		if r.last > outer.last {
			outer = r
		}
	}
	if inner == outer {
		return in.Numel() / inner.size, 0, 0, false
	}
	zips, unzips := inner.size <= fewRows && outer == runs[len(runs)-2], outer.size <= fewRows && inner.last == last(outer.first)
	few = (zips || unzips) && max(inner.size, outer.size) >= narrowMatrix
	return 0, in.Numel() / (inner.size * outer.size), min(inner.size, outer.size), few
}

// pieces returns the number of contiguous copies of a concatenation.
func (e *Estimator) pieces(n *graph.Node, y graph.Shape) int {
	axis, _ := graph.Params[graph.ConcatenateParams](n).Dim(y.Rank)
	return y.Leading(axis) * len(n.In)
}

// rows returns the number of runs of elements that a node computes one after the other. A run is a
// copy of a concatenation or slice, a product of a batch, the elements that share a scale, the
// elements along which each of two operands is either contiguous or repeated, else the last
// dimension.
func (e *Estimator) rows(n *graph.Node, y graph.Shape) int {
	run := y.Last()
	switch x := &e.Values[n.Out[0]]; {
	case x.Datatype == graph.QDInt8:
		return graph.ScalesOf(x, y)
	case n.IsConcatenate():
		return e.pieces(n, y)
	case n.Type.Tag == graph.TagBatchMatrixMultiply:
		return y.Leading(max(y.Rank-2, 0))
	case n.Type.Name == "StaticSlice":
		in, i := e.Shapes[n.In[0]], y.Rank-1
		for ; i > 0 && in.Dim[i] == y.Dim[i]; i-- {
		}
		return y.Leading(i)
	case len(n.In) == 2 && !n.Type.Packs:
		run = e.pairRun(n.In[0], n.In[1], y)
	}
	return y.Numel() / max(run, 1)
}

// pairRun returns the number of innermost elements of y along which each operand is either contiguous
// or repeated.
func (e *Estimator) pairRun(a, b int, y graph.Shape) int {
	has := func(v, i int) bool { return i < e.Shapes[v].Rank && e.Shapes[v].FromEnd(i) == y.FromEnd(i) }
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

// weightTime returns the time to read a product's second operand, in addition to the work.
func (e *Estimator) weightTime(n *graph.Node) float64 {
	if !n.Type.Packs {
		return 0
	}
	bits := float64(e.Values[n.In[1]].Datatype.Info().Bits)
	return float64(e.Shapes[n.In[1]].Numel()) * e.part[n.In[1]] * weightTime * bits / 32
}

// workTime returns the time of a node's work.
func (e *Estimator) workTime(n *graph.Node, r rate) float64 {
	rate := r.work[e.Engine]
	if n.Type.Cost == nil || rate == 0 {
		return 0
	}
	short := e.Values[n.In[0]].Datatype.Info().Bits == 8
	if short && r.short[e.Engine] > 0 {
		rate *= r.short[e.Engine]
	}
	work := float64(n.Type.Cost(e.Graph, n, e.Shapes))
	channels, tile := e.channels(n)
	if channels > 0 {
		work *= float64(graph.RoundUp(channels, tile)) / float64(channels)
	}
	if n.Type.Packs {
		rate *= e.slower
	}
	return work * rate
}

// channels returns the number of channels of a node, and how many of them are computed together:
// output channels of products, channels of windows. It returns 0 for pools of the Go engine, which
// have no tiles.
func (e *Estimator) channels(n *graph.Node) (channels, tile int) {
	switch {
	case !n.Type.Packs && e.Engine == ByLibrary:
		return e.Shapes[n.In[0]].Last(), max(e.tile/2, 8)
	case !n.Type.Packs:
		return 0, 0
	case n.Type.Tag == graph.TagBatchMatrixMultiply:
		return e.Shapes[n.Out[0]].Last(), e.tile
	}
	return e.Shapes[n.Out[0]].Last(), max(e.tile/2, 8)
}
