package index

import (
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// indexSelect is aten::index_select: the slices of a dimension at a list of indices.
func indexSelect(c *kernels.Ctx, a kernels.Args) error {
	k := kernels.Keep[state](c)
	self := a.Tensor(0)
	d, err := kernels.WrapDim(1, a.Int(1), self.Rank())
	if err != nil {
		return err
	}
	if a.Tensor(2).Rank() > 1 {
		return kernels.Badf(2, "at most 1 dimension", "%d", a.Tensor(2).Rank())
	}
	indices, err := indices(c, a, 2)
	if err != nil {
		return err
	}
	var buf [tensor.MaxRank]int
	sizes, n, inner := append(buf[:0], self.Sizes...), 1, 1
	if self.Rank() > 0 {
		n, inner = self.Sizes[d], product(self.Sizes[d+1:])
		sizes[d] = len(indices)
	} else if len(indices) != 1 {
		return kernels.Badf(2, "one index into a tensor of rank 0", "%d", len(indices))
	}
	outer := product(sizes[:min(d, len(sizes))])
	return k.takeRows(c, a, 3, sizes, gatherPlan{outer: outer, stride: n * inner, run: inner}, indices, n, 2)
}

// embedding is aten::embedding: the row of a table for each index. padding_idx and later arguments matter in training
// only.
func embedding(c *kernels.Ctx, a kernels.Args) error {
	k := kernels.Keep[state](c)
	weight := a.Tensor(0)
	if weight.Rank() != 2 {
		return kernels.Badf(0, "2 dimensions", "%d", weight.Rank())
	}
	indices, err := indices(c, a, 1)
	if err != nil {
		return err
	}
	var buf [tensor.MaxRank + 1]int
	sizes := append(append(buf[:0], a.Tensor(1).Sizes...), weight.Sizes[1])
	return k.takeRows(c, a, 5, sizes, gatherPlan{outer: 1, run: weight.Sizes[1]}, indices, weight.Sizes[0], 1)
}

// takeRows resizes out argument o and fills it with the runs of argument 0 that indices, argument i, refer to, of n.
func (k *state) takeRows(c *kernels.Ctx, a kernels.Args, o int, sizes []int, p gatherPlan, indices []int64, n, i int) error {
	if err := checkIndices(i, indices, n); err != nil {
		return err
	}
	if err := kernels.ResizeOut(a, o, sizes); err != nil {
		return err
	}
	p.offsets, p.rest = indices, noRest
	if p.run != 1 {
		p.offsets = kernels.Scratch[int64](c, len(indices))
		for j, v := range indices {
			p.offsets[j] = v * int64(p.run)
		}
	}
	k.gather = p
	k.takeInto(c, a.Tensor(o), a.Tensor(0))
	return nil
}

// takeInto fills out from self by the gather plan.
func (k *state) takeInto(c *kernels.Ctx, out, self *tensor.Tensor) {
	rows := operand.OutRows(c, out)
	k.gather.take(c, self.DType.Size(), rows, operand.Rows(c, self))
	operand.StoreRows(c, out, rows)
	k.gather.offsets, k.gather.rest = nil, nil
}

// maskedSelect is aten::masked_select: the elements for which the mask is true, in one row. The two broadcast.
func maskedSelect(c *kernels.Ctx, a kernels.Args) error {
	k := kernels.Keep[state](c)
	self, mask, out := a.Tensor(0), a.Tensor(1), a.Tensor(2)
	var buf [tensor.MaxRank]int
	sizes, err := k.maskSizes(buf[:], a)
	if err != nil {
		return err
	}
	if n := self.Numel() + mask.Numel() + out.Capacity(); !isBounded(sizes, n) {
		return kernels.Badf(1, "sizes that broadcast to a few times those given", "%v", mask)
	}
	m := operand.Expand(c, mask, sizes)
	if err := kernels.ResizeOut(a, 2, []int{countTrue(m)}); err != nil {
		return err
	}
	rows, elem := operand.Expand(c, self, sizes), self.DType.Size()
	eachRun(c, m, func(from, n, at int) { copy(out.Data[at*elem:], rows[from*elem:(from+n)*elem]) })
	return nil
}

// maskedScatter is aten::masked_scatter: elements of source, in order, where the mask is true, else those of self.
// self and mask broadcast.
func maskedScatter(c *kernels.Ctx, a kernels.Args) error {
	k := kernels.Keep[state](c)
	self, mask, source, out := a.Tensor(0), a.Tensor(1), a.Tensor(2), a.Tensor(3)
	var buf [tensor.MaxRank]int
	sizes, err := k.maskSizes(buf[:], a)
	if err != nil {
		return err
	}
	if err := kernels.ResizeOut(a, 3, sizes); err != nil {
		return err
	}
	m := operand.Expand(c, mask, sizes)
	if n := countTrue(m); n > source.Numel() {
		return kernels.Badf(2, "at least "+itoa(n)+" elements", "%d", source.Numel())
	}
	rows, elem := operand.OutRows(c, out), self.DType.Size()
	operand.Broadcast(c, rows, self, sizes)
	from := operand.Rows(c, source)
	eachRun(c, m, func(to, n, at int) { copy(rows[to*elem:], from[at*elem:(at+n)*elem]) })
	operand.StoreRows(c, out, rows)
	return nil
}

// maskSizes returns the common sizes of argument 0 and of the mask, argument 1.
func (k *state) maskSizes(dst []int, a kernels.Args) ([]int, error) {
	if err := kernels.WantDType(1, a.Tensor(1), tensor.Bool); err != nil {
		return nil, err
	}
	return broadcast(dst, a.Tensor(0).Sizes, a.Tensor(1).Sizes, 1)
}

func countTrue(mask []byte) int {
	n := 0
	for _, b := range mask {
		if b != 0 {
			n++
		}
	}
	return n
}

// eachRun calls f for each run of true elements, with its start, its length and the number of true elements before
// it.
func eachRun(c *kernels.Ctx, mask []byte, f func(start, n, before int)) {
	before, poll := 0, c.Poller()
	for i := 0; i < len(mask); {
		poll.Done(1)
		if mask[i] == 0 {
			i++
			continue
		}
		n := slices.Index(mask[i:], 0)
		if n < 0 {
			n = len(mask) - i
		}
		f(i, n, before)
		before += n
		i += n
	}
}

// nonzero is aten::nonzero: the indices of the elements that are not zero, one row each, in row-major order.
func nonzero(c *kernels.Ctx, a kernels.Args) error {
	self, out := a.Tensor(0), a.Tensor(1)
	if err := kernels.WantDType(1, out, tensor.Int64); err != nil {
		return err
	}
	find := tensor.Truth(self.DType)
	if find == nil {
		return kernels.Bad(0, self.DType.String(), "a type that operators compute on")
	}
	truth := operand.Rows(c, self)
	if self.DType.Size() > 1 {
		truth = kernels.Scratch[uint8](c, self.Numel())
		find(truth, operand.Rows(c, self))
	}
	if err := kernels.ResizeOut(a, 1, []int{countTrue(truth), self.Rank()}); err != nil {
		return err
	}
	if out.Numel() == 0 {
		return nil
	}
	rows := operand.OutRows(c, out)
	writeIndices(c, tensor.View[int64](rows), truth, self.Sizes)
	operand.StoreRows(c, out, rows)
	return nil
}

// writeIndices writes the indices of the true elements of an array of the given
// sizes.
func writeIndices(c *kernels.Ctx, dst []int64, truth []byte, sizes []int) {
	var at [tensor.MaxRank]int64
	last := len(sizes) - 1
	n, poll := sizes[last], c.Poller()
	for ; len(truth) > 0; truth = truth[n:] {
		poll.Done(n)
		for i, b := range truth[:n] {
			if b != 0 {
				at[last] = int64(i)
				dst = dst[copy(dst, at[:last+1]):]
			}
		}
		for d := last - 1; d >= 0; d-- {
			if at[d]++; at[d] < int64(sizes[d]) {
				break
			}
			at[d] = 0
		}
	}
}
