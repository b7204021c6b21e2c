package native

import (
	"runtime"
	"sync/atomic"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// slab is memory outside of Go's heap from which packed weights are allocated one after the other.
// Its large pages cause far fewer page faults, and it does not trigger garbage collection. It is
// unmapped when the last user releases it.
type slab struct {
	pages *cpu.Mapping
	free  []byte
	uses  atomic.Int32
}

// newSlab maps size bytes, of which at least the first dense ones will be used: only these get
// large pages. It returns nil, from which nothing can be allocated, if size is small or the system
// has no more pages. The slab has one user.
func newSlab(size, dense int64) *slab {
	if size < graph.OwnPages {
		return nil
	}
	pages, err := cpu.MapMemory(size)
	if err != nil {
		return nil
	}
	b := pages.Bytes()
	cpu.UseSmallPages(b[min(dense, size):])
	s := &slab{pages: pages, free: b}
	s.uses.Store(1)
	runtime.AddCleanup(s, (*cpu.Mapping).Close, pages)
	return s
}

// next returns the next n bytes, followed by padding, or nil if there are fewer. It returns the
// same bytes until take. A nil slab has none.
func (s *slab) next(n int) []byte {
	if s == nil || n > len(s.free)-tensor.Padding {
		return nil
	}
	return s.free[:n:n]
}

// take allocates the next n bytes and adds a user to the slab.
func (s *slab) take(n int) {
	size := graph.RoundUp(n+tensor.Padding, tensor.Alignment)
	s.free = s.free[min(size, len(s.free)):]
	s.uses.Add(1)
}

// release removes a user. It does nothing on a nil slab.
func (s *slab) release() {
	if s != nil && s.uses.Add(-1) == 0 {
		s.pages.Close()
	}
}
