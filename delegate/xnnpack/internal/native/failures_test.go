package native

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/cases"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// failing makes one call of one function of the library fail.
type failing struct {
	name  string // of the field of xnn.Functions
	at    int    // the call that fails, from 0
	after bool   // the call is made, but an error is reported
	calls int
}

// inject replaces a function of the library, until the returned function is called.
func (f *failing) inject(lib *xnn.Library) (restore func()) {
	saved := lib.Functions
	field := reflect.ValueOf(&lib.Functions).Elem().FieldByName(f.name)
	original := reflect.ValueOf(saved).FieldByName(f.name)
	field.Set(reflect.MakeFunc(field.Type(), func(args []reflect.Value) []reflect.Value {
		f.calls++
		if f.calls-1 != f.at {
			return original.Call(args)
		}
		if f.after {
			original.Call(args)
		}
		return []reflect.Value{reflect.ValueOf(xnn.Status(6))} // xnn_status_out_of_memory
	}))
	return func() { lib.Functions = saved }
}

// creationFunctions returns the functions that may fail before a graph runs.
func creationFunctions() (names []string) {
	t := reflect.TypeFor[xnn.Functions]()
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Type.NumOut() != 1 || f.Type.Out(0) != reflect.TypeFor[xnn.Status]():
		case strings.HasPrefix(f.Name, "Delete"), strings.HasPrefix(f.Name, "Release"), f.Name == "Initialize",
			f.Name == "InvokeRuntime", f.Name == "GetRuntimeProfilingInfo":
		default:
			names = append(names, f.Name)
		}
	}
	return names
}

// TestCreationFails lets every call fail that creates, plans and sets up runtimes. The graph runs in the library or
// in Go, with a warning, also if filters are released.
func TestCreationFails(t *testing.T) {
	lib := xnntest.Library(t)
	pool := cpu.NewPool(2)
	defer pool.Close()
	floats := graph.Weighted{In: graph.FP32, Filter: graph.FP32, Bias: graph.FP32, Out: graph.FP32}
	graphs := map[string]*graph.Graph{"products": graphtest.TwoLayers(false), "transposed": manyPixels(graphtest.NewMaker(1), "ConvTranspose2d", floats, 1, 1, 1)}
	form := 0
	for name, g := range graphs {
		want := graphtest.NewMaker(7).Arguments(g)
		runInGo(t, g, want)
		for _, kept := range []int64{keptBytes, 0} {
			for _, release := range []bool{false, true} {
				if kept == 0 && !release {
					continue // as if kept
				}
				for i, p := range []*cpu.Pool{nil, pool} {
					if form++; !cases.Every(2, form/2+i) {
						continue
					}
					c := creation{t: t, lib: lib, graph: g, want: want, pool: p, kept: kept, release: release,
						name: fmt.Sprintf("%s, filters released %t, kept %d, threads %t", name, release, kept, p != nil)}
					c.failEach()
				}
			}
		}
	}
}

// runInGo runs a graph on the Go engine.
func runInGo(t *testing.T, g *graph.Graph, args []*tensor.Value) {
	t.Helper()
	g, err := graphtest.ReadGraph(graphtest.Encode(g), nil)
	if err != nil {
		t.Fatal(err)
	}
	shapes, err := g.Repair()
	if err != nil {
		t.Fatal(err)
	}
	u, err := (&goengine.Image{Compilation: &graph.Compilation{Graph: g, Shapes: shapes}}).Unit(delegate.Instance{})
	if err != nil {
		t.Fatal(err)
	}
	run(t, u, args)
}

// creation is a way to create a runtime.
type creation struct {
	t       *testing.T
	name    string
	lib     *xnn.Library
	graph   *graph.Graph
	want    []*tensor.Value
	pool    *cpu.Pool
	kept    int64
	release bool
}

// failEach runs the graph once for each call of each function.
func (c *creation) failEach() {
	failed := 0
	for _, name := range creationFunctions() {
		for _, after := range []bool{false, true} {
			if after && strings.HasPrefix(name, "Define") {
				continue
			}
			for f := (failing{name: name, after: after}); ; f = (failing{name: name, after: after, at: f.at + 1}) {
				before := len(blocks.by)
				inGo, warned, err := c.run(&f)
				if n := len(blocks.by) - before; n != 0 {
					c.t.Errorf("%s, call %d of %s, after it %t: %d packed blocks are not freed", c.name, f.at, name, after, n)
				}
				if f.calls <= f.at {
					break
				}
				failed++
				if err != nil {
					c.t.Errorf("%s, call %d of %s, after it %t: %v", c.name, f.at, name, after, err)
				}
				if inGo && !warned {
					c.t.Errorf("%s, call %d of %s: no warning", c.name, f.at, name)
				}
			}
		}
	}
	if failed < 15 {
		c.t.Errorf("%s: %d calls failed, want more", c.name, failed)
	}
}

// run compiles and runs the graph with a call that fails. It reports whether that was in Go, or with fewer threads.
func (c *creation) run(f *failing) (inGo, warned bool, err error) {
	defer func(old int64) { keptBytes = old }(keptBytes)
	keptBytes = c.kept
	payload := &delegate.Payload{Data: graphtest.Encode(c.graph), Args: graphtest.ArgSpecs(c.graph, false)}
	if c.release {
		payload.Release = func(data []byte) bool {
			for i := range data {
				data[i] = 0x7f
			}
			return true
		}
	}
	restore := f.inject(c.lib)
	defer restore()
	m, err := open(payload, graph.WeightsCache{}, func(error) { warned = true })
	used := graph.Engine(m)
	if err != nil && m.IsOpen() && !m.HasReleased() { // as the backend does
		m.Close()
		warned = true
		used, err = goengine.NewImage(context.Background(), m.Compilation, graph.WeightsCache{})
	}
	if err != nil {
		return false, false, err
	}
	defer used.Close()
	u, err := used.Unit(delegate.Instance{Pool: c.pool})
	if err != nil {
		return false, false, err
	}
	defer u.Close()
	args := graphtest.NewMaker(7).Arguments(c.graph)
	if err := u.Execute(context.Background(), args); err != nil {
		return false, false, err
	}
	n, ok := u.(*Unit)
	inGo = !ok || n.UseOther || c.pool != nil && n.Threads == nil && graph.Parallel(n.Image.Cost, len(c.graph.Nodes))
	s := graphtest.Sample{Loose: 1e-5}
	return inGo, warned, s.Differ(args, c.want, c.graph)
}
