package move

import (
	"math"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// viewCopy is aten::view_copy: the same elements in row-major order, other sizes.
func viewCopy(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[mover](c)
	self := a.Tensor(0)
	var buf [tensor.MaxRank]int
	sizes, err := kernels.InferSizes(buf[:], 1, a.Ints(1), self.Numel())
	if err != nil {
		return err
	}
	if err := m.resize(a, 2, sizes); err != nil {
		return err
	}
	m.reshape(c, a.Tensor(2), self)
	return nil
}

// reshape copies self into out, both read row by row. Where neither is contiguous
// the elements pass through scratch memory.
func (m *mover) reshape(c *kernels.Ctx, out, self *tensor.Tensor) {
	m.from.of(self)
	m.to.of(out)
	elem, n := m.from.elem, self.Numel()
	switch {
	case self.IsContiguous() && out.IsContiguous():
		flat := []int{n}
		m.from.dense(self.Data, elem, flat)
		m.to.dense(out.Data, elem, flat)
	case self.IsContiguous():
		m.from.dense(self.Data, elem, out.Sizes)
	case out.IsContiguous():
		m.to.dense(out.Data, elem, self.Sizes)
	default:
		rows := m.scratch(c, n*elem)
		m.to.dense(rows, elem, self.Sizes)
		m.copy(c)
		m.from.dense(rows, elem, out.Sizes)
		m.to.of(out)
	}
	m.copy(c)
}

// unsqueezeCopy is aten::unsqueeze_copy.
func unsqueezeCopy(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[mover](c)
	m.from.of(a.Tensor(0))
	d, err := kernels.WrapDim(1, a.Int(1), m.from.rank+1)
	if err != nil {
		return err
	}
	m.from.insert(d, 1, 1)
	return m.store(c, a, 2)
}

// squeezeDim is aten::squeeze_copy.dim.
func squeezeDim(c *kernels.Ctx, a kernels.Args) error {
	d, err := kernels.WrapDim(1, a.Int(1), a.Tensor(0).Rank())
	if err != nil {
		return err
	}
	return squeeze(c, a, 1<<d)
}

// squeezeDims is aten::squeeze_copy.dims.
func squeezeDims(c *kernels.Ctx, a kernels.Args) error {
	set, err := dimSet(1, a.Ints(1), a.Tensor(0).Rank())
	if err != nil {
		return err
	}
	return squeeze(c, a, set)
}

// squeeze removes those dimensions of set whose size is 1.
func squeeze(c *kernels.Ctx, a kernels.Args, set uint32) error {
	m := kernels.Keep[mover](c)
	m.from.of(a.Tensor(0))
	for d := m.from.rank - 1; d >= 0; d-- {
		if set>>d&1 != 0 && m.from.sizes[d] == 1 {
			m.from.remove(d)
		}
	}
	return m.store(c, a, 2)
}

// dimSet reads distinct dimensions as a bit set.
func dimSet(i int, dims []int64, rank int) (set uint32, err error) {
	for _, v := range dims {
		d, err := kernels.WrapDim(i, v, rank)
		if err != nil {
			return 0, err
		}
		if set>>d&1 != 0 {
			return 0, kernels.Badf(i, "each dimension once", "%v", dims)
		}
		set |= 1 << d
	}
	return set, nil
}

// permuteCopy is aten::permute_copy: dimension i of the result is dimension dims[i].
func permuteCopy(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[mover](c)
	self, dims := a.Tensor(0), a.Ints(1)
	if len(dims) != self.Rank() {
		return kernels.Badf(1, itoa(self.Rank())+" dimensions", "%v", dims)
	}
	if _, err := dimSet(1, dims, self.Rank()); err != nil {
		return err
	}
	m.from.of(self)
	for i, v := range dims {
		d, _ := kernels.WrapDim(1, v, self.Rank())
		m.from.sizes[i], m.from.strides[i] = self.Sizes[d], self.Strides[d]
	}
	return m.store(c, a, 2)
}

// transposeCopy is aten::transpose_copy.int.
func transposeCopy(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[mover](c)
	m.from.of(a.Tensor(0))
	d, err := kernels.WrapDim(1, a.Int(1), m.from.rank)
	if err != nil {
		return err
	}
	e, err := kernels.WrapDim(2, a.Int(2), m.from.rank)
	if err != nil {
		return err
	}
	m.from.swap(d, e)
	return m.store(c, a, 3)
}

// tCopy is aten::t_copy.
func tCopy(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[mover](c)
	m.from.of(a.Tensor(0))
	if m.from.rank > 2 {
		return kernels.Badf(0, "at most 2 dimensions", "%d", m.from.rank)
	}
	if m.from.rank == 2 {
		m.from.swap(0, 1)
	}
	return m.store(c, a, 1)
}

// expandCopy is aten::expand_copy: dimensions of size 1 are repeated, -1 keeps one.
func expandCopy(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[mover](c)
	m.from.of(a.Tensor(0))
	list := a.Ints(1)
	lead := len(list) - m.from.rank
	if lead < 0 || len(list) > tensor.MaxRank {
		return kernels.Badf(1, "sizes for a tensor of rank "+itoa(m.from.rank), "%v", list)
	}
	for range lead {
		m.from.insert(0, 1, 0)
	}
	for d, v := range list {
		switch have := m.from.sizes[d]; {
		case v == -1 && d >= lead || v == int64(have):
		case have == 1 && v >= 0 && v <= math.MaxInt:
			m.from.sizes[d], m.from.strides[d] = int(v), 0
		default:
			return kernels.Badf(1, "sizes that "+a.Tensor(0).String()+" expands to", "%v", list)
		}
	}
	return m.store(c, a, 3)
}

// repeat is aten::repeat: the tensor laid out repeats[d] times along each dimension.
func repeat(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[mover](c)
	self := a.Tensor(0)
	var buf, sizes [tensor.MaxRank]int
	repeats, err := kernels.Sizes(buf[:], 1, a.Ints(1))
	if err != nil {
		return err
	}
	lead := len(repeats) - self.Rank()
	if lead < 0 {
		return kernels.Badf(1, "at least "+itoa(self.Rank())+" repeats", "%v", a.Ints(1))
	}
	for d, n := range repeats {
		sizes[d] = n
		if d >= lead {
			sizes[d] = saturate(n, self.Sizes[d-lead])
		}
	}
	if err := m.resize(a, 2, sizes[:len(repeats)]); err != nil {
		return err
	}
	m.from.of(self)
	for d := len(repeats) - 1; d >= 0; d-- { // [r·n] of the result as [r, n]
		if d < lead {
			m.from.insert(0, repeats[d], 0)
			continue
		}
		m.to.split(d, self.Sizes[d-lead])
		m.from.insert(d-lead, repeats[d], 0)
	}
	if a.Tensor(2).Numel() > 0 {
		m.copy(c)
	}
	return nil
}

// saturate is n·m, or the largest int where that overflows: a size that no tensor
// takes.
func saturate(n, m int) int {
	if m != 0 && n > math.MaxInt/m {
		return math.MaxInt
	}
	return n * m
}
