package xnnpack

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
	"github.com/etrun-go/etrun/delegate"
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
	var list []sample
	add := func(name string, types weighted, seed int, build func(r *rowMaker) *graph) {
		r := &rowMaker{newMaker(uint64(seed)), types}
		loose := looseFor(types)
		if types.in == qdint8 { // rounding to another step changes sums
			loose = max(loose, 1e-4)
		}
		list = append(list, sample{name: fmt.Sprintf("%s %v, seed %d", name, types, seed), graph: build(r), steps: 1, loose: loose})
	}
	for seed := range rowRounds() {
		for _, types := range fullyConnectedTypes {
			if types.in != bf16 && types.filter != bf16 { // not for the library
				add("FullyConnected", types, seed, (*rowMaker).product)
			}
		}
		for _, types := range convolutionTypes {
			for _, kind := range []string{"Conv2d", "DepthwiseConv2d", "ConvTranspose2d"} {
				if types.in != bf16 {
					add(kind, types, seed, func(r *rowMaker) *graph { return r.convolution(kind) })
				}
			}
		}
	}
	compareEngines(t, list)
}

// rowMaker makes random graphs of a datatype row.
type rowMaker struct {
	*maker
	types weighted
}

func (r *rowMaker) product() *graph {
	r.lo, r.hi = -1, 1
	k, cols := 32*(1+r.r.IntN(3)), 1+r.r.IntN(40)
	x := r.activations(r.types, 1, 1+r.r.IntN(9), k)
	dims, channel, flags := []int{cols, k}, 0, uint32(0)
	if r.types.filter.info().bits != 4 && r.r.IntN(2) == 0 {
		dims, channel, flags = []int{k, cols}, 1, flagTransposeWeights
	}
	filter := r.filter(channel, dims...)
	in := []int{x, filter, r.bias(x, filter, cols)}
	y := r.output(1, cols)
	r.g.Values[y].Shape.dim[0] = r.g.Values[x].Shape.dim[0]
	r.node("FullyConnected", in, []int{y}, func(n *node) { n.Flags = flags }, r.bounds)
	return r.fix(y)
}

func (r *rowMaker) convolution(kind string) *graph {
	r.lo, r.hi = -1, 1
	w := window{kernelH: 1 + r.r.IntN(3), kernelW: 1 + r.r.IntN(3), strideH: 1, strideW: 1, dilationH: 1, dilationW: 1,
		groups: 1 + r.r.IntN(3), groupIn: 1 + r.r.IntN(20), groupOut: 1 + r.r.IntN(20)}
	if kind == "DepthwiseConv2d" {
		w.groups, w.groupIn, w.groupOut = 1+r.r.IntN(40), 1, 1+r.r.IntN(2)
	}
	w.top, w.left = r.r.IntN(w.kernelH), r.r.IntN(w.kernelW)
	out := w.groups * w.groupOut
	x := r.activations(r.types, 3, 1+r.r.IntN(2), 3+r.r.IntN(6), 3+r.r.IntN(6), w.groups*w.groupIn)
	channel, dims := 0, []int{out, w.kernelH, w.kernelW, w.groupIn}
	if kind == "DepthwiseConv2d" {
		channel, dims = 3, []int{1, w.kernelH, w.kernelW, out}
	}
	filter := r.filter(channel, dims...)
	y := r.output(1, 1, 1, out)
	r.node(kind, []int{x, filter, r.bias(x, filter, out)}, []int{y}, withWindow(w), r.bounds)
	return r.fix(y)
}

// filter adds a filter whose channels have very different scales.
func (r *rowMaker) filter(channel int, dims ...int) int {
	v := r.constant(r.types.filter, channel, dims...)
	q := &r.g.Values[v].Quant
	for i := range q.Scales {
		q.Scales[i] = float32(math.Exp2(-4 - 8*r.r.Float64()))
	}
	if r.types.filter == quint8 {
		q.ZeroPoint = r.r.Int32N(256)
	}
	return v
}

// bias returns a bias as large as the sums, or none.
func (r *rowMaker) bias(x, filter, channels int) int {
	if r.r.IntN(2) == 0 {
		return none
	}
	v := r.constant(r.types.bias, 0, channels)
	b := &r.g.Values[v]
	q, f := &r.g.Values[x].Quant, &r.g.Values[filter].Quant
	switch b.Datatype {
	case qint32:
		b.Quant.Scale, b.Quant.ZeroPoint = q.Scale*f.Scale, 0
	case qcint32:
		for i := range b.Quant.Scales {
			b.Quant.Scales[i] = q.Scale * f.Scales[i]
		}
	}
	return v
}

// output adds an output with any zero point.
func (r *rowMaker) output(dims ...int) int {
	v := r.value(r.types.out, dims...)
	switch q := &r.g.Values[v].Quant; r.types.out {
	case qint8:
		q.Scale, q.ZeroPoint = 0.5, r.r.Int32N(256)-128
	case quint8:
		q.Scale, q.ZeroPoint = 0.5, r.r.Int32N(256)
	}
	return v
}

func (r *rowMaker) bounds(n *node) {
	if r.r.IntN(2) == 0 {
		n.Min, n.Max = [...]float32{0, -1.5, -inf}[r.r.IntN(3)], [...]float32{inf, 2.5, 6}[r.r.IntN(3)]
	}
}

// TestBiasOfQuantizedFilter checks the meaning of a bias of floats beside a filter with scales: it is added to
// the scaled sums. The library scales it as well, so such nodes are not for the library.
func TestBiasOfQuantizedFilter(t *testing.T) {
	for _, filter := range []datatype{qcint8, qcint4} {
		for _, bias := range []bool{false, true} {
			m := newMaker(3)
			const rows, k, cols = 3, 32, 5
			x, f, b := m.input(fp32, rows, k), m.constant(filter, 0, cols, k), none
			if bias {
				b = m.constant(fp32, 0, cols)
			}
			y := m.value(fp32, rows, cols)
			m.node("FullyConnected", []int{x, f, b}, []int{y})
			g := m.done(y)
			for _, engine := range []Engine{EngineGo, EngineAuto} {
				u, _ := mustUnit(t, g, engine, delegate.Instance{})
				args := newMaker(7).arguments(g)
				mustExecute(t, u, args)
				for i, got := range numbersOf(args[1].Tensor) {
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
func sumOf(g *graph, x []float32, f, b, channel int) (sum float64) {
	v := &g.Values[f]
	for i := range x {
		at := channel*len(x) + i
		q := float64(int8(v.Data[at*v.Datatype.info().bits/8]))
		if v.Datatype == qcint4 {
			q = float64(v.Data[at/2]>>(4*(at%2))&15) - 8
		}
		sum += float64(x[i]) * q * float64(v.Quant.Scales[channel])
	}
	if b != none {
		sum += float64(tensor.View[float32](g.Values[b].Data)[channel])
	}
	return sum
}
