package xnn_test

import (
	"runtime"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
)

// graph builds a subgraph. A failed call ends the test.
type graph struct {
	t   testing.TB
	lib *xnn.Library
	s   xnn.Subgraph
	pin runtime.Pinner
}

func newGraph(t testing.TB, lib *xnn.Library, externals uint32) *graph {
	g := &graph{t: t, lib: lib}
	g.must("xnn_create_subgraph", lib.CreateSubgraph(externals, 0, &g.s))
	t.Cleanup(func() {
		lib.DeleteSubgraph(g.s)
		g.pin.Unpin()
	})
	return g
}

func (g *graph) must(call string, status xnn.Status) {
	g.t.Helper()
	if err := status.Error(call); err != nil {
		g.t.Fatal(err)
	}
}

// value defines a float32 value: a constant, or an external value with the given flags.
func (g *graph) value(data []float32, external, flags uint32, dims ...uint) uint32 {
	g.t.Helper()
	if data != nil {
		g.pin.Pin(&data[0])
	}
	var id uint32
	g.must("xnn_define_tensor_value", g.lib.DefineTensorValue(g.s, g.lib.Soname.Datatypes[xnn.FP32], uint(len(dims)), &dims[0],
		xnn.AddressOf(data), external, flags, &id))
	return id
}

func (g *graph) runtime(cache xnn.WeightsCache, flags uint32) xnn.Runtime {
	g.t.Helper()
	var w xnn.Workspace
	var r xnn.Runtime
	g.must("xnn_create_workspace", g.lib.CreateWorkspace(&w))
	g.must("xnn_create_runtime_v4", g.lib.CreateRuntime(g.s, cache, w, 0, flags, &r))
	g.lib.ReleaseWorkspace(w)
	g.t.Cleanup(func() { g.lib.DeleteRuntime(r) })
	return r
}

// setup binds external values 0, 1, … to the slices.
func (g *graph) setup(r xnn.Runtime, values ...[]float32) {
	g.t.Helper()
	external := make([]xnn.ExternalValue, len(values))
	for i, v := range values {
		g.pin.Pin(&v[0])
		external[i] = xnn.ExternalValue{ID: uint32(i), Data: xnn.AddressOf(v)}
	}
	g.must("xnn_reshape_runtime", g.lib.ReshapeRuntime(r))
	g.must("xnn_setup_runtime_v2", g.lib.SetupRuntime(r, uint(len(external)), &external[0]))
}

// padded returns a copy of values with extra bytes after it that XNNPACK may read.
func padded(values ...float32) []float32 {
	return append(slices.Clone(values), make([]float32, xnn.ExtraBytes/4)...)[:len(values)]
}

func wantFloats(t *testing.T, got, want []float32) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("index %d: got %v, want %v (all: %v)", i, got[i], want[i], got)
		}
	}
}

// TestBinary multiplies with broadcasting and an output range, and checks that an invoke does not
// allocate.
func TestBinary(t *testing.T) {
	lib := xnntest.Library(t)
	g := newGraph(t, lib, 3)
	a := g.value(nil, 0, xnn.ValueExternalInput, 2, 2)
	b := g.value(nil, 1, xnn.ValueExternalInput, 2)
	out := g.value(nil, 2, xnn.ValueExternalOutput, 2, 2)
	params := xnn.BinaryParams{OutputMin: -1000, OutputMax: 40}
	g.must("xnn_define_binary", lib.DefineBinary(g.s, lib.Soname.Binary[xnn.Multiply], &params, a, b, out, 0))
	r := g.runtime(0, 0)
	y := padded(0, 0, 0, 0)
	g.setup(r, padded(1, 2, 3, 4), padded(10, 20), y)
	g.must("xnn_invoke_runtime", lib.InvokeRuntime(r))
	wantFloats(t, y, []float32{10, 40, 30, 40})

	var rank uint
	var dims [xnn.MaxDims]uint
	g.must("xnn_get_external_value_shape", lib.GetExternalValueShape(r, 2, &rank, &dims[0]))
	if rank != 2 || dims[0] != 2 || dims[1] != 2 {
		t.Errorf("output: got shape %v, rank %d, want [2 2], rank 2", dims, rank)
	}
	if n := testing.AllocsPerRun(100, func() { lib.InvokeRuntime(r) }); n != 0 {
		t.Errorf("got %v allocations per invoke, want 0", n)
	}
}

// convolution builds y = conv(x, w) + b with a 3x3 input of one channel, a 2x2 kernel and two output
// channels.
func convolution(t testing.TB, lib *xnn.Library, w, b []float32) *graph {
	g := newGraph(t, lib, 2)
	x := g.value(nil, 0, xnn.ValueExternalInput, 1, 3, 3, 1)
	filter := g.value(w, xnn.NoValue, 0, 2, 2, 2, 1)
	bias := g.value(b, xnn.NoValue, 0, 2)
	y := g.value(nil, 1, xnn.ValueExternalOutput, 1, 2, 2, 2)
	g.must("xnn_define_convolution_2d", lib.DefineConvolution2D(g.s, 0, 0, 0, 0, 2, 2, 1, 1, 1, 1, 1, 1, 2,
		-1000, 1000, x, filter, bias, y, 0))
	return g
}

