package move

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// segment is a range of n indices along one dimension of a result, from index to on. They are indices from, from+step, …
// of the source, or the fill value.
type segment struct {
	to, n, from, step int
	fill              bool
}

// layout contains the segments of one dimension of a result; without segments it is the source's dimension.
type layout struct {
	n  int
	at [3]segment
}

func (k *layout) add(p segment) {
	if p.n > 0 {
		k.at[k.n] = p
		k.n++
	}
}

// clearLayouts makes every dimension that of the source.
func (m *state) clearLayouts() {
	if m.layouts == nil {
		m.layouts = make([]layout, tensor.MaxRank)
	}
	for i := range m.layouts {
		m.layouts[i].n = 0
	}
}

// assemble copies m.from to m.to segment by segment, from dimension d on: one copy for each combination of the
// dimensions' segments.
func (m *state) assemble(c *kernels.Ctx, d int) {
	for d < m.to.Rank && m.layouts[d].n == 0 {
		d++
	}
	if d == m.to.Rank {
		m.copy(c)
		return
	}
	from, to := m.from, m.to
	for _, p := range m.layouts[d].at[:m.layouts[d].n] {
		m.to.Narrow(d, p.to, p.n, 1)
		if p.fill {
			m.fill(c)
		} else {
			m.from.Narrow(d, p.from, p.n, p.step)
			m.assemble(c, d+1)
		}
		m.from, m.to = from, to
	}
}

// fill sets all elements of m.to to m.value.
func (m *state) fill(c *kernels.Ctx) {
	m.from.Data, m.from.Offset = tensor.BytesOf(m.value[:]), 0
	clear(m.from.Strides[:])
	m.copy(c)
}

// setValue sets the fill value for elements of type d to s, argument i.
func (m *state) setValue(i int, s kernels.Scalar, d tensor.DType) error {
	clear(m.value[:])
	part := d.Component()
	if err := kernels.CheckFits(i, s, part); err != nil {
		return err
	}
	if !s.Put(tensor.BytesOf(m.value[:]), part) {
		return kernels.Bad(0, d.String(), "a type that operators compute on")
	}
	return nil
}

// flip is aten::flip: dimensions read backwards.
func flip(v *strided.View, a kernels.Args) error {
	set, err := kernels.DimSet(1, a.Ints(1), v.Rank)
	for d := range v.Rank {
		if set>>d&1 != 0 {
			v.Narrow(d, v.Sizes[d]-1, v.Sizes[d], -1)
		}
	}
	return err
}

// roll is aten::roll: indices shifted along dimensions, around the end. Without dims the tensor is one row.
func roll(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[state](c)
	self, shifts, dims := a.Tensor(0), a.Ints(1), a.Ints(2)
	if len(dims) == 0 && len(shifts) == 1 {
		return rollFlat(c, a)
	}
	if len(shifts) != len(dims) {
		return kernels.Badf(1, itoa(len(dims))+" shifts", "%v", shifts)
	}
	if self.Rank() == 0 {
		return kernels.Bad(0, "a tensor of rank 0", "a tensor with dimensions")
	}
	var by [tensor.MaxRank]int
	for i, v := range dims {
		d, err := kernels.WrapDim(2, v, self.Rank())
		if err != nil {
			return err
		}
		if n := self.Sizes[d]; n > 0 {
			by[d] = (by[d] + wrapShift(shifts[i], n)) % n
		}
	}
	if err := m.resize(a, 3, self.Sizes); err != nil {
		return err
	}
	m.from.Of(self)
	m.clearLayouts()
	for d, n := range self.Sizes {
		m.layouts[d].roll(n, by[d])
	}
	m.assemble(c, 0)
	return nil
}

// wrapShift returns s mod n.
func wrapShift(s int64, n int) int { return int((s%int64(n) + int64(n)) % int64(n)) }

// roll shifts n indices by a number in [0, n).
func (k *layout) roll(n, by int) {
	if by != 0 {
		k.add(segment{to: by, n: n - by, from: 0, step: 1})
		k.add(segment{to: 0, n: by, from: n - by, step: 1})
	}
}

// rollFlat rolls the elements in row-major order.
func rollFlat(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[state](c)
	self, out := a.Tensor(0), a.Tensor(3)
	if err := m.resize(a, 3, self.Sizes); err != nil {
		return err
	}
	n, elem := self.Numel(), self.DType.Size()
	if n == 0 {
		return nil
	}
	m.partial = !self.IsContiguous() || !out.IsContiguous()
	rows := operand.OutRows(c, out)
	m.from.Dense(operand.Rows(c, self), elem, []int{n})
	m.to.Dense(rows, elem, []int{n})
	m.clearLayouts()
	m.layouts[0].roll(n, wrapShift(a.Ints(1)[0], n))
	m.assemble(c, 0)
	operand.StoreRows(c, out, rows)
	return nil
}
