package reduce

import (
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// variance is a call of aten::var or aten::var_mean over the listed dimensions.
type variance struct {
	a          kernels.Args
	correction float64 // taken off the number of elements
	keepdim    bool
	out, mean  int // indices of the outs; mean is -1 where it is not wanted
}

// run computes in float64, in two passes: the means, then the squared distances from
// them.
func (v *variance) run(c *kernels.Ctx) error {
	self := v.a.Tensor(0)
	dims, err := dimSet(v.a, 1, self)
	if err != nil {
		return err
	}
	if !self.DType.IsFloat() {
		return kernels.Bad(0, self.DType.String(), "a floating type")
	}
	for _, o := range [...]int{v.out, v.mean} {
		if o < 0 {
			continue
		}
		if d := v.a.Tensor(o).DType; !d.IsFloat() {
			return kernels.Bad(o, d.String(), "a floating type")
		}
		if err := resize(v.a, o, dims, v.keepdim); err != nil {
			return err
		}
	}
	s := kernels.Keep[state[float64]](c)
	data := s.plan.set(c, self, dims)
	n, from := float64(s.plan.n), newSource(c, data, self.DType.Size(), loader[float64](self.DType))
	sums, squares := &sum64, &squares
	if self.DType == tensor.Float32 {
		sums, squares = &wide, &wideSquares
	}
	means := s.stage.results(c, sums, s.plan.layout, from)
	for i := range means {
		means[i] /= n
	}
	s.stage.shift = means
	spread := s.stage.results(c, squares, s.plan.layout, from)
	for i := range spread {
		spread[i] /= max(n-v.correction, 0)
	}
	v.write(c, s, v.out, dims, spread)
	if v.mean >= 0 {
		v.write(c, s, v.mean, dims, means)
	}
	return nil
}

func (v *variance) write(c *kernels.Ctx, s *state[float64], o int, dims uint32, results []float64) {
	out := v.a.Tensor(o)
	s.plan.write(c, out, v.a.Tensor(0), dims, operand.Bytes(c, out.DType, results))
}

// varUnbiased is aten::var.dim.
func varUnbiased(c *kernels.Ctx, a kernels.Args) error {
	v := variance{a: a, keepdim: a.Bool(3), out: 4, mean: -1}
	if a.Bool(2) {
		v.correction = 1
	}
	return v.run(c)
}

// varCorrection is aten::var.correction.
func varCorrection(c *kernels.Ctx, a kernels.Args) error {
	v := variance{a: a, correction: correction(a), keepdim: a.Bool(3), out: 4, mean: -1}
	return v.run(c)
}

// varMean is aten::var_mean.correction.
func varMean(c *kernels.Ctx, a kernels.Args) error {
	v := variance{a: a, correction: correction(a), keepdim: a.Bool(3), out: 4, mean: 5}
	return v.run(c)
}

// correction is argument 2, 1 for None.
func correction(a kernels.Args) float64 {
	if a.IsNone(2) {
		return 1
	}
	return a.Scalar(2).Float()
}

// scanner sums up along n rows of inner cells: each result is the sum of all cells
// before it and of its own.
type scanner[C tensor.Compute] struct {
	plan   plan
	blocks int // of a row
	layout
	source[C]
	dst   []byte
	elem  int // of dst
	store func(dst []byte, src []C)
	sums  []C // block cells for each worker
	// direct, if not nil, is for types that need no conversion of their own.
	direct *directScan[C]
}

// cumsum is aten::cumsum, computed in float64 or int64.
func cumsum(c *kernels.Ctx, a kernels.Args) error {
	self, out := a.Tensor(0), a.Tensor(3)
	d, err := kernels.WrapDim(1, a.Int(1), self.Rank())
	if err != nil {
		return err
	}
	if err := sameDType(a, 2, 3); err != nil {
		return err
	}
	_, known := tensor.ComputeType(self.DType)
	if _, ok := tensor.ComputeType(out.DType); !ok || !known {
		return kernels.Bad(0, self.DType.String()+" into "+out.DType.String(), "types that operators compute on")
	}
	if err := kernels.ResizeOut(a, 3, self.Sizes); err != nil {
		return err
	}
	switch {
	case out.Numel() == 0:
	case out.DType.IsFloat():
		scan[float64](c, self, out, d)
	default:
		scan[int64](c, self, out, d)
	}
	return nil
}

func scan[C tensor.Compute](c *kernels.Ctx, self, out *tensor.Tensor, d int) {
	if self.Numel() == 0 { // its other sizes may be anything
		return
	}
	s := kernels.Keep[scanner[C]](c)
	s.layout = layout{1, 1, 1}
	for i, n := range self.Sizes {
		switch {
		case i < d:
			s.outer *= n
		case i == d:
			s.n = n
		default:
			s.inner *= n
		}
	}
	s.source = newSource(c, operand.Rows(c, self), self.DType.Size(), tensor.Loader[C](self.DType))
	s.dst, s.elem, s.store = operand.OutRows(c, out), out.DType.Size(), tensor.Storer[C](out.DType)
	s.direct = directScanOf[C](self.DType, out.DType)
	s.sums = kernels.Scratch[C](c, block*c.Threads())
	s.blocks = (s.inner + block - 1) / block
	c.Parallel(s.outer*s.blocks, cpu.Grain(s.n*min(s.inner, block), 1200), s)
	operand.StoreRows(c, out, s.dst)
	s.source, s.dst, s.sums = source[C]{}, nil, nil
}

// Range scans blocks lo to hi.
func (s *scanner[C]) Range(worker, lo, hi int) {
	for i := lo; i < hi; i++ {
		if s.inner == 1 {
			s.scanRow(worker, i)
		} else {
			s.scanCols(worker, i/s.blocks, i%s.blocks*block)
		}
	}
}

func (s *scanner[C]) scanRow(worker, o int) {
	var sum C
	if s.direct != nil {
		s.direct.row(s.dst, s.data, o*s.n, s.n)
		return
	}
	for i := 0; i < s.n; {
		x := s.cells(worker, o*s.n+i, s.n-i)
		for j := range x {
			sum += x[j]
			x[j] = sum
		}
		s.store(s.dst[(o*s.n+i)*s.elem:], x)
		i += len(x)
	}
}

func (s *scanner[C]) scanCols(worker, o, from int) {
	n := min(block, s.inner-from)
	sums := s.sums[worker*block:][:n]
	clear(sums)
	for r := range s.n {
		at := (o*s.n+r)*s.inner + from
		if s.direct != nil {
			s.direct.cols(s.dst, s.data, at, sums)
			continue
		}
		addCols(sums, s.cells(worker, at, n), nil)
		s.store(s.dst[at*s.elem:], sums)
	}
}
