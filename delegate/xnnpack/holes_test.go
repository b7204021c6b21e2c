package xnnpack

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// These tests run classes of graphs on which the library of 2024 crashes, aborts or reads out of
// bounds, or which exceed a limit. Tests that use runClass create a thousand graphs of a class:
// EngineAuto must run them with the results of the Go engine.

// classRounds is the number of graphs of a class per test.
func classRounds() int {
	if testing.Short() {
		return 100
	}
	return 1000
}

// runClass runs graphs of a class on EngineAuto and on the Go engine and compares the results.
func runClass(t *testing.T, steps int, loose float64, build func(m *maker) *graph.Graph) {
	xnntest.Library(t)
	ran, native := 0, 0
	for seed := range classRounds() {
		g := build(newMaker(uint64(seed)))
		if g == nil {
			continue
		}
		data := encode(g)
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
		got := newMaker(7).arguments(img.(*image).Graph)
		if err := runOnce(img, got); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		s := sample{steps: steps, loose: loose}
		if err := s.differ(got, want, img.(*image).Graph); err != nil {
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
			runClass(t, 0, 1e-5, func(m *maker) *graph.Graph {
				n := func(k int) int { return 1 + m.r.IntN(k) }
				w := graph.Window{KernelH: n(4), KernelW: n(4), StrideH: n(3), StrideW: n(3), DilationH: n(4), DilationW: n(4)}
				if name == "AvgPooling2d" || m.r.IntN(3) == 0 {
					w.DilationH, w.DilationW = 1, 1
				}
				same := m.r.IntN(4) == 0
				if h, v := w.DilationH*(w.KernelH-1)+1, w.DilationW*(w.KernelW-1)+1; !same && m.r.IntN(3) > 0 {
					w.Top, w.Bottom, w.Left, w.Right = m.r.IntN(h), m.r.IntN(h), m.r.IntN(v), m.r.IntN(v)
				}
				x, y := m.input(graph.FP32, n(2), n(9), n(9), n(20)), m.value(graph.FP32, 1, 1, 1, 1)
				m.node(name, []int{x}, []int{y}, withWindow(w), func(n *graph.Node) {
					if same {
						n.Flags = graph.FlagSamePadding
					}
				})
				return m.fixed(y)
			})
		})
	}
}

// fixed is fix but returns nil if the shapes are inconsistent.
func (m *maker) fixed(outputs ...int) *graph.Graph {
	g := m.done(outputs...)
	s, err := g.Declared()
	if err != nil {
		return nil
	}
	for _, v := range outputs {
		g.Values[v].Shape = s[v]
	}
	return g
}

// TestClampsAfter runs clamps after nodes into which they can be fused: with another quantization,
// and with bounds that are disjoint from the node's, equal, or outside the range of the datatype.
func TestClampsAfter(t *testing.T) {
	for _, kind := range []string{"Conv2d", "DepthwiseConv2d", "ConvTranspose2d", "FullyConnected", "MaxPooling2d", "Clamp", "Add"} {
		for _, d := range []graph.Datatype{graph.FP32, graph.QInt8, graph.QUInt8} {
			t.Run(kind+" "+d.String(), func(t *testing.T) {
				runClass(t, 2, 1e-5, func(m *maker) *graph.Graph { return m.clampBehind(kind, d) })
			})
		}
	}
}

func (m *maker) clampBehind(kind string, d graph.Datatype) *graph.Graph {
	types := map[graph.Datatype]graph.Weighted{graph.FP32: {In: graph.FP32, Filter: graph.FP32, Bias: graph.FP32, Out: graph.FP32}, graph.QInt8: {In: graph.QInt8, Filter: graph.QCInt8, Bias: graph.QCInt32, Out: graph.QInt8}, graph.QUInt8: {In: graph.QUInt8, Filter: graph.QUInt8, Bias: graph.QInt32, Out: graph.QUInt8}}[d]
	w := windows[m.r.IntN(3)].w
	var g *graph.Graph
	switch kind {
	case "FullyConnected":
		g = m.fullyConnectedSample(types, 0)
	case "MaxPooling2d":
		x, y := m.input(d, 1, 5, 5, 3), m.value(d, 1, 4, 4, 3)
		m.Graph.Values[y].Quant = m.Graph.Values[x].Quant
		m.node(kind, []int{x}, []int{y}, withWindow(graph.Window{KernelH: 2, KernelW: 2, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}))
		g = m.done(y)
	case "Clamp":
		g = m.unarySample(kind, d)
	case "Add":
		g = m.binarySample(kind, d)
	default:
		g = m.convolutionSample(kind, w, false, types, m.r.IntN(2) == 0)
	}
	last := &g.Nodes[len(g.Nodes)-1]
	last.Min, last.Max = m.bounds(d)
	m.clamp(last.Out[0], d)
	if m.r.IntN(3) == 0 {
		m.clamp(len(g.Values)-1, d)
	}
	return g
}

// clamp adds a clamp of output v, which becomes an intermediate value.
func (m *maker) clamp(v int, d graph.Datatype) {
	g := m.Graph
	y := m.value(d, g.Values[v].Shape.Dims()...)
	x := &g.Values[v]
	if m.r.IntN(2) == 0 {
		g.Values[y].Quant = x.Quant
	}
	g.Values[y].Output, g.Values[y].Arg, g.Args[x.Arg] = true, x.Arg, y
	x.Output, x.Arg = false, graph.None
	lo, hi := m.bounds(d)
	m.node("Clamp", []int{v}, []int{y}, func(n *graph.Node) { n.Min, n.Max = lo, hi })
}

