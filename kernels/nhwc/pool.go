package nhwc

import (
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels/window"
)

// Pool combines the elements of windows of each channel: their mean, or the largest.
type Pool[T simd.Ordered] struct {
	Images
	Adaptive bool    // windows are the parts of the input, see [window.Part], and have no kernel
	Mean     bool    // else the largest element, NaN if there is one
	Shares   [3][]T  // the divisor of a mean is a product of what its window counts for along each dimension
	Empty    T       // the least element there is, the largest one of a window outside of the input
	Stop     Stopper // polled for each run of windows
	X, Y     []T     // input and output

	lists [][2][]int // for each worker: the offsets of the input lines of a window, and of its taps
	byRow bool       // combine input lines first
}

// listed is the largest window whose taps are combined in one step.
const listed = 256

// longest returns a bound for the length of windows along a dimension.
func (p *Pool[T]) longest(d int) int {
	if p.Adaptive {
		return min(p.In[d]/p.Out[d]+2, p.In[d])
	}
	return min(p.Kernel[d], p.In[d])
}

// Area is the largest number of elements of a window.
func (p *Pool[T]) Area() int { return p.longest(0) * p.longest(1) * p.longest(2) }

// Line returns the number of elements of a line of the input with its padding, the memory that Run needs.
func (p *Pool[T]) Line() int { return p.padded() * p.C }

// padded returns the number of points of a combined line of the input. It has padding, if not too much, where that is neutral: all
// windows then have the same taps.
func (p *Pool[T]) padded() int {
	if p.Mean || p.Adaptive || p.Kernel[2] > p.In[2] {
		return p.In[2]
	}
	if wide := p.Pad[2] + max(p.In[2], p.Start(2, p.Out[2]-1)+p.Extent(2)); wide <= 2*p.In[2] {
		return wide
	}
	return p.In[2]
}

// Listed returns the number of integers that Plan allocates for each worker.
func (p *Pool[T]) Listed() int {
	lines := p.longest(0) * p.longest(1)
	return lines + max(p.longest(2), min(p.Area(), listed))
}

// Plan prepares the loop for its geometry.
func (p *Pool[T]) Plan(workers int) {
	p.byRow = p.lines()
	lines := p.longest(0) * p.longest(1)
	p.lists = pack.Grow(p.lists, workers)
	for i := range p.lists {
		l := &p.lists[i]
		l[0], l[1] = pack.Grow(l[0], lines), pack.Grow(l[1], p.Listed()-lines)
	}
}

// lines reports whether it is faster to combine the input lines that a line of windows reads to one, and then the columns of
// that: windows that overlap share its elements. It compares the elements that both ways read and write, in vectors; a
// tap in a list costs as much as some of them (BenchmarkPool).
func (p *Pool[T]) lines() bool {
	const listing = 32
	tall, wide, c := p.longest(0)*p.longest(1), p.longest(2), p.C
	if p.Stride[2] != 1 { // vectors end with a point
		c = (c + simd.ChannelLanes - 1) &^ (simd.ChannelLanes - 1)
	}
	direct := p.Out[2]*(tall*wide+1)*c + listing*tall*wide
	byRow := (tall+1)*p.Line() + p.Out[2]*(wide+1)*c + listing*(tall+wide)
	return tall > 1 && (tall*wide > listed || byRow < direct)
}

// CountInside sets Shares so that means are of the elements in the input.
func (p *Pool[T]) CountInside() {
	for d, out := range p.Out {
		p.Shares[d] = pack.Grow(p.Shares[d], out)
		for at := range p.Shares[d] {
			_, n := p.taps(d, at)
			p.Shares[d][at] = T(max(n, 1))
		}
	}
}

// taps returns the first element of a window along a dimension that is in the input, and the number of its elements there.
func (p *Pool[T]) taps(d, at int) (first, n int) {
	if p.Adaptive {
		lo, hi := window.Part(p.In[d], p.Out[d], at)
		return lo, hi - lo
	}
	start, lo, hi := p.Shape.Taps(d, at)
	return start + lo*p.Dilate[d], hi - lo
}

// Run pools line i of the output, counted over depths and images, with memory for a line of the input.
func (p *Pool[T]) Run(worker int, memory []T, i int) {
	l, d, h := &p.lists[worker], i/p.Out[1]%p.Out[0], i%p.Out[1]
	x, y := p.X[i/p.Out[1]/p.Out[0]*p.size():][:p.size()], p.Y[i*p.Out[2]*p.C:][:p.Out[2]*p.C]
	lines := p.linesOf(l[0][:0], d, h)
	pads := p.padded() > p.In[2]
	switch {
	case p.byRow && pads && len(lines) > 0:
		p.Stop.Poll()
		left, n := p.Pad[2]*p.C, p.In[2]*p.C
		memory = memory[:p.Line()]
		fill(memory[:left], p.Empty)
		p.combine(memory[left:][:n], x, lines, 1, n, 0)
		fill(memory[left+n:], p.Empty)
		p.windows(l[1][:0], y, memory, append(lines[:0], 0), 0, p.Kernel[2])
		return
	case p.byRow && len(lines) > 1:
		memory = memory[:p.Line()]
		p.combine(memory, x, lines, 1, len(memory), 0)
		x, lines = memory, append(lines[:0], 0)
	}
	for at := 0; at < p.Out[2]; {
		p.Stop.Poll()
		first, n := p.taps(2, at)
		run := 1
		if !p.Adaptive {
			run = p.Alike(2, at, n)
		}
		p.windows(l[1][:0], y[at*p.C:][:run*p.C], x, lines, first, n)
		if p.Mean {
			Divide(y[at*p.C:][:run*p.C], p.Shares[0][d]*p.Shares[1][h]*p.Shares[2][at])
		}
		at += run
	}
}

// linesOf appends the offsets of the input lines that a line of windows reads.
func (p *Pool[T]) linesOf(dst []int, d, h int) []int {
	z, deep := p.taps(0, d)
	y, tall := p.taps(1, h)
	for k := range deep {
		for i := range tall {
			dst = append(dst, ((z+k*p.Dilate[0])*p.In[1]+y+i*p.Dilate[1])*p.In[2]*p.C)
		}
	}
	return dst
}

// windows combines adjacent windows that have the same n taps of these lines, from column first on.
func (p *Pool[T]) windows(off []int, y, x []T, lines []int, first, n int) {
	step := p.Dilate[2] * p.C
	for _, at := range lines {
		at += first * p.C
		for range n {
			off = append(off, at)
			at += step
		}
	}
	switch {
	case len(off) == 0 && p.Mean:
		clear(y)
	case len(off) == 0:
		simd.Fill(y, p.Empty)
	case p.Stride[2] == 1: // adjacent points are one row
		p.combine(y, x, off, 1, len(y), 0)
	default:
		p.combine(y, x, off, len(y)/p.C, p.C, p.Stride[2]*p.C)
	}
}

// combine combines the taps of rows of n elements, which are step apart in x.
func (p *Pool[T]) combine(y, x []T, off []int, rows, n, step int) {
	if p.Mean {
		simd.SumTaps(y, x, off, rows, n, n, step)
		return
	}
	simd.MaxTaps(y, x, off, rows, n, n, step)
}
