// Package operand (no compatibility promise) hands tensors to operators as dense arrays of
// a compute type in logical order, whatever their element type and dim order, and takes
// results back.
package operand

import (
	"fmt"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// In is t's elements in logical order: t's own memory where they are stored so,
// else scratch memory.
func In[T tensor.Compute](c *kernels.Ctx, t *tensor.Tensor) []T {
	n := t.Numel()
	if n == 0 {
		return nil
	}
	d := own[T](t)
	if d == nil {
		d = kernels.Scratch[T](c, n)
		tensor.Loader[T](t.DType)(d, t.Data)
	}
	return logical(c, t, d)
}

// OptIn is In, or nil for nil.
func OptIn[T tensor.Compute](c *kernels.Ctx, t *tensor.Tensor) []T {
	if t == nil {
		return nil
	}
	return In[T](c, t)
}

// Raw is In without a conversion, for element types that no compute type loads. T
// stores t's DType.
func Raw[T tensor.Element](c *kernels.Ctx, t *tensor.Tensor) []T {
	return logical(c, t, tensor.View[T](t.Data))
}

// Out is where a kernel writes t's elements in logical order: t's own memory or
// scratch memory, not zeroed. [Store] completes it. t has its final sizes.
func Out[T tensor.Compute](c *kernels.Ctx, t *tensor.Tensor) []T {
	if d := own[T](t); d != nil && t.IsContiguous() {
		return d
	}
	return kernels.Scratch[T](c, t.Numel())
}

// Store brings what was written to d, which came from [Out], into t.
func Store[T tensor.Compute](c *kernels.Ctx, t *tensor.Tensor, d []T) {
	n := t.Numel()
	if n == 0 {
		return
	}
	o := own[T](t)
	if !t.IsContiguous() {
		d = physical(c, t, d, o)
	}
	if o == nil {
		tensor.Storer[T](t.DType)(t.Data, d)
	}
}

// RawOut is Out for element types that no compute type loads; RawStore completes it.
func RawOut[T tensor.Element](c *kernels.Ctx, t *tensor.Tensor) []T {
	if t.IsContiguous() {
		return tensor.View[T](t.Data)
	}
	return kernels.Scratch[T](c, t.Numel())
}

// RawStore brings what was written to d, which came from [RawOut], into t.
func RawStore[T tensor.Element](c *kernels.Ctx, t *tensor.Tensor, d []T) {
	if t.Numel() > 0 && !t.IsContiguous() {
		physical(c, t, d, tensor.View[T](t.Data))
	}
}

// InPlace reports whether In, and Out, give the tensors' own memory. It skips nil.
func InPlace[T tensor.Compute](tensors ...*tensor.Tensor) bool {
	for _, t := range tensors {
		if t != nil && (t.DType != tensor.TypeOf[T]() || !t.IsContiguous()) {
			return false
		}
	}
	return true
}

// own is t's memory where it holds elements of T.
func own[T tensor.Compute](t *tensor.Tensor) []T {
	if t.DType != tensor.TypeOf[T]() {
		return nil
	}
	return tensor.View[T](t.Data)
}

// ByType picks the function that computes on elements of type d, nil where none of
// the three does or where the one that would is nil.
func ByType(d tensor.DType, f32, f64, i64 kernels.Func) kernels.Func {
	switch ct, ok := tensor.ComputeType(d); {
	case !ok || d == tensor.Bool:
		return nil
	case ct == tensor.Float32:
		return f32
	case ct == tensor.Float64:
		return f64
	}
	return i64
}

// SameType is f, refusing calls whose tensor arguments of the given indexes have not all the
// element type of the first of them.
func SameType(f kernels.Func, first int, others ...int) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		want := a.Tensor(first).DType
		for _, i := range others {
			if got := a.Tensor(i).DType; got != want {
				return kernels.Badf(i, fmt.Sprintf("%v, as argument %d", want, first), "%v", got)
			}
		}
		return f(c, a)
	}
}
