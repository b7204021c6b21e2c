// Package prim (no compatibility promise) holds the operators on numbers that programs
// with symbolic sizes and control flow use, and the two that manage tensors without
// computing on them.
package prim

import (
	"slices"

	"github.com/etrun-go/etrun/kernels"
)

// Ops lists the package's operators.
func Ops() []kernels.Op { return slices.Concat(numberOps, tensorOps) }
