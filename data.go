package etrun

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
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

// claims counts the readers of each byte range of a program's files, so that the memory of weights
// that nothing reads any more can be released.
type claims struct {
	once sync.Once
	list []claim
}

// claim is a byte range that is read. Claims may overlap.
type claim struct {
	data []byte
	uses int // delegates and values that refer to it
}

// owned reports whether data is part of a byte range that only one delegate or value refers to.
func (c *claims) owned(p *pte.Program, d *dataMap, backends map[string]delegate.Backend, data []byte) bool {
	c.once.Do(func() { c.list = findClaims(p, d, backends) })
	owner := false
	for i := range c.list {
		switch in := &c.list[i]; {
		case !cpu.Overlap(in.data, data):
		case in.uses > 1 || !cpu.Contains(in.data, data) || owner:
			return false
		default:
			owner = true
		}
	}
	return owner
}

// release releases the memory of such data.
func (c *claims) release(p *pte.Program, d *dataMap, backends map[string]delegate.Backend, data []byte) bool {
	if !c.owned(p, d, backends, data) {
		return false
	}
	cpu.Discard(data)
	return true
}

// findClaims lists the byte ranges that are read of a program's files. It returns nil if a delegate
// may read bytes that it does not declare.
func findClaims(p *pte.Program, d *dataMap, backends map[string]delegate.Backend) []claim {
	names := make(map[string]int)
	var list []claim
	for m := range p.Methods {
		for i := range p.Methods[m].Delegates {
			g := &p.Methods[m].Delegates[i]
			namer, ok := backends[g.ID].(delegate.Namer)
			if !ok {
				return nil
			}
			keys, err := namer.Names(g.Data)
			if err != nil {
				return nil
			}
			for _, k := range keys {
				names[k]++
			}
			list = append(list, claim{g.Data, 1})
		}
		list = append(list, constantClaims(&p.Methods[m], d)...)
	}
	for key, e := range d.entries {
		if names[key] > 0 {
			list = append(list, claim{e.Data, names[key]})
		}
	}
	return list
}

// constantClaims are the tensors of a method, whose bytes are used in place as long as a step reads
// them.
func constantClaims(m *pte.Method, d *dataMap) (list []claim) {
	for v := range m.Values {
		t := m.Values[v].Tensor
		if m.Values[v].Kind != tensor.KindTensor {
			continue
		}
		data := t.Data
		if t.Storage == pte.External || t.Storage == pte.ExternalPlanned {
			data = d.entries[t.Name].Data
		}
		if len(data) > 0 {
			list = append(list, claim{data, 1})
		}
	}
	return list
}
