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
	s := kernels.Keep[state[uint8]](c)
	data := s.plan.set(c, self, dims)
	results := s.stage.results(c, &or, s.plan.layout, newSource(c, data, self.DType.Size(), load))
	for i, v := range results {
		results[i] = min(v, 1)
	}
	s.plan.write(c, out, self, dims, results)
	return nil
}
