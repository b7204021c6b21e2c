package goengine

import (
	"fmt"
	"math"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestInt8 compares the int8 loops with the plain loops over floats, on the sample graphs and random
// ones, with one thread and two.
func TestInt8(t *testing.T) {
	pool := cpu.NewPool(2)
	defer pool.Close()
	list := graphtest.Samples(7)
	rounds := uint64(400)
	if testing.Short() {
		rounds = 80
	}
	for seed := range rounds {
		m := graphtest.NewMaker(seed)
		if name, g := randomProduct(m); g != nil {
			list = append(list, graphtest.Sample{Name: fmt.Sprintf("seed %d: %s", seed, name), Graph: g})
		}
	}
	products := 0
	for _, s := range list {
		for _, p := range []*cpu.Pool{nil, pool} {
			products += compareWithPlain(t, s, p)
		}
	}
	if products < len(list)/2 {
		t.Errorf("got %d int8 products in two runs of %d graphs, want more", products, len(list))
	}
}

// compareWithPlain runs a graph with int8 loops and with plain loops on two inputs, compares the
// outputs and returns the number of int8 products.
func compareWithPlain(t *testing.T, s graphtest.Sample, pool *cpu.Pool) (products int) {
	t.Helper()
	m, err := compile(t, s.Graph, nil)
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	g, in := m.Graph, delegate.Instance{Pool: pool}
	fast, plain := newUnit(m, in), newPlainUnit(m, in)
	for seed := range uint64(2) {
		got, want := graphtest.NewMaker(seed).Arguments(g), graphtest.NewMaker(seed).Arguments(g)
		mustExecute(t, fast, got)
		mustExecute(t, plain, want)
		products = byteProducts(fast)
		for i, v := range g.Args {
			if g.Values[v].Output {
				sameResult(t, s.Name+", "+g.Describe(v), got[i].Tensor, want[i].Tensor, multipliesExactly(g, products))
			}
		}
	}
	return products
}

// multipliesExactly reports whether all products of a graph have sums of integers: those of quantized inputs that are products of
// bytes, unless groups of weights have scales of their own, which scale the zero point's share as well.
func multipliesExactly(g *graph.Graph, products int) bool {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if !n.Type.Packs {
			continue
		}
		if products--; g.Values[n.In[0]].Datatype.IsFloat() || g.Values[n.In[1]].Datatype == graph.QBInt4 {
			return false
		}
	}
	return products == 0
}

// sameResult checks that elements are equal. If exact is false, floats may differ by the error of
// another summation order.
func sameResult(t *testing.T, name string, got, want *tensor.Tensor, exact bool) {
	t.Helper()
	a, b := graphtest.NumbersOf(got), graphtest.NumbersOf(want)
	for i, w := range b {
		tolerance := 0.0
		switch {
		case exact:
		case got.DType == tensor.Float32:
			tolerance = 1e-5 * (1 + math.Abs(w))
		case got.DType == tensor.Float16 || got.DType == tensor.BFloat16:
			tolerance = 1e-2 * (1 + math.Abs(w))
		}
		if g := a[i]; g != w && !(math.Abs(g-w) <= tolerance) && (g == g || w == w) {
			t.Fatalf("%s: element %d of %d: got %v, want %v, difference %v", name, i, len(b), g, w, math.Abs(g-w))
		}
	}
}

// TestFuseTables compares elementwise nodes between conversions with the table into which they are
// fused: functions f(x) of one operand, and x·f(x) + c.
func TestFuseTables(t *testing.T) {
	for i := range graph.UnaryNodes {
		kind := &graph.UnaryNodes[i]
		if kind.Tag == graph.TagConvert {
			continue
		}
		for _, d := range []graph.Datatype{graph.QInt8, graph.QUInt8} {
			for _, product := range []bool{false, true} {
				m := graphtest.NewMaker(uint64(i))
				x, a, b, y := m.Input(d, 3, 70), m.Value(graph.FP32, 3, 70), m.Value(graph.FP32, 3, 70), m.Value(d, 3, 70)
				m.Node("Convert", []int{x}, []int{a})
				m.Node(kind.Name, []int{a}, []int{b}, func(n *graph.Node) { graphtest.SetScalar(n, 0.3) })
				if product {
					c, one, sum := m.Value(graph.FP32, 3, 70), m.Constant(graph.FP32, 0, 1), m.Value(graph.FP32, 3, 70)
					m.Node("Multiply", []int{b, a}, []int{c})
					m.Node("Add", []int{c, one}, []int{sum})
					b = sum
				}
				m.Node("Convert", []int{b}, []int{y})
				compareWithUnfused(t, kind.Name+" "+d.String(), m.Done(y))
			}
		}
	}
}

// compareWithUnfused checks that a graph is fused into a table and compares the outputs.
func compareWithUnfused(t *testing.T, name string, g *graph.Graph) {
	t.Helper()
	fused := mustCompile(t, g)
	if n := len(fused.Graph.Nodes); n != 1 || fused.Graph.Nodes[0].Type.Tag != graph.TagTable {
		t.Fatalf("%s: got %d nodes, want one table", name, n)
	}
	shapes, err := g.Declared()
	if err != nil {
		t.Fatal(err)
	}
	got, want := graphtest.NewMaker(1).Arguments(g), graphtest.NewMaker(1).Arguments(g)
	mustExecute(t, newUnit(fused, delegate.Instance{}), got)
	mustExecute(t, newUnit(&Image{Compilation: &graph.Compilation{Graph: g, Shapes: shapes}}, delegate.Instance{}), want)
	sameResult(t, name, got[1].Tensor, want[1].Tensor, true)
}

// TestInt8Broadcast compares int8 sums and products with broadcasting of random sizes.
func TestInt8Broadcast(t *testing.T) {
	pool := cpu.NewPool(2)
	defer pool.Close()
	for seed := range uint64(200) {
		m := graphtest.NewMaker(seed)
		d, kind := []graph.Datatype{graph.QInt8, graph.QUInt8}[m.R.IntN(2)], []string{"Add", "Subtract", "Multiply"}[m.R.IntN(3)]
		var a, b []int
		for range 1 + m.R.IntN(4) {
			size := upTo(m, 20)
			if m.R.IntN(6) == 0 {
				size = upTo(m, 900)
			}
			a, b = append(a, size), append(b, size)
			switch m.R.IntN(5) {
			case 0:
				a[len(a)-1] = 1
			case 1:
				b[len(b)-1] = 1
			}
		}
		x, y := m.Input(d, a...), m.Input(d, b...)
		z := m.Value(d, 1)
		m.Node(kind, []int{x, y}, []int{z}, someBounds(m))
		g := m.Fix(z)
		if g.Values[z].Shape.Numel() > 1<<18 {
			continue
		}
		s := graphtest.Sample{Name: fmt.Sprintf("seed %d: %s %v of %v and %v", seed, kind, d, a, b), Graph: g}
		compareWithPlain(t, s, nil)
		compareWithPlain(t, s, pool)
	}
}
