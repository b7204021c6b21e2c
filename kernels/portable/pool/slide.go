package pool

import (
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

// slide pools windows in place, without a copy of the input that has padding: those that a [simd.Slider] has vector loops
// for. A tile is some rows of the output of one plane, or whole planes.
type slide struct {
	pooling
	sliders [2]simd.Slider // for the stored type and for float32: a plan of one does not replace that of the other
	columns *simd.Slider   // the one in use
	size    int            // of an element
	x, y    []byte
	index   []int64 // of maxima, nil if nothing reads it
	rows    int     // of the output in a tile, fewer in the last one of a plane
	count   int     // tiles of one depth of a plane
	group   int     // planes in a tile, fewer in the last one
	off     []int

	// Of means: what the length of a window along each dimension counts for in the divisor, and the scale of a row of
	// windows for each worker. nil for maxima.
	shares [3][]float32
	scale  []float32
}

// slidePoints is the preferred number of points in a tile.
const slidePoints = 1 << 16

// slideElements are the types that are pooled as they are stored.
var slideElements = map[tensor.DType]simd.SlideElement{
	tensor.Float32: simd.SlideFloat32, tensor.Float16: simd.SlideFloat16, tensor.Int8: simd.SlideInt8, tensor.Uint8: simd.SlideUint8}

// pool pools x into out and, if it is not nil, the indices of maxima into index. It returns false if there is no vector
// loop for the windows. x is pooled as float32 unless its own type can be. Means have shares.
func (s *slide) pool(c *kernels.Ctx, w *pooling, x, out *tensor.Tensor, index []int64, shares [3][]float32) bool {
	e, ok := slideElements[x.DType]
	stored := ok && (index == nil || e == simd.SlideFloat32) && s.plan(c, w, e)
	if !stored && !s.plan(c, w, simd.SlideFloat32) || index != nil && !s.columns.HasPlaces() {
		return false
	}
	s.index, s.shares = index, shares
	if stored {
		s.size, s.x, s.y = x.DType.Size(), operand.Rows(c, x), operand.OutRows(c, out)
		s.run(c)
		operand.StoreRows(c, out, s.y)
	} else {
		y := operand.Out[float32](c, out)
		s.size, s.x, s.y = 4, tensor.BytesOf(operand.In[float32](c, x)), tensor.BytesOf(y)
		s.run(c)
		operand.Store(c, out, y)
	}
	s.x, s.y, s.index, s.shares, s.scale = nil, nil, nil, [3][]float32{}, nil
	return true
}

// plan reports whether windows can be pooled in place.
func (s *slide) plan(c *kernels.Ctx, w *pooling, e simd.SlideElement) bool {
	s.columns = &s.sliders[0]
	if e == simd.SlideFloat32 {
		s.columns = &s.sliders[1]
	}
	columns := simd.Windows{N: w.Out[2], Kernel: w.Kernel[2], Stride: w.Stride[2], Width: w.In[2], Pad: w.Pad[2]}
	if w.Dilate != [3]int{1, 1, 1} || window.Volume(w.In) > maxPoints || !w.tapped() || !s.columns.Plan(columns, e) {
		return false
	}
	s.pooling, s.c = *w, c
	s.divide(c.Threads())
	s.off = grow(s.off, c.Threads()*maxTaps)
	return true
}

// divide divides the output into tiles.
func (s *slide) divide(threads int) {
	s.rows = s.tileRows(threads)
	s.count = (s.Out[1] + s.rows - 1) / s.rows
	s.group = 1
	if s.count == 1 {
		share := (s.planes + threads - 1) / threads
		s.group = max(min(slidePoints/window.Volume(s.In), share+1)&^1, 1) // even: pairs of narrow planes are pooled together
	}
}

// tileRows returns the number of output rows in a tile. There are fewer than preferred if planes are fewer than threads,
// and all rows are too much work for one thread.
func (s *slide) tileRows(threads int) int {
	rows := min(max(slidePoints/s.In[2]/s.Stride[1], 1), s.Out[1])
	planes := s.planes * s.Out[0] // of the output
	if all := planes * s.Out[1]; planes < threads && all > s.grain(1) {
		rows = min(rows, (all+threads-1)/threads)
	}
	return rows
}

// grain is the grain of a loop whose steps compute so many output rows.
func (s *slide) grain(rows int) int { return cpu.Grain(rows*s.Out[2]*window.Volume(s.Kernel), tapCost) }

// units returns the number of tiles.
func (s *slide) units() int { return (s.planes + s.group - 1) / s.group * s.Out[0] * s.count }

func (s *slide) run(c *kernels.Ctx) {
	if s.shares[0] != nil {
		s.scale = kernels.Scratch[float32](c, c.Threads()*s.Out[2])
	}
	c.Parallel(s.units(), s.grain(s.group*s.rows), s)
}

// Range pools tiles [lo, hi).
func (s *slide) Range(worker, lo, hi int) {
	for i := lo; i < hi; i++ {
		plane, d, row := i/s.count/s.Out[0]*s.group, i/s.count%s.Out[0], i%s.count*s.rows
		s.tile(worker, plane, d, row, min(row+s.rows, s.Out[1]))
	}
}

// tile pools rows [row, end) of a group of planes at depth d.
func (s *slide) tile(worker, plane, d, row, end int) {
	cols, off := s.Out[2], s.off[worker*maxTaps:][:maxTaps]
	r := simd.SlideRows{Planes: min(s.group, s.planes-plane),
		YS: cols, XS: s.Stride[1] * s.In[2], YP: window.Volume(s.Out), XP: window.Volume(s.In)}
	x := s.x[plane*r.XP*s.size:][:r.Planes*r.XP*s.size]
	at, last := plane*r.YP+(d*s.Out[1]+row)*cols, plane*r.YP+(r.Planes-1)*r.YP+(d*s.Out[1]+end)*cols
	var tall float32
	for row < end {
		s.c.Poll()
		taps, n := s.listRows(off, d, row)
		r.Off, r.Rows = off[:taps], min(n, end-row)
		y := s.y[at*s.size : last*s.size]
		switch {
		case s.shares[0] != nil:
			scale := s.scale[worker*cols:][:cols]
			if now := s.shares[0][d] * s.shares[1][row]; now != tall {
				tall = now
				simd.ScaleShift(scale, s.shares[2], tall, 0)
				simd.Reciprocal(scale, scale)
			}
			s.columns.Sum(y, x, &r, scale)
		case s.index != nil:
			s.columns.MaxPlaces(y, s.index[at:last], x, &r)
		default:
			s.columns.Max(y, x, &r)
		}
		at, row = at+r.Rows*cols, row+r.Rows
	}
}
