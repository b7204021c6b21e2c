package index

import "github.com/etrun-go/etrun/kernels"

// What the operators take.
const (
	anyType  = "any; integer indices"
	realType = "integer, float, float16, bfloat16, bool; integer indices"
	maskType = "any; bool mask"
)

// Ops is the table of the indexing operators.
func Ops() []kernels.Op { return ops }

var ops = []kernels.Op{
	{Schema: "aten::index.Tensor_out(Tensor self, Tensor?[] indices, *, Tensor(a!) out)", Func: indexTensor, DTypes: anyType},
	{Schema: "aten::index_put.out(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, *, Tensor(a!) out)", Func: indexPut, DTypes: anyType, Family: kernels.Sum},
	{Schema: "aten::index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False)", Func: indexPutInPlace, DTypes: anyType, Family: kernels.Sum},
	{Schema: "aten::index_select.out(Tensor self, int dim, Tensor index, *, Tensor(a!) out)", Func: indexSelect, DTypes: anyType},
	{Schema: "aten::embedding.out(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False, *, Tensor(a!) out)", Func: embedding, DTypes: anyType},
	{Schema: "aten::gather.out(Tensor self, int dim, Tensor index, *, bool sparse_grad=False, Tensor(a!) out)", Func: gather, DTypes: anyType},
	{Schema: "aten::scatter.src_out(Tensor self, int dim, Tensor index, Tensor src, *, Tensor(a!) out)", Func: scatterSrc, DTypes: anyType},
	{Schema: "aten::scatter.value_out(Tensor self, int dim, Tensor index, Scalar value, *, Tensor(a!) out)", Func: scatterValue, DTypes: realType},
	{Schema: "aten::scatter_add.out(Tensor self, int dim, Tensor index, Tensor src, *, Tensor(a!) out)", Func: scatterAdd, DTypes: realType, Family: kernels.Sum},
	{Schema: "aten::masked_select.out(Tensor self, Tensor mask, *, Tensor(a!) out)", Func: maskedSelect, DTypes: maskType},
	{Schema: "aten::masked_scatter.out(Tensor self, Tensor mask, Tensor source, *, Tensor(a!) out)", Func: maskedScatter, DTypes: maskType},
	{Schema: "aten::nonzero.out(Tensor self, *, Tensor(a!) out)", Func: nonzero, DTypes: "any but complex128", Rows: true},
	{Schema: "aten::topk.values(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True, *, Tensor(a!) values, Tensor(b!) indices)", Func: topk, DTypes: "integer, float, float16, bfloat16, bool"},
	{Schema: "aten::sort.values(Tensor self, int dim=-1, bool descending=False, *, Tensor(a!) values, Tensor(b!) indices)", Func: sortValues, DTypes: "integer, float, float16, bfloat16, bool"},
	{Schema: "aten::sort.values_stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False, Tensor(a!) values, Tensor(b!) indices)", Func: sortStable, DTypes: "integer, float, float16, bfloat16, bool"},
}
