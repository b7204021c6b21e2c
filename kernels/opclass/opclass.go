// Package opclass (no compatibility promise) lists the functions that passes over programs know. The row of an operator
// states the class of the function that it computes, so that passes need not know operators by name.
package opclass

import "strings"

// Class is a function and the types of its arguments. All operators of a class compute the same results: overloads
// for tensors and for numbers have different classes.
type Class uint8

// The classes. None is that of all other operators.
const (
	None Class = iota

	// Functions of each element.

	Abs
	Neg
	Ceil
	Floor
	Sqrt
	Rsqrt
	Exp
	Log
	Sin
	Cos
	Sigmoid
	Tanh
	Relu
	Hardswish
	Silu
	Hardtanh
	Clamp
	Gelu
	LeakyRelu
	Elu
	PowScalar // a tensor to the power of a number

	// Functions of the elements of two tensors, or of a tensor and a number.

	Add // self + alpha · other
	Sub
	Mul
	Div
	Maximum
	Minimum
	AddScalar
	SubScalar
	RsubScalar // the number minus the tensor
	MulScalar
	DivScalar
	EqScalar // whether an element is the number

	// Truth and choices.

	LogicalNot
	AnyDim // whether any element along a dimension is true
	Where  // elements of the second or of the third tensor
	FullLike

	// Products.

	MM
	BMM
	AddMM
	Linear
	Convolution

	// Functions of rows, channels and windows.

	Softmax
	LogSoftmax
	LayerNorm
	BatchNorm // with constant statistics
	Mean
	AvgPool2d
	MaxPool2d // with indices
	AdaptiveAvgPool2d
	UpsampleBilinear2d

	// Data movements.

	Copy   // the elements of a tensor, of another type or in another memory order
	Expand // repeats dimensions of size 1
	View   // the elements in another shape, an argument
	Unsqueeze
	Squeeze // removes dimensions of size 1: all, or those of an argument
	Permute
	Transpose
	T // transposes a matrix
	Slice
	Narrow
	Select
	Cat
	Split
	SplitWithSizes
	Unbind
	ConstantPad
	IndexPut // a copy, and values at the indexed elements

	// Conversions between numbers and their quantized form.

	Quantize // with numbers as scale and zero point
	Dequantize
	DequantizePerChannel
	ChooseQParams   // finds scale and zero point of a tensor
	QuantizeDynamic // with tensors as scale and zero point
	DequantizeDynamic

	Count // how many there are
)

