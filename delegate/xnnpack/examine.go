package xnnpack

import (
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/internal/flatbuf"
)

// NamedKeys lists the named data that a payload asks for, there or not, each once. It
// compiles nothing.
func NamedKeys(payload []byte) ([]string, error) {
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

// LayoutRepairs counts the operands of a payload's nodes that a transpose is put in front
// of, since the exporter left them in another memory order than the nodes need. It
// compiles nothing; named finds the constants that the payload names.
func LayoutRepairs(payload []byte, named delegate.NamedData) (int, error) {
	g, err := readGraph(payload, named)
	if err != nil {
		return 0, err
	}
	g.prune()
	before := g.transposes()
	if _, err := g.repair(); err != nil {
		return 0, err
	}
	return g.transposes() - before, nil
}

func (g *graph) transposes() (n int) {
	for i := range g.Nodes {
		if g.Nodes[i].Type == nodeTypes[tagStaticTranspose] {
			n++
		}
	}
	return n
}
