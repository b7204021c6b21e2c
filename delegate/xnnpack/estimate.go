package xnnpack

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// slower is how much longer products take with the processor's vectors than at the rates.
// AVX2 computes as many as AVX-512 does on processors that split its vectors. tile is how
// many output channels they compute together: one takes as long as so many.
func vectors() (slower float64, tile int) {
	has := func(name string) bool {
		return slices.ContainsFunc(cpu.Features(), func(f cpu.Feature) bool { return f.Name == name && f.Has })
	}
	switch {
	case has("avx512f"):
		return 1, 32
	case has("avx2"):
		return 1, 16
	}
	return 2, 8
}

// estimate is about how long a run of the graph takes on one thread. Inputs that vary have
// a share of their elements. Without a version of the library its rates are Debian's.
func (g *graph) estimate(lib *xnn.Soname, s []shape, engine int, varies []bool, share float64) time.Duration {
	slower, tile := vectors()
	if engine == byGo {
		tile /= 2
		g = g.withTables(s)
	}
	e := estimator{graph: g, narrow: lib != nil && lib.NarrowProducts, shapes: s, engine: engine, slower: slower, tile: tile, part: make([]float64, len(g.Values))}
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

// estimator is what nodes' times depend on.
type estimator struct {
	*graph
	shapes []shape
	engine int
	slower float64   // see vectors
	tile   int       // see vectors
	narrow bool      // see xnn.Soname
	part   []float64 // by value: the share of its elements
}

// nodeTime is a node's own time. Nodes come after those that compute what they read.
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
	r, y := e.rateOf(n), e.shapes[n.Out[0]]
	time := r.start[e.engine] + e.workTime(n, r)
	if n.Type.tag == tagStaticTranspose {
		time += e.transposeTime(n, r)
	} else {
		rows, elements := e.rows(n, y), y.numel()
		if n.Type.name == "Softmax" {
			elements = rows * roundUp(y.last(), softmaxVector)
		}
		time += e.elementTime(n, r)*float64(elements) + r.row[e.engine]*float64(rows)
	}
	if e.engine == byGo {
		time += e.goTime(n)
	}
	return part*time + e.weightTime(n)
}

// rateOf finds the row of a node.
func (e *estimator) rateOf(n *node) rate {
	name := n.Type.name
	switch {
	case n.Type.tag == tagDepthwiseConv2d && !n.isDepthwise():
		name = "Conv2d"
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

// isShort reports a node that reads or writes elements of 8 bits.
func (e *estimator) isShort(n *node) bool {
	return min(e.Values[n.In[0]].Datatype.info().bits, e.Values[n.Out[0]].Datatype.info().bits) == 8
}

// elementTime is what a node takes for an element of its output. Few elements are in the nearest
// cache, which matters where memory takes longer than the arithmetic.
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

// transposeTime is for rows of elements that stay side by side, or for matrices that are turned.
func (e *estimator) transposeTime(n *node, r rate) float64 {
	y := e.shapes[n.Out[0]]
	elements, rows, matrices, shorter := float64(y.numel()), 0, 0, 0
	switch rows, matrices, shorter = transposeRuns(e.shapes[n.In[0]], params[transposeParams](n).perm); {
	case rows > 0:
		return e.elementTime(n, r)*elements + r.row[e.engine]*float64(rows)
	case matrices == 0:
		return e.elementTime(n, rates["Copy"]) * elements
	}
	time, narrow := turnTime[e.engine], turnNarrow[e.engine]
	if e.isShort(n) {
		time, narrow = turnShort[e.engine], turnNarrowShort[e.engine]
	} else if y.numel() > nearTurned {
		time += turnFar
	}
	if shorter < narrowMatrix {
		time = narrow / float64(shorter)
	}
	if y.numel() > farElements {
		time += farTime
	}
	return time*elements + turnMatrix[e.engine]*float64(matrices)
}

// transposeRuns is how a transpose moves elements: rows of elements that stay side by side, or matrices
// whose shorter side is given. There are neither where nothing moves.
func transposeRuns(in shape, perm []int) (rows, matrices, shorter int) {
	type run struct{ first, last, size int } // of input dimensions
	var runs []run
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
		return 0, 0, 0
	}
	inner, outer := runs[len(runs)-1], runs[0]
	for _, r := range runs {
		if r.last > outer.last {
			outer = r
		}
	}
	if inner == outer {
		return in.numel() / inner.size, 0, 0
	}
	return 0, in.numel() / (inner.size * outer.size), min(inner.size, outer.size)
}

// pieces is how many runs of elements a concatenation copies.
func (e *estimator) pieces(n *node, y shape) int {
	return y.leading(params[concatenateParams](n).axis) * len(n.In)
}

// rows is how many runs of elements a node treats one after the other: copies of a concatenation or
// slice, products of a batch, those with a scale of their own, those along which an operand of a pair goes on or stays, and those of
// the last dimension elsewhere.
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

// pairRun is how many of the innermost elements of y either operand has as many of, or one.
func (e *estimator) pairRun(a, b int, y shape) int {
	has := func(v, i int) bool { return i < e.shapes[v].rank && e.shapes[v].fromEnd(i) == y.fromEnd(i) }
	run, goesOn := 1, [2]bool{}
	for i := range y.rank {
		if y.fromEnd(i) == 1 {
			continue
		}
		now := [2]bool{has(a, i), has(b, i)}
		if run > 1 && now != goesOn {
			break
		}
		run, goesOn = run*y.fromEnd(i), now
	}
	return run
}

// weightTime is what reading a product's second operand takes beside the work.
func (e *estimator) weightTime(n *node) float64 {
	if !n.Type.packs {
		return 0
	}
	bits := float64(e.Values[n.In[1]].Datatype.info().bits)
	return float64(e.shapes[n.In[1]].numel()) * e.part[n.In[1]] * weightTime * bits / 32
}

// workTime is what a node's work takes.
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
	if n.Type.packs && !n.isDepthwise() {
		return work * rate * e.slower
	}
	if w := n.window(); n.isDepthwise() && e.engine == byLibrary {
		switch taps := w.kernelH * w.kernelW; {
		case taps > depthwiseTaps:
			rate = slowTap
		case short && taps > manyTaps:
			rate *= manyTapsTime
		}
	}
	return work * rate
}

