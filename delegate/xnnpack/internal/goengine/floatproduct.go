package goengine

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/gemm"
	"github.com/etrun-go/etrun/internal/simd"
)

// floatProduct multiplies rows of floats by a packed filter, in tiles of rows. Tiles are divided into
// parts of the columns if there are too few of them for all threads.
type floatProduct struct {
	node       *graph.Node
	filter     *floatFilter
	x, y       []float32
	rows, tile int // rows of y and of a tile
	tiles      int // number of tiles
	parts      int // number of parts of the panels of a group
	groups     int
	source     floatRows
	e          *frame
	units      int // of the parallel loop
	grain      int
}

// floatRows is a source of rows, which are multiplied by a filter.
type floatRows interface {
	// dense returns the rows of a group, starting with row p, and their distance in elements. It
	// returns nil if rows must be gathered.
	dense(group, p int) ([]float32, int)
	// gather writes elements [k, k+n) of rows [p, p+rows) of a group to dst, with rows n apart.
	gather(dst []float32, group, p, rows, k, n int)
}

const macsPerRange = gemm.MACsPerRange

// plan divides the work. The fields up to source must be set, except tile, tiles and parts.
func (p *floatProduct) plan(e *frame) {
	threads, m := e.threads(), p.filter.panels[0]
	p.tile, p.parts, p.e = p.tileRows(), 1, e
	p.tiles = graph.CeilDiv(p.rows, p.tile)
	if threads > 1 && p.tiles*p.groups < 4*threads && gemm.Work(p.rows, m.N, m.K) >= 2*macsPerRange/p.groups {
		p.share(threads, m.Panels())
	}
	p.units, p.grain = p.tiles*p.groups*p.parts, 1+macsPerRange*p.parts/max(1, gemm.Work(p.tile, m.N, m.K))
}

// manyPanels is a number of panels per thread that are shared evenly. leastRows is about the least number of rows of a tile.
const manyPanels, leastRows = 8, 16

// share divides few tiles among threads: as many rows for each thread, so that it finds in its caches most of what it wrote in the node
// before, and parts of the columns for those that end first. Of a single tile with many panels the columns are enough.
func (p *floatProduct) share(threads, panels int) {
	p.parts = min(panels, 2*threads)
	if p.tiles > 1 || panels < manyPanels*threads {
		p.tile = graph.CeilDiv(p.rows, min(graph.RoundUp(p.tiles, threads), graph.CeilDiv(p.rows, leastRows)))
		p.tiles = graph.CeilDiv(p.rows, p.tile)
	}
}

// tileRows returns the number of rows of a tile. All tiles have about as many.
func (p *floatProduct) tileRows() int {
	rows := graph.GatheredRows
	if a, _ := p.source.dense(0, 0); a != nil {
		rows = graph.DenseRows(p.filter.panels[0].K)
	}
	tiles := graph.CeilDiv(p.rows, rows)
	return max(1, min(rows, p.rows, graph.RoundUp(graph.CeilDiv(p.rows, max(1, tiles)), evenRows)))
}

// evenRows is a multiple of the rows that products compute at once.
const evenRows = 24

// multiplyAll computes y.
func (p *floatProduct) multiplyAll() {
	if p.rows == 0 {
		return
	}
	if a, _ := p.source.dense(0, 0); a == nil {
		p.e.reserve(p.tile * min(graph.GatheredDepth, p.filter.panels[0].K))
	}
	p.e.Parallel(p.units, p.grain, p)
}

var _ cpu.Body = (*floatProduct)(nil)

// Range computes parts of tiles [lo, hi).
func (p *floatProduct) Range(worker, lo, hi int) {
	for t := lo; t < hi; t++ {
		part, rest := t%p.parts, t/p.parts
		p.multiply(worker, rest/p.tiles, rest%p.tiles*p.tile, part)
	}
}

