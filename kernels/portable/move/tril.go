package move

import (
	"math"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// tril is aten::tril: matrices with zeros to the right of a diagonal.
func tril(c *kernels.Ctx, a kernels.Args) error {
	return triangle(c, a, func(diagonal, i, cols int) (from, to int) { return min(max(i+diagonal+1, 0), cols), cols })
}

// triu is aten::triu: matrices with zeros to the left of a diagonal.
func triu(c *kernels.Ctx, a kernels.Args) error {
	return triangle(c, a, func(diagonal, i, cols int) (from, to int) { return 0, min(max(i+diagonal, 0), cols) })
}

// triangle copies matrices and clears columns from to to, which zeros returns for each row.
func triangle(c *kernels.Ctx, a kernels.Args, zeros func(diagonal, row, cols int) (from, to int)) error {
	m := kernels.Keep[state](c)
	self := a.Tensor(0)
	rank := self.Rank()
	if rank < 2 {
		return kernels.Badf(0, "at least 2 dimensions", "%d", rank)
	}
	m.from.Of(self)
	if err := m.store(c, a, 2); err != nil {
		return err
	}
	if self.Numel() == 0 {
		return nil
	}
	clear(m.value[:])
	rows, cols := self.Sizes[rank-2], self.Sizes[rank-1]
	diagonal := int(min(max(a.Int(1), -int64(rows)), int64(cols)))
	for i := range rows {
		from, to := zeros(diagonal, i, cols)
		if from == to {
			continue
		}
		m.to.Of(a.Tensor(2))
		m.to.Narrow(rank-2, i, 1, 1)
		m.to.Narrow(rank-1, from, to-from, 1)
		m.fill(c)
	}
	return nil
}

// repeatInterleave is aten::repeat_interleave.Tensor: index i repeats[i] times.
func repeatInterleave(c *kernels.Ctx, a kernels.Args) error {
	repeats, out := a.Tensor(0), a.Tensor(2)
	if err := kernels.WantDType(0, repeats, tensor.Int32, tensor.Int64); err != nil {
		return err
	}
	if err := kernels.WantDType(2, out, repeats.DType); err != nil {
		return err
	}
	if repeats.Rank() != 1 {
		return kernels.Badf(0, "1 dimension", "%d", repeats.Rank())
	}
	n, list := 0, operand.In[int64](c, repeats)
	for _, r := range list {
		if r < 0 || r > int64(math.MaxInt-n) {
			return kernels.Badf(0, "repeats of at least 0", "%d", r)
		}
		n += int(r)
	}
	if want := a.OptInt(1, int64(n)); want != int64(n) {
		return kernels.Badf(1, "the sum of the repeats, "+itoa(n), "%d", want)
	}
	if err := kernels.ResizeOut(a, 2, []int{n}); err != nil {
		return err
	}
	indices := operand.Out[int64](c, out)
	at := indices
	for i, r := range list {
		for j := range at[:r] {
			at[j] = int64(i)
		}
		at = at[r:]
	}
	operand.Store(c, out, indices)
	return nil
}
