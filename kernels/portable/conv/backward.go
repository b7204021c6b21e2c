package conv

import (
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/loops"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

// Arguments of convolution_backward.out.
const (
	argGrad, argMask  = 0, 10
	argGradInput      = 11 // then the gradients of weight and bias
	backwardInput     = 1
	backwardStride    = 4
	backwardFloatWant = "float16, bfloat16, float32, float64"
)

// backward computes the gradients of input, weight and bias that output_mask selects; the other outs keep their sizes
// and become zeros.
func backward(c *kernels.Ctx, a kernels.Args) error {
	x := a.Tensor(backwardInput)
	if !x.DType.IsFloat() {
		return kernels.Bad(backwardInput, x.DType.String(), backwardFloatWant)
	}
	mask := a.Bools(argMask)
	if len(mask) != 3 {
		return kernels.Badf(argMask, "3 entries", "%d", len(mask))
	}
	for i, arg := range [...]int{argGrad, backwardInput + 1, argGradInput, argGradInput + 1, argGradInput + 2} {
		asked := i < 2 || mask[i-2]
		if t := a.Tensor(arg); asked && t.DType != x.DType {
			return kernels.Bad(arg, t.DType.String(), "the input's "+x.DType.String())
		}
	}
	return operand.ByType(x.DType, backwardOf[float32], backwardOf[float64], nil)(c, a)
}

func backwardOf[T tensor.Compute](c *kernels.Ctx, a kernels.Args) error {
	grad, x, w := a.Tensor(argGrad), a.Tensor(backwardInput), a.Tensor(backwardInput+1)
	b := kernels.Keep[gradients[T]](c)
	s := &b.shape
	if err := s.parse(a, x, w, backwardInput, backwardStride); err != nil {
		return err
	}
	var sizes [5]int
	want := s.outSizes(&sizes, x.Rank())
	if !slices.Equal(grad.Sizes, want) {
		return kernels.Bad(argGrad, grad.String(), fmt.Sprintf("the convolution's output sizes %v", slices.Clone(want)))
	}
	mask := a.Bools(argMask)
	b.c, b.weight = c, w
	b.grad, b.x, b.w = operand.In[T](c, grad), operand.In[T](c, x), operand.In[T](c, w)
	bias := [1]int{s.outChannels}
	for i, g := range []struct {
		sizes []int
		run   func(*kernels.Ctx, []T)
	}{{x.Sizes, b.input}, {w.Sizes, b.weights}, {bias[:], b.bias}} {
		if !mask[i] {
			clear(a.Tensor(argGradInput + i).Data)
			continue
		}
		if err := kernels.ResizeOut(a, argGradInput+i, g.sizes); err != nil {
			return err
		}
		out := a.Tensor(argGradInput + i)
		if out.Numel() == 0 {
			continue
		}
		d := operand.Out[T](c, out)
		g.run(c, d)
		operand.Store(c, out, d)
	}
	b.grad, b.x, b.w, b.small, b.large, b.out = nil, nil, nil, nil, nil, nil
	return nil
}

// gradients is a backward pass.
type gradients[T tensor.Compute] struct {
	shape
	c          *kernels.Ctx
	grad, x, w []T
	weight     *tensor.Tensor
	inputPass  pass[T]

	forward      shape // the shape, or its reverse where transposed: always a forward convolution
	small, large []T   // what lies on its output's and on its input's side
	out          []T
	row          []T // one row of columns for each worker
	dot          func(x, y []T) T
}

// input computes the gradient of the input: the reverse convolution of grad.
func (b *gradients[T]) input(c *kernels.Ctx, out []T) {
	p := &b.inputPass
	p.shape = b.reversed()
	p.x, p.w, p.weight, p.bias, p.y = b.grad, b.w, b.weight, nil, out
	if len(b.grad) == 0 {
		clear(out)
		return
	}
	p.run(c)
}

// weights computes the gradient of the weights: for each tap the product of the output's side with the elements that
// the tap reads on the input's side.
func (b *gradients[T]) weights(c *kernels.Ctx, out []T) {
	b.forward, b.small, b.large, b.out = b.shape, b.grad, b.x, out
	if b.transposed {
		b.forward, b.small, b.large = b.reversed(), b.x, b.grad
	}
	f := &b.forward
	b.dot = simd.DotOf[T]()
	points := window.Volume(f.Out)
	b.row = kernels.Scratch[T](c, c.Threads()*points)
	rows := f.inChannels * window.Volume(f.Kernel)
	macs := max(f.batch*points*(f.outChannels/f.groups), 1)
	c.Parallel(rows, 1+macsPerRange/macs, b)
}

// Range computes columns [lo, hi) of the weights' gradient: the taps of one input channel after the other.
func (b *gradients[T]) Range(worker, lo, hi int) {
	f := &b.forward
	taps, points, inPoints := window.Volume(f.Kernel), window.Volume(f.Out), window.Volume(f.In)
	inGroup, outGroup := f.inChannels/f.groups, f.outChannels/f.groups
	row, poll := b.row[worker*points:][:points], b.c.Poller()
	for k := lo; k < hi; k++ {
		channel, t := k/taps, k%taps
		first := channel / inGroup * outGroup
		for m := first; m < first+outGroup; m++ {
			b.out[(m*inGroup+channel%inGroup)*taps+t] = 0
		}
		for n := range f.batch {
			plane := b.large[(n*f.inChannels+channel)*inPoints:][:inPoints]
			for d := range f.Out[0] {
				whole := rect{d: d, rows: f.Out[1], cols: f.Out[2]}
				reads := f.reads(tap(f, t), &whole)
				fill(f, row[f.from(&whole):][:whole.rows*whole.cols], whole.cols, plane, &reads)
			}
			for m := first; m < first+outGroup; m++ {
				poll.Done(points)
				b.out[(m*inGroup+channel%inGroup)*taps+t] += b.dot(row, b.small[(n*f.outChannels+m)*points:])
			}
		}
	}
}

// bias computes the gradient of the bias: sums of grad.
func (b *gradients[T]) bias(c *kernels.Ctx, out []T) {
	clear(out)
	points := window.Volume(b.shape.Out)
	poll := c.Poller()
	for i := range b.batch * b.outChannels {
		poll.Done(points)
		out[i%b.outChannels] = loops.Sum(out[i%b.outChannels], b.grad[i*points:][:points])
	}
}
