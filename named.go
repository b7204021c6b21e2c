package etrun

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/etrun-go/etrun/runtime/pte"
)

// dataMap is the named data of a program and of its .ptd files, one key space.
type dataMap struct {
	entries map[string]dataEntry
	asked   []atomic.Bool // by source: a delegate found data in it
}

// dataEntry is named data and where it is from: an index of the sources, program for the
// program itself.
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

// tensorData finds the bytes of an external tensor, whose layout must be t's.
func (d *dataMap) tensorData(t *pte.Tensor) ([]byte, bool, error) {
	e, ok := d.entries[t.Name]
	if !ok {
		return nil, false, nil
	}
	if l := e.Layout; l != nil && (l.DType != t.DType || !slices.Equal(l.Sizes, t.Sizes) || !slices.Equal(l.DimOrder, t.DimOrder)) {
		return nil, true, fmt.Errorf("external tensor %.100q: the file has %v%v in order %v, the program wants %v%v in order %v: %w",
			t.Name, l.DType, l.Sizes, l.DimOrder, t.DType, t.Sizes, t.DimOrder, ErrFormat)
	}
	if int64(len(e.Data)) < t.NBytes() {
		return nil, true, fmt.Errorf("external tensor %.100q: %d bytes, want %d: %w", t.Name, len(e.Data), t.NBytes(), ErrFormat)
	}
	return e.Data[:t.NBytes()], true, nil
}
