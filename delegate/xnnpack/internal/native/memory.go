package native

import (
	"fmt"
	"slices"
	"sort"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
)

// The memory of a unit is estimated from shapes before anything is allocated. The estimates are
// upper bounds: a test compares them with the library's allocations.

const (
	nodeBytes     = 1024 // descriptor of a node
	operatorBytes = 2304 // and of each of its operators
	valueBytes    = 192  // and of a value
	lineBytes     = 128  // rounding of one allocation
	tapBytes      = 8    // a pointer to one pixel of a window
	// Largest tiles of the library's kernels, in output positions, channels of depthwise
	// convolutions, input channels and output channels. Pointers and weights are stored by whole
	// tiles.
	tilePlaces, tileChannels, tileIn, tileOut = 16, 32, 32, 64
	tileFloats                                = 8 // input channels of products of floats
)

// needsOf estimates the memory of a native unit at the given shapes, with a version of the
// library.
func needsOf(g *graph.Graph, lib *xnn.Soname, s []graph.Shape, threads int) graph.Needs {
	return needsWith(g, arenaBytes(g, s, threads), lib, s)
}

// needsWith does that for an arena of so many bytes.
func needsWith(g *graph.Graph, shared int64, lib *xnn.Soname, s []graph.Shape) graph.Needs {
	n, example := graph.Needs{Timed: graph.Times(valueBytes, len(g.Values))}, int64(0)
	for i := range g.Nodes {
		node := &g.Nodes[i]
		n.Timed = graph.Plus(n.Timed, descriptorBytes(g, node))
		if typeOf(node).tables != nil {
			n.Timed = graph.Plus(n.Timed, typeOf(node).tables(g, node, s))
		}
		n.Weights = graph.Plus(n.Weights, weightBytes(g, node))
		if node.Type.Tag == graph.TagConvTranspose2d {
			example = lib.TransposedExample
		}
	}
	n.Shared = shared
	n.Scratch = graph.Plus(graph.Plus(n.Shared, n.Timed), example)
	return n
}

// descriptorBytes returns the size of the library's descriptors of a node: one for each operator.
func descriptorBytes(g *graph.Graph, n *graph.Node) int64 {
	switch {
	case typeOf(n).perInput:
		return nodeBytes + operatorBytes*int64(len(n.In))
	case typeOf(n).clampsApart && outputBounds(n): // another node
		return 2*(nodeBytes+operatorBytes) + valueBytes
	case isViaFloats(g, n):
		return 3*(nodeBytes+operatorBytes) + 2*valueBytes
	}
	return nodeBytes + operatorBytes
}

// scratchBytes returns the size of what is alive only while a node runs.
func scratchBytes(g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) (bytes int64) {
	if isViaFloats(g, n) {
		bytes = floatBytes(n, s)
	}
	if typeOf(n).scratch != nil {
		bytes = graph.Plus(bytes, typeOf(n).scratch(g, n, s, threads))
	}
	return bytes
}

// floatBytes returns the size of the values of float32 that a node is computed on.
func floatBytes(n *graph.Node, s []graph.Shape) (bytes int64) {
	values := []int{n.In[0], n.Out[0]}
	if n.Type.Tag == graph.TagConvert {
		values = values[:1]
	}
	for _, v := range values {
		bytes = graph.Plus(bytes, graph.Times(4, s[v].Numel())+2*lineBytes)
	}
	return bytes
}

// outputBounds reports whether the node clamps its output.
func outputBounds(n *graph.Node) bool { return n.Min != -graph.Inf || n.Max != graph.Inf }

// weightBytes returns the smallest size of a node's packed constants.
func weightBytes(g *graph.Graph, n *graph.Node) (bytes int64) {
	if !n.Type.Packs {
		return 0
	}
	for _, v := range n.In[1:] {
		if v != graph.None && g.Values[v].IsConst() {
			bytes += int64(len(g.Values[v].Data))
		}
	}
	return bytes
}

