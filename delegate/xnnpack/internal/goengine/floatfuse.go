package goengine

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/gemm"
	"github.com/etrun-go/etrun/internal/simd"
)

// finishNode applies the function that is merged into a node, if any, to columns [from, from+cols) of
// rows of ld elements.
func finishNode(n *graph.Node, y []float32, rows, ld, from, cols int) {
	if n.Then == nil || cols <= 0 {
		return
	}
	if cols == ld {
		typeOf(n.Then).elements(n.Then, y[:rows*ld], y)
		return
	}
	for i := range rows {
		row := y[i*ld+from:][:cols]
		typeOf(n.Then).elements(n.Then, row, row)
	}
}

// finishPanels does that for the columns of panels [from, to) of a matrix.
func finishPanels(n *graph.Node, m *gemm.Panels, y []float32, rows, ld, from, to int) {
	from *= simd.PanelCols
	finishNode(n, y, rows, ld, from, min(to*simd.PanelCols, m.N)-from)
}
