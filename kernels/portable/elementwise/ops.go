package elementwise

import (
	"slices"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/opclass"
)

// Ops lists the package's operators. They compute elements, unless their row says otherwise.
func Ops() []kernels.Op {
	list := slices.Concat(arithOps, unaryOps, functionOps, activationOps, compareOps, bitOps, powerOps, selectOps, dropoutOps, complexOps,
		specialOps)
	for i := range list {
		if op := &list[i]; op.Flow == opclass.Mixed && !op.Random {
			op.Flow = opclass.Elements
		}
	}
	return list
}
