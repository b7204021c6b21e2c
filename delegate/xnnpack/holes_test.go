package xnnpack

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// These tests run classes of graphs on which the library of 2024 crashes, aborts or reads out of
// bounds, or which exceed a limit. Tests that use runClass create hundreds of graphs of a class:
// EngineAuto must run them with the results of the Go engine.

// classRounds is the number of graphs of a class per test.
func classRounds() int { return graphtest.Rounds(300) }

// runClass runs graphs of a class on EngineAuto and on the Go engine and compares the results.
func runClass(t *testing.T, steps int, loose float64, build func(m *graphtest.Maker) *graph.Graph) {
	xnntest.Library(t)
	ran, native := 0, 0
	for seed := range classRounds() {
		g := build(graphtest.NewMaker(uint64(seed)))
		if g == nil {
			continue
		}
		data := graphtest.Encode(g)
		want, _, err := execute(t, data, EngineGo, 0, nil)
		if errors.Is(err, delegate.ErrPayload) {
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: reference: %v", seed, err)
		}
		img, err := compile(t, data, EngineAuto)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		got := graphtest.NewMaker(7).Arguments(img.(*image).Graph)
		if err := runOnce(img, got); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		s := graphtest.Sample{Steps: steps, Loose: loose}
		if err := s.Differ(got, want, img.(*image).Graph); err != nil {
			t.Errorf("seed %d, native %v: %v", seed, isNative(img), err)
		}
		ran++
		if isNative(img) {
			native++
		}
		img.Close()
	}
	t.Logf("%d of %d graphs ran, %d natively", ran, classRounds(), native)
	if ran < classRounds()/10 {
		t.Errorf("got %d of %d graphs that the Go engine runs, want at least a tenth", ran, classRounds())
	}
}

func runOnce(img delegate.Image, args []*tensor.Value) error {
	u, err := img.Unit(delegate.Instance{})
	if err != nil {
		return err
	}
	defer u.Close()
	return u.Execute(context.Background(), args)
}

// TestPoolGeometries runs pools with dilation, padding up to the window, same padding and strides.
func TestPoolGeometries(t *testing.T) {
	for _, name := range []string{"MaxPooling2d", "AvgPooling2d"} {
		t.Run(name, func(t *testing.T) {
			runClass(t, 0, 1e-5, func(m *graphtest.Maker) *graph.Graph {
				n := func(k int) int { return 1 + m.R.IntN(k) }
				w := graph.Window{KernelH: n(4), KernelW: n(4), StrideH: n(3), StrideW: n(3), DilationH: n(4), DilationW: n(4)}
				if name == "AvgPooling2d" || m.R.IntN(3) == 0 {
					w.DilationH, w.DilationW = 1, 1
				}
				same := m.R.IntN(4) == 0
				if h, v := w.DilationH*(w.KernelH-1)+1, w.DilationW*(w.KernelW-1)+1; !same && m.R.IntN(3) > 0 {
					w.Top, w.Bottom, w.Left, w.Right = m.R.IntN(h), m.R.IntN(h), m.R.IntN(v), m.R.IntN(v)
				}
				x, y := m.Input(graph.FP32, n(2), n(9), n(9), n(20)), m.Value(graph.FP32, 1, 1, 1, 1)
				m.Node(name, []int{x}, []int{y}, graphtest.WithWindow(w), func(n *graph.Node) {
					if same {
						n.Flags = graph.FlagSamePadding
					}
				})
				return fixed(m, y)
			})
		})
	}
}

// TestClampsAfter runs clamps after nodes into which they can be fused: with another quantization,
// and with bounds that are disjoint from the node's, equal, or outside the range of the datatype.
func TestClampsAfter(t *testing.T) {
	for _, kind := range []string{"Conv2d", "DepthwiseConv2d", "ConvTranspose2d", "FullyConnected", "MaxPooling2d", "Clamp", "Add"} {
		for _, d := range []graph.Datatype{graph.FP32, graph.QInt8, graph.QUInt8} {
			t.Run(kind+" "+d.String(), func(t *testing.T) {
				runClass(t, 2, 1e-5, func(m *graphtest.Maker) *graph.Graph { return clampBehind(m, kind, d) })
			})
		}
	}
}

