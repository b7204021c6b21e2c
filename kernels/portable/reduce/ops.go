package reduce

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
)

// Element types, as documented.
const (
	realType  = "integer, float, float16, bfloat16, bool"
	sumType   = realType + ", complex"
	floatType = "float, float16, bfloat16"
	anyType   = "any but complex128; bool or uint8 out"
)

// Ops is the table of the reductions.
func Ops() []kernels.Op { return ops }

var ops = []kernels.Op{
	{Schema: "aten::sum.IntList_out(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out)", Func: sums.reduce, Flow: opclass.Along, DTypes: sumType, Family: kernels.Sum},
	{Schema: "aten::mean.out(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out)",
		Func: means.reduce, Class: opclass.Mean, Flow: opclass.Along, DTypes: sumType + "; floating or complex out", Family: kernels.Sum},
	{Schema: "aten::mean.dtype_out(Tensor self, *, ScalarType? dtype=None, Tensor(a!) out)", Func: means.reduce, DTypes: sumType + "; floating or complex out", Family: kernels.Sum},
	{Schema: "aten::prod.out(Tensor self, *, ScalarType? dtype=None, Tensor(a!) out)", Func: products.reduce, DTypes: realType, Family: kernels.Loose},
	{Schema: "aten::prod.int_out(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None, Tensor(a!) out)", Func: products.reduce, Flow: opclass.Along, DTypes: realType, Family: kernels.Loose},
	{Schema: "aten::amax.out(Tensor self, int[1] dim=[], bool keepdim=False, *, Tensor(a!) out)", Func: maxima.reduce, Flow: opclass.Along, DTypes: realType},
	{Schema: "aten::amin.out(Tensor self, int[1] dim=[], bool keepdim=False, *, Tensor(a!) out)", Func: minima.reduce, Flow: opclass.Along, DTypes: realType},
	{Schema: "aten::max.unary_out(Tensor self, *, Tensor(a!) out)", Func: maxima.reduce, DTypes: realType},
	{Schema: "aten::min.unary_out(Tensor self, *, Tensor(a!) out)", Func: minima.reduce, DTypes: realType},
	{Schema: "aten::max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, Tensor(b!) max_values)", Func: argReduce(false, true), Flow: opclass.Along, DTypes: realType},
	{Schema: "aten::min.dim_min(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) min, Tensor(b!) min_indices)", Func: argReduce(true, true), Flow: opclass.Along, DTypes: realType},
	{Schema: "aten::argmax.out(Tensor self, int? dim=None, bool keepdim=False, *, Tensor(a!) out)", Func: argReduce(false, false), Flow: opclass.Along, DTypes: realType},
	{Schema: "aten::argmin.out(Tensor self, int? dim=None, bool keepdim=False, *, Tensor(a!) out)", Func: argReduce(true, false), Flow: opclass.Along, DTypes: realType},
	{Schema: "aten::any.all_out(Tensor self, *, Tensor(a!) out)", Func: reduceAny, DTypes: anyType},
	{Schema: "aten::any.dims_out(Tensor self, int[]? dim=None, bool keepdim=False, *, Tensor(a!) out)", Func: reduceAny, Flow: opclass.Along, DTypes: anyType, Note: "an empty list of dimensions reduces none"},
	{Schema: "aten::any.out(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) out)", Func: reduceAny, Class: opclass.AnyDim, Flow: opclass.Along, DTypes: anyType},
	{Schema: "aten::logsumexp.out(Tensor self, int[1] dim, bool keepdim=False, *, Tensor(a!) out)", Func: logSumExp, Flow: opclass.Along, DTypes: floatType, Family: kernels.Loose},
	{Schema: "aten::cumsum.out(Tensor self, int dim, *, ScalarType? dtype=None, Tensor(a!) out)", Func: cumsum, Flow: opclass.Along, DTypes: realType, Family: kernels.Sum},
	{Schema: "aten::cumprod.out(Tensor self, int dim, *, ScalarType? dtype=None, Tensor(a!) out)", Func: cumprod, Flow: opclass.Along, DTypes: realType,
		Family: kernels.Loose},
	{Schema: "aten::logcumsumexp.out(Tensor self, int dim, *, Tensor(a!) out)", Func: logCumSumExp, Flow: opclass.Along, DTypes: floatType, Family: kernels.Loose},
	{Schema: "aten::cummax.out(Tensor self, int dim, *, Tensor(a!) values, Tensor(b!) indices)", Func: cumMax, Flow: opclass.Along, DTypes: realType},
	{Schema: "aten::cummin.out(Tensor self, int dim, *, Tensor(a!) values, Tensor(b!) indices)", Func: cumMin, Flow: opclass.Along, DTypes: realType},
	{Schema: "aten::var.out(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False, *, Tensor(a!) out)", Func: variance, Flow: opclass.Along, DTypes: floatType, Family: kernels.Loose},
	{Schema: "aten::var.correction_out(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False, Tensor(a!) out)", Func: variance, Flow: opclass.Along, DTypes: floatType, Family: kernels.Loose},
	{Schema: "aten::var_mean.correction_out(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False, Tensor(a!) out0, Tensor(b!) out1)", Func: variance, Flow: opclass.Along, DTypes: floatType, Family: kernels.Loose},
}
