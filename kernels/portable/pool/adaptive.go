package pool

import (
	"fmt"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// adaptiveMaxOp is aten::adaptive_max_pool2d or 3d.
func adaptiveMaxOp(dims int) kernels.Op {
	run := operand.Typed(0, "a number type", adaptiveMax[float32](dims), adaptiveMax[float64](dims), adaptiveMax[int64](dims))
	return kernels.Op{
		Schema: fmt.Sprintf("aten::adaptive_max_pool%dd.out(Tensor self, int[%d] output_size, *, Tensor(a!) out, Tensor(b!) indices)", dims,
			dims),
		Func: operand.SameType(run, 0, 2), Flow: opclass.Inner0 + opclass.Flow(dims), DTypes: "integers, float16, bfloat16, float32, float64", Note: "NaN wins, as in PyTorch",
	}
}

func adaptiveMax[C tensor.Compute](dims int) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		p := kernels.Keep[maxPass[C]](c)
		p.c = c
		self, out, indices := a.Tensor(0), a.Tensor(2), a.Tensor(3)
		if err := p.input(0, self, dims); err != nil {
			return err
		}
		if self.DType == tensor.Uint64 { // computed as int64, which orders them otherwise
			return kernels.Bad(0, self.DType.String(), "a type that int64 represents")
		}
		if err := p.outSizes(a, dims); err != nil {
			return err
		}
		if err := kernels.WantDType(3, indices, tensor.Int64); err != nil {
			return err
		}
		var dst [5]int
		sizes := p.sizes(&dst, self)
		for i := 2; i <= 3; i++ {
			if err := kernels.ResizeOut(a, i, sizes); err != nil {
				return err
			}
		}
		if out.Numel() > 0 {
			p.only = c.Unread(3)
			p.compute(c, self, out, indices)
		}
		return nil
	}
}
