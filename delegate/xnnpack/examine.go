package xnnpack

import (
	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/internal/flatbuf"
)

// Names implements delegate.Namer. It returns each key once.
func (Backend) Names(payload []byte) ([]string, error) {
	flat, base, _, err := graph.SplitHeader(payload)
	if err != nil {
		return nil, err
	}
	r := &graph.Reader{Flat: flatbuf.New(flat, base, 0)}
	r.Table.Read(r.Flat.Root())
	if err := r.FlatError(); err != nil {
		return nil, err
	}
	var keys []string
	seen := make(map[string]bool)
	for _, p := range r.Table.Places {
		if p.Key != "" && !seen[p.Key] {
			seen[p.Key] = true
			keys = append(keys, p.Key)
		}
	}
	return keys, nil
}
