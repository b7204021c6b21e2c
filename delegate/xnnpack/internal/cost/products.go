package cost

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/gemm"
)

// product returns the class and amounts of a fully connected node or a convolution.
func (c *counter) product(n *graph.Node) (class, amounts) {
	bits, filter := c.bits(n.In[0]), c.bits(n.In[1])
	t, p := c.floats, c.shapeOfProduct(n)
	kind := [...]class{classProduct32, classDepthwise32, classTransposed32}[p.form]
	switch {
	case c.engine == ByLibrary && bits == 16 && p.form != depthwise:
		kind, t = classProduct16, c.halves
	case c.engine == ByLibrary && bits == 32 && n.Type.Tag == graph.TagFullyConnected && p.columns < t.columns:
		kind, t = classNarrow32, tile{narrowColumns, narrowDepth}
	case c.engine == ByGo && bits != 8 && p.form == dense && p.groups == 1 && p.columns <= fewColumns:
		kind, t = classNarrow32, tile{fewColumns, 1}
		p.gathered = p.taps > 1
	case bits != 8 && p.form == dense && p.groups > 1:
		kind = classGroups32
	case bits != 8 && p.form == dense && p.taps > 1:
		kind = classWindow32
	case bits == 8:
		t, kind = c.bytes, [...]class{classProduct8, classDepthwise8, classTransposed8}[p.form]
		if filter == 4 {
			kind = classDynamic4
		} else if c.Values[n.In[0]].Datatype == graph.QDInt8 && p.form == dense {
			kind = classDynamic8
		}
	}
	return kind, p.amounts(t)
}

// inBlocks returns the amounts of a convolution that the Go engine computes in blocks of pixels: of its products, and of the
// transforms of blocks and sums. ok reports that the node is one.
func (c *counter) inBlocks(n *graph.Node) (products, transforms amounts, ok bool) {
	if c.engine != ByGo || n.Type.Tag != graph.TagConv2d || c.bits(n.In[0]) == 8 || !c.Values[n.In[1]].IsConst() {
		return products, transforms, false
	}
	s := n.Windows(c.shapes[n.In[0]], c.shapes[n.Out[0]])
	if !s.Winograd() {
		return products, transforms, false
	}
	down, across := s.WinogradBlocks()
	p := productShape{rows: graph.WinogradTerms * s.Out.Dim[0] * down * across, groups: 1, taps: 1, depth: s.W.GroupIn, columns: s.W.GroupOut,
		sums: 1, tile: s.WinogradTile()}
	return p.amounts(c.floats), amounts{termElement: float64(p.rows * (p.depth + p.columns))}, true
}

// The library computes narrow products of floats in tiles of two columns and four terms.
const narrowColumns, narrowDepth = 2, 4

// fewColumns is the number of columns that the Go engine has narrower tiles for.
const fewColumns = 4

// The forms of products.
const (
	dense = iota
	depthwise
	transposed
)

// productShape is the geometry of a product with constant weights.
type productShape struct {
	form     int
	rows     int // of the output, of each group
	groups   int
	taps     int  // of the window; 1 if each window is one pixel, in order
	depth    int  // input channels of a group
	columns  int  // output channels of a group
	tile     int  // rows that are multiplied by the filter at once
	gathered bool // each window is addressed or copied
	sums     int  // products that are added up to one, row by row
	lines    int  // products of lines of the output, one for each row of the window; 0 if all is one product
	copied   bool // the elements of gathered windows are copied, once for all columns; else each tile of columns finds them
}

// gathers reports whether the Go engine copies the window of each output pixel of a line.
func gathers(w *graph.Window, pixels int) bool {
	run := w.GroupIn
	if w.Groups == 1 && w.DilationW == 1 {
		run *= w.KernelW
	}
	return pixels < 4 || run < 3 || w.Groups > 1 && run < 12
}

// farElements are as many floats as the cache of a processor's core has.
const farElements = 1 << 17

// fewChannels is the number of channels below which depthwise convolutions may have no vectors.
const fewChannels = 8

// mostTaps is the size of the largest window that the library has a depthwise kernel for.
const mostTaps = 25

