package etrun

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"

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
