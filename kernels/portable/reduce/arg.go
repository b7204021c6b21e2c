package reduce

import (
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// argReducer looks for the extremes of a layout: the first of equal ones, a NaN before
// anything else.
type argReducer[C tensor.Compute] struct {
	layout
	source[C]
	plan   plan
	least  bool
	blocks int // of a row
	best   []C
	at     []int64

	// Of rows that are looked at rowsPerPass, column by column: the distance between them
	// and their numbers, and what they give for each worker.
	off   [rowsPerPass]int
	tag   [rowsPerPass]int32
	found []C
	from  []int32
}

// rowsPerPass is how many rows are looked at rowsPerPass, and rowSegment how many cells of one.
const rowsPerPass, rowSegment = 64, 512

// find leaves the extremes and their places among the reduced elements in best and
// at, in the order of the layout.
func (f *argReducer[C]) find(c *kernels.Ctx, l layout, from source[C]) {
	f.layout, f.source = l, from
	f.best, f.at = kernels.Scratch[C](c, l.results()), kernels.Scratch[int64](c, l.results())
	f.blocks = (f.inner + block - 1) / block
	if f.inner > 1 {
		f.found, f.from = kernels.Scratch[C](c, c.Threads()*block), kernels.Scratch[int32](c, c.Threads()*block)
		for i := range f.off {
			f.off[i], f.tag[i] = i*f.inner, int32(i)
		}
	}
	c.Parallel(f.outer*f.blocks, cpu.Grain(f.n*min(f.inner, block), 1200), f)
	f.source, f.found, f.from = source[C]{}, nil, nil
}

// Range looks at blocks lo to hi.
func (f *argReducer[C]) Range(worker, lo, hi int) {
	for i := lo; i < hi; i++ {
		if f.inner == 1 {
			f.findRow(worker, i)
		} else {
			f.findCols(worker, i/f.blocks, i%f.blocks*block)
		}
	}
}

// findRow finds the rowSegment of the row that has the extreme, then its place there.
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

// extreme is that of x, or NaN.
func (f *argReducer[C]) extreme(x []C) C {
	wide, ok := any(x).([]float32)
	switch {
	case ok && f.least:
		return C(simd.Min(wide))
	case ok:
		return C(simd.Max(wide))
	case f.least:
		return minRow(x[0], x, 0)
	}
	return maxRow(x[0], x, 0)
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

// findColsScalar is findCols without vectors, for the columns from cell from on.
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

// rowsAt is how many of the rows left, of which n cells each are wanted, are looked at
// rowsPerPass.
func (f *argReducer[C]) rowsAt(n, left int) int {
	rows := min(rowsPerPass, left)
	if f.load != nil {
		rows = min(rows, max(1, (block-n)/f.inner+1))
	}
	return rows
}

// firstNaN is the first row that has a NaN in the column that x starts with.
func (f *argReducer[C]) firstNaN(x []C) int32 {
	for r := range int32(rowsPerPass) {
		if v := x[f.off[r]]; v != v {
			return r
		}
	}
	return 0
}

// search is one call that looks for extremes along the dimensions in the set. value
// and index are the indices of the outs, value -1 where only the place is wanted.
type search struct {
	a            kernels.Args
	dims         uint32
	flat         bool // places count in row-major order through all elements
	keepdim      bool
	least        bool
	value, index int
}

func (k search) run(c *kernels.Ctx) error {
	if err := chooses(k.a, k.dims); err != nil {
		return err
	}
	if err := kernels.WantDType(k.index, k.a.Tensor(k.index), tensor.Int64); err != nil {
		return err
	}
	if err := resize(k.a, k.index, k.dims, k.keepdim); err != nil {
		return err
	}
	d := k.a.Tensor(0).DType
	if k.value >= 0 {
		if err := kernels.WantDType(k.value, k.a.Tensor(k.value), d); err != nil {
			return err
		}
		if err := resize(k.a, k.value, k.dims, k.keepdim); err != nil {
			return err
		}
	}
	compute, _ := tensor.ComputeType(d)
	if d.Size() <= 2 {
		compute = tensor.Float32 // which holds small integers exactly
	}
	operand.ByType(compute, find[float32], find[float64], find[int64])(c, k, d)
	return nil
}

func find[C tensor.Compute](c *kernels.Ctx, k search, d tensor.DType) {
	f := kernels.Keep[argReducer[C]](c)
	self := k.a.Tensor(0)
	var data []byte
	if k.flat {
		data = operand.Rows(c, self)
		f.plan.layout, f.plan.count = layout{1, self.Numel(), 1}, 0
	} else {
		data = f.plan.set(c, self, k.dims)
	}
	f.least = k.least
	f.find(c, f.plan.layout, sourceOf[C](c, data, d, f.plan.layout))
	f.plan.write(c, k.a.Tensor(k.index), self, k.dims, tensor.BytesOf(f.at))
	if k.value >= 0 {
		f.plan.write(c, k.a.Tensor(k.value), self, k.dims, operand.Bytes(c, d, f.best))
	}
	f.best, f.at = nil, nil
}

// extremeDim is aten::max.dim or aten::min.dim.
func extremeDim(least bool) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		dims, err := oneDim(a, 1, a.Tensor(0))
		if err != nil {
			return err
		}
		k := search{a: a, dims: dims, keepdim: a.Bool(2), least: least, value: 3, index: 4}
		return k.run(c)
	}
}

// argExtreme is aten::argmax or aten::argmin: along a dimension, or through all
// elements.
func argExtreme(least bool) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		k := search{a: a, keepdim: a.Bool(2), least: least, value: -1, index: 3}
		if k.flat = a.IsNone(1); k.flat {
			k.dims = all(a.Tensor(0))
			return k.run(c)
		}
		var err error
		if k.dims, err = oneDim(a, 1, a.Tensor(0)); err != nil {
			return err
		}
		return k.run(c)
	}
}
