package xnnpack

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var engines = []Engine{EngineGo, EngineNative}

// forEngines runs a test on each engine.
func forEngines(t *testing.T, f func(t *testing.T, engine Engine)) {
	for _, engine := range engines {
		t.Run(string(engine), func(t *testing.T) {
			if engine == EngineNative {
				xnntest.Library(t)
			}
			f(t, engine)
		})
	}
}

// mustUnit compiles a graph and creates a unit, which is closed at the end of the test.
func mustUnit(t testing.TB, g *graph.Graph, engine Engine, in delegate.Instance) (delegate.Unit, *graph.Graph) {
	t.Helper()
	img, err := compile(t, graphtest.Encode(g), engine)
	SkipFault(t, err)
	if err != nil {
		t.Fatal(err)
	}
	u, err := img.Unit(in)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		u.Close()
		img.Close()
	})
	return u, img.(*image).Graph
}

func mustExecute(t testing.TB, u delegate.Unit, args []*tensor.Value) {
	t.Helper()
	if err := u.Execute(context.Background(), args); err != nil {
		t.Fatal(err)
	}
}

// linearGraph returns one fully connected node: input [2,64], filter [8,64].
func linearGraph() *graph.Graph {
	types := graph.Weighted{In: graph.FP32, Filter: graph.FP32, Bias: graph.FP32, Out: graph.FP32}
	return graphtest.NewMaker(4).ProductSample(types, 2, 64, 8)
}

// TestNoAllocation checks that repeated runs of every sample do not allocate.
func TestNoAllocation(t *testing.T) {
	pool := cpu.NewPool(2)
	defer pool.Close()
	forEngines(t, func(t *testing.T, engine Engine) {
		for _, s := range graphtest.Samples(1) {
			img, err := compile(t, graphtest.Encode(s.Graph), engine)
			if err != nil {
				continue
			}
			img.Close()
			u, g := mustUnit(t, s.Graph, engine, delegate.Instance{Pool: pool})
			args := graphtest.NewMaker(1).Arguments(g)
			mustExecute(t, u, args)
			if n := testing.AllocsPerRun(10, func() { u.Execute(context.Background(), args) }); n != 0 {
				t.Errorf("%s: got %v allocations per run, want 0", s.Name, n)
			}
		}
	})
}

// TestOtherMemory runs a unit with arguments at different addresses: the output depends on the input only.
func TestOtherMemory(t *testing.T) {
	forEngines(t, func(t *testing.T, engine Engine) {
		u, g := mustUnit(t, linearGraph(), engine, delegate.Instance{})
		var first []float64
		for round := range 4 {
			args := graphtest.NewMaker(1).Arguments(g)
			if round%2 == 1 {
				args[0].Tensor.Data[3] ^= 0x10 // a different input
			}
			mustExecute(t, u, args)
			got := graphtest.NumbersOf(args[1].Tensor)
			if round == 0 {
				first = got
			}
			if same := got[0] == first[0]; same != (round%2 == 0) {
				t.Errorf("round %d: got output %v, round 0 returned %v", round, got[0], first[0])
			}
		}
	})
}

// TestOverlap runs a convolution whose output shares the input's memory: the result is the same as
// with separate memory.
func TestOverlap(t *testing.T) {
	m := graphtest.NewMaker(3)
	x, f := m.Input(graph.FP32, 1, 6, 6, 2), m.Constant(graph.FP32, 0, 2, 3, 3, 2)
	y := m.Value(graph.FP32, 1, 6, 6, 2)
	m.Node("Conv2d", []int{x, f, graph.None}, []int{y}, graphtest.WithWindow(graph.Window{Top: 1, Left: 1, Bottom: 1, Right: 1, KernelH: 3, KernelW: 3,
		StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1, Groups: 1, GroupIn: 2, GroupOut: 2}))
	graph := m.Done(y)
	forEngines(t, func(t *testing.T, engine Engine) {
		u, g := mustUnit(t, graph, engine, delegate.Instance{})
		apart := graphtest.NewMaker(1).Arguments(g)
		mustExecute(t, u, apart)
		shared := graphtest.NewMaker(1).Arguments(g)
		shared[1].Tensor.Bind(shared[0].Tensor.Data)
		mustExecute(t, u, shared)
		want, got := graphtest.NumbersOf(apart[1].Tensor), graphtest.NumbersOf(shared[1].Tensor)
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("element %d: got %v, want %v", i, got[i], want[i])
			}
		}
	})
}

