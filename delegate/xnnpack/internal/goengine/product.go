package goengine

import (
	"math"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// In the reference, convolutions and matrix products are one computation: rows of numbers, gathered
// from the input, times a prepared filter. Quantized elements are integers in float32, whose sums
// are exact below 2²⁴, as are those of exactTerms products of 8-bit numbers. The int8 and float
// kernels are compared with these loops, which run where those kernels do not.
const exactTerms = 512

// filter is the prepared weights of a node: for each group a matrix of k rows and n columns, with
// one column per output channel.
type filter struct {
	groups, k, n int
	values       []float32 // [groups][k][n]; integers if quantized
	exact        bool      // the products are of integers
	scales       []float32 // quantized: one per column, [groups*n]
	block        int       // number of rows that share blockScales; 0 for none
	blockScales  []float32 // [k/block][n]
	bias         []float32 // of float sums, [groups*n], or nil
	int32Bias    []int32   // of quantized sums
}

// rowSource fills dst with the k numbers of which output row p of a group is computed.
type rowSource interface {
	row(dst []float32, group, p int)
}

// product is the parallel loop over the output rows of a node.
type product struct {
	e      *Unit
	node   *graph.Node
	filter *filter
	source rowSource
	image  *patch // of a depthwise convolution, in place of source
	rows   int
	out    int // output value
	first  int // index of the output element where row 0 starts
	result requantizer
	work   []rowTile // of the workers
}

type rowTile struct {
	rows, sums, part []float32
	int32s           []int32
}

// tileRows is the number of output rows that are computed at once.
const tileRows = 16

// multiply computes the product for all rows.
func (p *product) multiply() {
	for len(p.work) < p.e.threads() {
		p.work = append(p.work, rowTile{})
	}
	f := p.filter
	grain := max(1, 400_000/max(1, f.groups*f.k*f.n*tileRows))
	p.e.pool.Do(&p.e.run, (p.rows+tileRows-1)/tileRows, grain, p)
}

// Range computes the tiles [lo, hi) of rows.
func (p *product) Range(worker, lo, hi int) {
	w, f := &p.work[worker], p.filter
	w.rows, w.sums = grow(w.rows, tileRows*f.k), grow(w.sums, tileRows*f.n)
	w.part, w.int32s = grow(w.part, tileRows*f.n), grow(w.int32s, tileRows*f.n)
	for tile := lo; tile < hi; tile++ {
		from := tile * tileRows
		m := min(tileRows, p.rows-from)
		for g := range f.groups {
			clear(w.sums[:m*f.n])
			p.sum(w, g, from, m)
			for i := range m {
				p.finish(w, g, i, from+i)
			}
		}
	}
}

// sum computes the sums of m output rows of a group.
func (p *product) sum(w *rowTile, g, from, m int) {
	if p.image != nil {
		for i := range m {
			p.e.run.Poll()
			p.sumDepthwise(w, i, from+i)
		}
		return
	}
	k := p.filter.k
	for i := range m {
		p.source.row(w.rows[i*k:(i+1)*k], g, from+i)
	}
	if p.filter.exact {
		p.sumInt32(w, g, m)
	} else {
		p.sumFloats(w, g, m)
	}
}

// sumFloats adds float products, in steps that keep the part of the filter in cache.
func (p *product) sumFloats(w *rowTile, g, m int) {
	f := p.filter
	step := max(16, 1<<16/f.n)
	for k := 0; k < f.k; k += step {
		p.e.run.Poll()
		rows := min(step, f.k-k)
		simd.MulAdd(m, f.n, rows, w.rows[k:], f.k, 1, f.values[(g*f.k+k)*f.n:], f.n, w.sums, f.n)
	}
}

// sumInt32 adds integer products exactly. It scales the sum of each block before it adds it.
func (p *product) sumInt32(w *rowTile, g, m int) {
	f := p.filter
	clear(w.int32s[:m*f.n])
	step := exactTerms
	if f.block > 0 {
		step = min(step, f.block)
	}
	for k := 0; k < f.k; {
		p.e.run.Poll()
		rows := min(step, f.k-k)
		if f.block > 0 {
			rows = min(rows, f.block-k%f.block)
		}
		clear(w.part[:m*f.n])
		simd.MulAdd(m, f.n, rows, w.rows[k:], f.k, 1, f.values[(g*f.k+k)*f.n:], f.n, w.part, f.n)
		if f.block > 0 {
			scales := f.blockScales[k/f.block*f.n:][:f.n]
			for i := range m {
				for j, s := range scales {
					w.sums[i*f.n+j] += float32(w.part[i*f.n+j] * s)
				}
			}
		} else {
			for i, x := range w.part[:m*f.n] {
				w.int32s[i] += int32(x)
			}
		}
		k += rows
	}
}

// sumDepthwise adds the pixels of a window, each times its row of the filter, per channel.
func (p *product) sumDepthwise(w *rowTile, i, at int) {
	f, src := p.filter, p.image
	sums, int32s := w.sums[i*f.n:][:f.n], w.int32s[i*f.n:][:f.n]
	clear(int32s)
	image, oy, ox := src.Point(at)
	terms := 0
	for tap := range f.k {
		y, inY := src.Source(1, oy, tap/src.Kernel[2])
		x, inX := src.Source(2, ox, tap%src.Kernel[2])
		if inY && inX {
			addScaled(sums, src.X[((image*src.In[1]+y)*src.In[2]+x)*src.C:][:src.C], f.values[tap*f.n:])
		}
		if terms++; f.exact && (terms == exactTerms || tap == f.k-1) {
			terms = 0
			for j, x := range sums {
				int32s[j] += int32(x)
			}
			clear(sums)
		}
	}
}

// addScaled adds x·w to sums. len(sums) is a multiple of len(x).
func addScaled(sums, x, w []float32) {
	w = w[:len(sums)]
	if len(x) == len(sums) {
		for i, v := range x {
			sums[i] += float32(v * w[i])
		}
		return
	}
	each := len(sums) / len(x)
	for i := range sums {
		sums[i] += float32(x[i/each] * w[i])
	}
}

// finish converts the sums of row i of the tile, which is row at of the output, to elements.
func (p *product) finish(w *rowTile, g, i, at int) {
	f := p.filter
	first := p.first + (at*f.groups+g)*f.n
	sums, int32s := w.sums[i*f.n:][:f.n], w.int32s[i*f.n:][:f.n]
	x := &p.e.Graph.Values[p.out]
	if x.Datatype == graph.QInt8 || x.Datatype == graph.QUInt8 {
		for j, sum := range int32s {
			if f.int32Bias != nil {
				sum += f.int32Bias[g*f.n+j]
			}
			p.storeInt32(first+j, float32(sum)*p.result.scale(f.scales[g*f.n+j]), x.Datatype)
		}
		return
	}
	if f.exact && f.block == 0 {
		for j, sum := range int32s {
			sums[j] = float32(sum)
		}
	}
	if f.exact || f.scales != nil {
		p.scaleTokens(sums, g, at)
	}
	if f.bias != nil {
		for j, b := range f.bias[g*f.n:][:len(sums)] {
			sums[j] += b
		}
	}
	boundFloats(p.node, sums)
	p.storeFloats(first, sums, x.Datatype)
}

// scaleTokens scales the sums of a dynamically quantized row, or of floats times quantized weights.
func (p *product) scaleTokens(sums []float32, g, at int) {
	f := p.filter
	scale := float32(1)
	if tokens := p.e.Tokens[p.node.In[0]]; p.e.Graph.Values[p.node.In[0]].Datatype == graph.QDInt8 {
		scale = tokens[p.tokenOf(at)].Scale
	}
	for j := range sums {
		sums[j] *= scale
		if f.scales != nil {
			sums[j] *= f.scales[g*f.n+j]
		}
	}
}

// tokenOf returns the index of the dynamically quantized group from which output row at is
// computed.
func (p *product) tokenOf(at int) int {
	row := at + p.first/max(1, p.filter.groups*p.filter.n)
	return row * len(p.e.Tokens[p.node.In[0]]) / p.totalRows()
}

func (p *product) totalRows() int {
	return p.e.Shapes[p.out].Numel() / (p.filter.groups * p.filter.n)
}

func (p *product) storeInt32(i int, x float32, d graph.Datatype) {
	q := graph.Quantize(x, p.result.zero, p.result.lo, p.result.hi)
	if d == graph.QInt8 {
		tensor.View[int8](p.e.Bytes[p.out])[i] = int8(q)
	} else {
		p.e.Bytes[p.out][i] = uint8(q)
	}
}

func (p *product) storeFloats(first int, src []float32, d graph.Datatype) {
	b := p.e.Bytes[p.out]
	switch d {
	case graph.FP32:
		copy(tensor.View[float32](b)[first:], src)
	case graph.FP16:
		graph.EncodeFP16(tensor.View[uint16](b)[first:], src)
	case graph.BF16:
		graph.EncodeBF16(tensor.View[uint16](b)[first:], src)
	}
}

// requantizer converts sums of quantized products to elements of the output.
type requantizer struct {
	in, out      float32 // scales
	zero, lo, hi int32
}

func (r *requantizer) scale(filter float32) float32 { return float32(r.in*filter) / r.out }

// requantizerOf returns the conversion of a node from the scale of its input to that of its output.
func requantizerOf(g *graph.Graph, n *graph.Node) requantizer {
	in, out := &g.Values[n.In[0]], &g.Values[n.Out[0]]
	r := requantizer{in: in.Quant.Scale, out: out.Quant.Scale, zero: out.Quant.ZeroPoint}
	switch out.Datatype {
	case graph.QInt8:
		r.lo, r.hi = -128, 127
	case graph.QUInt8:
		r.lo, r.hi = 0, 255
	default:
		return r
	}
	lo, hi := r.lo, r.hi
	if !math.IsInf(float64(n.Min), -1) {
		r.lo = graph.Quantize(n.Min/r.out, r.zero, lo, hi)
	}
	if !math.IsInf(float64(n.Max), 1) {
		r.hi = graph.Quantize(n.Max/r.out, r.zero, lo, hi)
	}
	return r
}

// factors returns the elements of a value as floats for products: the numbers of float values, and
// the differences from the zero point for quantized ones.
func (e *Unit) factors(slot, v int) []float32 {
	x := &e.Graph.Values[v]
	n := e.Shapes[v].Numel()
	switch x.Datatype {
	case graph.QInt8:
		e.slots[slot] = grow(e.slots[slot], n)
		for i, q := range tensor.View[int8](e.Bytes[v])[:n] {
			e.slots[slot][i] = float32(int32(q) - x.Quant.ZeroPoint)
		}
	case graph.QUInt8:
		e.slots[slot] = grow(e.slots[slot], n)
		for i, q := range e.Bytes[v][:n] {
			e.slots[slot][i] = float32(int32(q) - x.Quant.ZeroPoint)
		}
	case graph.QDInt8:
		e.slots[slot] = grow(e.slots[slot], n)
		each := n / len(e.Tokens[v])
		for i, q := range tensor.View[int8](e.Bytes[v])[:n] {
			e.slots[slot][i] = float32(int32(q) - e.Tokens[v][i/each].Zero)
		}
	default:
		return e.load(slot, v)
	}
	return e.slots[slot]
}

// boundFloats clamps numbers to the node's bounds, in place.
func boundFloats(n *graph.Node, x []float32) {
	if n.Min == -graph.Inf && n.Max == graph.Inf {
		return
	}
	simd.Clamp(x, x, n.Min, n.Max)
}

// grow returns a slice of n elements, in the memory of s if it is large enough. Their values are not specified.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// reserve makes sure that each worker has so many floats in e.lines. Only loops that work cannot
// know, those of tests, allocate.
func (e *Unit) reserve(floats int) {
	for i := range e.lines {
		e.lines[i] = grow(e.lines[i], floats)
	}
}
