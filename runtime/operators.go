package runtime

import (
	"sync"

	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/kernels/portable"
)

// DefaultOperators is every operator that this module implements.
var DefaultOperators = sync.OnceValue(func() *kernels.Set { return kernels.NewSet(portable.Ops()) })
