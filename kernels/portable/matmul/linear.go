package matmul

import (
	"fmt"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// linear is input·weightᵀ + bias over the last dimension of input; weight is
// [out, in], bias [out].
func linear(c *kernels.Ctx, a kernels.Args) error {
	x, w, bias, out := a.Tensor(0), a.Tensor(1), a.OptTensor(2), a.Tensor(3)
	if !x.DType.IsFloat() {
		return kernels.Bad(0, x.DType.String(), floatTypes)
	}
	if x.Rank() == 0 {
		return kernels.Bad(0, x.String(), "a tensor of rank 1 or more")
	}
	in := x.Sizes[x.Rank()-1]
	if w.Rank() != 2 || w.Sizes[1] != in {
		return kernels.Bad(1, w.String(), fmt.Sprintf("a matrix of %d columns", in))
	}
	n := w.Sizes[0]
	if bias != nil && (bias.DType != x.DType || bias.Rank() != 1 || bias.Sizes[0] != n) {
		return kernels.Bad(2, bias.String(), fmt.Sprintf("%v[%d]", x.DType, n))
	}
	var sizes [tensor.MaxRank]int
	copy(sizes[:], x.Sizes)
	sizes[x.Rank()-1] = n
	if err := kernels.ResizeOut(a, 3, sizes[:x.Rank()]); err != nil {
		return err
	}
	if out.Numel() == 0 {
		return nil
	}
	return operand.ByType(x.DType, linearOf[float32], linearOf[float64], nil)(c, a)
}

// linearState contains the transposed weights if they are constant.
type linearState[T tensor.Compute] struct {
	product[T]
	weights operand.Cached[T]
}

func linearOf[T tensor.Compute](c *kernels.Ctx, a kernels.Args) error {
	x, w, bias, out := a.Tensor(0), a.Tensor(1), a.OptTensor(2), a.Tensor(3)
	s := kernels.Keep[linearState[T]](c)
	g := &s.product
	g.multiply(1, out.Numel()/w.Sizes[0], w.Sizes[0], w.Sizes[1])
	g.add, g.addRow, g.addCol = operand.In[T](c, bias), 0, 1
	g.A, g.B = operand.In[T](c, x), s.transposed(c, w)
	return into(c, g, out, w.Const && operand.InPlace[T](x, bias, out))
}

// transposed returns the weights as [in, out].
func (s *linearState[T]) transposed(c *kernels.Ctx, w *tensor.Tensor) []T {
	if d := s.weights.Get(w); d != nil {
		return d
	}
	n, k := w.Sizes[0], w.Sizes[1]
	src, dst := operand.In[T](c, w), s.weights.New(c, w, n*k)
	operand.Transpose(c, dst, src, n, k)
	return dst
}
