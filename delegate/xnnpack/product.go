package xnnpack

import (
	"math"

	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Convolutions and products of matrices are one computation in the reference: rows of
// numbers, gathered from the input, times a prepared filter. Quantized elements take
// part as whole numbers in float32, which sums them exactly as long as the sums stay
// below 2²⁴: exactTerms products of 8-bit numbers do. These loops are what the products of
// bytes and of floats are compared with, and they run where those two do not.
const exactTerms = 512

// filter is a node's weights, ready for products: for each group a matrix of k rows
// and n columns, one column an output channel.
type filter struct {
	groups, k, n int
	values       []float32 // [groups][k][n]; whole numbers if quantized
	exact        bool      // the products are of whole numbers
	scales       []float32 // quantized: of the columns, [groups*n]
	block        int       // rows that share blockScales, 0: none do
	blockScales  []float32 // [k/block][n]
	bias         []float32 // of float sums, [groups*n], or nil
	wholeBias    []int32   // of quantized sums
}

// rowSource fills dst with the numbers that make output row p of a group: k of them.
type rowSource interface {
	row(dst []float32, group, p int)
}

// product is the parallel loop over output rows of a node.
type product struct {
	e      *reference
	node   *node
	filter *filter
	source rowSource
	image  *patch // of a depthwise convolution, in place of source
	rows   int
	out    int // value
	first  int // element of the output that row 0 starts at
	result requantizer
	work   []rowTile // of the workers
}

type rowTile struct {
	rows, sums, part []float32
	whole            []int32
}

// tileRows is how many output rows are computed at once.
const tileRows = 16

// multiply runs the product over all rows.
func (p *product) multiply() {
	for len(p.work) < p.e.threads() {
		p.work = append(p.work, rowTile{})
	}
	f := p.filter
	grain := max(1, 400_000/max(1, f.groups*f.k*f.n*tileRows))
	p.e.pool.Do(&p.e.run, (p.rows+tileRows-1)/tileRows, grain, p)
}

// Range computes tiles of rows.
func (p *product) Range(worker, lo, hi int) {
	w, f := &p.work[worker], p.filter
	w.rows, w.sums = grow(w.rows, tileRows*f.k), grow(w.sums, tileRows*f.n)
	w.part, w.whole = grow(w.part, tileRows*f.n), grow(w.whole, tileRows*f.n)
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

// sum adds up m output rows of a group.
func (p *product) sum(w *rowTile, g, from, m int) {
	if p.image != nil {
		for i := range m {
			p.sumDepthwise(w, i, from+i)
		}
		return
	}
	k := p.filter.k
	for i := range m {
		p.source.row(w.rows[i*k:(i+1)*k], g, from+i)
	}
	if p.filter.exact {
		p.sumWhole(w, g, m)
	} else {
		p.sumFloats(w, g, m)
	}
}

// sumFloats adds the products of floats, in steps that keep the filter's part in
// cache.
func (p *product) sumFloats(w *rowTile, g, m int) {
	f := p.filter
	step := max(16, 1<<16/f.n)
	for k := 0; k < f.k; k += step {
		rows := min(step, f.k-k)
		simd.MulAdd(m, f.n, rows, w.rows[k:], f.k, 1, f.values[(g*f.k+k)*f.n:], f.n, w.sums, f.n)
	}
}

// sumWhole adds the products of whole numbers exactly; those of a block are scaled
// before they are added up.
func (p *product) sumWhole(w *rowTile, g, m int) {
	f := p.filter
	clear(w.whole[:m*f.n])
	step := exactTerms
	if f.block > 0 {
		step = min(step, f.block)
	}
	for k := 0; k < f.k; {
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
				w.whole[i] += int32(x)
			}
		}
		k += rows
	}
}

// sumDepthwise adds a window's pixels, each times its row of the filter, channel by
// channel.
func (p *product) sumDepthwise(w *rowTile, i, at int) {
	f, src := p.filter, p.image
	sums, whole := w.sums[i*f.n:][:f.n], w.whole[i*f.n:][:f.n]
	clear(whole)
	image, oy, ox := src.pixel(at)
	terms := 0
	for tap := range f.k {
		y := oy*src.w.strideH - src.top + tap/src.w.kernelW*src.w.dilationH
		x := ox*src.w.strideW - src.left + tap%src.w.kernelW*src.w.dilationW
		if row := src.at(image, y, x); row != nil {
			addScaled(sums, row, f.values[tap*f.n:])
		}
		if terms++; f.exact && (terms == exactTerms || tap == f.k-1) {
			terms = 0
			for j, x := range sums {
				whole[j] += int32(x)
			}
			clear(sums)
		}
	}
}

// addScaled adds x·w to sums, which has a whole number of elements for each of x.
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

