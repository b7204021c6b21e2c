package floats

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/filters"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/frame"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/gemm"
	"github.com/etrun-go/etrun/internal/simd"
)

// floatProduct multiplies rows of floats by a packed filter, in tiles of rows. Tiles are divided into
// parts of the columns if there are too few of them for all threads.
type floatProduct struct {
	node       *graph.Node
	filter     *filters.Float
	x, y       []float32
	rows, tile int // rows of y and of a tile
	tiles      int // number of tiles
	parts      int // number of parts of the panels of a group
	groups     int
	source     floatRows
	e          *frame.Frame
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
func (p *floatProduct) plan(e *frame.Frame) {
	threads, m := e.Threads(), p.filter.Panels[0]
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
		rows = graph.DenseRows(p.filter.Panels[0].K)
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
		p.e.Reserve(p.tile * min(graph.GatheredDepth, p.filter.Panels[0].K))
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
	p.e.Run.Poll()
	m, rows := p.filter.Panels[group], min(p.tile, p.rows-first)
	from, to := m.Panels()*part/p.parts, m.Panels()*(part+1)/p.parts
	ldc := p.groups * m.N
	bias, y, lo, hi := p.filter.Bias[group*m.N:], p.y[first*ldc+group*m.N:], p.node.Min, p.node.Max
	if a, lda := p.source.dense(group, first); a != nil {
		m.Mul(rows, a, lda, bias, y, ldc, lo, hi, from, to)
		finishPanels(p.node, m, y, rows, ldc, from, to)
		return
	}
	start, lds, low, high := bias, 0, -graph.Inf, graph.Inf
	for k := 0; k < m.K; k += graph.GatheredDepth {
		p.e.Run.Poll()
		n, a := min(graph.GatheredDepth, m.K-k), p.e.Workers[worker].Line[:rows*min(graph.GatheredDepth, m.K-k)]
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

// Dense returns the loop of a fully connected layer.
func Dense(e *frame.Frame, n *graph.Node) frame.Loop { return e.OnFloats(n, &denseProduct{}) }

func (l *denseProduct) Bind(e *frame.Frame, n *graph.Node) {
	p, k := &l.floatProduct, n.InputChannels(e.Graph)
	p.node, p.filter, p.groups = n, filterOf(e, n), 1
	p.x, p.y = e.Load(0, n.In[0]), e.Result(n.Out[0])
	p.rows = len(p.y) / p.filter.Panels[0].N
	l.rows = matrix{x: p.x, ld: k, k: k}
	p.source = &l.rows
	p.plan(e)
}

func (l *denseProduct) Compute(*frame.Frame, *graph.Node) { l.multiplyAll() }

// finishNode applies the function that is merged into a node, if any, to columns [from, from+cols) of
// rows of ld elements.
func finishNode(n *graph.Node, y []float32, rows, ld, from, cols int) {
	if n.Then == nil || cols <= 0 {
		return
	}
	if cols == ld {
		frame.Elements[n.Then.Type.Tag].Apply(n.Then, y[:rows*ld], y)
		return
	}
	for i := range rows {
		row := y[i*ld+from:][:cols]
		frame.Elements[n.Then.Type.Tag].Apply(n.Then, row, row)
	}
}

// finishPanels does that for the columns of panels [from, to) of a matrix.
func finishPanels(n *graph.Node, m *gemm.Panels, y []float32, rows, ld, from, to int) {
	from *= simd.PanelCols
	finishNode(n, y, rows, ld, from, min(to*simd.PanelCols, m.N)-from)
}

// filterOf returns the node's packed filter: the image's, or one packed from the operands of this
// call.
func filterOf(e *frame.Frame, n *graph.Node) *filters.Float {
	if f := e.Packed.Floats[n.At]; f != nil {
		return f
	}
	return filters.NewFloat(&e.Values, n, e.Load(2, n.In[1]))
}

// ConnectedWork is of operands, and a filter that is packed in each run.
func ConnectedWork(w *frame.Work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) {
	frame.DecodeWork(w, g, n, s, threads)
	if !filters.PacksFloats(g, n) {
		w.Kept = graph.Plus(w.Kept, graph.Times(4, filters.PanelElements(g, n, s)+s[n.Out[0]].Last()))
	}
}
