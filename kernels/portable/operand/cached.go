package operand

import (
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Cached is a converted or packed form of a constant tensor, computed once: a field of an instruction's state
// ([kernels.Keep]). A later run may pass another constant tensor, so it records the tensor and its memory.
type Cached[T tensor.Element] struct {
	of   *tensor.Tensor
	src  *byte
	data []T
}

func (k *Cached[T]) set(t *tensor.Tensor, data []T) {
	k.of, k.src, k.data = t, &t.Data[0], data
}

// Get returns the cached form of t, nil if there is none.
func (k *Cached[T]) Get(t *tensor.Tensor) []T {
	if !t.Const || k.of != t || len(t.Data) == 0 || k.src != &t.Data[0] {
		return nil
	}
	return k.data
}

// New returns memory of n elements for the form of t: as long-lived as k if t is constant, else scratch memory.
func (k *Cached[T]) New(c *kernels.Ctx, t *tensor.Tensor, n int) []T {
	if !t.Const || len(t.Data) == 0 {
		return kernels.Scratch[T](c, n)
	}
	k.set(t, make([]T, n))
	return k.data
}

// CachedIn is [In] that converts a constant tensor only once. It returns nil for nil.
func CachedIn[T tensor.Compute](c *kernels.Ctx, k *Cached[T], t *tensor.Tensor) []T {
	if t == nil {
		return nil
	}
	if d := k.Get(t); d != nil {
		return d
	}
	d := In[T](c, t)
	if t.Const && len(d) > 0 && !InPlace[T](t) {
		k.set(t, slices.Clone(d))
	}
	return d
}
