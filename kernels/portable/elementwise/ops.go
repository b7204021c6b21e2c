package elementwise

import (
	"slices"

	"github.com/etrun-go/etrun/kernels"
)

// Ops lists the package's operators.
func Ops() []kernels.Op {
	return slices.Concat(arithOps, unaryOps, functionOps, activationOps, compareOps, bitOps, powerOps, selectOps, dropoutOps, complexOps,
		specialOps)
}
