package xnnpack

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
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
func runClass(t *testing.T, steps int, loose float64, build func(m *maker) *graph) {
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
		got := newMaker(7).arguments(img.(*image).graph)
		if err := runOnce(img, got); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		s := sample{steps: steps, loose: loose}
		if err := s.differ(got, want, img.(*image).graph); err != nil {
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
			runClass(t, 0, 1e-5, func(m *maker) *graph {
				n := func(k int) int { return 1 + m.r.IntN(k) }
				w := window{kernelH: n(4), kernelW: n(4), strideH: n(3), strideW: n(3), dilationH: n(4), dilationW: n(4)}
				if name == "AvgPooling2d" || m.r.IntN(3) == 0 {
					w.dilationH, w.dilationW = 1, 1
				}
				same := m.r.IntN(4) == 0
				if h, v := w.dilationH*(w.kernelH-1)+1, w.dilationW*(w.kernelW-1)+1; !same && m.r.IntN(3) > 0 {
					w.top, w.bottom, w.left, w.right = m.r.IntN(h), m.r.IntN(h), m.r.IntN(v), m.r.IntN(v)
				}
				x, y := m.input(fp32, n(2), n(9), n(9), n(20)), m.value(fp32, 1, 1, 1, 1)
				m.node(name, []int{x}, []int{y}, withWindow(w), func(n *node) {
					if same {
						n.Flags = flagSamePadding
					}
				})
				return m.fixed(y)
			})
		})
	}
}

// fixed is fix but returns nil if the shapes are inconsistent.
func (m *maker) fixed(outputs ...int) *graph {
	g := m.done(outputs...)
	s, err := g.declared()
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
		for _, d := range []datatype{fp32, qint8, quint8} {
			t.Run(kind+" "+d.String(), func(t *testing.T) {
				runClass(t, 2, 1e-5, func(m *maker) *graph { return m.clampBehind(kind, d) })
			})
		}
	}
}

func (m *maker) clampBehind(kind string, d datatype) *graph {
	types := map[datatype]weighted{fp32: {fp32, fp32, fp32, fp32}, qint8: {qint8, qcint8, qcint32, qint8}, quint8: {quint8, quint8, qint32, quint8}}[d]
	w := windows[m.r.IntN(3)].w
	var g *graph
	switch kind {
	case "FullyConnected":
		g = m.fullyConnectedSample(types, 0)
	case "MaxPooling2d":
		x, y := m.input(d, 1, 5, 5, 3), m.value(d, 1, 4, 4, 3)
		m.g.Values[y].Quant = m.g.Values[x].Quant
		m.node(kind, []int{x}, []int{y}, withWindow(window{kernelH: 2, kernelW: 2, strideH: 1, strideW: 1, dilationH: 1, dilationW: 1}))
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
func (m *maker) clamp(v int, d datatype) {
	g := m.g
	y := m.value(d, g.Values[v].Shape.dims()...)
	x := &g.Values[v]
	if m.r.IntN(2) == 0 {
		g.Values[y].Quant = x.Quant
	}
	g.Values[y].Output, g.Values[y].Arg, g.Args[x.Arg] = true, x.Arg, y
	x.Output, x.Arg = false, none
	lo, hi := m.bounds(d)
	m.node("Clamp", []int{v}, []int{y}, func(n *node) { n.Min, n.Max = lo, hi })
}

// bounds returns bounds that are random, half open, equal, or outside the range of quantized elements.
func (m *maker) bounds(d datatype) (lo, hi float32) {
	switch m.r.IntN(6) {
	case 0:
		return -inf, inf
	case 1:
		return 0, inf
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
	runClass(t, 0, 2e-5, func(m *maker) *graph {
		k, cols := 2+m.r.IntN(5), 1+m.r.IntN(6)
		dims := []int{1 + m.r.IntN(4), 1 + m.r.IntN(4), k}
		if m.r.IntN(2) == 0 {
			dims = []int{1 + m.r.IntN(3), k * (1 + m.r.IntN(8))}
		}
		x := m.input(fp32, dims...)
		types := weighted{fp32, fp32, fp32, fp32}
		if m.r.IntN(3) > 0 {
			x, types = m.quantized(x, 1), weighted{qdint8, qcint8, fp32, fp32}
		}
		filter, y := m.constant(types.filter, 0, cols, k), m.value(fp32, 1, cols)
		m.node("FullyConnected", []int{x, filter, m.constant(fp32, 0, cols)}, []int{y}, func(n *node) { n.Flags = flagReshape2D })
		return m.fixed(y)
	})
}

// TestNeedsBeyondTheLimit checks that graphs whose values, indirection buffers or resized images need
// more memory than the limit are rejected.
func TestNeedsBeyondTheLimit(t *testing.T) {
	xnntest.Library(t)
	b := Backend{Engine: EngineNative, Library: xnntest.Path()}
	limits := delegate.Limits{Scratch: 32 << 20, Memory: 64 << 20}
	for name, build := range map[string]func(m *maker, size int) *graph{
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
func (m *maker) wideValue(size int) *graph {
	x, wide, y := m.input(fp32, 1, 1, 1, 8), m.value(fp32, 1), m.value(fp32, 1)
	m.node("StaticConstantPad", []int{x}, []int{wide}, func(n *node) { p := params[padParams](n); p.before, p.after = make([]int, 4), []int{0, size, size, 0} })
	m.node("StaticSlice", []int{wide}, []int{y}, func(n *node) { *params[sliceParams](n) = sliceParams{make([]int, 4), []int{1, 1, 1, 1}} })
	return m.fixed(y)
}

// wideTable returns a graph with a 64x64 pool, which needs a pointer per window element.
func (m *maker) wideTable(size int) *graph {
	x, y := m.input(fp32, 1, size, size/4, 1), m.value(fp32, 1)
	m.node("MaxPooling2d", []int{x}, []int{y}, withWindow(window{kernelH: 64, kernelW: 64, strideH: 1, strideW: 1, dilationH: 1, dilationW: 1}))
	return m.fixed(y)
}

// wideImage returns a graph that resizes a pixel to size×size.
func (m *maker) wideImage(size int) *graph {
	x, y := m.input(fp32, 1, 1, 1, 1), m.value(fp32, 1)
	m.node("StaticResizeBilinear2D", []int{x}, []int{y}, func(n *node) { *params[resizeParams](n) = resizeParams{size, size} })
	return m.fixed(y)
}

// TestManyLiveValues checks that a graph for which the library would plan memory for minutes runs on
// the Go engine.
func TestManyLiveValues(t *testing.T) {
	for _, live := range []int{100, 2000} {
		m := newMaker(1)
		x := m.input(fp32, 4)
		var values []int
		for range live {
			values = append(values, m.value(fp32, 4))
			m.node("Negate", []int{x}, []int{values[len(values)-1]})
		}
		total := x
		for _, v := range values {
			y := m.value(fp32, 4)
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
		x := m.input(fp32, 1, 1024, 1024, 1)
		for range pools {
			y := m.value(fp32, 1)
			m.node("MaxPooling2d", []int{x}, []int{y}, withWindow(window{kernelH: 512, kernelW: 512, strideH: 32, strideW: 32, dilationH: 1, dilationW: 1}))
			outs = append(outs, y)
		}
		_, err := compile(t, encode(m.fixed(outs...)), EngineGo)
		if (err == nil) != (pools == 1) || err != nil && !errors.Is(err, delegate.ErrUnsupported) {
			t.Errorf("%d pools: got %v, want success for 1, %v for 100", pools, err, delegate.ErrUnsupported)
		}
	}
}
