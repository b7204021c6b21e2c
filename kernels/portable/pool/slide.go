package pool

import (
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

// slide pools windows in place, without a copy of the input that has padding: those of float32 that [simd.CanSlide].
type slide struct {
	pooling // planes may be stacked to one tall plane
	columns simd.Slide
	x, y    []float32
	rows    int // of the output in a tile, fewer in the last one of a plane
	count   int // tiles of one depth of a plane
	off     []int

	// Of means: what the length of a window along each dimension counts for in the divisor, and the scale of a row of
	// windows for each worker. nil for maxima.
	shares [3][]float32
	scale  []float32
}

// slidePoints is the preferred number of points in a tile.
const slidePoints = 1 << 12

// plan reports whether windows of x can be pooled into y in place.
func (s *slide) plan(c *kernels.Ctx, w *pooling, dilate int) bool {
	if dilate != 1 || !w.tapped() || !simd.CanSlide(w.Kernel[2], w.Stride[2]) {
		return false
	}
	s.pooling = *w
	s.stack()
	s.columns = simd.Slide{Kernel: w.Kernel[2], Stride: w.Stride[2], Width: w.In[2], Pad: w.Pad[2]}
	s.rows = min(max(slidePoints/w.In[2]/w.Stride[1], 1), s.Out[1])
	s.count = (s.Out[1] + s.rows - 1) / s.rows
	s.off = grow(s.off, c.Threads()*maxTaps)
	return true
}

// stack makes one tall plane of planes if their windows do not overlap and lie in the input.
func (w *pooling) stack() {
	if tall := w.Extent(1); w.In[0] == 1 && w.Out[0] == 1 && w.Kernel[0] == 1 && w.Pad[1] == 0 && tall <= w.Stride[1] && w.In[1] == w.Out[1]*w.Stride[1] {
		w.In[1], w.Out[1], w.planes = w.In[1]*w.planes, w.Out[1]*w.planes, 1
	}
}

// slideOver pools x into y, if both are float32 and the windows can be pooled in place. Means have shares.
func slideOver[T tensor.Compute](c *kernels.Ctx, s *slide, w *pooling, dilate int, x, y []T, shares [3][]T) bool {
	in, ok := any(x).([]float32)
	if !ok || !s.plan(c, w, dilate) {
		return false
	}
	s.x, s.y, s.shares = in, any(y).([]float32), any(shares).([3][]float32)
	if s.shares[0] != nil {
		s.scale = kernels.Scratch[float32](c, c.Threads()*s.Out[2])
	}
	work := s.rows * s.Out[2] * window.Volume(s.Kernel)
	c.Parallel(s.planes*s.Out[0]*s.count, cpu.Grain(work, tapCost), s)
	s.x, s.y, s.shares, s.scale = nil, nil, [3][]float32{}, nil
	return true
}

// Range pools tiles [lo, hi).
func (s *slide) Range(worker, lo, hi int) {
	for i := lo; i < hi; i++ {
		s.prefetch(i + 1)
		plane, d, row := i/s.count/s.Out[0], i/s.count%s.Out[0], i%s.count*s.rows
		s.tile(worker, plane, d, row, min(row+s.rows, s.Out[1]))
	}
}

// prefetch reads ahead, as tiles are read column by column: the input of tile i behind that of the one before, unless it
// is deep.
func (s *slide) prefetch(i int) {
	if s.In[0] > 1 {
		return
	}
	points := s.In[1] * s.In[2]
	from := i/s.count*points + max(i%s.count*s.rows*s.Stride[1]-s.Pad[1]+max(s.Kernel[1]-s.Stride[1], 0), 0)*s.In[2]
	if end := min(from+s.rows*s.Stride[1]*s.In[2], len(s.x)); from < end {
		simd.Prefetch(s.x[from:end])
	}
}

// tile pools rows [row, end) of a plane at depth d.
func (s *slide) tile(worker, plane, d, row, end int) {
	cols, points, off := s.Out[2], window.Volume(s.In), s.off[worker*maxTaps:][:maxTaps]
	x, y := s.x[plane*points:][:points], s.y[((plane*s.Out[0]+d)*s.Out[1]+row)*cols:][:(end-row)*cols]
	var tall float32
	for row < end {
		taps, n := s.listRows(off, d, row)
		if n = min(n, end-row); s.shares[0] == nil {
			simd.MaxSlide(y, x, off[:taps], n, cols, cols, s.Stride[1]*s.In[2], s.columns)
		} else {
			scale := s.scale[worker*cols:][:cols]
			if now := s.shares[0][d] * s.shares[1][row%len(s.shares[1])]; now != tall {
				tall = now
				simd.ScaleShift(scale, s.shares[2], tall, 0)
				simd.Reciprocal(scale, scale)
			}
			simd.SumSlide(y, x, off[:taps], n, cols, cols, s.Stride[1]*s.In[2], s.columns, scale)
		}
		y, row = y[n*cols:], row+n
	}
}

// listRows lists the offsets of the input rows that a row of windows reads. It returns their number, and how many rows
// of windows from that one on read them in the same way.
func (w *pooling) listRows(off []int, d, row int) (taps, alike int) {
	d0, d1, d2 := w.Taps(0, d)
	h0, h1, h2 := w.Taps(1, row)
	for k := d1; k < d2; k++ {
		for h := h1; h < h2; h++ {
			off[taps] = w.place(d0+k*w.Dilate[0], h0+h*w.Dilate[1], 0)
			taps++
		}
	}
	return taps, w.Alike(1, row, h2-h1)
}