// windowTables returns the size of the table of a window's pixels for each output position.
func windowTables(g *graph.Graph, n *graph.Node, s []graph.Shape) int64 {
	w, in := n.Window(), s[n.In[0]]
	if w.AreInputPixels() && n.Type.Tag != graph.TagDepthwiseConv2d && n.Type.Tag != graph.TagConvTranspose2d { // a product of matrices
		return 0
	}
	bytes := graph.Plus(graph.Times(tapBytes, windowEntries(n, s[n.Out[0]])), graph.Times(in.Dim[0], in.Dim[3]*4+lineBytes)) // and zeros
	if n.Type.Tag == graph.TagDepthwiseConv2d {
		bytes = graph.Plus(bytes, depthwiseWeights(g, n))
	}
	return bytes
}

// windowEntries returns the number of pointers in a table.
func windowEntries(n *graph.Node, out graph.Shape) int {
	w := n.Window()
	taps, places := w.KernelH*w.KernelW, out.Dim[1]*out.Dim[2]
	switch {
	case n.Type.Tag == graph.TagConvTranspose2d: // tiles end with a row, for each position in a stride
		places = out.Dim[1] * (graph.RoundUp(out.Dim[2], w.StrideW) + w.StrideW*tilePlaces)
	case n.Type.Tag == graph.TagConv2d || n.Type.Tag == graph.TagDepthwiseConv2d && separates(w):
		places = graph.RoundUp(places, tilePlaces)
	case w.DilationW <= 1: // windows share columns
		return out.Dim[1]*(taps+(out.Dim[2]-1)*min(w.StrideW, w.KernelW)*w.KernelH) + tilePlaces + places
	}
	return taps * (places + tilePlaces)
}

// separates reports whether each group of a depthwise convolution is a separate product: with more taps than the library's
// kernels have, or with several outputs per channel.
func separates(w *graph.Window) bool { return w.KernelH*w.KernelW > 25 || w.GroupOut > 1 }

// windowScratch returns the size of the accumulators of a depthwise convolution or average pool that
// needs several passes.
func windowScratch(_ *graph.Graph, n *graph.Node, s []graph.Shape, threads int) int64 {
	w, in, out := n.Window(), s[n.In[0]], s[n.Out[0]]
	if w.KernelH*w.KernelW <= onePass || w.GroupIn > 1 {
		return 0
	}
	return graph.Times(max(threads, in.Dim[0]*out.Dim[1]), out.Dim[3]*8+lineBytes)
}

// onePass is the largest window for which no version of the library needs several passes.
const onePass = 9

// depthwiseWeights returns the size of the packed weights of a depthwise convolution, which the
// library stores in each runtime. With up to 9, or 25 taps, a tile of channels is packed together; with
// more, or with several outputs per channel, each group is a separate product.
func depthwiseWeights(g *graph.Graph, n *graph.Node) int64 {
	w, size := n.Window(), g.Values[n.In[1]].Datatype.Info().Bits/8
	taps := w.KernelH * w.KernelW
	if taps <= onePass && w.GroupOut == 1 {
		return graph.Times(graph.RoundUp(w.Groups, tileChannels), onePass*size+8)
	}
	if !separates(w) {
		return graph.Times(graph.RoundUp(w.Groups, tileChannels), 25*size+8)
	}
	return graph.Times(w.Groups, graph.RoundUp(w.GroupOut, tileOut), taps*tileIn/2+8)
}

// resizeTables returns the size of four pointers and two weights per output position. For halves, the
// newer library has another operator, and as many weights as pointers.
func resizeTables(g *graph.Graph, n *graph.Node, s []graph.Shape) int64 {
	out := s[n.Out[0]]
	if g.Values[n.In[0]].Datatype == graph.FP16 {
		return operatorBytes + graph.Times(8*tapBytes, out.Dim[1], out.Dim[2])
	}
	return graph.Times(4*tapBytes+2*4, out.Dim[1], out.Dim[2])
}

