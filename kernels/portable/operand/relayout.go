package operand

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// relayout copies a box of elements of T.
func relayout[T tensor.Element](c *kernels.Ctx, dst, src []T, box strided.Shape) {
	strided.Copy(c, tensor.TypeOf[T]().Size(), box, strided.Buffer{Data: tensor.BytesOf(dst)}, strided.Buffer{Data: tensor.BytesOf(src)})
}

// logical puts d, which holds t's elements in memory order, into logical order.
func logical[T tensor.Element](c *kernels.Ctx, t *tensor.Tensor, d []T) []T {
	if t.IsContiguous() {
		return d
	}
	var strides [tensor.MaxRank]int
	l := kernels.Scratch[T](c, len(d))
	relayout(c, l, d, strided.Shape{Sizes: t.Sizes, Dst: strided.DenseStrides(strides[:], t.Sizes), Src: t.Strides})
	return l
}

// physical puts d, in logical order, into t's memory order: into dst, or scratch
// memory where dst is nil.
func physical[T tensor.Element](c *kernels.Ctx, t *tensor.Tensor, d, dst []T) []T {
	if dst == nil {
		dst = kernels.Scratch[T](c, len(d))
	}
	var strides [tensor.MaxRank]int
	relayout(c, dst, d, strided.Shape{Sizes: t.Sizes, Dst: t.Strides, Src: strided.DenseStrides(strides[:], t.Sizes)})
	return dst
}

// Transpose makes dst [cols, rows] of src [rows, cols], both dense.
func Transpose[T tensor.Element](c *kernels.Ctx, dst, src []T, rows, cols int) {
	sizes, to, from := [2]int{rows, cols}, [2]int{1, rows}, [2]int{cols, 1}
	relayout(c, dst, src, strided.Shape{Sizes: sizes[:], Dst: to[:], Src: from[:]})
}