// TestRegroupedRows runs fully connected nodes that regroup the rows of a dynamically quantized input.
func TestRegroupedRows(t *testing.T) {
	runClass(t, 0, 2e-5, func(m *graphtest.Maker) *graph.Graph {
		k, cols := 2+m.R.IntN(5), 1+m.R.IntN(6)
		dims := []int{1 + m.R.IntN(4), 1 + m.R.IntN(4), k}
		if m.R.IntN(2) == 0 {
			dims = []int{1 + m.R.IntN(3), k * (1 + m.R.IntN(8))}
		}
		x := m.Input(graph.FP32, dims...)
		types := graph.Weighted{In: graph.FP32, Filter: graph.FP32, Bias: graph.FP32, Out: graph.FP32}
		if m.R.IntN(3) > 0 {
			x, types = m.Quantized(x, 1), graph.Weighted{In: graph.QDInt8, Filter: graph.QCInt8, Bias: graph.FP32, Out: graph.FP32}
		}
		filter, y := m.Constant(types.Filter, 0, cols, k), m.Value(graph.FP32, 1, cols)
		m.Node("FullyConnected", []int{x, filter, m.Constant(graph.FP32, 0, cols)}, []int{y}, func(n *graph.Node) { n.Flags = graph.FlagReshape2D })
		return fixed(m, y)
	})
}

// TestNeedsBeyondTheLimit checks that graphs whose values, indirection buffers or resized images need
// more memory than the limit are rejected.
func TestNeedsBeyondTheLimit(t *testing.T) {
	xnntest.Library(t)
	b := Backend{Engine: EngineNative, Library: xnntest.Path()}
	limits := delegate.Limits{Scratch: 32 << 20, Memory: 64 << 20}
	for name, build := range map[string]func(m *graphtest.Maker, size int) *graph.Graph{
		"value": wideValue, "pool": wideTable, "resize": wideImage,
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range classRounds() {
				m := graphtest.NewMaker(uint64(seed))
				size := 1500 + m.R.IntN(1501)
				_, err := b.Compile(context.Background(), &delegate.Payload{Data: graphtest.Encode(build(m, size)), Limits: limits})
				if !errors.Is(err, delegate.ErrMemory) {
					t.Fatalf("seed %d, size %d: got %v, want %v", seed, size, err, delegate.ErrMemory)
				}
			}
		})
	}
}

// TestManyLiveValues checks that a graph for which the library would plan memory for minutes runs on
// the Go engine.
func TestManyLiveValues(t *testing.T) {
	for _, live := range []int{100, 2000} {
		m := graphtest.NewMaker(1)
		x := m.Input(graph.FP32, 4)
		var values []int
		for range live {
			values = append(values, m.Value(graph.FP32, 4))
			m.Node("Negate", []int{x}, []int{values[len(values)-1]})
		}
		total := x
		for _, v := range values {
			y := m.Value(graph.FP32, 4)
			m.Node("Add", []int{total, v}, []int{y})
			total = y
		}
		data := graphtest.Encode(m.Done(total))
		img, err := compile(t, data, EngineAuto)
		if err != nil {
			t.Fatal(err)
		}
		img.Close()
		xnntest.Library(t)
		img, err = compile(t, data, EngineNative)
		if got, want := err == nil, live == 100; got != want {
			t.Errorf("%d live values: got native %v, want %v", live, got, want)
		}
		if err == nil {
			img.Close()
		}
	}
}

// TestPoolsBeyondTheTime checks that small payloads with pools that are too slow are rejected.
func TestPoolsBeyondTheTime(t *testing.T) {
	for _, pools := range []int{1, 100} {
		m := graphtest.NewMaker(1)
		var outs []int
		x := m.Input(graph.FP32, 1, 1024, 1024, 1)
		for range pools {
			y := m.Value(graph.FP32, 1)
			m.Node("MaxPooling2d", []int{x}, []int{y}, graphtest.WithWindow(graph.Window{KernelH: 512, KernelW: 512, StrideH: 32, StrideW: 32, DilationH: 1, DilationW: 1}))
			outs = append(outs, y)
		}
		_, err := compile(t, graphtest.Encode(fixed(m, outs...)), EngineGo)
		if (err == nil) != (pools == 1) || err != nil && !errors.Is(err, delegate.ErrUnsupported) {
			t.Errorf("%d pools: got %v, want success for 1, %v for 100", pools, err, delegate.ErrUnsupported)
		}
	}
}

// fixed is fix but returns nil if the shapes are inconsistent.
func fixed(m *graphtest.Maker, outputs ...int) *graph.Graph {
	g := m.Done(outputs...)
	s, err := g.Declared()
	if err != nil {
		return nil
	}
	for _, v := range outputs {
		g.Values[v].Shape = s[v]
	}
	return g
}

