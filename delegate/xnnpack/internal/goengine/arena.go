package goengine

import (
	"io"
	"sync"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// arena is the memory of intermediate values in the Go engine, and of its loops, for units that have
// no blocks of the method's memory plan that are large enough. The units of an instance share one,
// since only one of them runs at a time. When a unit enlarges it, bound units continue to use the
// old memory.
type arena struct {
	mu    sync.Mutex
	want  int64 // minimum to allocate: the need of the largest unit at its declared sizes
	bytes []byte
	work  []int8Work // of the workers
}

// arenaKey is the key of the arena in a [delegate.Scratch].
type arenaKey struct{}

// arenaIn returns the arena of a scratch, or a new one without a scratch.
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

// workers returns the working memory of at least n workers for products of bytes.
func (a *arena) workers(n int) []int8Work {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.work) < n {
		a.work = make([]int8Work, n)
	}
	return a.work
}

// Close does nothing: units hold references to the memory they use.
func (*arena) Close() error { return nil }

// expect announces a unit that will need so many bytes.
func (a *arena) expect(bytes int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.want = max(a.want, bytes)
}

// take returns at least so many bytes, the same memory for all units as long as it is large enough.
func (a *arena) take(bytes int64) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	if int64(len(a.bytes)) < bytes {
		a.bytes = tensor.AlignedBytes(int(max(bytes, a.want)))
	}
	return a.bytes
}

// int8Work is a worker's working memory for a task.
type int8Work struct {
	rows     []int // offsets of rows: in places, or in the product's table
	places   []int
	sums     []int32
	floats   []float32
	zeros    []int32
	factors  []float32
	gathered []uint8
}

// Memory returns the bytes of the arena and of the workers' memory.
func (a *arena) Memory() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := cap(a.bytes)
	for i := range a.work {
		w := &a.work[i]
		n += 8*(cap(w.rows)+cap(w.places)) + 4*(cap(w.sums)+cap(w.floats)+cap(w.zeros)+cap(w.factors)) + cap(w.gathered)
	}
	return int64(n)
}
