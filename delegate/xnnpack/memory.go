package xnnpack

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/cbindings/xnn"
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

// nativeNeeds estimates the memory of a native unit at the given shapes, with a version of the
// library.
func nativeNeeds(g *graph, lib *xnn.Soname, s []shape, threads int) needs {
	return nativeNeedsWith(g, arenaBytes(g, s, threads), lib, s)
}

// nativeNeedsWith does that for an arena of so many bytes.
func nativeNeedsWith(g *graph, shared int64, lib *xnn.Soname, s []shape) needs {
	n, example := needs{timed: times(valueBytes, len(g.Values))}, int64(0)
	for i := range g.Nodes {
		node := &g.Nodes[i]
		n.timed = plus(n.timed, descriptorBytes(g, node))
		if nativeTypeOf(node).tables != nil {
			n.timed = plus(n.timed, nativeTypeOf(node).tables(g, node, s))
		}
		n.weights = plus(n.weights, weightBytes(g, node))
		if node.Type.tag == tagConvTranspose2d {
			example = lib.TransposedExample
		}
	}
	n.shared = shared
	n.scratch = plus(plus(n.shared, n.timed), example)
	return n
}

// descriptorBytes returns the size of the library's descriptors of a node: one for each operator.
func descriptorBytes(g *graph, n *node) int64 {
	switch {
	case nativeTypeOf(n).perInput:
		return nodeBytes + operatorBytes*int64(len(n.In))
	case nativeTypeOf(n).clampsApart && outputBounds(n): // another node
		return 2*(nodeBytes+operatorBytes) + valueBytes
	}
	return nodeBytes + operatorBytes
}

// outputBounds reports whether the node clamps its output.
func outputBounds(n *node) bool { return n.Min != -inf || n.Max != inf }

// weightBytes returns the smallest size of a node's packed constants.
func weightBytes(g *graph, n *node) (bytes int64) {
	if !n.Type.packs {
		return 0
	}
	for _, v := range n.In[1:] {
		if v != none && g.Values[v].isConst() {
			bytes += int64(len(g.Values[v].Data))
		}
	}
	return bytes
}

// areInputPixels reports whether each window is a pixel of the input, in order.
func (w *window) areInputPixels() bool {
	return w.kernelH*w.kernelW*w.strideH*w.strideW == 1 && w.top+w.bottom+w.left+w.right == 0
}

// windowTables returns the size of the table of a window's pixels for each output position.
func windowTables(g *graph, n *node, s []shape) int64 {
	w, in := n.window(), s[n.In[0]]
	if w.areInputPixels() && n.Type.tag != tagDepthwiseConv2d && n.Type.tag != tagConvTranspose2d { // a product of matrices
		return 0
	}
	bytes := plus(times(tapBytes, windowEntries(n, s[n.Out[0]])), times(in.dim[0], in.dim[3]*4+lineBytes)) // and zeros
	if n.Type.tag == tagDepthwiseConv2d {
		bytes = plus(bytes, depthwiseWeights(g, n))
	}
	return bytes
}

// windowEntries returns the number of pointers in a table.
func windowEntries(n *node, out shape) int {
	w := n.window()
	taps, places := w.kernelH*w.kernelW, out.dim[1]*out.dim[2]
	switch {
	case n.Type.tag == tagConvTranspose2d: // tiles end with a row, for each position in a stride
		places = out.dim[1] * (roundUp(out.dim[2], w.strideW) + w.strideW*tilePlaces)
	case n.Type.tag == tagConv2d || n.Type.tag == tagDepthwiseConv2d && separates(w):
		places = roundUp(places, tilePlaces)
	case w.dilationW <= 1: // windows share columns
		return out.dim[1]*(taps+(out.dim[2]-1)*min(w.strideW, w.kernelW)*w.kernelH) + tilePlaces + places
	}
	return taps * (places + tilePlaces)
}

