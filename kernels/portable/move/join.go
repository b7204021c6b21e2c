package move

import (
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// cat is aten::cat: tensors one behind the other along a dimension, each cast to the out's type. Tensors of sizes [0] are
// left out.
func cat(c *kernels.Ctx, a kernels.Args) error {
	list := a.Tensors(0)
	lead := leader(list)
	if lead == nil {
		return kernels.Bad(0, "an empty list", "at least one tensor")
	}
	d, err := dimOf(a, 1, lead)
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
	return join(c, a, sizes, d, false)
}

// stack is aten::stack: tensors of one shape along a new dimension.
func stack(c *kernels.Ctx, a kernels.Args) error {
	list := a.Tensors(0)
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
	for _, t := range list {
		if !slices.Equal(t.Sizes, list[0].Sizes) {
			return kernels.Badf(0, "sizes like "+list[0].String(), "%v", t)
		}
	}
	var buf [tensor.MaxRank]int
	return join(c, a, slices.Insert(append(buf[:0], list[0].Sizes...), d, len(list)), d, true)
}

// join resizes the out and copies the tensors of argument 0 to it, one behind the other along dimension d. For stack
// they do not have that dimension.
func join(c *kernels.Ctx, a kernels.Args, sizes []int, d int, stack bool) error {
	m, out := kernels.Keep[state](c), a.Tensor(2)
	if err := kernels.ResizeOut(a, 2, sizes); err != nil {
		return err
	}
	at := 0
	for _, t := range a.Tensors(0) {
		if err := m.load(c, 0, t, out.DType); err != nil {
			return err
		}
		m.to.Of(out)
		switch {
		case stack:
			m.to.Narrow(d, at, 1, 1)
			m.to.Remove(d)
			at++
		case blank(t):
			continue
		default:
			m.to.Narrow(d, at, t.Sizes[d], 1)
			at += t.Sizes[d]
		}
		m.copy(c)
	}
	return nil
}

// blank reports whether t is the one kind of empty tensor that cat accepts among others.
func blank(t *tensor.Tensor) bool { return t.Rank() == 1 && t.Sizes[0] == 0 }

// leader returns the tensor whose sizes the others must have: the first that is not blank, or the first, or nil.
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

// joins reports whether sizes are equal but for dimension d.
func joins(a, b []int, d int) bool {
	return len(a) == len(b) && slices.Equal(a[:d], b[:d]) && slices.Equal(a[d+1:], b[d+1:])
}

// splitSize is aten::split_copy.Tensor: parts of split_size indices, the last one with the rest.
func splitSize(c *kernels.Ctx, a kernels.Args) error {
	size, outs := a.Int(1), a.Tensors(3)
	d, err := dimOf(a, 2, a.Tensor(0))
	if err != nil {
		return err
	}
	n := int64(a.Tensor(0).Sizes[d])
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
	return split(c, a, d, false, func(i int) int { return int(min(size, n-int64(i)*size)) })
}

// splitSizes is aten::split_with_sizes_copy.
func splitSizes(c *kernels.Ctx, a kernels.Args) error {
	d, err := dimOf(a, 2, a.Tensor(0))
	if err != nil {
		return err
	}
	sizes, left := a.Ints(1), int64(a.Tensor(0).Sizes[d])
	if outs := a.Tensors(3); len(sizes) != len(outs) {
		return kernels.Badf(3, itoa(len(sizes))+" tensors", "%d", len(outs))
	}
	bad := false
	for _, n := range sizes {
		bad = bad || n < 0 || n > left
		left -= n
	}
	if bad || left != 0 {
		return kernels.Badf(1, "sizes that sum to "+itoa(a.Tensor(0).Sizes[d]), "%v", sizes)
	}
	return split(c, a, d, false, func(i int) int { return int(sizes[i]) })
}

// unbind is aten::unbind_copy.int: one tensor for each index of a dimension.
func unbind(c *kernels.Ctx, a kernels.Args) error {
	d, err := dimOf(a, 1, a.Tensor(0))
	if err != nil {
		return err
	}
	if n := a.Tensor(0).Sizes[d]; len(a.Tensors(2)) != n {
		return kernels.Badf(2, itoa(n)+" tensors", "%d", len(a.Tensors(2)))
	}
	return split(c, a, d, true, func(int) int { return 1 })
}

// split copies consecutive ranges of dimension d of argument 0, the i-th of size(i) indices, to the tensors of the out
// list. unbind removes the dimension, of size 1.
func split(c *kernels.Ctx, a kernels.Args, d int, unbind bool, size func(i int) int) error {
	m, o, at := kernels.Keep[state](c), len(a)-2, 0
	for i, out := range a.Tensors(o) {
		n := size(i)
		m.from.Of(a.Tensor(0))
		m.from.Narrow(d, at, n, 1)
		if unbind {
			m.from.Remove(d)
		}
		if err := m.resizeTo(a, o, out, m.from.Shape()); err != nil {
			return err
		}
		m.copy(c)
		at += n
	}
	return nil
}
