package matmul

import (
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
	"github.com/etrun-go/etrun/kernels/portable/operand"
)

// Ops returns the operators of the package.
func Ops() []kernels.Op {
	return []kernels.Op{
		{Schema: "aten::mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out)", Func: operand.SameType(mm, 0, 1, 2),
			Class: opclass.MM, Flow: opclass.Products, DTypes: realTypes + ", complex", Family: kernels.Sum, Note: "integers wrap"},
		{Schema: "aten::bmm.out(Tensor self, Tensor mat2, *, Tensor(a!) out)", Func: operand.SameType(mm, 0, 1, 2),
			Class: opclass.BMM, Flow: opclass.Products, DTypes: realTypes + ", complex", Family: kernels.Sum, Note: "integers wrap"},
		{Schema: "aten::addmm.out(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, Tensor(a!) out)",
			Func: operand.SameType(addmm, 0, 1, 2, 5), Class: opclass.AddMM, Flow: opclass.AddProduct, DTypes: realTypes, Family: kernels.Sum, Note: "integers wrap"},
		{Schema: "aten::linear.out(Tensor input, Tensor weight, Tensor? bias=None, *, Tensor(a!) out)", Func: operand.SameType(linear, 0, 1, 3),
			Class: opclass.Linear, Flow: opclass.Product, DTypes: floatTypes, Family: kernels.Sum},
		{Schema: "aten::_cdist_forward.out(Tensor x1, Tensor x2, float p, int? compute_mode, *, Tensor(a!) out)",
			Func: operand.SameType(cdist, 0, 1, 4), DTypes: floatTypes, Family: kernels.Loose, Note: "compute_mode is ignored"},
		{Schema: "aten::_pdist_forward.out(Tensor self, float p=2., *, Tensor(a!) out)", Func: operand.SameType(pdist, 0, 2),
			DTypes: floatTypes, Family: kernels.Loose},
	}
}
