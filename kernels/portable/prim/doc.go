// Package prim (no compatibility promise) contains the operators on numbers for programs with
// symbolic sizes and control flow, and two that manage tensors without computing on them.
package prim

import (
	"slices"

	"github.com/etrun-go/etrun/kernels"
)

// Ops returns the package's operators.
func Ops() []kernels.Op { return slices.Concat(numberOps, tensorOps) }