// channels is how many channels a node computes, and how many of them at once: output channels of
// products, channels of windows. The Go engine pools as many as there are.
func (e *estimator) channels(n *node) (channels, tile int) {
	short := e.Values[n.In[0]].Datatype.info().bits == 8
	switch w := n.window(); {
	case n.isDepthwise() && e.engine == byGo && !short:
		return e.shapes[n.In[0]].last(), goChannels
	case n.isDepthwise() || !n.Type.packs && e.engine == byLibrary:
		return e.shapes[n.In[0]].last(), max(e.tile/2, 8)
	case !n.Type.packs:
		return 0, 0
	case w != nil && (short || e.narrow && e.engine == byLibrary && e.tile > narrowTile):
		return w.groupOut, max(e.tile/2, 8)
	case w != nil:
		return w.groupOut, e.tile
	case n.Type.tag == tagBatchMatrixMultiply:
		return e.shapes[n.Out[0]].last(), e.tile
	}
	return e.shapes[n.Out[0]].last(), max(e.tile/2, 8)
}

// Version implements delegate.Compiler.
func (b Backend) Version() string {
	lib, err := xnn.Open(b.Library)
	if b.Engine == EngineReference || err != nil {
		return string(EngineReference)
	}
	return fmt.Sprintf("%s %s %x", b.Engine, lib.Soname.Name, lib.BuildIdentifier())
}

// engine is the engine that graphs get if the library may have them.
func (b Backend) engine() int {
	if b.Engine == EngineReference {
		return byGo
	}
	if _, err := xnn.Open(b.Library); err != nil {
		return byGo
	}
	return byLibrary
}

// Estimate implements delegate.Compiler.
func (b Backend) Estimate(g *delegate.Graph, share float64) (time.Duration, error) {
	l := newLowering(g, true)
	defer l.again()
	x, _, err := l.whole()
	if err != nil {
		return 0, err
	}
	shapes, err := x.repair()
	if err != nil {
		return 0, err
	}
	x.fuse(shapes)
	if why := cmp.Or(x.planLimits(shapes), x.refuses(shapes)); why != "" {
		return 0, unsupported("", "%s", why)
	}
	varies := make([]bool, len(g.Inputs))
	for i, v := range g.Inputs {
		varies[i] = g.Values[v].Dynamism != tensor.Static
	}
	engine := b.engine()
	if b.automatic() && b.estimates(x, shapes).prefersGo() {
		engine = byGo
	}
	return x.estimate(xnn.Locate(b.Library), shapes, engine, varies, share), nil
}
