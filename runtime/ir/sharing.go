package ir

import (
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// SharedArena is the arena of state that several methods share (memory_id 2).
const SharedArena = 1

// InSharedArena reports whether a tensor of the file is in it.
func InSharedArena(t *pte.Tensor) bool {
	return (t.Storage == pte.Planned || t.Storage == pte.PlannedInit) && t.Arena == SharedArena
}

// StateKey identifies state across methods: by name or, if the file has no names, by its offset in
// the shared arena; and by size and type.
type StateKey struct {
	Name   string
	Offset int64
	Bytes  int64
	DType  tensor.DType
}

// KeyOf returns the key of a tensor; ok is false for one that other methods cannot refer to.
func KeyOf(t *pte.Tensor) (k StateKey, ok bool) {
	k = StateKey{Name: t.Name, Bytes: t.NBytes(), DType: t.DType}
	if t.Name == "" {
		k.Offset = t.Offset
	}
	return k, t.Name != "" || InSharedArena(t)
}
