package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// eachSlide calls f for windows that reach over both edges, over one or over none, with NaN, infinities and equal
// elements; off has taps rows, the last of which ends where x does.
func eachSlide(f func(name string, r *rand.Rand, x guarded, off []int, rows, n, ys, xs int, s Slide)) {
	r := rand.New(rand.NewPCG(51, 6))
	for stride := 1; stride <= 5; stride++ {
		for kernel := 1; kernel <= 7; kernel++ {
			for _, width := range []int{1, 2, 5, 7, 14, 16, 17, 31, 33, 50, 64, 97, 130} {
				pad, rows, taps := r.IntN(kernel/2+1), 1+r.IntN(4), 1+r.IntN(4)
				n := (width+2*pad-kernel+r.IntN(stride))/stride + 1
				if n < 1 || (n-1)*stride-pad >= width {
					continue
				}
				s, xs, ys, off := Slide{kernel, stride, width, pad}, width+r.IntN(9), n+r.IntN(3), make([]int, taps)
				for t := range off {
					off[t] = r.IntN(50)
				}
				off[taps-1] = 50
				_, last := s.window(n - 1)
				x := newGuarded(r, 50+(rows-1)*xs+max(last, 1))
				for i := range x.data {
					if v := r.IntN(60); v < 3 {
						x.data[i] = []float32{float32(math.NaN()), inf, -inf}[v]
					} else if v < 20 {
						x.data[i] = 0.5
					}
				}
				f(fmt.Sprintf("%+v rows=%d taps=%d n=%d", s, rows, taps, n), r, x, off, rows, n, ys, xs, s)
			}
		}
	}
}

func TestMaxSlide(t *testing.T) {
	eachSlide(func(name string, r *rand.Rand, x guarded, off []int, rows, n, ys, xs int, s Slide) {
		y, want := newGuarded(r, (rows-1)*ys+n), make([]float32, (rows-1)*ys+n)
		copy(want, y.data)
		MaxSlide(y.data, x.data, off, rows, n, ys, xs, s)
		maxSlideGo(want, x.data, off, rows, n, ys, xs, s)
		checkRows(t, name, y, want)
	})
}

func TestSumSlide(t *testing.T) {
	eachSlide(func(name string, r *rand.Rand, x guarded, off []int, rows, n, ys, xs int, s Slide) {
		y, want, scale := newGuarded(r, (rows-1)*ys+n), make([]float32, (rows-1)*ys+n), operands(r, n)
		copy(want, y.data)
		SumSlide(y.data, x.data, off, rows, n, ys, xs, s, scale)
		sumSlideGo(want, x.data, off, rows, n, ys, xs, s, scale)
		y.check(t, name)
		for i, v := range want {
			bound := 1e-6 * float64(len(off)*s.Kernel) * max(1, math.Abs(float64(v)))
			if got := y.data[i]; !same(got, v) && !(math.Abs(float64(got-v)) <= bound) {
				t.Fatalf("%s: element %d: got %v, want %v", name, i, got, v)
			}
		}
	})
}

func TestSlideShort(t *testing.T) {
	s, x, y, w := Slide{3, 2, 9, 1}, make([]float32, 31), make([]float32, 14), make([]float32, 5)
	off := []int{0, 11}
	for name, f := range map[string]func(){
		"x":     func() { MaxSlide(y, x[:30:31], off, 2, 5, 9, 11, s) },
		"y":     func() { MaxSlide(y[:13:14], x, off, 2, 5, 9, 11, s) },
		"scale": func() { SumSlide(y, x, off, 2, 5, 9, 11, s, w[:4:5]) },
	} {
		if recovered(f) == nil {
			t.Errorf("%s one element short: no panic", name)
		}
	}
	if reason := recovered(func() { SumSlide(y, x, off, 2, 5, 9, 11, s, w) }); reason != nil {
		t.Errorf("long enough: %v", reason)
	}
}

func BenchmarkSlide(b *testing.B) {
	for stride := 2; stride <= 4; stride++ {
		if !CanSlide(stride, stride) {
			b.Skip("no loop here")
		}
		for _, n := range benchmarkLengths {
			width, kernel := n*stride, min(stride+1, 4)
			s, off := Slide{kernel, stride, width, 1}, []int{0, width, 2 * width}
			x, y, w := make([]float32, 6*width), make([]float32, 2*n), make([]float32, n)
			name := fmt.Sprintf("stride %d", stride)
			versus(b, named("MaxSlide/"+name, n), 2*n*3*kernel, func() { MaxSlide(y, x, off, 2, n, n, width, s) },
				func() { maxSlideGo(y, x, off, 2, n, n, width, s) })
			versus(b, named("SumSlide/"+name, n), 2*n*3*kernel, func() { SumSlide(y, x, off, 2, n, n, width, s, w) },
				func() { sumSlideGo(y, x, off, 2, n, n, width, s, w) })
		}
	}
}
