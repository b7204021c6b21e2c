package compile

import (
	"fmt"

	"github.com/etrun-go/etrun/runtime/pte"
)

// data is the named data of a program and its data files.
type data struct {
	named func(key string) ([]byte, bool) // nil for the program's alone
	own   map[string][]byte
}

// Named implements delegate.NamedData.
func (d *data) Named(key string) ([]byte, bool) {
	if d.named != nil {
		return d.named(key)
	}
	b, ok := d.own[key]
	return b, ok
}

// TensorData implements prepare.Data.
func (d *data) TensorData(t *pte.Tensor) ([]byte, bool, error) {
	b, ok := d.Named(t.Name)
	if ok && int64(len(b)) != t.NBytes() {
		return nil, false, fmt.Errorf("external data %.100q has %d bytes, the tensor %d: %w", t.Name, len(b), t.NBytes(), pte.ErrFormat)
	}
	return b, ok, nil
}
