package etrun

import (
	"slices"

	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/trace"
)

// unread lists the constants of a method that images have read, so that the memory of those that
// nothing reads any more can be released.
type unread struct {
	graphs [][]byte       // constants of regions that their images read
	packed [][]byte       // constants of regions and merged payloads that their images do not need
	given  map[*byte]bool // released constants, by first byte
}

const (
	releaseBytes = 16 << 10 // smaller constants are not released
	releaseMax   = 4096     // constants of a method that are compared with each other
)

// release releases the memory of constants that neither a step nor an image reads any more: those
// folded into other constants, and those that regions have packed.
func (p *preparation) release(w *watch, done *prepared) {
	if p.config.keepConstants || p.config.wants.Any(trace.Values) {
		return
	}
	read, ok := p.read(done.ir)
	if !ok {
		return
	}
	for i := range p.base.ir.Storages {
		s := &p.base.ir.Storages[i]
		if !s.Kind.IsConstant() || len(s.Data) < releaseBytes || overlapsAny(read, s.Data) || p.given[&s.Data[0]] {
			continue
		}
		kind := trace.MemoryProgram
		if s.Kind == ir.Folded {
			kind = trace.MemoryFolded
			cpu.Discard(s.Data)
		} else if !p.discard(s.Data) {
			continue
		}
		if p.given == nil {
			p.given = make(map[*byte]bool)
		}
		p.given[&s.Data[0]] = true
		done.released += int64(len(s.Data))
		p.hold(w, kind, -int64(len(s.Data)))
	}
	for _, data := range p.packed {
		if !overlapsAny(read, data) && !p.given[&data[0]] {
			p.discard(data)
		}
	}
}

// read returns the constants of a method that steps and images read. ok is false if there are too
// many.
func (p *preparation) read(m *ir.Method) (list [][]byte, ok bool) {
	for i := range m.Storages {
		if s := &m.Storages[i]; s.Kind.IsConstant() && len(s.Data) > 0 && (s.Output || s.First <= s.Last) {
			list = append(list, s.Data)
		}
	}
	list = append(list, p.graphs...)
	return list, len(list)+len(p.packed) <= releaseMax && len(m.Storages) <= releaseMax
}

func overlapsAny(list [][]byte, data []byte) bool {
	return slices.ContainsFunc(list, func(b []byte) bool { return cpu.Overlap(b, data) })
}

// keep records which constants the image of a region's graph reads, and which it does not need.
func (p *preparation) keep(g *delegate.Graph, packed [][]byte) {
	gone := make(map[*byte]int, len(packed))
	for _, data := range packed {
		gone[&data[0]] = len(data)
	}
	for i := range g.Values {
		if v := &g.Values[i]; v.Kind == tensor.KindTensor && len(v.Data) > 0 && gone[&v.Data[0]] < len(v.Data) {
			p.graphs = append(p.graphs, v.Data)
		}
	}
	p.packed = append(p.packed, packed...)
}

// mayRelease reports whether constants that a backend has packed will be released, unless something
// else reads them.
func (p *preparation) mayRelease(data []byte) bool {
	return len(data) > 0 && !p.config.keepConstants && (p.mayDiscard(data) || p.isFolded(data))
}

// isFolded reports whether data is part of a constant that was computed at load.
func (p *preparation) isFolded(data []byte) bool {
	return slices.ContainsFunc(p.base.ir.Storages, func(s ir.Storage) bool {
		return s.Kind == ir.Folded && cpu.Contains(s.Data, data)
	})
}
