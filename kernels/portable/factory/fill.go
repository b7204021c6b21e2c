package factory

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/strided"
	"github.com/etrun-go/etrun/kernels/tensor"
)

var fillOps = []kernels.Op{
	{Schema: "aten::full.out(SymInt[] size, Scalar fill_value, *, Tensor(a!) out)", Func: filled(1), Flow: opclass.Filled, DTypes: all},
	{Schema: "aten::full_like.out(Tensor self, Scalar fill_value, *, MemoryFormat? memory_format=None, Tensor(a!) out)",
		Func: filled(1), Class: opclass.FullLike, Flow: opclass.Elements, DTypes: all},
	{Schema: "aten::fill.Scalar_out(Tensor self, Scalar value, *, Tensor(a!) out)", Func: filled(1), Flow: opclass.Elements, DTypes: all},
	{Schema: "aten::fill.Tensor_out(Tensor self, Tensor value, *, Tensor(a!) out)", Func: fillTensor, Moves: true, Flow: opclass.Elements, DTypes: all},
	{Schema: "aten::scalar_tensor.out(Scalar s, *, Tensor(a!) out)", Func: filled(0), DTypes: all},
	{Schema: "aten::ones.out(SymInt[] size, *, Tensor(a!) out)", Func: ones, Flow: opclass.Filled, DTypes: all},
	{Schema: "aten::zeros.out(SymInt[] size, *, Tensor(a!) out)", Func: zeros, Flow: opclass.Filled, DTypes: anyType},
	{Schema: "aten::empty.out(SymInt[] size, *, MemoryFormat? memory_format=None, Tensor(a!) out)", Func: zeros, DTypes: anyType, Note: emptyNote},
	{Schema: "dim_order_ops::_empty_dim_order.out(int[] size, *, int[]? dim_order=None, Tensor(a!) out)", Func: zeros, DTypes: anyType, Note: emptyNote},
}

const emptyNote = "the elements are 0"

// filler is the state of an operator that fills its result with one element.
type filler struct {
	sizes   [tensor.MaxRank]int // buffer for the sizes of the result
	data    []byte
	element [16]byte // the first size bytes
	size    int
}

// Repeat fills the same memory again.
func (p *filler) Repeat(*kernels.Ctx) error {
	if p.element == [16]byte{} {
		clear(p.data)
	} else {
		copy(p.data, p.element[:p.size])
		strided.Repeat(p.data, p.size)
	}
	return nil
}

// resize resizes out argument o to the sizes in argument 0, a list or a tensor; a number has none.
func resize(c *kernels.Ctx, a kernels.Args, o int) (err error) {
	var sizes []int
	switch a[0].Kind {
	case tensor.KindTensor:
		sizes = a.Tensor(0).Sizes
	case tensor.KindIntList:
		f := kernels.Keep[filler](c)
		if sizes, err = kernels.Sizes(f.sizes[:], 0, a.Ints(0)); err != nil {
			return err
		}
	}
	return kernels.ResizeOut(a, o, sizes)
}

// filled returns the operator whose result has the sizes in argument 0 and is filled with the number in argument i.
func filled(i int) kernels.Func {
	return func(c *kernels.Ctx, a kernels.Args) error {
		o := len(a) - 2
		if err := resize(c, a, o); err != nil {
			return err
		}
		return setAll(c, a, o, i, a.Scalar(i))
	}
}

func ones(c *kernels.Ctx, a kernels.Args) error {
	if err := resize(c, a, 1); err != nil {
		return err
	}
	return setAll(c, a, 1, 1, kernels.Scalar{Type: tensor.Int64, I: 1})
}

func zeros(c *kernels.Ctx, a kernels.Args) error {
	out := len(a) - 2
	if err := resize(c, a, out); err != nil {
		return err
	}
	p := kernels.Keep[filler](c)
	p.data, p.element = a.Tensor(out).Data, [16]byte{}
	c.Repeat(p)
	return p.Repeat(c)
}

func fillTensor(c *kernels.Ctx, a kernels.Args) error {
	value, out := a.Tensor(1), a.Tensor(2)
	if value.Numel() != 1 {
		return kernels.Badf(1, "one element", "%v", value)
	}
	if err := resize(c, a, 2); err != nil || len(out.Data) == 0 {
		return err
	}
	size := out.DType.Size()
	if !tensor.CastBytes(out.Data[:size], out.DType, value.Data, value.DType, 1) {
		return kernels.Badf(1, "a type that converts to "+out.DType.String(), "%v", value.DType)
	}
	strided.Repeat(out.Data, size)
	return nil
}

// setAll fills out argument o with the number s, argument i.
func setAll(c *kernels.Ctx, a kernels.Args, o, i int, s kernels.Scalar) error {
	p, out := kernels.Keep[filler](c), a.Tensor(o)
	if err := kernels.CheckFits(i, s, out.DType); err != nil {
		return err
	}
	if len(out.Data) == 0 {
		return nil
	}
	p.data, p.element, p.size = out.Data, [16]byte{}, out.DType.Size()
	if !s.Put(p.element[:p.size], out.DType) {
		return kernels.Bad(o, out.DType.String(), "a type that numbers convert to")
	}
	c.Repeat(p)
	return p.Repeat(c)
}
