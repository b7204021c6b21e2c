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

// rate is how long a kind of node takes on one thread, in nanoseconds: for an element of
// the output; for a unit of work, which is a multiplication of a product or an element of
// a window; and, in the library, for a row. The rates of the library are a fit to what
// some five hundred regions of models took on a processor with AVX-512 at 3 GHz, and
// BenchmarkRates measures them.
type rate struct {
	element, work [2]float64 // of libXNNPACK, of the Go engine
	codes         [2]float64 // for an element of 8 bits, 0: as for others
	row           float64
}

// Engines of rates.
const (
	byLibrary = iota
	byGo
)

// rates of nodes, by name; those of rateOfOthers for the rest.
var rates = map[string]rate{
	"Conv2d":              {work: [2]float64{0.0185, 0.0185}, element: [2]float64{0.05, 0.05}, row: 2.3},
	"ConvTranspose2d":     {work: [2]float64{0.044, 0.0195}, element: [2]float64{0.05, 0.1}, row: 2.2},
	"DepthwiseConv2d":     {work: [2]float64{0.042, 0.042}, element: [2]float64{0.11, 0.05}},
	"FullyConnected":      {work: [2]float64{0.0186, 0.0182}, element: [2]float64{0.085, 0.085}, row: 3.4},
	"BatchMatrixMultiply": {work: [2]float64{0.0264, 0.0184}, element: [2]float64{0.2, 0.1}, row: 2},

	"AvgPooling2d":           {work: [2]float64{0.07, 0.025}, element: [2]float64{0.15, 0.3}},
	"MaxPooling2d":           {work: [2]float64{0.061, 0.03}, element: [2]float64{0.15, 0.2}},
	"GlobalAvgPooling2d":     {work: [2]float64{0.044, 0.047}, element: [2]float64{2.2, 0.1}},
	"Softmax":                {element: [2]float64{0.25, 0.65}, row: 16},
	"StaticResizeBilinear2D": {element: [2]float64{0.34, 0.19}},

	"StaticTranspose":   {element: [2]float64{0.05, 0.12}, row: 0.1},
	"StaticReshape":     {element: [2]float64{0.04, 0.073}},
	"Copy":              {element: [2]float64{0.075, 0.073}},
	"StaticSlice":       {element: [2]float64{0.11, 0.13}},
	"StaticConstantPad": {element: [2]float64{0.1, 0.13}},
	"Concatenate2":      {element: [2]float64{0.1, 0.15}},
	"Concatenate3":      {element: [2]float64{0.11, 0.15}},
	"Concatenate4":      {element: [2]float64{0.115, 0.15}},
	"Concatenate5":      {element: [2]float64{0.115, 0.15}},
	"Convert":           {element: [2]float64{0.27, 0.07}, codes: [2]float64{0.05, 0.14}},

	"Add":                  {element: [2]float64{0.11, 0.12}, codes: [2]float64{0.14, 0.3}, row: 3.5},
	"Subtract":             {element: [2]float64{0.11, 0.12}, codes: [2]float64{0.14, 0.3}, row: 3.5},
	"Multiply":             {element: [2]float64{0.11, 0.12}, codes: [2]float64{0.25, 0.3}, row: 3.5},
	"Div":                  {element: [2]float64{0.1, 0.12}, row: 3.5},
	"Maximum":              {element: [2]float64{0.1, 0.12}, row: 3.5},
	"Minimum":              {element: [2]float64{0.1, 0.12}, row: 3.5},
	"Clamp":                {element: [2]float64{0.074, 0.073}, codes: [2]float64{0.02, 0.02}},
	"LeakyReLU":            {element: [2]float64{0.08, 0.074}},
	"SquareRoot":           {element: [2]float64{0.125, 0.17}},
	"ReciprocalSquareRoot": {element: [2]float64{0.1, 0.285}},
	"Sigmoid":              {element: [2]float64{0.19, 0.45}, codes: [2]float64{0.09, 0.02}},
	"Tanh":                 {element: [2]float64{0.24, 0.41}, codes: [2]float64{0.09, 0.02}},
	"Log":                  {element: [2]float64{0.25, 0.62}},
	"Gelu":                 {element: [2]float64{0.31, 0.68}},
	"ELU":                  {element: [2]float64{0.27, 0.48}},
	"Exp":                  {element: [2]float64{2.1, 0.38}},
	"Sin":                  {element: [2]float64{5.2, 0.41}},
	"Cos":                  {element: [2]float64{5.1, 0.41}},
}

var rateOfOthers = rate{element: [2]float64{0.09, 0.12}}

const (
	nodeTime   = 20 // to start a node of the library
	callTime   = 40 // to come to the library and back
	goNodeTime = 16 // to start a node of the Go engine
	goCallTime = 5  // to come there
	batchTime  = 35 // for each product of a batch
	// The library has depthwise kernels for so many taps; larger windows it computes
	// channel by channel.
	depthwiseTaps, slowTap = 25, 0.8
	weightTime             = 0.02 // to read a weight of a product from memory
	turnTime               = 0.06 // for an element of a transpose that moves alone, beside the rate
	// For one of more elements than caches hold, beside that.
	farElements, farTime = 1 << 17, 0.13
	// Up to so many elements are in the nearest cache, which matters for times below.
	nearElements, nearTime = 1 << 12, 0.15
	scaleTime              = 0.4 // for an element whose scale is found at run time
	pieceTime              = 3   // for a run of elements of one operand of a concatenation
)

