package xnnpack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// chain builds a random graph over values of known shapes.
type chain struct {
	*maker
	ready []int // values that nodes may read
}

// randomGraph returns a graph of up to size nodes.
func randomGraph(seed uint64, size int) *graph.Graph {
	c := &chain{maker: newMaker(seed)}
	c.lo, c.hi = -1, 1
	d := []graph.Datatype{graph.FP32, graph.FP32, graph.FP16, graph.QInt8, graph.QUInt8}[c.r.IntN(5)]
	for range 1 + c.r.IntN(2) {
		dims := []int{1 + c.r.IntN(2), 2 + c.r.IntN(7), 2 + c.r.IntN(7), 1 + c.r.IntN(20)}
		c.ready = append(c.ready, c.input(d, dims...))
	}
	for range 1 + c.r.IntN(size) {
		c.grow()
	}
	read := make(map[int]bool)
	for i := range c.Graph.Nodes {
		for _, v := range c.Graph.Nodes[i].In {
			read[v] = true
		}
	}
	var outputs []int
	for _, v := range c.ready {
		if !c.Graph.Values[v].Input && (!read[v] || c.r.IntN(4) == 0) {
			outputs = append(outputs, v)
		}
	}
	return c.fix(outputs...)
}

// grow adds a random node that accepts a random value.
func (c *chain) grow() {
	x := c.ready[c.r.IntN(len(c.ready))]
	v := c.Graph.Values[x]
	steps := []func(int, graph.Value) bool{c.unary, c.binary, c.move, c.convolve, c.pool, c.connect, c.join, c.transposed}
	for range 20 {
		if steps[c.r.IntN(len(steps))](x, v) {
			return
		}
	}
}

// add appends a node whose output has the given shape, and returns the output.
func (c *chain) add(name string, in []int, d graph.Datatype, s graph.Shape, set ...func(*graph.Node)) int {
	y := c.value(d, s.Dims()...)
	c.node(name, in, []int{y}, set...)
	c.ready = append(c.ready, y)
	return y
}

// keep sets y's quantization to x's, as nodes that move data require.
func (c *chain) keep(y, x int) bool {
	c.Graph.Values[y].Quant = c.Graph.Values[x].Quant
	return true
}

func (c *chain) unary(x int, v graph.Value) bool {
	names := []string{"Sigmoid", "Clamp", "Hardswish", "LeakyReLU", "Negate", "Square", "ELU", "Abs", "Tanh", "Gelu", "Floor"}
	name := names[c.r.IntN(len(names))]
	if name == "Floor" && v.Datatype != graph.FP32 { // a small difference of the operand may change the result by 1
		return false
	}
	y := c.add(name, []int{x}, v.Datatype, v.Shape, func(n *graph.Node) { setScalar(n, 0.25) })
	if name == "Clamp" {
		n := &c.Graph.Nodes[len(c.Graph.Nodes)-1]
		n.Min, n.Max = -0.5, 0.75
		return c.keep(y, x)
	}
	return true
}

func (c *chain) binary(x int, v graph.Value) bool {
	names := []string{"Add", "Subtract", "Multiply", "Minimum", "Maximum"}
	other := c.ready[c.r.IntN(len(c.ready))]
	if c.r.IntN(2) == 0 {
		other = c.constant(v.Datatype, 0, v.Shape.Last())
	}
	out, ok := graph.Broadcast(v.Shape, c.Graph.Values[other].Shape)
	if !ok || c.Graph.Values[other].Datatype != v.Datatype {
		return false
	}
	c.add(names[c.r.IntN(len(names))], []int{x, other}, v.Datatype, out)
	return true
}

