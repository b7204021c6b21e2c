package pool

import (
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/nhwc"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

// If the channels of a point are adjacent in memory, all of them are pooled at a time: by [nhwc.Pool], or window by window
// where the indices of maxima are read. Adjacent windows with the same taps are then pooled together.

// channelsLast reports whether the tensors have the dim order [0, 2, 3, 1] or [0, 2, 3, 4, 1], and the first one
// stores T and has enough channels for vectors.
func channelsLast[T tensor.Compute](ts ...*tensor.Tensor) bool {
	for _, t := range ts {
		if o := string(t.DimOrder); o != "\x00\x02\x03\x01" && o != "\x00\x02\x03\x04\x01" {
			return false
		}
	}
	return ts[0].DType == tensor.TypeOf[T]() && ts[0].Sizes[1] >= 8
}

// lastPool pools tensors with channels last.
type lastPool[T tensor.Compute] struct {
	nhwc.Pool[T]
	lines []T // one for each worker
}

// run pools x into out by the windows of w.
func (l *lastPool[T]) run(c *kernels.Ctx, w *pooling, x, out *tensor.Tensor) {
	l.Shape, l.C, l.Stop = w.Shape, x.Sizes[1], c
	l.X, l.Y = tensor.Data[T](x), tensor.Data[T](out)
	l.Plan(c.Threads())
	l.lines = kernels.Scratch[T](c, c.Threads()*l.Line())
	c.Parallel(x.Sizes[0]*l.Out[0]*l.Out[1], cpu.Grain(l.Out[2]*l.C*l.Area(), tapCost), l)
	l.X, l.Y, l.lines, l.Shares = nil, nil, nil, [3][]T{}
}

// Range pools lines [lo, hi) of the output.
func (l *lastPool[T]) Range(worker, lo, hi int) {
	n := l.Line()
	for i := lo; i < hi; i++ {
		l.Pool.Run(worker, l.lines[worker*n:][:n], i)
	}
}

func (p *maxPass[T]) lastRun(c *kernels.Ctx, x, out, indices *tensor.Tensor) {
	if p.only {
		p.last.Empty = p.lowest
		p.last.run(c, &p.pooling, x, out)
		return
	}
	p.channels = x.Sizes[1]
	p.x, p.y, p.index = tensor.Data[T](x), tensor.Data[T](out), tensor.Data[int64](indices)
	p.at = kernels.Scratch[int32](c, c.Threads()*p.Out[2]*p.channels)
	p.taps, p.tag = pack.Grow(p.taps, c.Threads()*maxTaps), pack.Grow(p.tag, c.Threads()*maxTaps)
	work := p.Out[2] * p.channels * window.Volume(p.Kernel)
	c.Parallel(x.Sizes[0]*p.Out[0]*p.Out[1], cpu.Grain(work, tapCost), p)
	p.x, p.y, p.index, p.at = nil, nil, nil, nil
}

// lastRow pools output row i, counted over the images.
func (p *maxPass[T]) lastRow(worker, i int) {
	image, d, r := p.point(i)
	ch, points := p.channels, window.Volume(p.In)*p.channels
	x, n := p.x[image*points:][:points], p.Out[2]*ch
	y, index, at := p.y[i*n:][:n], p.index[i*n:][:n], p.at[worker*n:][:n]
	off, tag := p.taps[worker*maxTaps:][:maxTaps], p.tag[worker*maxTaps:][:maxTaps]
	for j := 0; j < p.Out[2]; {
		p.c.Poll()
		_, w0, w1 := p.Taps(2, j)
		taps := p.places(tag, d, r, j)
		for t, place := range tag[:taps] {
			off[t] = int(place) * ch
		}
		n := p.Alike(2, j, w1-w0)
		y, index, at := y[j*ch:(j+n)*ch], index[j*ch:], at[j*ch:]
		if taps == 0 {
			simd.Fill(y, p.lowest)
			simd.Fill(at[:len(y)], int32(p.first(d, r, j)))
		} else {
			simd.ExtremeTaps(y, at, x, off[:taps], tag, n, ch, ch, p.Stride[2]*ch, false)
		}
		for k := range n {
			simd.Places(index[k*ch:][:ch], at[k*ch:], k*p.Stride[2], 0)
		}
		j += n
	}
}

// places writes the indices in the plane of a window's elements, and returns their number.
func (p *pooling) places(dst []int32, d, r, j int) (n int) {
	d0, d1, d2 := p.Taps(0, d)
	h0, h1, h2 := p.Taps(1, r)
	w0, w1, w2 := p.Taps(2, j)
	for k := d1; k < d2; k++ {
		for h := h1; h < h2; h++ {
			for w := w1; w < w2; w++ {
				dst[n] = int32(p.place(d0+k*p.Dilate[0], h0+h*p.Dilate[1], w0+w*p.Dilate[2]))
				n++
			}
		}
	}
	return n
}
