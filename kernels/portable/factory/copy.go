package factory

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/portable/elementwise"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var copyOps = []kernels.Op{
	{Schema: "aten::copy.out(Tensor self, Tensor src, bool non_blocking=False, *, Tensor(a!) out)",
		Func: copyOut, Moves: true, Flow: opclass.Elements, DTypes: anyType},
	{Schema: "aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False)", Func: copyInPlace, DTypes: anyType},
	{Schema: "aten::clone.out(Tensor self, *, MemoryFormat? memory_format=None, Tensor(a!) out)",
		Func: same, Class: opclass.Copy, Moves: true, Flow: opclass.Elements, DTypes: anyType},
	{Schema: "aten::alias_copy.out(Tensor self, *, Tensor(a!) out)", Func: same, Class: opclass.Copy, Moves: true, Flow: opclass.Elements, DTypes: anyType},
	{Schema: "aten::detach_copy.out(Tensor self, *, Tensor(a!) out)", Func: same, Class: opclass.Copy, Moves: true, Flow: opclass.Elements, DTypes: anyType},
	{Schema: "aten::lift_fresh_copy.out(Tensor self, *, Tensor(a!) out)", Func: same, Class: opclass.Copy, Moves: true, Flow: opclass.Elements, DTypes: anyType},
	{Schema: "aten::_to_copy.out(Tensor self, *, bool non_blocking=False, MemoryFormat? memory_format=None, Tensor(a!) out)",
		Func: cast, Class: opclass.Copy, Moves: true, Flow: opclass.Elements, DTypes: anyType},
	{Schema: "dim_order_ops::_to_dim_order_copy.out(Tensor self, *, bool non_blocking=False, int[]? dim_order=None, Tensor(a!) out)",
		Func: cast, Class: opclass.Copy, Moves: true, Flow: opclass.Elements, DTypes: anyType},
	{Schema: "dim_order_ops::_clone_dim_order.out(Tensor self, *, bool non_blocking=False, int[]? dim_order=None, Tensor(a!) out)",
		Func: same, Class: opclass.Copy, Moves: true, Flow: opclass.Elements, DTypes: anyType},
	{Schema: "et_copy::_h2d_copy.out(Tensor self, *, Tensor(a!) out)",
		Func: same, Class: opclass.Copy, Moves: true, Flow: opclass.Elements, DTypes: anyType, Note: deviceNote},
	{Schema: "et_copy::_d2h_copy.out(Tensor self, *, Tensor(a!) out)",
		Func: same, Class: opclass.Copy, Moves: true, Flow: opclass.Elements, DTypes: anyType, Note: deviceNote},
	{Schema: "aten::view_as_real_copy.out(Tensor self, *, Tensor(a!) out)", Func: viewAsReal, Flow: opclass.Inner0, DTypes: "complex"},
	{Schema: "aten::view_as_complex_copy.out(Tensor self, *, Tensor(a!) out)", Func: viewAsComplex, Flow: opclass.Inner1, DTypes: "float16, float32, float64"},
}

const deviceNote = "all memory is the host's: a plain copy"

// copyOut resizes out to the sizes of self and copies the values of src.
func copyOut(c *kernels.Ctx, a kernels.Args) error {
	if err := kernels.ResizeOut(a, 3, a.Tensor(0).Sizes); err != nil {
		return err
	}
	return store(c, a, 3, 1)
}

// copyInPlace also accepts src as self: then it does nothing.
func copyInPlace(c *kernels.Ctx, a kernels.Args) error {
	if a.Tensor(0) == a.Tensor(1) {
		return nil
	}
	return store(c, a, 0, 1)
}

// same copies self to an out of its type, in out's dim order, which the exporter took from the
// argument that specifies it.
func same(c *kernels.Ctx, a kernels.Args) error {
	o := len(a) - 2
	if self, out := a.Tensor(0), a.Tensor(o); out.DType != self.DType {
		return kernels.Bad(o, out.DType.String(), self.DType.String()+" as self")
	}
	return cast(c, a)
}

// cast copies self to the type and dim order of out.
func cast(c *kernels.Ctx, a kernels.Args) error {
	o := len(a) - 2
	if err := kernels.ResizeOut(a, o, a.Tensor(0).Sizes); err != nil {
		return err
	}
	return store(c, a, o, 0)
}

// store copies argument s, broadcast, to all of argument o.
func store(c *kernels.Ctx, a kernels.Args, o, s int) error {
	dst, src := a.Tensor(o), a.Tensor(s)
	if dst.DType != src.DType {
		return elementwise.Convert(c, dst, o, src, s)
	}
	if !strided.BroadcastsTo(src.Sizes, dst.Sizes) {
		return kernels.Badf(s, "sizes that broadcast to the result's", "sizes %v", src.Sizes)
	}
	strided.CopyTensor(c, dst, src)
	return nil
}

// viewAsReal returns the two parts of each element along a new last dimension.
func viewAsReal(c *kernels.Ctx, a kernels.Args) error {
	self, out := a.Tensor(0), a.Tensor(1)
	r := self.Rank()
	if !self.DType.IsComplex() || r == tensor.MaxRank {
		return kernels.Badf(0, "a complex tensor of less than the highest rank", "%v", self)
	}
	if want := self.DType.Component(); out.DType != want {
		return kernels.Bad(1, out.DType.String(), want.String())
	}
	var src, dst strided.View
	src.Of(self)
	src.Elem = out.DType.Size()
	for i := range r {
		src.Strides[i] *= 2
	}
	src.Insert(r, 2, 1)
	if err := kernels.ResizeOut(a, 1, src.Shape()); err != nil {
		return err
	}
	dst.Of(out)
	strided.CopyView(c, &dst, &src)
	return nil
}

// viewAsComplex makes one element of the two parts along the last dimension.
func viewAsComplex(c *kernels.Ctx, a kernels.Args) error {
	self, out := a.Tensor(0), a.Tensor(1)
	r := self.Rank()
	if r == 0 || self.Sizes[r-1] != 2 {
		return kernels.Badf(0, "a last dimension of size 2", "%v", self)
	}
	if want := out.DType.Component(); !out.DType.IsComplex() || self.DType != want {
		return kernels.Badf(1, "a complex type of argument 0, "+self.DType.String(), "%v", out.DType)
	}
	if err := kernels.ResizeOut(a, 1, self.Sizes[:r-1]); err != nil {
		return err
	}
	var src, dst strided.View
	src.Of(self)
	dst.Of(out)
	dst.Elem = self.DType.Size()
	for i := range r - 1 {
		dst.Strides[i] *= 2
	}
	dst.Insert(r-1, 2, 1)
	strided.CopyView(c, &dst, &src)
	return nil
}
