//go:build linux

package lower_test

import (
	"math"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// masked replaces rows of x by a value where all scores of the row are -∞.
func (c *sample) masked(x, scores, by int) int { return c.maskedAlong(x, scores, by, -1) }

func (c *sample) maskedAlong(x, scores, by int, dim int64) int {
	minusInf := c.Put(pte.Value{Kind: tensor.KindDouble, Double: math.Inf(-1)})
	all := c.bools(2, 2, 1)
	if dim == 1 {
		all = c.bools(2, 1, 2)
	}
	hidden := c.to(c.bools(2, 2, 2), "aten::eq.Scalar_out", scores, minusInf)
	seen := c.to(c.bools(2, 2, 2), "aten::logical_not.out", hidden)
	anySeen := c.to(c.bools(c.M.Values[all].Tensor.Sizes...), "aten::any.out", seen, c.Number(dim), c.Truth(true))
	return c.of("aten::where.self_out", c.to(all, "aten::logical_not.out", anySeen), by, x)
}

// bools adds a tensor of truth.
func (c *sample) bools(sizes ...int) int {
	v := c.sized(sizes...)
	c.M.Values[v].Tensor.DType = tensor.Bool
	return v
}

// like is full_like of x; scores are -∞ in one row, and in some elements of others.
func (c *sample) like(x int, n float32) int {
	return c.of("aten::full_like.out", x, c.Put(pte.Value{Kind: tensor.KindDouble, Double: float64(n)}), c.Nothing())
}

func (c *sample) scores() int {
	inf := float32(math.Inf(-1))
	return c.add(c.x, c.Constant([]float32{inf, inf, inf, 0, 0, inf, 0, 0}, 2, 2, 2))
}
