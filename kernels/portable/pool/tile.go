package pool

import (
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/kernels/window"
)

// tiles divides the output of contiguous planes into tiles of rows, for the indices of maxima. The windows of a tile are pooled together, tap
// by tap: tap t of the window at row i and column j of a tile is element off[t] + i·step + j of the slice that load returns. For that, input rows are padded, and their columns sorted into one phase for each column of the stride.
type tiles[T tensor.Compute] struct {
	pooling      // planes may be stacked to one tall plane
	fill    T    // what the padding holds
	direct  bool // read in place
	rows    int  // of the output in a tile, fewer in the last one of a plane
	count   int  // tiles of one depth of a plane
	phases  []phase
	height  int // input rows of a tile
	width   int // columns of a phase
	off     []int
	step    int // between output rows
	scratch []T // kernel's depth · phases · height · width for each worker
}

// phase is the columns of an input row that are a stride apart, copied to columns [lo, hi) of a padded row; the first one
// is input column from.
type phase struct{ lo, hi, from int }

// maxTaps is the largest kernel that is pooled tap by tap, tileSize the preferred and maxTile the maximum number of
// elements of a tile's input.
const maxTaps, tileSize, maxTile = 64, 1 << 13, 1 << 18

// tapped reports whether windows are small enough to be pooled tap by tap.
func (w *pooling) tapped() bool {
	return max(w.Kernel[0], w.Kernel[1], w.Kernel[2]) <= maxTaps && window.Volume(w.Kernel) <= maxTaps
}

// plan divides w's planes into tiles. It returns false if the windows are too large.
func (b *tiles[T]) plan(c *kernels.Ctx, w *pooling, fill T) bool {
	b.pooling, b.fill = *w, fill
	if !w.tapped() {
		return false
	}
	tall := w.Extent(1)
	every := w.Stride[2]
	b.width = w.Out[2] + (w.Extent(2)-1)/every
	row := min(every, w.Extent(2)) * b.width
	if tall > maxTile || row > maxTile || w.Kernel[0]*row*tall > maxTile {
		return false
	}
	row *= w.Kernel[0]
	b.stack()
	b.rows = 1
	if size := row * tall; size < tileSize {
		b.rows += min((tileSize-size)/(row*min(w.Stride[1], tileSize)), b.Out[1]-1)
	}
	b.count = (b.Out[1] + b.rows - 1) / b.rows
	b.height = (b.rows-1)*w.Stride[1] + tall
	b.direct = every == 1 && b.Inside(0) && b.Inside(1) && b.Inside(2)
	if b.direct {
		b.width = w.In[2]
	} else {
		b.planPhases(min(every, w.Extent(2)))
	}
	b.step = w.Stride[1] * b.width
	b.scratch = kernels.Scratch[T](c, c.Threads()*row*b.height)
	b.placeTaps()
	return true
}

// stack makes one tall plane of planes if their windows do not overlap and lie in the input.
func (w *pooling) stack() {
	flat := w.In[0] == 1 && w.Out[0] == 1 && w.Kernel[0] == 1
	if flat && w.Pad[1] == 0 && w.Extent(1) <= w.Stride[1] && w.In[1] == w.Out[1]*w.Stride[1] {
		w.In[1], w.Out[1], w.planes = w.In[1]*w.planes, w.Out[1]*w.planes, 1
	}
}

func (b *tiles[T]) planPhases(n int) {
	b.phases = b.phases[:0]
	for q := range n {
		f := phase{from: q - b.Pad[2]}
		f.lo, f.hi = window.Inside(b.width, b.In[2], f.from, b.Stride[2])
		f.from += f.lo * b.Stride[2]
		b.phases = append(b.phases, f)
	}
}

func (b *tiles[T]) placeTaps() {
	b.off = b.off[:0]
	deep, tall := len(b.phases)*b.height*b.width, b.height
	if b.direct {
		deep, tall = b.Dilate[0]*b.In[1]*b.In[2], 0
	}
	for d := range b.Kernel[0] {
		for h := range b.Kernel[1] {
			for k := range b.Kernel[2] {
				x := k * b.Dilate[2]
				b.off = append(b.off, d*deep+(x%b.Stride[2]*tall+h*b.Dilate[1])*b.width+x/b.Stride[2])
			}
		}
	}
}

// units returns the number of tiles.
func (b *tiles[T]) units() int { return b.planes * b.Out[0] * b.count }

// at returns the plane of tile i, the depth of its output, its first row and its number of rows.
func (b *tiles[T]) at(i int) (plane, d, row, n int) {
	row = i % b.count * b.rows
	return i / b.count / b.Out[0], i / b.count % b.Out[0], row, min(b.rows, b.Out[1]-row)
}

// load returns the input of n output rows from row, at depth d.
func (b *tiles[T]) load(worker int, plane []T, d, row, n int) []T {
	size := len(b.phases) * b.height * b.width
	scratch := b.scratch[worker*size*b.Kernel[0]:][:size*b.Kernel[0]]
	if b.direct {
		return plane[b.place(b.Start(0, d), b.Start(1, row), 0):]
	}
	d = b.Start(0, d)
	for k := range b.Kernel[0] {
		if slice := scratch[k*size:][:size]; d >= 0 && d < b.In[0] {
			b.loadRows(slice, plane[b.place(d, 0, 0):b.place(d+1, 0, 0)], row, n)
		} else {
			simd.Fill(slice, b.fill)
		}
		d += b.Dilate[0]
	}
	return scratch
}

// loadRows sorts the input of n output rows from row into phases.
func (b *tiles[T]) loadRows(scratch, slice []T, row, n int) {
	top, rows := b.Start(1, row), b.height-(b.rows-n)*b.Stride[1]
	lo, hi := window.Inside(rows, b.In[1], top, 1)
	b.deal(scratch, slice[max(top+lo, 0)*b.In[2]:], rows, lo, hi)
}

// deal copies rows to each phase; [lo, hi) of them are those of src, others are padding.
func (b *tiles[T]) deal(scratch, src []T, rows, lo, hi int) {
	width := b.width
	for q, f := range b.phases {
		dst := scratch[q*b.height*width:][:rows*width]
		if lo == hi || f.lo == f.hi {
			simd.Fill(dst, b.fill)
			continue
		}
		if hi-lo < rows || f.hi-f.lo < width {
			simd.Fill(dst, b.fill)
		}
		b.skip(dst[lo*width+f.lo:], src[f.from:], hi-lo, f.hi-f.lo)
	}
}

// skip copies n elements, a stride apart, of each row.
func (b *tiles[T]) skip(dst, src []T, rows, n int) {
	switch s := b.Stride[2]; s {
	case 1:
		simd.CopyRows(dst, src, rows, n, b.width, b.In[2])
	case 2:
		simd.Stride2Rows(dst, src, rows, n, b.width, b.In[2])
	default:
		for r := range rows {
			to, from := dst[r*b.width:][:n], src[r*b.In[2]:]
			for i := range to {
				to[i] = from[i*s]
			}
		}
	}
}
