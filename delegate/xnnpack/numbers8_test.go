package xnnpack

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/internal/cases"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// bytesCase is a node of bytes, whose results are those of PyTorch: operands are dequantized, the node is computed on floats, and
// its results are quantized, half to even.
type bytesCase struct {
	name string
	from graph.Datatype
	to   graph.Datatype
	in   []int // sizes of the operands
	out  []int
	two  bool
	same bool // the output has the quantization of the input
	set  func(*graph.Node)
	want func(x, z []float64) []float64
}

// middle is how far from the middle between two steps a number may be that is rounded to either side, because floats are: functions
// of one number are exact.
func (c *bytesCase) middle() float64 {
	if c.two || len(c.in) > 1 {
		return 1e-4
	}
	return 0
}

// each applies a function to elements.
func each(f func(x, z float64) float64) func(x, z []float64) []float64 {
	return func(x, z []float64) []float64 {
		y := make([]float64, len(x))
		for i := range x {
			y[i] = f(x[i], z[i%len(z)])
		}
		return y
	}
}

// meanOf is the mean over the pixels of [1, side, side + 1, c].
func meanOf(c int) func(x, _ []float64) []float64 {
	return func(x, _ []float64) []float64 {
		y := make([]float64, c)
		for i := range x {
			y[i%c] += x[i] / float64(len(x)/c)
		}
		return y
	}
}

// resized is a bilinear resize of [1, h, w, c] to [1, toH, toW, c].
func resized(h, w, c, toH, toW int) func(x, _ []float64) []float64 {
	at := func(o, n, m int) (int, int, float64) {
		p := max(0, (float64(o)+0.5)*float64(n)/float64(m)-0.5)
		lo := min(int(p), n-1)
		return lo, min(lo+1, n-1), p - float64(lo)
	}
	return func(x, _ []float64) (y []float64) {
		for i := range toH {
			y0, y1, v := at(i, h, toH)
			for j := range toW {
				x0, x1, u := at(j, w, toW)
				for k := range c {
					top := x[(y0*w+x0)*c+k]*(1-u) + x[(y0*w+x1)*c+k]*u
					bottom := x[(y1*w+x0)*c+k]*(1-u) + x[(y1*w+x1)*c+k]*u
					y = append(y, top*(1-v)+bottom*v)
				}
			}
		}
		return y
	}
}

// bytesCases lists all nodes that compute on bytes, but those that multiply by filters.
func bytesCases(d graph.Datatype) (list []bytesCase) {
	other := graph.QInt8 + graph.QUInt8 - d
	for i := range graph.UnaryNodes {
		u := &graph.UnaryNodes[i]
		f, all := unaryOf[u.Name], bytesCase{name: u.Name, from: d, to: d, in: []int{256}, out: []int{256}, same: u.Name == "Clamp"}
		if u.Tag == graph.TagConvert {
			f = func(x float64) float64 { return x }
			cross := all
			cross.to, cross.want = other, each(func(x, _ float64) float64 { return x })
			list = append(list, cross)
		}
		all.set = func(n *graph.Node) {
			if graphtest.SetScalar(n, 0.3); u.Name == "Clamp" {
				n.Min, n.Max = -0.5, 1.25
			}
		}
		all.want = each(func(x, _ float64) float64 { return f(x) })
		list = append(list, all)
	}
	for i := range graph.BinaryNodes {
		name := graph.BinaryNodes[i].Name
		list = append(list, bytesCase{name: name, from: d, to: d, in: []int{2048}, out: []int{2048}, two: true, want: each(binaryOf[name])})
	}
	for _, side := range []int{1, 3, 7, 16} {
		for _, same := range []bool{false, true} {
			list = append(list, bytesCase{name: "GlobalAvgPooling2d", from: d, to: d, in: []int{1, side, side + 1, 50}, out: []int{1, 1, 1, 50}, same: same,
				want: meanOf(50)})
		}
	}
	for _, to := range [][2]int{{10, 14}, {8, 5}, {3, 21}} {
		list = append(list, bytesCase{name: "StaticResizeBilinear2D", from: d, to: d, in: []int{1, 5, 7, 9}, out: []int{1, to[0], to[1], 9}, same: true,
			set:  func(n *graph.Node) { n.Params = &graph.ResizeParams{Height: to[0], Width: to[1]} },
			want: resized(5, 7, 9, to[0], to[1])})
	}
	return list
}

