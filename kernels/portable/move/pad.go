package move

import (
	"math/bits"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// maxPad bounds a padding argument so that sums of sizes cannot overflow.
const maxPad = 1 << maxPadBits

const maxPadBits = min(56, bits.UintSize-4)

// padding returns the number of indices added before and after dimension d; pads contains pairs from the last
// dimension.
func padding(pads []int64, rank, d int) (before, after int) {
	i := 2 * (rank - 1 - d)
	if i+1 >= len(pads) {
		return 0, 0
	}
	return int(pads[i]), int(pads[i+1])
}

// padSizes returns the tensor's sizes after padding.
func padSizes(dst []int, t *tensor.Tensor, pads []int64) ([]int, error) {
	for _, p := range pads {
		if p < -maxPad || p > maxPad {
			return nil, kernels.Badf(1, "padding within 2^"+itoa(maxPadBits), "%v", pads)
		}
	}
	for d, n := range t.Sizes {
		before, after := padding(pads, t.Rank(), d)
		if n += before + after; n < 0 {
			return nil, kernels.Badf(1, "padding that leaves a size of at least 0 for "+t.String(), "%v", pads)
		}
		dst = append(dst, n)
	}
	return dst, nil
}

// constantPad is aten::constant_pad_nd: a border of value. Negative padding crops.
func constantPad(c *kernels.Ctx, a kernels.Args) error {
	m := kernels.Keep[state](c)
	self, pads := a.Tensor(0), a.Ints(1)
	if len(pads)%2 != 0 || len(pads) > 2*self.Rank() {
		return kernels.Badf(1, "at most "+itoa(self.Rank())+" pairs", "%v", pads)
	}
	if err := m.setValue(2, a.Scalar(2), self.DType); err != nil {
		return err
	}
	return m.pad(c, a, 3, (*layout).constant)
}

// pad resizes out argument o to the padded sizes and assembles it from the layouts that make sets, for n indices of
// the source and total indices of the result.
func (m *state) pad(c *kernels.Ctx, a kernels.Args, o int, make func(k *layout, n, before, total int)) error {
	self, pads := a.Tensor(0), a.Ints(1)
	var buf [tensor.MaxRank]int
	sizes, err := padSizes(buf[:0], self, pads)
	if err != nil {
		return err
	}
	if err := m.resize(a, o, sizes); err != nil {
		return err
	}
	if a.Tensor(o).Numel() == 0 {
		return nil
	}
	m.from.Of(self)
	m.clearLayouts()
	for d, n := range self.Sizes {
		if before, after := padding(pads, self.Rank(), d); before != 0 || after != 0 {
			make(&m.layouts[d], n, before, sizes[d])
		}
	}
	m.assemble(c, 0)
	return nil
}

// middle returns the range of the result's indices that are copied: index i of the result is i - before of the source
// for start <= i < end.
func middle(n, before, total int) (start, end int) {
	start = min(max(before, 0), total)
	return start, min(max(n+before, start), total)
}

func (k *layout) constant(n, before, total int) {
	start, end := middle(n, before, total)
	k.add(segment{to: 0, n: start, fill: true})
	k.add(segment{to: start, n: end - start, from: start - before, step: 1})
	k.add(segment{to: end, n: total - end, fill: true})
}

func (k *layout) reflect(n, before, total int) {
	start, end := middle(n, before, total)
	k.add(segment{to: 0, n: start, from: before, step: -1})
	k.add(segment{to: start, n: end - start, from: start - before, step: 1})
	k.add(segment{to: end, n: total - end, from: 2*(n-1) + before - end, step: -1})
}

func (k *layout) replicate(n, before, total int) {
	start, end := middle(n, before, total)
	k.add(segment{to: 0, n: start, from: 0, step: 0})
	k.add(segment{to: start, n: end - start, from: start - before, step: 1})
	k.add(segment{to: end, n: total - end, from: n - 1, step: 0})
}

// reflectionPad is aten::reflection_pad1d, 2d and 3d: the border mirrors the inside without its edge.
func reflectionPad(dims int) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		if err := checkPad(a, dims); err != nil {
			return err
		}
		self, pads := a.Tensor(0), a.Ints(1)
		for i, p := range pads {
			if n := self.Sizes[self.Rank()-1-i/2]; p >= int64(n) {
				return kernels.Badf(1, "padding below the size it mirrors in "+self.String(), "%v", pads)
			}
		}
		return kernels.Keep[state](c).pad(c, a, 2, (*layout).reflect)
	}
}

// replicationPad is aten::replication_pad1d, 2d and 3d: the border repeats the edge.
func replicationPad(dims int) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		if err := checkPad(a, dims); err != nil {
			return err
		}
		return kernels.Keep[state](c).pad(c, a, 2, (*layout).replicate)
	}
}

// checkPad checks the arguments of reflection and replication padding of the last dims dimensions, which must not be
// empty.
func checkPad(a kernels.Args, dims int) error {
	self, pads := a.Tensor(0), a.Ints(1)
	if len(pads) != 2*dims {
		return kernels.Badf(1, itoa(2*dims)+" numbers", "%v", pads)
	}
	rank := self.Rank()
	if rank != dims+1 && rank != dims+2 {
		return kernels.Badf(0, itoa(dims+1)+" or "+itoa(dims+2)+" dimensions", "%d", rank)
	}
	var buf [tensor.MaxRank]int
	sizes, err := padSizes(buf[:0], self, pads)
	if err != nil {
		return err
	}
	for d := rank - dims; d < rank; d++ {
		if self.Sizes[d] < 1 || sizes[d] < 1 {
			return kernels.Badf(1, "sizes of at least 1 before and after padding "+self.String(), "%v", pads)
		}
	}
	return nil
}
