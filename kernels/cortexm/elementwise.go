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
}

// set resizes the out, argument out, to the sizes that operands i and j broadcast to.
func (p *binary[T]) set(a kernels.Args, i, j, out int, sizes []int) error {
	if err := kernels.ResizeOut(a, out, sizes); err != nil {
		return err
	}
	p.out = a.Tensor(out)
	p.a.setLike(a.Tensor(i), p.out)
	p.b.setLike(a.Tensor(j), p.out)
	return nil
}

// run computes body over the elements of the out.
func (p *binary[T]) run(c *kernels.Ctx, body cpu.Body) {
	if p.out.Numel() == 0 {
		return
	}
	p.x, p.y, p.z = load[T](c, &p.a), load[T](c, &p.b), tensor.View[T](p.out.Data)
	c.Parallel(len(p.z), grain, body)
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
func equalOrChannels(a kernels.Args, i, j int) ([]int, error) {
	x, y := a.Tensor(i), a.Tensor(j)
	switch {
	case slices.Equal(x.Sizes, y.Sizes):
		return x.Sizes, nil
	case x.Rank() != 4 || y.Rank() != 4 || x.Sizes[1] != y.Sizes[1]:
	case perChannel(y.Sizes):
		return x.Sizes, nil
	case perChannel(x.Sizes):
		return y.Sizes, nil
	}
	return nil, kernels.Badf(j, fmt.Sprintf("the sizes of the other operand, %v, or one of the two [1, C, 1, 1]", x), "%v", y)
}

func perChannel(sizes []int) bool { return sizes[0] == 1 && sizes[2] == 1 && sizes[3] == 1 }

// broadcast returns in dst the sizes that operands i and j broadcast to.
func broadcast(dst []int, a kernels.Args, i, j int) ([]int, error) {
	dst, ok := strided.Broadcast(append(dst, a.Tensor(i).Sizes...), a.Tensor(j).Sizes)
	if !ok {
		return nil, kernels.Badf(j, fmt.Sprintf("sizes that broadcast with %v", a.Tensor(i)), "%v", a.Tensor(j))
	}
	if _, ok := tensor.Product(dst); !ok {
		return nil, kernels.Badf(j, "sizes whose product fits", "%v", dst)
	}
	return dst, nil
}

// quantizedAdd is cortex_m::quantized_add.out: both operands are shifted left by 20 bits and scaled
// to a common scale, added, and scaled to the out's.
func quantizedAdd(c *kernels.Ctx, a kernels.Args) error {
	p := kernels.Keep[adder](c)
	if err := wantInt8(a, 0, 4, 13); err != nil {
		return err
	}
	sizes, err := equalOrChannels(a, 0, 4)
	if err != nil {
		return err
	}
	if err := p.first.set(a, 1); err != nil {
		return err
	}
	if err := p.second.set(a, 5); err != nil {
		return err
	}
	if p.zero, err = zeroPoint(a, 8); err != nil {
		return err
	}
	if p.sum, err = scaleOf(a, 9); err != nil {
		return err
	}
	if p.least, p.most, err = bounds(a, 11, 12); err != nil {
		return err
	}
	if err := p.set(a, 0, 4, 13, sizes); err != nil {
		return err
	}
	return again(c, p)
}

type adder struct {
	binary[int8]
	codes
	sum           scale
	first, second addend
}

// addend is a scaled operand of an addition, by stored value.
type addend [256]int32

// set reads zero point, multiplier and shift, starting at argument i.
func (t *addend) set(a kernels.Args, i int) error {
	zero, err := zeroPoint(a, i)
	if err != nil {
		return err
	}
	s, err := scaleOf(a, i+1)
	if err != nil {
		return err
	}
	const left = 20 // additional bits of precision before scaling
	for v := range t {
		t[v] = s.apply((int32(int8(v)) - zero) << left)
	}
	return nil
}

func (p *adder) Repeat(c *kernels.Ctx) error {
	p.run(c, p)
	return nil
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
	p := kernels.Keep[multiplier](c)
	if err := wantInt8(a, 0, 2, 7); err != nil {
		return err
	}
	sizes, err := equalOrChannels(a, 0, 2)
	if err != nil {
		return err
	}
	if p.first, err = zeroPoint(a, 1); err != nil {
		return err
	}
	if p.second, err = zeroPoint(a, 3); err != nil {
		return err
	}
	zero, err := zeroPoint(a, 4)
	if err != nil {
		return err
	}
	p.codes = wholeRange(zero)
	if p.product, err = scaleOf(a, 5); err != nil {
		return err
	}
	if err := p.set(a, 0, 2, 7, sizes); err != nil {
		return err
	}
	return again(c, p)
}

type multiplier struct {
	binary[int8]
	codes
	product       scale
	first, second int32 // zero points
}

func (p *multiplier) Repeat(c *kernels.Ctx) error {
	p.run(c, p)
	return nil
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
	p := kernels.Keep[chooser](c)
	if err := wantInt8(a, 0, 1, 2); err != nil {
		return err
	}
	sizes, err := broadcast(p.sizes[:0], a, 0, 1)
	if err != nil {
		return err
	}
	p.least = least
	if err := p.set(a, 0, 1, 2, sizes); err != nil {
		return err
	}
	return again(c, p)
}

type chooser struct {
	binary[int8]
	sizes [tensor.MaxRank]int
	least bool
}

func (p *chooser) Repeat(c *kernels.Ctx) error {
	p.run(c, p)
	return nil
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
