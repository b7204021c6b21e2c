package etrun

import (
	"sync"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/cortexm"
	"github.com/etrun-go/etrun/kernels/llm"
	"github.com/etrun-go/etrun/kernels/portable"
	"github.com/etrun-go/etrun/kernels/quantized"
)

// DefaultOperators returns the set of all operators of this module.
func DefaultOperators() *kernels.Set { return defaultOperators() }

var defaultOperators = sync.OnceValue(func() *kernels.Set {
	return kernels.NewSet(portable.Ops(), quantized.Ops(), cortexm.Ops(), llm.Ops())
})
