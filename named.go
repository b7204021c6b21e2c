package etrun

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// dataMap is the named data of a program and its .ptd files, in one key space.
type dataMap struct {
	entries map[string]dataEntry
	asked   []atomic.Bool // by source: a delegate has used data of it
}

// dataEntry is named data with its source: an index of config.data, or program for the program
// itself.
type dataEntry struct {
	pte.DataEntry
	source int
}

const program = -1

// Named implements delegate.NamedData.
func (d *dataMap) Named(key string) ([]byte, bool) {
	e, ok := d.entries[key]
	if ok && e.source != program {
		d.asked[e.source].Store(true)
	}
	return e.Data, ok
}

// TensorData implements prepare.Data: it returns the bytes of an external tensor, after comparing its layout with t.
func (d *dataMap) TensorData(t *pte.Tensor) ([]byte, bool, error) {
	e, ok := d.entries[t.Name]
	if !ok {
		return nil, false, nil
	}
	if l := e.Layout; l != nil && (l.DType != t.DType || !slices.Equal(l.Sizes, t.Sizes) || !slices.Equal(l.DimOrder, t.DimOrder)) {
		return nil, true, fmt.Errorf("external tensor %.100q: got %v %s in dim order %v, want %v %s in dim order %v: %w",
			t.Name, l.DType, tensor.FormatSizes(l.Sizes), l.DimOrder, t.DType, tensor.FormatSizes(t.Sizes), t.DimOrder, ErrFormat)
	}
	if int64(len(e.Data)) < t.NBytes() {
		return nil, true, fmt.Errorf("external tensor %.100q: got %d bytes, want %d: %w", t.Name, len(e.Data), t.NBytes(), ErrFormat)
	}
	return e.Data[:t.NBytes()], true, nil
}
