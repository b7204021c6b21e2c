package ptetest

import (
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Values of the method of [Sample].
const (
	Weight  = iota // Constant, float32 [2, 3]
	Input          // Planned, float32 [2, 3]
	Output         // Planned, float32 [4, 3], bounded dynamic, dim order 1, 0
	One            // Int 1
	Ints           // IntList of One, One
	Tensors        // TensorList of Weight, Input
	Options        // OptionalTensorList of None, Null, Input
	Null           // None
	True           // Bool
	Half           // Double 0.5
	Name           // String
	Bools          // BoolList
	Doubles        // DoubleList
	State          // PlannedInit, int64 [2]
	Remote         // External, float16 [5]
	Kept           // ExternalPlanned, int8 []
	Given          // Unplanned, bool [0, 7]
)

// Sample is a program with one of everything. It is a new one at each call.
func Sample() *pte.Program {
	return &pte.Program{
		Methods: []pte.Method{sampleMethod()},
		Named:   map[string][]byte{"blob": []byte("named bytes"), "empty": nil},
	}
}

func sampleMethod() pte.Method {
	return pte.Method{
		Name: "forward", InSpec: "[1]", OutSpec: "[2]",
		Values:  sampleValues(),
		Inputs:  []int{Input, One, Given},
		Outputs: []int{Output, Weight, Output},
		Chains: []pte.Chain{{Instructions: []pte.Instruction{
			{Kind: pte.KernelCall, Index: 0, Args: []int{Input, Weight, One, Output, Output}},
			{Kind: pte.DelegateCall, Index: 0, Args: []int{Input, Output}},
			{Kind: pte.JumpFalseCall, Index: True, Target: 5},
			{Kind: pte.MoveCall, Index: Input, Target: Output},
			{Kind: pte.FreeCall, Index: Given},
		}, Stacks: [][]pte.Frame{{{File: "net.py", Line: 7, Name: "forward", Context: "x + w"}}, {}, {}, {}, {}}}},
		Operators: []pte.Operator{{Name: "aten::add", Overload: "out"}, {Name: "aten::copy_"}},
		Delegates: []pte.Delegate{{ID: "SampleBackend", Data: []byte("payload"), Specs: []pte.CompileSpec{{Key: "level", Value: []byte{3}}}}},
		Arenas:    []pte.Arena{{Size: 128}, {Size: 64, Device: 1, DeviceIndex: 2}},
	}
}

func sampleValues() []pte.Value {
	return []pte.Value{
		Weight:  tensorValue(pte.Tensor{DType: tensor.Float32, Sizes: []int{2, 3}, DimOrder: []uint8{0, 1}, Storage: pte.Constant, Data: []byte("constant, of 24 bytes...")}),
		Input:   tensorValue(pte.Tensor{DType: tensor.Float32, Sizes: []int{2, 3}, DimOrder: []uint8{0, 1}, Storage: pte.Planned, Arena: 0, Offset: 0}),
		Output:  tensorValue(pte.Tensor{DType: tensor.Float32, Sizes: []int{4, 3}, DimOrder: []uint8{1, 0}, Dynamism: tensor.DynamicBound, Storage: pte.Planned, Arena: 0, Offset: 32}),
		One:     {Kind: tensor.KindInt, Int: 1},
		Ints:    {Kind: tensor.KindIntList, Items: []int{One, One}},
		Tensors: {Kind: tensor.KindTensorList, Items: []int{Weight, Input}},
		Options: {Kind: tensor.KindOptionalTensorList, Items: []int{-1, Null, Input}},
		Null:    {Kind: tensor.None},
		True:    {Kind: tensor.KindBool, Bool: true},
		Half:    {Kind: tensor.KindDouble, Double: 0.5},
		Name:    {Kind: tensor.KindString, Long: &pte.Long{Str: "floor"}},
		Bools:   {Kind: tensor.KindBoolList, Long: &pte.Long{Bools: []bool{true, false}}},
		Doubles: {Kind: tensor.KindDoubleList, Long: &pte.Long{Doubles: []float64{-1, 1e300}}},
		State:   tensorValue(pte.Tensor{DType: tensor.Int64, Sizes: []int{2}, DimOrder: []uint8{0}, Storage: pte.PlannedInit, Arena: 1, Offset: 16, Data: []byte("state of 16 byte"), Name: "state"}),
		Remote:  tensorValue(pte.Tensor{DType: tensor.Float16, Sizes: []int{5}, DimOrder: []uint8{0}, Storage: pte.External, Name: "remote"}),
		Kept:    tensorValue(pte.Tensor{DType: tensor.Int8, Storage: pte.ExternalPlanned, Arena: 1, Offset: 63, Name: "kept", Device: 1}),
		Given:   tensorValue(pte.Tensor{DType: tensor.Bool, Sizes: []int{0, 7}, DimOrder: []uint8{0, 1}, Storage: pte.Unplanned}),
	}
}

func tensorValue(t pte.Tensor) pte.Value { return pte.Value{Kind: tensor.KindTensor, Tensor: &t} }
