package move

import (
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// cat is aten::cat: tensors one behind the other along a dimension, each cast to
// the out's type. Tensors of sizes [0] are left out.
func cat(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[mover](c)
	list, out := a.Tensors(0), a.Tensor(2)
	lead := leader(list)
	if lead == nil {
		return kernels.Bad(0, "an empty list", "at least one tensor")
	}
	d, err := dimOf(1, a.Int(1), lead)
	if err != nil {
		return err
	}
	var buf [tensor.MaxRank]int
	sizes := append(buf[:0], lead.Sizes...)
	sizes[d] = 0
	for _, t := range list {
		if blank(t) {
			continue
		}
		if !joins(t.Sizes, lead.Sizes, d) {
			return kernels.Badf(0, "sizes like "+lead.String()+" but for one dimension", "%v", t)
		}
		sizes[d] += t.Sizes[d]
	}
	if err := kernels.ResizeOut(a, 2, sizes); err != nil {
		return err
	}
	at := 0
	for _, t := range list {
		if err := m.load(c, 0, t, out.DType); err != nil {
			return err
		}
		if blank(t) {
			continue
		}
		m.to.of(out)
		m.to.narrow(d, at, t.Sizes[d], 1)
		at += t.Sizes[d]
		m.copy(c)
	}
	return nil
}

// blank reports the one shape of empty tensor that may stand among others.
func blank(t *tensor.Tensor) bool { return t.Rank() == 1 && t.Sizes[0] == 0 }

// leader is the tensor that the others must agree with: the first that is not
// blank, or the first, or nil.
func leader(list []*tensor.Tensor) *tensor.Tensor {
	for _, t := range list {
		if !blank(t) {
			return t
		}
	}
	if len(list) > 0 {
		return list[0]
	}
	return nil
}

// joins reports sizes that are equal but for dimension d.
func joins(a, b []int, d int) bool {
	return len(a) == len(b) && slices.Equal(a[:d], b[:d]) && slices.Equal(a[d+1:], b[d+1:])
}

// stack is aten::stack: tensors of one shape along a new dimension.
func stack(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[mover](c)
	list, out := a.Tensors(0), a.Tensor(2)
	if len(list) == 0 {
		return kernels.Bad(0, "an empty list", "at least one tensor")
	}
	rank := list[0].Rank()
	if rank == tensor.MaxRank {
		return kernels.Badf(0, "at most 15 dimensions", "%d", rank)
	}
	d, err := kernels.WrapDim(1, a.Int(1), rank+1)
	if err != nil {
		return err
	}
	var buf [tensor.MaxRank]int
	if err := kernels.ResizeOut(a, 2, slices.Insert(append(buf[:0], list[0].Sizes...), d, len(list))); err != nil {
		return err
	}
	for i, t := range list {
		if !slices.Equal(t.Sizes, list[0].Sizes) {
			return kernels.Badf(0, "sizes like "+list[0].String(), "%v", t)
		}
		if err := m.load(c, 0, t, out.DType); err != nil {
			return err
		}
		m.to.of(out)
		m.to.narrow(d, i, 1, 1)
		m.to.remove(d)
		m.copy(c)
	}
	return nil
}

// splitCopy is aten::split_copy.Tensor: parts of split_size indices, the last one
// with what is left.
func splitCopy(c *kernels.Ctx, a kernels.Args) error {
	self, size, outs := a.Tensor(0), a.Int(1), a.Tensors(3)
	d, err := dimOf(2, a.Int(2), self)
	if err != nil {
		return err
	}
	n := int64(self.Sizes[d])
	if size < 0 || size == 0 && n > 0 {
		return kernels.Badf(1, "a size above 0", "%d", size)
	}
	parts := int64(1)
	if n > 0 {
		parts = (n-1)/size + 1
	}
	if int64(len(outs)) != parts {
		return kernels.Badf(3, itoa(int(parts))+" tensors", "%d", len(outs))
	}
	for i := range outs {
		at := int64(i) * size
		if err := part(c, a, 3, i, d, int(at), int(min(size, n-at))); err != nil {
			return err
		}
	}
	return nil
}

// splitSizes is aten::split_with_sizes_copy.
func splitSizes(c *kernels.Ctx, a kernels.Args) error {
	self, outs := a.Tensor(0), a.Tensors(3)
	d, err := dimOf(2, a.Int(2), self)
	if err != nil {
		return err
	}
	sizes, left := a.Ints(1), int64(self.Sizes[d])
	if len(sizes) != len(outs) {
		return kernels.Badf(3, itoa(len(sizes))+" tensors", "%d", len(outs))
	}
	for _, n := range sizes {
		if n < 0 || n > left {
			return kernels.Badf(1, "sizes that sum to "+itoa(self.Sizes[d]), "%v", sizes)
		}
		left -= n
	}
	if left != 0 {
		return kernels.Badf(1, "sizes that sum to "+itoa(self.Sizes[d]), "%v", sizes)
	}
	at := 0
	for i := range outs {
		if err := part(c, a, 3, i, d, at, int(sizes[i])); err != nil {
			return err
		}
		at += int(sizes[i])
	}
	return nil
}

// unbindCopy is aten::unbind_copy.int: one tensor for each index of a dimension.
func unbindCopy(c *kernels.Ctx, a kernels.Args) error {
	self, outs := a.Tensor(0), a.Tensors(2)
	d, err := dimOf(1, a.Int(1), self)
	if err != nil {
		return err
	}
	if len(outs) != self.Sizes[d] {
		return kernels.Badf(2, itoa(self.Sizes[d])+" tensors", "%d", len(outs))
	}
	m := kernels.Keep[mover](c)
	for i, out := range outs {
		m.from.of(self)
		m.from.narrow(d, i, 1, 1)
		m.from.remove(d)
		if err := m.storeItem(c, a, 2, out); err != nil {
			return err
		}
	}
	return nil
}

// part copies indices at to at+n of dimension d of argument 0 to tensor i of the
// list that is argument o.
func part(c *kernels.Ctx, a kernels.Args, o, i, d, at, n int) error {
	m := kernels.Keep[mover](c)
	m.from.of(a.Tensor(0))
	m.from.narrow(d, at, n, 1)
	return m.storeItem(c, a, o, a.Tensors(o)[i])
}

// storeItem is store for an out in a list.
func (m *mover) storeItem(c *kernels.Ctx, a kernels.Args, o int, out *tensor.Tensor) error {
	if err := kernels.WantDType(o, out, a.Tensor(0).DType); err != nil {
		return err
	}
	if err := out.Resize(m.from.sizes[:m.from.rank]); err != nil {
		return &kernels.OutError{Arg: o, Err: err}
	}
	m.to.of(out)
	m.copy(c)
	return nil
}
