package quantize

import (
	"math"
	"slices"
)

// bins is the number of bins of a histogram: that of PyTorch's observers, so that the ranges are those of its exporters. So are
// the parts of a bin, the steps of the search and the least scale below.
const bins = 2048

// Observer records the distribution of a value's elements in a histogram.
type Observer struct {
	lo, hi float32
	counts []float64
	total  float64
}

// Add records elements. Those that are not finite are ignored: one of them would make every bin as wide as the range of floats.
func (o *Observer) Add(list []float32) {
	lo, hi, ok := extremes(list)
	if !ok {
		return
	}
	switch {
	case o.counts == nil:
		o.lo, o.hi, o.counts = lo, hi, make([]float64, bins)
	case lo < o.lo || hi > o.hi:
		o.widen(min(lo, o.lo), max(hi, o.hi))
	}
	from, to := float64(o.lo), float64(o.hi)
	if from == to {
		from, to = from-1, to+1
	}
	for _, x := range list {
		if x-x == 0 { // finite
			o.counts[binOf(float64(x), from, to)]++
			o.total++
		}
	}
}

// binOf returns the bin of a number, the first one if the range is a single number even with 1 on each side, as of large numbers.
func binOf(x, lo, hi float64) int {
	if !(hi > lo) {
		return 0
	}
	return min(int((x-lo)*(bins/(hi-lo))), bins-1)
}

// extremes returns the least and the largest finite element.
func extremes(list []float32) (lo, hi float32, ok bool) {
	lo, hi = math.MaxFloat32, -math.MaxFloat32
	for _, x := range list {
		if x-x == 0 {
			lo, hi, ok = min(lo, x), max(hi, x), true
		}
	}
	return lo, hi, ok
}

// parts is into how many equal parts a bin is cut when the range becomes wider.
const parts = 16

// widen changes the range. The parts of each bin go to the new bins that have their centers.
func (o *Observer) widen(lo, hi float32) {
	from, to, counts := float64(lo), float64(hi), make([]float64, bins)
	width := (float64(o.hi) - float64(o.lo)) / bins
	for i, n := range o.counts {
		switch {
		case n == 0:
		case width == 0:
			counts[binOf(float64(o.lo), from, to)] += n
		default:
			for k := range parts {
				x := float64(o.lo) + width*(float64(i)+(float64(k)+0.5)/parts)
				counts[binOf(x, from, to)] += n / parts
			}
		}
	}
	o.lo, o.hi, o.counts = lo, hi, counts
}

// Empty reports whether no element was recorded.
func (o *Observer) Empty() bool { return o == nil || o.counts == nil }

// Extremes returns the least and the largest element.
func (o *Observer) Extremes() (lo, hi float32) { return o.lo, o.hi }

// percentile is the share of elements outside of the range on each side: one in ten thousand in all.
const percentile = 5e-5

// Percentile returns the range without the outermost elements.
func (o *Observer) Percentile() (lo, hi float32) {
	first, last, sum := 0, bins-1, 0.0
	for sum+o.counts[first] <= percentile*o.total && first < last {
		sum += o.counts[first]
		first++
	}
	sum = 0
	for sum+o.counts[last] <= percentile*o.total && last > first {
		sum += o.counts[last]
		last--
	}
	return o.limits(first, last)
}

// limits returns the range of bins.
func (o *Observer) limits(first, last int) (lo, hi float32) {
	width := (float64(o.hi) - float64(o.lo)) / bins
	return float32(float64(o.lo) + width*float64(first)), float32(float64(o.lo) + width*float64(last+1))
}

// LeastError returns the range whose 256 levels have the least squared error. It is searched from the outside: the side where
// a quantile is farther leaves bins out, until the error grows.
func (o *Observer) LeastError() (lo, hi float32) {
	const step = 1e-5
	sums, sum := make([]float64, bins), 0.0
	for i, n := range o.counts {
		sum += n
		sums[i] = sum
	}
	first, last, least := 0, bins-1, math.Inf(1)
	for a, b := 0.0, 1.0; a < b; {
		l := first + searchFrom(sums[first:last], (a+step)*sum)
		r := last
		for r > first && sums[r] > (b-step)*sum {
			r--
		}
		nextFirst, nextLast := first, last
		if l-first > last-r {
			nextFirst, a = l, a+step
		} else {
			nextLast, b = r, b-step
		}
		if nextFirst == first && nextLast == last {
			continue
		}
		e := o.errorOf(nextFirst, nextLast)
		if e > least {
			break
		}
		first, last, least = nextFirst, nextLast, e
	}
	return o.limits(first, last)
}

// searchFrom returns the index of the first sum that is at least want.
func searchFrom(sums []float64, want float64) int {
	i, _ := slices.BinarySearch(sums, want)
	return i
}

// levels is the number of values of 8 bits.
const levels = 256

// errorOf returns the squared error of all elements if bins first to last are divided into 256 levels.
func (o *Observer) errorOf(first, last int) (sum float64) {
	width := (float64(o.hi) - float64(o.lo)) / bins
	level := width * float64(last-first+1) / levels
	if level == 0 {
		return 0
	}
	cell := func(x float64) float64 { return min(max(math.Floor(x/level), 0), levels-1) }
	for i, n := range o.counts {
		if n == 0 {
			continue
		}
		density, begin := n/width, float64(i-first)*width
		end := begin + width
		b, e := cell(begin), cell(end)
		half := level / 2
		sum += cubes(begin-(b+0.5)*level, half, density) + (e-b-1)*cubes(-half, half, density) + cubes(-half, end-(e+0.5)*level, density)
	}
	return sum
}

// cubes returns the integral of density × x².
func cubes(begin, end, density float64) float64 {
	return density * (end*end*end - begin*begin*begin) / 3
}

// leastScale is the smallest scale of values.
const leastScale = 0x1p-12

// affine returns the scale and the zero point of 8 bits for a range, which is extended to 0.
func affine(lo, hi float32) (scale float32, zero int32) {
	lo, hi = min(lo, 0), max(hi, 0)
	scale = max((hi-lo)/255, leastScale)
	return scale, int32(min(max(-128-math.RoundToEven(float64(lo/scale)), -128), 127))
}