// reduceScratch returns the size of the sums of the outputs.
func reduceScratch(_ *graph.Graph, n *graph.Node, s []graph.Shape, _ int) int64 {
	return graph.Times(8, s[n.Out[0]].Numel()) + lineBytes
}

// reduceTables returns the size of a row of zeros.
func reduceTables(_ *graph.Graph, n *graph.Node, s []graph.Shape) int64 {
	return graph.Times(4, s[n.In[0]].Last()) + lineBytes
}

// fullyConnectedScratch returns the size of a second operand that is packed at run time, and of the
// output before it is reshaped (see fullyConnected2D).
func fullyConnectedScratch(g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) (bytes int64) {
	if n.Flags&graph.FlagReshape2D != 0 && s[n.In[0]].Rank != 2 {
		bytes = paddedBytes(g, n.Out[0], s)
	}
	if g.Values[n.Out[0]].Datatype == graph.FP16 && g.Values[n.In[0]].Datatype == graph.QDInt8 { // computed as float32 by the newer library
		bytes = graph.Plus(bytes, graph.Times(4, s[n.Out[0]].Numel())+8*lineBytes)
	}
	if g.Values[n.In[1]].IsConst() {
		return bytes
	}
	return graph.Plus(bytes, productScratch(g, n, s, threads))
}

// productScratch returns the size of the second operand if it is packed apart from the weights: at run
// time, or with its sums and scales if it is quantized.
func productScratch(g *graph.Graph, n *graph.Node, s []graph.Shape, _ int) int64 {
	b, d := s[n.In[1]], g.Values[n.In[1]].Datatype
	if g.Values[n.In[1]].IsConst() && d.IsFloat() && d != graph.FP16 && d != graph.BF16 { // packed once
		return 0
	}
	k, cols := b.FromEnd(1), b.FromEnd(0)
	if n.Flags&graph.FlagTransposeWeights != 0 || n.Type.Tag == graph.TagFullyConnected {
		k, cols = cols, k
	}
	size, tile, extra := d.Info().Bits/8, tileIn, 3*4
	if d.IsFloat() {
		tile, extra = tileFloats, 1
	}
	return graph.Times(b.Leading(b.Rank-2), size, graph.RoundUp(cols, tileOut), graph.RoundUp(k, tile)+extra)
}

func paddedBytes(g *graph.Graph, v int, s []graph.Shape) int64 {
	x := &g.Values[v]
	bytes := int64(graph.RoundUp(x.Datatype.Bytes(s[v]), lineBytes)) + lineBytes
	if x.Datatype == graph.QDInt8 {
		bytes += int64(graph.RoundUp(8*graph.ScalesOf(x, s[v]), lineBytes)) + lineBytes
	}
	return bytes
}

// maxOverlap bounds the time of the library's memory planner, which grows with the square of the number of values, and
// with the number of pairs of values that are alive together.
const maxOverlap = 1 << 20

// PlanLimits returns why the library would need more than a fraction of a second to plan a graph,
// or "" if it would not.
func PlanLimits(g *graph.Graph, s []graph.Shape) string {
	if len(g.Nodes) > graph.MaxPlanned {
		return fmt.Sprintf("%d nodes, at most %d", len(g.Nodes), graph.MaxPlanned)
	}
	if n := int64(len(g.Values)); n*n <= maxOverlap {
		return ""
	}
	items, _ := g.Items(s, func(v int) int64 { return paddedBytes(g, v, s) }, false)
	started := make([]int, len(g.Nodes)+1)
	ended := make([]int, len(g.Nodes)+1)
	for _, it := range items {
		started[it.First]++
		ended[it.Last]++
	}
	live, pairs := 0, 0
	for i := range started {
		pairs += started[i]*live + started[i]*started[i]
		live += started[i] - ended[i]
	}
	if pairs > maxOverlap {
		return fmt.Sprintf("%d pairs of values that are alive together, at most %d", pairs, maxOverlap)
	}
	return ""
}

