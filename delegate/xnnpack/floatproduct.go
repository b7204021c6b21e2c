package xnnpack

import (
	"github.com/etrun-go/etrun/hal/cpu"
)

// floatProduct multiplies rows of floats by a packed filter: tiles of rows, cut into parts
// of the columns where rows alone would leave threads idle.
type floatProduct struct {
	node       *node
	filter     *floatFilter
	x, y       []float32
	rows, tile int // of y, and of a tile of it
	tiles      int // of rows
	parts      int // of the panels of a group
	groups     int
	source     floatRows
	work       [][]float32 // rows that workers gathered
}

// floatRows are the rows that a filter is multiplied with.
type floatRows interface {
	// dense gives rows from p on of a group where they lie in memory as they are wanted, and
	// how far apart they are; nil where they have to be gathered.
	dense(group, p int) ([]float32, int)
	// gather writes elements [k, k+n) of rows [p, p+rows) of a group to dst, n apart.
	gather(dst []float32, group, p, rows, k, n int)
}

const (
	// macsPerRange is the work of about 20 µs, the least to give to a thread.
	macsPerRange = 600_000
	// gatheredRows by gatheredDepth elements are gathered at a time, and stay in the
	// second-level cache while all panels pass over them.
	gatheredRows, gatheredDepth = 64, 512
)

// run computes y. Fields up to source are set, but for tile, tiles and parts.
func (p *floatProduct) run(e *reference) {
	if p.rows == 0 {
		return
	}
	threads := e.threads()
	m := p.filter.panels[0]
	p.tile, p.parts = min(gatheredRows, p.rows), 1
	p.tiles = (p.rows + p.tile - 1) / p.tile
	macs := max(1, p.tile*m.N*m.K)
	if p.tiles*p.groups < 2*threads && p.rows*m.N*m.K >= 2*macsPerRange/p.groups {
		p.parts = min(m.Panels(), 2*threads)
	}
	if a, _ := p.source.dense(0, 0); a == nil {
		p.reserve(threads)
	}
	e.Parallel(p.tiles*p.groups*p.parts, 1+macsPerRange*p.parts/macs, p)
}

// reserve gives each worker memory for gathered rows.
func (p *floatProduct) reserve(threads int) {
	for len(p.work) < threads {
		p.work = append(p.work, nil)
	}
	for i := range p.work {
		p.work[i] = grow(p.work[i], gatheredRows*gatheredDepth)
	}
}

var _ cpu.Body = (*floatProduct)(nil)

// Range computes tiles [lo, hi).
func (p *floatProduct) Range(worker, lo, hi int) {
	for t := lo; t < hi; t++ {
		part, rest := t%p.parts, t/p.parts
		p.multiply(worker, rest/p.tiles, rest%p.tiles*p.tile, part)
	}
}

// multiply computes rows from first on of a group, and a part of its columns.
func (p *floatProduct) multiply(worker, group, first, part int) {
	m, rows := p.filter.panels[group], min(p.tile, p.rows-first)
	from, to := m.Panels()*part/p.parts, m.Panels()*(part+1)/p.parts
	ldc := p.groups * m.N
	bias, y, lo, hi := p.filter.bias[group*m.N:], p.y[first*ldc+group*m.N:], p.node.Min, p.node.Max
	if a, lda := p.source.dense(group, first); a != nil {
		m.Mul(rows, a, lda, bias, y, ldc, lo, hi, from, to)
		return
	}
	start, lds, low, high := bias, 0, -inf, inf
	for k := 0; k < m.K; k += gatheredDepth {
		n, a := min(gatheredDepth, m.K-k), p.work[worker]
		p.source.gather(a, group, first, rows, k, n)
		if k+n == m.K {
			low, high = lo, hi
		}
		m.MulAdd(rows, k, n, a, n, start, lds, y, ldc, low, high, from, to)
		start, lds = y, ldc
	}
}

// matrix is rows that lie side by side.
type matrix struct {
	x  []float32
	ld int
	k  int // of a group
}

func (m *matrix) dense(group, p int) ([]float32, int) { return m.x[p*m.ld+group*m.k:], m.ld }

func (m *matrix) gather([]float32, int, int, int, int, int) {}

// floatFullyConnected multiplies rows of the input by the filter.
func (e *reference) floatFullyConnected(n *node) {
	p, k := &e.float, n.inputChannels(e.graph)
	p.node, p.filter, p.groups = n, e.filterOf(n), 1
	p.x, p.y = e.load(0, n.In[0]), e.result(n.Out[0])
	p.rows = len(p.y) / p.filter.panels[0].N
	e.dense = matrix{x: p.x, ld: k, k: k}
	p.source = &e.dense
	p.run(e)
	e.store(n.Out[0])
}
