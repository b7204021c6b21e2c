// Package quantize converts graphs of floats to graphs of quantized weights and values.
package quantize

import (
	"cmp"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Plan is a graph of floats, and what can be quantized of it.
type Plan struct {
	Graph  *graph.Graph // checked; it is not modified
	Scheme lowering.Scheme
	Layers []Layer
	// Refuses returns why the library does not run a node, "" if it does.
	Refuses func(*graph.Graph, *graph.Node, []graph.Shape) string

	layers    []int               // by node: its layer, or none
	observers map[int]*Observer   // by value, for static quantization
	quants    map[int]graph.Quant // by value: its scale and zero point, once they are needed
	weights   map[weightKey]*graph.Value
	readers   []int        // by value: how often it is read
	steps     map[int]bool // by value: a product of a recurrent layer computes it
	divisors  map[int]bool // by value

	by        lowering.Observer // of values whose best one is not known
	best      map[int]lowering.Observer
	corrected bool // biases are
	measured  map[lowering.Observer]*measured
}

// Layer is a node that is quantized.
type Layer struct {
	Node   int
	Forms  []lowering.SchemeName // that it may have, the fastest first
	Reason string                // why it stays as it is
}

// weightKey identifies a quantized filter. Those of static layers depend on the scales of their input and output.
type weightKey struct {
	value, node int
	in, out     float32
	form        lowering.SchemeName
}

// layer reports whether a node is a layer, and which forms it may have or why it cannot be quantized.
func (p *Plan) layer(i int) (l Layer, is bool) {
	n := &p.Graph.Nodes[i]
	l.Node = i
	switch {
	case n.Type.Weighted():
		for _, s := range p.schemes(n) {
			why := p.weighted(n, s)
			if l.Reason = cmp.Or(l.Reason, why); why == "" {
				l.Forms = append(l.Forms, s)
			}
		}
		if len(l.Forms) > 0 {
			l.Reason = ""
		}
		return l, true
	case p.isStatic() && isElementwise(n) && p.areFloats(n):
		l.Forms = []lowering.SchemeName{lowering.Static8}
		return l, true
	}
	return l, false
}

// isStatic reports whether layers may have values of 8 bits, whose ranges are observed.
func (p *Plan) isStatic() bool {
	return p.Scheme.Name == lowering.Static8 || p.Scheme.Name == lowering.Auto
}

// A product of at most fewRows rows with at least manyWeights waits for its weights: it is faster with fewer bits.
const fewRows, manyWeights = 4, 1 << 18

// schemes lists those that a node with weights may have, the fastest first.
func (p *Plan) schemes(n *graph.Node) []lowering.SchemeName {
	if p.Scheme.Name != lowering.Auto {
		return []lowering.SchemeName{p.Scheme.Name}
	}
	list := []lowering.SchemeName{lowering.Static8, lowering.Dynamic8}
	if weights := p.Graph.Values[n.In[1]].Shape.Numel(); n.Type.Tag == graph.TagFullyConnected && weights >= manyWeights &&
		p.Graph.Values[n.In[0]].Shape.Numel() <= fewRows*n.InputChannels(p.Graph) {
		list = append([]lowering.SchemeName{lowering.Dynamic4}, list...)
	}
	return list
}

// isElementwise reports whether a node of two operands is quantized.
func isElementwise(n *graph.Node) bool {
	return n.Type.Tag == graph.TagAdd || n.Type.Tag == graph.TagMultiply
}

// areFloats reports whether all values of a node are float32.
func (p *Plan) areFloats(n *graph.Node) bool {
	for _, list := range [2][]int{n.In, n.Out} {
		for _, v := range list {
			if v != graph.None && p.Graph.Values[v].Datatype != graph.FP32 {
				return false
			}
		}
	}
	return true
}

// weighted returns why a node with weights cannot be quantized with a scheme, "" if it can.
func (p *Plan) weighted(n *graph.Node, s lowering.SchemeName) string {
	x := &p.Graph.Values[n.In[1]]
	switch {
	case !p.areFloats(n):
		return "it has values that are not float32"
	case !x.IsConst() || n.In[2] != graph.None && !p.Graph.Values[n.In[2]].IsConst():
		return "its weights are not constant"
	case n.Flags&graph.FlagReshape2D != 0:
		return "it changes the rank of its input"
	}
	reason, dynamic := "", s == lowering.Dynamic8 && !p.Scheme.All
	if n.Type.Convolution {
		reason = convolutionReasons[s](n)
		if reason == "" && dynamic {
			reason = p.lossy(n)
		}
	} else if group := p.Scheme.Group; s == lowering.Dynamic4 && n.InputChannels(p.Graph)%group != 0 {
		reason = "its input channels are no multiple of the group"
	} else if dynamic && p.recurrent()[n.Out[0]] {
		reason = "it is part of a recurrent layer, where the noise of all steps adds up"
	}
	if reason == "" && !rowsOf(n, x).finite() {
		reason = "its weights are not finite"
	}
	return reason
}

// recurrent returns the results of products in recurrent layers.
func (p *Plan) recurrent() map[int]bool {
	if p.steps == nil {
		p.steps = recurrent(p.Graph)
	}
	return p.steps
}

// lossy returns why a convolution is not quantized at run time unless all are, "" if it is. All pixels share a scale, and exporters
// leave the same ones, since they are where most of the noise would be.
func (p *Plan) lossy(n *graph.Node) string {
	in, w := p.Graph.Values[n.In[0]].Shape, n.Window()
	switch {
	case n.Min == 0 && n.Max == graph.Inf:
		return "a convolution followed by a relu loses much when it is quantized at run time"
	case !isProduct(n) && in.Rank == 4 && (in.Dim[1] == 1 && w.KernelH == 1 || in.Dim[2] == 1 && w.KernelW == 1):
		return "a convolution of one dimension loses much when it is quantized at run time"
	}
	return ""
}

// convolutionReasons return why a convolution is not quantized, by scheme: the library lacks kernels for the others.
var convolutionReasons = map[lowering.SchemeName]func(*graph.Node) string{
	lowering.Dynamic8: func(n *graph.Node) string {
		if n.Type.Tag == graph.TagDepthwiseConv2d || n.Window().GroupIn == 1 {
			return "a depthwise convolution is not quantized at run time"
		}
		return severalGroups(n)
	},
	lowering.Static8:  severalGroups,
	lowering.Dynamic4: func(*graph.Node) string { return "a convolution has no 4-bit weights" },
	lowering.Weights8: func(*graph.Node) string { return "a convolution of floats has no 8-bit weights" },
}

func severalGroups(n *graph.Node) string {
	if n.Type.Tag == graph.TagConvTranspose2d && n.Window().Groups > 1 {
		return "a transposed convolution of several groups has no quantized form"
	}
	return ""
}

// numbers returns the elements of a constant of floats.
func numbers(x *graph.Value) []float32 { return tensor.View[float32](x.Data)[:x.Shape.Numel()] }

// isProduct reports whether a layer multiplies each pixel or row with a matrix. A convolution of single pixels becomes a product, so that
// each pixel has a scale of its own, with all engines: the library makes a product of it anyway.
func isProduct(n *graph.Node) bool {
	w := n.Window()
	return w == nil || n.Type.Tag == graph.TagConv2d && w.AreInputPixels() && w.Groups == 1
}
