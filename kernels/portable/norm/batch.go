package norm

import (
	"cmp"
	"math"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// batchNormNoTraining is (x-mean)/sqrt(var+eps)·weight+bias with given statistics for each channel, dimension 1. The
// other two outs get size 0.
func batchNormNoTraining(c *kernels.Ctx, a kernels.Args) error { return batchNormGiven(c, a, 6, 7) }

// batchNorm is batchNormNoTraining with training as an argument, which must be false.
func batchNorm(c *kernels.Ctx, a kernels.Args) error {
	if a.Bool(5) {
		return kernels.Bad(5, "true", "false: running statistics are not updated")
	}
	return batchNormGiven(c, a, 7, 8)
}

func batchNormGiven(c *kernels.Ctx, a kernels.Args, eps, out int) error {
	channels, err := batchShape(a, out)
	if err != nil {
		return err
	}
	if err := cmp.Or(affine(a, 3, channels), stored(a, out+1, []int{0})); err != nil {
		return err
	}
	if a.Tensor(0).DType == tensor.Float64 {
		return givenOf[float64](c, a, eps, out)
	}
	return givenOf[float32](c, a, eps, out)
}

// batchShape checks input, weight and bias, resizes the out, and returns the number of channels.
func batchShape(a kernels.Args, out int) (int, error) {
	if err := floating(a, 0, out); err != nil {
		return 0, err
	}
	x := a.Tensor(0)
	if x.Rank() < 2 {
		return 0, kernels.Bad(0, x.String(), "rank 2 or more")
	}
	if err := affine(a, 1, x.Sizes[1]); err != nil {
		return 0, err
	}
	return x.Sizes[1], kernels.ResizeOut(a, out, x.Sizes)
}

func givenOf[T real](c *kernels.Ctx, a kernels.Args, eps, out int) error {
	p := kernels.Keep[channelScale[T]](c)
	x := a.Tensor(0)
	if x.Numel() == 0 {
		return nil
	}
	mean, variance := operand.CachedIn(c, &p.cachedMean, a.Tensor(3)), operand.CachedIn(c, &p.cachedVar, a.Tensor(4))
	p.resize(x.Sizes[1])
	for i, v := range variance {
		p.scale[i] = T(1 / math.Sqrt(float64(v)+a.Float(eps)))
	}
	p.fold(c, a, mean)
	p.run(c, x, a.Tensor(out))
	if isConst(a.OptTensor(1), a.OptTensor(2), a.Tensor(3), a.Tensor(4)) && operand.InPlace[T](x, a.Tensor(out)) {
		c.Repeat(p)
	}
	return nil
}

// isConst reports whether the tensors never change. It skips nil.
func isConst(tensors ...*tensor.Tensor) bool {
	for _, t := range tensors {
		if t != nil && !t.Const {
			return false
		}
	}
	return true
}

// batchNormNoStats normalizes by the batch's own statistics, which it also returns: mean and 1/sqrt(var+eps) for each
// channel.
func batchNormNoStats(c *kernels.Ctx, a kernels.Args) error {
	channels, err := batchShape(a, 6)
	if err != nil {
		return err
	}
	if err := stored(a, 7, []int{channels}); err != nil {
		return err
	}
	return byType(a, noStatsOf[float32], noStatsOf[float64])(c, a)
}

func noStatsOf[T real](c *kernels.Ctx, a kernels.Args) error {
	x := a.Tensor(0)
	p := kernels.Keep[channelScale[T]](c)
	mean, rstd := operand.Out[T](c, a.Tensor(7)), operand.Out[T](c, a.Tensor(8))
	p.measure(operand.In[T](c, x), x.Sizes[0], x.Sizes[1], mean, rstd, a.Float(5))
	operand.Store(c, a.Tensor(7), mean)
	operand.Store(c, a.Tensor(8), rstd)
	if x.Numel() == 0 {
		return nil
	}
	p.resize(len(mean))
	copy(p.scale, rstd)
	p.fold(c, a, mean)
	p.run(c, x, a.Tensor(6))
	return nil
}

// channelScale multiplies each channel by its scale and adds its shift, in memory
// order: outer · channels · inner elements.
type channelScale[T real] struct {
	ops             *rowOps[T]
	x, y            []T
	scale, shift    []T
	channels, inner int

	cachedMean, cachedVar, cachedWeight, cachedBias operand.Cached[T]
}

// resize allocates scales and shifts of n channels.
func (p *channelScale[T]) resize(n int) {
	if len(p.scale) != n {
		p.scale, p.shift = make([]T, n), make([]T, n)
	}
}

// fold computes scale, which is 1/std before, and shift from mean, weight and bias.
func (p *channelScale[T]) fold(c *kernels.Ctx, a kernels.Args, mean []T) {
	for i, v := range operand.CachedIn(c, &p.cachedWeight, a.OptTensor(1)) {
		p.scale[i] *= v
	}
	for i, v := range mean {
		p.shift[i] = -v * p.scale[i]
	}
	for i, v := range operand.CachedIn(c, &p.cachedBias, a.OptTensor(2)) {
		p.shift[i] += v
	}
}

// measure computes the moments of each channel of a dense [n, channels, …].
func (p *channelScale[T]) measure(x []T, n, channels int, mean, rstd []T, eps float64) {
	ops := rowsOf[T]()
	if n*channels == 0 {
		clear(mean)
		clear(rstd)
		return
	}
	points := len(x) / (n * channels)
	for ch := range channels {
		var sum, squares T
		for i := range n {
			sum += ops.sum(x[(i*channels+ch)*points:][:points])
		}
		mean[ch] = sum / T(n*points)
		for i := range n {
			squares += ops.squares(x[(i*channels+ch)*points:][:points], mean[ch])
		}
		rstd[ch] = T(1 / math.Sqrt(float64(squares/T(n*points))+eps))
	}
}

// run writes out, of x's shape. x is not empty.
func (p *channelScale[T]) run(c *kernels.Ctx, x, out *tensor.Tensor) {
	p.ops, p.channels, p.inner = rowsOf[T](), x.Sizes[1], 1
	dense := x.IsContiguous() && out.IsContiguous()
	if dense {
		for _, n := range x.Sizes[2:] {
			p.inner *= n
		}
	}
	var y []T
	if lastOrder := !dense && sameOrder(x, out) && x.Strides[1] == 1; lastOrder && x.DType == tensor.TypeOf[T]() {
		p.x, p.y = tensor.Data[T](x), tensor.Data[T](out)
	} else {
		y = operand.Out[T](c, out)
		p.x, p.y = operand.In[T](c, x), y
		p.inner = len(p.x) / (x.Sizes[0] * p.channels)
	}
	_ = p.Repeat(c)
	if y != nil {
		operand.Store(c, out, y)
	}
}

// Repeat scales the same places again.
func (p *channelScale[T]) Repeat(c *kernels.Ctx) error {
	c.Parallel(len(p.x)/p.inner, cpu.Grain(p.inner, elementCost), p)
	return nil
}

// Range writes rows [lo, hi) of inner elements.
func (p *channelScale[T]) Range(_, lo, hi int) {
	if p.inner > 1 {
		for i := lo; i < hi; i++ {
			ch := i % p.channels
			p.ops.scaleShift(p.y[i*p.inner:][:p.inner], p.x[i*p.inner:][:p.inner], p.scale[ch], p.shift[ch])
		}
		return
	}
	ch := lo % p.channels
	for lo < hi {
		n := min(p.channels-ch, hi-lo)
		x, y, scale, shift := p.x[lo:][:n], p.y[lo:][:n], p.scale[ch:][:n], p.shift[ch:][:n]
		for i, v := range x {
			y[i] = v*scale[i] + shift[i]
		}
		lo, ch = lo+n, 0
	}
}

func sameOrder(x, y *tensor.Tensor) bool { return string(x.DimOrder) == string(y.DimOrder) }
