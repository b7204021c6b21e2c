package xnnpack

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graphtest"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// rowRounds is the number of random graphs of each datatype row; ETRUN_ROWS sets another one.
func rowRounds() int {
	if n, err := strconv.Atoi(os.Getenv("ETRUN_ROWS")); err == nil {
		return n
	}
	return 20
}

// TestDatatypeRows runs random products and convolutions of every datatype row on both engines: with and
// without bias, groups and bounds, with scales of very different channels and all zero points.
func TestDatatypeRows(t *testing.T) {
	xnntest.Library(t)
	var list []graphtest.Sample
	add := func(name string, types graph.Weighted, seed int, build func(r *rowMaker) *graph.Graph) {
		r := &rowMaker{graphtest.NewMaker(uint64(seed)), types}
		loose := graphtest.ToleranceFor(types)
		if types.In == graph.QDInt8 { // rounding to another step changes sums
			loose = max(loose, 1e-4)
		}
		list = append(list, graphtest.Sample{Name: fmt.Sprintf("%s %v, seed %d", name, types, seed), Graph: build(r), Steps: 1, Loose: loose})
	}
	for seed := range rowRounds() {
		for _, types := range graph.FullyConnectedTypes {
			if types.In != graph.BF16 && types.Filter != graph.BF16 { // not for the library
				add("FullyConnected", types, seed, (*rowMaker).product)
			}
		}
		for _, types := range graph.ConvolutionTypes {
			for _, kind := range []string{"Conv2d", "DepthwiseConv2d", "ConvTranspose2d"} {
				if types.In != graph.BF16 {
					add(kind, types, seed, func(r *rowMaker) *graph.Graph { return r.convolution(kind) })
				}
			}
		}
	}
	compareEngines(t, list)
}

// rowMaker makes random graphs of a datatype row.
type rowMaker struct {
	*graphtest.Maker
	types graph.Weighted
}

func (r *rowMaker) product() *graph.Graph {
	r.Lo, r.Hi = -1, 1
	k, cols := 32*(1+r.R.IntN(3)), 1+r.R.IntN(40)
	x := r.Activations(r.types, 1, 1+r.R.IntN(9), k)
	dims, channel, flags := []int{cols, k}, 0, uint32(0)
	if r.types.Filter.Info().Bits != 4 && r.R.IntN(2) == 0 {
		dims, channel, flags = []int{k, cols}, 1, graph.FlagTransposeWeights
	}
	filter := r.filter(channel, dims...)
	in := []int{x, filter, r.bias(x, filter, cols)}
	y := r.output(1, cols)
	r.Graph.Values[y].Shape.Dim[0] = r.Graph.Values[x].Shape.Dim[0]
	r.Node("FullyConnected", in, []int{y}, func(n *graph.Node) { n.Flags = flags }, r.bounds)
	return r.Fix(y)
}

func (r *rowMaker) convolution(kind string) *graph.Graph {
	r.Lo, r.Hi = -1, 1
	w := graph.Window{KernelH: 1 + r.R.IntN(3), KernelW: 1 + r.R.IntN(3), StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1,
		Groups: 1 + r.R.IntN(3), GroupIn: 1 + r.R.IntN(20), GroupOut: 1 + r.R.IntN(20)}
	if kind == "DepthwiseConv2d" {
		w.Groups, w.GroupIn, w.GroupOut = 1+r.R.IntN(40), 1, 1+r.R.IntN(2)
	}
	w.Top, w.Left = r.R.IntN(w.KernelH), r.R.IntN(w.KernelW)
	out := w.Groups * w.GroupOut
	x := r.Activations(r.types, 3, 1+r.R.IntN(2), 3+r.R.IntN(6), 3+r.R.IntN(6), w.Groups*w.GroupIn)
	channel, dims := 0, []int{out, w.KernelH, w.KernelW, w.GroupIn}
	if kind == "DepthwiseConv2d" {
		channel, dims = 3, []int{1, w.KernelH, w.KernelW, out}
	}
	filter := r.filter(channel, dims...)
	y := r.output(1, 1, 1, out)
	r.Node(kind, []int{x, filter, r.bias(x, filter, out)}, []int{y}, graphtest.WithWindow(w), r.bounds)
	return r.Fix(y)
}

