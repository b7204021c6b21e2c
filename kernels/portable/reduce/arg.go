package reduce

import (
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/loops"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// argReducer finds the extremes of a layout: of equal ones the first, and NaN before all others.
type argReducer[C tensor.Compute] struct {
	layout
	source[C]
	plan   plan
	least  bool
	blocks int // of a row
	best   []C
	at     []int64

	// Of rows that are processed in one pass, column by column: their offsets and numbers, and the results for each
	// worker.
	off   [rowsPerPass]int
	tag   [rowsPerPass]int32
	found []C
	from  []int32
}

// rowsPerPass is the number of rows of a pass over columns, rowSegment the number of cells of a pass over a row.
const rowsPerPass, rowSegment = 64, 512

// find leaves the extremes and their places among the reduced elements in best and
// at, in the order of the layout.
func (f *argReducer[C]) find(c *kernels.Ctx, l layout, from source[C]) {
	f.layout, f.source = l, from
	f.best, f.at = kernels.Scratch[C](c, l.results()), kernels.Scratch[int64](c, l.results())
	f.blocks = (f.inner + block - 1) / block
	if f.inner > 1 {
		f.found, f.from = kernels.Scratch[C](c, c.Threads()*block), kernels.Scratch[int32](c, c.Threads()*block)
		for i := range min(rowsPerPass, f.n) {
			f.off[i], f.tag[i] = i*f.inner, int32(i)
		}
	}
	c.Parallel(f.outer*f.blocks, cpu.Grain(f.n*min(f.inner, block), 1200), f)
	f.source, f.found, f.from = source[C]{}, nil, nil
}

// Range searches blocks lo to hi.
func (f *argReducer[C]) Range(worker, lo, hi int) {
	for i := lo; i < hi; i++ {
		if f.inner == 1 {
			f.findRow(worker, i)
		} else {
			f.findCols(worker, i/f.blocks, i%f.blocks*block)
		}
	}
}

// findRow finds the segment of the row that contains the extreme, then its position in the segment.
func (f *argReducer[C]) findRow(worker, o int) {
	best, at := f.extreme(f.cells(worker, o*f.n, min(rowSegment, f.n))), 0
	for i := rowSegment; i < f.n; i += rowSegment {
		if v := f.extreme(f.cells(worker, o*f.n+i, min(rowSegment, f.n-i))); f.beats(v, best) {
			best, at = v, i
		}
	}
	for _, v := range f.cells(worker, o*f.n+at, min(rowSegment, f.n-at)) {
		if v == best || v != v {
			break
		}
		at++
	}
	f.best[o], f.at[o] = best, int64(at)
}

func (f *argReducer[C]) beats(a, b C) bool {
	if f.least {
		return a < b || a != a && b == b
	}
	return a > b || a != a && b == b
}

// extreme returns the extreme of x, or NaN.
func (f *argReducer[C]) extreme(x []C) C {
	wide, ok := any(x).([]float32)
	switch {
	case ok && f.least:
		return C(simd.Min(wide))
	case ok:
		return C(simd.Max(wide))
	case f.least:
		return loops.Min(x[0], x)
	}
	return loops.Max(x[0], x)
}

func (f *argReducer[C]) findCols(worker, o, from int) {
	n := min(block, f.inner-from)
	best, at := f.best[o*f.inner+from:][:n], f.at[o*f.inner+from:][:n]
	if _, ok := any(best).([]float32); !ok {
		f.findColsScalar(worker, (o*f.n)*f.inner+from, best, at)
		return
	}
	found, tags := f.found[worker*block:][:n], f.from[worker*block:][:n]
	for r, rows := 0, 0; r < f.n; r += rows {
		rows = f.rowsAt(n, f.n-r)
		x := f.cells(worker, (o*f.n+r)*f.inner+from, (rows-1)*f.inner+n)
		simd.ExtremeTaps(found, tags, x, f.off[:rows], f.tag[:], 1, n, n, n, f.least)
		for i, v := range found {
			if r > 0 && !f.beats(v, best[i]) {
				continue
			}
			if v != v {
				tags[i] = f.firstNaN(x[i:])
			}
			best[i], at[i] = v, int64(r)+int64(tags[i])
		}
	}
}

// findColsScalar is findCols without vectors, for the columns from cell from.
func (f *argReducer[C]) findColsScalar(worker, from int, best []C, at []int64) {
	copy(best, f.cells(worker, from, len(best)))
	clear(at)
	for r := int64(1); r < int64(f.n); r++ {
		x := f.cells(worker, from+int(r)*f.inner, len(best))[:len(best)]
		if f.least {
			for i, v := range x {
				if b := best[i]; v < b || v != v && b == b {
					best[i], at[i] = v, r
				}
			}
			continue
		}
		for i, v := range x {
			if b := best[i]; v > b || v != v && b == b {
				best[i], at[i] = v, r
			}
		}
	}
}

// rowsAt returns how many of the remaining rows, of n cells each, one pass processes.
func (f *argReducer[C]) rowsAt(n, left int) int {
	rows := min(rowsPerPass, left)
	if f.load != nil {
		rows = min(rows, max(1, (block-n)/f.inner+1))
	}
	return rows
}

// firstNaN returns the first row with a NaN in the column that x starts with.
func (f *argReducer[C]) firstNaN(x []C) int32 {
	for r := range int32(rowsPerPass) {
		if v := x[f.off[r]]; v != v {
			return r
		}
	}
	return 0
}

// search is a call that looks for extremes. value and index are the indices of the outs; value is -1 if only the index
// is wanted.
type search struct {
	a kernels.Args
	dims
	least        bool
	value, index int
}

func (k search) run(c *kernels.Ctx) error {
	if err := checkExtreme(k.a, k.set); err != nil {
		return err
	}
	d := k.a.Tensor(0).DType
	for _, o := range [...]struct {
		arg   int
		dtype tensor.DType
	}{{k.index, tensor.Int64}, {k.value, d}} {
		if o.arg < 0 {
			continue
		}
		if err := kernels.WantDType(o.arg, k.a.Tensor(o.arg), o.dtype); err != nil {
			return err
		}
		if err := k.resize(k.a, o.arg); err != nil {
			return err
		}
	}
	compute := d
	if d.Size() <= 2 {
		compute = tensor.Float32 // which represents small integers exactly
	}
	operand.ByCompute(compute, find[float32], find[float64], find[int64])(c, k, d)
	return nil
}

func find[C tensor.Compute](c *kernels.Ctx, k search, d tensor.DType) {
	f := kernels.Keep[argReducer[C]](c)
	self := k.a.Tensor(0)
	var data []byte
	if k.all {
		data = operand.Rows(c, self)
		f.plan.layout, f.plan.count = layout{1, self.Numel(), 1}, 0
	} else {
		data = f.plan.set(c, self, k.set)
	}
	f.least = k.least
	f.find(c, f.plan.layout, sourceOf[C](c, data, d, f.plan.layout))
	f.plan.write(c, k.a.Tensor(k.index), self, k.set, tensor.BytesOf(f.at))
	if k.value >= 0 {
		f.plan.write(c, k.a.Tensor(k.value), self, k.set, operand.Bytes(c, d, f.best))
	}
	f.best, f.at = nil, nil
}

// argReduce runs aten::max.dim and aten::min.dim, with outs for values and indices, or aten::argmax and aten::argmin.
// Without a dimension, indices count through all elements.
func argReduce(least, values bool) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		d, err := readDims(a, 3)
		if err != nil {
			return err
		}
		k := search{a: a, dims: d, least: least, value: -1, index: 3}
		if values {
			k.value, k.index = 3, 4
		}
		return k.run(c)
	}
}