// TestDynamicShapes changes the sizes between calls, also to more but smaller images in a dynamically
// quantized graph: the library does not allocate space for their scales.
func TestDynamicShapes(t *testing.T) {
	m := graphtest.NewMaker(8)
	x := m.Quantized(m.Input(graph.FP32, 1, 20, 20, 3), 3)
	f, b, y := m.Constant(graph.QCInt8, 0, 4, 3, 3, 3), m.Constant(graph.FP32, 0, 4), m.Value(graph.FP32, 1, 18, 18, 4)
	m.Node("Conv2d", []int{x, f, b}, []int{y}, graphtest.WithWindow(graph.Window{KernelH: 3, KernelW: 3, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1,
		Groups: 1, GroupIn: 3, GroupOut: 4}))
	graph := m.Done(y)
	xnntest.Library(t)
	native, g := mustUnit(t, graph, EngineNative, delegate.Instance{})
	reference, _ := mustUnit(t, graph, EngineGo, delegate.Instance{})
	s := graphtest.Sample{Loose: 1e-5}
	for _, sizes := range [][]int{{1, 20, 20, 3}, {1, 5, 7, 3}, {25, 4, 4, 3}, {2, 3, 3, 3}, {1, 20, 20, 3}} {
		got, want := graphtest.DynamicArguments(g, []int{1, 40, 40, 4}, sizes...), graphtest.DynamicArguments(g, []int{1, 40, 40, 4}, sizes...)
		mustExecute(t, native, got)
		mustExecute(t, reference, want)
		if n := sizes[0]; got[1].Tensor.Sizes[0] != n {
			t.Errorf("sizes %v: got output sizes %v, want %d images", sizes, got[1].Tensor.Sizes, n)
		}
		if err := s.Differ(got, want, g); err != nil {
			t.Errorf("sizes %v: %v", sizes, err)
		}
	}
}

// TestBadArguments checks the errors of mismatched arguments, and that the unit still runs afterwards.
func TestBadArguments(t *testing.T) {
	forEngines(t, func(t *testing.T, engine Engine) {
		u, g := mustUnit(t, linearGraph(), engine, delegate.Instance{})
		good := graphtest.NewMaker(1).Arguments(g)
		none := tensor.Value{}
		swap := func(i int, v *tensor.Value) []*tensor.Value {
			args := append([]*tensor.Value{}, good...)
			args[i] = v
			return args
		}
		value := func(x *tensor.Tensor) *tensor.Value { v := tensor.TensorValue(x); return &v }
		short := tensor.Make(tensor.Float32, []int{2, 64}, nil, tensor.Static)
		short.Bind(make([]byte, 100))
		tests := []struct {
			name, text string
			args       []*tensor.Value
		}{
			{"too few", "1 arguments, want 2", good[:1]},
			{"no tensor", "input 0: got none", swap(0, &none)},
			{"another type", "input 0: got int32, want float32", swap(0, value(tensor.New(tensor.Int32, 2, 64)))},
			{"other channels", "want 64 channels", swap(0, value(tensor.New(tensor.Float32, 2, 32)))},
			{"too many dimensions", "7 dimensions", swap(0, value(tensor.New(tensor.Float32, 1, 1, 1, 1, 1, 2, 64)))},
			{"empty", "want at least 1 each", swap(0, value(tensor.New(tensor.Float32, 0, 64)))},
			{"too little memory", "0 bytes, want 512", swap(0, value(short))},
			{"output that cannot grow", "output 0", swap(1, value(tensor.New(tensor.Float32, 1, 8)))},
			{"output of another type", "output 0: got int8", swap(1, value(tensor.New(tensor.Int8, 2, 8)))},
		}
		for _, test := range tests {
			err := u.Execute(context.Background(), test.args)
			if !errors.Is(err, delegate.ErrArgument) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%s: got %v, want %v with %q", test.name, err, delegate.ErrArgument, test.text)
			}
			mustExecute(t, u, good)
		}
	})
}

