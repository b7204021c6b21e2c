package goengine

import (
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/nhwc"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// plainLoop computes a node with a filter by the definition.
type plainLoop struct {
	filter  *filter // of a constant
	product plainProduct
	rows    denseRows
	patch   patch
}

func (*plainLoop) bind(*frame, *graph.Node) {}

func (l *plainLoop) run(e *frame, n *graph.Node) {
	switch {
	case n.Type.Tag == graph.TagFullyConnected:
		f := l.prepared(e, n)
		l.rows = denseRows{e.factors(0, n.In[0]), f.k}
		l.multiply(plainProduct{e: e, node: n, filter: f, source: &l.rows, rows: e.shapes[n.Out[0]].Numel() / f.n,
			out: n.Out[0], result: requantizerOf(e.graph, n)})
	case n.Type.Tag == graph.TagBatchMatrixMultiply:
		l.batches(e, n)
	default:
		l.convolution(e, n, l.prepared(e, n))
	}
	if n.Then != nil {
		y := e.result(n.Out[0])
		finishNode(n, y, 1, len(y), 0, len(y))
	}
}

func (l *plainLoop) multiply(p plainProduct) {
	p.work = l.product.work
	l.product = p
	l.product.multiply()
}

// convolution has one product row per output pixel, gathered from its window.
func (l *plainLoop) convolution(e *frame, n *graph.Node, f *filter) {
	in, out := e.shapes[n.In[0]], e.shapes[n.Out[0]]
	l.patch = patch{rowsOf(n, in, out, e.factors(0, n.In[0]))}
	p := plainProduct{e: e, node: n, filter: f, rows: out.Leading(3), out: n.Out[0], result: requantizerOf(e.graph, n)}
	if n.Type.Tag == graph.TagDepthwiseConv2d {
		p.image = &l.patch
	} else {
		p.source = &l.patch
	}
	l.multiply(p)
}

// batches multiplies batches of matrices. Outer dimensions of size 1 are broadcast.
func (l *plainLoop) batches(e *frame, n *graph.Node) {
	a, b, out := e.shapes[n.In[0]], e.shapes[n.In[1]], e.shapes[n.Out[0]]
	m, cols, k := out.FromEnd(1), out.FromEnd(0), a.FromEnd(0)
	x, w := e.factors(0, n.In[0]), e.factors(1, n.In[1])
	f := &filter{groups: 1, k: k, n: cols, values: make([]float32, k*cols), exact: e.graph.Values[n.In[0]].Datatype == graph.QDInt8}
	if f.exact {
		f.scales, w = e.graph.Values[n.In[1]].Quant.Scales, nil
		for _, q := range tensor.View[int8](e.data[n.In[1]]) {
			w = append(w, float32(q))
		}
	}
	for batch := range out.Leading(out.Rank - 2) {
		from := w[batchOffset(batch, out, b)*k*cols:][:k*cols]
		for i := range f.values {
			if at := i; n.Flags&graph.FlagTransposeWeights != 0 {
				f.values[i] = from[at%cols*k+at/cols]
			} else {
				f.values[i] = from[at]
			}
		}
		l.rows = denseRows{x[batchOffset(batch, out, a)*m*k:][:m*k], k}
		l.multiply(plainProduct{e: e, node: n, filter: f, source: &l.rows, rows: m, out: n.Out[0], first: batch * m * cols})
	}
}

// prepared returns the node's filter with its bias.
func (l *plainLoop) prepared(e *frame, n *graph.Node) *filter {
	if l.filter == nil || !e.graph.Values[n.In[1]].IsConst() {
		l.filter = e.newFilter(n)
	}
	e.prepareBias(l.filter, n)
	return l.filter
}

// plainTokens quantizes groups of elements, each with its own scale.
type plainTokens struct{}

func (plainTokens) bind(*frame, *graph.Node) {}

func (plainTokens) run(e *frame, n *graph.Node) {
	v, x, half := n.Out[0], e.load(0, n.In[0]), e.graph.Values[n.In[0]].Datatype == graph.FP16
	s := e.shapes[v]
	groups := s.Leading(s.Rank - e.graph.Values[v].Quant.Nonbatch)
	e.tokens[v] = pack.Grow(e.tokens[v], groups)
	out, size := tensor.View[int8](e.data[v]), len(x)/groups
	for g := range groups {
		t := dynamicToken(x[g*size : (g+1)*size])
		e.tokens[v][g] = t
		scale := reciprocal(t, half)
		for i, f := range x[g*size : (g+1)*size] {
			out[g*size+i] = int8(graph.Quantize(f*scale, t.zero, -128, 127))
		}
	}
}

// newPlainUnit returns a unit of an image with the plain loops, with which tests compare the others: products and elements are
// computed on numbers.
func newPlainUnit(m *Image, in delegate.Instance) *unit {
	e := newUnit(m, in)
	for i := range e.steps {
		if l := plainOf(e.steps[i].node, &e.frame); l != nil {
			e.steps[i].loop = l
		}
	}
	return e
}

// byteProducts returns the number of nodes whose loops multiply bytes.
func byteProducts(e *unit) (n int) {
	for i := range e.steps {
		if _, ok := e.steps[i].loop.(*int8Product); ok {
			n++
		}
	}
	return n
}

// plainOf returns the plain loop of a node, nil for none.
func plainOf(n *graph.Node, e *frame) loop {
	row := typeOf(n)
	switch f := binaryFuncs[n.Type.Tag]; {
	case n.Type.Packs:
		return &plainLoop{}
	case n.Type.Tag == graph.TagConvert && e.graph.Values[n.Out[0]].Datatype == graph.QDInt8:
		return plainTokens{}
	case n.Type.Tag == graph.TagConvert:
		return decoded{&copyFloats{}}
	case row.elements != nil:
		return decoded{&unaryLoop{f: row.elements, grain: elementsPerRange}}
	case f != nil:
		return decoded{&binaryLoop{f: f}}
	case n.Type.Tag == graph.TagMaxPooling2d:
		return decoded{&linePool{}}
	}
	return nil
}

// denseRows is a source of the rows of a matrix.
type denseRows struct {
	x []float32
	k int
}

func (r *denseRows) row(dst []float32, _, p int) { copy(dst, r.x[p*r.k:(p+1)*r.k]) }

// patch is a source of the same rows for the plain loops.
type patch struct{ nhwc.Rows[float32] }

func (p *patch) row(dst []float32, group, at int) {
	p.Gather(dst[:p.Kernel[1]*p.Kernel[2]*p.Group], group, at, 0, 0)
}

// Convolutions and matrix products are one computation here: rows of numbers, gathered
// from the input, times a prepared filter. Quantized elements are integers in float32, whose sums
// are exact below 2²⁴, as are those of exactTerms products of 8-bit numbers. The
// loops of the package are compared with these.
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

// plainProduct is the parallel loop over the output rows of a node.
type plainProduct struct {
	e      *frame
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
func (p *plainProduct) multiply() {
	for len(p.work) < p.e.threads() {
		p.work = append(p.work, rowTile{})
	}
	f := p.filter
	grain := max(1, 400_000/max(1, f.groups*f.k*f.n*tileRows))
	p.e.pool.Do(&p.e.run, (p.rows+tileRows-1)/tileRows, grain, p)
}

// Range computes the tiles [lo, hi) of rows.
func (p *plainProduct) Range(worker, lo, hi int) {
	w, f := &p.work[worker], p.filter
	w.rows, w.sums = pack.Grow(w.rows, tileRows*f.k), pack.Grow(w.sums, tileRows*f.n)
	w.part, w.int32s = pack.Grow(w.part, tileRows*f.n), pack.Grow(w.int32s, tileRows*f.n)
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
func (p *plainProduct) sum(w *rowTile, g, from, m int) {
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
func (p *plainProduct) sumFloats(w *rowTile, g, m int) {
	f := p.filter
	step := max(16, 1<<16/f.n)
	for k := 0; k < f.k; k += step {
		p.e.run.Poll()
		rows := min(step, f.k-k)
		simd.MulAdd(m, f.n, rows, w.rows[k:], f.k, 1, f.values[(g*f.k+k)*f.n:], f.n, w.sums, f.n)
	}
}

// sumInt32 adds integer products exactly. It scales the sum of each block before it adds it.
func (p *plainProduct) sumInt32(w *rowTile, g, m int) {
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
func (p *plainProduct) sumDepthwise(w *rowTile, i, at int) {
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
func (p *plainProduct) finish(w *rowTile, g, i, at int) {
	f := p.filter
	first := p.first + (at*f.groups+g)*f.n
	sums, int32s := w.sums[i*f.n:][:f.n], w.int32s[i*f.n:][:f.n]
	x := &p.e.graph.Values[p.out]
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
func (p *plainProduct) scaleTokens(sums []float32, g, at int) {
	f := p.filter
	scale := float32(1)
	if tokens := p.e.tokens[p.node.In[0]]; p.e.graph.Values[p.node.In[0]].Datatype == graph.QDInt8 {
		scale = tokens[p.tokenOf(at)].scale
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
func (p *plainProduct) tokenOf(at int) int {
	row := at + p.first/max(1, p.filter.groups*p.filter.n)
	return row * len(p.e.tokens[p.node.In[0]]) / p.totalRows()
}

func (p *plainProduct) totalRows() int {
	return p.e.shapes[p.out].Numel() / (p.filter.groups * p.filter.n)
}

func (p *plainProduct) storeInt32(i int, x float32, d graph.Datatype) {
	q := graph.Quantize(x, p.result.zero, p.result.lo, p.result.hi)
	if d == graph.QInt8 {
		tensor.View[int8](p.e.data[p.out])[i] = int8(q)
	} else {
		p.e.data[p.out][i] = uint8(q)
	}
}

func (p *plainProduct) storeFloats(first int, src []float32, d graph.Datatype) {
	b := p.e.data[p.out]
	switch d {
	case graph.FP32:
		copy(tensor.View[float32](b)[first:], src)
	case graph.FP16:
		graph.EncodeFP16(tensor.View[uint16](b)[first:], src)
	case graph.BF16:
		graph.EncodeBF16(tensor.View[uint16](b)[first:], src)
	}
}

// factors returns the elements of a value as floats for products: the numbers of float values, and
// the differences from the zero point for quantized ones.
func (e *frame) factors(slot, v int) []float32 {
	x := &e.graph.Values[v]
	n := e.shapes[v].Numel()
	switch x.Datatype {
	case graph.QInt8:
		e.slots[slot] = pack.Grow(e.slots[slot], n)
		for i, q := range tensor.View[int8](e.data[v])[:n] {
			e.slots[slot][i] = float32(int32(q) - x.Quant.ZeroPoint)
		}
	case graph.QUInt8:
		e.slots[slot] = pack.Grow(e.slots[slot], n)
		for i, q := range e.data[v][:n] {
			e.slots[slot][i] = float32(int32(q) - x.Quant.ZeroPoint)
		}
	case graph.QDInt8:
		e.slots[slot] = pack.Grow(e.slots[slot], n)
		each := n / len(e.tokens[v])
		for i, q := range tensor.View[int8](e.data[v])[:n] {
			e.slots[slot][i] = float32(int32(q) - e.tokens[v][i/each].zero)
		}
	default:
		return e.load(slot, v)
	}
	return e.slots[slot]
}