// separates reports whether each group of a depthwise convolution is a separate product: with more taps than the library's
// kernels have, or with several outputs per channel.
func separates(w *window) bool { return w.kernelH*w.kernelW > 25 || w.groupOut > 1 }

// windowScratch returns the size of the accumulators of a depthwise convolution or average pool that
// needs several passes.
func windowScratch(_ *graph, n *node, s []shape, threads int) int64 {
	w, in, out := n.window(), s[n.In[0]], s[n.Out[0]]
	if w.kernelH*w.kernelW <= onePass || w.groupIn > 1 {
		return 0
	}
	return times(max(threads, in.dim[0]*out.dim[1]), out.dim[3]*8+lineBytes)
}

// onePass is the largest window for which no version of the library needs several passes.
const onePass = 9

// depthwiseWeights returns the size of the packed weights of a depthwise convolution, which the
// library stores in each runtime. With up to 9, or 25 taps, a tile of channels is packed together; with
// more, or with several outputs per channel, each group is a separate product.
func depthwiseWeights(g *graph, n *node) int64 {
	w, size := n.window(), g.Values[n.In[1]].Datatype.info().bits/8
	taps := w.kernelH * w.kernelW
	if taps <= onePass && w.groupOut == 1 {
		return times(roundUp(w.groups, tileChannels), onePass*size+8)
	}
	if !separates(w) {
		return times(roundUp(w.groups, tileChannels), 25*size+8)
	}
	return times(w.groups, roundUp(w.groupOut, tileOut), taps*tileIn/2+8)
}

// resizeTables returns the size of four pointers and two weights per output position. For halves, the
// newer library has another operator, and as many weights as pointers.
func resizeTables(g *graph, n *node, s []shape) int64 {
	out := s[n.Out[0]]
	if g.Values[n.In[0]].Datatype == fp16 {
		return operatorBytes + times(8*tapBytes, out.dim[1], out.dim[2])
	}
	return times(4*tapBytes+2*4, out.dim[1], out.dim[2])
}

// reduceScratch returns the size of the sums of the outputs.
func reduceScratch(_ *graph, n *node, s []shape, _ int) int64 {
	return times(8, s[n.Out[0]].numel()) + lineBytes
}

// reduceTables returns the size of a row of zeros.
func reduceTables(_ *graph, n *node, s []shape) int64 { return times(4, s[n.In[0]].last()) + lineBytes }

// fullyConnectedScratch returns the size of a second operand that is packed at run time, and of the
// output before it is reshaped (see fullyConnected2D).
func fullyConnectedScratch(g *graph, n *node, s []shape, threads int) (bytes int64) {
	if n.Flags&flagReshape2D != 0 && s[n.In[0]].rank != 2 {
		bytes = paddedBytes(g, n.Out[0], s)
	}
	if g.Values[n.Out[0]].Datatype == fp16 && g.Values[n.In[0]].Datatype == qdint8 { // computed as float32 by the newer library
		bytes = plus(bytes, times(4, s[n.Out[0]].numel())+8*lineBytes)
	}
	if g.Values[n.In[1]].isConst() {
		return bytes
	}
	return plus(bytes, productScratch(g, n, s, threads))
}

// productScratch returns the size of the second operand if it is packed apart from the weights: at run
// time, or with its sums and scales if it is quantized.
func productScratch(g *graph, n *node, s []shape, _ int) int64 {
	b, d := s[n.In[1]], g.Values[n.In[1]].Datatype
	if g.Values[n.In[1]].isConst() && d.isFloat() && d != fp16 && d != bf16 { // packed once
		return 0
	}
	k, cols := b.fromEnd(1), b.fromEnd(0)
	if n.Flags&flagTransposeWeights != 0 || n.Type.tag == tagFullyConnected {
		k, cols = cols, k
	}
	size, tile, extra := d.info().bits/8, tileIn, 3*4
	if d.isFloat() {
		tile, extra = tileFloats, 1
	}
	return times(b.leading(b.rank-2), size, roundUp(cols, tileOut), roundUp(k, tile)+extra)
}

