package xnnpack

import (
	"time"

	"github.com/etrun-go/etrun/cbindings/xnn"
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

// estimate returns the approximate time of a run of the graph on one thread. share is the fraction of
// elements that inputs with varying sizes have. A library of unknown version is assumed to be
// Debian's.
func estimate(g *graph, lib *xnn.Soname, s []shape, engine int, varies []bool, share float64) time.Duration {
	slower, tile := vectors()
	if engine == byGo {
		tile /= 2
	}
	e := estimator{graph: g, shapes: s, engine: engine, slower: slower, tile: tile, part: make([]float64, len(g.Values)),
		narrow: lib != nil && lib.NarrowProducts, tiles: engine == byLibrary && hasTiles(lib)}
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
		total += nodeTime[engine] + e.nodeTime(&g.Nodes[i])
	}
	return time.Duration(total)
}

// estimator computes the times of nodes.
type estimator struct {
	*graph
	shapes []shape
	engine int
	slower float64   // see vectors
	tile   int       // see vectors
	narrow bool      // see xnn.Soname
	tiles  bool      // see libraryTiles
	part   []float64 // by value: the fraction of its elements
}

// nodeTime returns a node's own time. It must be called for the nodes in order, since it also sets
// the part of their outputs.
func (e *estimator) nodeTime(n *node) float64 {
	part := 1.0
	for _, v := range n.In {
		if v != none {
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
	case n.Type.convolution:
		time = e.convolutionTime(n)
	default:
		time = e.rateTime(n, e.rateOf(n))
	}
	if e.engine == byGo {
		time += e.goTime(n)
	}
	return part*time + e.weightTime(n)
}

// rateTime returns the time of a node by its rates.
func (e *estimator) rateTime(n *node, r rate) float64 {
	y, time := e.shapes[n.Out[0]], r.start[e.engine]+e.workTime(n, r)
	switch {
	case n.Type.tag == tagStaticTranspose:
		return time + e.transposeTime(n, r, e.shapes[n.In[0]], params[transposeParams](n).perm)
	case n.Type == &rearrangeNode:
		in, perm := source(params[rearrangeParams](n).flat(make([]dimension, 0, manyDims)))
		return time*float64(len(n.In)) + e.transposeTime(n, r, in, perm[:in.rank])
	}
	rows, elements := e.rows(n, y), y.numel()
	if n.Type.name == "Softmax" {
		elements = rows * roundUp(y.last(), softmaxVector)
	}
	if n.Type.name == "StaticResizeBilinear2D" && e.engine == byLibrary {
		elements = rows * roundUp(y.last(), resizeVector)
	}
	return time + e.elementTime(n, r)*float64(elements) + r.row[e.engine]*float64(rows)
}

// rateOf returns a node's rates.
func (e *estimator) rateOf(n *node) rate {
	name := n.Type.name
	switch {
	case e.Values[n.Out[0]].Datatype == qdint8:
		name = convertRowsTo8
	case n.Type.tag == tagConvert && e.Values[n.Out[0]].Datatype.info().bits == 8:
		name = convertTo8
	case n.Type.tag == tagStaticConstantPad && e.shapes[n.In[0]] == e.shapes[n.Out[0]]:
		name = "Copy"
	}
	if r, ok := rates[name]; ok {
		return r
	}
	return rateOfOthers
}

// isShort reports whether a node reads or writes elements of 8 bits.
func (e *estimator) isShort(n *node) bool {
	return min(e.Values[n.In[0]].Datatype.info().bits, e.Values[n.Out[0]].Datatype.info().bits) == 8
}

// elementTime returns a node's time per element of its output. It is shorter for few elements, which
// fit into the first-level cache, if memory takes longer than the arithmetic.
func (e *estimator) elementTime(n *node, r rate) float64 {
	if time := r.codes[e.engine]; time > 0 && e.isShort(n) {
		return time
	}
	time, count := r.element[e.engine], e.shapes[n.Out[0]].numel()
	for _, v := range n.In {
		if v != none {
			count += e.shapes[v].numel()
		}
	}
	if count < nearElements && time < nearTime {
		time *= nearShare
	}
	return time
}

// transposeTime returns the time to copy rows of a permuted shape that stay contiguous, or to transpose matrices.
func (e *estimator) transposeTime(n *node, r rate, in shape, perm []int) float64 {
	y := e.shapes[n.Out[0]]
	elements, rows, matrices, shorter, few := float64(y.numel()), 0, 0, 0, false
	switch rows, matrices, shorter, few = transposeRuns(in, perm); {
	case rows > 0:
		row := r.row[e.engine]
		if e.engine == byGo && y.numel() <= 4*rows { // copied like elements
			row = turnShortRow
		}
		return e.elementTime(n, r)*elements + row*float64(rows)
	case matrices == 0:
		return e.elementTime(n, rates["Copy"]) * elements
	}
	if bits := e.Values[n.Out[0]].Datatype.info().bits; few && e.engine == byGo && bits == 32 {
		return turnFew*elements + turnFewMatrix*float64(matrices)
	}
	time, narrow, long := turnTime[e.engine], turnNarrow[e.engine], turnLong
	if e.isShort(n) {
		time, narrow, long = turnShort[e.engine], turnNarrowShort[e.engine], turnLongShort
	} else if y.numel() > nearTurned {
		time += turnFar
	}
	if shorter < narrowMatrix {
		if y.numel() >= matrices*shorter*longMatrix {
			narrow = long[e.engine]
		}
		time = narrow / float64(shorter)
	}
	if y.numel() > farElements {
		time += farTime
	}
	return time*elements + turnMatrix[e.engine]*float64(matrices)
}

// transposeRuns classifies a transpose. It returns the number of rows that stay contiguous, or the
// number of transposed matrices and their shorter side. All are 0 if no element moves. few is set for matrices of two or
// three dense rows or columns that follow each other.
func transposeRuns(in shape, perm []int) (rows, matrices, shorter int, few bool) {
	type run struct{ first, last, size int } // of input dimensions
	var memory [xnn.MaxDims]run
	runs := memory[:0]
	last := func(d int) int { // the dimension before d that has several elements
		for d--; d >= 0 && in.dim[d] == 1; d-- {
		}
		return d
	}
	for _, d := range perm {
		switch k := len(runs) - 1; {
		case in.dim[d] == 1:
		case k >= 0 && runs[k].last == last(d):
			runs[k].last, runs[k].size = d, runs[k].size*in.dim[d]
		default:
			runs = append(runs, run{d, d, in.dim[d]})
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
		return in.numel() / inner.size, 0, 0, false
	}
	zips, unzips := inner.size <= fewRows && outer == runs[len(runs)-2], outer.size <= fewRows && inner.last == last(outer.first)
	few = (zips || unzips) && max(inner.size, outer.size) >= narrowMatrix
	return 0, in.numel() / (inner.size * outer.size), min(inner.size, outer.size), few
}

// pieces returns the number of contiguous copies of a concatenation.
func (e *estimator) pieces(n *node, y shape) int {
	axis, _ := params[concatenateParams](n).of(y.rank)
	return y.leading(axis) * len(n.In)
}

// rows returns the number of runs of elements that a node computes one after the other. A run is a
// copy of a concatenation or slice, a product of a batch, the elements that share a scale, the
// elements along which each of two operands is either contiguous or repeated, else the last
// dimension.
func (e *estimator) rows(n *node, y shape) int {
	run := y.last()
	switch x := &e.Values[n.Out[0]]; {
	case x.Datatype == qdint8:
		return scalesOf(x, y)
	case n.isConcatenate():
		return e.pieces(n, y)
	case n.Type.tag == tagBatchMatrixMultiply:
		return y.leading(max(y.rank-2, 0))
	case n.Type.name == "StaticSlice":
		in, i := e.shapes[n.In[0]], y.rank-1
		for ; i > 0 && in.dim[i] == y.dim[i]; i-- {
		}
		return y.leading(i)
	case len(n.In) == 2 && !n.Type.packs:
		run = e.pairRun(n.In[0], n.In[1], y)
	}
	return y.numel() / max(run, 1)
}

// pairRun returns the number of innermost elements of y along which each operand is either contiguous
// or repeated.
func (e *estimator) pairRun(a, b int, y shape) int {
	has := func(v, i int) bool { return i < e.shapes[v].rank && e.shapes[v].fromEnd(i) == y.fromEnd(i) }
	run, continues := 1, [2]bool{}
	for i := range y.rank {
		if y.fromEnd(i) == 1 {
			continue
		}
		now := [2]bool{has(a, i), has(b, i)}
		if run > 1 && now != continues {
			break
		}
		run, continues = run*y.fromEnd(i), now
	}
	return run
}

// weightTime returns the time to read a product's second operand, in addition to the work.
func (e *estimator) weightTime(n *node) float64 {
	if !n.Type.packs {
		return 0
	}
	bits := float64(e.Values[n.In[1]].Datatype.info().bits)
	return float64(e.shapes[n.In[1]].numel()) * e.part[n.In[1]] * weightTime * bits / 32
}

// workTime returns the time of a node's work.
func (e *estimator) workTime(n *node, r rate) float64 {
	rate := r.work[e.engine]
	if n.Type.cost == nil || rate == 0 {
		return 0
	}
	short := e.Values[n.In[0]].Datatype.info().bits == 8
	if short && r.short[e.engine] > 0 {
		rate *= r.short[e.engine]
	}
	work := float64(n.Type.cost(e.graph, n, e.shapes))
	channels, tile := e.channels(n)
	if channels > 0 {
		work *= float64(roundUp(channels, tile)) / float64(channels)
	}
	if n.Type.packs {
		rate *= e.slower
	}
	return work * rate
}

// channels returns the number of channels of a node, and how many of them are computed together:
// output channels of products, channels of windows. It returns 0 for pools of the Go engine, which
// have no tiles.
func (e *estimator) channels(n *node) (channels, tile int) {
	switch {
	case !n.Type.packs && e.engine == byLibrary:
		return e.shapes[n.In[0]].last(), max(e.tile/2, 8)
	case !n.Type.packs:
		return 0, 0
	case n.Type.tag == tagBatchMatrixMultiply:
		return e.shapes[n.Out[0]].last(), e.tile
	}
	return e.shapes[n.Out[0]].last(), max(e.tile/2, 8)
}
