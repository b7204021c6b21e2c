package native

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// rowGraphs returns graphs over a variable number of rows with intermediate values of several widths.
// One is dynamically quantized.
func rowGraphs() []*graph.Graph {
	var list []*graph.Graph
	for i, width := range []int{8, 64, 200} {
		m := graphtest.NewMaker(uint64(i))
		x := m.Input(graph.FP32, 4, 16)
		from := x
		if i == 1 {
			from = m.Quantized(x, 1)
		}
		filter := m.Constant(graph.FP32, 0, width, 16)
		if i == 1 {
			filter = m.Constant(graph.QCInt8, 0, width, 16)
		}
		u, v, y := m.Value(graph.FP32, 4, width), m.Value(graph.FP32, 4, width), m.Value(graph.FP32, 4, width)
		m.Node("FullyConnected", []int{from, filter, graph.None}, []int{u})
		m.Node("Sigmoid", []int{u}, []int{v})
		m.Node("Multiply", []int{u, v}, []int{y})
		list = append(list, m.Done(y))
	}
	return list
}

// TestSharedWorkspace runs units that share a workspace in random order, with changing sizes and
// sometimes with profiling. The results equal those of a new unit with its own workspace.
func TestSharedWorkspace(t *testing.T) {
	xnntest.Library(t)
	graphs, scratch := rowGraphs(), new(delegate.Scratch)
	var images []*Image
	var units []delegate.Unit
	for _, g := range graphs {
		img, err := open(&delegate.Payload{Data: graphtest.Encode(g), Scratch: scratch}, graph.WeightsCache{}, func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, img)
	}
	for i, img := range append(images, images...) { // two units per image, the first with the runtime that Compile created
		u, err := img.Unit(delegate.Instance{Scratch: scratch})
		if err != nil {
			t.Fatal(err)
		}
		units = append(units, u)
		if u.(*Unit).Workspace != units[0].(*Unit).Workspace {
			t.Fatalf("unit %d does not share the workspace", i)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for round := range graphtest.Rounds(300) {
		k := r.IntN(len(units))
		rows := 1 + r.IntN(40)
		args := rowArguments(images[k%3].Graph, r, rows)
		if err := units[k].(delegate.Profiler).SetProfiling(r.IntN(8) == 0); err != nil {
			t.Fatal(err)
		}
		run(t, units[k], args)
		got := graphtest.NumbersOf(args[1].Tensor)
		want := alone(t, images[k%3], args)
		if !slices.Equal(got, want) {
			t.Fatalf("round %d, unit %d, %d rows: got %v…, want %v…", round, k, rows, got[:4], want[:4])
		}
	}
	w := units[0].(*Unit).Workspace
	for i := range units {
		units[i].Close()
	}
	for _, img := range images {
		img.Close()
	}
	if w.Uses != 1 {
		t.Errorf("units closed: got %d uses of the workspace, want 1, the scratch's", w.Uses)
	}
	scratch.Close()
	scratch.Close()
	if w.Uses != 0 {
		t.Errorf("scratch closed: got %d uses of the workspace, want 0", w.Uses)
	}
}

func rowArguments(g *graph.Graph, r *rand.Rand, rows int) []*tensor.Value {
	x := tensor.New(tensor.Float32, rows, 16)
	for i := range tensor.Data[float32](x) {
		tensor.Data[float32](x)[i] = r.Float32()*4 - 2
	}
	y := tensor.Make(tensor.Float32, []int{40, g.Values[g.Args[1]].Shape.Last()}, nil, tensor.DynamicBound)
	y.Bind(tensor.AlignedBytes(y.NBytes()))
	a, b := tensor.TensorValue(x), tensor.TensorValue(y)
	return []*tensor.Value{&a, &b}
}

// alone runs a new unit and returns its output.
func alone(t *testing.T, img *Image, args []*tensor.Value) []float64 {
	u, err := img.Unit(delegate.Instance{})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	run(t, u, args)
	return graphtest.NumbersOf(args[1].Tensor)
}

// TestBrokenWorkspace marks a shared workspace as broken: its units and new ones use another.
func TestBrokenWorkspace(t *testing.T) {
	xnntest.Library(t)
	g, scratch := rowGraphs()[0], new(delegate.Scratch)
	img, err := compile(graphtest.Encode(g))
	if err != nil {
		t.Fatal(err)
	}
	var units []*Unit
	for range 2 {
		u, err := img.Unit(delegate.Instance{Scratch: scratch})
		if err != nil {
			t.Fatal(err)
		}
		units = append(units, u.(*Unit))
	}
	r := rand.New(rand.NewPCG(3, 4))
	args := rowArguments(img.Graph, r, 5)
	run(t, units[0], args)
	want := fmt.Sprint(graphtest.NumbersOf(args[1].Tensor))
	shared := units[0].Workspace
	shared.Broken = true
	for i, u := range units {
		run(t, u, args)
		if got := fmt.Sprint(graphtest.NumbersOf(args[1].Tensor)); got != want {
			t.Errorf("unit %d: got %.60s, want %.60s", i, got, want)
		}
		if u.Workspace == shared {
			t.Errorf("unit %d runs in the broken workspace", i)
		}
	}
	late, err := img.Unit(delegate.Instance{Scratch: scratch})
	if err != nil || late.(*Unit).Workspace == shared {
		t.Errorf("new unit: got error %v, in the broken workspace: %v", err, err == nil)
	}
	late.Close()
	for _, u := range units {
		u.Close()
	}
	img.Close()
	scratch.Close()
	if shared.Uses != 0 {
		t.Errorf("got %d uses of the broken workspace, want 0", shared.Uses)
	}
}

// TestPlansForCalls declares sizes whose intermediate values need 128 MB. Calls of a few rows do not
// allocate that much. A call of all rows does, and later calls still have the right results.
func TestPlansForCalls(t *testing.T) {
	xnntest.Library(t)
	const rows, width = 1 << 16, 256
	m := graphtest.NewMaker(10)
	x := m.Input(graph.FP32, rows, 16)
	u, v, y := m.Value(graph.FP32, rows, width), m.Value(graph.FP32, rows, width), m.Value(graph.FP32, rows, 1)
	m.Node("FullyConnected", []int{x, m.Constant(graph.FP32, 0, width, 16), graph.None}, []int{u})
	m.Node("Sigmoid", []int{u}, []int{v})
	m.Node("FullyConnected", []int{v, m.Constant(graph.FP32, 0, 1, width), graph.None}, []int{y})
	g := m.Done(y)
	img, err := open(&delegate.Payload{Data: graphtest.Encode(g), Args: graphtest.ArgSpecs(g, true)}, graph.WeightsCache{}, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	unit, err := img.Unit(delegate.Instance{})
	if err != nil {
		t.Fatal(err)
	}
	defer unit.Close()
	before := resident(t)
	want := make(map[int][]float64)
	for _, n := range []int{3, 40, rows, 3, 40} {
		args := rowsOf(n, rows)
		run(t, unit, args)
		got := graphtest.NumbersOf(args[1].Tensor)
		if want[n] == nil {
			want[n] = alone(t, img, args)
		}
		if !slices.Equal(got, want[n]) {
			t.Errorf("%d rows: got %v…, want %v…", n, got[:3], want[n][:3])
		}
		if grown := resident(t) - before; n < rows && len(want) < 3 && grown > 32<<20 {
			t.Errorf("%d rows: memory grew by %d MB, want at most 32", n, grown>>20)
		}
	}
}

// rowsOf returns arguments with n rows and an output of up to most rows.
func rowsOf(n, most int) []*tensor.Value {
	x := tensor.New(tensor.Float32, n, 16)
	for i := range tensor.Data[float32](x) {
		tensor.Data[float32](x)[i] = float32(i%13) - 6
	}
	y := tensor.Make(tensor.Float32, []int{most, 1}, nil, tensor.DynamicBound)
	y.Bind(tensor.AlignedBytes(y.NBytes()))
	a, b := tensor.TensorValue(x), tensor.TensorValue(y)
	return []*tensor.Value{&a, &b}
}

// resident returns the process's resident memory in bytes.
func resident(t *testing.T) (bytes int64) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip(err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// TestBroadcastOperands runs sums and products of intermediate values, one of which is broadcast
// along rows, with changing numbers of rows. If both have one row, the output reuses the memory of
// one. The runtime is not replaced.
func TestBroadcastOperands(t *testing.T) {
	xnntest.Library(t)
	m := graphtest.NewMaker(11)
	x, y := m.Input(graph.FP32, 4, 16), m.Input(graph.FP32, 4, 16)
	u, v := m.Value(graph.FP32, 4, 16), m.Value(graph.FP32, 4, 16)
	m.Node("Sigmoid", []int{x}, []int{u})
	m.Node("Tanh", []int{y}, []int{v})
	sum, product, both := m.Value(graph.FP32, 4, 16), m.Value(graph.FP32, 4, 16), m.Value(graph.FP32, 4, 16)
	m.Node("Add", []int{u, v}, []int{sum})
	m.Node("Multiply", []int{sum, m.Constant(graph.FP32, 0, 16)}, []int{product})
	m.Node("Subtract", []int{product, m.Sigmoid(x)}, []int{both})
	last := m.Value(graph.FP32, 4, 8)
	m.Node("FullyConnected", []int{m.Quantized(both, 1), m.Constant(graph.QCInt8, 0, 8, 16), graph.None}, []int{last})
	g := m.Done(last)
	img, err := compile(graphtest.Encode(g))
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	unit, err := img.Unit(delegate.Instance{})
	if err != nil {
		t.Fatal(err)
	}
	defer unit.Close()
	r, first := rand.New(rand.NewPCG(12, 13)), xnn.Runtime(0)
	for round := range graphtest.Rounds(300) {
		rows := []int{1, 1 + r.IntN(60)}
		if r.IntN(2) == 0 {
			rows = []int{rows[1], 1}
		}
		if r.IntN(3) == 0 {
			rows = []int{rows[r.IntN(2)], rows[r.IntN(2)]}
		}
		if rows[0] != rows[1] && min(rows[0], rows[1]) != 1 {
			continue
		}
		args := rowArguments(img.Graph, r, rows[0])
		other := rowArguments(img.Graph, r, rows[1])
		call := []*tensor.Value{args[0], other[0], args[1]}
		run(t, unit, call)
		if n := unit.(*Unit); n.UseOther || round > 0 && n.Plain[0].Runtime != first {
			t.Fatalf("round %d: outside the library: %v, want the library and the same runtime", round, n.UseOther)
		}
		first = unit.(*Unit).Plain[0].Runtime
		got := graphtest.NumbersOf(call[2].Tensor)
		fresh, err := img.Unit(delegate.Instance{})
		if err != nil {
			t.Fatal(err)
		}
		run(t, fresh, call)
		fresh.Close()
		if want := graphtest.NumbersOf(call[2].Tensor); !slices.Equal(got, want) {
			t.Fatalf("round %d, %d and %d rows: got %v…, want %v…", round, rows[0], rows[1], got[:4], want[:4])
		}
	}
}