// finish turns the sums of row i of the tile, row at of the output, into elements.
func (p *product) finish(w *rowTile, g, i, at int) {
	f := p.filter
	first := p.first + (at*f.groups+g)*f.n
	sums, whole := w.sums[i*f.n:][:f.n], w.whole[i*f.n:][:f.n]
	x := &p.e.graph.Values[p.out]
	if x.Datatype == qint8 || x.Datatype == quint8 {
		for j, sum := range whole {
			if f.wholeBias != nil {
				sum += f.wholeBias[g*f.n+j]
			}
			p.storeWhole(first+j, float32(sum)*p.result.scale(f.scales[g*f.n+j]), x.Datatype)
		}
		return
	}
	if f.exact && f.block == 0 {
		for j, sum := range whole {
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
	p.node.bound(sums)
	p.storeFloats(first, sums, x.Datatype)
}

// scaleTokens scales the sums of a dynamically quantized row, or of floats times
// quantized weights.
func (p *product) scaleTokens(sums []float32, g, at int) {
	f := p.filter
	scale := float32(1)
	if tokens := p.e.tokens[p.node.In[0]]; p.e.graph.Values[p.node.In[0]].Datatype == qdint8 {
		scale = tokens[p.tokenOf(at)].scale
	}
	for j := range sums {
		sums[j] *= scale
		if f.scales != nil {
			sums[j] *= f.scales[g*f.n+j]
		}
	}
}

// tokenOf is the group of dynamically quantized elements that output row at is made
// from.
func (p *product) tokenOf(at int) int {
	row := at + p.first/max(1, p.filter.groups*p.filter.n)
	return row * len(p.e.tokens[p.node.In[0]]) / p.totalRows()
}

func (p *product) totalRows() int {
	return p.e.shapes[p.out].numel() / (p.filter.groups * p.filter.n)
}

func (p *product) storeWhole(i int, x float32, d datatype) {
	q := quantize(x, p.result.zero, p.result.lo, p.result.hi)
	if d == qint8 {
		tensor.View[int8](p.e.bytes[p.out])[i] = int8(q)
	} else {
		p.e.bytes[p.out][i] = uint8(q)
	}
}

func (p *product) storeFloats(first int, src []float32, d datatype) {
	b := p.e.bytes[p.out]
	switch d {
	case fp32:
		copy(tensor.View[float32](b)[first:], src)
	case fp16:
		encodeFP16(tensor.View[uint16](b)[first:], src)
	case bf16:
		encodeBF16(tensor.View[uint16](b)[first:], src)
	}
}

// requantizer turns sums of quantized products into elements of the output.
type requantizer struct {
	in, out      float32 // scales
	zero, lo, hi int32
}

func (r *requantizer) scale(filter float32) float32 { return float32(r.in*filter) / r.out }

// requantizer of a node from its input's scale to its output's.
func (g *graph) requantizer(n *node) requantizer {
	in, out := &g.Values[n.In[0]], &g.Values[n.Out[0]]
	r := requantizer{in: in.Quant.Scale, out: out.Quant.Scale, zero: out.Quant.ZeroPoint}
	switch out.Datatype {
	case qint8:
		r.lo, r.hi = -128, 127
	case quint8:
		r.lo, r.hi = 0, 255
	default:
		return r
	}
	lo, hi := r.lo, r.hi
	if !math.IsInf(float64(n.Min), -1) {
		r.lo = quantize(n.Min/r.out, r.zero, lo, hi)
	}
	if !math.IsInf(float64(n.Max), 1) {
		r.hi = quantize(n.Max/r.out, r.zero, lo, hi)
	}
	return r
}

// whole gives a value's elements as floats for products: numbers of float values,
// distances from the zero point of quantized ones.
func (e *reference) whole(slot, v int) []float32 {
	x := &e.graph.Values[v]
	n := e.shapes[v].numel()
	switch x.Datatype {
	case qint8:
		e.slots[slot] = grow(e.slots[slot], n)
		for i, q := range tensor.View[int8](e.bytes[v])[:n] {
			e.slots[slot][i] = float32(int32(q) - x.Quant.ZeroPoint)
		}
	case quint8:
		e.slots[slot] = grow(e.slots[slot], n)
		for i, q := range e.bytes[v][:n] {
			e.slots[slot][i] = float32(int32(q) - x.Quant.ZeroPoint)
		}
	case qdint8:
		e.slots[slot] = grow(e.slots[slot], n)
		each := n / len(e.tokens[v])
		for i, q := range tensor.View[int8](e.bytes[v])[:n] {
			e.slots[slot][i] = float32(int32(q) - e.tokens[v][i/each].zero)
		}
	default:
		return e.load(slot, v)
	}
	return e.slots[slot]
}
