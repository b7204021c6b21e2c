package xnnpack

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// TestInt8 compares the int8 loops with the plain loops over floats, on the sample graphs and random
// ones, with one thread and two.
func TestInt8(t *testing.T) {
	pool := cpu.NewPool(2)
	defer pool.Close()
	list := samples(7)
	rounds := uint64(400)
	if testing.Short() {
		rounds = 80
	}
	for seed := range rounds {
		m := newMaker(seed)
		if name, g := m.randomProduct(); g != nil {
			list = append(list, sample{name: fmt.Sprintf("seed %d: %s", seed, name), graph: g})
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
func compareWithPlain(t *testing.T, s sample, pool *cpu.Pool) (products int) {
	t.Helper()
	img, err := Backend{Engine: EngineGo}.Compile(context.Background(), &delegate.Payload{Data: encode(s.graph)})
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	g := img.(*image).Graph
	in := delegate.Instance{Pool: pool}
	fast, plain := goengine.NewUnit(goOf(img), in), goengine.NewUnit(goOf(img), in)
	plain.Plain = true
	for seed := range uint64(2) {
		got, want := newMaker(seed).arguments(g), newMaker(seed).arguments(g)
		mustExecute(t, fast, got)
		mustExecute(t, plain, want)
		for i, v := range g.Args {
			if g.Values[v].Output {
				sameResult(t, s.name+", "+g.Describe(v), got[i].Tensor, want[i].Tensor, multipliesBytes(g))
			}
		}
	}
	for _, p := range fast.Products {
		if p != nil {
			products++
		}
	}
	return products
}

// multipliesBytes reports whether all products of a graph have quantized inputs.
func multipliesBytes(g *graph.Graph) bool {
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Type.Packs && !goengine.HasQuantizedInput(g, n) {
			return false
		}
	}
	return true
}

// sameResult checks that elements are equal. If exact is false, floats may differ by the error of
// another summation order.
func sameResult(t *testing.T, name string, got, want *tensor.Tensor, exact bool) {
	t.Helper()
	a, b := numbersOf(got), numbersOf(want)
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

// upTo returns a random number from 1 to n, often a small one.
func (m *maker) upTo(n int) int {
	if m.r.IntN(3) == 0 {
		return 1 + m.r.IntN(min(n, 3))
	}
	return 1 + m.r.IntN(n)
}

// randomProduct returns a graph of one product of 8-bit activations, or nil if the shapes are invalid.
func (m *maker) randomProduct() (string, *graph.Graph) {
	m.lo, m.hi = -1, 1
	var types []graph.Weighted
	for _, w := range append(graph.ConvolutionTypes, graph.FullyConnectedTypes...) {
		if !w.In.IsFloat() {
			types = append(types, w)
		}
	}
	w := types[m.r.IntN(len(types))]
	if w.Filter.Info().Bits == 4 || m.r.IntN(3) == 0 {
		return m.randomConnected(w)
	}
	return m.randomConvolution(w)
}

func (m *maker) randomConnected(w graph.Weighted) (string, *graph.Graph) {
	rows, k, cols := m.upTo(80), m.upTo(200), m.upTo(150)
	var x int
	if w.In == graph.QDInt8 {
		x = m.quantized(m.input(w.Out, rows, k), 1)
	} else {
		x = m.input(w.In, rows, k)
	}
	filter, bias := 0, graph.None
	if filter = m.constant(w.Filter, 0, cols, k); m.r.IntN(2) == 0 {
		bias = m.constant(w.Bias, 0, cols)
	}
	if w.Filter == graph.QBInt4 {
		m.regroup(filter, cols, k)
	}
	y := m.value(w.Out, rows, cols)
	m.node("FullyConnected", []int{x, filter, bias}, []int{y}, m.someBounds)
	return fmt.Sprintf("%v of %d rows, %d to %d channels", w, rows, k, cols), m.done(y)
}

// regroup sets a random group size and scales of a 4-bit filter.
func (m *maker) regroup(v, cols, k int) {
	q := &m.Graph.Values[v].Quant
	for q.GroupSize = m.upTo(k); k%q.GroupSize != 0; q.GroupSize-- {
	}
	q.Blocks = nil
	for range cols * (k / q.GroupSize) {
		q.Blocks = append(q.Blocks, uint16(math.Float32bits(m.r.Float32()*0.05+0.001)>>16))
	}
}

func (m *maker) someBounds(n *graph.Node) {
	if m.r.IntN(2) == 0 {
		n.Min, n.Max = -1.5, 2
	}
}

func (m *maker) randomConvolution(w graph.Weighted) (string, *graph.Graph) {
	kind := []string{"Conv2d", "DepthwiseConv2d", "ConvTranspose2d"}[m.r.IntN(3)]
	o := graph.Window{Top: m.r.IntN(3), Right: m.r.IntN(3), Bottom: m.r.IntN(3), Left: m.r.IntN(3), KernelH: m.upTo(5), KernelW: m.upTo(5),
		StrideH: m.upTo(3), StrideW: m.upTo(3), DilationH: m.upTo(2), DilationW: m.upTo(2),
		Groups: m.upTo(4), GroupIn: m.upTo(40), GroupOut: m.upTo(50)}
	if kind == "DepthwiseConv2d" {
		o.Groups, o.GroupIn, o.GroupOut = m.upTo(70), 1, max(1, m.upTo(9)-6)
	}
	if m.r.IntN(3) == 0 { // 1x1: a product of the pixels
		o = graph.Window{KernelH: 1, KernelW: 1, StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1,
			Groups: o.Groups, GroupIn: o.GroupIn, GroupOut: o.GroupOut}
	}
	dims, out := []int{m.upTo(2), m.upTo(14), m.upTo(14), o.Groups * o.GroupIn}, o.Groups*o.GroupOut
	var x int
	if w.In == graph.QDInt8 {
		x = m.quantized(m.input(w.Out, dims...), 3)
	} else {
		x = m.input(w.In, dims...)
	}
	filter, bias := 0, graph.None
	if kind == "DepthwiseConv2d" {
		filter = m.constant(w.Filter, 3, 1, o.KernelH, o.KernelW, out)
	} else {
		filter = m.constant(w.Filter, 0, out, o.KernelH, o.KernelW, o.GroupIn)
	}
	if m.r.IntN(2) == 0 {
		bias = m.constant(w.Bias, 0, out)
	}
	y := m.value(w.Out, dims[0], 1, 1, out)
	m.node(kind, []int{x, filter, bias}, []int{y}, withWindow(o), m.someBounds)
	name := fmt.Sprintf("%s %v %+v of %v", kind, w, o, dims)
	g := m.done(y)
	s, err := g.Declared()
	if err != nil {
		return name, nil
	}
	g.Values[y].Shape = s[y]
	return name, g
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
				m := newMaker(uint64(i))
				x, a, b, y := m.input(d, 3, 70), m.value(graph.FP32, 3, 70), m.value(graph.FP32, 3, 70), m.value(d, 3, 70)
				m.node("Convert", []int{x}, []int{a})
				m.node(kind.Name, []int{a}, []int{b}, func(n *graph.Node) { setScalar(n, 0.3) })
				if product {
					c, one, sum := m.value(graph.FP32, 3, 70), m.constant(graph.FP32, 0, 1), m.value(graph.FP32, 3, 70)
					m.node("Multiply", []int{b, a}, []int{c})
					m.node("Add", []int{c, one}, []int{sum})
					b = sum
				}
				m.node("Convert", []int{b}, []int{y})
				compareWithUnfused(t, kind.Name+" "+d.String(), m.done(y))
			}
		}
	}
}