// bounds returns bounds that are random, half open, equal, or outside the range of quantized elements.
func (m *maker) bounds(d graph.Datatype) (lo, hi float32) {
	switch m.r.IntN(6) {
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
	lo = m.number()
	return lo, lo + float32(math.Abs(float64(m.number())))
}

// TestRegroupedRows runs fully connected nodes that regroup the rows of a dynamically quantized input.
func TestRegroupedRows(t *testing.T) {
	runClass(t, 0, 2e-5, func(m *maker) *graph.Graph {
		k, cols := 2+m.r.IntN(5), 1+m.r.IntN(6)
		dims := []int{1 + m.r.IntN(4), 1 + m.r.IntN(4), k}
		if m.r.IntN(2) == 0 {
			dims = []int{1 + m.r.IntN(3), k * (1 + m.r.IntN(8))}
		}
		x := m.input(graph.FP32, dims...)
		types := graph.Weighted{In: graph.FP32, Filter: graph.FP32, Bias: graph.FP32, Out: graph.FP32}
		if m.r.IntN(3) > 0 {
			x, types = m.quantized(x, 1), graph.Weighted{In: graph.QDInt8, Filter: graph.QCInt8, Bias: graph.FP32, Out: graph.FP32}
		}
		filter, y := m.constant(types.Filter, 0, cols, k), m.value(graph.FP32, 1, cols)
		m.node("FullyConnected", []int{x, filter, m.constant(graph.FP32, 0, cols)}, []int{y}, func(n *graph.Node) { n.Flags = graph.FlagReshape2D })
		return m.fixed(y)
	})
}

// TestNeedsBeyondTheLimit checks that graphs whose values, indirection buffers or resized images need
// more memory than the limit are rejected.
func TestNeedsBeyondTheLimit(t *testing.T) {
	xnntest.Library(t)
	b := Backend{Engine: EngineNative, Library: xnntest.Path()}
	limits := delegate.Limits{Scratch: 32 << 20, Memory: 64 << 20}
	for name, build := range map[string]func(m *maker, size int) *graph.Graph{
		"value": (*maker).wideValue, "pool": (*maker).wideTable, "resize": (*maker).wideImage,
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range classRounds() {
				m := newMaker(uint64(seed))
				size := 1500 + m.r.IntN(1501)
				_, err := b.Compile(context.Background(), &delegate.Payload{Data: encode(build(m, size)), Limits: limits})
				if !errors.Is(err, delegate.ErrMemory) {
					t.Fatalf("seed %d, size %d: got %v, want %v", seed, size, err, delegate.ErrMemory)
				}
			}
		})
	}
}

// wideValue returns a graph with an intermediate value of size×size×8.
func (m *maker) wideValue(size int) *graph.Graph {
	x, wide, y := m.input(graph.FP32, 1, 1, 1, 8), m.value(graph.FP32, 1), m.value(graph.FP32, 1)
	m.node("StaticConstantPad", []int{x}, []int{wide}, func(n *graph.Node) {
		p := graph.Params[graph.PadParams](n)
		p.Before, p.After = make([]int, 4), []int{0, size, size, 0}
	})
	m.node("StaticSlice", []int{wide}, []int{y}, func(n *graph.Node) {
		*graph.Params[graph.SliceParams](n) = graph.SliceParams{Offsets: make([]int, 4), Sizes: []int{1, 1, 1, 1}}
	})
	return m.fixed(y)
}

// wideTable returns a graph with a 64x64 pool, which needs a pointer per window element.
func (m *maker) wideTable(size int) *graph.Graph {
	x, y := m.input(graph.FP32, 1, size, size/4, 1), m.value(graph.FP32, 1)
	m.node("MaxPooling2d", []int{x}, []int{y}, withWindow(graph.Window{KernelH: 64, KernelW: 64, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1}))
	return m.fixed(y)
}

// wideImage returns a graph that resizes a pixel to size×size.
func (m *maker) wideImage(size int) *graph.Graph {
	x, y := m.input(graph.FP32, 1, 1, 1, 1), m.value(graph.FP32, 1)
	m.node("StaticResizeBilinear2D", []int{x}, []int{y}, func(n *graph.Node) {
		*graph.Params[graph.ResizeParams](n) = graph.ResizeParams{Height: size, Width: size}
	})
	return m.fixed(y)
}

// TestManyLiveValues checks that a graph for which the library would plan memory for minutes runs on
// the Go engine.
func TestManyLiveValues(t *testing.T) {
	for _, live := range []int{100, 2000} {
		m := newMaker(1)
		x := m.input(graph.FP32, 4)
		var values []int
		for range live {
			values = append(values, m.value(graph.FP32, 4))
			m.node("Negate", []int{x}, []int{values[len(values)-1]})
		}
		total := x
		for _, v := range values {
			y := m.value(graph.FP32, 4)
			m.node("Add", []int{total, v}, []int{y})
			total = y
		}
		data := encode(m.done(total))
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
		m := newMaker(1)
		var outs []int
		x := m.input(graph.FP32, 1, 1024, 1024, 1)
		for range pools {
			y := m.value(graph.FP32, 1)
			m.node("MaxPooling2d", []int{x}, []int{y}, withWindow(graph.Window{KernelH: 512, KernelW: 512, StrideH: 32, StrideW: 32, DilationH: 1, DilationW: 1}))
			outs = append(outs, y)
		}
		_, err := compile(t, encode(m.fixed(outs...)), EngineGo)
		if (err == nil) != (pools == 1) || err != nil && !errors.Is(err, delegate.ErrUnsupported) {
			t.Errorf("%d pools: got %v, want success for 1, %v for 100", pools, err, delegate.ErrUnsupported)
		}
	}
}