func paddedBytes(g *graph, v int, s []shape) int64 {
	x := &g.Values[v]
	bytes := int64(roundUp(x.Datatype.bytes(s[v]), lineBytes)) + lineBytes
	if x.Datatype == qdint8 {
		bytes += int64(roundUp(8*scalesOf(x, s[v]), lineBytes)) + lineBytes
	}
	return bytes
}

// maxOverlap bounds the time of the library's memory planner, which grows with the square of the number of values, and
// with the number of pairs of values that are alive together.
const maxOverlap = 1 << 20

// planLimits returns why the library would need more than a fraction of a second to plan a graph,
// or "" if it would not.
func planLimits(g *graph, s []shape) string {
	if len(g.Nodes) > maxPlanned {
		return fmt.Sprintf("%d nodes, at most %d", len(g.Nodes), maxPlanned)
	}
	if n := int64(len(g.Values)); n*n <= maxOverlap {
		return ""
	}
	items, _ := g.items(s, func(v int) int64 { return paddedBytes(g, v, s) }, false)
	started := make([]int, len(g.Nodes)+1)
	ended := make([]int, len(g.Nodes)+1)
	for _, it := range items {
		started[it.first]++
		ended[it.last]++
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
func arenaBytes(g *graph, s []shape, threads int) int64 {
	p := libraryPlan{graph: g, shapes: s, readers: g.readers(), index: slices.Repeat([]int{none}, len(g.Values))}
	p.items = make([]item, 0, 2*len(g.Nodes))
	for i := range g.Nodes {
		p.add(&g.Nodes[i], threads)
	}
	slices.SortStableFunc(p.items, func(a, b item) int { return cmp.Compare(a.id, b.id) })
	return packedBytes(p.items, bySize, true)
}

// libraryPlan lists what the library plans. Its nodes are those of the graph, and the bounds of some
// as further ones.
type libraryPlan struct {
	*graph
	shapes  []shape
	readers []int
	items   []item
	index   []int // by value: its item, or none
	at      int   // the library's node
}

// add adds the values that a node writes, its workspace, and the value before its bounds. As in the
// library, items are numbered by kind first.
func (p *libraryPlan) add(n *node, threads int) {
	inner := none
	for _, v := range n.In {
		if v != none && p.index[v] != none {
			p.items[p.index[v]].last = p.at
			if inner == none && n.Type.inPlace && p.readers[v] == 1 && p.same(v, n.Out[0]) {
				inner = p.index[v]
			}
		}
	}
	if nativeTypeOf(n).scratch != nil {
		if bytes := nativeTypeOf(n).scratch(p.graph, n, p.shapes, threads); bytes > 0 {
			p.new(2*len(p.Values)+p.at, bytes)
		}
	}
	if nativeTypeOf(n).clampsApart && outputBounds(n) {
		if inner == none {
			inner = p.new(len(p.Values)+p.at, paddedBytes(p.graph, n.Out[0], p.shapes))
		}
		p.at++
		p.items[inner].last = p.at
	}
	for _, v := range n.Out {
		switch {
		case p.Values[v].Arg != none:
		case inner != none && p.readers[v] == 1:
			p.index[v], p.items[inner].last = inner, p.at
		default:
			p.index[v] = p.new(v, paddedBytes(p.graph, v, p.shapes))
		}
	}
	p.at++
}

// new adds an item at the current node and returns its index.
func (p *libraryPlan) new(id int, bytes int64) int {
	p.items = append(p.items, item{bytes: bytes, first: p.at, last: p.at, id: id})
	return len(p.items) - 1
}

// same reports whether two values have the same size.
func (p *libraryPlan) same(a, b int) bool {
	return p.Values[a].Datatype.bytes(p.shapes[a]) == p.Values[b].Datatype.bytes(p.shapes[b])
}