// compareWithUnfused checks that a graph is fused into a table and compares the outputs.
func compareWithUnfused(t *testing.T, name string, g *graph.Graph) {
	t.Helper()
	img, err := Backend{Engine: EngineGo}.Compile(context.Background(), &delegate.Payload{Data: encode(g)})
	if err != nil {
		t.Fatal(err)
	}
	fused := goOf(img)
	if n := len(fused.Graph.Nodes); n != 1 || fused.Graph.Nodes[0].Type != &goengine.TableNode {
		t.Fatalf("%s: got %d nodes, want one table", name, n)
	}
	shapes, err := g.Declared()
	if err != nil {
		t.Fatal(err)
	}
	got, want := newMaker(1).arguments(g), newMaker(1).arguments(g)
	mustExecute(t, goengine.NewUnit(fused, delegate.Instance{}), got)
	mustExecute(t, goengine.NewUnit(&goengine.Image{Compilation: &graph.Compilation{Graph: g, Shapes: shapes}}, delegate.Instance{}), want)
	sameResult(t, name, got[1].Tensor, want[1].Tensor, true)
}

// TestInt8Broadcast compares int8 sums and products with broadcasting of random sizes.
func TestInt8Broadcast(t *testing.T) {
	pool := cpu.NewPool(2)
	defer pool.Close()
	for seed := range uint64(200) {
		m := newMaker(seed)
		d, kind := []graph.Datatype{graph.QInt8, graph.QUInt8}[m.r.IntN(2)], []string{"Add", "Subtract", "Multiply"}[m.r.IntN(3)]
		var a, b []int
		for range 1 + m.r.IntN(4) {
			size := m.upTo(20)
			if m.r.IntN(6) == 0 {
				size = m.upTo(900)
			}
			a, b = append(a, size), append(b, size)
			switch m.r.IntN(5) {
			case 0:
				a[len(a)-1] = 1
			case 1:
				b[len(b)-1] = 1
			}
		}
		x, y := m.input(d, a...), m.input(d, b...)
		z := m.value(d, 1)
		m.node(kind, []int{x, y}, []int{z}, m.someBounds)
		g := m.fix(z)
		if g.Values[z].Shape.Numel() > 1<<18 {
			continue
		}
		s := sample{name: fmt.Sprintf("seed %d: %s %v of %v and %v", seed, kind, d, a, b), graph: g}
		compareWithPlain(t, s, nil)
		compareWithPlain(t, s, pool)
	}
}