func (c *chain) move(x int, v graph.Value) bool {
	s := v.Shape
	switch c.r.IntN(4) {
	case 0:
		perm := c.r.Perm(s.Rank)
		return c.keep(c.add("StaticTranspose", []int{x}, v.Datatype, s.Permuted(perm), func(n *graph.Node) { graph.Params[graph.TransposeParams](n).Perm = perm }), x)
	case 1:
		flat := graph.ShapeOf(s.Dim[0], s.Trailing(1))
		return c.keep(c.add("StaticReshape", []int{x}, v.Datatype, flat, func(n *graph.Node) { graph.Params[graph.ReshapeParams](n).Sizes = []int{flat.Dim[0], flat.Dim[1]} }), x)
	case 2:
		dims, before, after := s, make([]int, s.Rank), make([]int, s.Rank)
		for i := range before {
			before[i], after[i] = c.r.IntN(2), c.r.IntN(2)
			dims.Dim[i] += before[i] + after[i]
		}
		return c.keep(c.add("StaticConstantPad", []int{x}, v.Datatype, dims, func(n *graph.Node) { p := graph.Params[graph.PadParams](n); p.Before, p.After = before, after }), x)
	}
	offsets, sizes := make([]int, s.Rank), make([]int, s.Rank)
	for i, d := range s.Dims() {
		offsets[i] = c.r.IntN(d)
		sizes[i] = 1 + c.r.IntN(d-offsets[i])
	}
	return c.keep(c.add("StaticSlice", []int{x}, v.Datatype, graph.ShapeOf(sizes...), func(n *graph.Node) {
		*graph.Params[graph.SliceParams](n) = graph.SliceParams{Offsets: offsets, Sizes: sizes}
	}), x)
}

// types returns the datatypes of filter, bias and output for a weighted node's input.
func (c *chain) types(d graph.Datatype) (w graph.Weighted, ok bool) {
	switch d {
	case graph.FP32:
		w = graph.Weighted{In: graph.FP32, Filter: graph.FP32, Bias: graph.FP32, Out: graph.FP32}
	case graph.FP16:
		w = graph.Weighted{In: graph.FP16, Filter: graph.FP32, Bias: graph.FP32, Out: graph.FP16}
	case graph.QInt8:
		w = graph.Weighted{In: graph.QInt8, Filter: graph.QCInt8, Bias: graph.QCInt32, Out: graph.QInt8}
	case graph.QUInt8:
		w = graph.Weighted{In: graph.QUInt8, Filter: graph.QUInt8, Bias: graph.QInt32, Out: graph.QUInt8}
	}
	return w, w.In != 0
}

func (c *chain) convolve(x int, v graph.Value) bool {
	t, ok := c.types(v.Datatype)
	if !ok || v.Shape.Rank != 4 {
		return false
	}
	w := graph.Window{KernelH: 1 + c.r.IntN(3), KernelW: 1 + c.r.IntN(3), StrideH: 1 + c.r.IntN(2), StrideW: 1 + c.r.IntN(2), DilationH: 1, DilationW: 1,
		Top: c.r.IntN(2), Left: c.r.IntN(2), Bottom: c.r.IntN(2), Right: c.r.IntN(2), Groups: 1, GroupIn: v.Shape.Last(), GroupOut: 1 + c.r.IntN(9)}
	name := "Conv2d"
	if c.r.IntN(3) == 0 {
		name, w.Groups, w.GroupIn, w.GroupOut = "DepthwiseConv2d", v.Shape.Last(), 1, 1
	}
	n := graph.Node{Type: graph.NodeTypes[graph.TagConv2d], Params: &w}
	out, err := graph.WindowShape(&n, v.Shape)
	if err != nil {
		return false
	}
	out.Dim[3] = w.Groups * w.GroupOut
	if v.Datatype == graph.FP32 && name == "Conv2d" && c.r.IntN(2) == 0 {
		t = graph.Weighted{In: graph.QDInt8, Filter: graph.QCInt8, Bias: graph.FP32, Out: graph.FP32}
		x = c.quantized(x, 3)
	}
	var filter int
	if name == "Conv2d" {
		filter = c.constant(t.Filter, 0, out.Dim[3], w.KernelH, w.KernelW, w.GroupIn)
	} else {
		filter = c.constant(t.Filter, 3, 1, w.KernelH, w.KernelW, out.Dim[3])
	}
	c.add(name, []int{x, filter, c.constant(t.Bias, 0, out.Dim[3])}, t.Out, out, withWindow(w))
	return true
}

func (c *chain) transposed(x int, v graph.Value) bool {
	t, ok := c.types(v.Datatype)
	if !ok || v.Shape.Rank != 4 || v.Shape.Dim[1]*v.Shape.Dim[2] > 200 {
		return false
	}
	w := graph.Window{KernelH: 2 + c.r.IntN(2), KernelW: 2 + c.r.IntN(2), StrideH: 1 + c.r.IntN(2), StrideW: 1 + c.r.IntN(2), DilationH: 1, DilationW: 1,
		Groups: 1, GroupIn: v.Shape.Last(), GroupOut: 1 + c.r.IntN(5)}
	s := []graph.Shape{v.Shape, {}}
	n := graph.Node{Type: graph.NodeTypes[graph.TagConvTranspose2d], Params: &w, In: []int{0}, Out: []int{1}}
	if graph.TransposedShape(&graph.Graph{Values: make([]graph.Value, 2)}, &n, s) != nil {
		return false
	}
	filter := c.constant(t.Filter, 0, w.GroupOut, w.KernelH, w.KernelW, w.GroupIn)
	c.add("ConvTranspose2d", []int{x, filter, c.constant(t.Bias, 0, w.GroupOut)}, t.Out, s[1], withWindow(w))
	return true
}

