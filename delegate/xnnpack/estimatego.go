package xnnpack

// Times of nodes in the Go engine in addition to their rates, in nanoseconds.
const (
	goTile      = 2.5   // per row of a tile of a product, in each pass over the output
	goLine      = 1.5   // the same for long lines of windows
	goFew       = 8     // output channels up to which a row takes goNarrow longer, except in long lines
	goNarrow    = 4     // per row, see goFew
	goShortRow  = 2.5   // per row of a product of 8-bit elements
	goGathered  = 2     // per element of a window that is gathered in short runs
	goLatency   = 1.3   // per term of a product of few rows, for each goRowCols columns
	goRowCols   = 128   // columns
	goConverted = 0.3   // per 16-bit element
	goBorder    = 20    // per pixel of a depthwise convolution whose window reaches over the side of a line
	goGroups    = 0.037 // per term of a product in groups
	goCodes     = 105   // per function of two 8-bit operands
	goRepeat    = 10    // per function of two operands of which one is repeated
	goPanel     = 32    // output channels of a tile
	goChannels  = 32    // channels that a depthwise convolution computes together
)

// isDepthwise reports whether a node is a depthwise convolution with one output channel per input
// channel. Others are computed as grouped convolutions.
func (n *node) isDepthwise() bool {
	return n.Type.tag == tagDepthwiseConv2d && n.window().groupOut == 1
}

// goTime returns a node's time in the Go engine in addition to its rates.
func (e *estimator) goTime(n *node) (time float64) {
	in, out := e.shapes[n.In[0]], e.shapes[n.Out[0]]
	if e.Values[n.In[0]].Datatype.info().bits == 16 {
		time += goConverted * float64(in.numel()+out.numel())
	}
	if n.then != nil { // the elements are in the first-level cache
		each := rates[n.then.Type.name].element[byGo]
		if each < nearTime {
			each *= nearShare
		}
		time += each * float64(out.numel())
	}
	switch w := n.window(); {
	case n.isDepthwise():
		if !e.isShort(n) {
			time += goBorder * float64(out.leading(2)*min(out.dim[2], w.kernelW-1))
		}
	case n.Type.convolution:
		time += e.goConvolution(n, w, out)
	case n.Type.packs && n.Type.tag != tagBatchMatrixMultiply:
		time += e.goProduct(n, out.numel()/max(out.last(), 1), in.last(), out.last())
	case n.Type.isIn(binaryNodes) && e.isShort(n):
		time += goCodes
	case n.Type.isIn(binaryNodes) && in != e.shapes[n.In[1]]:
		time += goRepeat
	}
	return time
}

// goConvolution returns a convolution's time in addition to its rates.
func (e *estimator) goConvolution(n *node, w *window, out shape) (time float64) {
	rows := out.leading(3) * w.groups
	if w.groups > 1 {
		time += goGroups * float64(n.Type.cost(e.graph, n, e.shapes))
	}
	if e.isShort(n) {
		return time + goShortRow*float64(rows)
	}
	passes, taps := float64(rows*w.kernelH*ceilDiv(w.groupOut, goPanel)), w.kernelW*w.groupIn
	switch {
	case w.kernelH > 1 && out.dim[2] >= longLine && taps >= shortRow:
		time += goLine * passes
	case w.groupOut <= goFew:
		time += goTile*passes + goNarrow*float64(rows*w.kernelH)
	default:
		time += goTile * passes
	}
	if w.kernelH*w.kernelW > 1 && taps < shortRow {
		time += goGathered * float64(rows*w.kernelH*taps)
	}
	return time + goLate(rows, w.kernelH*w.kernelW*w.groupIn, w.groupOut)
}

// goProduct returns the time of a product of rows in addition to its rates.
func (e *estimator) goProduct(n *node, rows, k, cols int) (time float64) {
	if e.isShort(n) {
		return goShortRow * float64(rows)
	}
	return goTile*float64(rows*ceilDiv(cols, goPanel)) + goLate(rows, k, cols)
}

// goLate returns the latency of the sums of a product of few rows.
func goLate(rows, k, cols int) float64 {
	if rows >= 4 {
		return 0
	}
	return float64(rows*k) * max(0, goLatency*float64(ceilDiv(cols, goRowCols))-0.02*float64(cols))
}
