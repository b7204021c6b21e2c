package simd

// Slide is the columns of windows: Kernel adjacent columns, Stride apart from window to window, of an input with Width
// columns and Pad more on the left.
type Slide struct{ Kernel, Stride, Width, Pad int }

// CanSlide reports whether SumSlide and MaxSlide have vector loops for a kernel and a stride.
func CanSlide(kernel, stride int) bool {
	most := 2
	if avx512 {
		most = 4
	}
	return avx2() && stride >= 2 && stride <= most && kernel <= 6/stride*stride
}

// vectors reports whether a vector loop computes the windows. Those for AVX2 number columns with 32 bits.
func (s *Slide) vectors() bool { return CanSlide(s.Kernel, s.Stride) && s.Width < 1<<30 }

// slide is a window: columns [lo, hi) of x from the start of its row.
func (s *Slide) window(j int) (lo, hi int) {
	lo = j*s.Stride - s.Pad
	return max(lo, 0), min(lo+s.Kernel, s.Width)
}

// SumSlide sums windows of shifted rows, each of which is scaled:
//
//	y[i*ys+j] = scale[j] · Σ_t Σ_b x[off[t]+i*xs+j*s.Stride-s.Pad+b]    i < rows, j < n, t < len(off), b < s.Kernel
//
// Columns outside of [0, s.Width) are left out. There is at least one tap. It panics where a slice ends before an
// element that the last row wants.
func SumSlide(y, x []float32, off []int, rows, n, ys, xs int, s Slide, scale []float32) {
	if !s.check(y, x, off, rows, n, ys, xs) {
		return
	}
	_ = scale[n-1]
	if !s.vectors() {
		sumSlideGo(y, x, off, rows, n, ys, xs, s, scale)
		return
	}
	f := [...]func(rows, n int, y, x *float32, off *int, taps, kernel, width, pad, ys, xs int, scale *float32){
		sumSlide8, sumSlide2, sumSlide3, sumSlide4}
	f[s.loop()](rows, n, &y[0], &x[0], &off[0], len(off), s.Kernel, s.Width, s.Pad, 4*ys, 4*xs, &scale[0])
}

// MaxSlide finds the largest elements of windows, NaN where there is one, and -∞ where no column is in the input:
//
//	y[i*ys+j] = max_t max_b x[off[t]+i*xs+j*s.Stride-s.Pad+b]    i < rows, j < n, t < len(off), b < s.Kernel
//
// It leaves out columns, and panics, as [SumSlide] does.
func MaxSlide(y, x []float32, off []int, rows, n, ys, xs int, s Slide) {
	if !s.check(y, x, off, rows, n, ys, xs) {
		return
	}
	if !s.vectors() {
		maxSlideGo(y, x, off, rows, n, ys, xs, s)
		return
	}
	f := [...]func(rows, n int, y, x *float32, off *int, taps, kernel, width, pad, ys, xs int){maxSlide8, maxSlide2, maxSlide3, maxSlide4}
	f[s.loop()](rows, n, &y[0], &x[0], &off[0], len(off), s.Kernel, s.Width, s.Pad, 4*ys, 4*xs)
}

// loop is the index of the vector loop: that for AVX2, or those for AVX-512 by their strides.
func (s *Slide) loop() int {
	if avx512 {
		return s.Stride - 1
	}
	return 0
}

// Prefetch tells the processor that x is read soon, in an order that it does not foresee.
func Prefetch(x []float32) {
	const line = 16
	if n := len(x) / line; n > 0 && avx2() {
		prefetchLines(n, &x[0])
	}
}

// check panics where a slice is too short. It returns false if there is nothing to compute.
func (s *Slide) check(y, x []float32, off []int, rows, n, ys, xs int) bool {
	if rows <= 0 || n <= 0 {
		return false
	}
	_ = y[(rows-1)*ys+n-1]
	_, last := s.window(n - 1)
	for _, o := range off {
		_ = x[o:][(rows-1)*xs+max(last, 1)-1]
	}
	return true
}

func sumSlideGo(y, x []float32, off []int, rows, n, ys, xs int, s Slide, scale []float32) {
	for i := range rows {
		for j := range n {
			lo, hi := s.window(j)
			var sum float32
			for _, o := range off {
				for c := lo; c < hi; c++ {
					sum += x[o+i*xs+c]
				}
			}
			y[i*ys+j] = sum * scale[j]
		}
	}
}

func maxSlideGo(y, x []float32, off []int, rows, n, ys, xs int, s Slide) {
	for i := range rows {
		for j := range n {
			lo, hi := s.window(j)
			best := -inf
			for _, o := range off {
				for c := lo; c < hi; c++ {
					if v := x[o+i*xs+c]; v > best || v != v {
						best = v
					}
				}
			}
			y[i*ys+j] = best
		}
	}
}
