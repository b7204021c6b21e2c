package reduce

import (
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable/loops"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// variance is aten::var over dimensions, with or without correction, and aten::var_mean: the second out is the mean. It
// computes in float64, in two passes: the means, then the squared distances from them.
func variance(c *kernels.Ctx, a kernels.Args) error {
	const out = 4 // the first one
	self := a.Tensor(0)
	d, err := readDims(a, out)
	if err != nil {
		return err
	}
	d.keepdim = a.Bool(3)
	s, from, err := d.inFloat64(c, a, out)
	if err != nil {
		return err
	}
	n := float64(s.plan.n)
	sums, squares := &sum64, &squares
	if self.DType == tensor.Float32 {
		sums, squares = &sumOf32, &squaresOf32
	}
	means := s.stage.results(c, sums, s.plan.layout, from)
	for i := range means {
		means[i] /= n
	}
	s.stage.shift = means
	variances, correction := s.stage.results(c, squares, s.plan.layout, from), 1.0
	if !a.IsNone(2) { // a number, or whether it is 1
		correction = a.Scalar(2).Float()
	}
	for i := range variances {
		variances[i] /= max(n-correction, 0)
	}
	for i, results := range [][]float64{variances, means}[:len(a)-1-out] {
		t := a.Tensor(out + i)
		s.plan.write(c, t, self, d.set, operand.Bytes(c, t.DType, results))
	}
	return nil
}

// inFloat64 checks the types of a call of floats that is computed in float64, whose first out is argument o, resizes the
// outs and arranges argument 0.
func (k *dims) inFloat64(c *kernels.Ctx, a kernels.Args, o int) (*state[float64], source[float64], error) {
	var from source[float64]
	self := a.Tensor(0)
	if !self.DType.IsFloat() {
		return nil, from, kernels.Bad(0, self.DType.String(), "a floating type")
	}
	for i := o; i < len(a)-1; i++ {
		if t := a.Tensor(i); !t.DType.IsFloat() {
			return nil, from, kernels.Bad(i, t.DType.String(), "a floating type")
		}
		if err := k.resize(a, i); err != nil {
			return nil, from, err
		}
	}
	s := kernels.Keep[state[float64]](c)
	data := s.plan.set(c, self, k.set)
	return s, newSource(c, data, self.DType.Size(), loader[float64](self.DType)), nil
}

// scanner computes running sums along n rows of inner cells.
type scanner[C tensor.Compute] struct {
	c      *kernels.Ctx
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
	d, err := scanDim(a)
	if err != nil {
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

// scanDim checks (Tensor self, int dim, ScalarType? dtype, out), resizes the out, and returns the dimension.
func scanDim(a kernels.Args) (int, error) {
	self, out := a.Tensor(0), a.Tensor(3)
	d, err := kernels.WrapDim(1, a.Int(1), self.Rank())
	if err != nil {
		return 0, err
	}
	if d := a.OptInt(2, int64(out.DType)); d != int64(out.DType) {
		return 0, kernels.Badf(2, "the out's type, "+out.DType.String(), "%v", tensor.DType(d))
	}
	_, known := tensor.ComputeType(self.DType)
	if _, ok := tensor.ComputeType(out.DType); !ok || !known {
		return 0, kernels.Bad(0, self.DType.String()+" into "+out.DType.String(), "types that operators compute on")
	}
	return d, kernels.ResizeOut(a, 3, self.Sizes)
}

func scan[C tensor.Compute](c *kernels.Ctx, self, out *tensor.Tensor, d int) {
	if self.Numel() == 0 { // its other sizes may be anything
		return
	}
	s := kernels.Keep[scanner[C]](c)
	s.c, s.layout = c, layoutAlong(self, d)
	s.source = newSource(c, operand.Rows(c, self), self.DType.Size(), tensor.Loader[C](self.DType))
	s.dst, s.elem, s.store = operand.OutRows(c, out), out.DType.Size(), tensor.Storer[C](out.DType)
	s.direct = directScanOf[C](self.DType, out.DType)
	s.sums = kernels.Scratch[C](c, block*c.Threads())
	s.blocks = (s.inner + block - 1) / block
	c.Parallel(s.outer*s.blocks, cpu.Grain(s.n*min(s.inner, block), 1200), s)
	operand.StoreRows(c, out, s.dst)
	s.source, s.dst, s.sums = source[C]{}, nil, nil
}

// layoutAlong is the layout of a contiguous tensor for dimension d.
func layoutAlong(t *tensor.Tensor, d int) layout {
	l := layout{1, 1, 1}
	for i, n := range t.Sizes {
		switch {
		case i < d:
			l.outer *= n
		case i == d:
			l.n = n
		default:
			l.inner *= n
		}
	}
	return l
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
		s.c.Poll()
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
	poll := s.c.Poller()
	for r := range s.n {
		poll.Done(n)
		at := (o*s.n+r)*s.inner + from
		if s.direct != nil {
			s.direct.cols(s.dst, s.data, at, sums)
			continue
		}
		loops.Add(sums, sums, s.cells(worker, at, n))
		s.store(s.dst[at*s.elem:], sums)
	}
}
