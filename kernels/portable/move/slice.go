package move

import (
	"math"
	"slices"
	"strconv"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

func itoa(n int) string { return strconv.Itoa(n) }

// dimOf resolves argument i, a dimension of t, which must have dimensions.
func dimOf(a kernels.Args, i int, t *tensor.Tensor) (int, error) {
	if t.Rank() == 0 {
		return 0, kernels.Bad(0, "a tensor of rank 0", "a tensor with dimensions")
	}
	return kernels.WrapDim(i, a.Int(i), t.Rank())
}

// slice narrows a view to dim, start, end and step, the arguments from i on, as Python does.
func slice(i int) viewFunc {
	return func(v *strided.View, a kernels.Args) error {
		d, err := dimOf(a, i, a.Tensor(0))
		if err != nil {
			return err
		}
		step := a.Int(i + 3)
		if step < 1 {
			return kernels.Badf(i+3, "a step of at least 1", "%d", step)
		}
		size := int64(v.Sizes[d])
		start, end := clampIndex(a.OptInt(i+1, 0), size), clampIndex(a.OptInt(i+2, math.MaxInt64), size)
		n := int64(0)
		if end > start {
			n = (end-start-1)/step + 1
		}
		v.Narrow(d, int(start), int(n), int(min(step, size)))
		return nil
	}
}

func clampIndex(i, n int64) int64 {
	if i < 0 {
		i += n
	}
	return min(max(i, 0), n)
}

// selectIndex narrows a view to dim and index, the arguments from i on.
func selectIndex(i int) viewFunc {
	return func(v *strided.View, a kernels.Args) error {
		d, err := dimOf(a, i, a.Tensor(0))
		if err != nil {
			return err
		}
		index, n := a.Int(i+1), int64(v.Sizes[d])
		if index < -n || index >= n {
			return kernels.Badf(i+1, "an index into "+itoa(int(n)), "%d", index)
		}
		if index < 0 {
			index += n
		}
		v.Narrow(d, int(index), 1, 1)
		v.Remove(d)
		return nil
	}
}

// narrow is aten::narrow_copy: length indices from start on.
func narrow(v *strided.View, a kernels.Args) error {
	d, err := dimOf(a, 1, a.Tensor(0))
	if err != nil {
		return err
	}
	start, length, n := a.Int(2), a.Int(3), int64(v.Sizes[d])
	switch {
	case length < 0 || length > n:
		return kernels.Badf(3, "a length of at most "+itoa(int(n)), "%d", length)
	case start < -n || start > n:
		return kernels.Badf(2, "a start within "+itoa(int(n)), "%d", start)
	case start < 0:
		start += n
	}
	if start > n-length {
		return kernels.Badf(2, "a start with "+itoa(int(length))+" of "+itoa(int(n))+" indices left", "%d", start)
	}
	v.Narrow(d, int(start), int(length), 1)
	return nil
}

// scatter returns the operator that copies argument 0 to its out, and argument 1, cast, to the part of it that region
// selects: aten::slice_scatter and aten::select_scatter.
func scatter(region viewFunc) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		m := kernels.Keep[state](c)
		self, src := a.Tensor(0), a.Tensor(1)
		m.to.Of(self)
		if err := region(&m.to, a); err != nil {
			return err
		}
		if !slices.Equal(m.to.Shape(), src.Sizes) {
			return kernels.Badf(1, "the sizes of the part it replaces", "sizes %v", src.Sizes)
		}
		m.from.Of(self)
		if err := m.store(c, a, len(a)-2); err != nil {
			return err
		}
		if err := region(&m.to, a); err != nil {
			return err
		}
		if err := m.load(c, 1, src, self.DType); err != nil {
			return err
		}
		m.copy(c)
		return nil
	}
}
