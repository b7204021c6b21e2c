package ir

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// An elided view has no instruction that sets its sizes. If the sizes of the value whose bytes it has
// vary, its own must follow them: otherwise it would have bytes that the run has not written.

// followSchema is the operator that sets the sizes and bytes of an elided view. No file calls it.
const followSchema = "etrun::elided_view(Tensor(a) self) -> Tensor(a)"

var followSignature = func() *kernels.Signature {
	sig, err := kernels.ParseSchema(followSchema)
	if err != nil {
		panic(err)
	}
	return sig
}()

// followStep returns the step that makes value v a view of a value, at whatever sizes that one has.
func (b *builder) followStep(from, v int) Step {
	f := &follower{from: b.Values[from].Tensor, to: b.Values[v].Tensor, value: v, asWritten: b.links.AsWritten}
	return Step{Kind: KernelCall, Op: &kernels.Op{Schema: followSchema, Func: f.call}, Sig: followSignature, Args: []int{from, v}}
}

// follower is the declarations of an elided view and of the value that it is a view of.
type follower struct {
	from, to  *Tensor
	value     int
	asWritten bool // dim orders may differ
}

func (f *follower) call(c *kernels.Ctx, a kernels.Args) error {
	from, to := a.Tensor(0), a.Tensor(1)
	var room [tensor.MaxRank]int
	sizes, ok := f.sizes(room[:0], from.Sizes)
	if !ok || !f.asWritten && !sameOrder(from, to, sizes) {
		return kernels.Badf(0, fmt.Sprintf("sizes that determine those of value %d, at most %v, a view that the exporter left out", f.value,
			f.to.Sizes),
			"sizes %v", from.Sizes)
	}
	if err := to.BindSized(sizes, from.Data); err != nil {
		return &kernels.OutError{Arg: 1, Err: err}
	}
	c.Repeat(followed{})
	return nil
}

// followed repeats a call: there is nothing to do while both tensors stay as they are.
type followed struct{}

func (followed) Repeat(*kernels.Ctx) error { return nil }

// sizes appends the view's sizes when the other value has sizes now. Both declarations are divided into
// the shortest groups of dimensions with the same product. A group at its declared sizes has the
// declared ones in the view; else the view must have only one dimension there, the product.
func (f *follower) sizes(dst, now []int) (sizes []int, ok bool) {
	if slices.Equal(now, f.from.Sizes) {
		return append(dst, f.to.Sizes...), true
	}
	if f.from.DType.Size() != f.to.DType.Size() || len(now) != len(f.from.Sizes) || slices.Contains(f.from.Sizes, 0) {
		return nil, false
	}
	from, to := f.from.Sizes, f.to.Sizes
	for len(from) > 0 || len(to) > 0 {
		n, m := group(from, to)
		if n < 0 {
			return nil, false
		}
		if dst, ok = follow(dst, now[:n], from[:n], to[:m]); !ok {
			return nil, false
		}
		now, from, to = now[n:], from[n:], to[m:]
	}
	return dst, true
}

// group returns the least numbers of leading dimensions of two lists with the same product, without
// zeros; -1 if there are none. Dimensions of size 1 are groups of their own.
func group(a, b []int) (n, m int) {
	switch {
	case len(a) > 0 && a[0] == 1:
		return 1, 0
	case len(b) > 0 && b[0] == 1:
		return 0, 1
	}
	for p, q := 1, 1; n == 0 || m == 0 || p != q; {
		switch {
		case n == 0 || m > 0 && p < q:
			if n == len(a) {
				return -1, -1
			}
			p, n = p*a[n], n+1
		default:
			if m == len(b) || b[m] == 0 {
				return -1, -1
			}
			q, m = q*b[m], m+1
		}
	}
	return n, m
}

// follow appends the sizes of a group of a view's dimensions, declared as to, when the dimensions that
// were declared as from have sizes now.
func follow(dst, now, from, to []int) (sizes []int, ok bool) {
	if slices.Equal(now, from) {
		return append(dst, to...), true
	}
	elements, varying := 1, 0
	for _, n := range now {
		elements *= n
	}
	for _, n := range to {
		if n != 1 {
			varying++
			n = elements
		}
		dst = append(dst, n)
	}
	return dst, varying == 1
}

// sameOrder reports whether to has, at other sizes, each element at the same offset as from.
func sameOrder(from, to *tensor.Tensor, sizes []int) bool {
	var a, b [tensor.MaxRank]run
	return slices.Equal(appendRuns(a[:0], from.Sizes, from.DimOrder), appendRuns(b[:0], sizes, to.DimOrder))
}
