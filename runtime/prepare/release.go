package prepare

import (
	"slices"

	"github.com/etrun-go/etrun/delegate/lowering"
	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/runtime/trace"
)

// constants are those of a rewritten method, whose memory is released when nothing reads them any more.
type constants struct {
	storages []ir.Storage
	released map[*byte]bool // by first byte
}

// start lists the constants of a method.
func (c *constants) start(m *ir.Method) {
	c.storages, c.released = nil, make(map[*byte]bool)
	for i := range m.Storages {
		if s := &m.Storages[i]; s.Kind.IsConstant() && len(s.Data) > 0 {
			c.storages = append(c.storages, *s)
		}
	}
}

// computed reports whether data is part of a constant that was computed at load.
func (c *constants) computed(data []byte) bool {
	return slices.ContainsFunc(c.storages, func(s ir.Storage) bool {
		return s.Kind == ir.Folded && cpu.Contains(s.Data, data)
	})
}

// readByImages are the constants of graphs that were compiled.
type readByImages struct {
	kept   [][]byte // the images read them
	packed [][]byte // the images do not need them
}

// add lists the constants of a graph. Its image does not need those in packed.
func (r *readByImages) add(g *lowering.Graph, packed [][]byte) {
	unused := make(map[*byte]int, len(packed))
	for _, data := range packed {
		unused[&data[0]] = len(data)
	}
	for i := range g.Values {
		if v := &g.Values[i]; v.Kind == tensor.KindTensor && len(v.Data) > 0 && unused[&v.Data[0]] < len(v.Data) {
			r.kept = append(r.kept, v.Data)
		}
	}
	r.packed = append(r.packed, packed...)
}

const (
	releaseBytes = 16 << 10 // smaller constants are not released
	releaseMax   = 4096     // constants of a method that are compared with each other
)

// release releases the memory of constants that neither a step of the method nor an image reads any more: those folded
// into other constants, and those that regions have packed. It returns the bytes of the constants of the method.
func (l *load) release(m *ir.Method, images readByImages) (n int64) {
	if l.KeepConstants || l.Observed {
		return 0
	}
	read, ok := readBy(m, images)
	if !ok {
		return 0
	}
	for i := range l.constants.storages {
		s := &l.constants.storages[i]
		if len(s.Data) < releaseBytes || overlapsAny(read, s.Data) || l.constants.released[&s.Data[0]] {
			continue
		}
		if s.Kind == ir.Folded {
			cpu.Discard(s.Data)
			l.hold(trace.MemoryFolded, -int64(len(s.Data)))
		} else if !l.Claims.release(s.Data) {
			continue
		}
		l.constants.released[&s.Data[0]] = true
		n += int64(len(s.Data))
	}
	for _, data := range images.packed {
		if !overlapsAny(read, data) && !l.constants.released[&data[0]] {
			l.Claims.release(data)
		}
	}
	return n
}

// readBy returns the constants of a method that steps and images read. ok is false if there are too many.
func readBy(m *ir.Method, images readByImages) (list [][]byte, ok bool) {
	for i := range m.Storages {
		if s := &m.Storages[i]; s.Kind.IsConstant() && len(s.Data) > 0 && (s.Output || s.First <= s.Last) {
			list = append(list, s.Data)
		}
	}
	list = append(list, images.kept...)
	return list, len(list)+len(images.packed) <= releaseMax && len(m.Storages) <= releaseMax
}

func overlapsAny(list [][]byte, data []byte) bool {
	return slices.ContainsFunc(list, func(b []byte) bool { return cpu.Overlap(b, data) })
}

// mayRelease reports whether constants that a backend has packed will be released, unless something else reads them.
func (l *load) mayRelease(data []byte) bool {
	return len(data) > 0 && !l.KeepConstants && (l.Claims.owned(data) || l.constants.computed(data))
}
