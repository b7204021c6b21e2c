package move

import (
	"math"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// viewCopy is aten::view_copy: the same elements in row-major order, other sizes.
func viewCopy(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[state](c)
	self := a.Tensor(0)
	var buf [tensor.MaxRank]int
	sizes, err := kernels.InferSizes(buf[:], 1, a.Ints(1), self.Numel())
	if err != nil {
		return err
	}
	o := len(a) - 2
	if err := m.resize(a, o, sizes); err != nil {
		return err
	}
	m.reshape(c, a.Tensor(o), self)
	return nil
}

// viewBytes is aten::view_copy.dtype: the same bytes in row-major order as elements of another type. If their size
// differs, the last dimension changes.
func viewBytes(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[state](c)
	self, out := a.Tensor(0), a.Tensor(2)
	if d := a.Int(1); d != int64(out.DType) {
		return kernels.Badf(1, "the out's type, "+out.DType.String(), "%v", tensor.DType(d))
	}
	var buf [tensor.MaxRank]int
	sizes := append(buf[:0], self.Sizes...)
	from, to, last := self.DType.Size(), out.DType.Size(), len(sizes)-1
	if from != to {
		if last < 0 || from%to != 0 && sizes[last]*from%to != 0 {
			return kernels.Badf(0, "a last dimension that "+out.DType.String()+" elements divide", "%v", self)
		}
		sizes[last] = saturate(sizes[last], from) / to
	}
	if err := kernels.ResizeOut(a, 2, sizes); err != nil {
		return err
	}
	m.partial = true
	rows := operand.OutRows(c, out)
	copy(rows, operand.Rows(c, self))
	operand.StoreRows(c, out, rows)
	return nil
}

// reshape copies self to out in row-major order. If neither is contiguous, the elements pass through scratch memory.
func (m *state) reshape(c *kernels.Ctx, out, self *tensor.Tensor) {
	m.from.Of(self)
	m.to.Of(out)
	elem, n := m.from.Elem, self.Numel()
	switch {
	case self.IsContiguous() && out.IsContiguous():
		flat := []int{n}
		m.from.Dense(self.Data, elem, flat)
		m.to.Dense(out.Data, elem, flat)
	case self.IsContiguous():
		m.from.Dense(self.Data, elem, out.Sizes)
	case out.IsContiguous():
		m.to.Dense(out.Data, elem, self.Sizes)
	default:
		m.partial = true
		m.from.Dense(operand.Rows(c, self), elem, out.Sizes)
	}
	m.copy(c)
}

// unsqueeze is aten::unsqueeze_copy.
func unsqueeze(v *strided.View, a kernels.Args) error {
	d, err := kernels.WrapDim(1, a.Int(1), v.Rank+1)
	if err == nil {
		v.Insert(d, 1, 1)
	}
	return err
}

// squeezeAll is aten::squeeze_copy.
func squeezeAll(v *strided.View, _ kernels.Args) error {
	return squeeze(v, 1<<v.Rank-1, nil)
}

// squeezeDim is aten::squeeze_copy.dim.
func squeezeDim(v *strided.View, a kernels.Args) error {
	d, err := kernels.WrapDim(1, a.Int(1), v.Rank)
	return squeeze(v, 1<<d, err)
}

// squeezeDims is aten::squeeze_copy.dims.
func squeezeDims(v *strided.View, a kernels.Args) error {
	set, err := kernels.DimSet(1, a.Ints(1), v.Rank)
	return squeeze(v, set, err)
}

// squeeze removes the dimensions of set that have size 1, unless there is an error.
func squeeze(v *strided.View, set uint32, err error) error {
	for d := v.Rank - 1; d >= 0 && err == nil; d-- {
		if set>>d&1 != 0 && v.Sizes[d] == 1 {
			v.Remove(d)
		}
	}
	return err
}

// permute is aten::permute_copy: dimension i of the result is dimension dims[i].
func permute(v *strided.View, a kernels.Args) error {
	self, dims := a.Tensor(0), a.Ints(1)
	if len(dims) != v.Rank {
		return kernels.Badf(1, itoa(v.Rank)+" dimensions", "%v", dims)
	}
	if _, err := kernels.DimSet(1, dims, v.Rank); err != nil {
		return err
	}
	for i, dim := range dims {
		d, _ := kernels.WrapDim(1, dim, v.Rank)
		v.Sizes[i], v.Strides[i] = self.Sizes[d], self.Strides[d]
	}
	return nil
}

// transpose is aten::transpose_copy.int.
func transpose(v *strided.View, a kernels.Args) error {
	d, err := kernels.WrapDim(1, a.Int(1), v.Rank)
	if err != nil {
		return err
	}
	e, err := kernels.WrapDim(2, a.Int(2), v.Rank)
	if err == nil {
		v.Swap(d, e)
	}
	return err
}

// transpose2D is aten::t_copy.
func transpose2D(v *strided.View, _ kernels.Args) error {
	if v.Rank > 2 {
		return kernels.Badf(0, "at most 2 dimensions", "%d", v.Rank)
	}
	if v.Rank == 2 {
		v.Swap(0, 1)
	}
	return nil
}

// expand is aten::expand_copy: dimensions of size 1 are repeated, and -1 leaves a size unchanged.
func expand(v *strided.View, a kernels.Args) error {
	list := a.Ints(1)
	lead := len(list) - v.Rank
	if lead < 0 || len(list) > tensor.MaxRank {
		return kernels.Badf(1, "sizes for a tensor of rank "+itoa(v.Rank), "%v", list)
	}
	for range lead {
		v.Insert(0, 1, 0)
	}
	for d, n := range list {
		switch have := v.Sizes[d]; {
		case n == -1 && d >= lead || n == int64(have):
		case have == 1 && n >= 0 && n <= math.MaxInt:
			v.Sizes[d], v.Strides[d] = int(n), 0
		default:
			return kernels.Badf(1, "sizes that "+a.Tensor(0).String()+" expands to", "%v", list)
		}
	}
	return nil
}

// repeat is aten::repeat: the tensor repeated repeats[d] times along each dimension.
func repeat(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[state](c)
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
	m.from.Of(self)
	for d := len(repeats) - 1; d >= 0; d-- { // [r·n] of the result as [r, n]
		if d < lead {
			m.from.Insert(0, repeats[d], 0)
			continue
		}
		m.to.Split(d, self.Sizes[d-lead])
		m.from.Insert(d-lead, repeats[d], 0)
	}
	if a.Tensor(2).Numel() > 0 {
		m.copy(c)
	}
	return nil
}

// saturate returns n·m, or the largest int, a size that no tensor accepts, if that overflows.
func saturate(n, m int) int {
	if m != 0 && n > math.MaxInt/m {
		return math.MaxInt
	}
	return n * m
}
