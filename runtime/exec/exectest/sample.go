package exectest

import (
	"context"
	"math/rand/v2"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Values of Small.
const (
	VecA, VecB = 0, 1 // planned
	Constant   = 2
	None       = 3 // None
	Number     = 4 // Int
	Lists      = 5 // TensorList of VecB
	Constants  = 6 // TensorList of Constant
)

// Small is a method with values of every kind, and the given instructions.
func Small(code ...pte.Instruction) pte.Method {
	vector := func(t pte.Tensor) pte.Value {
		t.DType, t.Sizes, t.DimOrder = tensor.Int64, []int{Len}, []uint8{0}
		return pte.Value{Kind: tensor.KindTensor, Tensor: &t}
	}
	return pte.Method{
		Name: "forward",
		Values: []pte.Value{
			VecA: vector(pte.Tensor{}), VecB: vector(pte.Tensor{}),
			Constant:  vector(pte.Tensor{Storage: pte.Constant, Data: tensor.AlignedBytes(8 * Len)}),
			None:      {},
			Number:    {Kind: tensor.KindInt, Int: 7},
			Lists:     {Kind: tensor.KindTensorList, Items: []int{VecB}},
			Constants: {Kind: tensor.KindTensorList, Items: []int{Constant}},
		},
		Inputs:  []int{VecA},
		Outputs: []int{VecB},
		Operators: []pte.Operator{{Name: "test::add", Overload: "out"}, {Name: "test::update_"}, {Name: "test::view"},
			{Name: "test::number"}, {Name: "test::split", Overload: "out"}},
		Chains: []pte.Chain{{Instructions: code}},
	}
}

// Call is a call of an operator.
func Call(op int, args ...int) pte.Instruction {
	return pte.Instruction{Kind: pte.KernelCall, Index: op, Args: args}
}

// Move is an assignment.
func Move(from, to int) pte.Instruction {
	return pte.Instruction{Kind: pte.MoveCall, Index: from, Target: to}
}

// AddDelegate is a delegate that computes test::add.out.
type AddDelegate struct{}

func (AddDelegate) Needs() delegate.Needs                         { return delegate.Needs{Inputs: 2} }
func (AddDelegate) Info() delegate.Info                           { return delegate.Info{} }
func (AddDelegate) Unit(delegate.Instance) (delegate.Unit, error) { return AddDelegate{}, nil }
func (AddDelegate) Close() error                                  { return nil }
func (AddDelegate) Execute(_ context.Context, a []*tensor.Value) error {
	return WordOps[OpAdd].Func(nil, a)
}

// ConstantWords returns a constant for the random programs.
func ConstantWords(r *rand.Rand) pte.Value {
	data := tensor.BytesOf([]int64{r.Int64N(9), r.Int64N(9), 3, 4})
	return pte.Value{Kind: tensor.KindTensor, Tensor: &pte.Tensor{DType: tensor.Int64, Sizes: []int{Len}, DimOrder: []uint8{0},
		Storage: pte.Constant, Data: data}}
}
