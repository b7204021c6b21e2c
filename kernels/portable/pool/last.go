package pool

import (
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Where the channels of a point lie side by side, each window is pooled by itself, all
// channels at a time; neighbours that read whole windows go together.

// channelsLast reports tensors in the dim order [0, 2, 3, 1], the first one of T's own
// type, with channels enough for vectors.
func channelsLast[T tensor.Compute](ts ...*tensor.Tensor) bool {
	for _, t := range ts {
		if string(t.DimOrder) != "\x00\x02\x03\x01" {
			return false
		}
	}
	return ts[0].DType == tensor.TypeOf[T]() && ts[0].Sizes[1] >= 8
}

func (p *maxPass[T]) lastRun(c *kernels.Ctx, x, out, indices *tensor.Tensor) {
	p.channels = x.Sizes[1]
	p.x, p.y, p.index = tensor.Data[T](x), tensor.Data[T](out), tensor.Data[int64](indices)
	p.at = kernels.Scratch[int32](c, c.Threads()*p.out[1]*p.channels)
	p.off, p.tag = grow(p.off, c.Threads()*mostTaps), grow(p.tag, c.Threads()*mostTaps)
	work := p.out[1] * p.channels * p.kernel[0] * p.kernel[1]
	c.Parallel(x.Sizes[0]*p.out[0], 1+tappedPerRange/work, p)
	p.x, p.y, p.index, p.at = nil, nil, nil, nil
}

// grow is s with at least n elements.
func grow[T any](s []T, n int) []T {
	if len(s) < n {
		return make([]T, n)
	}
	return s
}

// lastRow pools output row i, counted through the images.
func (p *maxPass[T]) lastRow(worker, i int) {
	r, ch := i%p.out[0], p.channels
	x := p.x[i/p.out[0]*p.in[0]*p.in[1]*ch:][:p.in[0]*p.in[1]*ch]
	n := p.out[1] * ch
	y, index, at := p.y[i*n:][:n], p.index[i*n:][:n], p.at[worker*n:][:n]
	off, tag := p.off[worker*mostTaps:][:mostTaps], p.tag[worker*mostTaps:][:mostTaps]
	start0, h0, h1 := p.span(0, r)
	for j := 0; j < p.out[1]; {
		start1, w0, w1 := p.span(1, j)
		taps := 0
		for h := h0; h < h1; h++ {
			for w := w0; w < w1; w++ {
				place := (start0+h*p.dilate[0])*p.in[1] + start1 + w*p.dilate[1]
				off[taps], tag[taps] = place*ch, int32(place)
				taps++
			}
		}
		n := p.alike(j, w1-w0)
		y, index, at := y[j*ch:(j+n)*ch], index[j*ch:], at[j*ch:]
		if taps > 0 {
			simd.ExtremeTaps(y, at, x, off[:taps], tag, n, ch, ch, p.stride[1]*ch, false)
		} else {
			p.miss(y, at, (start0+h0*p.dilate[0])*p.in[1]+start1+w0*p.dilate[1])
		}
		for k := range n {
			spread(index[k*ch:][:ch], at[k*ch:], k*p.stride[1], 0)
		}
		j += n
	}
}

// miss is what windows give that have no element.
func (p *maxPass[T]) miss(y []T, at []int32, place int) {
	for i := range y {
		y[i], at[i] = p.lowest, int32(place)
	}
}

// alike is how many windows from j on read taps columns at the same distances from
// their starts.
func (p *window) alike(j, taps int) int {
	start := j*p.stride[1] - p.pad[1]
	room := p.in[1] - start - (p.dilate[1]*(p.kernel[1]-1) + 1)
	if taps < p.kernel[1] || room < 0 {
		return 1
	}
	return min(room/p.stride[1]+1, p.out[1]-j)
}

// lastRow averages output row i, counted through the images.
func (p *avgPass[T]) lastRow(worker, i int, divisors []T) {
	r, ch := i%p.out[0], p.channels
	x := p.x[i/p.out[0]*p.in[0]*p.in[1]*ch:][:p.in[0]*p.in[1]*ch]
	y := p.y[i*p.out[1]*ch:][:p.out[1]*ch]
	off := p.off[worker*p.taps:][:p.taps]
	height, last := p.height(r), T(0)
	h0, h1, _ := p.bounds(0, r)
	for j := 0; j < p.out[1]; {
		w0, w1, _ := p.bounds(1, j)
		n, taps := 1, 0
		if !p.adaptive {
			n = p.alike(j, w1-w0)
		}
		for h := h0; h < h1; h++ {
			for w := w0; w < w1; w++ {
				off[taps] = (h*p.in[1] + w) * ch
				taps++
			}
		}
		if taps == 0 {
			clear(y[j*ch : (j+n)*ch])
			j += n
			continue
		}
		simd.SumTaps(y[j*ch:], x, off[:taps], n, ch, ch, p.stride[1]*ch)
		for ; n > 0; n-- {
			if by := height * p.across[j]; by != last {
				fill(divisors, by)
				last = by
			}
			divide(y[j*ch:][:ch], divisors)
			j++
		}
	}
}
