// Package factory (no compatibility promise) holds the operators that make tensors from
// numbers and from nothing, and those that copy a tensor to another element type or dim
// order.
package factory

import (
	"slices"

	"github.com/etrun-go/etrun/kernels"
)

// Ops lists the package's operators.
func Ops() []kernels.Op { return slices.Concat(fillOps, rangeOps, randomOps, copyOps) }

// Element types in the words of the operator tables.
const (
	floats  = "float16 bfloat16 float32 float64"
	numbers = "uint8 int8 int16 int32 int64 " + floats
	all     = numbers + " bool"
	anyType = "any"
)
