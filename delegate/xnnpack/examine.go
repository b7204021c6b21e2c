package xnnpack

import (
	"github.com/etrun-go/etrun/internal/flatbuf"
)

// Names implements delegate.Namer. It returns each key once.
func (Backend) Names(payload []byte) ([]string, error) {
	flat, base, _, err := splitHeader(payload)
	if err != nil {
		return nil, err
	}
	r := &reader{flat: flatbuf.New(flat, base, 0)}
	r.table.read(r.flat.Root())
	if err := r.flatError(); err != nil {
		return nil, err
	}
	var keys []string
	seen := make(map[string]bool)
	for _, p := range r.table.places {
		if p.key != "" && !seen[p.key] {
			seen[p.key] = true
			keys = append(keys, p.key)
		}
	}
	return keys, nil
}