// filter adds a filter whose channels have very different scales.
func (r *rowMaker) filter(channel int, dims ...int) int {
	v := r.Constant(r.types.Filter, channel, dims...)
	q := &r.Graph.Values[v].Quant
	for i := range q.Scales {
		q.Scales[i] = float32(math.Exp2(-4 - 8*r.R.Float64()))
	}
	if r.types.Filter == graph.QUInt8 {
		q.ZeroPoint = r.R.Int32N(256)
	}
	return v
}

// bias returns a bias as large as the sums, or none.
func (r *rowMaker) bias(x, filter, channels int) int {
	if r.R.IntN(2) == 0 {
		return graph.None
	}
	v := r.Constant(r.types.Bias, 0, channels)
	b := &r.Graph.Values[v]
	q, f := &r.Graph.Values[x].Quant, &r.Graph.Values[filter].Quant
	switch b.Datatype {
	case graph.QInt32:
		b.Quant.Scale, b.Quant.ZeroPoint = q.Scale*f.Scale, 0
	case graph.QCInt32:
		for i := range b.Quant.Scales {
			b.Quant.Scales[i] = q.Scale * f.Scales[i]
		}
	}
	return v
}

// output adds an output with any zero point.
func (r *rowMaker) output(dims ...int) int {
	v := r.Value(r.types.Out, dims...)
	switch q := &r.Graph.Values[v].Quant; r.types.Out {
	case graph.QInt8:
		q.Scale, q.ZeroPoint = 0.5, r.R.Int32N(256)-128
	case graph.QUInt8:
		q.Scale, q.ZeroPoint = 0.5, r.R.Int32N(256)
	}
	return v
}

func (r *rowMaker) bounds(n *graph.Node) {
	if r.R.IntN(2) == 0 {
		n.Min, n.Max = [...]float32{0, -1.5, -graph.Inf}[r.R.IntN(3)], [...]float32{graph.Inf, 2.5, 6}[r.R.IntN(3)]
	}
}

// TestBiasOfQuantizedFilter checks the meaning of a bias of floats beside a filter with scales: it is added to
// the scaled sums. The library scales it as well, so such nodes are not for the library.
func TestBiasOfQuantizedFilter(t *testing.T) {
	for _, filter := range []graph.Datatype{graph.QCInt8, graph.QCInt4} {
		for _, bias := range []bool{false, true} {
			m := graphtest.NewMaker(3)
			const rows, k, cols = 3, 32, 5
			x, f, b := m.Input(graph.FP32, rows, k), m.Constant(filter, 0, cols, k), graph.None
			if bias {
				b = m.Constant(graph.FP32, 0, cols)
			}
			y := m.Value(graph.FP32, rows, cols)
			m.Node("FullyConnected", []int{x, f, b}, []int{y})
			g := m.Done(y)
			for _, engine := range []Engine{EngineGo, EngineAuto} {
				u, _ := mustUnit(t, g, engine, delegate.Instance{})
				args := graphtest.NewMaker(7).Arguments(g)
				mustExecute(t, u, args)
				for i, got := range graphtest.NumbersOf(args[1].Tensor) {
					want := sumOf(g, tensor.View[float32](args[0].Tensor.Data)[i/cols*k:][:k], f, b, i%cols)
					if math.Abs(got-want) > 1e-5 {
						t.Errorf("%s, bias %t, %v, element %d: got %v, want %v", engine, bias, filter, i, got, want)
					}
				}
			}
		}
	}
}

// sumOf returns an output element of a product with a filter of int8 or 4-bit elements.
func sumOf(g *graph.Graph, x []float32, f, b, channel int) (sum float64) {
	v := &g.Values[f]
	for i := range x {
		at := channel*len(x) + i
		q := float64(int8(v.Data[at*v.Datatype.Info().Bits/8]))
		if v.Datatype == graph.QCInt4 {
			q = float64(v.Data[at/2]>>(4*(at%2))&15) - 8
		}
		sum += float64(x[i]) * q * float64(v.Quant.Scales[channel])
	}
	if b != graph.None {
		sum += float64(tensor.View[float32](g.Values[b].Data)[channel])
	}
	return sum
}