// multiply computes a part of the columns of a group, for the tile that starts at row first.
func (p *floatProduct) multiply(worker, group, first, part int) {
	p.e.run.Poll()
	m, rows := p.filter.panels[group], min(p.tile, p.rows-first)
	from, to := m.Panels()*part/p.parts, m.Panels()*(part+1)/p.parts
	ldc := p.groups * m.N
	bias, y, lo, hi := p.filter.bias[group*m.N:], p.y[first*ldc+group*m.N:], p.node.Min, p.node.Max
	if a, lda := p.source.dense(group, first); a != nil {
		m.Mul(rows, a, lda, bias, y, ldc, lo, hi, from, to)
		finishPanels(p.node, m, y, rows, ldc, from, to)
		return
	}
	start, lds, low, high := bias, 0, -graph.Inf, graph.Inf
	for k := 0; k < m.K; k += graph.GatheredDepth {
		p.e.run.Poll()
		n, a := min(graph.GatheredDepth, m.K-k), p.e.workers[worker].line[:rows*min(graph.GatheredDepth, m.K-k)]
		p.source.gather(a, group, first, rows, k, n)
		if k+n == m.K {
			low, high = lo, hi
		}
		m.MulAdd(rows, k, n, a, n, start, lds, y, ldc, low, high, from, to)
		start, lds = y, ldc
	}
	finishPanels(p.node, m, y, rows, ldc, from, to)
}

// matrix is a source of rows that are stored ld elements apart.
type matrix struct {
	x  []float32
	ld int
	k  int // of a group
}

func (m *matrix) dense(group, p int) ([]float32, int) { return m.x[p*m.ld+group*m.k:], m.ld }

func (m *matrix) gather([]float32, int, int, int, int, int) {}

// denseProduct is a product whose source is a matrix.
type denseProduct struct {
	floatProduct
	rows matrix
}

func (l *denseProduct) bind(e *frame, n *graph.Node) {
	p, k := &l.floatProduct, n.InputChannels(e.graph)
	p.node, p.filter, p.groups = n, e.filterOf(n), 1
	p.x, p.y = e.load(0, n.In[0]), e.result(n.Out[0])
	p.rows = len(p.y) / p.filter.panels[0].N
	l.rows = matrix{x: p.x, ld: k, k: k}
	p.source = &l.rows
	p.plan(e)
}

func (l *denseProduct) run(*frame, *graph.Node) { l.multiplyAll() }

// finishNode applies the function that is merged into a node, if any, to columns [from, from+cols) of
// rows of ld elements.
func finishNode(n *graph.Node, y []float32, rows, ld, from, cols int) {
	if n.Then == nil || cols <= 0 {
		return
	}
	if cols == ld {
		elements[n.Then.Type.Tag].f(n.Then, y[:rows*ld], y)
		return
	}
	for i := range rows {
		row := y[i*ld+from:][:cols]
		elements[n.Then.Type.Tag].f(n.Then, row, row)
	}
}

// finishPanels does that for the columns of panels [from, to) of a matrix.
func finishPanels(n *graph.Node, m *gemm.Panels, y []float32, rows, ld, from, to int) {
	from *= simd.PanelCols
	finishNode(n, y, rows, ld, from, min(to*simd.PanelCols, m.N)-from)
}

// filterOf returns the node's packed filter: the image's, or one packed from the operands of this
// call.
func (e *frame) filterOf(n *graph.Node) *floatFilter {
	if f := e.packed.floats[n.At]; f != nil {
		return f
	}
	v := n.In[1]
	numbers := e.load(2, v)
	f := packers[n.Type.Tag](e.graph, n, func(from, k, cols, run, row, col int) *gemm.Panels {
		return gemm.Pack(numbers[from:], k, cols, run, row, col)
	})
	f.setTaps(n, numbers)
	f.bias = e.biasOf(n)
	return f
}

// connectedWork is of operands, and a filter that is packed in each run.
func connectedWork(w *work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) {
	decodeWork(w, g, n, s, threads)
	if !packsFloats(g, n) {
		w.kept = graph.Plus(w.kept, graph.Times(4, panelElements(g, n, s)+s[n.Out[0]].Last()))
	}
}
