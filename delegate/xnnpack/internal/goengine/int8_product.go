package goengine

import (
	"slices"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/gemm"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/nhwc"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

// int8Product is the planned products of a node with 8-bit activations, for the shapes of a unit:
// rows of activations times weights. The rows are in the input, staged, or gathered.
type int8Product struct {
	e    *frame
	node *graph.Node
	*int8Weights
	stage  stage
	window *graph.Window // nil for matrices
	// gathers is set if the segments of output rows are copied: if they are not contiguous in the input or in a stage.
	gathers bool
	patches nhwc.Rows[uint8] // these rows
	rows    int
	row     int   // bytes between rows of activations
	table   []int // offsets of rows, unless there are too many
	off     []int // offsets of segments within a row
	out     graph.Shape
	a       []uint8   // contains the rows
	packed  bool      // the previous node has packed the rows, see rowsPacked
	added   []float32 // the bias of float outputs

	first, matrix int // of one product of a batch: its first output row, and the index of its weights
	token         int // index of the first output row's group of dynamically quantized elements
	tile, panels  int // rows and panels per task
	tasksPerTile  int // for each tile of rows
}

func (*int8Product) bind(*frame, *graph.Node) {}

// plan plans the product for the unit's shapes.
func (p *int8Product) plan() {
	n, in := p.node, p.e.shapes[p.node.In[0]]
	p.out, p.window, p.gathers, p.off = p.e.shapes[n.Out[0]], nil, false, p.off[:0]
	if p.added = p.bias; p.runtimeBias {
		p.added = slices.Clone(p.bias)
	}
	switch {
	case n.Type.Tag == graph.TagBatchMatrixMultiply:
		p.planDense(p.out.FromEnd(1))
	case !n.Type.Convolution:
		p.planDense(p.out.Numel() / p.n)
	default:
		p.window = n.Window()
		p.rows = p.out.Leading(3)
		p.planWindow(in)
	}
	p.packed = p.rowsPacked()
	p.splitTasks()
	p.tabulate()
}

// maxTable is the largest number of rows whose offsets are tabulated.
const maxTable = 1 << 18

// tabulate computes the table of row offsets.
func (p *int8Product) tabulate() {
	if p.table = p.table[:0]; p.depth != nil || p.gathers || p.rows > maxTable {
		return
	}
	p.table = pack.Grow(p.table, p.rows)
	p.find(p.table, 0)
}

// tail returns the number of bytes that tiles read past the elements that they use.
func (p *int8Product) tail() int {
	switch {
	case p.depth != nil:
		return -p.n & (simd.DotCols - 1)
	case p.nibbles != nil:
		return 0 // all are copied
	}
	return -p.dot[0].K & 3
}

func (p *int8Product) planDense(rows int) {
	p.rows, p.row = rows, p.k
	in := p.e.shapes[p.node.In[0]].Numel()
	one := window.Shape{In: [3]int{1, 1, 1}, Out: [3]int{1, 1, 1}, Kernel: [3]int{1, 1, 1}, Stride: [3]int{1, 1, 1}, Dilate: [3]int{1, 1, 1}}
	p.stage.Plan(nhwc.Images{Shape: one, C: in}, 1)
	p.stage.needed = p.tail() > 0
	p.off = slices.Repeat([]int{0}, p.terms)
}

func (p *int8Product) planWindow(in graph.Shape) {
	switch {
	case p.node.Type.Tag == graph.TagConvTranspose2d || !p.stage.plan(p.node, in, p.out, p.tail()):
		p.planGather(in)
	default:
		p.off = p.stage.Offsets(p.off, p.depth == nil && p.node.Joined())
	}
	if p.depth != nil && len(p.off)%2 == 1 {
		p.off = append(p.off, p.off[len(p.off)-1])
	}
	p.off = slices.Repeat(p.off, p.terms)
}

// planGather plans to copy every row of activations, segment by segment: those of a group, or of all if the convolution is depthwise.
func (p *int8Product) planGather(in graph.Shape) {
	p.stage.needed = false
	p.gathers, p.patches = true, rowsOf[uint8](p.node, in, p.out, nil)
	segment := graph.RoundUp(p.k/p.segments, 4)
	if p.depth != nil {
		segment, p.patches.Group = in.Dim[3], in.Dim[3]
	}
	p.row = p.segments * segment
	for s := range p.segments {
		p.off = append(p.off, s*segment)
	}
}

// A task computes about tileSums sums at once, in pairs of panels, or in fours of those of 4-bit weights, which are side by side.
// taskWork is the number of MACs that justify a separate task.
const (
	tileSums = 4096
	taskWork = 1 << 20
	rowWork  = 4 // one row's MACs with 4-bit weights count as so many rows': weights are read from memory, see cost.TokenWeight
)

// splitTasks splits the product into tasks: tiles of rows times ranges of panels. Where there are several tiles, they have a multiple of
// 8 rows, as products with 4-bit weights need.
func (p *int8Product) splitTasks() {
	if p.depth != nil {
		return
	}
	all := p.columns() / simd.DotCols
	p.tile = max(1, min(p.rows, 64))
	together := 2
	if p.nibbles != nil {
		together = 4
	}
	p.panels = min(max(tileSums/simd.DotCols/p.tile, together)&^(together-1), all)
	if p.tile == p.rows && p.e.threads() > 1 { // a single tile: threads share the columns
		p.panels = min(p.panels, max(4, graph.RoundUp(all/(4*p.e.threads()), 4)))
	}
	p.tasksPerTile = (all + p.panels - 1) / p.panels
}

// run computes the node.
func (p *int8Product) run(*frame, *graph.Node) {
	p.loadInput()
	if p.runtimeBias {
		p.copyBias()
	}
	p.first, p.matrix, p.token = 0, 0, 0
	if p.depth != nil {
		p.e.pool.Do(&p.e.run, p.out.Leading(2), max(1, taskWork/16/max(1, p.out.Dim[2]*p.n*p.k)), p)
		return
	}
	if p.node.Type.Tag != graph.TagBatchMatrixMultiply {
		p.multiply()
		return
	}
	a, b := p.e.shapes[p.node.In[0]], p.e.shapes[p.node.In[1]]
	all := p.a
	for batch := range p.out.Leading(p.out.Rank - 2) {
		p.first, p.matrix, p.token = batch*p.rows, batchOffset(batch, p.out, b), batchOffset(batch, p.out, a)*p.rows
		p.a = all[p.token*p.k:]
		p.multiply()
	}
}

// multiply computes the rows of one product.
func (p *int8Product) multiply() {
	work := gemm.Work(p.tile, p.panels*simd.DotCols, p.k) * p.groups
	if p.nibbles != nil {
		work *= max(1, rowWork/p.rows)
	}
	tasks, grain := (p.rows+p.tile-1)/p.tile*p.tasksPerTile, max(1, taskWork/max(1, work))
	workers := p.e.bytes
	if tasks <= grain {
		workers = workers[:1]
	}
	for i := range workers { // also those that get their first task in a later run
		p.prepare(&workers[i])
	}
	p.e.pool.Do(&p.e.run, tasks, grain, p)
}

// copyBias copies a bias that is computed at run time to the padded columns.
func (p *int8Product) copyBias() {
	bias := tensor.View[float32](p.e.data[p.node.In[2]])
	for g := range p.groups {
		copy(p.added[g*p.columns():], bias[g*p.n:][:p.n])
	}
}

// loadInput sets p.a to the activations: the input, or its staged copy.
func (p *int8Product) loadInput() {
	v := p.node.In[0]
	src := p.e.data[v]
	p.patches.X = src
	if p.nibbles != nil {
		p.packRows(src)
		return
	}
	tail := p.tail()
	if p.stage.needed && !p.stage.Differs() && cap(src)-len(src) >= tail {
		p.a = src[:len(src)+tail] // the bytes past the end are readable
		return
	}
	if !p.stage.needed {
		p.a = src
		return
	}
	p.e.staged = pack.Grow(p.e.staged, int(p.stage.bytes()))
	p.a = p.e.staged
	p.stage.Copy(p.a, src, p.zeroByte)
}

// packRows sets p.a to the activations in the order in which products with 4-bit weights read them.
func (p *int8Product) packRows(src []uint8) {
	size := p.rows * p.nibbles.RowBytes()
	p.e.staged = pack.Grow(p.e.staged, size)
	if !p.packed {
		p.e.ordered = p.nibbles.PackRows(p.e.staged[:size], src, p.rows)
	}
	p.a = p.e.ordered
}

// rowsPacked reports whether packRows of the previous node makes the same rows: it reads the same elements, in as many rows and in
// groups of the same size. Each run starts at the first node, and no other node uses e.staged between the two.
func (p *int8Product) rowsPacked() bool {
	if p.nibbles == nil || p.node.At == 0 {
		return false
	}
	n, w := &p.e.graph.Nodes[p.node.At-1], p.e.packed.bytes[p.node.At-1]
	return w != nil && w.nibbles != nil && n.In[0] == p.node.In[0] && w.k == p.k && w.nibbles.K == p.nibbles.K
}

// zeroByte returns the element that represents 0 in an image.
func (p *int8Product) zeroByte(image int) uint8 {
	if !p.dynamic {
		return uint8(p.e.graph.Values[p.node.In[0]].Quant.ZeroPoint)
	}
	if t := p.e.tokens[p.node.In[0]]; p.window != nil {
		return uint8(t[image].zero)
	}
	return 0
}

// Range computes tasks, or lines of a depthwise convolution.
func (p *int8Product) Range(worker, lo, hi int) {
	w := &p.e.bytes[worker]
	if p.depth != nil {
		p.depthwise(w, lo, hi)
		return
	}
	for task := lo; task < hi; task++ {
		from, panel := task/p.tasksPerTile*p.tile, task%p.tasksPerTile*p.panels
		m := min(p.tile, p.rows-from)
		if p.rowsFrom(w, from, m); p.dynamic {
			p.findTokens(w, from)
		}
		for g := range p.groups {
			p.compute(w, g, from, m, panel)
		}
	}
}

// prepare allocates a worker's memory. Its floats contain a task's results, and also the sums if
// those are floats.
func (p *int8Product) prepare(w *int8Work) {
	ldc := p.panels * simd.DotCols
	if len(p.table) == 0 {
		w.offsets = pack.Grow(w.offsets, p.tile)
	}
	if p.dynamic {
		w.zeros, w.factors = pack.Grow(w.zeros, p.tile), pack.Grow(w.factors, p.tile)
	}
	switch {
	case p.nibbles != nil:
		w.floats = pack.Grow(w.floats, 2*p.tile*ldc)
		return
	case p.dynamic:
		w.floats = pack.Grow(w.floats, p.tile*ldc)
	}
	w.sums = pack.Grow(w.sums, p.tile*ldc)
}

// rowsFrom sets w.rows to the offsets of m rows, starting at row from.
func (p *int8Product) rowsFrom(w *int8Work, from, m int) {
	if len(p.table) > 0 {
		w.rows = p.table[from : from+m]
		return
	}
	w.offsets = pack.Grow(w.offsets, m)
	w.rows = w.offsets
	p.find(w.rows, from)
}

// find sets rows to the offsets of the rows starting at row from.
func (p *int8Product) find(rows []int, from int) {
	if p.window == nil || p.gathers {
		if p.gathers {
			from = 0
		}
		for i := range rows {
			rows[i] = (from + i) * p.row
		}
		return
	}
	x, y := from%p.out.Dim[2], from/p.out.Dim[2]
	image := y / p.out.Dim[1]
	y %= p.out.Dim[1]
	for i := range rows {
		rows[i] = p.stage.Offset(image, y, x)
		if x++; x == p.out.Dim[2] {
			x, y = 0, y+1
		}
		if y == p.out.Dim[1] {
			y, image = 0, image+1
		}
	}
}

// compute multiplies and stores m rows of a group, starting at a panel.
func (p *int8Product) compute(w *int8Work, g, from, m, panel int) {
	a := p.a
	switch {
	case p.gathers:
		w.gathered = pack.Grow(w.gathered, p.tile*p.row)
		a = w.gathered
		for i := range m {
			p.gatherRow(a[i*p.row:][:p.row], g, from+i)
		}
	case p.window != nil:
		a = a[g*p.window.GroupIn:]
	}
	to := min(panel+p.panels, p.columns()/simd.DotCols)
	ldc := p.panels * simd.DotCols
	if p.nibbles != nil {
		p.computeNibbles(w, from, panel, to)
		return
	}
	weights := p.dot[g+p.matrix]
	weights.Multiply(w.sums, ldc, a, w.rows, p.off, panel, to, p.signed)
	if p.dynamic {
		p.storeDynamic(w, weights.Sums, g, from, panel)
		return
	}
	column := panel * simd.DotCols
	at := g*p.columns() + column
	q := p.result.quantized(p.signed)
	q.Requantize(p.e.data[p.node.Out[0]][(from*p.groups+g)*p.n+column:], p.groups*p.n, w.sums, ldc, p.init[at:], p.scales[at:],
		m, min(ldc, p.n-column))
}

// tokenAt returns the token of the dynamically quantized elements that output row at reads.
func (p *int8Product) tokenAt(at int) token {
	tokens := p.e.tokens[p.node.In[0]]
	if p.node.Type.Tag == graph.TagBatchMatrixMultiply {
		return tokens[p.token+at]
	}
	if len(tokens) == p.rows {
		return tokens[at]
	}
	return tokens[at*len(tokens)/p.rows]
}

// findTokens sets the zero points and scales of the rows starting at row from.
func (p *int8Product) findTokens(w *int8Work, from int) {
	w.zeros, w.factors = pack.Grow(w.zeros, len(w.rows)), pack.Grow(w.factors, len(w.rows))
	if tokens := p.e.tokens[p.node.In[0]]; len(tokens) == 1 {
		t := tokens[0]
		simd.Fill(w.factors, t.scale)
		simd.Fill(w.zeros, p.zero(t.zero))
		return
	}
	for i := range w.rows {
		t := p.tokenAt(from + i)
		w.zeros[i], w.factors[i] = p.zero(t.zero), t.scale
	}
}

// storeDynamic scales rows of sums to floats and stores them.
func (p *int8Product) storeDynamic(w *int8Work, sums []int32, g, from, panel int) {
	column, ldc := panel*simd.DotCols, p.panels*simd.DotCols
	n, at := min(ldc, p.n-column), g*p.columns()+column
	dst, ldd := p.destination(w, g, from, column)
	simd.ScaleSums(dst, ldd, w.sums, ldc, sums[column:], p.scales[at:], p.added[at:], w.zeros, w.factors, n, p.node.Min, p.node.Max)
	p.keep(dst, ldd, g, from, column, n, len(w.rows))
}

// computeNibbles is compute for 4-bit weights.
func (p *int8Product) computeNibbles(w *int8Work, from, panel, to int) {
	column, ldc := panel*simd.DotCols, p.panels*simd.DotCols
	n, sums := min(ldc, p.n-column), w.floats[p.tile*ldc:]
	p.nibbles.Multiply(sums, ldc, p.a[from*p.nibbles.RowBytes():], len(w.rows), panel, to)
	dst, ldd := p.destination(w, 0, from, column)
	simd.ScaleFloats(dst, ldd, sums, ldc, p.nibbles.Sums[column:], p.scales[column:], p.added[column:], w.zeros, w.factors, n, p.node.Min, p.node.Max)
	p.keep(dst, ldd, 0, from, column, n, len(w.rows))
}

// element returns the index of a column in an output row of a group.
func (p *int8Product) element(g, row, column int) int {
	return ((p.first+row)*p.groups+g)*p.n + column
}

// destination returns the destination of the floats of output rows, starting at a column, and the
// distance between its rows. It is the output, or a buffer that keep copies to the output.
func (p *int8Product) destination(w *int8Work, g, row, column int) (dst []float32, ldd int) {
	if v := p.node.Out[0]; p.e.graph.Values[v].Datatype == graph.FP32 {
		return tensor.View[float32](p.e.data[v])[p.element(g, row, column):], p.groups * p.n
	}
	return w.floats, p.panels * simd.DotCols
}

// keep rounds n columns of m rows of place's buffer to the output's halves. It does nothing if the
// output is float32.
func (p *int8Product) keep(x []float32, ldx, g, row, column, n, m int) {
	v := p.node.Out[0]
	if p.e.graph.Values[v].Datatype == graph.FP32 {
		return
	}
	for i := range m {
		dst, src := p.e.data[v][2*p.element(g, row+i, column):], x[i*ldx:][:n]
		done := simd.FloatToHalf(dst, src)
		graph.EncodeFP16(tensor.View[uint16](dst)[done:], src[done:])
	}
}

// depthwise computes lines of the output.
func (p *int8Product) depthwise(w *int8Work, lo, hi int) {
	q := p.result.quantized(p.signed)
	for line := lo; line < hi; line++ {
		image, y, to := line/p.out.Dim[1], line%p.out.Dim[1], p.e.data[p.node.Out[0]][line*p.out.Dim[2]*p.n:]
		if p.gathers {
			p.depthwiseGathered(&q, w, to, line*p.out.Dim[2])
			continue
		}
		p.depth.Row(&q, to, p.n, p.a, p.stage.Offset(image, y, 0), p.window.StrideW*p.stage.C, p.off, p.out.Dim[2])
	}
}

// depthwiseGathered computes a line of the output, which starts at row from, pixel by pixel.
func (p *int8Product) depthwiseGathered(q *simd.Quantized, w *int8Work, to []uint8, from int) {
	w.gathered = pack.Grow(w.gathered, p.row+overread)
	for i := range p.out.Dim[2] {
		p.e.run.Poll()
		p.gatherRow(w.gathered[:p.row], 0, from+i)
		p.depth.Row(q, to[i*p.n:], p.n, w.gathered, 0, 0, p.off, 1)
	}
}

// gatherRow copies the segments of an output row, which are pixels or kernel rows; padding is the image's zero.
func (p *int8Product) gatherRow(dst []uint8, group, at int) {
	n, pitch := p.k/p.segments, p.row/p.segments
	if p.depth != nil {
		n = pitch
	}
	image, _, _ := p.patches.Point(at)
	zero := p.zeroByte(image)
	for s := range p.segments {
		p.patches.Gather(dst[s*pitch:][:n], group, at, s*n, zero)
	}
}

// workInt8 adds the work of a product of bytes.
func workInt8(w *work, g *graph.Graph, n *graph.Node, s []graph.Shape, _ int) {
	in, out, segments := s[n.In[0]], s[n.Out[0]], 1
	cols, k := s[n.Out[0]].Last(), filterRows(g, n, s)
	gathers := false
	if o := n.Window(); o != nil {
		var st stage
		gathers = n.Type.Tag == graph.TagConvTranspose2d || !st.plan(n, in, out, 0)
		if segments = 2 * o.KernelH * o.KernelW; !gathers && st.needed {
			w.staged = max(w.staged, st.bytes())
		}
		w.kept = graph.Plus(w.kept, graph.Times(st.Cols, in.Dim[3]))
		cols = o.GroupOut
	}
	if byNibbles(g, n) {
		k, group := n.InputChannels(g), nibbleGroup(g, n)
		row := simd.Nibbles{Groups: k / group, K: group}
		w.staged = max(w.staged, graph.Times(in.Numel()/k, row.RowBytes()))
	} else if g.Values[n.In[0]].Arg != graph.None { // its bytes may end with the last element
		w.staged = max(w.staged, graph.Plus(int64(in.Numel()), overread))
	}
	w.kept = graph.Plus(w.kept, graph.Times(8, segments))
	if byDepth(g, n) {
		if gathers {
			w.tile = max(w.tile, graph.Plus(graph.Times(k, in.Dim[3]), overread))
		}
		return
	}
	rows := out.Numel() / max(1, out.Last())
	if n.Type.Tag == graph.TagBatchMatrixMultiply {
		rows, k = out.FromEnd(1), in.Last()
	}
	if !gathers {
		w.kept = graph.Plus(w.kept, graph.Times(8, min(rows, maxTable)))
	}
	tile := max(1, min(rows, 64))
	sums := tile * simd.DotCols * min(max(tileSums/simd.DotCols/tile, 4), graph.RoundUp(cols, simd.DotCols)/simd.DotCols)
	bytes := graph.Times(8, sums+2*tile)
	if gathers {
		bytes = graph.Plus(bytes, graph.Times(tile, graph.RoundUp(k, 4)+4*segments))
	}
	w.tile = max(w.tile, bytes)
}

// filterRows returns how many elements of a filter a column of its products has.
func filterRows(g *graph.Graph, n *graph.Node, s []graph.Shape) int {
	if n.Type.Tag == graph.TagDepthwiseConv2d {
		return n.Window().KernelH * n.Window().KernelW
	}
	f := s[n.In[1]]
	return f.Numel() / max(1, f.Dim[0])
}
