package elementwise

import "github.com/etrun-go/etrun/kernels"

// binary is an operator of two operands, tensors or numbers, whose result has their
// common type or one that it may be stored as.
type binary struct {
	table
	rule rule
}

// tensors runs (Tensor self, Tensor other, …, out).
func (b *binary) tensors(c *kernels.Ctx, a kernels.Args) error {
	return b.call(c, a, &call{in: [maxIn + 1]arg{tensorArg(a, 0), tensorArg(a, 1)}})
}

// scalar runs (Tensor self, Scalar other, …, out).
func (b *binary) scalar(c *kernels.Ctx, a kernels.Args) error {
	cl := call{in: [maxIn + 1]arg{tensorArg(a, 0), {i: 1, number: true}}}
	cl.num[operandNum] = a.Scalar(1)
	return b.call(c, a, &cl)
}

// scalarFirst runs (Scalar self, Tensor other, …, out).
func (b *binary) scalarFirst(c *kernels.Ctx, a kernels.Args) error {
	cl := call{in: [maxIn + 1]arg{{i: 0, number: true}, tensorArg(a, 1)}}
	cl.num[operandNum] = a.Scalar(0)
	return b.call(c, a, &cl)
}

func (b *binary) call(c *kernels.Ctx, a kernels.Args, cl *call) error {
	cl.out, cl.divisor = outArg(a), 1
	if err := cl.resolve(b.rule, b.test); err != nil {
		return err
	}
	return b.run(c, a, cl)
}