// TestConvolution calls a function with 21 arguments, more than fit in registers.
func TestConvolution(t *testing.T) {
	lib := xnntest.Library(t)
	g := convolution(t, lib, padded(1, 0, 0, 1, 1, 1, 1, 1), padded(0, 100))
	r := g.runtime(0, 0)
	y := padded(make([]float32, 8)...)
	g.setup(r, padded(1, 2, 3, 4, 5, 6, 7, 8, 9), y)
	g.must("xnn_invoke_runtime", lib.InvokeRuntime(r))
	wantFloats(t, y, []float32{6, 112, 8, 116, 12, 124, 14, 128})
}

// TestInvalidNode checks the status of a node with undefined values.
func TestInvalidNode(t *testing.T) {
	lib := xnntest.Library(t)
	g := newGraph(t, lib, 1)
	if got := lib.DefineSoftmax(g.s, 7, 8, 0); got != xnn.InvalidParameter {
		t.Errorf("softmax of unknown values: got %v, want %v", got, xnn.InvalidParameter)
	}
}

// TestProfile checks the operator name in a runtime's profile.
func TestProfile(t *testing.T) {
	lib := xnntest.Library(t)
	g := convolution(t, lib, padded(1, 0, 0, 1, 1, 1, 1, 1), padded(0, 100))
	r := g.runtime(0, xnn.FlagBasicProfiling)
	g.setup(r, padded(1, 2, 3, 4, 5, 6, 7, 8, 9), padded(make([]float32, 8)...))
	g.must("xnn_invoke_runtime", lib.InvokeRuntime(r))
	names := make([]byte, 256)
	var need uint
	g.must("xnn_get_runtime_profiling_info", lib.GetRuntimeProfilingInfo(r, xnn.ProfileOperatorName, uint(len(names)), &names[0], &need))
	if want := "Convolution (NHWC, F32)"; string(names[:len(want)]) != want {
		t.Errorf("operator name: got %q, want %q", names, want)
	}
}

// record is a weights store that keeps all blocks and counts calls.
type record struct {
	pin                        runtime.Pinner
	kept                       map[xnn.WeightsKey]xnn.Address
	lookUps, inserts, reserves int
}

func (s *record) LookUp(k xnn.WeightsKey) xnn.Address {
	s.lookUps++
	return s.kept[k]
}

func (s *record) Reserve(size uint) xnn.Address {
	s.reserves++
	space := make([]byte, size+128)
	s.pin.Pin(&space[0])
	return (xnn.AddressOf(space) + 63) &^ 63
}

func (s *record) Insert(k xnn.WeightsKey, at xnn.Address, size uint) xnn.Address {
	s.inserts++
	if old := s.kept[k]; old != 0 {
		return old
	}
	s.kept[k] = at
	return at
}

// TestWeightsCache creates two runtimes with the same constants: the second one packs nothing.
func TestWeightsCache(t *testing.T) {
	lib := xnntest.Library(t)
	store := &record{kept: make(map[xnn.WeightsKey]xnn.Address)}
	cache := xnn.NewWeightsCache(store)
	t.Cleanup(func() {
		cache.Delete()
		cache.Delete() // a second call has no effect
		store.pin.Unpin()
	})
	w, b := padded(1, 0, 0, 1, 1, 1, 1, 1), padded(0, 100)
	for range 2 {
		g := convolution(t, lib, w, b)
		r := g.runtime(cache.WeightsCache, 0)
		y := padded(make([]float32, 8)...)
		g.setup(r, padded(1, 2, 3, 4, 5, 6, 7, 8, 9), y)
		g.must("xnn_invoke_runtime", lib.InvokeRuntime(r))
		wantFloats(t, y, []float32{6, 112, 8, 116, 12, 124, 14, 128})
	}
	// the older version also inserts blocks that it found
	if store.lookUps != 2 || store.reserves != 1 || store.inserts < 1 || store.inserts > 2 {
		t.Errorf("got %d look-ups, %d reserves, %d inserts, want 2, 1, 1 or 2", store.lookUps, store.reserves, store.inserts)
	}
}

// BenchmarkInvoke measures the overhead of a call of the library.
func BenchmarkInvoke(b *testing.B) {
	lib := xnntest.Library(b)
	g := newGraph(b, lib, 2)
	in := g.value(nil, 0, xnn.ValueExternalInput, 4)
	out := g.value(nil, 1, xnn.ValueExternalOutput, 4)
	g.must("xnn_define_unary", lib.DefineUnary(g.s, lib.Soname.Unary[xnn.Abs], nil, in, out, 0))
	r := g.runtime(0, 0)
	g.setup(r, padded(-1, 2, -3, 4), padded(0, 0, 0, 0))
	for b.Loop() {
		lib.InvokeRuntime(r)
	}
}
