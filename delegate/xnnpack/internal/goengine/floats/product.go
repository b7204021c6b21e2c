package floats

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/filters"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/frame"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/gemm"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/nhwc"
	"github.com/etrun-go/etrun/kernels/tensor"
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

// batchProduct computes products of matrices [m, k] and [k, n], or [n, k] if transposed. Outer dimensions of size 1 are broadcast.
type batchProduct struct {
	x, w, y    []float32
	m, k, n    int
	batches    int
	xAt, wAt   []int // index of the operand's matrix for each matrix of the output
	transposed bool
	byDots     bool          // few rows: the second matrix is read once, unpacked
	packed     []gemm.Panels // of w, if it is transposed and not byDots
	zeros      []float32     // [n]
	tile       int           // rows at a time
	tiles      int
	grain      int
}

// Batch returns the loop of products of matrices.
func Batch(e *frame.Frame, n *graph.Node) frame.Loop { return e.OnFloats(n, &batchProduct{}) }

func (p *batchProduct) Compute(e *frame.Frame, _ *graph.Node) {
	if p.transposed && !p.byDots {
		e.Parallel(len(p.packed), 1+frame.ElementsPerRange/max(1, p.k*p.n), (*batchPacking)(p))
	}
	e.Parallel(p.batches*p.tiles, p.grain, p)
}

func (p *batchProduct) Bind(e *frame.Frame, n *graph.Node) {
	a, b, out := e.Shapes[n.In[0]], e.Shapes[n.In[1]], e.Shapes[n.Out[0]]
	p.m, p.n, p.k = out.FromEnd(1), out.FromEnd(0), a.FromEnd(0)
	p.x, p.w, p.y = e.Load(0, n.In[0]), e.Load(1, n.In[1]), e.Result(n.Out[0])
	p.batches = out.Leading(out.Rank - 2)
	p.xAt, p.wAt = pack.Grow(p.xAt, p.batches), pack.Grow(p.wAt, p.batches)
	for i := range p.batches {
		p.xAt[i], p.wAt[i] = frame.BatchOffset(i, out, a), frame.BatchOffset(i, out, b)
	}
	p.transposed = n.Flags&graph.FlagTransposeWeights != 0
	p.byDots = p.transposed && p.m <= gemm.FewRows
	if p.transposed && !p.byDots {
		p.packed = pack.Grow(p.packed, b.Leading(b.Rank-2))
		size := gemm.Size(p.k, p.n, p.k)
		e.Staged = pack.Grow(e.Staged, 4*size*len(p.packed))
		staged := tensor.View[float32](e.Staged)
		for i := range p.packed {
			p.packed[i] = gemm.Place(staged[i*size:][:size], p.k, p.n)
		}
	}
	p.zeros = pack.Grow(p.zeros, p.n)
	p.tile = max(1, min(graph.GatheredRows, p.m))
	p.tiles = graph.CeilDiv(p.m, p.tile)
	p.grain = 1 + macsPerRange/max(1, p.tile*p.n*p.k)
}

// batchPacking is the parallel loop that packs the second matrices of a batchProduct.
type batchPacking batchProduct

// Range packs matrices [lo, hi).
func (p *batchPacking) Range(_, lo, hi int) {
	for i := lo; i < hi; i++ {
		p.packed[i].Repack(p.w[i*p.k*p.n:], 1, p.k)
	}
}

// Range computes tiles [lo, hi), counted over all matrices.
func (p *batchProduct) Range(_, lo, hi int) {
	for t := lo; t < hi; t++ {
		batch, first := t/p.tiles, t%p.tiles*p.tile
		rows := min(p.tile, p.m-first)
		x, y := p.x[(p.xAt[batch]*p.m+first)*p.k:], p.y[(batch*p.m+first)*p.n:]
		switch at := p.wAt[batch]; {
		case p.byDots:
			gemm.MulTransposed(rows, p.n, p.k, x, p.k, p.w[at*p.k*p.n:], p.k, y, p.n, nil)
		case p.transposed:
			p.packed[at].Mul(rows, x, p.k, p.zeros, y, p.n, -graph.Inf, graph.Inf, 0, p.packed[at].Panels())
		default:
			simd.MulAddTo(rows, p.n, p.k, x, p.k, 1, p.w[at*p.k*p.n:], p.n, p.zeros, 0, y, p.n)
		}
	}
}

// BatchWork is of products of matrices, whose second ones are packed in each run.
func BatchWork(w *frame.Work, g *graph.Graph, n *graph.Node, s []graph.Shape, threads int) {
	frame.DecodeWork(w, g, n, s, threads)
	b, out := s[n.In[1]], s[n.Out[0]]
	w.Kept = graph.Plus(w.Kept, graph.Plus(graph.Times(16, out.Leading(out.Rank-2)), graph.Times(4, out.FromEnd(0))))
	if n.Flags&graph.FlagTransposeWeights != 0 && out.FromEnd(1) > gemm.FewRows {
		w.Staged = max(w.Staged, graph.Times(4, b.Leading(b.Rank-2), gemm.Size(b.FromEnd(0), b.FromEnd(1), b.FromEnd(0))))
	}
}

// windowRows is a source of rows: the windows of a convolution's output pixels over an input
// [N, H, W, groups·GroupIn]. Elements outside of the input are 0.
type windowRows struct {
	graph.WindowGrid
	points nhwc.Rows[float32]
}

func (s *windowRows) dense(int, int) ([]float32, int) { return nil, 0 }

// gather copies elements [k, k+n) of windows, which may start or end within a tap.
func (s *windowRows) gather(dst []float32, group, p, rows, k, n int) {
	for i := range rows {
		s.points.Gather(dst[i*n:][:n], group, p+i, k, 0)
	}
}

// windowsOf returns the windows of a node over its first input.
func windowsOf(e *frame.Frame, n *graph.Node) windowRows {
	s := n.Windows(e.Shapes[n.In[0]], e.Shapes[n.Out[0]])
	return windowRows{s, nhwc.Rows[float32]{Images: frame.Images(&s), Group: s.W.GroupIn, X: e.Load(0, n.In[0])}}
}
