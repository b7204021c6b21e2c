package factory

import (
	"slices"

	"github.com/etrun-go/etrun/kernels"
)

// Ops returns the package's operators.
func Ops() []kernels.Op { return slices.Concat(fillOps, rangeOps, randomOps, copyOps) }
