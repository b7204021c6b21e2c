package operand

import (
	"sync"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// copies are idle strided copies; the few tensors that are not stored as an operator
// computes borrow one.
var copies = sync.Pool{New: func() any { return new(strided.Copier) }}

// relayout copies a box of elements of T.
func relayout[T tensor.Element](c *kernels.Ctx, dst, src []T, box strided.Shape) {
	s := copies.Get().(*strided.Copier)
	s.Copy(c, tensor.TypeOf[T]().Size(), box, strided.Buffer{Data: tensor.BytesOf(dst)}, strided.Buffer{Data: tensor.BytesOf(src)})
	copies.Put(s)
}

// logical puts d, which holds t's elements in memory order, into logical order.
func logical[T tensor.Element](c *kernels.Ctx, t *tensor.Tensor, d []T) []T {
	if t.IsContiguous() {
		return d
	}
	var strides [tensor.MaxRank]int
	l := kernels.Scratch[T](c, len(d))
	relayout(c, l, d, strided.Shape{Sizes: t.Sizes, Dst: dense(&strides, t.Sizes), Src: t.Strides})
	return l
}

// physical puts d, in logical order, into t's memory order: into dst, or scratch
// memory where dst is nil.
func physical[T tensor.Element](c *kernels.Ctx, t *tensor.Tensor, d, dst []T) []T {
	if dst == nil {
		dst = kernels.Scratch[T](c, len(d))
	}
	var strides [tensor.MaxRank]int
	relayout(c, dst, d, strided.Shape{Sizes: t.Sizes, Dst: t.Strides, Src: dense(&strides, t.Sizes)})
	return dst
}

// dense is the strides of a dense array of the given sizes.
func dense(strides *[tensor.MaxRank]int, sizes []int) []int {
	stride := 1
	for i := len(sizes) - 1; i >= 0; i-- {
		strides[i] = stride
		stride *= max(sizes[i], 1)
	}
	return strides[:len(sizes)]
}

// Transpose makes dst [cols, rows] of src [rows, cols], both dense.
func Transpose[T tensor.Element](c *kernels.Ctx, dst, src []T, rows, cols int) {
	sizes, to, from := [2]int{rows, cols}, [2]int{1, rows}, [2]int{cols, 1}
	relayout(c, dst, src, strided.Shape{Sizes: sizes[:], Dst: to[:], Src: from[:]})
}
