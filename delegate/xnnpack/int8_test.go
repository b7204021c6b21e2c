package xnnpack

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/etrun-go/etrun/delegate"
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
	g := img.(*image).graph
	in := delegate.Instance{Pool: pool}
	fast, plain := newReference(goOf(img), in), newReference(goOf(img), in)
	plain.plain = true
	for seed := range uint64(2) {
		got, want := newMaker(seed).arguments(g), newMaker(seed).arguments(g)
		mustExecute(t, fast, got)
		mustExecute(t, plain, want)
		for i, v := range g.Args {
			if g.Values[v].Output {
				sameResult(t, s.name+", "+g.describe(v), got[i].Tensor, want[i].Tensor, multipliesBytes(g))
			}
		}
	}
	for _, p := range fast.products {
		if p != nil {
			products++
		}
	}
	return products
}

// multipliesBytes reports whether all products of a graph have quantized inputs.
func multipliesBytes(g *graph) bool {
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Type.packs && !hasQuantizedInput(g, n) {
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
func (m *maker) randomProduct() (string, *graph) {
	m.lo, m.hi = -1, 1
	var types []weighted
	for _, w := range append(convolutionTypes, fullyConnectedTypes...) {
		if !w.in.isFloat() {
			types = append(types, w)
		}
	}
	w := types[m.r.IntN(len(types))]
	if w.filter.info().bits == 4 || m.r.IntN(3) == 0 {
		return m.randomConnected(w)
	}
	return m.randomConvolution(w)
}

func (m *maker) randomConnected(w weighted) (string, *graph) {
	rows, k, cols := m.upTo(80), m.upTo(200), m.upTo(150)
	var x int
	if w.in == qdint8 {
		x = m.quantized(m.input(w.out, rows, k), 1)
	} else {
		x = m.input(w.in, rows, k)
	}
	filter, bias := 0, none
	if filter = m.constant(w.filter, 0, cols, k); m.r.IntN(2) == 0 {
		bias = m.constant(w.bias, 0, cols)
	}
	if w.filter == qbint4 {
		m.regroup(filter, cols, k)
	}
	y := m.value(w.out, rows, cols)
	m.node("FullyConnected", []int{x, filter, bias}, []int{y}, m.someBounds)
	return fmt.Sprintf("%v of %d rows, %d to %d channels", w, rows, k, cols), m.done(y)
}

// regroup sets a random group size and scales of a 4-bit filter.
func (m *maker) regroup(v, cols, k int) {
	q := &m.g.Values[v].Quant
	for q.GroupSize = m.upTo(k); k%q.GroupSize != 0; q.GroupSize-- {
	}
	q.Blocks = nil
	for range cols * (k / q.GroupSize) {
		q.Blocks = append(q.Blocks, uint16(math.Float32bits(m.r.Float32()*0.05+0.001)>>16))
	}
}

func (m *maker) someBounds(n *node) {
	if m.r.IntN(2) == 0 {
		n.Min, n.Max = -1.5, 2
	}
}

func (m *maker) randomConvolution(w weighted) (string, *graph) {
	kind := []string{"Conv2d", "DepthwiseConv2d", "ConvTranspose2d"}[m.r.IntN(3)]
	o := window{top: m.r.IntN(3), right: m.r.IntN(3), bottom: m.r.IntN(3), left: m.r.IntN(3), kernelH: m.upTo(5), kernelW: m.upTo(5),
		strideH: m.upTo(3), strideW: m.upTo(3), dilationH: m.upTo(2), dilationW: m.upTo(2),
		groups: m.upTo(4), groupIn: m.upTo(40), groupOut: m.upTo(50)}
	if kind == "DepthwiseConv2d" {
		o.groups, o.groupIn, o.groupOut = m.upTo(70), 1, max(1, m.upTo(9)-6)
	}
	if m.r.IntN(3) == 0 { // 1x1: a product of the pixels
		o = window{kernelH: 1, kernelW: 1, strideH: 1, strideW: 1, dilationH: 1, dilationW: 1,
			groups: o.groups, groupIn: o.groupIn, groupOut: o.groupOut}
	}
	dims, out := []int{m.upTo(2), m.upTo(14), m.upTo(14), o.groups * o.groupIn}, o.groups*o.groupOut
	var x int
	if w.in == qdint8 {
		x = m.quantized(m.input(w.out, dims...), 3)
	} else {
		x = m.input(w.in, dims...)
	}
	filter, bias := 0, none
	if kind == "DepthwiseConv2d" {
		filter = m.constant(w.filter, 3, 1, o.kernelH, o.kernelW, out)
	} else {
		filter = m.constant(w.filter, 0, out, o.kernelH, o.kernelW, o.groupIn)
	}
	if m.r.IntN(2) == 0 {
		bias = m.constant(w.bias, 0, out)
	}
	y := m.value(w.out, dims[0], 1, 1, out)
	m.node(kind, []int{x, filter, bias}, []int{y}, withWindow(o), m.someBounds)
	name := fmt.Sprintf("%s %v %+v of %v", kind, w, o, dims)
	g := m.done(y)
	s, err := g.declared()
	if err != nil {
		return name, nil
	}
	g.Values[y].Shape = s[y]
	return name, g
}

// TestFuseTables compares elementwise nodes between conversions with the table into which they are
// fused: functions f(x) of one operand, and x·f(x) + c.
func TestFuseTables(t *testing.T) {
	for i := range unaryNodes {
		kind := &unaryNodes[i]
		if kind.tag == tagConvert {
			continue
		}
		for _, d := range []datatype{qint8, quint8} {
			for _, product := range []bool{false, true} {
				m := newMaker(uint64(i))
				x, a, b, y := m.input(d, 3, 70), m.value(fp32, 3, 70), m.value(fp32, 3, 70), m.value(d, 3, 70)
				m.node("Convert", []int{x}, []int{a})
				m.node(kind.name, []int{a}, []int{b}, func(n *node) { setScalar(n, 0.3) })
				if product {
					c, one, sum := m.value(fp32, 3, 70), m.constant(fp32, 0, 1), m.value(fp32, 3, 70)
					m.node("Multiply", []int{b, a}, []int{c})
					m.node("Add", []int{c, one}, []int{sum})
					b = sum
				}
				m.node("Convert", []int{b}, []int{y})
				compareWithUnfused(t, kind.name+" "+d.String(), m.done(y))
			}
		}
	}
}

// compareWithUnfused checks that a graph is fused into a table and compares the outputs.
func compareWithUnfused(t *testing.T, name string, g *graph) {
	t.Helper()
	img, err := Backend{Engine: EngineGo}.Compile(context.Background(), &delegate.Payload{Data: encode(g)})
	if err != nil {
		t.Fatal(err)
	}
	fused := goOf(img)
	if n := len(fused.graph.Nodes); n != 1 || fused.graph.Nodes[0].Type != &tableNode {
		t.Fatalf("%s: got %d nodes, want one table", name, n)
	}
	shapes, err := g.declared()
	if err != nil {
		t.Fatal(err)
	}
	got, want := newMaker(1).arguments(g), newMaker(1).arguments(g)
	mustExecute(t, newReference(fused, delegate.Instance{}), got)
	mustExecute(t, newReference(&goImage{compilation: &compilation{graph: g, shapes: shapes}}, delegate.Instance{}), want)
	sameResult(t, name, got[1].Tensor, want[1].Tensor, true)
}

// TestInt8Broadcast compares int8 sums and products with broadcasting of random sizes.
func TestInt8Broadcast(t *testing.T) {
	pool := cpu.NewPool(2)
	defer pool.Close()
	for seed := range uint64(200) {
		m := newMaker(seed)
		d, kind := []datatype{qint8, quint8}[m.r.IntN(2)], []string{"Add", "Subtract", "Multiply"}[m.r.IntN(3)]
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
		if g.Values[z].Shape.numel() > 1<<18 {
			continue
		}
		s := sample{name: fmt.Sprintf("seed %d: %s %v of %v and %v", seed, kind, d, a, b), graph: g}
		compareWithPlain(t, s, nil)
		compareWithPlain(t, s, pool)
	}
}