// shapeOfProduct returns a node's geometry.
func (c *counter) shapeOfProduct(n *graph.Node) productShape {
	in, out := c.shapes[n.In[0]], c.shapes[n.Out[0]]
	if n.Type.Tag == graph.TagFullyConnected {
		return productShape{rows: out.Numel() / max(out.Last(), 1), groups: 1, taps: 1, depth: in.Last(), columns: out.Last(), sums: 1,
			tile: c.tileRows(n, in.Last())}
	}
	w := n.Window()
	p := productShape{rows: out.Leading(3), tile: c.tileRows(n, w.GroupIn), groups: w.Groups, taps: w.KernelH * w.KernelW, depth: w.GroupIn, columns: w.GroupOut,
		gathered: w.KernelH*w.KernelW*w.StrideH*w.StrideW > 1, sums: 1}
	switch {
	case n.Type.Tag == graph.TagConvTranspose2d:
		p.form = transposed
		if scatters := c.engine == ByLibrary || c.bits(n.In[0]) != 8; scatters && w.StrideH <= w.KernelH && w.StrideW <= w.KernelW && w.DilationH*w.DilationW == 1 {
			p.taps = max(p.taps/(w.StrideH*w.StrideW), 1) // one convolution for each position in the stride
		}
	case c.engine == ByGo && !gathers(w, out.Dim[2]):
		p.gathered, p.lines = false, out.Leading(2)*w.KernelH
		if p.taps*p.depth > gemm.Depth { // each row of the window is a product
			p.sums = w.KernelH
		}
	case c.engine == ByGo && c.bits(n.In[0]) != 8:
		p.copied = p.gathered
	}
	if n.Type.Tag == graph.TagDepthwiseConv2d && w.GroupOut == 1 && (c.engine == ByGo || p.taps <= mostTaps) {
		p.form = depthwise
	}
	return p
}

// amounts returns the amounts of a product in tiles. A depthwise convolution computes a tile's columns of channels at once.
func (p *productShape) amounts(t tile) amounts {
	rows, taps := float64(p.rows*p.groups), float64(p.taps)
	if p.form == depthwise {
		rows = float64(p.rows)
		a := amounts{termStart: 1, termRow: rows, termTap: rows * taps, termWork: rows * taps * float64(graph.RoundUp(p.groups, t.columns)),
			termElement: rows * float64(p.groups)}
		if p.groups < fewChannels {
			a[termWeight] = rows * taps * float64(p.groups)
		}
		return a
	}
	passes, depth := graph.CeilDiv(p.columns, t.columns), graph.RoundUp(p.depth, t.depth)
	a := amounts{termStart: float64(p.groups), termRow: rows * float64(passes*p.sums), termElement: rows * float64(p.columns)}
	a[termWork] = rows * taps * float64(depth*passes*t.columns)
	if in := p.rows * p.depth; p.taps == 1 && in > farElements { // read again for each tile of columns
		a[termTap] = float64(in * p.groups * passes)
	}
	a[termWeight] = p.weights()
	switch {
	case p.copied:
		a[termTap] = rows * taps * float64(p.depth)
	case p.gathered:
		a[termTap] = rows * taps * float64(passes)
	case p.lines > 0:
		a[termTap] = float64(p.lines * p.groups * passes)
	}
	return a
}

// weights returns the number of elements of the filter that are read from memory. A filter that does not stay in the cache
// is read again for each tile of rows.
func (p *productShape) weights() float64 {
	n := p.taps * p.depth * p.columns * p.groups
	if n > farElements {
		n *= graph.CeilDiv(p.rows, p.tile)
	}
	return float64(n)
}

// fewRows is about as many rows as the library's products and those of bytes compute at once.
const fewRows = 16

// tileRows returns the number of rows of so many elements that a node multiplies by a filter at once.
func (c *counter) tileRows(n *graph.Node, depth int) int {
	switch {
	case c.engine == ByLibrary || c.bits(n.In[0]) == 8:
		return fewRows
	case n.Type.Tag == graph.TagFullyConnected || n.Window().AreInputPixels():
		return graph.DenseRows(depth)
	}
	return graph.GatheredRows
}

// batchProduct returns the amounts of a product of two variable matrices: its rows are products.
func (c *counter) batchProduct(n *graph.Node) amounts {
	in, out := c.shapes[n.In[0]], c.shapes[n.Out[0]]
	columns, passes := out.Last(), graph.CeilDiv(out.Last(), c.floats.columns)
	a := amounts{termStart: 1, termRow: float64(out.Leading(max(out.Rank-2, 0))), termElement: float64(out.Numel())}
	a[termTap] = float64(c.shapes[n.In[1]].Numel()) // elements of the second matrix, which are packed
	a[termWork] = float64(out.Numel()/max(columns, 1)) * float64(in.Last()*passes*c.floats.columns)
	return a
}
