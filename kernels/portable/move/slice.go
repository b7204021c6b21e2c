package move

import (
	"math"
	"slices"
	"strconv"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func itoa(n int) string { return strconv.Itoa(n) }

// dimOf resolves a dimension argument of a tensor that must have dimensions.
func dimOf(i int, dim int64, t *tensor.Tensor) (int, error) {
	if t.Rank() == 0 {
		return 0, kernels.Bad(0, "a tensor of rank 0", "a tensor with dimensions")
	}
	return kernels.WrapDim(i, dim, t.Rank())
}

// slice narrows v to dim, start, end, step, the arguments from i on, as Python does.
func slice(v *view, a kernels.Args, i int) error {
	d, err := dimOf(i, a.Int(i), a.Tensor(0))
	if err != nil {
		return err
	}
	step := a.Int(i + 3)
	if step < 1 {
		return kernels.Badf(i+3, "a step of at least 1", "%d", step)
	}
	size := int64(v.sizes[d])
	start, end := clampIndex(a.OptInt(i+1, 0), size), clampIndex(a.OptInt(i+2, math.MaxInt64), size)
	n := int64(0)
	if end > start {
		n = (end-start-1)/step + 1
	}
	v.narrow(d, int(start), int(n), int(min(step, size)))
	return nil
}

func clampIndex(i, n int64) int64 {
	if i < 0 {
		i += n
	}
	return min(max(i, 0), n)
}

// selectIndex narrows v to dim and index, the arguments from i on.
func selectIndex(v *view, a kernels.Args, i int) error {
	d, err := dimOf(i, a.Int(i), a.Tensor(0))
	if err != nil {
		return err
	}
	index, n := a.Int(i+1), int64(v.sizes[d])
	if index < -n || index >= n {
		return kernels.Badf(i+1, "an index into "+itoa(int(n)), "%d", index)
	}
	if index < 0 {
		index += n
	}
	v.narrow(d, int(index), 1, 1)
	v.remove(d)
	return nil
}

// sliceCopy is aten::slice_copy.Tensor.
func sliceCopy(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[mover](c)
	m.from.of(a.Tensor(0))
	if err := slice(&m.from, a, 1); err != nil {
		return err
	}
	return m.store(c, a, 5)
}

// selectCopy is aten::select_copy.int.
func selectCopy(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[mover](c)
	m.from.of(a.Tensor(0))
	if err := selectIndex(&m.from, a, 1); err != nil {
		return err
	}
	return m.store(c, a, 3)
}

// narrowCopy is aten::narrow_copy: length indices from start on.
func narrowCopy(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[mover](c)
	m.from.of(a.Tensor(0))
	d, err := dimOf(1, a.Int(1), a.Tensor(0))
	if err != nil {
		return err
	}
	start, length, n := a.Int(2), a.Int(3), int64(m.from.sizes[d])
	if length < 0 || length > n {
		return kernels.Badf(3, "a length of at most "+itoa(int(n)), "%d", length)
	}
	if start < -n || start > n {
		return kernels.Badf(2, "a start within "+itoa(int(n)), "%d", start)
	}
	if start < 0 {
		start += n
	}
	if start > n-length {
		return kernels.Badf(2, "a start with "+itoa(int(length))+" of "+itoa(int(n))+" indices left", "%d", start)
	}
	m.from.narrow(d, int(start), int(length), 1)
	return m.store(c, a, 4)
}

// sliceScatter is aten::slice_scatter: self with src, cast, in place of a slice.
func sliceScatter(c *kernels.Ctx, a kernels.Args) error { return scatterInto(c, a, slice, 6) }

// selectScatter is aten::select_scatter.
func selectScatter(c *kernels.Ctx, a kernels.Args) error { return scatterInto(c, a, selectIndex, 4) }

// scatterInto writes argument 0 to out argument o and then argument 1 to the part of
// it that region narrows to.
func scatterInto(c *kernels.Ctx, a kernels.Args, region func(*view, kernels.Args, int) error, o int) error {
	m := kernels.Keep[mover](c)
	self, src := a.Tensor(0), a.Tensor(1)
	m.to.of(self)
	if err := region(&m.to, a, 2); err != nil {
		return err
	}
	if !slices.Equal(m.to.sizes[:m.to.rank], src.Sizes) {
		return kernels.Badf(1, "the sizes of the part it replaces", "sizes %v", src.Sizes)
	}
	if err := m.resize(a, o, self.Sizes); err != nil {
		return err
	}
	m.from.of(self)
	m.copy(c)
	if err := region(&m.to, a, 2); err != nil {
		return err
	}
	if err := m.load(c, 1, src, self.DType); err != nil {
		return err
	}
	m.copy(c)
	return nil
}