// clampBehind makes a graph of a node and a clamp of its output.
func clampBehind(m *graphtest.Maker, kind string, d graph.Datatype) *graph.Graph {
	types := map[graph.Datatype]graph.Weighted{graph.FP32: {In: graph.FP32, Filter: graph.FP32, Bias: graph.FP32, Out: graph.FP32}, graph.QInt8: {In: graph.QInt8, Filter: graph.QCInt8, Bias: graph.QCInt32, Out: graph.QInt8}, graph.QUInt8: {In: graph.QUInt8, Filter: graph.QUInt8, Bias: graph.QInt32, Out: graph.QUInt8}}[d]
	w := graphtest.Windows[m.R.IntN(3)].Window
	var g *graph.Graph
	switch kind {
	case "FullyConnected":
		g = m.FullyConnectedSample(types, 0)
	case "MaxPooling2d":
		x, y := m.Input(d, 1, 5, 5, 3), m.Value(d, 1, 4, 4, 3)
		m.Graph.Values[y].Quant = m.Graph.Values[x].Quant
		m.Node(kind, []int{x}, []int{y}, graphtest.WithWindow(graph.Window{KernelH: 2, KernelW: 2, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}))
		g = m.Done(y)
	case "Clamp":
		g = m.UnarySample(kind, d)
	case "Add":
		g = m.BinarySample(kind, d)
	default:
		g = m.ConvolutionSample(kind, w, false, types, m.R.IntN(2) == 0)
	}
	last := &g.Nodes[len(g.Nodes)-1]
	last.Min, last.Max = someBounds(m, d)
	addClamp(m, last.Out[0], d)
	if m.R.IntN(3) == 0 {
		addClamp(m, len(g.Values)-1, d)
	}
	return g
}

// addClamp adds a clamp of output v, which becomes an intermediate value.
func addClamp(m *graphtest.Maker, v int, d graph.Datatype) {
	g := m.Graph
	y := m.Value(d, g.Values[v].Shape.Dims()...)
	x := &g.Values[v]
	if m.R.IntN(2) == 0 {
		g.Values[y].Quant = x.Quant
	}
	g.Values[y].Output, g.Values[y].Arg, g.Args[x.Arg] = true, x.Arg, y
	x.Output, x.Arg = false, graph.None
	lo, hi := someBounds(m, d)
	m.Node("Clamp", []int{v}, []int{y}, func(n *graph.Node) { n.Min, n.Max = lo, hi })
}

// someBounds returns bounds that are random, half open, equal, or outside the range of quantized elements.
func someBounds(m *graphtest.Maker, d graph.Datatype) (lo, hi float32) {
	switch m.R.IntN(6) {
	case 0:
		return -graph.Inf, graph.Inf
	case 1:
		return 0, graph.Inf
	case 2:
		return 0.3, 0.3
	case 3:
		return 6, 128
	case 4:
		return -500, -100
	}
	lo = (m.Lo + (m.Hi-m.Lo)*m.R.Float32())
	return lo, lo + float32(math.Abs(float64((m.Lo + (m.Hi-m.Lo)*m.R.Float32()))))
}

// wideValue returns a graph with an intermediate value of size×size×8.
func wideValue(m *graphtest.Maker, size int) *graph.Graph {
	x, wide, y := m.Input(graph.FP32, 1, 1, 1, 8), m.Value(graph.FP32, 1), m.Value(graph.FP32, 1)
	m.Node("StaticConstantPad", []int{x}, []int{wide}, func(n *graph.Node) {
		p := graph.Params[graph.PadParams](n)
		p.Before, p.After = make([]int, 4), []int{0, size, size, 0}
	})
	m.Node("StaticSlice", []int{wide}, []int{y}, func(n *graph.Node) {
		*graph.Params[graph.SliceParams](n) = graph.SliceParams{Offsets: make([]int, 4), Sizes: []int{1, 1, 1, 1}}
	})
	return fixed(m, y)
}

// wideTable returns a graph with a 64x64 pool, which needs a pointer per window element.
func wideTable(m *graphtest.Maker, size int) *graph.Graph {
	x, y := m.Input(graph.FP32, 1, size, size/4, 1), m.Value(graph.FP32, 1)
	m.Node("MaxPooling2d", []int{x}, []int{y}, graphtest.WithWindow(graph.Window{KernelH: 64, KernelW: 64, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}))
	return fixed(m, y)
}

// wideImage returns a graph that resizes a pixel to size×size.
func wideImage(m *graphtest.Maker, size int) *graph.Graph {
	x, y := m.Input(graph.FP32, 1, 1, 1, 1), m.Value(graph.FP32, 1)
	m.Node("StaticResizeBilinear2D", []int{x}, []int{y}, func(n *graph.Node) {
		*graph.Params[graph.ResizeParams](n) = graph.ResizeParams{Height: size, Width: size}
	})
	return fixed(m, y)
}
