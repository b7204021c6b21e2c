package runtime

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/runtime/pte"
)

// dataMap is the named data of a program and of its .ptd files, one key space.
type dataMap struct {
	entries map[string]pte.DataEntry
}

// Named implements delegate.NamedData.
func (d *dataMap) Named(key string) ([]byte, bool) {
	e, ok := d.entries[key]
	return e.Data, ok
}

// openData reads the .ptd files and joins them with the program's named data. Equal
// bytes under one key are one entry; different ones are an error.
func (p *Program) openData(ctx context.Context) (*dataMap, error) {
	d := &dataMap{entries: make(map[string]pte.DataEntry)}
	for key, data := range p.spec.Named {
		d.entries[key] = pte.DataEntry{Data: data}
	}
	for _, path := range p.config.dataFiles {
		f, err := openFile(ctx, path, &p.config, p.fileBytes(), pte.FormatPTD)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, f)
		m, err := pte.ParseData(f.data, p.config.limits.Format)
		if err != nil {
			return nil, f.named(err)
		}
		for key, e := range m.Entries {
			if old, ok := d.entries[key]; ok && !bytes.Equal(old.Data, e.Data) {
				return nil, fmt.Errorf("%s: key %.100q is defined twice with different bytes: %w", path, key, ErrFormat)
			}
			d.entries[key] = e
		}
	}
	return d, nil
}

// fileBytes is the size of all files of the program.
func (p *Program) fileBytes() (n int64) {
	for _, f := range p.files {
		n += int64(len(f.data))
	}
	return n
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
