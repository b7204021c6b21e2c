package move

import (
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Strided copies tensors from and to rows of dense elements, in scratch memory where they are
// no such rows. The zero value is ready. It belongs into what the caller gets from
// kernels.Keep, and must not be used by two goroutines at once.
type Strided struct{ strided.Copier }

// Rows gives t's elements row by row: its own bytes where it is contiguous, else a
// copy in scratch memory.
func (s *Strided) Rows(c *kernels.Ctx, t *tensor.Tensor) []byte {
	if t.IsContiguous() {
		return t.Data
	}
	return s.expand(c, t, t.Sizes)
}

// Expand is Rows of t broadcast to sizes, which t's sizes fit (equal or 1, aligned at
// the last dimension).
func (s *Strided) Expand(c *kernels.Ctx, t *tensor.Tensor, sizes []int) []byte {
	if slices.Equal(t.Sizes, sizes) {
		return s.Rows(c, t)
	}
	return s.expand(c, t, sizes)
}

func (s *Strided) expand(c *kernels.Ctx, t *tensor.Tensor, sizes []int) []byte {
	n := t.DType.Size()
	for _, size := range sizes {
		n *= size
	}
	rows := scratch(c, n)
	s.Spread(c, rows, t, sizes)
	return rows
}

// Spread writes t, broadcast to sizes, into rows, element by element of the last
// dimension first.
func (s *Strided) Spread(c *kernels.Ctx, rows []byte, t *tensor.Tensor, sizes []int) {
	var to, from [tensor.MaxRank]int
	box := strided.Shape{Sizes: sizes, Dst: strided.DenseStrides(to[:], sizes), Src: strided.BroadcastStrides(from[:], t.Sizes, t.Strides, len(sizes))}
	s.Copy(c, t.DType.Size(), box, strided.Buffer{Data: rows}, strided.Buffer{Data: t.Data})
}

// Target gives memory for t's elements row by row: its own bytes where it is
// contiguous, else scratch memory that Settle then brings into t.
func (s *Strided) Target(c *kernels.Ctx, t *tensor.Tensor) []byte {
	if t.IsContiguous() {
		return t.Data
	}
	return scratch(c, t.NBytes())
}

// Settle copies rows, which Target gave, into t.
func (s *Strided) Settle(c *kernels.Ctx, t *tensor.Tensor, rows []byte) {
	if t.IsContiguous() {
		return
	}
	var from [tensor.MaxRank]int
	box := strided.Shape{Sizes: t.Sizes, Dst: t.Strides, Src: strided.DenseStrides(from[:], t.Sizes)}
	s.Copy(c, t.DType.Size(), box, strided.Buffer{Data: t.Data}, strided.Buffer{Data: rows})
}
