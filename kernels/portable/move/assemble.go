package move

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// piece is a run of indices along one dimension of a result: n from to on, which
// come from indices from, from+step, … of the source, or are the fill value.
type piece struct {
	to, n, from, step int
	fill              bool
}

// cut is how a dimension of a result is made of pieces; none means that it is the
// source's own.
type cut struct {
	n  int
	at [3]piece
}

func (k *cut) add(p piece) {
	if p.n > 0 {
		k.at[k.n] = p
		k.n++
	}
}

// clearCuts makes every dimension the source's own.
func (m *mover) clearCuts() {
	if m.cuts == nil {
		m.cuts = make([]cut, tensor.MaxRank)
	}
	for i := range m.cuts {
		m.cuts[i].n = 0
	}
}

// assemble copies m.from to m.to piece by piece, from dimension d on. The number of
// boxes is the product of the dimensions' pieces.
func (m *mover) assemble(c *kernels.Ctx, d int) {
	for d < m.to.rank && m.cuts[d].n == 0 {
		d++
	}
	if d == m.to.rank {
		m.copy(c)
		return
	}
	from, to := m.from, m.to
	for _, p := range m.cuts[d].at[:m.cuts[d].n] {
		m.to.narrow(d, p.to, p.n, 1)
		if p.fill {
			m.fill(c)
		} else {
			m.from.narrow(d, p.from, p.n, p.step)
			m.assemble(c, d+1)
		}
		m.from, m.to = from, to
	}
}

// fill sets what m.to looks at to m.value.
func (m *mover) fill(c *kernels.Ctx) {
	m.from.data, m.from.at = tensor.BytesOf(m.value[:]), 0
	clear(m.from.strides[:])
	m.copy(c)
}

// setValue makes s, argument i, the fill value for elements of type d.
func (m *mover) setValue(i int, s kernels.Scalar, d tensor.DType) error {
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
func flip(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[mover](c)
	m.from.of(a.Tensor(0))
	set, err := dimSet(1, a.Ints(1), m.from.rank)
	if err != nil {
		return err
	}
	for d := range m.from.rank {
		if set>>d&1 != 0 {
			m.from.narrow(d, m.from.sizes[d]-1, m.from.sizes[d], -1)
		}
	}
	return m.store(c, a, 2)
}

// roll is aten::roll: indices shifted along dimensions, what leaves at the end comes
// in at the start. Without dims the tensor is one row.
func roll(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[mover](c)
	self, shifts, dims := a.Tensor(0), a.Ints(1), a.Ints(2)
	if len(dims) == 0 && len(shifts) == 1 {
		return rollFlat(c, a)
	}
	if len(shifts) != len(dims) {
		return kernels.Badf(1, itoa(len(dims))+" shifts", "%v", shifts)
	}
	var by [tensor.MaxRank]int
	for i, v := range dims {
		d, err := dimOf(2, v, self)
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
	m.from.of(self)
	m.clearCuts()
	for d, n := range self.Sizes {
		m.cuts[d].roll(n, by[d])
	}
	m.assemble(c, 0)
	return nil
}

// wrapShift is the shift s within [0, n).
func wrapShift(s int64, n int) int { return int((s%int64(n) + int64(n)) % int64(n)) }

// roll cuts n indices for a shift by in [0, n).
func (k *cut) roll(n, by int) {
	if by != 0 {
		k.add(piece{to: by, n: n - by, from: 0, step: 1})
		k.add(piece{to: 0, n: by, from: n - by, step: 1})
	}
}

// rollFlat rolls the elements in row-major order.
func rollFlat(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[mover](c)
	self, out := a.Tensor(0), a.Tensor(3)
	if err := m.resize(a, 3, self.Sizes); err != nil {
		return err
	}
	n, elem := self.Numel(), self.DType.Size()
	if n == 0 {
		return nil
	}
	flat, src, dst := []int{n}, self.Data, out.Data
	if !self.IsContiguous() {
		src = m.scratch(c, n*elem)
		m.from.of(self)
		m.to.dense(src, elem, self.Sizes)
		m.copy(c)
	}
	if !out.IsContiguous() {
		dst = m.scratch(c, n*elem)
	}
	m.from.dense(src, elem, flat)
	m.to.dense(dst, elem, flat)
	m.clearCuts()
	m.cuts[0].roll(n, wrapShift(a.Ints(1)[0], n))
	m.assemble(c, 0)
	if !out.IsContiguous() {
		m.from.dense(dst, elem, self.Sizes)
		m.to.of(out)
		m.copy(c)
	}
	return nil
}
