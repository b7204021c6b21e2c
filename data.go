package etrun

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
)

// openData reads the .ptd files and merges them with the program's named data. A key may occur
// several times with equal bytes; different bytes are an error.
func (p *Program) openData(ctx context.Context) (*dataMap, error) {
	d := &dataMap{entries: make(map[string]dataEntry), asked: make([]atomic.Bool, len(p.config.data))}
	for key, data := range p.spec.Named {
		d.entries[key] = dataEntry{pte.DataEntry{Data: data}, program}
	}
	for i, src := range p.config.data {
		f, err := src.read(ctx, p.config.reading(p.FileBytes(), pte.FormatPTD))
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, f)
		m, err := pte.ParseData(f.data, p.config.limits.format())
		if err != nil {
			return nil, loadError(src.name, "", err, ErrFormat)
		}
		for key, e := range m.Entries {
			if old, ok := d.entries[key]; ok && !bytes.Equal(old.Data, e.Data) {
				return nil, loadError(src.name, "", fmt.Errorf("key %.100q is defined twice with different bytes", key), ErrFormat)
			}
			d.entries[key] = dataEntry{e, i}
		}
	}
	return d, nil
}

// FileBytes returns the size of the program and its .ptd files, in bytes.
func (p *Program) FileBytes() (n int64) {
	for _, f := range p.files {
		n += int64(len(f.data))
	}
	return n
}

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
