package xnnpack

import (
	"io"
	"slices"
	"sync"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// arena is the memory of values between nodes in the Go engine. The units of an instance,
// of which one runs at a time, share one. Units that are bound keep what they have when
// another one makes it larger.
type arena struct {
	mu    sync.Mutex
	want  int64 // the least to allocate: what the largest unit takes at its declared sizes
	bytes []byte
	rows  [][]float32 // of the workers, see reserveRows
}

// arenaKey is the arena's in a [delegate.Scratch].
type arenaKey struct{}

// arenaIn is the arena of a scratch, or a new one where there is no scratch.
func arenaIn(s *delegate.Scratch) *arena {
	if s == nil {
		return &arena{}
	}
	part, err := s.Part(arenaKey{}, func() (io.Closer, error) { return &arena{}, nil })
	if err != nil {
		return &arena{}
	}
	return part.(*arena)
}

// Close does nothing: units keep what they use.
func (*arena) Close() error { return nil }

// expect tells of a unit that will take so many bytes.
func (a *arena) expect(bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.want = max(a.want, bytes)
}

// take is at least so many bytes, the same for all units as far as they are enough.
func (a *arena) take(bytes int64) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	if int64(len(a.bytes)) < bytes {
		a.bytes = tensor.AlignedBytes(int(max(bytes, a.want)))
	}
	return a.bytes
}

// takeRows is memory for gathered rows for so many workers.
func (a *arena) takeRows(workers int) [][]float32 {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.rows) < workers {
		a.rows = append(a.rows, make([]float32, gatheredRows*gatheredDepth))
	}
	return a.rows
}

// places is where values between nodes lie in an arena.
type places struct {
	shapes  []shape // that it is for
	offsets []int64 // by value; none for those that lie elsewhere
	bytes   int64
}

// placesFor are the places at the given shapes.
func (g *graph) placesFor(s []shape) *places {
	items, index := g.items(s, true)
	p := &places{shapes: s, offsets: make([]int64, len(g.Values)), bytes: packedBytes(items) + overread}
	byID := make([]int64, len(items))
	for _, it := range items {
		byID[it.id] = it.offset
	}
	for v := range p.offsets {
		p.offsets[v] = none
		if id, ok := index[v]; ok {
			p.offsets[v] = byID[id]
		}
	}
	return p
}

// fit reports places that are for the given shapes.
func (p *places) fit(s []shape) bool { return p != nil && slices.Equal(p.shapes, s) }
