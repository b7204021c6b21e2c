// Package operand (no compatibility promise) converts the tensors of an operator to dense arrays in logical order, of
// their element type or of a compute type, and stores results.
package operand

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Rows returns t's elements in logical order: its own bytes if it is contiguous, else a copy in scratch memory.
func Rows(c *kernels.Ctx, t *tensor.Tensor) []byte { return Expand(c, t, t.Sizes) }

// Expand is Rows of t broadcast to sizes, which t's sizes fit.
func Expand(c *kernels.Ctx, t *tensor.Tensor, sizes []int) []byte {
	if t.IsContiguous() && slices.Equal(t.Sizes, sizes) {
		return t.Data
	}
	n := t.DType.Size()
	for _, size := range sizes {
		n *= size
	}
	rows := kernels.Scratch[uint8](c, n)
	Broadcast(c, rows, t, sizes)
	return rows
}

// PlainBytes is the size up to which dense memory is copied without a plan, which takes longer, and
// without threads.
const PlainBytes = 32 << 10

// Broadcast writes t's elements, broadcast to sizes, to rows in logical order.
func Broadcast(c *kernels.Ctx, rows []byte, t *tensor.Tensor, sizes []int) {
	if n := t.NBytes(); n <= PlainBytes && t.IsContiguous() && slices.Equal(t.Sizes, sizes) {
		copy(rows, t.Data[:n])
		return
	}
	var src, dst strided.View
	src.Of(t)
	src.Expand(sizes)
	dst.Dense(rows, src.Elem, sizes)
	strided.CopyView(c, &dst, &src)
}

// OutRows returns memory for t's elements in logical order: its own bytes if it is contiguous, else scratch memory, not
// zeroed. [StoreRows] completes it. t has its final sizes.
func OutRows(c *kernels.Ctx, t *tensor.Tensor) []byte {
	if t.IsContiguous() {
		return t.Data
	}
	return kernels.Scratch[uint8](c, t.NBytes())
}

// StoreRows copies rows, which [OutRows] returned, to t.
func StoreRows(c *kernels.Ctx, t *tensor.Tensor, rows []byte) {
	if t.IsContiguous() {
		return
	}
	var src, dst strided.View
	dst.Of(t)
	src.Dense(rows, dst.Elem, t.Sizes)
	strided.CopyView(c, &dst, &src)
}

// In returns t's elements in logical order as T: its own memory if they are stored so, else scratch memory.
func In[T tensor.Compute](c *kernels.Ctx, t *tensor.Tensor) []T {
	if t == nil || t.Numel() == 0 {
		return nil
	}
	return Load[T](c, t.DType, Rows(c, t))
}

// Load converts elements of type d to T, in scratch memory unless they are stored as T.
func Load[T tensor.Compute](c *kernels.Ctx, d tensor.DType, elements []byte) []T {
	if d == tensor.TypeOf[T]() {
		return tensor.View[T](elements)
	}
	loaded := kernels.Scratch[T](c, len(elements)/d.Size())
	load, size := tensor.Loader[T](d), d.Size()
	c.Blocks(len(loaded), func(lo, hi int) { load(loaded[lo:hi], elements[lo*size:hi*size]) })
	return loaded
}

// Convert converts elements of type from to another, in scratch memory unless the two are equal.
func Convert(c *kernels.Ctx, elements []byte, from, to tensor.DType) []byte {
	if from == to {
		return elements
	}
	n := len(elements) / from.Size()
	converted := kernels.Scratch[uint8](c, n*to.Size())
	c.Blocks(n, func(lo, hi int) {
		tensor.CastBytes(converted[lo*to.Size():hi*to.Size()], to, elements[lo*from.Size():], from, hi-lo)
	})
	return converted
}

// Out returns memory for t's elements in logical order as T: its own or scratch memory, not zeroed. [Store] completes
// it. t has its final sizes.
func Out[T tensor.Compute](c *kernels.Ctx, t *tensor.Tensor) []T {
	if t.DType == tensor.TypeOf[T]() {
		return tensor.View[T](OutRows(c, t))
	}
	return kernels.Scratch[T](c, t.Numel())
}

// Store stores d, which [Out] returned, in t.
func Store[T tensor.Compute](c *kernels.Ctx, t *tensor.Tensor, d []T) {
	rows := tensor.BytesOf(d)
	if t.DType != tensor.TypeOf[T]() {
		rows = OutRows(c, t)
		storeBlocks(c, t.DType, rows, d)
	}
	StoreRows(c, t, rows)
}

// Bytes converts elements to type d, in scratch memory unless d stores T.
func Bytes[T tensor.Compute](c *kernels.Ctx, d tensor.DType, elements []T) []byte {
	if d == tensor.TypeOf[T]() {
		return tensor.BytesOf(elements)
	}
	b := kernels.Scratch[uint8](c, len(elements)*d.Size())
	storeBlocks(c, d, b, elements)
	return b
}

// storeBlocks converts elements to type d in dst.
func storeBlocks[T tensor.Compute](c *kernels.Ctx, d tensor.DType, dst []byte, elements []T) {
	store, size := tensor.Storer[T](d), d.Size()
	c.Blocks(len(elements), func(lo, hi int) { store(dst[lo*size:], elements[lo:hi]) })
}

// InPlace reports whether In and Out return the tensors' own memory. It skips nil.
func InPlace[T tensor.Compute](tensors ...*tensor.Tensor) bool {
	for _, t := range tensors {
		if t != nil && (t.DType != tensor.TypeOf[T]() || !t.IsContiguous()) {
			return false
		}
	}
	return true
}

// Transpose writes the transpose of src [rows, cols] to dst [cols, rows], both dense.
func Transpose[T tensor.Element](c *kernels.Ctx, dst, src []T, rows, cols int) {
	elem := tensor.TypeOf[T]().Size()
	sizes, to, from := [2]int{rows, cols}, [2]int{1, rows}, [2]int{cols, 1}
	strided.Copy(c, elem, strided.Shape{Sizes: sizes[:], Dst: to[:], Src: from[:]},
		strided.Buffer{Data: tensor.BytesOf(dst)}, strided.Buffer{Data: tensor.BytesOf(src)})
}

// ByType returns what computes on elements of type d, by its compute type: a function for each. It returns the zero F
// for bool and for types that operators do not compute on.
func ByType[F any](d tensor.DType, f32, f64, i64 F) (f F) {
	if d == tensor.Bool {
		return f
	}
	return ByCompute(d, f32, f64, i64)
}

// ByCompute is [ByType] that treats bool as an integer type.
func ByCompute[F any](d tensor.DType, f32, f64, i64 F) (f F) {
	switch ct, ok := tensor.ComputeType(d); {
	case !ok:
		return f
	case ct == tensor.Float32:
		return f32
	case ct == tensor.Float64:
		return f64
	}
	return i64
}

// Typed returns the operator that computes in the compute type of tensor argument i: a function for each, nil for those
// that it does not accept. want describes the types that it accepts.
func Typed(i int, want string, f32, f64, i64 kernels.Func) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		d := a.Tensor(i).DType
		f := ByType(d, f32, f64, i64)
		if f == nil {
			return kernels.Bad(i, d.String(), want)
		}
		return f(c, a)
	}
}

// SameType returns f with a check that the tensor arguments of the given indexes all have the element type of the first
// of them.
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
