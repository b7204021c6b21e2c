package xnnpack

import (
	"context"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/native"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// groupLayer returns a fully connected node with a blockwise quantized filter of 128 KiB and 16 KiB of
// scales.
func groupLayer() *graph.Graph {
	m := graphtest.NewMaker(9)
	x := m.Input(graph.FP32, 3, 64)
	y := m.Value(graph.FP32, 3, 4096)
	m.Node("FullyConnected", []int{m.Quantized(x, 1), m.Constant(graph.QBInt4, 0, 4096, 64), graph.None}, []int{y})
	return m.Done(y)
}

// TestRelease overwrites released constants and checks that nothing reads them again, including units
// created later, with threads or with profiling.
func TestRelease(t *testing.T) {
	xnntest.Library(t)
	shared, plain, rows := graphtest.TwoLayers(true), graphtest.TwoLayers(false), graphtest.TwoLayers(false)
	rows.Nodes[0].Flags = graph.FlagReshape2D
	for _, c := range []struct {
		name    string
		graph   *graph.Graph
		backend Backend
		dynamic bool
		want    int // released bytes
	}{
		{"two filters", plain, Backend{Engine: EngineNative}, false, 32<<10 + 64<<10},
		{"weights cache", plain, Backend{Engine: EngineNative, WeightsCache: t.TempDir()}, false, 32<<10 + 64<<10},
		{"two readers of a filter", shared, Backend{Engine: EngineNative}, false, 32 << 10},
		{"dynamic sizes", plain, Backend{Engine: EngineNative}, true, 32<<10 + 64<<10},
		{"group scales", groupLayer(), Backend{Engine: EngineNative}, false, 128<<10 + 16<<10},
		{"group scales, dynamic sizes", groupLayer(), Backend{Engine: EngineNative}, true, 128<<10 + 16<<10},
		{"group scales, weights cache", groupLayer(), Backend{Engine: EngineNative, WeightsCache: t.TempDir()}, false, 128<<10 + 16<<10},
		{"dynamic sizes that may not run in the library", rows, Backend{Engine: EngineNative}, true, 0},
		{"Go engine", plain, Backend{Engine: EngineGo}, false, 32<<10 + 64<<10},
		{"Go engine, weights cache", plain, Backend{Engine: EngineGo, WeightsCache: t.TempDir()}, false, 32<<10 + 64<<10},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 2 { // the second time, the weights are in the cache
				c.backend.Library = xnntest.Path()
				testRelease(t, c.backend, c.graph, c.dynamic, c.want)
			}
		})
	}
}

func testRelease(t *testing.T, b Backend, g *graph.Graph, dynamic bool, want int) {
	args := graphtest.NewMaker(7).Arguments(g)
	reference, _ := mustUnit(t, g, EngineNative, delegate.Instance{})
	mustExecute(t, reference, args)
	var outputs [][]float64
	for _, a := range args[g.Inputs:] {
		outputs = append(outputs, graphtest.NumbersOf(a.Tensor))
	}
	got := 0
	img, err := b.Compile(context.Background(), &delegate.Payload{Data: graphtest.Encode(g), Args: graphtest.ArgSpecs(g, dynamic), Release: func(data []byte) bool {
		got += len(data)
		for i := range data {
			data[i] = 0x7f
		}
		return true
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	if got != want {
		t.Errorf("got %d released bytes, want %d", got, want)
	}
	pool := cpu.NewPool(2)
	defer pool.Close()
	for i, in := range []delegate.Instance{{}, {}, {Pool: pool}} {
		u, err := img.Unit(in)
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		for _, timed := range []bool{false, true} {
			if err := u.(delegate.Profiler).SetProfiling(timed); err != nil {
				t.Fatal(err)
			}
			args := graphtest.NewMaker(7).Arguments(g)
			mustExecute(t, u, args)
			for k, a := range args[g.Inputs:] {
				if n := graphtest.NumbersOf(a.Tensor); !slices.Equal(n, outputs[k]) && b.Engine != EngineGo {
					t.Errorf("unit %d, profiling %v, output %d: got %v, want %v", i, timed, k, n[:4], outputs[k][:4])
				}
			}
		}
		sameAtTwoRows(t, u, reference, args)
	}
}

// sameAtTwoRows compares the outputs of two units at sizes other than the declared ones.
func sameAtTwoRows(t *testing.T, u, reference delegate.Unit, args []*tensor.Value) {
	t.Helper()
	if _, native := u.(*native.Unit); !native {
		return
	}
	var outputs [2][]float64
	for i, u := range []delegate.Unit{u, reference} {
		x := tensor.TensorValue(tensor.New(tensor.Float32, 2, 64))
		for k := range tensor.Data[float32](x.Tensor) {
			tensor.Data[float32](x.Tensor)[k] = float32(k%5) - 2
		}
		call := []*tensor.Value{&x}
		for _, a := range args[1:] {
			y := tensor.Make(tensor.Float32, a.Tensor.Sizes, nil, tensor.DynamicBound)
			y.Bind(tensor.AlignedBytes(y.NBytes()))
			v := tensor.TensorValue(y)
			call = append(call, &v)
		}
		mustExecute(t, u, call)
		outputs[i] = graphtest.NumbersOf(call[1].Tensor)
	}
	if !slices.Equal(outputs[0], outputs[1]) {
		t.Errorf("two rows: got %v, want %v", outputs[0], outputs[1])
	}
}

// TestNames checks the keys of the named constants of a payload.
func TestNames(t *testing.T) {
	named := make(map[string][]byte)
	keys, err := Backend{}.Names(encodeNamed(graphtest.TwoLayers(false), named))
	if err != nil || len(keys) != len(named) || len(keys) == 0 {
		t.Fatalf("got %q, %v, want the keys of %d constants", keys, err, len(named))
	}
	for _, k := range keys {
		if named[k] == nil {
			t.Errorf("got key %q, which is not a constant's", k)
		}
	}
	if keys, err := (Backend{}).Names(graphtest.Encode(graphtest.TwoLayers(false))); len(keys) != 0 || err != nil {
		t.Errorf("constants in the payload: got %q, %v, want no keys", keys, err)
	}
	if _, err := (Backend{}).Names([]byte{1}); err == nil {
		t.Error("no error for a payload of one byte")
	}
}
