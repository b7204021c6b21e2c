package xnnpack

import (
	"runtime"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// filterMemory is memory for the panels of an image outside of the Go heap, where they would cause
// earlier garbage collections; often none is needed while programs load. It is freed by close, or
// when no filter refers to it any more.
type filterMemory struct{ pages *cpu.Mapping }

// ownPages is the minimum size in bytes of panels that are stored outside of the Go heap.
const ownPages = 16 << 10

// newFilterMemory returns memory for so many bytes of panels. For few of them, or if the system has no memory, the
// filterMemory is nil and the bytes are in the Go heap.
func newFilterMemory(size int64) (*filterMemory, []byte) {
	if size >= ownPages {
		if pages, err := cpu.MapMemory(size); err == nil {
			m := &filterMemory{pages}
			runtime.AddCleanup(m, (*cpu.Mapping).Close, pages)
			return m, pages.Bytes()
		}
	}
	return nil, tensor.AlignedBytes(int(size))
}

// close frees the memory; m may be nil. Filters in it must not be used afterwards.
func (m *filterMemory) close() {
	if m != nil {
		m.pages.Close()
	}
}
