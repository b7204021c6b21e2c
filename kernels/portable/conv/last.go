package conv

import (
	"math"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

// A depthwise convolution computes all channels of a point at a time if they are adjacent in memory: in tensors of
// dim order [0, 2, 3, 1], and in copies of images whose rows are too narrow for vectors.

// lastDepthwise reports whether the convolution has one filter for each channel and may compute all channels at a
// time.
func (s *shape) lastDepthwise() bool {
	return !s.transposed && s.inChannels == s.groups && s.outChannels == s.groups && s.groups >= 8 &&
		s.Kernel[0] == 1 && s.In[0] == 1 && s.Pad[0] == 0 && s.Out[0] == 1 && s.Kernel[1]*s.Kernel[2] <= tapTable
}

// channelsLast reports whether the tensors are float32 with adjacent channels.
func channelsLast(ts ...*tensor.Tensor) bool {
	for _, t := range ts {
		if t.DType != tensor.Float32 || string(t.DimOrder) != "\x00\x02\x03\x01" {
			return false
		}
	}
	return true
}

// runCopied computes the convolution on copies with channels last, if that is faster.
func (p *pass[T]) runCopied(c *kernels.Ctx) bool {
	q, ok := any(p).(*pass[float32])
	if !ok || !window.ByPixels(p.In[2], p.Out[2], p.groups) || !p.lastDepthwise() {
		return false
	}
	in, out := window.Volume(p.In), window.Volume(p.Out)
	x, y := kernels.Scratch[float32](c, len(q.x)), kernels.Scratch[float32](c, len(q.y))
	for n := range p.batch {
		operand.Transpose(c, x[n*in*p.groups:][:in*p.groups], q.x[n*in*p.groups:][:in*p.groups], p.groups, in)
	}
	q.runLast(c, y, x)
	for n := range p.batch {
		operand.Transpose(c, q.y[n*out*p.groups:][:out*p.groups], y[n*out*p.groups:][:out*p.groups], out, p.groups)
	}
	return true
}

// runLast computes y of x with channels last.
func (p *pass[T]) runLast(c *kernels.Ctx, y, x []float32) {
	q := any(p).(*pass[float32])
	q.c = c
	l, taps := &q.last, p.Kernel[1]*p.Kernel[2]
	l.Shape, l.C, l.Min, l.Max = p.Shape, p.groups, float32(math.Inf(-1)), float32(math.Inf(1))
	l.X, l.Y = x, y
	filter, bias := l.weights.Get(p.weight), q.bias
	if filter == nil {
		filter = l.weights.New(c, p.weight, len(p.w))
		operand.Transpose(c, filter, q.w, p.groups, taps)
	}
	if bias == nil {
		bias = kernels.Scratch[float32](c, p.groups)
		clear(bias)
	}
	l.SetFilter(filter, bias)
	l.Plan(c.Threads())
	c.Parallel(p.batch*p.Out[1], 1+macsPerRange/8/(p.Out[2]*p.groups*taps), channelRows{q})
	l.X, l.Y = nil, nil
	l.SetFilter(nil, nil)
}

type channelRows struct{ *pass[float32] }

// Range computes rows [lo, hi) of the output, counted over all images.
func (p channelRows) Range(worker, lo, hi int) {
	for i := lo; i < hi; i++ {
		p.c.Poll()
		p.last.Run(worker, i)
	}
}
