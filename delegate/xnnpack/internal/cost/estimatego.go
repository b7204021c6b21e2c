package cost

import "github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"

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

// goTime returns a node's time in the Go engine in addition to its rates.
func (e *Estimator) goTime(n *graph.Node) (time float64) {
	in, out := e.Shapes[n.In[0]], e.Shapes[n.Out[0]]
	if e.Values[n.In[0]].Datatype.Info().Bits == 16 {
		time += goConverted * float64(in.Numel()+out.Numel())
	}
	if n.Then != nil { // the elements are in the first-level cache
		each := Rates[n.Then.Type.Name].Element[ByGo]
		if each < nearTime {
			each *= nearShare
		}
		time += each * float64(out.Numel())
	}
	switch {
	case n.Type.Convolution:
	case n.Type.Packs && n.Type.Tag != graph.TagBatchMatrixMultiply:
		time += e.goProduct(n, out.Numel()/max(out.Last(), 1), in.Last(), out.Last())
	case n.Type.IsIn(graph.BinaryNodes) && e.isShort(n):
		time += goCodes
	case n.Type.IsIn(graph.BinaryNodes) && in != e.Shapes[n.In[1]]:
		time += goRepeat
	}
	return time
}

// goProduct returns the time of a product of rows in addition to its rates.
func (e *Estimator) goProduct(n *graph.Node, rows, k, cols int) (time float64) {
	if e.isShort(n) {
		return goShortRow * float64(rows)
	}
	return goTile*float64(rows*graph.CeilDiv(cols, goPanel)) + goLate(rows, k, cols)
}

// goLate returns the latency of the sums of a product of few rows.
func goLate(rows, k, cols int) float64 {
	if rows >= 4 {
		return 0
	}
	return float64(rows*k) * max(0, goLatency*float64(graph.CeilDiv(cols, goRowCols))-0.02*float64(cols))
}
