// Package elementwise (no compatibility promise) implements the operators that compute each element of the result
// from the elements of its operands at the same index: arithmetic, comparisons, logic, and functions of one argument.
//
// Operands are broadcast and may have any dim order. Element types are promoted as in PyTorch (at::result_type).
// Integers wrap; floats of 16 bits are computed as float32 and rounded once. Every operator is a row of a table: a
// schema, and slice kernels for the compute types. One loop for all of them splits the result into blocks, converts
// the operands to the compute type, and runs blocks in parallel.
package elementwise

// Element types in the words of the operator tables.
const (
	floats         = "float16 bfloat16 float32 float64"
	integersBool   = integers + " bool"
	integers       = "uint8 int8 int16 int32 int64"
	numbers        = integers + " " + floats
	all            = numbers + " bool"
	numbersComplex = numbers + " complex"
	allComplex     = all + " complex"
)
