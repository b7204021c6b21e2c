package move

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
)

// Element types, as documented.
const (
	anyType  = "any, the same in and out"
	castType = "any, inputs cast to the out's type"
	intType  = "int32, int64"
)

// Ops is the table of the data movement operators.
func Ops() []kernels.Op { return ops }

var ops = append(planAll(copies), kernels.Op{
	Schema: "aten::repeat_interleave.Tensor_out(Tensor repeats, *, SymInt? output_size=None, Tensor(a!) out)",
	Func:   repeatInterleave, DTypes: intType,
})

func planAll(table []kernels.Op) []kernels.Op {
	for i := range table {
		table[i].Func = planned(table[i].Func)
	}
	return table
}

var copies = []kernels.Op{
	{Schema: "aten::view_copy.out(Tensor self, SymInt[] size, *, Tensor(a!) out)",
		Func: viewCopy, Class: opclass.View, Moves: true, Flow: opclass.Reshaped, DTypes: anyType},
	{Schema: "aten::_reshape_alias_copy.out(Tensor self, SymInt[] size, SymInt[] stride, *, Tensor(a!) out)", Func: viewCopy,
		Moves: true, DTypes: anyType, Note: "stride is ignored"},
	{Schema: "aten::view_copy.dtype_out(Tensor self, ScalarType dtype, *, Tensor(a!) out)", Func: viewBytes, DTypes: "any"},
	{Schema: "aten::squeeze_copy.out(Tensor self, *, Tensor(a!) out)",
		Func: copyOf(squeezeAll), Class: opclass.Squeeze, Moves: true, DTypes: anyType},
	{Schema: "aten::unsqueeze_copy.out(Tensor self, int dim, *, Tensor(a!) out)",
		Func: copyOf(unsqueeze), Class: opclass.Unsqueeze, Moves: true, Flow: opclass.Along, DTypes: anyType},
	{Schema: "aten::squeeze_copy.dim_out(Tensor self, int dim, *, Tensor(a!) out)",
		Func: copyOf(squeezeDim), Class: opclass.Squeeze, Moves: true, Flow: opclass.Along, DTypes: anyType},
	{Schema: "aten::squeeze_copy.dims_out(Tensor self, int[] dim, *, Tensor(a!) out)",
		Func: copyOf(squeezeDims), Class: opclass.Squeeze, Moves: true, Flow: opclass.Along, DTypes: anyType},
	{Schema: "aten::permute_copy.out(Tensor self, int[] dims, *, Tensor(a!) out)",
		Func: copyOf(permute), Class: opclass.Permute, Moves: true, Flow: opclass.Permuted, DTypes: anyType},
	{Schema: "aten::transpose_copy.int_out(Tensor self, int dim0, int dim1, *, Tensor(a!) out)",
		Func: copyOf(transpose), Class: opclass.Transpose, Moves: true, Flow: opclass.Permuted, DTypes: anyType},
	{Schema: "aten::t_copy.out(Tensor self, *, Tensor(a!) out)", Func: copyOf(transpose2D), Class: opclass.T, Moves: true, Flow: opclass.Permuted, DTypes: anyType},
	{Schema: "aten::expand_copy.out(Tensor self, SymInt[] size, *, bool implicit=False, Tensor(a!) out)",
		Func: copyOf(expand), Class: opclass.Expand, Moves: true, Flow: opclass.Spread, DTypes: anyType},
	{Schema: "aten::repeat.out(Tensor self, SymInt[] repeats, *, Tensor(a!) out)", Func: repeat, Moves: true, Flow: opclass.Spread, DTypes: anyType},

	{Schema: "aten::slice_copy.Tensor_out(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1, *, Tensor(a!) out)",
		Func: copyOf(slice(1)), Class: opclass.Slice, Moves: true, Flow: opclass.Along, Indexes: []kernels.Index{{Tensor: 0, At: 2, Dim: 1}, {Tensor: 0, At: 3, Dim: 1}}, DTypes: anyType},
	{Schema: "aten::narrow_copy.out(Tensor self, int dim, SymInt start, SymInt length, *, Tensor(a!) out)",
		Func: copyOf(narrow), Class: opclass.Narrow, Moves: true, Flow: opclass.Along, Indexes: []kernels.Index{{Tensor: 0, At: 2, Dim: 1}}, DTypes: anyType},
	{Schema: "aten::select_copy.int_out(Tensor self, int dim, SymInt index, *, Tensor(a!) out)",
		Func: copyOf(selectIndex(1)), Class: opclass.Select, Moves: true, Flow: opclass.Along, Indexes: []kernels.Index{{Tensor: 0, At: 2, Dim: 1}}, DTypes: anyType},
	{Schema: "aten::slice_scatter.out(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1, *, Tensor(a!) out)",
		Func: scatter(slice(2)), Moves: true, Indexes: []kernels.Index{{Tensor: 0, At: 3, Dim: 2}, {Tensor: 0, At: 4, Dim: 2}}, DTypes: castType},
	{Schema: "aten::select_scatter.out(Tensor self, Tensor src, int dim, SymInt index, *, Tensor(a!) out)",
		Func: scatter(selectIndex(2)), Moves: true, Indexes: []kernels.Index{{Tensor: 0, At: 3, Dim: 2}}, DTypes: castType},
	{Schema: "aten::as_strided_copy.out(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None, *, Tensor(a!) out)",
		Func: copyOf(asStrided), Moves: true, DTypes: anyType},
	{Schema: "aten::diagonal_copy.out(Tensor self, int offset=0, int dim1=0, int dim2=1, *, Tensor(a!) out)",
		Func: copyOf(diagonal), Moves: true, DTypes: anyType},
	{Schema: "aten::unfold_copy.out(Tensor self, int dimension, int size, int step, *, Tensor(a!) out)",
		Func: copyOf(unfold), Moves: true, DTypes: anyType},

	{Schema: "aten::cat.out(Tensor[] tensors, int dim=0, *, Tensor(a!) out)", Func: cat, Class: opclass.Cat, Moves: true, Flow: opclass.Joined, DTypes: castType},
	{Schema: "aten::stack.out(Tensor[] tensors, int dim=0, *, Tensor(a!) out)", Func: stack, Moves: true, Flow: opclass.Joined, DTypes: castType},
	{Schema: "aten::split_copy.Tensor_out(Tensor self, SymInt split_size, int dim=0, *, Tensor(a!)[] out)",
		Func: splitSize, Class: opclass.Split, Moves: true, Flow: opclass.Along, DTypes: anyType},
	{Schema: "aten::split_with_sizes_copy.out(Tensor self, SymInt[] split_sizes, int dim=0, *, Tensor(a!)[] out)",
		Func: splitSizes, Class: opclass.SplitWithSizes, Moves: true, Flow: opclass.Along, DTypes: anyType},
	{Schema: "aten::unbind_copy.int_out(Tensor self, int dim=0, *, Tensor(a!)[] out)",
		Func: unbind, Class: opclass.Unbind, Moves: true, Flow: opclass.Along, DTypes: anyType},

	{Schema: "aten::flip.out(Tensor self, int[] dims, *, Tensor(a!) out)", Func: copyOf(flip), Moves: true, Flow: opclass.Along, DTypes: anyType},
	{Schema: "aten::roll.out(Tensor self, SymInt[1] shifts, int[1] dims=[], *, Tensor(a!) out)", Func: roll, Moves: true, Flow: opclass.Along, DTypes: anyType},
	{Schema: "aten::pixel_shuffle.out(Tensor self, int upscale_factor, *, Tensor(a!) out)",
		Func: pixelShuffle(false), Moves: true, Flow: opclass.Inner3, DTypes: anyType},
	{Schema: "aten::pixel_unshuffle.out(Tensor self, int downscale_factor, *, Tensor(a!) out)",
		Func: pixelShuffle(true), Moves: true, Flow: opclass.Inner3, DTypes: anyType},
	{Schema: "aten::constant_pad_nd.out(Tensor self, SymInt[] pad, Scalar value=0, *, Tensor(a!) out)",
		Func: constantPad, Class: opclass.ConstantPad, Moves: true, Flow: opclass.Padded, DTypes: anyType},
	{Schema: "aten::reflection_pad1d.out(Tensor self, SymInt[2] padding, *, Tensor(a!) out)",
		Func: reflectionPad(1), Moves: true, Flow: opclass.Inner1, DTypes: anyType},
	{Schema: "aten::reflection_pad2d.out(Tensor self, SymInt[4] padding, *, Tensor(a!) out)",
		Func: reflectionPad(2), Moves: true, Flow: opclass.Inner2, DTypes: anyType},
	{Schema: "aten::reflection_pad3d.out(Tensor self, SymInt[6] padding, *, Tensor(a!) out)",
		Func: reflectionPad(3), Moves: true, Flow: opclass.Inner3, DTypes: anyType},
	{Schema: "aten::replication_pad1d.out(Tensor self, SymInt[2] padding, *, Tensor(a!) out)",
		Func: replicationPad(1), Moves: true, Flow: opclass.Inner1, DTypes: anyType},
	{Schema: "aten::replication_pad2d.out(Tensor self, SymInt[4] padding, *, Tensor(a!) out)",
		Func: replicationPad(2), Moves: true, Flow: opclass.Inner2, DTypes: anyType},
	{Schema: "aten::replication_pad3d.out(Tensor self, SymInt[6] padding, *, Tensor(a!) out)",
		Func: replicationPad(3), Moves: true, Flow: opclass.Inner3, DTypes: anyType},
	{Schema: "aten::tril.out(Tensor self, SymInt diagonal=0, *, Tensor(a!) out)", Func: tril, Moves: true, Flow: opclass.Inner2, DTypes: anyType},
	{Schema: "aten::triu.out(Tensor self, SymInt diagonal=0, *, Tensor(a!) out)", Func: triu, Moves: true, Flow: opclass.Inner2, DTypes: anyType},
}
