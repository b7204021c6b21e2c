package xnnpack

import (
	"runtime"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/gemm"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// filterMemory is memory for the panels of an image outside of the Go heap, where they would cause
// earlier garbage collections; often none is needed while programs load. It is freed by close, or
// when no filter refers to it any more.
type filterMemory struct{ pages *cpu.Mapping }

// ownPages is the minimum size in bytes of panels that are stored outside of the Go heap.
const ownPages = 16 << 10

// newFilterMemory returns memory for panels with so many elements in total, and a function that packs
// panels there. For few elements, or if the system has no memory, the filterMemory is nil and panels
// are stored in the Go heap.
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
	return m, func(src []float32, k, n, run, row, col int) *gemm.Panels {
		data := free[:gemm.Size(k, n, run)]
		free = free[len(data):]
		return gemm.PackIn(data, src, k, n, run, row, col)
	}
}

// close frees the memory; m may be nil. Filters in it must not be used afterwards.
func (m *filterMemory) close() {
	if m != nil {
		m.pages.Close()
	}
}
