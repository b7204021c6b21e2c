package simd

import "math"

// Filter is a filter over a plane that lies dense in memory, as a depthwise
// convolution has one for each channel. Fields are set before Plan. Only AVX-512 has a
// loop for it, whose masks leave padding out; elsewhere Plan reports false, and callers sum
// taps of rows that they copy with padding.
type Filter struct {
	Rows, Cols             int // of the result
	InRows, InCols         int // of the plane
	KernelRows, KernelCols int
	Top, Left              int // padding
	Stride                 int
	DilateRows, DilateCols int

	// masks has, for each block of filterLanes columns of the result, the lanes that
	// each tap of a kernel row finds inside the plane (of Stride vectors, of which it
	// takes every lane or every second one), and those of the result.
	masks []uint16
}

const filterLanes = 16

// maxMasks bounds the masks of a plan: a kernel that wants more is all padding.
const maxMasks = 1 << 16

// Plan prepares what Apply works by, in memory that f keeps, and reports whether
// Apply is fast here.
func (f *Filter) Plan() bool {
	f.masks = f.masks[:0]
	blocks := (f.Cols + filterLanes - 1) / filterLanes
	if !avx512 || f.Stride > 2 || f.KernelCols >= maxMasks || blocks*(f.KernelCols*f.Stride+1) > maxMasks {
		return false
	}
	for c := 0; c < f.Cols; c += filterLanes {
		for k := range f.KernelCols {
			at := c*f.Stride + k*f.DilateCols - f.Left
			for range f.Stride {
				f.masks = append(f.masks, lanesIn(-at, f.InCols-at))
				at += filterLanes
			}
		}
		f.masks = append(f.masks, lanesIn(0, f.Cols-c))
	}
	f.masks = append(f.masks, 0, 0, 0) // kernels of 3 columns read as many at once
	return true
}

// lanesIn is a mask of lanes [lo, hi).
func lanesIn(lo, hi int) uint16 {
	lo, hi = max(lo, 0), min(hi, filterLanes)
	if lo >= hi {
		return 0
	}
	return uint16(1<<hi - 1<<lo)
}

// Apply is
//
//	y[r,c] = bias + Σ w[i,j] · x[r·Stride+i·DilateRows-Top, c·Stride+j·DilateCols-Left]
//
// where x is 0 outside of its rows and columns. It panics where a slice is shorter than its
// rows and columns say.
func (f *Filter) Apply(y, x, w []float32, bias float32) {
	if f.Rows <= 0 || f.Cols <= 0 {
		return
	}
	y, x = y[:f.Rows*f.Cols:len(y)], x[:f.InRows*f.InCols:len(x)]
	w = w[: f.KernelRows*f.KernelCols : len(w)]
	if len(f.masks) == 0 || len(x) == 0 || len(y)*len(w) < few || !finite(w) {
		f.applyGo(y, x, w, bias)
		return
	}
	filter512(f, &f.masks[0], &y[0], &x[0], &w[0], bias)
}

// finite reports that every element times 0 is 0: then what is outside of a plane can
// be left out.
func finite(w []float32) bool {
	var high uint32
	for _, v := range w {
		high |= math.Float32bits(v)&0x7f800000 + 0x00800000
	}
	return high>>31 == 0
}

func (f *Filter) applyGo(y, x, w []float32, bias float32) {
	for r := range f.Rows {
		for c := range f.Cols {
			sum := bias
			for i := range f.KernelRows {
				for j := range f.KernelCols {
					v, iy, ix := float32(0), r*f.Stride+i*f.DilateRows-f.Top, c*f.Stride+j*f.DilateCols-f.Left
					if iy >= 0 && iy < f.InRows && ix >= 0 && ix < f.InCols {
						v = x[iy*f.InCols+ix]
					}
					sum += float32(w[i*f.KernelCols+j] * v)
				}
			}
			y[r*f.Cols+c] = sum
		}
	}
}
