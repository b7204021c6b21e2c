package reduce

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// anyAll is aten::any of all elements.
func anyAll(c *kernels.Ctx, a kernels.Args) error { return reduceAny(c, a, 1, all(a.Tensor(0)), false) }

// anyDim is aten::any.dim.
func anyDim(c *kernels.Ctx, a kernels.Args) error {
	dims, err := oneDim(a, 1, a.Tensor(0))
	if err != nil {
		return err
	}
	return reduceAny(c, a, 3, dims, a.Bool(2))
}

// anyDims is aten::any.dims: over all dimensions for None, over none for an empty
// list.
func anyDims(c *kernels.Ctx, a kernels.Args) error {
	if !a.IsNone(1) && len(a.Ints(1)) == 0 {
		return reduceAny(c, a, 3, 0, a.Bool(2))
	}
	dims, err := dimSet(a, 1, a.Tensor(0))
	if err != nil {
		return err
	}
	return reduceAny(c, a, 3, dims, a.Bool(2))
}

// reduceAny writes to out argument o whether any element along the dimensions in the
// set is not zero.
func reduceAny(c *kernels.Ctx, a kernels.Args, o int, dims uint32, keepdim bool) error {
	self, out := a.Tensor(0), a.Tensor(o)
	load := tensor.Truth(self.DType)
	if load == nil {
		return kernels.Bad(0, self.DType.String(), "a type that operators compute on")
	}
	if err := kernels.WantDType(o, out, tensor.Bool, tensor.Uint8); err != nil {
		return err
	}
	if err := resize(a, o, dims, keepdim); err != nil {
		return err
	}
	if self.DType.Size() == 1 {
		load = nil
	}
	s := kernels.Keep[truths](c)
	data := s.bytes.plan.set(c, self, dims)
	results := s.words(c, data, self.DType)
	if results == nil {
		from := newSource(c, data, self.DType.Size(), load)
		results = s.bytes.stage.results(c, &or, s.bytes.plan.layout, from)
	}
	for i, v := range results {
		results[i] = min(v, 1)
	}
	s.bytes.plan.write(c, out, self, dims, results)
	return nil
}

// truths is what an instruction of this file keeps.
type truths struct {
	bytes state[uint8]
	or    stage[int64]
}

// words reduces elements of type d as words of eight bytes, nil where they do not
// divide up into such: the bits of all elements rowsPerPass are those of zero where all
// are zero.
func (s *truths) words(c *kernels.Ctx, data []byte, d tensor.DType) []byte {
	l, elem := s.bytes.plan.layout, d.Size()
	row := l.inner
	if row == 1 {
		row = l.n
	}
	if row*elem%8 != 0 || !tensor.Aligned(data, 8) || l.results() == 0 || l.n == 0 {
		return nil
	}
	if l.inner == 1 {
		l.n = l.n * elem / 8
	} else {
		l.inner = l.inner * elem / 8
	}
	found := tensor.BytesOf(s.or.results(c, &orWords, l, newSource[int64](c, data, 8, nil)))
	truth := kernels.Scratch[uint8](c, len(found)/elem)
	tensor.Truth(d)(truth, found)
	if l.inner > 1 || s.bytes.plan.inner > 1 {
		return truth
	}
	lanes := 8 / elem // of the word that each result has
	for i := range l.outer {
		truth[i] = orRow(0, truth[i*lanes:][:lanes], 0)
	}
	return truth[:l.outer]
}
