package quantized

import (
	"fmt"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/gemm"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// mixedMM is quantized_decomposed::mixed_mm.out: input [M, K], int8 weight [K, N] with
// one scale for each of its rows, out [M, N]; sums in float32.
//
//	out[i,j] = Σ_k input[i,k] · scale[k] · weight[k,j]
func mixedMM(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[mixed](c)
	if err := m.check(a, 0, 4); err != nil {
		return err
	}
	m.k, m.n = a.Tensor(1).Sizes[0], a.Tensor(1).Sizes[1]
	if s := a.Tensor(2); s.Rank() != 1 {
		return kernels.Badf(2, "one scale for each row of the weight", "%v", s)
	}
	if err := m.bind(c, a, 4); err != nil {
		return err
	}
	for i := range m.m {
		for k := range m.k {
			m.x[i*m.k+k] *= m.scales[k]
		}
	}
	g := &m.product
	g.Batch, g.M, g.N, g.K, g.C = 1, m.m, m.n, m.k, m.sums
	g.A, g.ARow, g.ACol, g.AMatrices = m.x, m.k, 1, 1
	g.Columns, g.Blocks = m, (m.n+gemm.BlockCols-1)/gemm.BlockCols
	g.Scratch = kernels.Scratch[float32](c, g.Plan(c.Threads()))
	c.Parallel(g.Tiles, g.Grain, g)
	m.store(a.Tensor(4).Data, m.sums)
	return nil
}

// mixedLinear is quantized_decomposed::mixed_linear.out: input [M, K], int8 weight
// [N, K] with scales [N], or [N, G] for G groups of ceil(K/G) elements of a row, out
// [M, N]; sums in float32.
//
//	out[i,j] = Σ_k input[i,k] · weight[j,k] · scale[j,k/group]
func mixedLinear(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[mixed](c)
	if err := m.check(a, 1, 5); err != nil {
		return err
	}
	if err := wantType(a, 4, a.Tensor(5)); err != nil {
		return err
	}
	m.n, m.k = a.Tensor(1).Sizes[0], a.Tensor(1).Sizes[1]
	m.groups = 1
	if s := a.Tensor(2); s.Rank() == 2 {
		m.groups = s.Sizes[1]
	}
	if m.groups == 0 {
		return kernels.Badf(2, "at least one group", "%v", a.Tensor(2))
	}
	if err := m.bind(c, a, 5); err != nil {
		return err
	}
	m.rowsPerPass = max(1, min(maxRowsPerPass, m.n))
	m.rows = kernels.Scratch[float32](c, c.Threads()*(m.rowsPerPass*m.k+gemm.TransposedWork(m.k)))
	c.Parallel((m.n+m.rowsPerPass-1)/m.rowsPerPass, cpu.Grain(m.rowsPerPass*m.k*(m.m+1), elementCost), (*mixedRows)(m))
	m.store(a.Tensor(5).Data, m.sums)
	return nil
}

// mixed is the state of both products.
type mixed struct {
	m, n, k, groups int
	sizes           [2]int
	x, scales       []float32
	weight          []int8
	sums            []float32 // the out in float32
	store           tensor.StoreFunc[float32]
	rowsPerPass     int // rows of the weight
	product         gemm.Product[float32]
	rows            []float32 // per thread: rows of the weight, and memory for their product
}

// check checks the arguments; the inner dimension is that of the weight's index inner.
func (m *mixed) check(a kernels.Args, inner, out int) error {
	x, w, s, o := a.Tensor(0), a.Tensor(1), a.Tensor(2), a.Tensor(out)
	if x.Rank() != 2 || x.DType != tensor.Float32 && x.DType != tensor.Float16 {
		return kernels.Badf(0, "a matrix of float32 or float16", "%v", x)
	}
	if w.Rank() != 2 || w.DType != tensor.Int8 || w.Sizes[inner] != x.Sizes[1] {
		return kernels.Badf(1, fmt.Sprintf("an int8 matrix with %d in dimension %d", x.Sizes[1], inner), "%v", w)
	}
	if r := s.Rank(); s.DType != x.DType || r < 1 || r > 2 || s.Sizes[0] != w.Sizes[0] {
		return kernels.Badf(2, fmt.Sprintf("%v scales for %d rows", x.DType, w.Sizes[0]), "%v", s)
	}
	if !a.IsNone(3) {
		return kernels.Bad(3, "zero points", "none: the weight is symmetric")
	}
	if o.DType != x.DType && (out == 4 || o.DType != tensor.Float32 && o.DType != tensor.Float16) {
		return kernels.Bad(out, o.DType.String(), "float32 or float16, in mixed_mm the input's type")
	}
	return wantContiguous(a, 0, 1, 2)
}

// bind resizes the out and loads the operands.
func (m *mixed) bind(c *kernels.Ctx, a kernels.Args, out int) error {
	x, s, o := a.Tensor(0), a.Tensor(2), a.Tensor(out)
	m.m = x.Sizes[0]
	m.sizes = [2]int{m.m, m.n}
	if _, ok := tensor.Product(m.sizes[:]); !ok {
		return kernels.Badf(1, "an out whose size fits", "%v", m.sizes)
	}
	if err := kernels.ResizeOut(a, out, m.sizes[:]); err != nil {
		return err
	}
	if err := wantContiguous(a, out); err != nil {
		return err
	}
	m.x, m.scales = kernels.Scratch[float32](c, x.Numel()), kernels.Scratch[float32](c, s.Numel())
	load := tensor.Loader[float32](x.DType)
	load(m.x, x.Data)
	load(m.scales, s.Data)
	m.weight = tensor.Data[int8](a.Tensor(1))
	m.sums, m.store = kernels.Scratch[float32](c, m.m*m.n), tensor.Storer[float32](o.DType)
	return nil
}

// Span implements [gemm.Columns].
func (m *mixed) Span(i int) (j, n int) {
	j = i * gemm.BlockCols
	return j, min(gemm.BlockCols, m.n-j)
}

// Pack converts rows [p, p+k) of the weight.
func (m *mixed) Pack(dst []float32, ld, _, _, i, p, k int) {
	j, n := m.Span(i)
	convert := tensor.Loader[float32](tensor.Int8)
	for q := range k {
		convert(dst[q*ld:][:n], tensor.BytesOf(m.weight[(p+q)*m.n+j:][:n]))
	}
}

// mixedRows computes input · weightᵀ with some dequantized rows of the weight at a time.
type mixedRows mixed

const maxRowsPerPass = 32

// Range computes columns of the out that belong to groups [lo, hi) of rows of the weight.
func (m *mixedRows) Range(worker, lo, hi int) {
	size := m.rowsPerPass*m.k + gemm.TransposedWork(m.k)
	rows, work := m.rows[worker*size:][:m.rowsPerPass*m.k], m.rows[worker*size+m.rowsPerPass*m.k:]
	for j := lo * m.rowsPerPass; j < min(hi*m.rowsPerPass, m.n); j += m.rowsPerPass {
		n := min(m.rowsPerPass, m.n-j)
		for i := range n {
			m.dequantize(rows[i*m.k:][:m.k], j+i)
		}
		gemm.MulTransposed(m.m, n, m.k, m.x, m.k, rows, m.k, m.sums[j:], m.n, work)
	}
}

// dequantize writes row j of the weight.
func (m *mixedRows) dequantize(row []float32, j int) {
	tensor.Loader[float32](tensor.Int8)(row, tensor.BytesOf(m.weight[j*m.k:][:m.k]))
	group := (m.k + m.groups - 1) / m.groups
	for g := 0; g*group < m.k && g < m.groups; g++ {
		part := row[g*group : min((g+1)*group, m.k)]
		simd.ScaleShift(part, part, m.scales[j*m.groups+g], 0)
	}
}
