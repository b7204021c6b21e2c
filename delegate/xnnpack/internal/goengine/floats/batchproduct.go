package floats

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/goengine/frame"
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/gemm"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

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