// arenaBytes returns the size of the arena that the library's planner allocates: values and
// workspaces of nodes by decreasing size, each in the smallest gap between those alive with it.
func arenaBytes(g *graph.Graph, s []graph.Shape, threads int) int64 {
	p := libraryPlan{Graph: g, shapes: s, readers: g.Readers(), index: slices.Repeat([]int{graph.None}, len(g.Values))}
	p.items = make([]graph.Item, 0, 2*len(g.Nodes))
	for i := range g.Nodes {
		p.add(&g.Nodes[i], threads)
	}
	sort.SliceStable(p.items, func(i, k int) bool { return p.items[i].ID < p.items[k].ID })
	return graph.PlannedBytes(p.items)
}

// libraryPlan lists what the library plans. Its nodes are those of the graph, and the bounds of some
// as further ones.
type libraryPlan struct {
	*graph.Graph
	shapes  []graph.Shape
	readers []int
	items   []graph.Item
	index   []int // by value: its item, or none
	at      int   // the library's node
}

// add adds the values that a node writes, its workspace, and the value before its bounds. As in the
// library, items are numbered by kind first.
func (p *libraryPlan) add(n *graph.Node, threads int) {
	inner := graph.None
	for _, v := range n.In {
		if v != graph.None && p.index[v] != graph.None {
			p.items[p.index[v]].Last = p.at
			if inner == graph.None && n.Type.InPlace && p.readers[v] == 1 && p.same(v, n.Out[0]) {
				inner = p.index[v]
			}
		}
	}
	if bytes := scratchBytes(p.Graph, n, p.shapes, threads); bytes > 0 {
		p.new(2*len(p.Values)+p.at, bytes)
	}
	if typeOf(n).clampsApart && outputBounds(n) {
		if inner == graph.None {
			inner = p.new(len(p.Values)+p.at, paddedBytes(p.Graph, n.Out[0], p.shapes))
		}
		p.at++
		p.items[inner].Last = p.at
	}
	for _, v := range n.Out {
		switch {
		case p.Values[v].Arg != graph.None:
		case inner != graph.None && p.readers[v] == 1:
			p.index[v], p.items[inner].Last = inner, p.at
		default:
			p.index[v] = p.new(v, paddedBytes(p.Graph, v, p.shapes))
		}
	}
	p.at++
}

// new adds an item at the current node and returns its index.
func (p *libraryPlan) new(id int, bytes int64) int {
	p.items = append(p.items, graph.Item{Bytes: bytes, First: p.at, Last: p.at, ID: id})
	return len(p.items) - 1
}

// same reports whether two values have the same size.
func (p *libraryPlan) same(a, b int) bool {
	return p.Values[a].Datatype.Bytes(p.shapes[a]) == p.Values[b].Datatype.Bytes(p.shapes[b])
}

// affords reports whether a native unit at the given shapes stays within the limits. Those of the declared sizes say nothing
// about smaller ones, where values that share memory may need their own.
func (m *Image) affords(s []graph.Shape) bool {
	g, threads := m.Graph, m.InstanceThreads()
	return needsWith(g, unsharedBytes(g, s, threads), m.lib.Soname, s).Check(m.Limits) == nil ||
		needsOf(g, m.lib.Soname, s, threads).Check(m.Limits) == nil
}

// unsharedBytes returns the size of an arena in which nothing shares memory: an upper bound of arenaBytes that takes less time.
func unsharedBytes(g *graph.Graph, s []graph.Shape, threads int) (bytes int64) {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		bytes = graph.Plus(bytes, scratchBytes(g, n, s, threads))
		if typeOf(n).clampsApart && outputBounds(n) {
			bytes = graph.Plus(bytes, paddedBytes(g, n.Out[0], s))
		}
		for _, v := range n.Out {
			bytes = graph.Plus(bytes, paddedBytes(g, v, s))
		}
	}
	return bytes
}