// TestWideIndices checks that argmax pooling writes the same indices as int32 and as int64, which
// exporters declare.
func TestWideIndices(t *testing.T) {
	var graph *graph.Graph
	for _, s := range graphtest.Samples(1) {
		if s.Name == "ArgMaxPooling2d" {
			graph = s.Graph
		}
	}
	u, g := mustUnit(t, graph, EngineAuto, delegate.Instance{})
	args := graphtest.NewMaker(1).Arguments(g)
	mustExecute(t, u, args)
	narrow := graphtest.NumbersOf(args[2].Tensor)
	wide := tensor.TensorValue(tensor.New(tensor.Int64, args[2].Tensor.Sizes...))
	args[2] = &wide
	mustExecute(t, u, args)
	for i, x := range graphtest.NumbersOf(wide.Tensor) {
		if x != narrow[i] {
			t.Fatalf("element %d: got %v as int64, want %v as for int32", i, x, narrow[i])
		}
	}
}

// TestGrowBack changes the sizes of two inputs independently, above and below the declared ones:
// each intermediate value has enough memory in every call.
func TestGrowBack(t *testing.T) {
	m := graphtest.NewMaker(1)
	a, b := m.Input(graph.FP32, 2, 8), m.Input(graph.FP32, 6, 64)
	outs := []int{m.Value(graph.FP32, 2, 8), m.Value(graph.FP32, 6, 64)}
	for i, in := range []int{a, b} {
		middle := m.Value(graph.FP32, m.Graph.Values[in].Shape.Dims()...)
		m.Node("Square", []int{in}, []int{middle})
		m.Node("Sigmoid", []int{middle}, []int{outs[i]})
	}
	graph := m.Done(outs...)
	forEngines(t, func(t *testing.T, engine Engine) {
		u, g := mustUnit(t, graph, engine, delegate.Instance{})
		steps := [][2]int{{2, 6}, {40, 1}, {2, 6}, {1, 3}, {40, 6}}
		r := rand.New(rand.NewPCG(1, 1))
		for range classRounds() {
			steps = append(steps, [2]int{1 + r.IntN(40), 1 + r.IntN(40)})
		}
		for _, sizes := range steps {
			var args []*tensor.Value
			for i := range g.Args {
				x := tensor.New(tensor.Float32, sizes[i%2], g.Values[g.Args[i]].Shape.Last())
				for k := range tensor.Data[float32](x) {
					tensor.Data[float32](x)[k] = float32(k%7) - 3
				}
				v := tensor.TensorValue(x)
				args = append(args, &v)
			}
			mustExecute(t, u, args)
			for i := range 2 {
				for k, got := range tensor.Data[float32](args[2+i].Tensor) {
					x := float64(k%7) - 3
					if want := 1 / (1 + math.Exp(-x*x)); math.Abs(float64(got)-want) > 1e-6 {
						t.Fatalf("sizes %v, output %d, element %d: got %v, want %v", sizes, i, k, got, want)
					}
				}
			}
		}
	})
}

// TestConcurrent runs units of one image concurrently, with and without a thread pool.
func TestConcurrent(t *testing.T) {
	pool := cpu.NewPool(2)
	defer pool.Close()
	forEngines(t, func(t *testing.T, engine Engine) {
		img, err := compile(t, graphtest.Encode(graphtest.RandomGraph(12, 1)), engine)
		if err != nil {
			t.Fatal(err)
		}
		defer img.Close()
		img.(*image).cost = 1e9 // large enough for threads
		g := img.(*image).Graph
		var wait sync.WaitGroup
		results := make([][]float64, 6)
		for i := range results {
			wait.Add(1)
			go func() {
				defer wait.Done()
				in := delegate.Instance{}
				if i%2 == 0 {
					in.Pool = pool
				}
				u, err := img.Unit(in)
				if err != nil {
					t.Error(err)
					return
				}
				defer u.Close()
				args := graphtest.NewMaker(1).Arguments(g)
				for range 20 {
					if err := u.Execute(context.Background(), args); err != nil {
						t.Error(err)
					}
				}
				results[i] = graphtest.NumbersOf(args[g.Inputs].Tensor)
			}()
		}
		wait.Wait()
		for i := range results {
			for j := range results[i] {
				if results[i][j] != results[0][j] {
					t.Fatalf("unit %d, element %d: got %v, want %v as in unit 0", i, j, results[i][j], results[0][j])
				}
			}
		}
	})
}

