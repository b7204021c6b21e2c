package factory

import (
	"math"
	"math/rand/v2"

	"github.com/etrun-go/etrun/kernels"
)

var randomOps = []kernels.Op{
	{Schema: "aten::rand.out(SymInt[] size, *, Tensor(a!) out)", Func: uniform, DTypes: floats, Random: true, Note: randomNote},
	{Schema: "aten::randn.out(SymInt[] size, *, Tensor(a!) out)", Func: normal, DTypes: floats, Random: true, Note: randomNote},
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
