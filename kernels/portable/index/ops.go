package index

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/portable/operand"
)

// Element types, as documented.
const (
	anyType    = "any; integer indices"
	realType   = "integer, float, float16, bfloat16, bool; integer indices"
	numberType = "integer, float, float16, bfloat16; out int64 or int32"
	bagType    = "float, float16, bfloat16; int32 or int64 indices and offsets"
	sortedType = "integer, float, float16, bfloat16, bool"
	maskType   = "any; bool mask"

	medianNote = "the lower of two medians; NaN, and the first one's index, if there is one"
	bucketNote = "values and boundaries are compared in their common type; a NaN is above all boundaries"
)

// Ops is the table of the indexing operators.
func Ops() []kernels.Op { return ops }

var ops = []kernels.Op{
	{Schema: "aten::index.Tensor_out(Tensor self, Tensor?[] indices, *, Tensor(a!) out)", Func: operand.SameType(indexTensor, 0, 2), Flow: opclass.Indexed, Indexes: []kernels.Index{{Tensor: 0, At: 1, Dim: -1}}, DTypes: anyType},
	{Schema: "aten::index_put.out(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, *, Tensor(a!) out)", Func: operand.SameType(indexPut, 0, 2, 4), Class: opclass.IndexPut, Indexes: []kernels.Index{{Tensor: 0, At: 1, Dim: -1}}, DTypes: anyType, Family: kernels.Sum},
	{Schema: "aten::index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False)", Func: operand.SameType(indexPut, 0, 2), Indexes: []kernels.Index{{Tensor: 0, At: 1, Dim: -1}}, DTypes: anyType, Family: kernels.Sum},
	{Schema: "aten::index_select.out(Tensor self, int dim, Tensor index, *, Tensor(a!) out)", Func: operand.SameType(indexSelect, 0, 3), Flow: opclass.Along, Indexes: []kernels.Index{{Tensor: 0, At: 2, Dim: 1}}, DTypes: anyType},
	{Schema: "aten::embedding.out(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False, *, Tensor(a!) out)", Func: operand.SameType(embedding, 0, 5), Flow: opclass.Lookup, Indexes: []kernels.Index{{Tensor: 0, At: 1, Dim: -1}}, DTypes: anyType},
	{Schema: bagSchema("_embedding_bag"), Func: embeddingBag, DTypes: bagType, Family: kernels.Sum},
	{Schema: bagSchema("_embedding_bag_forward_only"), Func: embeddingBag, DTypes: bagType, Family: kernels.Sum},
	{Schema: "aten::gather.out(Tensor self, int dim, Tensor index, *, bool sparse_grad=False, Tensor(a!) out)", Func: operand.SameType(gather, 0, 4), Flow: opclass.Gathered, Indexes: []kernels.Index{{Tensor: 0, At: 2, Dim: 1}}, DTypes: anyType},
	{Schema: "aten::scatter.src_out(Tensor self, int dim, Tensor index, Tensor src, *, Tensor(a!) out)", Func: operand.SameType(scatterSrc, 0, 3, 4), Flow: opclass.Gathered, DTypes: anyType},
	{Schema: "aten::scatter.value_out(Tensor self, int dim, Tensor index, Scalar value, *, Tensor(a!) out)", Func: operand.SameType(scatterValue, 0, 4), Flow: opclass.Gathered, DTypes: realType},
	{Schema: "aten::scatter_add.out(Tensor self, int dim, Tensor index, Tensor src, *, Tensor(a!) out)", Func: operand.SameType(scatterAdd, 0, 3, 4), Flow: opclass.Gathered, DTypes: realType, Family: kernels.Sum},
	{Schema: "aten::scatter_reduce.two_out(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True, Tensor(a!) out)", Func: operand.SameType(scatterReduce, 0, 3, 6), Flow: opclass.Gathered, DTypes: realType, Family: kernels.Loose},
	{Schema: "aten::scatter.reduce_out(Tensor self, int dim, Tensor index, Tensor src, *, str reduce, Tensor(a!) out)",
		Func: operand.SameType(scatterWith, 0, 3, 5), Flow: opclass.Gathered, DTypes: realType, Family: kernels.Loose},
	{Schema: "aten::scatter.value_reduce_out(Tensor self, int dim, Tensor index, Scalar value, *, str reduce, Tensor(a!) out)",
		Func: operand.SameType(scatterWith, 0, 5), Flow: opclass.Gathered, DTypes: realType, Family: kernels.Loose},
	{Schema: "aten::bucketize.Tensor_out(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False, Tensor(a!) out)", Func: bucketize, Flow: opclass.Inner0, DTypes: numberType, Note: bucketNote},
	{Schema: "aten::bucketize.Scalar_out(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False, Tensor(a!) out)", Func: bucketize, DTypes: numberType, Note: bucketNote},
	{Schema: "aten::searchsorted.Tensor_out(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None, Tensor(a!) out)", Func: searchSorted, DTypes: numberType, Note: bucketNote},
	{Schema: "aten::searchsorted.Scalar_out(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None, Tensor(a!) out)", Func: searchSorted, DTypes: numberType, Note: bucketNote},
	{Schema: "aten::masked_select.out(Tensor self, Tensor mask, *, Tensor(a!) out)", Func: operand.SameType(maskedSelect, 0, 2), DTypes: maskType},
	{Schema: "aten::masked_scatter.out(Tensor self, Tensor mask, Tensor source, *, Tensor(a!) out)", Func: operand.SameType(maskedScatter, 0, 2, 3), DTypes: maskType},
	{Schema: "aten::nonzero.out(Tensor self, *, Tensor(a!) out)", Func: nonzero, DTypes: "any but complex128", Rows: true},
	{Schema: "aten::topk.values(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True, *, Tensor(a!) values, Tensor(b!) indices)", Func: operand.SameType(topk, 0, 5), Flow: opclass.Along, DTypes: sortedType},
	{Schema: "aten::sort.values(Tensor self, int dim=-1, bool descending=False, *, Tensor(a!) values, Tensor(b!) indices)",
		Func: operand.SameType(sortAlong(1), 0, 3), Flow: opclass.Along, DTypes: sortedType},
	{Schema: "aten::sort.values_stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False, Tensor(a!) values, Tensor(b!) indices)", Func: operand.SameType(sortAlong(2), 0, 4), Flow: opclass.Along, DTypes: sortedType},
	{Schema: "aten::median.dim_values(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) values, Tensor(b!) indices)",
		Func: operand.SameType(median(ruleMedian), 0, 3), Flow: opclass.Along, DTypes: sortedType, Note: medianNote},
	{Schema: "aten::median.out(Tensor self, *, Tensor(a!) out)", Func: operand.SameType(medianOfAll(ruleMedian), 0, 1), DTypes: sortedType,
		Note: medianNote},
	{Schema: "aten::nanmedian.dim_values(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) values, Tensor(b!) indices)",
		Func: operand.SameType(median(ruleNaNMedian), 0, 3), Flow: opclass.Along, DTypes: sortedType},
	{Schema: "aten::nanmedian.out(Tensor self, *, Tensor(a!) out)", Func: operand.SameType(medianOfAll(ruleNaNMedian), 0, 1),
		DTypes: sortedType},
	{Schema: "aten::kthvalue.values(Tensor self, SymInt k, int dim=-1, bool keepdim=False, *, Tensor(a!) values, Tensor(b!) indices)",
		Func: operand.SameType(kthValue, 0, 4), Flow: opclass.Along, DTypes: sortedType, Note: "NaN is the greatest"},
	{Schema: "aten::mode.values(Tensor self, int dim=-1, bool keepdim=False, *, Tensor(a!) values, Tensor(b!) indices)",
		Func: operand.SameType(median(ruleMode), 0, 3), Flow: opclass.Along, DTypes: sortedType,
		Note: "the least of the most frequent elements; every NaN is an element of its own"},
}

// bagSchema returns the schema of an embedding bag; they differ in the name only.
func bagSchema(name string) string {
	return "aten::" + name + ".out(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, " +
		"Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1, *, " +
		"Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2, Tensor(d!) out3)"
}
