package goengine

import (
	"runtime"

	"github.com/etrun-go/etrun/delegate/xnnpack/internal/graph"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// filterMemory is memory for the panels of an image outside of the Go heap, where they would cause
// earlier garbage collections; often none is needed while programs load. It is freed by close, or
// when no filter refers to it any more.
type filterMemory struct{ pages *cpu.Mapping }

// newFilterMemory returns memory for so many bytes of panels. For few of them, or if the system has no memory, the
// filterMemory is nil and the bytes are in the Go heap.
func newFilterMemory(size int64) (*filterMemory, []byte) {
	if size >= graph.OwnPages {
		if pages, err := cpu.MapMemory(size); err == nil {
			return ownedBy(pages), pages.Bytes()
		}
	}
	return nil, tensor.AlignedBytes(int(size))
}

// ownedBy returns pages as memory of filters.
func ownedBy(pages *cpu.Mapping) *filterMemory {
	m := &filterMemory{pages}
	runtime.AddCleanup(m, (*cpu.Mapping).Close, pages)
	return m
}

// Close frees the memory; m may be nil. Filters in it must not be used afterwards.
func (m *filterMemory) Close() {
	if m != nil {
		m.pages.Close()
	}
}
