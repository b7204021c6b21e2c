package xnnpack

// Times of nodes in the Go engine in addition to their rates, in nanoseconds.
const (
	goTile      = 2.5 // per row of a tile of a product
	goShortRow  = 2.5 // per row of a product of 8-bit elements
	goLatency   = 1.3 // per term of a product of few rows, for each goRowCols columns
	goRowCols   = 128 // columns
	goConverted = 0.1 // per 16-bit element
	goCodes     = 105 // per function of two 8-bit operands
	goRepeat    = 50  // per function of two operands of which one is repeated
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
	switch {
	case n.Type.convolution:
	case n.Type.packs && n.Type.tag != tagBatchMatrixMultiply:
		time += e.goProduct(n, out.numel()/max(out.last(), 1), in.last(), out.last())
	case n.Type.isIn(binaryNodes) && e.isShort(n):
		time += goCodes
	case n.Type.isIn(binaryNodes) && in != e.shapes[n.In[1]]:
		time += goRepeat
	}
	return time
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
