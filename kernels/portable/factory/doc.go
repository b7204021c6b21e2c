// Package factory (no compatibility promise) contains the operators that create tensors from
// numbers, and those that copy a tensor to another element type or dim order.
package factory

// Element types, as named in the operator tables.
const (
	floats  = "float16 bfloat16 float32 float64"
	numbers = "uint8 int8 int16 int32 int64 " + floats
	all     = numbers + " bool"
	anyType = "any"
)