// graph returns a graph of the node with random quantizations, and its operands and output.
func (c *bytesCase) graph(m *graphtest.Maker) (g *graph.Graph, in []int, y int) {
	in = []int{m.Input(c.from, c.in...)}
	if c.two {
		in = append(in, m.Input(c.from, c.in...))
	}
	y = m.Value(c.to, c.out...)
	if m.Graph.Values[y].Quant.Scale = 0.005 + 0.06*m.R.Float32(); c.same {
		m.Graph.Values[y].Quant = m.Graph.Values[in[0]].Quant
	}
	m.Node(c.name, in, []int{y}, func(n *graph.Node) {
		if c.set != nil {
			c.set(n)
		}
	})
	return m.Done(y), in, y
}

// dequantizedBytes returns the numbers of a tensor of value v.
func dequantizedBytes(g *graph.Graph, v int, t *tensor.Tensor) []float64 {
	x := graphtest.NumbersOf(t)
	for i := range x {
		x[i] = float64(float32(x[i]-float64(g.Values[v].Quant.ZeroPoint)) * g.Values[v].Quant.Scale)
	}
	return x
}

// TestNodesOfBytes compares the nodes of bytes of both engines with PyTorch's arithmetic, and thus with each other.
func TestNodesOfBytes(t *testing.T) {
	forEngines(t, func(t *testing.T, engine Engine) {
		for _, d := range []graph.Datatype{graph.QInt8, graph.QUInt8} {
			for _, c := range bytesCases(d) {
				for seed := range uint64(cases.Of(6, 60)) {
					t.Run(fmt.Sprintf("%s %v to %v %v %v %d", c.name, c.from, c.to, c.in, c.out, seed), func(t *testing.T) { c.check(t, engine, seed) })
				}
			}
		}
	})
}

func (c *bytesCase) check(t *testing.T, engine Engine, seed uint64) {
	m := graphtest.NewMaker(seed)
	g, in, y := c.graph(m)
	u, g := mustUnit(t, g, engine, delegate.Instance{})
	args := m.Arguments(g)
	if len(c.in) == 1 && !c.two {
		for k := range 256 {
			args[0].Tensor.Data[k] = uint8(k)
		}
	}
	mustExecute(t, u, args)
	x, z := dequantizedBytes(g, in[0], args[0].Tensor), []float64{0}
	if c.two {
		z = dequantizedBytes(g, in[1], args[1].Tensor)
	}
	q, lo, hi := g.Values[y].Quant, c.to.Info().MinZero, c.to.Info().MaxZero
	got := graphtest.NumbersOf(args[len(in)].Tensor)
	for k, w := range c.want(x, z) {
		if w != w || math.IsInf(w, 0) {
			continue // no function of numbers of 8 bits
		}
		want := graph.Quantize(float32(w)*(1/q.Scale), q.ZeroPoint, lo, hi)
		exact := min(max(w/float64(q.Scale)+float64(q.ZeroPoint), float64(lo)), float64(hi))
		if got[k] != float64(want) && !(math.Abs(exact-got[k]) < 0.5+c.middle() && c.middle() > 0) {
			t.Fatalf("element %d: got %v, want %d (%v), of %v and %v", k, got[k], want, exact, x[k%len(x)], z[k%len(z)])
		}
	}
}

// Means of bytes are sums of integers by one ratio on both engines: also those in the middle between two steps are the same.
func TestMeansOfBytes(t *testing.T) {
	for seed := range uint64(cases.Of(60, 600)) {
		d := []graph.Datatype{graph.QInt8, graph.QUInt8}[seed%2]
		side := 1 + int(seed)%9
		c := bytesCase{name: "GlobalAvgPooling2d", from: d, to: d, in: []int{2, side, side + 1, 70}, out: []int{2, 1, 1, 70}, same: seed%3 == 0}
		var results [][]float64
		forEngines(t, func(t *testing.T, engine Engine) {
			m := graphtest.NewMaker(seed)
			g, _, _ := c.graph(m)
			u, g := mustUnit(t, g, engine, delegate.Instance{})
			args := m.Arguments(g)
			mustExecute(t, u, args)
			results = append(results, graphtest.NumbersOf(args[1].Tensor))
		})
		if len(results) == 2 && !slices.Equal(results[0], results[1]) {
			t.Errorf("seed %d: Go %v, native %v", seed, results[0], results[1])
		}
	}
}
