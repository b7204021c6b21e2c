package native

import (
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/hal/cpu"
)

// TestKernelFaults checks which nodes the table of faults hits, on any processor.
func TestKernelFaults(t *testing.T) {
	tables := kernelFaults
	t.Cleanup(func() { kernelFaults = tables })
	kernelFaults = nil
	for _, f := range tables {
		f.Selected = func(cpu.Hardware) bool { return true }
		kernelFaults = append(kernelFaults, f)
	}
	debian, newer := &xnn.Soname{Build: "4ea82e595b36"}, &xnn.Soname{Build: "92a7ad501b95"}
	weights := func(in, filter, bias, out graph.Datatype) graph.Weighted {
		return graph.Weighted{In: in, Filter: filter, Bias: bias, Out: out}
	}
	statics, dynamic := weights(graph.QInt8, graph.QCInt8, graph.QCInt32, graph.QInt8), weights(graph.QDInt8, graph.QCInt8, graph.FP32, graph.FP32)
	product := func(filter graph.Datatype, rows int) *graph.Graph {
		return graphtest.NewMaker(1).ProductSample(weights(graph.QDInt8, filter, graph.FP32, graph.FP32), rows, 160, 7)
	}
	window := func(kind string, types graph.Weighted, width, channels, side int) *graph.Graph {
		return graphtest.NewMaker(1).PixelSample(kind, types, width, channels, 20, side)
	}
	pixels := func(kind string, types graph.Weighted, width, channels int) *graph.Graph {
		return window(kind, types, width, channels, 3)
	}
	for _, c := range []struct {
		name string
		lib  *xnn.Soname
		g    *graph.Graph
		vary bool
		want bool
	}{
		{"4-bit weights", debian, product(graph.QCInt4, 1), false, true},
		{"4-bit weights, library of unknown version", nil, product(graph.QCInt4, 1), false, true},
		{"4-bit weights, newer library", newer, product(graph.QCInt4, 1), false, false},
		{"groups, one row", debian, product(graph.QBInt4, 1), false, false},
		{"groups, two rows", debian, product(graph.QBInt4, 2), false, true},
		{"groups, 17 rows", debian, product(graph.QBInt4, 17), false, true},
		{"groups, 18 rows", debian, product(graph.QBInt4, 18), false, false},
		{"groups, up to 18 rows", debian, product(graph.QBInt4, 18), true, true},
		{"8-bit weights", debian, product(graph.QCInt8, 17), true, false},
		{"16 pixels", debian, pixels("Conv2d", statics, 16, 72), false, false},
		{"17 pixels", debian, pixels("Conv2d", statics, 17, 72), false, true},
		{"up to 16 pixels", debian, pixels("Conv2d", statics, 16, 72), true, true},
		{"17 pixels of 64 channels", debian, pixels("Conv2d", statics, 17, 64), true, false},
		{"17 pixels, quantized at run time", debian, pixels("Conv2d", dynamic, 17, 72), false, true},
		{"17 pixels of floats", debian, pixels("Conv2d", weights(graph.FP32, graph.FP32, graph.FP32, graph.FP32), 17, 72), true, false},
		{"pixels of halves", debian, pixels("Conv2d", weights(graph.FP16, graph.FP32, graph.FP32, graph.FP16), 1, 3), false, true},
		{"roots of halves", debian, graphtest.NewMaker(1).UnarySample("SquareRoot", graph.FP16), false, true},
		{"slopes of halves", debian, graphtest.NewMaker(1).BinarySample("PReLU", graph.FP16), false, true},
		{"sums of halves", debian, graphtest.NewMaker(1).BinarySample("Add", graph.FP16), false, false},
		{"rows of halves, newer library", newer, graphtest.NewMaker(1).ProductSample(weights(graph.FP16, graph.FP16, graph.FP16, graph.FP16), 1, 8, 7), false, true},
		{"rows of halves", debian, graphtest.NewMaker(1).ProductSample(weights(graph.FP16, graph.FP16, graph.FP16, graph.FP16), 1, 8, 7), false, true},
		{"rows of halves, quantized at run time", newer, graphtest.NewMaker(1).ProductSample(weights(graph.QDInt8, graph.QCInt8, graph.FP32, graph.FP16), 1, 8, 7), false, true},
		{"rows quantized at run time", newer, graphtest.NewMaker(1).ProductSample(weights(graph.QDInt8, graph.QCInt8, graph.FP32, graph.FP32), 1, 8, 7), false, false},
		{"17 pixels by themselves", debian, window("Conv2d", statics, 17, 72, 1), true, false},
		{"17 pixels by themselves, quantized at run time", debian, window("Conv2d", dynamic, 17, 72, 1), false, true},
		{"16 pixels, transposed", debian, pixels("ConvTranspose2d", statics, 16, 72), false, false},
		{"17 pixels, transposed", debian, pixels("ConvTranspose2d", statics, 17, 72), false, true},
	} {
		s, err := c.g.Declared()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := Miscomputed(c.g, c.lib, s, c.vary); (got != "") != c.want {
			t.Errorf("%s: got %q, want a reason: %t", c.name, got, c.want)
		}
	}
}
