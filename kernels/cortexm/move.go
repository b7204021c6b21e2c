package cortexm

import (
	"fmt"
	"math/bits"

	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// quantizedActivation is cortex_m::quantized_activation.out: a table of 256 results,
// the first that of code -128.
func quantizedActivation(c *kernels.Ctx, a kernels.Args) error {
	p, r := kernels.Keep[lookup](c), reader{Args: a}
	r.int8(0, 1, 2)
	if t := a.Tensor(1); t.Numel() != len(p.table) || !t.IsContiguous() {
		r.bad(1, "%v", "256 elements", t)
	}
	if r.resize(2, a.Tensor(0).Sizes); r.err != nil {
		return r.err
	}
	p.of, p.out = a.Tensor(1), a.Tensor(2)
	p.in.setLike(a.Tensor(0), p.out)
	return again(c, p)
}

type lookup struct {
	in      layout
	of, out *tensor.Tensor
	table   [256]int8 // by the code as an unsigned number
	x       []int8
}

func (p *lookup) Repeat(c *kernels.Ctx) error {
	for i, v := range tensor.Data[int8](p.of) {
		p.table[uint8(i-128)] = v
	}
	if p.out.Numel() > 0 {
		p.x = load[int8](c, &p.in)
		c.Parallel(len(p.x), grain, p)
	}
	return nil
}

// Range looks elements [lo, hi) up.
func (p *lookup) Range(_, lo, hi int) {
	z := tensor.Data[int8](p.out)[lo:hi]
	for i, v := range p.x[lo:hi] {
		z[i] = p.table[uint8(v)]
	}
}

// copier copies a tensor's elements to places in another, and fills the others.
type copier struct {
	run     strided.Copier
	in, out *tensor.Tensor
	box     strided.Shape
	at      int // where the first element goes
	fill    bool
	value   int8
	sizes   [tensor.MaxRank]int
	src     [tensor.MaxRank]int // strides
}

func (p *copier) Repeat(c *kernels.Ctx) error {
	if p.fill {
		simd.Fill(tensor.Data[int8](p.out), p.value)
	}
	if p.in.Numel() > 0 {
		p.run.Copy(c, 1, p.box, strided.Buffer{Data: p.out.Data, Offset: p.at}, strided.Buffer{Data: p.in.Data})
	}
	return nil
}

// transpose is cortex_m::transpose.out: dimension d of the out is dimension perm[d] of
// the input.
func transpose(c *kernels.Ctx, a kernels.Args) error {
	p, r := kernels.Keep[copier](c), reader{Args: a}
	r.int8(0, 2)
	in, perm := a.Tensor(0), a.Ints(1)
	if len(perm) != in.Rank() {
		return kernels.Badf(1, fmt.Sprintf("%d dimensions", in.Rank()), "%v", perm)
	}
	seen := uint32(0)
	for i, v := range perm {
		d, err := kernels.WrapDim(1, v, in.Rank())
		if err != nil {
			return err
		}
		if seen&(1<<d) != 0 {
			return kernels.Badf(1, "each dimension once", "%v", perm)
		}
		seen |= 1 << d
		p.sizes[i], p.src[i] = in.Sizes[d], in.Strides[d]
	}
	if r.resize(2, p.sizes[:len(perm)]); r.err != nil {
		return r.err
	}
	p.in, p.out = in, a.Tensor(2)
	p.box = strided.Shape{Sizes: p.out.Sizes, Dst: p.out.Strides, Src: p.src[:len(perm)]}
	return again(c, p)
}

// pad is cortex_m::pad.out. The four entries of pre_pad and post_pad are those of the
// last four dimensions, in the order N, H, W, C where the input is an image that the
// device takes for one with channels last.
func pad(c *kernels.Ctx, a kernels.Args) error {
	p, r := kernels.Keep[copier](c), reader{Args: a}
	r.int8(0, 4)
	in := a.Tensor(0)
	if n := in.Rank(); n < 1 || n > padDims {
		return kernels.Badf(0, "rank 1 to 4", "%v", in)
	}
	p.fill, p.value, p.at = true, int8(r.code(3)), 0
	before, after := r.padding(1, in), r.padding(2, in)
	for d, n := range in.Sizes {
		p.sizes[d] = before[d] + n + after[d]
	}
	if r.resize(4, p.sizes[:in.Rank()]); r.err != nil {
		return r.err
	}
	p.in, p.out = in, a.Tensor(4)
	for d := range in.Sizes {
		p.at += before[d] * p.out.Strides[d]
	}
	p.box = strided.Shape{Sizes: in.Sizes, Dst: p.out.Strides, Src: in.Strides}
	return again(c, p)
}

// padDims is the number of entries of a padding, maxPad their largest.
const padDims, maxPad = 4, 1<<min(31, bits.UintSize-4) - 1

// padding reads the padding of each dimension of in from argument i.
func (r *reader) padding(i int, in *tensor.Tensor) (dst [padDims]int) {
	list := r.Ints(i)
	if len(list) != padDims {
		r.bad(i, "%v", "4 entries", list)
		return dst
	}
	missing := padDims - in.Rank()
	for k, v := range list {
		if v < 0 || v > maxPad || v > 0 && k < missing {
			r.bad(i, "%v", fmt.Sprintf("entries in [0, %d], 0 for the %d missing dimensions", maxPad, missing), list)
		}
		if d := k - missing; d >= 0 {
			dst[d] = int(v)
		}
	}
	if isChannelsLast(in) {
		dst[1], dst[2], dst[3] = dst[3], dst[1], dst[2]
	}
	return dst
}

// isChannelsLast says that the device takes t for an image with channels last: by its
// dim order, or where one channel or one point makes no difference.
func isChannelsLast(t *tensor.Tensor) bool {
	if t.Rank() != 4 {
		return false
	}
	return t.Sizes[1] == 1 || t.Sizes[2] == 1 && t.Sizes[3] == 1 || [4]uint8(t.DimOrder) == [4]uint8{0, 2, 3, 1}
}
