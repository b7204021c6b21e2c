package native

import (
	"fmt"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnnguard"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestNativeNeeds counts the library's allocations of units: they are at most the estimate, and all
// estimates together are not much larger.
func TestNativeNeeds(t *testing.T) {
	xnntest.Library(t)
	lib, err := xnn.Open(xnntest.Path())
	if err != nil {
		t.Fatal(err)
	}
	if err := xnnguard.Install(lib); err != nil {
		t.Skipf("the library's allocations cannot be counted: %v", err)
	}
	xnnguard.Set(xnnguard.Options{})
	pool := cpu.NewPool(2)
	defer pool.Close()
	allocated, estimated := int64(0), int64(0)
	list := graphtest.Samples(1)
	for _, width := range []int{8, 64} {
		list = append(list, graphtest.Sample{Name: "residuals", Graph: residuals(width)})
	}
	for _, s := range list {
		before := xnnguard.Read(true).Bytes
		m, err := compile(graphtest.Encode(s.Graph))
		if err != nil {
			continue
		}
		u, err := m.Unit(delegate.Instance{Pool: pool})
		if err != nil {
			t.Fatal(err)
		}
		run(t, u, graphtest.NewMaker(1).Arguments(m.Graph))
		got := int64(xnnguard.Read(false).Bytes - before)
		if got > m.Needs().Scratch {
			t.Errorf("%s: the library allocated %d bytes, estimated %d, of which %d in the workspace", s.Name, got, m.Needs().Scratch, m.Needs().Shared)
		}
		allocated, estimated = allocated+got, estimated+m.Needs().Scratch
		if m.Graph.Nodes[len(m.Graph.Nodes)-1].Type.Tag == graph.TagConvTranspose2d {
			estimated -= lib.Soname.TransposedExample // allocated while the first one of a type is created
		}
		u.Close()
		m.Close()
	}
	t.Logf("allocated %d bytes, estimated %d", allocated, estimated)
	if allocated == 0 || 2*estimated > 5*allocated {
		t.Errorf("the library allocated %d bytes, estimated %d: want at most 2.5 times as many", allocated, estimated)
	}
}

// residuals returns a chain of sums with bounds, whose operands live longer than the next node.
func residuals(width int) *graph.Graph {
	m := graphtest.NewMaker(3)
	x := m.Input(graph.FP32, width, 24)
	u := m.Value(graph.FP32, width, 24)
	m.Node("Sigmoid", []int{x}, []int{u})
	for range 4 {
		v, w := m.Value(graph.FP32, width, 24), m.Value(graph.FP32, width, 24)
		m.Node("FullyConnected", []int{u, m.Constant(graph.FP32, 0, 24, 24), graph.None}, []int{v})
		m.Node("Add", []int{u, v}, []int{w}, func(n *graph.Node) { n.Min = 0 })
		u = w
	}
	y := m.Value(graph.FP32, width, 4)
	m.Node("FullyConnected", []int{u, m.Constant(graph.FP32, 0, 4, 24), graph.None}, []int{y})
	return m.Done(y)
}

// TestUnsharedBytes checks that an arena is never larger than one in which nothing shares memory, at declared and other sizes.
func TestUnsharedBytes(t *testing.T) {
	larger, list := 0, graphtest.Samples(1)
	for seed := range uint64(20) {
		list = append(list, graphtest.Sample{Name: fmt.Sprint("random graph ", seed), Graph: graphtest.RandomGraph(12+seed, 7)})
	}
	for _, c := range list {
		g, err := graphtest.ReadGraph(graphtest.Encode(c.Graph), nil)
		if err != nil {
			t.Fatal(err)
		}
		shapes, err := g.Repair()
		if err != nil {
			continue
		}
		graph.Fuse(g, shapes, RefusesNode)
		for _, args := range [][]*tensor.Value{graphtest.NewMaker(3).Arguments(g), graphtest.NewMaker(3).Resized(g)} {
			s := make([]graph.Shape, len(g.Values))
			for i, v := range g.Args[:g.Inputs] {
				s[v] = graph.ShapeOf(args[i].Tensor.Sizes...)
			}
			if g.Infer(s) != nil {
				continue
			}
			arena, all := arenaBytes(g, s, 2), unsharedBytes(g, s, 2)
			if arena > all {
				t.Errorf("%s: an arena of %d bytes, %d if nothing shares memory", c.Name, arena, all)
			}
			if all > arena {
				larger++
			}
		}
	}
	if larger == 0 {
		t.Error("no memory is shared: the test shows nothing")
	}
}
