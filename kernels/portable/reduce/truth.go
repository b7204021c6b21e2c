package reduce

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// reduceAny is aten::any and its overloads: whether any element along the dimensions is not zero. Unlike other
// reductions, any.dims reduces no dimension for an empty list.
func reduceAny(c *kernels.Ctx, a kernels.Args) error {
	o := len(a) - 2
	self, out := a.Tensor(0), a.Tensor(o)
	d, err := readDims(a, o)
	if err != nil {
		return err
	}
	if d.all && o > 1 && !a.IsNone(1) {
		d.set = 0
	}
	load := tensor.Truth(self.DType)
	if load == nil {
		return kernels.Bad(0, self.DType.String(), "a type that operators compute on")
	}
	if err := kernels.WantDType(o, out, tensor.Bool, tensor.Uint8); err != nil {
		return err
	}
	if err := d.resize(a, o); err != nil {
		return err
	}
	if self.DType.Size() == 1 {
		load = nil
	}
	s := kernels.Keep[truths](c)
	data := s.bytes.plan.set(c, self, d.set)
	results := s.words(c, data, self.DType)
	if results == nil {
		from := newSource(c, data, self.DType.Size(), load)
		results = s.bytes.stage.results(c, &or, s.bytes.plan.layout, from)
	}
	for i, v := range results {
		results[i] = min(v, 1)
	}
	s.bytes.plan.write(c, out, self, d.set, results)
	return nil
}

// truths is the state of an instruction.
type truths struct {
	bytes state[uint8]
	or    stage[int64]
}

// words reduces elements of type d as words of eight bytes, if rows are a multiple of that, else it returns nil: the
// bitwise or of all elements is zero if all are zero.
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