// table has the name of each class in texts, and the types of the arguments before the outs. There may
// be alternatives; "..." stands for any others.
var table = [Count]struct{ name, args string }{
	None: {"none", "..."},

	Abs:       {"Abs", "Tensor"},
	Neg:       {"Neg", "Tensor"},
	Ceil:      {"Ceil", "Tensor"},
	Floor:     {"Floor", "Tensor"},
	Sqrt:      {"Sqrt", "Tensor"},
	Rsqrt:     {"Rsqrt", "Tensor"},
	Exp:       {"Exp", "Tensor"},
	Log:       {"Log", "Tensor"},
	Sin:       {"Sin", "Tensor"},
	Cos:       {"Cos", "Tensor"},
	Sigmoid:   {"Sigmoid", "Tensor"},
	Tanh:      {"Tanh", "Tensor"},
	Relu:      {"Relu", "Tensor"},
	Hardswish: {"Hardswish", "Tensor"},
	Silu:      {"Silu", "Tensor"},
	Hardtanh:  {"Hardtanh", "Tensor Scalar Scalar"},
	Clamp:     {"Clamp", "Tensor Scalar? Scalar?"},
	Gelu:      {"Gelu", "Tensor str"},
	LeakyRelu: {"LeakyRelu", "Tensor Scalar"},
	Elu:       {"Elu", "Tensor Scalar Scalar Scalar"},
	PowScalar: {"PowScalar", "Tensor Scalar"},

	Add:        {"Add", "Tensor Tensor Scalar"},
	Sub:        {"Sub", "Tensor Tensor Scalar"},
	Mul:        {"Mul", "Tensor Tensor"},
	Div:        {"Div", "Tensor Tensor"},
	Maximum:    {"Maximum", "Tensor Tensor"},
	Minimum:    {"Minimum", "Tensor Tensor"},
	AddScalar:  {"AddScalar", "Tensor Scalar Scalar"},
	SubScalar:  {"SubScalar", "Tensor Scalar Scalar"},
	RsubScalar: {"RsubScalar", "Tensor Scalar Scalar"},
	MulScalar:  {"MulScalar", "Tensor Scalar"},
	DivScalar:  {"DivScalar", "Tensor Scalar"},
	EqScalar:   {"EqScalar", "Tensor Scalar"},

	LogicalNot: {"LogicalNot", "Tensor"},
	AnyDim:     {"AnyDim", "Tensor int bool"},
	Where:      {"Where", "Tensor Tensor Tensor"},
	FullLike:   {"FullLike", "Tensor Scalar MemoryFormat?"},

	MM:          {"MM", "Tensor Tensor"},
	BMM:         {"BMM", "Tensor Tensor"},
	AddMM:       {"AddMM", "Tensor Tensor Tensor Scalar Scalar"},
	Linear:      {"Linear", "Tensor Tensor Tensor?"},
	Convolution: {"Convolution", "Tensor Tensor Tensor? int[] int[] int[] bool int[] int"},

	Softmax:            {"Softmax", "Tensor int bool"},
	LogSoftmax:         {"LogSoftmax", "Tensor int bool"},
	LayerNorm:          {"LayerNorm", "Tensor int[] Tensor? Tensor? float"},
	BatchNorm:          {"BatchNorm", "Tensor Tensor? Tensor? Tensor Tensor float float"},
	Mean:               {"Mean", "Tensor int[]? bool ScalarType?"},
	AvgPool2d:          {"AvgPool2d", "Tensor int[] int[] int[] bool bool int?"},
	MaxPool2d:          {"MaxPool2d", "Tensor int[] int[] int[] int[] bool"},
	AdaptiveAvgPool2d:  {"AdaptiveAvgPool2d", "Tensor int[]"},
	UpsampleBilinear2d: {"UpsampleBilinear2d", "Tensor int[]? bool float[]?"},

	Copy:           {"Copy", "Tensor ..."},
	Expand:         {"Expand", "Tensor int[] bool"},
	View:           {"View", "Tensor int[]"},
	Unsqueeze:      {"Unsqueeze", "Tensor int"},
	Squeeze:        {"Squeeze", "Tensor|Tensor int|Tensor int[]"},
	Permute:        {"Permute", "Tensor int[]"},
	Transpose:      {"Transpose", "Tensor int int"},
	T:              {"T", "Tensor"},
	Slice:          {"Slice", "Tensor int int? int? int"},
	Narrow:         {"Narrow", "Tensor int int int"},
	Select:         {"Select", "Tensor int int"},
	Cat:            {"Cat", "Tensor[] int"},
	Split:          {"Split", "Tensor int int"},
	SplitWithSizes: {"SplitWithSizes", "Tensor int[] int"},
	Unbind:         {"Unbind", "Tensor int"},
	ConstantPad:    {"ConstantPad", "Tensor int[] Scalar"},
	IndexPut:       {"IndexPut", "Tensor Tensor?[] Tensor bool"},

	Quantize:             {"Quantize", "Tensor float int int int ScalarType"},
	Dequantize:           {"Dequantize", "Tensor float int int int ScalarType ScalarType?"},
	DequantizePerChannel: {"DequantizePerChannel", "Tensor Tensor Tensor? int int int ScalarType ScalarType?"},
	ChooseQParams:        {"ChooseQParams", "Tensor int int float ScalarType"},
	QuantizeDynamic:      {"QuantizeDynamic", "Tensor Tensor Tensor int int ScalarType"},
	DequantizeDynamic:    {"DequantizeDynamic", "Tensor Tensor Tensor int int ScalarType ScalarType?"},
}

func (c Class) String() string {
	if c >= Count {
		return "unknown"
	}
	return table[c].name
}

// Accepts reports whether the arguments before the outs of an operator of the class may have these types, as schemas
// write them. SymInt is int.
func (c Class) Accepts(types []string) bool {
	if c >= Count {
		return false
	}
	have := strings.ReplaceAll(strings.Join(types, " "), "SymInt", "int")
	for want := range strings.SplitSeq(table[c].args, "|") {
		want, open := strings.CutSuffix(want, "...")
		if have == want || open && strings.HasPrefix(have+" ", want) {
			return true
		}
	}
	return false
}
