package integers

import (
	"slices"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/filters"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/frame"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/numbers"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/gemm"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/nhwc"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

// product is the planned products of a node with 8-bit activations, for the shapes of a unit:
// rows of activations times weights. The rows are in the input, staged, or gathered.
type product struct {
	e    *frame.Frame
	node *graph.Node
	*filters.Int8
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

// Product returns the loop of a node that multiplies bytes.
func Product(e *frame.Frame, n *graph.Node) frame.Loop {
	return &product{e: e, node: n, Int8: e.Packed.Bytes[n.At]}
}

func (*product) Bind(*frame.Frame, *graph.Node) {}

// PlanShapes plans the product for the unit's shapes.
func (p *product) PlanShapes() {
	n, in := p.node, p.e.Shapes[p.node.In[0]]
	p.out, p.window, p.gathers, p.off = p.e.Shapes[n.Out[0]], nil, false, p.off[:0]
	if p.added = p.Bias; p.RuntimeBias {
		p.added = slices.Clone(p.Bias)
	}
	switch {
	case n.Type.Tag == graph.TagBatchMatrixMultiply:
		p.planDense(p.out.FromEnd(1))
	case !n.Type.Convolution:
		p.planDense(p.out.Numel() / p.N)
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
func (p *product) tabulate() {
	if p.table = p.table[:0]; p.Depth != nil || p.gathers || p.rows > maxTable {
		return
	}
	p.table = pack.Grow(p.table, p.rows)
	p.find(p.table, 0)
}

// tail returns the number of bytes that tiles read past the elements that they use.
func (p *product) tail() int {
	switch {
	case p.Depth != nil:
		return -p.N & (simd.DotCols - 1)
	case p.Nibbles != nil:
		return 0 // all are copied
	}
	return -p.Dot[0].K & 3
}

func (p *product) planDense(rows int) {
	p.rows, p.row = rows, p.K
	in := p.e.Shapes[p.node.In[0]].Numel()
	one := window.Shape{In: [3]int{1, 1, 1}, Out: [3]int{1, 1, 1}, Kernel: [3]int{1, 1, 1}, Stride: [3]int{1, 1, 1}, Dilate: [3]int{1, 1, 1}}
	p.stage.Plan(nhwc.Images{Shape: one, C: in}, 1)
	p.stage.needed = p.tail() > 0
	p.off = slices.Repeat([]int{0}, p.Terms)
}

func (p *product) planWindow(in graph.Shape) {
	switch {
	case p.node.Type.Tag == graph.TagConvTranspose2d || !p.stage.plan(p.node, in, p.out, p.tail()):
		p.planGather(in)
	default:
		p.off = p.stage.Offsets(p.off, p.Depth == nil && p.node.Joined())
	}
	if p.Depth != nil && len(p.off)%2 == 1 {
		p.off = append(p.off, p.off[len(p.off)-1])
	}
	p.off = slices.Repeat(p.off, p.Terms)
}

// planGather plans to copy every row of activations, segment by segment: those of a group, or of all if the convolution is depthwise.
func (p *product) planGather(in graph.Shape) {
	p.stage.needed = false
	p.gathers, p.patches = true, frame.RowsOf[uint8](p.node, in, p.out, nil)
	segment := graph.RoundUp(p.K/p.Segments, 4)
	if p.Depth != nil {
		segment, p.patches.Group = in.Dim[3], in.Dim[3]
	}
	p.row = p.Segments * segment
	for s := range p.Segments {
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
func (p *product) splitTasks() {
	if p.Depth != nil {
		return
	}
	all := p.Columns() / simd.DotCols
	p.tile = max(1, min(p.rows, 64))
	together := 2
	if p.Nibbles != nil {
		together = 4
	}
	p.panels = min(max(tileSums/simd.DotCols/p.tile, together)&^(together-1), all)
	if p.tile == p.rows && p.e.Threads() > 1 { // a single tile: threads share the columns
		p.panels = min(p.panels, max(4, graph.RoundUp(all/(4*p.e.Threads()), 4)))
	}
	p.tasksPerTile = (all + p.panels - 1) / p.panels
}

// Compute computes the node.
func (p *product) Compute(*frame.Frame, *graph.Node) {
	p.loadInput()
	if p.RuntimeBias {
		p.copyBias()
	}
	p.first, p.matrix, p.token = 0, 0, 0
	if p.Depth != nil {
		p.e.Parallel(p.out.Leading(2), max(1, taskWork/16/max(1, p.out.Dim[2]*p.N*p.K)), p)
		return
	}
	if p.node.Type.Tag != graph.TagBatchMatrixMultiply {
		p.multiply()
		return
	}
	a, b := p.e.Shapes[p.node.In[0]], p.e.Shapes[p.node.In[1]]
	all := p.a
	for batch := range p.out.Leading(p.out.Rank - 2) {
		p.first, p.matrix, p.token = batch*p.rows, frame.BatchOffset(batch, p.out, b), frame.BatchOffset(batch, p.out, a)*p.rows
		p.a = all[p.token*p.K:]
		p.multiply()
	}
}

// multiply computes the rows of one product.
func (p *product) multiply() {
	work := gemm.Work(p.tile, p.panels*simd.DotCols, p.K) * p.Groups
	if p.Nibbles != nil {
		work *= max(1, rowWork/p.rows)
	}
	tasks, grain := (p.rows+p.tile-1)/p.tile*p.tasksPerTile, max(1, taskWork/max(1, work))
	workers := p.e.Bytes
	if tasks <= grain {
		workers = workers[:1]
	}
	for i := range workers { // also those that get their first task in a later run
		p.prepare(&workers[i])
	}
	p.e.Parallel(tasks, grain, p)
}

// copyBias copies a bias that is computed at run time to the padded columns.
func (p *product) copyBias() {
	bias := tensor.View[float32](p.e.Data[p.node.In[2]])
	for g := range p.Groups {
		copy(p.added[g*p.Columns():], bias[g*p.N:][:p.N])
	}
}

// loadInput sets p.a to the activations: the input, or its staged copy.
func (p *product) loadInput() {
	v := p.node.In[0]
	src := p.e.Data[v]
	p.patches.X = src
	if p.Nibbles != nil {
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
	p.e.Staged = pack.Grow(p.e.Staged, int(p.stage.bytes()))
	p.a = p.e.Staged
	p.stage.Copy(p.a, src, p.zeroByte)
}

// packRows sets p.a to the activations in the order in which products with 4-bit weights read them.
func (p *product) packRows(src []uint8) {
	size := p.rows * p.Nibbles.RowBytes()
	p.e.Staged = pack.Grow(p.e.Staged, size)
	if !p.packed {
		p.e.Ordered = p.Nibbles.PackRows(p.e.Staged[:size], src, p.rows)
	}
	p.a = p.e.Ordered
}

// rowsPacked reports whether packRows of the previous node makes the same rows: it reads the same elements, in as many rows and in
// groups of the same size. Each run starts at the first node, and no other node uses e.staged between the two.
func (p *product) rowsPacked() bool {
	if p.Nibbles == nil || p.node.At == 0 {
		return false
	}
	n, w := &p.e.Graph.Nodes[p.node.At-1], p.e.Packed.Bytes[p.node.At-1]
	return w != nil && w.Nibbles != nil && n.In[0] == p.node.In[0] && w.K == p.K && w.Nibbles.K == p.Nibbles.K
}

// zeroByte returns the element that represents 0 in an image.
func (p *product) zeroByte(image int) uint8 {
	if !p.Dynamic {
		return uint8(p.e.Graph.Values[p.node.In[0]].Quant.ZeroPoint)
	}
	if t := p.e.Tokens[p.node.In[0]]; p.window != nil {
		return uint8(t[image].Zero)
	}
	return 0
}

// Range computes tasks, or lines of a depthwise convolution.
func (p *product) Range(worker, lo, hi int) {
	w := &p.e.Bytes[worker]
	if p.Depth != nil {
		p.depthwise(w, lo, hi)
		return
	}
	for task := lo; task < hi; task++ {
		from, panel := task/p.tasksPerTile*p.tile, task%p.tasksPerTile*p.panels
		m := min(p.tile, p.rows-from)
		if p.rowsFrom(w, from, m); p.Dynamic {
			p.findTokens(w, from)
		}
		for g := range p.Groups {
			p.compute(w, g, from, m, panel)
		}
	}
}

// prepare allocates a worker's memory. Its floats contain a task's results, and also the sums if
// those are floats.
func (p *product) prepare(w *frame.Int8Work) {
	ldc := p.panels * simd.DotCols
	if len(p.table) == 0 {
		w.Offsets = pack.Grow(w.Offsets, p.tile)
	}
	if p.Dynamic {
		w.Zeros, w.Factors = pack.Grow(w.Zeros, p.tile), pack.Grow(w.Factors, p.tile)
	}
	switch {
	case p.Nibbles != nil:
		w.Floats = pack.Grow(w.Floats, 2*p.tile*ldc)
		return
	case p.Dynamic:
		w.Floats = pack.Grow(w.Floats, p.tile*ldc)
	}
	w.Sums = pack.Grow(w.Sums, p.tile*ldc)
}

// rowsFrom sets w.rows to the offsets of m rows, starting at row from.
func (p *product) rowsFrom(w *frame.Int8Work, from, m int) {
	if len(p.table) > 0 {
		w.Rows = p.table[from : from+m]
		return
	}
	w.Offsets = pack.Grow(w.Offsets, m)
	w.Rows = w.Offsets
	p.find(w.Rows, from)
}

// find sets rows to the offsets of the rows starting at row from.
func (p *product) find(rows []int, from int) {
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
func (p *product) compute(w *frame.Int8Work, g, from, m, panel int) {
	a := p.a
	switch {
	case p.gathers:
		w.Gathered = pack.Grow(w.Gathered, p.tile*p.row)
		a = w.Gathered
		for i := range m {
			p.gatherRow(a[i*p.row:][:p.row], g, from+i)
		}
	case p.window != nil:
		a = a[g*p.window.GroupIn:]
	}
	to := min(panel+p.panels, p.Columns()/simd.DotCols)
	ldc := p.panels * simd.DotCols
	if p.Nibbles != nil {
		p.computeNibbles(w, from, panel, to)
		return
	}
	weights := p.Dot[g+p.matrix]
	weights.Multiply(w.Sums, ldc, a, w.Rows, p.off, panel, to, p.Signed)
	if p.Dynamic {
		p.storeDynamic(w, weights.Sums, g, from, panel)
		return
	}
	column := panel * simd.DotCols
	at := g*p.Columns() + column
	q := p.Result.Quantized(p.Signed)
	q.Requantize(p.e.Data[p.node.Out[0]][(from*p.Groups+g)*p.N+column:], p.Groups*p.N, w.Sums, ldc, p.Init[at:], p.Scales[at:],
		m, min(ldc, p.N-column))
}

// tokenAt returns the token of the dynamically quantized elements that output row at reads.
func (p *product) tokenAt(at int) numbers.Token {
	tokens := p.e.Tokens[p.node.In[0]]
	if p.node.Type.Tag == graph.TagBatchMatrixMultiply {
		return tokens[p.token+at]
	}
	if len(tokens) == p.rows {
		return tokens[at]
	}
	return tokens[at*len(tokens)/p.rows]
}

// findTokens sets the zero points and scales of the rows starting at row from.
func (p *product) findTokens(w *frame.Int8Work, from int) {
	w.Zeros, w.Factors = pack.Grow(w.Zeros, len(w.Rows)), pack.Grow(w.Factors, len(w.Rows))
	if tokens := p.e.Tokens[p.node.In[0]]; len(tokens) == 1 {
		t := tokens[0]
		simd.Fill(w.Factors, t.Scale)
		simd.Fill(w.Zeros, p.Zero(t.Zero))
		return
	}
	for i := range w.Rows {
		t := p.tokenAt(from + i)
		w.Zeros[i], w.Factors[i] = p.Zero(t.Zero), t.Scale
	}
}

// storeDynamic scales rows of sums to floats and stores them.
func (p *product) storeDynamic(w *frame.Int8Work, sums []int32, g, from, panel int) {
	column, ldc := panel*simd.DotCols, p.panels*simd.DotCols
	n, at := min(ldc, p.N-column), g*p.Columns()+column
	dst, ldd := p.destination(w, g, from, column)
	simd.ScaleSums(dst, ldd, w.Sums, ldc, sums[column:], p.Scales[at:], p.added[at:], w.Zeros, w.Factors, n, p.node.Min, p.node.Max)
	p.keep(dst, ldd, g, from, column, n, len(w.Rows))
}

// computeNibbles is compute for 4-bit weights.
func (p *product) computeNibbles(w *frame.Int8Work, from, panel, to int) {
	column, ldc := panel*simd.DotCols, p.panels*simd.DotCols
	n, sums := min(ldc, p.N-column), w.Floats[p.tile*ldc:]
	p.Nibbles.Multiply(sums, ldc, p.a[from*p.Nibbles.RowBytes():], len(w.Rows), panel, to)
	dst, ldd := p.destination(w, 0, from, column)
	simd.ScaleFloats(dst, ldd, sums, ldc, p.Nibbles.Sums[column:], p.Scales[column:], p.added[column:], w.Zeros, w.Factors,
		n, p.node.Min, p.node.Max)
	p.keep(dst, ldd, 0, from, column, n, len(w.Rows))
}

// element returns the index of a column in an output row of a group.
func (p *product) element(g, row, column int) int {
	return ((p.first+row)*p.Groups+g)*p.N + column
}

// destination returns the destination of the floats of output rows, starting at a column, and the
// distance between its rows. It is the output, or a buffer that keep copies to the output.
func (p *product) destination(w *frame.Int8Work, g, row, column int) (dst []float32, ldd int) {
	if v := p.node.Out[0]; p.e.Graph.Values[v].Datatype == graph.FP32 {
		return tensor.View[float32](p.e.Data[v])[p.element(g, row, column):], p.Groups * p.N
	}
	return w.Floats, p.panels * simd.DotCols
}

// keep rounds n columns of m rows of place's buffer to the output's halves. It does nothing if the
// output is float32.
func (p *product) keep(x []float32, ldx, g, row, column, n, m int) {
	v := p.node.Out[0]
	if p.e.Graph.Values[v].Datatype == graph.FP32 {
		return
	}
	for i := range m {
		dst, src := p.e.Data[v][2*p.element(g, row+i, column):], x[i*ldx:][:n]
		done := simd.FloatToHalf(dst, src)
		graph.EncodeFP16(tensor.View[uint16](dst)[done:], src[done:])
	}
}

// depthwise computes lines of the output.
func (p *product) depthwise(w *frame.Int8Work, lo, hi int) {
	q := p.Result.Quantized(p.Signed)
	for line := lo; line < hi; line++ {
		image, y, to := line/p.out.Dim[1], line%p.out.Dim[1], p.e.Data[p.node.Out[0]][line*p.out.Dim[2]*p.N:]
		if p.gathers {
			p.depthwiseGathered(&q, w, to, line*p.out.Dim[2])
			continue
		}
		p.Depth.Row(&q, to, p.N, p.a, p.stage.Offset(image, y, 0), p.window.StrideW*p.stage.C, p.off, p.out.Dim[2])
	}
}

// depthwiseGathered computes a line of the output, which starts at row from, pixel by pixel.
func (p *product) depthwiseGathered(q *simd.Quantized, w *frame.Int8Work, to []uint8, from int) {
	w.Gathered = pack.Grow(w.Gathered, p.row+numbers.Overread)
	for i := range p.out.Dim[2] {
		p.e.Run.Poll()
		p.gatherRow(w.Gathered[:p.row], 0, from+i)
		p.Depth.Row(q, to[i*p.N:], p.N, w.Gathered, 0, 0, p.off, 1)
	}
}

// gatherRow copies the segments of an output row, which are pixels or kernel rows; padding is the image's zero.
func (p *product) gatherRow(dst []uint8, group, at int) {
	n, pitch := p.K/p.Segments, p.row/p.Segments
	if p.Depth != nil {
		n = pitch
	}
	image, _, _ := p.patches.Point(at)
	zero := p.zeroByte(image)
	for s := range p.Segments {
		p.patches.Gather(dst[s*pitch:][:n], group, at, s*n, zero)
	}
}
