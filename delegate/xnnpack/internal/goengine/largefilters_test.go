package goengine

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
)

// largeFilters are graphs of one product with a filter of a million elements, one for each form in which filters are
// packed.
func largeFilters() map[string]*graph.Graph {
	connected := func(in, filter, bias graph.Datatype) *graph.Graph {
		m := graphtest.NewMaker(5)
		x, f, b, y := m.Input(graph.FP32, 4, 1024), m.Constant(filter, 0, 1024, 1024), m.Constant(bias, 0, 1024), m.Value(graph.FP32, 1)
		if in == graph.QDInt8 {
			x = m.Quantized(x, 1)
		}
		m.Node("FullyConnected", []int{x, f, b}, []int{y})
		return m.Fix(y)
	}
	return map[string]*graph.Graph{
		"floats":                 connected(graph.FP32, graph.FP32, graph.FP32),
		"bytes":                  connected(graph.QDInt8, graph.QCInt8, graph.FP32),
		"4 bits":                 connected(graph.QDInt8, graph.QCInt4, graph.FP32),
		"4 bits in groups":       connected(graph.QDInt8, graph.QBInt4, graph.FP32),
		"floats by bytes":        connected(graph.FP32, graph.QCInt8, graph.FP32),
		"floats by 4 bits":       connected(graph.FP32, graph.QCInt4, graph.FP32),
		"floats by 16-bit ones":  connected(graph.FP32, graph.BF16, graph.FP32),
		"a convolution of bytes": convolutionGraph8(),
		"blocks of pixels":       blocksGraph(),
	}
}

// blocksGraph is a convolution of floats with a large filter, which the Go engine computes in blocks of 2×2 pixels.
func blocksGraph() *graph.Graph {
	m := graphtest.NewMaker(5)
	x, f, b, y := m.Input(graph.FP32, 1, 14, 14, 320), m.Constant(graph.FP32, 0, 352, 3, 3, 320), m.Constant(graph.FP32, 0, 352), m.Value(graph.FP32, 1)
	m.Node("Conv2d", []int{x, f, b}, []int{y}, graphtest.WithWindow(graph.Window{KernelH: 3, KernelW: 3, StrideH: 1, StrideW: 1,
		DilationH: 1, DilationW: 1, Groups: 1, GroupIn: 320, GroupOut: 352}))
	return m.Fix(y)
}

// convolutionGraph8 is a convolution of bytes with a large filter.
func convolutionGraph8() *graph.Graph {
	m := graphtest.NewMaker(5)
	x, f, b, y := m.Input(graph.QInt8, 1, 6, 6, 256), m.Constant(graph.QCInt8, 0, 512, 3, 3, 256), m.Constant(graph.QCInt32, 0, 512), m.Value(graph.QInt8, 1)
	m.Node("Conv2d", []int{x, f, b}, []int{y}, func(n *graph.Node) {
		*n.Window() = graph.Window{KernelH: 3, KernelW: 3, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, Groups: 1, GroupIn: 256, GroupOut: 512}
	})
	return m.Fix(y)
}