// TestProfile checks that a profile has one entry per node while profiling is on, and none otherwise.
func TestProfile(t *testing.T) {
	forEngines(t, func(t *testing.T, engine Engine) {
		u, g := mustUnit(t, graphtest.ConvolutionGraph(), engine, delegate.Instance{})
		p := u.(delegate.Profiler)
		args := graphtest.NewMaker(1).Arguments(g)
		for _, on := range []bool{false, true, false} {
			if err := p.SetProfiling(on); err != nil {
				t.Fatal(err)
			}
			mustExecute(t, u, args)
			times := p.Profile(nil)
			if on && (len(times) != 1 || !strings.Contains(times[0].Name, "Conv")) || !on && len(times) != 0 {
				t.Errorf("profiling %v: got %v", on, times)
			}
		}
	})
}

// TestProfilingAllocatesNothing switches profiling on and off between runs: nothing is allocated.
func TestProfilingAllocatesNothing(t *testing.T) {
	forEngines(t, func(t *testing.T, engine Engine) {
		u, g := mustUnit(t, graphtest.ConvolutionGraph(), engine, delegate.Instance{})
		args := graphtest.NewMaker(1).Arguments(g)
		p := u.(delegate.Profiler)
		var times []delegate.NodeTime
		cycle := func() {
			p.SetProfiling(true)
			mustExecute(t, u, args)
			times = p.Profile(times[:0])
			p.SetProfiling(false)
			mustExecute(t, u, args)
		}
		cycle()
		if n := testing.AllocsPerRun(20, cycle); n != 0 || len(times) != 1 {
			t.Errorf("got %v allocations and %d times, want 0 and 1", n, len(times))
		}
	})
}

// TestEngines checks the engine for each option, with and without a library that supports the graph.
func TestEngines(t *testing.T) {
	half := graphtest.NewMaker(1)
	x, y := half.Input(graph.BF16, 4), half.Value(graph.BF16, 4)
	half.Node("Abs", []int{x}, []int{y})
	brain := graphtest.Encode(half.Done(y))
	t.Run("no library at the given path", func(t *testing.T) {
		p := &delegate.Payload{Data: graphtest.Encode(graphtest.ConvolutionGraph())}
		for _, engine := range []Engine{EngineAuto, EngineNative} {
			b := Backend{Library: t.TempDir(), Engine: engine}
			if _, err := b.Compile(context.Background(), p); !errors.Is(err, delegate.ErrMissing) {
				t.Errorf("%s: got %v, want %v", engine, err, delegate.ErrMissing)
			}
		}
		b := Backend{Library: t.TempDir(), Engine: EngineGo}
		if img, err := b.Compile(context.Background(), p); err != nil || img.Info().Engine != string(EngineGo) {
			t.Errorf("reference: got %v, %v", img, err)
		}
	})
	t.Run("unsupported node", func(t *testing.T) {
		xnntest.Library(t)
		img, err := compile(t, brain, EngineAuto)
		if err != nil {
			t.Fatal(err)
		}
		if info := img.Info(); info.Engine != string(EngineGo) {
			t.Errorf("got %+v", info)
		}
		if _, err := compile(t, brain, EngineNative); !errors.Is(err, delegate.ErrUnsupported) || !strings.Contains(err.Error(), "bf16") {
			t.Errorf("native: got %v, want %v with bf16", err, delegate.ErrUnsupported)
		}
	})
	t.Run("unknown engine", func(t *testing.T) {
		if _, err := compile(t, brain, "fast"); err == nil || !strings.Contains(err.Error(), `"fast"`) {
			t.Errorf("got %v", err)
		}
	})
}

// TestInfo checks an image's inputs, nodes and weight bytes.
func TestInfo(t *testing.T) {
	img, err := compile(t, graphtest.Encode(graphtest.ConvolutionGraph()), EngineGo)
	if err != nil {
		t.Fatal(err)
	}
	info := img.Info()
	if info.Inputs != 1 || len(info.Nodes) != 1 || info.WeightBytes != 4*(4*27+4) {
		t.Errorf("got %+v", info)
	}
	if want := "fp32 1x5x5x3, fp32 4x3x3x3, fp32 4 → fp32 1x3x3x4"; info.Nodes[0].Detail != want {
		t.Errorf("got node %q, want %q", info.Nodes[0].Detail, want)
	}
}
