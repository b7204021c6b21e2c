package xnnpack

import (
	"fmt"
	"slices"
	"time"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// rate is how long a kind of node takes on one thread, in nanoseconds: for an element of
// the output, and for a unit of work, which is a multiplication of a product or an element
// of a window. BenchmarkRates measures them; these are of an AVX-512 processor at 3 GHz.
type rate struct {
	element, work [2]float64 // of libXNNPACK, of the Go engine
}

// Engines of rates.
const (
	byLibrary = iota
	byGo
)

// rates of nodes, by name; those of rateOfOthers for the rest.
var rates = map[string]rate{
	"Conv2d":              {work: [2]float64{0.0178, 0.024}, element: [2]float64{0.05, 6}},
	"ConvTranspose2d":     {work: [2]float64{0.035, 0.08}, element: [2]float64{0.05, 0.5}},
	"DepthwiseConv2d":     {work: [2]float64{0.05, 0.6}, element: [2]float64{0.1, 1}},
	"FullyConnected":      {work: [2]float64{0.0178, 0.02}, element: [2]float64{0.05, 0.2}},
	"BatchMatrixMultiply": {work: [2]float64{0.0178, 0.03}, element: [2]float64{0.2, 0.5}},

	"AvgPooling2d":           {work: [2]float64{0.06, 0.3}, element: [2]float64{0.15, 0.3}},
	"MaxPooling2d":           {work: [2]float64{0.06, 0.2}, element: [2]float64{0.15, 0.3}},
	"GlobalAvgPooling2d":     {work: [2]float64{0.045, 0.17}},
	"Softmax":                {element: [2]float64{0.46, 0.7}},
	"StaticResizeBilinear2D": {element: [2]float64{0.37, 1.5}},

	"StaticTranspose":   {element: [2]float64{0.2, 5}},
	"StaticReshape":     {element: [2]float64{0.08, 0.08}},
	"Copy":              {element: [2]float64{0.08, 0.08}},
	"StaticSlice":       {element: [2]float64{0.13, 0.28}},
	"StaticConstantPad": {element: [2]float64{0.2, 0.2}},
	"Concatenate2":      {element: [2]float64{0.115, 0.2}},
	"Concatenate3":      {element: [2]float64{0.115, 0.2}},
	"Concatenate4":      {element: [2]float64{0.115, 0.2}},
	"Concatenate5":      {element: [2]float64{0.115, 0.2}},
	"Convert":           {element: [2]float64{0.06, 1}},

	"Clamp":                {element: [2]float64{0.08, 5.3}},
	"LeakyReLU":            {element: [2]float64{0.08, 1.4}},
	"SquareRoot":           {element: [2]float64{0.125, 2.2}},
	"ReciprocalSquareRoot": {element: [2]float64{0.1, 6.5}},
	"Sigmoid":              {element: [2]float64{0.2, 4.2}},
	"Tanh":                 {element: [2]float64{0.25, 5.4}},
	"Log":                  {element: [2]float64{0.25, 6.2}},
	"Gelu":                 {element: [2]float64{0.32, 5.3}},
	"ELU":                  {element: [2]float64{0.34, 5.7}},
	"Exp":                  {element: [2]float64{3, 3.2}},
	"Sin":                  {element: [2]float64{5.8, 6.9}},
	"Cos":                  {element: [2]float64{5.6, 6.3}},
}

var rateOfOthers = rate{element: [2]float64{0.13, 3}}

const (
	nodeTime = 60  // to start a node
	callTime = 500 // to come to the library and back
	// The library has depthwise kernels for so many taps; larger windows it computes
	// channel by channel.
	depthwiseTaps, slowTap = 25, 0.97
	weightTime             = 0.025 // to read a weight of a product from memory
	// how long products of 8-bit elements take beside float32, and depthwise ones
	shortProduct, shortDepthwise = 0.3, 1.4
)

// lanes is how many float32 a vector holds that the rates hold for, and tile how many
// output channels products compute together: one channel takes as long as so many.
func lanes() (lanes, tile int) {
	has := func(name string) bool {
		return slices.ContainsFunc(cpu.Features(), func(f cpu.Feature) bool { return f.Name == name && f.Has })
	}
	switch {
	case has("avx512f"):
		return 16, 32
	case has("avx2"):
		return 8, 16
	}
	return 4, 8
}

// estimate is about how long a run of the graph takes on one thread. Inputs that vary have
// a share of their elements.
func (g *graph) estimate(s []shape, engine int, varies []bool, share float64) time.Duration {
	width, tile := lanes()
	if engine == byGo {
		tile = 8
	}
	e := estimator{graph: g, shapes: s, engine: engine, slower: 16 / float64(width), tile: tile, part: make([]float64, len(g.Values))}
	for v := range e.part {
		e.part[v] = 1
	}
	for i, v := range g.Args[:g.Inputs] {
		if varies[i] {
			e.part[v] = share
		}
	}
	total := float64(callTime)
	for i := range g.Nodes {
		total += nodeTime + e.nodeTime(&g.Nodes[i])
	}
	return time.Duration(total)
}

// estimator is what nodes' times depend on.
type estimator struct {
	*graph
	shapes []shape
	engine int
	slower float64   // how much longer products take than at the rates' vectors
	tile   int       // see lanes
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
	if !ok {
		r = rateOfOthers
	}
	return part*(e.workTime(n, r.work[e.engine])+r.element[e.engine]*float64(e.shapes[n.Out[0]].numel())) + e.weightTime(n)
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
	short := e.Values[n.In[0]].Datatype.info().bits == 8 && e.engine == byLibrary
	if n.Type.tag == tagDepthwiseConv2d {
		if w := n.window(); e.engine == byLibrary && (w.kernelH*w.kernelW > depthwiseTaps || w.groupOut > 1) {
			rate = slowTap
		}
		if short {
			rate *= shortDepthwise
		}
		return work * rate
	}
	if !n.Type.packs {
		return work * rate
	}
	if n.Type.convolution || e.Values[n.In[1]].isConst() && n.Type.optional > 0 {
		channels := n.outputChannels(e.graph)
		if w := n.window(); w != nil {
			channels = w.groupOut
		}
		work *= float64(roundUp(channels, e.tile)) / float64(channels)
	}
	if short {
		rate *= shortProduct
	}
	return work * rate * e.slower
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

// noEstimate is for graphs that cannot be lowered.
const noEstimate = time.Hour

// Estimate implements delegate.Compiler.
func (b Backend) Estimate(g *delegate.Graph, share float64) time.Duration {
	x, err := lowered(g, true)
	if err != nil {
		return noEstimate
	}
	shapes, err := x.repair()
	if err != nil {
		return noEstimate
	}
	x.fuse(shapes)
	varies := make([]bool, len(g.Inputs))
	for i, v := range g.Inputs {
		varies[i] = g.Values[v].Dynamism != tensor.Static
	}
	return x.estimate(shapes, b.engine(), varies, share)
}