func (c *chain) pool(x int, v graph.Value) bool {
	w := graph.Window{KernelH: 2, KernelW: 1 + c.r.IntN(2), StrideH: 1 + c.r.IntN(2), StrideW: 1, DilationH: 1, DilationW: 1, Top: c.r.IntN(2)}
	n := graph.Node{Type: graph.NodeTypes[14], Params: &w}
	if v.Shape.Rank != 4 {
		return false
	}
	out, err := graph.WindowShape(&n, v.Shape)
	if err != nil {
		return false
	}
	if v.Datatype.IsFloat() && c.r.IntN(2) == 0 {
		c.add("AvgPooling2d", []int{x}, v.Datatype, out, withWindow(w))
		return true
	}
	return c.keep(c.add("MaxPooling2d", []int{x}, v.Datatype, out, withWindow(w)), x)
}

func (c *chain) connect(x int, v graph.Value) bool {
	t, ok := c.types(v.Datatype)
	if !ok {
		return false
	}
	out := v.Shape
	out.Dim[out.Rank-1] = 1 + c.r.IntN(9)
	if v.Datatype == graph.FP32 && c.r.IntN(2) == 0 {
		t = graph.Weighted{In: graph.QDInt8, Filter: graph.QCInt8, Bias: graph.FP32, Out: graph.FP32}
		x = c.quantized(x, 1)
	}
	filter := c.constant(t.Filter, 0, out.Last(), v.Shape.Last())
	c.add("FullyConnected", []int{x, filter, c.constant(t.Bias, 0, out.Last())}, t.Out, out)
	return true
}

func (c *chain) join(x int, v graph.Value) bool {
	out := v.Shape
	axis := c.r.IntN(out.Rank)
	out.Dim[axis] *= 2
	return c.keep(c.add("Concatenate2", []int{x, x}, v.Datatype, out, func(n *graph.Node) { graph.Params[graph.ConcatenateParams](n).Axis = axis }), x)
}

// TestChains runs random graphs on both engines. Differences grow from node to node: the tolerance of
// quantized outputs depends on the length of the graph, and floats computed from quantized values
// have a larger tolerance.
func TestChains(t *testing.T) {
	xnntest.Library(t)
	pool := cpu.NewPool(2)
	defer pool.Close()
	rounds := 200
	if n, err := strconv.Atoi(os.Getenv("ETRUN_CHAINS")); err == nil {
		rounds = n
	}
	ran := 0
	for seed := range uint64(rounds) {
		g := randomGraph(seed, 7)
		if len(g.Args) == g.Inputs {
			continue
		}
		data := encode(g)
		want, repaired, err := execute(t, data, EngineGo, 0, pool)
		if err != nil {
			t.Fatalf("seed %d: reference: %v", seed, err)
		}
		got, _, err := execute(t, data, EngineNative, 0, nil)
		if errors.Is(err, delegate.ErrUnsupported) {
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: native: %v", seed, err)
		}
		s := sample{steps: stepsOf(g), loose: looseOf(g)}
		if err := s.differ(got, want, repaired); err != nil {
			t.Errorf("seed %d: %v: %v", seed, nodeNames(g), err)
		}
		ran++
	}
	if ran < rounds/2 {
		t.Errorf("%d of %d graphs ran on both engines, want at least half", ran, rounds)
	}
}

// exactNodes have the same quantized results on both engines.
var exactNodes = map[string]bool{"Clamp": true, "StaticTranspose": true, "StaticReshape": true, "StaticSlice": true,
	"StaticConstantPad": true, "MaxPooling2d": true, "Concatenate2": true, "Conv2d": true, "DepthwiseConv2d": true,
	"ConvTranspose2d": true, "FullyConnected": true, "Minimum": true, "Maximum": true}

