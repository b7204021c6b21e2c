package elementwise

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// binary is an operator of two operands, tensors or numbers, whose result has their common type or one that it may be
// stored as.
type binary struct {
	table
	rule   rule
	scaled *table // for an alpha, argument 2, other than 1; nil for operators without alpha
	shift  bool   // the kernel reads the width of the common type from num[0], the largest shift to the right from num[1]
}

// run runs (Tensor or Scalar self, Tensor or Scalar other, …, out).
func (b *binary) run(c *kernels.Ctx, a kernels.Args) error { return b.call(c, a, 0, 1) }

// reversed is run with the operands exchanged.
func (b *binary) reversed(c *kernels.Ctx, a kernels.Args) error { return b.call(c, a, 1, 0) }

// call runs the operator on arguments x and y.
func (b *binary) call(c *kernels.Ctx, a kernels.Args, x, y int) error {
	cl := call{out: outArg(a), divisor: 1}
	cl.in[0], cl.in[1] = cl.operand(a, x), cl.operand(a, y)
	common := cl.commonType()
	if err := cl.resolveAs(common, b.rule, b.test); err != nil {
		return err
	}
	t := &b.table
	switch {
	case b.scaled != nil:
		alpha := a.Scalar(2)
		if alpha.IsFloat() && cl.compute.IsInt() {
			return kernels.Bad(2, alpha.String(), "an integer alpha for integer operands")
		}
		if alpha.Float() != 1 {
			t, cl.num[0] = b.scaled, alpha
		}
	case b.shift:
		width := int64(8 * common.Size())
		largest := width - 1
		if lo, _ := common.IntRange(); lo == 0 {
			largest = width
		}
		cl.num[0], cl.num[1] = kernels.Scalar{Type: tensor.Int64, I: width}, kernels.Scalar{Type: tensor.Int64, I: largest}
	}
	return t.run(c, a, &cl)
}

// operand returns argument i as an operand. At most one operand is a number.
func (cl *call) operand(a kernels.Args, i int) arg {
	if a[i].Kind == tensor.KindTensor {
		return tensorArg(a, i)
	}
	cl.num[operandNum] = a.Scalar(i)
	return arg{i: i, number: true}
}
