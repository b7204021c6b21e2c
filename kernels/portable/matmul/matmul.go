// Package matmul (no compatibility promise) implements the ATen operators that multiply matrices (mm, bmm, addmm,
// linear) and those on all pairs of rows (cdist, pdist).
package matmul

import (
	"fmt"

	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

const (
	realTypes  = "integers, float16, bfloat16, float32, float64"
	floatTypes = "float16, bfloat16, float32, float64"
)

// mm is mm.out for matrices and bmm.out for batches of them.
func mm(c *kernels.Ctx, a kernels.Args) error {
	x, y, out := a.Tensor(0), a.Tensor(1), a.Tensor(2)
	rank := x.Rank()
	if rank != 2 && rank != 3 {
		return kernels.Bad(0, x.String(), "a matrix, or a batch of them for bmm")
	}
	if y.Rank() != rank || y.Sizes[rank-2] != x.Sizes[rank-1] || rank == 3 && y.Sizes[0] != x.Sizes[0] {
		return kernels.Bad(1, y.String(), "rows as many as the columns of "+x.String())
	}
	sizes := [3]int{x.Sizes[0], x.Sizes[rank-2], y.Sizes[rank-1]}
	if err := kernels.ResizeOut(a, 2, sizes[3-rank:]); err != nil {
		return err
	}
	switch out.DType {
	case tensor.Complex64:
		return rawProduct[complex64](c, x, y, out)
	case tensor.Complex128:
		return rawProduct[complex128](c, x, y, out)
	}
	f := operand.ByType(x.DType, mmOf[float32], mmOf[float64], mmOf[int64])
	if f == nil {
		return kernels.Bad(0, x.DType.String(), realTypes)
	}
	return f(c, a)
}

func mmOf[T tensor.Compute](c *kernels.Ctx, a kernels.Args) error {
	x, y, out := a.Tensor(0), a.Tensor(1), a.Tensor(2)
	g := shaped[T](c, x, y)
	g.A, g.B = operand.In[T](c, x), operand.In[T](c, y)
	return into(c, g, out, operand.InPlace[T](x, y, out))
}

func rawProduct[T complex64 | complex128](c *kernels.Ctx, x, y, out *tensor.Tensor) error {
	g := shaped[T](c, x, y)
	if out.Numel() == 0 {
		return nil
	}
	dst := tensor.View[T](operand.OutRows(c, out))
	if g.K > 0 {
		g.A, g.B = tensor.View[T](operand.Rows(c, x)), tensor.View[T](operand.Rows(c, y))
	}
	g.C = dst
	err := g.run(c)
	operand.StoreRows(c, out, tensor.BytesOf(dst))
	return err
}

// shaped returns the instruction's product, set up for dense x·y of rank 2 or 3.
func shaped[T simd.Number](c *kernels.Ctx, x, y *tensor.Tensor) *product[T] {
	g, batch, r := kernels.Keep[product[T]](c), 1, x.Rank()
	if r == 3 {
		batch = x.Sizes[0]
	}
	g.multiply(batch, x.Sizes[r-2], y.Sizes[r-1], x.Sizes[r-1])
	return g
}

// addmm is beta·self + alpha·(mat1·mat2); a beta of 0 leaves self unread.
func addmm(c *kernels.Ctx, a kernels.Args) error {
	self, x, y := a.Tensor(0), a.Tensor(1), a.Tensor(2)
	if x.Rank() != 2 {
		return kernels.Bad(1, x.String(), "a matrix")
	}
	if y.Rank() != 2 || y.Sizes[0] != x.Sizes[1] {
		return kernels.Bad(2, y.String(), "a matrix with rows as many as the columns of "+x.String())
	}
	sizes := [2]int{x.Sizes[0], y.Sizes[1]}
	if !strided.BroadcastsTo(self.Sizes, sizes[:]) {
		return kernels.Bad(0, self.String(), fmt.Sprintf("a shape that expands to [%d %d]", sizes[0], sizes[1]))
	}
	for i := 3; i <= 4; i++ {
		if x.DType.IsInt() && a.Scalar(i).IsFloat() {
			return kernels.Bad(i, a.Scalar(i).String(), "a whole number for "+x.DType.String())
		}
	}
	if err := kernels.ResizeOut(a, 5, sizes[:]); err != nil {
		return err
	}
	f := operand.ByType(x.DType, addmmOf[float32], addmmOf[float64], addmmOf[int64])
	if f == nil {
		return kernels.Bad(1, x.DType.String(), realTypes)
	}
	return f(c, a)
}

func addmmOf[T tensor.Compute](c *kernels.Ctx, a kernels.Args) error {
	self, x, y, out := a.Tensor(0), a.Tensor(1), a.Tensor(2), a.Tensor(5)
	g := shaped[T](c, x, y)
	g.beta, g.alpha = kernels.ScalarAs[T](a.Scalar(3)), kernels.ScalarAs[T](a.Scalar(4))
	if g.beta != 0 {
		g.add = operand.In[T](c, self)
		g.addRow, g.addCol = broadcastStrides(self.Sizes)
	}
	g.A, g.B = operand.In[T](c, x), operand.In[T](c, y)
	return into(c, g, out, operand.InPlace[T](x, y, self, out))
}

// into computes g for out. inPlace reports whether all operands are the tensors' own memory.
func into[T tensor.Compute](c *kernels.Ctx, g *product[T], out *tensor.Tensor, inPlace bool) error {
	g.C = operand.Out[T](c, out)
	err := g.run(c)
	operand.Store(c, out, g.C)
	if inPlace {
		c.Repeat(g)
	}
	return err
}

// broadcastStrides returns the row and column strides of a dense tensor of rank up to 2 as a matrix, 0 along
// broadcast dimensions.
func broadcastStrides(sizes []int) (row, col int) {
	r := len(sizes)
	if r >= 1 && sizes[r-1] != 1 {
		col = 1
	}
	if r == 2 && sizes[0] != 1 {
		row = sizes[1]
	}
	return row, col
}