// How long products of 8-bit elements take beside float32, and depthwise ones, by engine.
var shortProduct, shortDepthwise = [2]float64{0.3, 0.36}, [2]float64{1.4, 1.2}

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
// a share of their elements.
func (g *graph) estimate(s []shape, engine int, varies []bool, share float64) time.Duration {
	slower, tile := vectors()
	call, start := float64(callTime), float64(nodeTime)
	if engine == byGo {
		tile, call, start = tile/2, goCallTime, goNodeTime
	}
	e := estimator{graph: g, shapes: s, engine: engine, slower: slower, tile: tile, part: make([]float64, len(g.Values))}
	for v := range e.part {
		e.part[v] = 1
	}
	for i, v := range g.Args[:g.Inputs] {
		if varies[i] {
			e.part[v] = share
		}
	}
	total := call
	for i := range g.Nodes {
		total += start + e.nodeTime(&g.Nodes[i])
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
	r, ok := rates[n.Type.name]
	switch {
	case !ok:
		r = rateOfOthers
	case n.Type.tag == tagDepthwiseConv2d && !n.isDepthwise():
		r = rates["Conv2d"]
	}
	y := e.shapes[n.Out[0]]
	time := e.workTime(n, r.work[e.engine]) + e.elementTime(n, r)*float64(y.numel())
	if e.engine == byLibrary && r.row > 0 {
		time += r.row * float64(e.rows(n, y))
	}
	switch {
	case n.Type.tag == tagStaticTranspose:
		time += e.moveTime(n, y)
	case n.isConcatenate() && e.engine == byLibrary:
		time += pieceTime * float64(e.pieces(n, y))
	case n.Type.tag == tagBatchMatrixMultiply && e.engine == byLibrary:
		time += batchTime * float64(y.leading(max(y.rank-2, 0)))
	case e.Values[n.Out[0]].Datatype == qdint8:
		time += scaleTime * float64(y.numel())
	}
	if e.engine == byGo {
		time += e.goTime(n)
	}
	return part*time + e.weightTime(n)
}

// elementTime is what a node takes for an element of its output. Few elements are in the
// nearest cache, where all but what computes most takes half as long.
func (e *estimator) elementTime(n *node, r rate) float64 {
	time := r.element[e.engine]
	if short := min(e.Values[n.In[0]].Datatype.info().bits, e.Values[n.Out[0]].Datatype.info().bits) == 8; short && r.codes[e.engine] > 0 {
		time = r.codes[e.engine]
	}
	if e.shapes[n.Out[0]].numel() <= nearElements && time < nearTime {
		time /= 2
	}
	return time
}

// moveTime is what a transpose takes beside its rate.
func (e *estimator) moveTime(n *node, y shape) (time float64) {
	if e.engine == byLibrary && e.rows(n, y) == 0 {
		time = turnTime
	}
	if y.numel() > farElements {
		time += farTime
	}
	return time * float64(y.numel())
}

// pieces is how many runs of elements a concatenation copies.
func (e *estimator) pieces(n *node, y shape) int {
	return y.leading(params[concatenateParams](n).axis) * len(n.In)
}

// rows is how many runs of elements a node treats one after the other: those that stay
// side by side in a transpose, those along which an operand of a pair goes on or stays,
// those of the last dimension elsewhere.
func (e *estimator) rows(n *node, y shape) int {
	run := y.last()
	switch {
	case n.Type.tag == tagStaticTranspose:
		if perm := params[transposeParams](n).perm; perm[len(perm)-1] != len(perm)-1 {
			return 0 // elements one by one
		}
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
	return float64(e.shapes[n.In[1]].numel()) * e.part[n.In[1]] * weightTime
}

// workTime is what a node's work takes at a rate.
func (e *estimator) workTime(n *node, rate float64) float64 {
	if n.Type.cost == nil || rate == 0 {
		return 0
	}
	work := float64(n.Type.cost(e.graph, n, e.shapes))
	short := e.Values[n.In[0]].Datatype.info().bits == 8
	if e.engine == byLibrary && (!n.Type.packs || n.isDepthwise()) { // vectors of channels
		channels := max(e.shapes[n.In[0]].last(), 1)
		work *= float64(roundUp(channels, e.tile/2)) / float64(channels)
	}
	if n.isDepthwise() {
		if w := n.window(); e.engine == byLibrary && w.kernelH*w.kernelW > depthwiseTaps {
			rate = slowTap
		}
		if e.engine == byGo {
			c := e.shapes[n.In[0]].last()
			work *= float64(roundUp(c, goChannels)) / float64(max(c, 1))
		}
		if short {
			rate *= shortDepthwise[e.engine]
		}
		return work * rate
	}
	if !n.Type.packs {
		return work * rate
	}
	if channels, tile := e.together(n); channels > 0 {
		work *= float64(roundUp(channels, tile)) / float64(channels)
	}
	if short {
		rate *= shortProduct[e.engine]
	}
	return work * rate * e.slower
}

// together is how many output channels a product has, and how many it computes at once.
func (e *estimator) together(n *node) (channels, tile int) {
	switch w := n.window(); {
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
	if b.automatic() && x.estimates(shapes).prefersGo() {
		engine = byGo
	}
	return x.estimate(shapes, engine, varies, share), nil
}
