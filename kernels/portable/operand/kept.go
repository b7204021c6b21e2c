package operand

import (
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Kept is a form of a constant tensor that is worth computing once: a field of what
// an instruction keeps ([kernels.Keep]). An instruction may see another constant
// tensor at another execute, so the form remembers what it was made of.
type Kept[T tensor.Element] struct {
	of   *tensor.Tensor
	src  *byte
	data []T
}

func (k *Kept[T]) keep(t *tensor.Tensor, data []T) {
	k.of, k.src, k.data = t, &t.Data[0], data
}

// Get is the form kept for t, nil where there is none.
func (k *Kept[T]) Get(t *tensor.Tensor) []T {
	if !t.Const || k.of != t || len(t.Data) == 0 || k.src != &t.Data[0] {
		return nil
	}
	return k.data
}

// Room is memory of n elements for the form of t, which lasts as long as k where t
// is constant and until the operator returns otherwise.
func (k *Kept[T]) Room(c *kernels.Ctx, t *tensor.Tensor, n int) []T {
	if !t.Const || len(t.Data) == 0 {
		return kernels.Scratch[T](c, n)
	}
	k.keep(t, make([]T, n))
	return k.data
}

// KeptIn is [In], converting and relaying out a constant tensor once only.
func KeptIn[T tensor.Compute](c *kernels.Ctx, k *Kept[T], t *tensor.Tensor) []T {
	if d := k.Get(t); d != nil {
		return d
	}
	d := In[T](c, t)
	if o := own[T](t); t.Const && len(d) > 0 && (len(o) == 0 || &o[0] != &d[0]) {
		k.keep(t, slices.Clone(d))
	}
	return d
}
