package xnnpack

import (
	"math"

	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// forWindows calls visit for every output pixel with the input pixels of its window:
// their positions in the input, and which of the window's elements they are, counted
// down its columns as the library does.
func (e *reference) forWindows(n *node, visit func(out int, in, taps []int)) {
	w, in, out := &n.Window, e.shapes[n.In[0]], e.shapes[n.Out[0]]
	top, left := n.padding(in.dim[1], in.dim[2])
	for at := range out.leading(3) {
		ox, oy, image := at%out.dim[2], at/out.dim[2]%out.dim[1], at/out.dim[2]/out.dim[1]
		e.pixels, e.taps = e.pixels[:0], e.taps[:0]
		for ky := range w.kernelH {
			y := oy*w.strideH - top + ky*w.dilationH
			for kx := range w.kernelW {
				x := ox*w.strideW - left + kx*w.dilationW
				if uint(y) < uint(in.dim[1]) && uint(x) < uint(in.dim[2]) {
					e.pixels = append(e.pixels, (image*in.dim[1]+y)*in.dim[2]+x)
					e.taps = append(e.taps, kx*w.kernelH+ky)
				}
			}
		}
		visit(at, e.pixels, e.taps)
	}
}

// averagePool is the mean of each window's elements inside the input.
func (e *reference) averagePool(n *node) {
	x, y, c := e.load(0, n.In[0]), e.result(n.Out[0]), e.shapes[n.In[0]].dim[3]
	e.forWindows(n, func(out int, in, _ []int) {
		row := y[out*c:][:c]
		clear(row)
		for _, p := range in {
			simd.Axpy(row, x[p*c:][:c], 1)
		}
		simd.ScaleShift(row, row, 1/float32(max(1, len(in))), 0)
		n.bound(row)
	})
	e.store(n.Out[0])
}

func (e *reference) maxPool(n *node) {
	x, y, c := e.load(0, n.In[0]), e.result(n.Out[0]), e.shapes[n.In[0]].dim[3]
	e.forWindows(n, func(out int, in, _ []int) {
		for i := range c {
			best := lowest
			for _, p := range in {
				best = max(best, x[p*c+i])
			}
			y[out*c+i] = clamp(best, n.Min, n.Max)
		}
	})
	e.store(n.Out[0])
}

// argmaxPool takes the first of equal maxima, counted down the window's columns.
func (e *reference) argmaxPool(n *node) {
	x, y, c := e.load(0, n.In[0]), e.result(n.Out[0]), e.shapes[n.In[0]].dim[3]
	index := tensor.View[int32](e.bytes[n.Out[1]])
	e.forWindows(n, func(out int, in, taps []int) {
		for i := range c {
			best, tap := lowest, 0
			for k, p := range in {
				if v := x[p*c+i]; k == 0 || v > best || v == best && taps[k] < tap {
					best, tap = v, taps[k]
				}
			}
			y[out*c+i], index[out*c+i] = best, int32(tap)
		}
	})
	e.store(n.Out[0])
}

// globalPool is the mean over all pixels of an image.
func (e *reference) globalPool(n *node) {
	in := e.shapes[n.In[0]]
	x, y, c, pixels := e.load(0, n.In[0]), e.result(n.Out[0]), in.dim[3], in.dim[1]*in.dim[2]
	for image := range in.dim[0] {
		row := y[image*c:][:c]
		clear(row)
		for p := range pixels {
			simd.Axpy(row, x[(image*pixels+p)*c:][:c], 1)
		}
		simd.ScaleShift(row, row, 1/float32(pixels), 0)
		n.bound(row)
	}
	e.store(n.Out[0])
}

// softmax of each row.
func (e *reference) softmax(n *node) {
	x, y := e.load(0, n.In[0]), e.result(n.Out[0])
	c := e.shapes[n.In[0]].last()
	for r := 0; r < len(x); r += c {
		src, dst := x[r:r+c], y[r:r+c]
		sum := simd.ExpSum(dst, src, simd.Max(src))
		simd.ScaleShift(dst, dst, 1/sum, 0)
	}
	e.store(n.Out[0])
}

// resize interpolates between the four nearest pixels.
func (e *reference) resize(n *node) {
	in, out := e.shapes[n.In[0]], e.shapes[n.Out[0]]
	x, y, c := e.load(0, n.In[0]), e.result(n.Out[0]), in.dim[3]
	for image := range in.dim[0] {
		for oy := range out.dim[1] {
			y0, y1, fy := n.sample(oy, in.dim[1], out.dim[1])
			for ox := range out.dim[2] {
				x0, x1, fx := n.sample(ox, in.dim[2], out.dim[2])
				at := func(iy, ix int) []float32 { return x[((image*in.dim[1]+iy)*in.dim[2]+ix)*c:][:c] }
				a, b, d, f := at(y0, x0), at(y0, x1), at(y1, x0), at(y1, x1)
				row := y[((image*out.dim[1]+oy)*out.dim[2]+ox)*c:][:c]
				for i := range row {
					upper := a[i] + float32((b[i]-a[i])*fx)
					lower := d[i] + float32((f[i]-d[i])*fx)
					row[i] = upper + float32((lower-upper)*fy)
				}
			}
		}
	}
	e.store(n.Out[0])
}

// sample is where output pixel o of m lies among in input pixels: between two of them,
// and how far from the first.
func (n *node) sample(o, in, m int) (lo, hi int, frac float32) {
	scale := float32(in) / float32(m)
	if n.Flags&flagAlignCorners != 0 && m != 1 {
		scale = float32(in-1) / float32(m-1)
	}
	at := float32(o) * scale
	if n.Flags&(flagAlignCorners|flagLegacyResize) == 0 {
		at = max(0, float32((float32(o)+0.5)*scale)-0.5)
	}
	floor := float32(math.Floor(float64(at)))
	lo = min(int(floor), in-1)
	return lo, min(lo+1, in-1), at - floor
}
