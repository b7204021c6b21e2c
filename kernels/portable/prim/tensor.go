package prim

import (
	"math"
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/portable/operand"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var tensorOps = []kernels.Op{
	{Schema: "aten::sym_size.int(Tensor self, int dim) -> SymInt", Func: symSize, DTypes: "any"},
	{Schema: "aten::sym_numel(Tensor self) -> SymInt", Func: symNumel, DTypes: "any"},
	{Schema: "aten::sym_stride.int(Tensor self, int dim) -> SymInt", Func: symStride, DTypes: "any"},
	{Schema: "aten::sym_storage_offset(Tensor self) -> SymInt", Func: symStorageOffset, DTypes: "any",
		Note: "0: no tensor shares memory from an offset on"},
	{Schema: "aten::_local_scalar_dense(Tensor self) -> Scalar", Func: item, Numbers: opclass.Kept, DTypes: "uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 bool"},
	{Schema: "executorch_prim::et_copy_index.tensor(Tensor(a!) copy_to, Tensor copy_from, int index) -> ()", Func: copyIndex, DTypes: "any"},
	{Schema: "executorch_prim::et_view.default(Tensor(a) self, int[] size) -> Tensor(a)",
		Func: operand.SameType(view, 0, 2), Moves: true, Flow: opclass.Reshaped, DTypes: "any"},
}

func symSize(_ *kernels.Ctx, a kernels.Args) error { return symDim(a, a.Tensor(0).Sizes) }

func symStride(_ *kernels.Ctx, a kernels.Args) error { return symDim(a, a.Tensor(0).Strides) }

// symDim returns the entry of list for the dimension in argument 1.
func symDim(a kernels.Args, list []int) error {
	self := a.Tensor(0)
	if self.Rank() == 0 {
		return kernels.Badf(0, "a tensor with dimensions", "%v", self)
	}
	d, err := kernels.WrapDim(1, a.Int(1), self.Rank())
	if err != nil {
		return err
	}
	setInt(a, int64(list[d]))
	return nil
}

func symStorageOffset(_ *kernels.Ctx, a kernels.Args) error {
	setInt(a, 0)
	return nil
}

func symNumel(_ *kernels.Ctx, a kernels.Args) error {
	setInt(a, int64(a.Tensor(0).Numel()))
	return nil
}

// item returns the first element as a number of its kind.
func item(_ *kernels.Ctx, a kernels.Args) error {
	self := a.Tensor(0)
	if len(self.Data) == 0 {
		return kernels.Badf(0, "an element", "%v", self)
	}
	if self.DType.IsFloat() {
		v, _ := tensor.Get[float64](self.Data, self.DType)
		setDouble(a, v)
		return nil
	}
	v, ok := tensor.Get[int64](self.Data, self.DType)
	switch {
	case !ok:
		return kernels.Bad(0, self.DType.String(), "a real number type")
	case self.DType == tensor.Bool:
		setBool(a, v != 0)
	default:
		setInt(a, v)
	}
	return nil
}

// place contains a buffer for sizes.
type place struct{ sizes [tensor.MaxRank]int }

// copyIndex stores copy_from as the row at index of copy_to, which then has index+1
// rows: a loop builds the result of a map so.
func copyIndex(c *kernels.Ctx, a kernels.Args) error {
	to, from, index := a.Tensor(0), a.Tensor(1), a.Int(2)
	if index < 0 || index >= math.MaxInt>>7 {
		return kernels.Badf(2, "an index", "%d", index)
	}
	if to.DType != from.DType || to.Rank() == 0 || !slices.Equal(to.Sizes[1:], from.Sizes) {
		return kernels.Badf(1, "a row of "+to.String(), "%v", from)
	}
	if !rowsOf(to, from) {
		return kernels.Badf(1, "the dim order of the rows of argument 0", "dim order %v", from.DimOrder)
	}
	p := kernels.Keep[place](c)
	sizes := p.sizes[:copy(p.sizes[:], to.Sizes)]
	sizes[0] = int(index) + 1
	if err := kernels.ResizeOut(a, 0, sizes); err != nil {
		return err
	}
	if n := len(from.Data); n > 0 {
		copy(to.Data[int(index)*n:], from.Data)
	}
	return nil
}

// rowsOf reports whether from has the memory layout of a row of to.
func rowsOf(to, from *tensor.Tensor) bool {
	return to.DimOrder[0] == 0 && (slices.Equal(to.Strides[1:], from.Strides) || to.IsContiguous() && from.IsContiguous())
}

// view binds the result, with other sizes of which one may be inferred, to the bytes of self.
func view(c *kernels.Ctx, a kernels.Args) error {
	self, out := a.Tensor(0), a.Tensor(2)
	p := kernels.Keep[place](c)
	sizes, err := kernels.InferSizes(p.sizes[:], 1, a.Ints(1), self.Numel())
	if err != nil {
		return err
	}
	if err := out.BindSized(sizes, self.Data); err != nil {
		return &kernels.OutError{Arg: 2, Err: err}
	}
	if !slices.Equal(out.Sizes, self.Sizes) || !slices.Equal(out.Strides, self.Strides) {
		if !self.IsContiguous() || !out.IsContiguous() {
			return kernels.Badf(0, "contiguous tensors", "dim order %v seen as %v", self.DimOrder, out.DimOrder)
		}
	}
	c.Repeat(bound{})
	return nil
}

// bound repeats a view: there is nothing to do while both tensors stay as they are.
type bound struct{}

func (bound) Repeat(*kernels.Ctx) error { return nil }
