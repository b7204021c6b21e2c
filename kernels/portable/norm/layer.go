package norm

import (
	"cmp"
	"fmt"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// layerNorm normalizes over the last dimensions, those in normalized_shape: (x-mean)·rstd·weight+bias. mean and rstd
// have these dimensions with size 1.
func layerNorm(c *kernels.Ctx, a kernels.Args) error {
	if err := floating(a, 0, 5); err != nil {
		return err
	}
	x, shape := a.Tensor(0), a.Ints(1)
	lead := x.Rank() - len(shape)
	if len(shape) == 0 || lead < 0 {
		return kernels.Badf(1, fmt.Sprintf("1 to %d sizes", x.Rank()), "%v", shape)
	}
	n := 1
	for i, s := range shape {
		if int64(x.Sizes[lead+i]) != s {
			return kernels.Badf(1, "the last sizes of "+x.String(), "%v", shape)
		}
		n *= int(s)
	}
	var sizes [tensor.MaxRank]int
	copy(sizes[:], x.Sizes[:lead])
	for i := lead; i < x.Rank(); i++ {
		sizes[i] = 1
	}
	if err := cmp.Or(affine(a, 2, n), kernels.ResizeOut(a, 5, x.Sizes), stored(a, 6, sizes[:x.Rank()])); err != nil {
		return err
	}
	return byType(a, layerNormOf[float32], layerNormOf[float64])(c, a)
}

func layerNormOf[T real](c *kernels.Ctx, a kernels.Args) error {
	p := kernels.Keep[groups[T]](c)
	p.channels, p.perChannel = 1, 1
	for _, s := range a.Ints(1) {
		p.channels *= int(s)
	}
	p.eps = a.Float(4)
	return p.run(c, a, p.channels, 2, 5)
}

// groupNorm normalizes each group of channels of every image.
func groupNorm(c *kernels.Ctx, a kernels.Args) error {
	if err := floating(a, 0, 8); err != nil {
		return err
	}
	x := a.Tensor(0)
	n, channels, points, group := a.Int(3), a.Int(4), a.Int(5), a.Int(6)
	if x.Rank() < 2 || int64(x.Sizes[0]) != n || int64(x.Sizes[1]) != channels {
		return kernels.Bad(0, x.String(), fmt.Sprintf("sizes [%d, %d, …]", n, channels))
	}
	if per, _ := tensor.Product(x.Sizes[2:]); int64(per) != points {
		return kernels.Badf(5, fmt.Sprint(per), "%d", points)
	}
	if group < 1 || channels%group != 0 {
		return kernels.Badf(6, fmt.Sprintf("a divisor of %d channels", channels), "%d", group)
	}
	err := cmp.Or(affine(a, 1, x.Sizes[1]), kernels.ResizeOut(a, 8, x.Sizes), stored(a, 9, []int{x.Sizes[0], int(group)}))
	if err != nil {
		return err
	}
	return byType(a, groupNormOf[float32], groupNormOf[float64])(c, a)
}

func groupNormOf[T real](c *kernels.Ctx, a kernels.Args) error {
	p := kernels.Keep[groups[T]](c)
	p.channels, p.perChannel, p.eps = int(a.Int(4)), int(a.Int(5)), a.Float(7)
	return p.run(c, a, p.channels/int(a.Int(6))*p.perChannel, 1, 8)
}

// groups normalizes rows of a dense array, each by its own moments, then applies a weight and a bias for each
// channel.
type groups[T real] struct {
	ops                      *rowOps[T]
	x, y, weight, bias       []T
	mean, rstd               []T
	row                      int // elements of a row
	channels, perChannel     int // the weights go round every channels · perChannel elements
	eps                      float64
	cachedWeight, cachedBias operand.Cached[T]
}

// run normalizes rows of row elements. weight is the argument of the weight, before the bias; out that of the result,
// before mean and rstd, which have one element for each row.
func (p *groups[T]) run(c *kernels.Ctx, a kernels.Args, row, weight, out int) error {
	p.ops, p.row = rowsOf[T](), row
	p.weight = operand.CachedIn(c, &p.cachedWeight, a.OptTensor(weight))
	p.bias = operand.CachedIn(c, &p.cachedBias, a.OptTensor(weight+1))
	y, mean, rstd := operand.Out[T](c, a.Tensor(out)), operand.Out[T](c, a.Tensor(out+1)), operand.Out[T](c, a.Tensor(out+2))
	p.x, p.y, p.mean, p.rstd = operand.In[T](c, a.Tensor(0)), y, mean, rstd
	c.Parallel(len(mean), cpu.Grain(row, elementCost), p)
	p.x, p.y, p.mean, p.rstd, p.weight, p.bias = nil, nil, nil, nil, nil, nil
	operand.Store(c, a.Tensor(out), y)
	operand.Store(c, a.Tensor(out+1), mean)
	operand.Store(c, a.Tensor(out+2), rstd)
	return nil
}

// Range normalizes rows [lo, hi).
func (p *groups[T]) Range(_, lo, hi int) {
	if p.perChannel == 1 && p.row == p.channels && p.row > 0 { // a layer norm
		p.ops.norm(p.y[lo*p.row:hi*p.row], p.x[lo*p.row:hi*p.row], p.row, p.mean[lo:hi], p.rstd[lo:hi], p.weight, p.bias, T(p.eps))
		return
	}
	for i := lo; i < hi; i++ {
		x, y := p.x[i*p.row:][:p.row], p.y[i*p.row:][:p.row]
		mean, rstd := moments(p.ops, x, p.eps)
		p.mean[i], p.rstd[i] = mean, rstd
		channel := 0
		if p.perChannel > 0 && p.channels > 0 {
			channel = i * p.row / p.perChannel % p.channels
		}
		switch {
		case p.weight == nil && p.bias == nil:
			p.ops.center(y, x, mean, rstd, nil, nil)
		case p.perChannel == 1:
			p.ops.center(y, x, mean, rstd, from(p.weight, channel), from(p.bias, channel))
		default:
			p.perChannelRow(y, x, mean, rstd, channel)
		}
	}
}

// perChannelRow normalizes a row of whole channels from the given one.
func (p *groups[T]) perChannelRow(y, x []T, mean, rstd T, channel int) {
	for i := 0; i < len(x); i += p.perChannel {
		scale, shift := rstd, T(0)
		if p.weight != nil {
			scale *= p.weight[channel]
		}
		if p.bias != nil {
			shift = p.bias[channel]
		}
		p.ops.scaleShift(y[i:][:p.perChannel], x[i:][:p.perChannel], scale, shift-mean*scale)
		channel++
	}
}

// from returns s[i:], nil for nil.
func from[T any](s []T, i int) []T {
	if s == nil {
		return nil
	}
	return s[i:]
}
