package xnnpack

import (
	"context"
	"errors"
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
				return m.Fixed(y)
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
				runClass(t, 2, 1e-5, func(m *graphtest.Maker) *graph.Graph { return m.ClampBehind(kind, d) })
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
		return m.Fixed(y)
	})
}

// TestNeedsBeyondTheLimit checks that graphs whose values, indirection buffers or resized images need
// more memory than the limit are rejected.
func TestNeedsBeyondTheLimit(t *testing.T) {
	xnntest.Library(t)
	b := Backend{Engine: EngineNative, Library: xnntest.Path()}
	limits := delegate.Limits{Scratch: 32 << 20, Memory: 64 << 20}
	for name, build := range map[string]func(m *graphtest.Maker, size int) *graph.Graph{
		"value": (*graphtest.Maker).WideValue, "pool": (*graphtest.Maker).WideTable, "resize": (*graphtest.Maker).WideImage,
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
		_, err := compile(t, graphtest.Encode(m.Fixed(outs...)), EngineGo)
		if (err == nil) != (pools == 1) || err != nil && !errors.Is(err, delegate.ErrUnsupported) {
			t.Errorf("%d pools: got %v, want success for 1, %v for 100", pools, err, delegate.ErrUnsupported)
		}
	}
}
