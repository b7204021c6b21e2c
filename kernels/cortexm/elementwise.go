package cortexm

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// grain is the number of elements worth a thread.
const grain = 1 << 13

// binary is the state of operators on two tensors: the operands, broadcast to the out, in the
// memory order of the out.
type binary[T int8 | int16] struct {
	a, b    layout
	out     *tensor.Tensor
	x, y, z []T // operands and result
	body    cpu.Body
}

// begin resizes the out, argument out, to the sizes that operands i and j broadcast to, and computes
// body, which contains p, over its elements.
func (p *binary[T]) begin(c *kernels.Ctx, r *reader, i, j, out int, sizes []int, body cpu.Body) error {
	if r.resize(out, sizes); r.err != nil {
		return r.err
	}
	p.out, p.body = r.Tensor(out), body
	p.a.setLike(r.Tensor(i), p.out)
	p.b.setLike(r.Tensor(j), p.out)
	return again(c, p)
}

// Repeat computes the same tensors again.
func (p *binary[T]) Repeat(c *kernels.Ctx) error {
	if p.out.Numel() > 0 {
		p.x, p.y, p.z = load[T](c, &p.a), load[T](c, &p.b), tensor.View[T](p.out.Data)
		c.Parallel(len(p.z), grain, p.body)
	}
	return nil
}

// again executes the call and registers it for repetition.
func again(c *kernels.Ctx, r kernels.Repeater) error {
	err := r.Repeat(c)
	if err == nil {
		c.Repeat(r)
	}
	return err
}

// equalOrChannels returns the sizes of operands i and j: equal ones, or those of an image [N, C, H,
// W] if the other is [1, C, 1, 1].
func (r *reader) equalOrChannels(i, j int) []int {
	x, y := r.Tensor(i), r.Tensor(j)
	switch {
	case slices.Equal(x.Sizes, y.Sizes):
		return x.Sizes
	case x.Rank() != 4 || y.Rank() != 4 || x.Sizes[1] != y.Sizes[1]:
	case perChannel(y.Sizes):
		return x.Sizes
	case perChannel(x.Sizes):
		return y.Sizes
	}
	r.bad(j, "%v", fmt.Sprintf("the sizes of the other operand, %v, or one of the two [1, C, 1, 1]", x), y)
	return nil
}

func perChannel(sizes []int) bool { return sizes[0] == 1 && sizes[2] == 1 && sizes[3] == 1 }

// quantizedAdd is cortex_m::quantized_add.out: both operands are shifted left by 20 bits and scaled
// to a common scale, added, and scaled to the out's.
func quantizedAdd(c *kernels.Ctx, a kernels.Args) error {
	p, r := kernels.Keep[adder](c), reader{Args: a}
	r.int8(0, 4, 13)
	sizes := r.equalOrChannels(0, 4)
	p.first.set(&r, 1)
	p.second.set(&r, 5)
	p.zero, p.sum = r.int32(8), r.scale(9)
	p.least, p.most = r.bounds(11, 12)
	return p.begin(c, &r, 0, 4, 13, sizes, p)
}

type adder struct {
	binary[int8]
	quantizer
	sum           scale
	first, second addend
}

// addend is a scaled operand of an addition, by stored value.
type addend [256]int32

// set reads zero point, multiplier and shift, starting at argument i.
func (t *addend) set(r *reader, i int) {
	zero, s := r.int32(i), r.scale(i+1)
	if r.err != nil {
		return
	}
	const left = 20 // additional bits of precision before scaling
	for v := range t {
		t[v] = s.apply((int32(int8(v)) - zero) << left)
	}
}

// Range adds elements [lo, hi).
func (p *adder) Range(_, lo, hi int) {
	x, y, z := p.x[lo:hi], p.y[lo:hi], p.z[lo:hi]
	for i := range z {
		z[i] = p.of(p.sum.apply(p.first[uint8(x[i])] + p.second[uint8(y[i])]))
	}
}

// quantizedMul is cortex_m::quantized_mul.out.
func quantizedMul(c *kernels.Ctx, a kernels.Args) error {
	p, r := kernels.Keep[multiplier](c), reader{Args: a}
	r.int8(0, 2, 7)
	sizes := r.equalOrChannels(0, 2)
	p.first, p.second = r.int32(1), r.int32(3)
	p.quantizer, p.product = int8Range(r.int32(4)), r.scale(5)
	return p.begin(c, &r, 0, 2, 7, sizes, p)
}

type multiplier struct {
	binary[int8]
	quantizer
	product       scale
	first, second int32 // zero points
}

// Range multiplies elements [lo, hi).
func (p *multiplier) Range(_, lo, hi int) {
	x, y, z := p.x[lo:hi], p.y[lo:hi], p.z[lo:hi]
	for i := range z {
		z[i] = p.of(p.product.apply((int32(x[i]) - p.first) * (int32(y[i]) - p.second)))
	}
}

// minimum and maximum are cortex_m::minimum.out and maximum.out, which broadcast.
func minimum(c *kernels.Ctx, a kernels.Args) error { return choose(c, a, true) }
func maximum(c *kernels.Ctx, a kernels.Args) error { return choose(c, a, false) }

func choose(c *kernels.Ctx, a kernels.Args, least bool) error {
	p, r := kernels.Keep[chooser](c), reader{Args: a}
	r.int8(0, 1, 2)
	sizes, ok := strided.Broadcast(append(p.sizes[:0], a.Tensor(0).Sizes...), a.Tensor(1).Sizes)
	if !ok {
		r.bad(1, "%v", fmt.Sprintf("sizes that broadcast with %v", a.Tensor(0)), a.Tensor(1))
	}
	p.least = least
	return p.begin(c, &r, 0, 1, 2, sizes, p)
}

type chooser struct {
	binary[int8]
	sizes [tensor.MaxRank]int
	least bool
}

// Range chooses elements [lo, hi).
func (p *chooser) Range(_, lo, hi int) {
	x, y, z := p.x[lo:hi], p.y[lo:hi], p.z[lo:hi]
	if p.least {
		for i := range z {
			z[i] = min(x[i], y[i])
		}
		return
	}
	for i := range z {
		z[i] = max(x[i], y[i])
	}
}
