package reduce

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// finder looks for the extremes of a layout: the first of equal ones, a NaN before
// anything else.
type finder[C tensor.Compute] struct {
	layout
	source[C]
	plan   plan
	least  bool
	blocks int // of a row
	best   []C
	at     []int64
}

// find leaves the extremes and their places among the reduced elements in best and
// at, in the order of the layout.
func (f *finder[C]) find(c *kernels.Ctx, l layout, from source[C]) {
	f.layout, f.source = l, from
	f.best, f.at = kernels.Scratch[C](c, l.results()), kernels.Scratch[int64](c, l.results())
	f.blocks = (f.inner + block - 1) / block
	c.Parallel(f.outer*f.blocks, 1<<14/max(f.n*min(f.inner, block), 1), f)
	f.source = source[C]{}
}

// Range looks at blocks lo to hi.
func (f *finder[C]) Range(worker, lo, hi int) {
	for i := lo; i < hi; i++ {
		if f.inner == 1 {
			f.findRow(worker, i)
		} else {
			f.findCols(worker, i/f.blocks, i%f.blocks*block)
		}
	}
}

func (f *finder[C]) findRow(worker, o int) {
	best, at := f.cells(worker, o*f.n, 1)[0], 0
	for i := 0; i < f.n; {
		x := f.cells(worker, o*f.n+i, f.n-i)
		if f.least {
			best, at = bestOf(x, best, at, i, func(a, b C) bool { return a < b || a != a && b == b })
		} else {
			best, at = bestOf(x, best, at, i, func(a, b C) bool { return a > b || a != a && b == b })
		}
		i += len(x)
	}
	f.best[o], f.at[o] = best, int64(at)
}

// bestOf is the first element of x, which starts at place base, that beats best and
// everything before it, or best.
func bestOf[C tensor.Compute](x []C, best C, at, base int, beats func(a, b C) bool) (C, int) {
	for i, v := range x {
		if beats(v, best) {
			best, at = v, base+i
		}
	}
	return best, at
}

func (f *finder[C]) findCols(worker, o, from int) {
	n := min(block, f.inner-from)
	best, at := f.best[o*f.inner+from:][:n], f.at[o*f.inner+from:][:n]
	copy(best, f.cells(worker, o*f.n*f.inner+from, n))
	clear(at)
	for r := 1; r < f.n; r++ {
		x := f.cells(worker, (o*f.n+r)*f.inner+from, n)
		if f.least {
			bestCols(best, at, x, int64(r), func(a, b C) bool { return a < b || a != a && b == b })
		} else {
			bestCols(best, at, x, int64(r), func(a, b C) bool { return a > b || a != a && b == b })
		}
	}
}

func bestCols[C tensor.Compute](best []C, at []int64, x []C, r int64, beats func(a, b C) bool) {
	at, x = at[:len(best)], x[:len(best)]
	for i, v := range x {
		if beats(v, best[i]) {
			best[i], at[i] = v, r
		}
	}
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

func (k *search) run(c *kernels.Ctx) error {
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
	switch compute, _ := tensor.ComputeType(d); compute {
	case tensor.Float32:
		find[float32](c, k, d)
	case tensor.Float64:
		find[float64](c, k, d)
	default:
		find[int64](c, k, d)
	}
	return nil
}

func find[C tensor.Compute](c *kernels.Ctx, k *search, d tensor.DType) {
	f := kernels.Keep[finder[C]](c)
	self := k.a.Tensor(0)
	var data []byte
	if k.flat {
		data = f.plan.run.Rows(c, self)
		f.plan.layout, f.plan.count = layout{1, self.Numel(), 1}, 0
	} else {
		data = f.plan.set(c, self, k.dims)
	}
	f.least = k.least
	f.find(c, f.plan.layout, newSource(c, data, d.Size(), loader[C](d)))
	f.plan.write(c, k.a.Tensor(k.index), self, k.dims, tensor.BytesOf(f.at))
	if k.value >= 0 {
		f.plan.write(c, k.a.Tensor(k.value), self, k.dims, narrow(c, d, f.best))
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
