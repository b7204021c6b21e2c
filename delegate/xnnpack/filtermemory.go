package xnnpack

import (
	"runtime"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/gemm"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// filterMemory is memory outside Go's for the panels of an image: they would bring the next
// garbage collection nearer, of which none may be needed while programs load. It is freed by
// close, or when no filter is left that lies in it.
type filterMemory struct{ pages *cpu.Mapping }

// ownPages is the size in bytes from which panels lie on pages of their own.
const ownPages = 16 << 10

// newFilterMemory is memory for panels of so many elements together, and what packs them there.
// Where they are few, or the system has no more pages, it is nil: they lie in Go's memory.
func newFilterMemory(elements int) (*filterMemory, packPanels) {
	size := 4 * int64(elements)
	if size < ownPages {
		return nil, gemm.Pack
	}
	pages, err := cpu.MapMemory(size)
	if err != nil {
		return nil, gemm.Pack
	}
	m := &filterMemory{pages}
	runtime.AddCleanup(m, (*cpu.Mapping).Close, pages)
	free := tensor.View[float32](pages.Bytes())
	return m, func(src []float32, k, n, row, col int) *gemm.Panels {
		data := free[:gemm.Size(k, n)]
		free = free[len(data):]
		return gemm.PackIn(data, src, k, n, row, col)
	}
}

// close frees the memory, nil's too. No filter in it may be used any more.
func (m *filterMemory) close() {
	if m != nil {
		m.pages.Close()
	}
}
