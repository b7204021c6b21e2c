package nhwc

import (
	"github.com/etrun-go/etrun/internal/pack"
	"github.com/etrun-go/etrun/internal/simd"
)

// Depthwise is a convolution of float32 with one filter for each channel, over two dimensions.
type Depthwise struct {
	Images
	X, Y     []float32 // input and output
	Min, Max float32   // bounds of the results

	filter, bias []float32    // [H, W, C] and C elements, each row as often as a step has points
	copies       [2][]float32 // of both, if channels are few
	planned      Images       // what lists are for
	borders      [2]int       // sides of that
	lists        [][]taps     // for each worker
}

// fewChannels is the number of elements of a vector. If there are at most half as many channels, and adjacent points are next to each
// other in the input, a step computes several points as if they were more channels.
const fewChannels = 16

// points returns how many points a step computes.
func (d *Depthwise) points() int {
	if d.Stride[2] == 1 {
		return max(1, fewChannels/max(1, d.C))
	}
	return 1
}

// Copied returns the number of elements that SetFilter copies.
func (d *Depthwise) Copied() int {
	if p := d.points(); p > 1 || d.C < simd.ChannelLanes {
		return (d.taps()+1)*d.C*p + 2*simd.ChannelLanes
	}
	return 0
}

// SetFilter refers to a filter, [H, W, C], and C elements of a bias. Vector loops read behind rows of few channels: those are copied.
func (d *Depthwise) SetFilter(filter, bias []float32) {
	d.filter, d.bias = filter, bias
	if d.Copied() == 0 {
		return
	}
	points := d.points()
	for i, list := range []*[]float32{&d.filter, &d.bias} {
		to := pack.Grow(d.copies[i], len(*list)*points+simd.ChannelLanes)
		for at := 0; at < len(*list); at += d.C {
			for k := range points {
				copy(to[at*points+k*d.C:], (*list)[at:at+d.C])
			}
		}
		d.copies[i], *list = to, to
	}
}

// taps are the offsets of the taps of a window: in the input, relative to the first of them, and in the filter.
type taps struct {
	x, w       []int
	rows, cols [2]int // the half-open ranges of taps in the list
}

// A worker keeps the lists of the windows that it met: a line has one for the windows in the middle and others for those at
// the borders, and lines at the borders have others again. The lists of different borders differ in the sum of
// their bounds. There are listsOfSide² of them, 4 if windows have more than fewTaps taps, and fewer for outputs
// of one line or column.
const listsOfSide, fewTaps = 4, 64

// sides returns how many lists there are for the borders of each of the last two dimensions.
func (d *Depthwise) sides() (n [2]int) {
	for i, out := range d.Out[1:] {
		switch {
		case out == 1: // one list is enough
			n[i] = 1
		case d.taps() > fewTaps:
			n[i] = 2
		default:
			n[i] = listsOfSide
		}
	}
	return n
}

func (d *Depthwise) taps() int { return d.Kernel[1] * d.Kernel[2] }

// Listed returns the number of integers that Plan allocates for each worker.
func (d *Depthwise) Listed() int {
	n := d.sides()
	return 2 * n[0] * n[1] * d.taps()
}

// Plan prepares the loop for its geometry.
func (d *Depthwise) Plan(workers int) {
	if d.planned == d.Images && len(d.lists) >= workers {
		return
	}
	d.planned = d.Images
	d.lists = pack.Grow(d.lists, workers)
	d.borders = d.sides()
	for i := range d.lists {
		d.lists[i] = pack.Grow(d.lists[i], d.borders[0]*d.borders[1])
		for k := range d.lists[i] {
			l := &d.lists[i][k]
			*l = taps{x: pack.Grow(l.x, d.taps()), w: pack.Grow(l.w, d.taps()), rows: [2]int{-1, -1}}
		}
	}
}

// Run computes a line of the output, counted over all images, in runs of points whose windows have the same taps in the
// input.
func (d *Depthwise) Run(worker, line int) {
	width, c, lists, points := d.Out[2], d.C, d.lists[worker], d.points()
	top, y0, y1 := d.Taps(1, line%d.Out[1])
	first := line / d.Out[1] * d.In[1]
	for at := 0; at < width; {
		left, x0, x1 := d.Taps(2, at)
		run, from := d.Alike(2, at, x1-x0), 0
		if y0 < y1 && x0 < x1 {
			from = ((first+top+y0*d.Dilate[1])*d.In[2] + left + x0*d.Dilate[2]) * c
		}
		l := &lists[(y0+y1)%d.borders[0]*d.borders[1]+(x0+x1)%d.borders[1]]
		if rows, cols := [2]int{y0, y1}, [2]int{x0, x1}; l.rows != rows || l.cols != cols {
			d.list(l, rows, cols)
		}
		y, x, n := d.Y[(line*width+at)*c:], d.X[from:], points*c
		simd.ChannelTaps(y, x, d.filter, d.bias, l.x, l.w, run/points, n, n, d.Stride[2]*n, d.Min, d.Max)
		if rest := run % points * c; rest > 0 {
			done := run*c - rest
			simd.ChannelTaps(y[done:], x[done:], d.filter, d.bias, l.x, l.w, 1, rest, rest, rest, d.Min, d.Max)
		}
		at += run
	}
}

// list makes l the list of the given taps.
func (d *Depthwise) list(l *taps, rows, cols [2]int) {
	l.rows, l.cols = rows, cols
	l.x, l.w = l.x[:0], l.w[:0]
	for y := rows[0]; y < rows[1]; y++ {
		for x := cols[0]; x < cols[1]; x++ {
			l.x = append(l.x, ((y-rows[0])*d.Dilate[1]*d.In[2]+(x-cols[0])*d.Dilate[2])*d.C)
			l.w = append(l.w, (y*d.Kernel[2]+x)*d.C*d.points())
		}
	}
}
