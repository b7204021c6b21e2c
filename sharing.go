package etrun

import (
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// sharedArena is the arena of state that several methods share (memory_id 2).
const sharedArena = 1

func inSharedArena(t *pte.Tensor) bool {
	return (t.Storage == pte.Planned || t.Storage == pte.PlannedInit) && t.Arena == sharedArena
}

// stateKey identifies state across methods: by name or, if the file has no names, by its offset in
// the shared arena; and by size and type.
type stateKey struct {
	name   string
	offset int64
	bytes  int64
	dtype  tensor.DType
}

func namedKey(t *pte.Tensor) stateKey {
	return stateKey{name: t.Name, bytes: t.NBytes(), dtype: t.DType}
}
