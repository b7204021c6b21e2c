package factory

import (
	"math"
	"math/rand/v2"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
)

var randomOps = []kernels.Op{
	{Schema: "aten::rand.out(SymInt[] size, *, Tensor(a!) out)", Func: uniform, DTypes: floats, Random: true, Note: randomNote},
	{Schema: "aten::randn.out(SymInt[] size, *, Tensor(a!) out)", Func: normal, DTypes: floats, Random: true, Note: randomNote},
	{Schema: "aten::randperm.out(SymInt n, *, Tensor(a!) out)", Func: permutation, DTypes: "integers, float, float16, bfloat16",
		Random: true, Note: randomNote},
}

const randomNote = "draws from the method's random source, not PyTorch's"

// uniform draws from [0, 1), with the precision of the type just below 1, so that no number is rounded up to 1.
func uniform(c *kernels.Ctx, a kernels.Args) error {
	unit := a.Tensor(1).DType.Epsilon() / 2
	bits := -math.Ilogb(unit)
	return draw(c, a, func(r *rand.Rand) float64 { return float64(r.Uint64()>>(64-bits)) * unit })
}

func normal(c *kernels.Ctx, a kernels.Args) error {
	return draw(c, a, (*rand.Rand).NormFloat64)
}

// draw fills the out argument with numbers from next.
func draw(c *kernels.Ctx, a kernels.Args, next func(r *rand.Rand) float64) error {
	if err := resize(c, a, 1); err != nil {
		return err
	}
	out := a.Tensor(1)
	if !out.DType.IsFloat() {
		return kernels.Bad(1, out.DType.String(), "a float type")
	}
	fillBlocks(c, out, func(b []float64, _ int) {
		for j := range b {
			b[j] = next(c.Rand)
		}
	})
	return nil
}

// permutation draws an order of the numbers below n, all of which the type represents.
func permutation(c *kernels.Ctx, a kernels.Args) error {
	n, out := a.Int(0), a.Tensor(1)
	_, largest := out.DType.IntRange()
	switch {
	case out.DType.IsFloat():
		largest = int64(2 / out.DType.Epsilon())
	case !out.DType.IsInt():
		return kernels.Bad(1, out.DType.String(), "a number type")
	}
	if n < 0 || n-1 > largest || n > math.MaxInt>>7 {
		return kernels.Badf(0, "a number of elements that "+out.DType.String()+" counts", "%d", n)
	}
	if err := kernels.ResizeOut(a, 1, []int{int(n)}); err != nil {
		return err
	}
	order := operand.Out[int64](c, out)
	poll := c.Poller()
	for i := range order {
		poll.Done(1)
		j := c.Rand.IntN(i + 1)
		order[i] = order[j]
		order[j] = int64(i)
	}
	operand.Store(c, out, order)
	return nil
}
