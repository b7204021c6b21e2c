package cortexm

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// layout describes a tensor's elements in the order of an operator's computation: a dense array of
// dimensions selected by set. It is part of the operator's state.
type layout struct {
	t             *tensor.Tensor
	copies        strided.Copier
	rank          int
	sizes         [tensor.MaxRank]int
	theirs, dense [tensor.MaxRank]int // strides of t and of the array
	inPlace       bool                // t is stored as the array
}

// set uses the order of t's dimensions.
func (l *layout) set(t *tensor.Tensor) {
	l.t, l.rank = t, 0
	for d, n := range t.Sizes {
		l.add(n, t.Strides[d])
	}
	l.settle()
}

// setImage uses t, [N, C, H, W], as [N, H, W, C].
func (l *layout) setImage(t *tensor.Tensor) {
	l.t, l.rank = t, 0
	for _, d := range [...]int{0, 2, 3, 1} {
		l.add(t.Sizes[d], t.Strides[d])
	}
	l.settle()
}

// setChannelsFirst uses t, [1, H, W, C], as [C, H, W].
func (l *layout) setChannelsFirst(t *tensor.Tensor) {
	l.t, l.rank = t, 0
	for _, d := range [...]int{3, 1, 2} {
		l.add(t.Sizes[d], t.Strides[d])
	}
	l.settle()
}

// setLike uses t broadcast to the sizes of out, in the order of out's memory.
func (l *layout) setLike(t, out *tensor.Tensor) {
	l.t, l.rank = t, 0
	missing := out.Rank() - t.Rank()
	for _, o := range out.DimOrder {
		d, stride := int(o)-missing, 0
		if d >= 0 && t.Sizes[d] > 1 {
			stride = t.Strides[d]
		}
		l.add(out.Sizes[o], stride)
	}
	l.settle()
}

func (l *layout) add(size, stride int) {
	l.sizes[l.rank], l.theirs[l.rank] = size, stride
	l.rank++
}

// settle computes the dense strides.
func (l *layout) settle() {
	l.inPlace = true
	for d, stride := range strided.DenseStrides(l.dense[:], l.sizes[:l.rank]) {
		l.inPlace = l.inPlace && (l.sizes[d] == 1 || l.theirs[d] == stride)
	}
}

func (l *layout) numel() int {
	n := 1
	for _, s := range l.sizes[:l.rank] {
		n *= s
	}
	return n
}

// load returns the array: t's own memory, or a copy in scratch memory.
func load[T tensor.Element](c *kernels.Ctx, l *layout) []T {
	if l.inPlace {
		return tensor.View[T](l.t.Data)
	}
	a := kernels.Scratch[T](c, l.numel())
	box := strided.Shape{Sizes: l.sizes[:l.rank], Dst: l.dense[:l.rank], Src: l.theirs[:l.rank]}
	l.copies.Copy(c, l.t.DType.Size(), box, strided.Buffer{Data: tensor.BytesOf(a)}, strided.Buffer{Data: l.t.Data})
	return a
}

// target returns the uninitialized array to write; store completes it.
func target[T tensor.Element](c *kernels.Ctx, l *layout) []T {
	if l.inPlace {
		return tensor.View[T](l.t.Data)
	}
	return kernels.Scratch[T](c, l.numel())
}

// store copies a, which target returned, into t.
func store[T tensor.Element](c *kernels.Ctx, l *layout, a []T) {
	if l.inPlace {
		return
	}
	box := strided.Shape{Sizes: l.sizes[:l.rank], Dst: l.theirs[:l.rank], Src: l.dense[:l.rank]}
	l.copies.Copy(c, l.t.DType.Size(), box, strided.Buffer{Data: l.t.Data}, strided.Buffer{Data: tensor.BytesOf(a)})
}
