package quantized

import (
	"fmt"

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
	m.rows = kernels.Scratch[float32](c, c.Threads()*m.n)
	c.Parallel(m.n, 1+grain/max(m.k*m.m, 1), (*mixedTile)(m))
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
	m.rows = kernels.Scratch[float32](c, c.Threads()*m.k)
	c.Parallel(m.n, 1+grain/max(m.k*(m.m+1), 1), (*mixedColumns)(m))
	m.store(a.Tensor(5).Data, m.sums)
	return nil
}

// mixed is what both products share.
type mixed struct {
	m, n, k, groups int
	sizes           [2]int
	x, scales       []float32
	weight          []int8
	sums            []float32 // the out in float32
	store           tensor.StoreFunc[float32]
	rows            []float32 // per thread: a row of the weight
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
	for i := range 3 {
		if err := wantContiguous(a, i); err != nil {
			return err
		}
	}
	return nil
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

// mixedTile computes a range of columns of input · weight.
type mixedTile mixed

// Range computes columns [lo, hi).
func (m *mixedTile) Range(worker, lo, hi int) {
	w := m.rows[worker*m.n:][:hi-lo]
	for i := range m.m {
		clear(m.sums[i*m.n+lo : i*m.n+hi])
	}
	for k := range m.k {
		for j, v := range m.weight[k*m.n+lo : k*m.n+hi] {
			w[j] = float32(v)
		}
		for i := range m.m {
			simd.Axpy(m.sums[i*m.n+lo:i*m.n+hi], w, m.x[i*m.k+k])
		}
	}
}

// mixedColumns computes columns of input · weightᵀ, each from a dequantised row of
// the weight.
type mixedColumns mixed

// Range computes columns [lo, hi).
func (m *mixedColumns) Range(worker, lo, hi int) {
	row := m.rows[worker*m.k:][:m.k]
	group := (m.k + m.groups - 1) / m.groups
	for j := lo; j < hi; j++ {
		w, scales := m.weight[j*m.k:(j+1)*m.k], m.scales[j*m.groups:(j+1)*m.groups]
		for g := 0; g*group < m.k && g < m.groups; g++ {
			for k := g * group; k < min((g+1)*group, m.k); k++ {
				row[k] = float32(w[k]) * scales[g]
			}
		}
		for i := range m.m {
			m.sums[i*m.n+j] = simd.Dot(m.x[i*m.k:(i+1)*m.k], row)
		}
	}
}
