package goengine

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/hal/cpu"
)

// unusualFilters returns products of bytes with filters or sizes that few models have: the largest byte as a number of its own,
// inputs that are mostly padding, panels that would be, and rows of 4-bit elements that are longer than products of them allow. The
// last ones are computed on decoded numbers.
func unusualFilters() (exact, decoded []graphtest.Sample) {
	one := graph.Window{KernelH: 1, KernelW: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, Groups: 1, GroupIn: 1, GroupOut: 1}
	window := func(change func(w *graph.Window)) graph.Window {
		w := one
		change(&w)
		return w
	}
	bytesOf, int8s := graph.ConvolutionTypes[6], graph.ConvolutionTypes[4:9]
	for _, w := range []graph.Window{
		window(func(w *graph.Window) { w.GroupIn, w.GroupOut, w.KernelH, w.KernelW = 19, 21, 3, 2 }),
		window(func(w *graph.Window) { w.Groups, w.GroupIn, w.GroupOut = 3, 5, 4 }),
	} {
		exact = append(exact, convolutionSample8("Conv2d", bytesOf, w, 255), convolutionSample8("ConvTranspose2d", bytesOf, w, 255))
	}
	for _, w := range []graph.Window{
		window(func(w *graph.Window) { w.Groups, w.KernelH, w.KernelW, w.Top, w.Left = 37, 3, 3, 1, 1 }),
		window(func(w *graph.Window) {
			w.Groups, w.KernelH, w.KernelW, w.Top, w.Left, w.StrideH, w.StrideW = 21, 3, 3, 400, 400, 300, 500
		}),
		window(func(w *graph.Window) { w.Groups, w.GroupOut, w.KernelW, w.Right, w.StrideW = 5, 2, 4, 30000, 3000 }),
	} {
		exact = append(exact, convolutionSample8("DepthwiseConv2d", bytesOf, w, 255))
		for _, types := range int8s {
			exact = append(exact, convolutionSample8("DepthwiseConv2d", types, w, 0))
		}
	}
	for _, types := range int8s {
		decoded = append(decoded, convolutionSample8("Conv2d", types, window(func(w *graph.Window) { w.Groups, w.GroupIn = 4200, 2 }), 0),
			convolutionSample8("DepthwiseConv2d", types, window(func(w *graph.Window) { w.Groups, w.GroupOut, w.KernelH, w.Top = 4200, 2, 2, 1 }), 0))
	}
	for _, types := range graph.FullyConnectedTypes {
		if types.Filter.Info().Bits == 4 && types.In == graph.QDInt8 {
			m := graphtest.NewMaker(5)
			x := m.Quantized(m.Input(types.Out, 3, 1<<15+2), 1)
			filter, y := m.Constant(types.Filter, 0, 2, 1<<15+2), m.Value(types.Out, 3, 2)
			if types.Filter == graph.QBInt4 {
				regroup(m, filter, 2, 1<<15+2, 1<<15+2)
			}
			q := &m.Graph.Values[filter].Quant // small products: the error of a sum of floats grows with them
			for i := range q.Scales {
				q.Scales[i] /= 256
			}
			for i := range q.Blocks { // bfloat16
				q.Blocks[i] -= 8 << 7
			}
			m.Node("FullyConnected", []int{x, filter, graph.None}, []int{y}, someBounds(m))
			decoded = append(decoded, graphtest.Sample{Name: fmt.Sprint("long rows ", types), Graph: m.Done(y)})
		}
	}
	return exact, decoded
}

// convolutionSample8 returns a convolution of an image of 3×4 pixels. Where largest is not 0, the filter has the zero point 0 and
// elements of that byte.
func convolutionSample8(kind string, types graph.Weighted, w graph.Window, largest uint8) graphtest.Sample {
	m := graphtest.NewMaker(uint64(w.Groups))
	m.Lo, m.Hi = -1, 1
	x, out := m.Activations(types, 3, 1, 3, 4, w.Groups*w.GroupIn), w.Groups*w.GroupOut
	channel, dims := 0, []int{out, w.KernelH, w.KernelW, w.GroupIn}
	if kind == "DepthwiseConv2d" {
		channel, dims = 3, []int{1, w.KernelH, w.KernelW, out}
	}
	filter, bias, y := m.Constant(types.Filter, channel, dims...), m.Constant(types.Bias, 0, out), m.Value(types.Out, 1, 1, 1, out)
	if f := &m.Graph.Values[filter]; largest != 0 {
		f.Quant.ZeroPoint, f.Data = 0, bytes.Clone(f.Data)
		for i := range f.Data {
			if f.Data[i]%3 == 0 {
				f.Data[i] = largest
			}
		}
	}
	m.Node(kind, []int{x, filter, bias}, []int{y}, graphtest.WithWindow(w), someBounds(m))
	return graphtest.Sample{Name: fmt.Sprintf("%s %v %+v, %d", kind, types, w, largest), Graph: m.Fix(y)}
}

// TestUnusualFilters compares such products with the plain loops.
func TestUnusualFilters(t *testing.T) {
	pool := cpu.NewPool(2)
	defer pool.Close()
	exact, decoded := unusualFilters()
	for _, s := range exact {
		if n := compareWithPlain(t, s, pool); n != 1 {
			t.Errorf("%s: got %d 8-bit products, want 1", s.Name, n)
		}
	}
	for _, s := range decoded {
		if n := compareWithPlain(t, s, pool); n != 0 {
			t.Errorf("%s: got %d 8-bit products, want none", s.Name, n)
		}
	}
}