// stepsOf is the tolerance of quantized outputs: a step per node, and 64 steps if a node sums up
// products of inexact elements.
func stepsOf(g *graph.Graph) int {
	inexact := false
	for i := range g.Nodes {
		t := g.Nodes[i].Type
		if inexact && (t.Convolution || t.Tag == graph.TagFullyConnected) {
			return 64
		}
		inexact = inexact || !exactNodes[t.Name]
	}
	return 1 + len(g.Nodes)
}

func looseOf(g *graph.Graph) float64 {
	loose := 1e-4
	for v := range g.Values {
		switch g.Values[v].Datatype {
		case graph.FP16:
			loose = max(loose, 0.02)
		case graph.QDInt8:
			loose = max(loose, 0.03)
		}
	}
	return loose
}

func nodeNames(g *graph.Graph) []string {
	var names []string
	for i := range g.Nodes {
		n := &g.Nodes[i]
		names = append(names, fmt.Sprintf("%s %v→%v", n.Type.Name, n.In, n.Out))
	}
	return names
}

// TestDynamicChains runs each random graph on one unit with different input sizes.
func TestDynamicChains(t *testing.T) {
	xnntest.Library(t)
	rounds := 60
	if n, err := strconv.Atoi(os.Getenv("ETRUN_CHAINS")); err == nil {
		rounds = n
	}
	ran := 0
	for seed := range uint64(rounds) {
		g := randomGraph(seed, 5)
		data := encode(g)
		a, err := compile(t, data, EngineNative)
		if err != nil {
			continue
		}
		b, err := compile(t, data, EngineGo)
		if err != nil {
			t.Fatal(err)
		}
		ran += runSizes(t, seed, g, a, b)
		a.Close()
		b.Close()
	}
	if ran < rounds {
		t.Errorf("got %d runs of %d graphs, want at least one per graph", ran, rounds)
	}
}

// runSizes runs a graph at several sizes on both engines and returns the number of valid ones.
func runSizes(t *testing.T, seed uint64, source *graph.Graph, a, b delegate.Image) (ran int) {
	native, err := a.Unit(delegate.Instance{})
	if err != nil {
		t.Fatal(err)
	}
	defer native.Close()
	reference, err := b.Unit(delegate.Instance{})
	if err != nil {
		t.Fatal(err)
	}
	defer reference.Close()
	m := newMaker(seed)
	g := a.(*image).Graph
	for range 8 {
		got := m.resized(g)
		want := make([]*tensor.Value, len(got))
		for i, v := range got {
			x := tensor.Make(v.Tensor.DType, v.Tensor.Sizes, nil, tensor.DynamicUnbound)
			x.Bind(append(tensor.AlignedBytes(x.NBytes())[:0], v.Tensor.Data...))
			value := tensor.TensorValue(x)
			want[i] = &value
		}
		errA, errB := native.Execute(context.Background(), got), reference.Execute(context.Background(), want)
		if errors.Is(errA, delegate.ErrArgument) && errors.Is(errB, delegate.ErrArgument) {
			continue
		}
		if errA != nil || errB != nil {
			t.Fatalf("seed %d: native: %v, reference: %v", seed, errA, errB)
		}
		s := sample{steps: stepsOf(source), loose: looseOf(source)}
		if err := s.differ(got, want, g); err != nil {
			t.Errorf("seed %d: %v: %v", seed, nodeNames(source), err)
		}
		ran++
	}
	return ran
}

// resized returns arguments whose inputs have up to twice the declared batch size, and heights and
// widths up to the declared ones.
func (m *maker) resized(g *graph.Graph) []*tensor.Value {
	factor := [3]float64{2 * m.r.Float64(), m.r.Float64(), m.r.Float64()}
	if m.r.IntN(3) == 0 {
		factor[1], factor[2] = 1, 1
	}
	var args []*tensor.Value
	for _, v := range g.Args {
		x := &g.Values[v]
		s := x.Shape
		for i := range min(3, s.Rank) {
			s.Dim[i] = max(1, int(float64(s.Dim[i])*factor[i]+0.5))
		}
		t := tensor.Make(x.Datatype.Info().Tensor, s.Dims(), nil, tensor.DynamicUnbound)
		t.Bind(tensor.AlignedBytes(t.NBytes()))
		if x.Input {
			copy(t.Data, m.bytes(x.Datatype, s))
		}
		value := tensor.TensorValue(t)
		args = append(args, &value)
	}
	return args
}
