package pte

import (
	"github.com/etrun-go/etrun/internal/flatbuf"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// tensor reads a Tensor.
func (m *methodReader) tensor(t flatbuf.Table) *Tensor {
	out := &Tensor{DType: dtype(t), Dynamism: dynamism(t)}
	out.Sizes, out.DimOrder = shape(t, 2, 3, m.ints)
	if off := t.Int32(1, "storage_offset", 0); off != 0 {
		t.Failf(ErrUnsupported, 1, "storage_offset", "storage offset %d, want 0", off)
	}
	if layout := t.Int8(7, "layout", 0); layout != 0 {
		t.Failf(ErrUnsupported, 7, "layout", "layout %d, want 0 (strided)", layout)
	}
	extra := flatbuf.One(t, 9, "extra_tensor_info", readExtra)
	out.Name, out.Device = extra.name, extra.device
	if t.OK() {
		m.bind(t, out, extra)
	}
	return out
}

// dtype reads field 0, scalar_type, of a tensor's table.
func dtype(t flatbuf.Table) tensor.DType {
	d := tensor.DType(t.Int8(0, "scalar_type", 0))
	if !d.Valid() {
		t.Failf(ErrFormat, 0, "scalar_type", "unknown dtype %d", int8(d))
	}
	return d
}

func dynamism(t flatbuf.Table) tensor.Dynamism {
	d := t.Int8(8, "shape_dynamism", 0)
	if d < 0 || d > int8(tensor.DynamicUnbound) {
		t.Failf(ErrFormat, 8, "shape_dynamism", "shape dynamism %d, want 0 to %d", d, tensor.DynamicUnbound)
	}
	return tensor.Dynamism(d)
}

// extra is ExtraTensorInfo.
type extra struct {
	segment  uint64
	name     string
	external bool
	device   int8
}

func readExtra(t flatbuf.Table) extra {
	location := t.Int8(2, "location", 0)
	if location != 0 && location != 1 {
		t.Failf(ErrUnsupported, 2, "location", "tensor data location %d, known are 0 (segment) and 1 (external)", location)
	}
	return extra{
		segment:  t.Uint64(0, "mutable_data_segments_idx", 0),
		name:     t.String(1, "fully_qualified_name"),
		external: location == 1,
		device:   t.Int8(3, "device_type", 0),
	}
}

// storageOf returns the source of a tensor's bytes.
func storageOf(external, planned, stored bool) Storage {
	switch {
	case external && planned:
		return ExternalPlanned
	case external:
		return External
	case stored && planned:
		return PlannedInit
	case stored:
		return Constant
	case planned:
		return Planned
	}
	return Unplanned
}

// bind sets the tensor's bytes or its location in an arena.
func (m *methodReader) bind(t flatbuf.Table, out *Tensor, info extra) {
	idx := t.Uint32(bufferIdx, "data_buffer_idx", 0)
	planned := t.Has(6)
	out.Storage = storageOf(info.external, planned, idx > 0)
	if info.external && info.name == "" {
		t.Failf(ErrFormat, 9, "extra_tensor_info.fully_qualified_name", "external tensor without a name")
	}
	if planned {
		at := flatbuf.One(t, 6, "allocation_info", func(t flatbuf.Table) place { return m.place(t, out) })
		out.Arena, out.Offset = at.arena, at.offset
	}
	switch out.Storage {
	case Constant:
		out.Data = m.constant(t, idx, out.NBytes())
	case PlannedInit:
		out.Data = m.initialState(t, out, idx, info.segment)
	}
}

// place is a location in an arena.
type place struct {
	arena  int
	offset int64
}

// place reads the AllocationDetails of a tensor and checks them against the arena. The declared bound of a
// view may be larger than what it is a view of, which bounds it.
func (m *methodReader) place(t flatbuf.Table, out *Tensor) place {
	n := out.NBytes()
	id := t.Uint32(0, "memory_id", 0)
	if id == 0 || uint64(id) > uint64(len(m.out.Arenas)) {
		t.Failf(ErrFormat, 0, "memory_id", "memory id %d, want 1 to %d", id, len(m.out.Arenas))
		return place{}
	}
	low, high := t.Uint32(1, "memory_offset_low", 0), t.Uint32(2, "memory_offset_high", 0)
	off, size := uint64(high)<<32|uint64(low), uint64(m.out.Arenas[id-1].Size)
	if off <= size && uint64(n) > size-off && out.Storage == Planned {
		m.outside = append(m.outside, outside{m.next, t, out})
	} else if off > size || uint64(n) > size-off {
		t.Failf(ErrFormat, 1, "memory_offset_low", notInside, n, off, id, size)
	}
	return place{int(id - 1), int64(off)}
}

// outside is a value whose place ends outside its arena, and the table of the place.
type outside struct {
	value  int
	table  flatbuf.Table
	tensor *Tensor
}

const notInside = "%d bytes at memory offset %d, planned buffer %d has %d"

// checkPlaces refuses places outside arenas, except those of the results of et_view.
func (m *methodReader) checkPlaces(t flatbuf.Table) {
	if len(m.outside) == 0 || !t.OK() {
		return
	}
	views := m.views()
	for _, o := range m.outside {
		if x := o.tensor; !views[o.value] {
			o.table.Failf(ErrFormat, 1, "memory_offset_low", notInside, x.NBytes(), x.Offset, x.Arena+1, m.out.Arenas[x.Arena].Size)
			t.Within("allocation_info", -1)
			t.Within("values", o.value)
			return
		}
	}
}

// views returns the results of et_view.
func (m *methodReader) views() map[int]bool {
	views := make(map[int]bool)
	for c := range m.out.Chains {
		for _, in := range m.out.Chains[c].Instructions {
			if n := len(in.Args); in.Kind == KernelCall && n > 0 && m.out.Operators[in.Index].Name == "executorch_prim::et_view" {
				views[in.Args[n-1]] = true
			}
		}
	}
	return views
}

// constant returns the bytes of a constant, in the constant segment or inline.
func (m *methodReader) constant(t flatbuf.Table, idx uint32, n int64) []byte {
	if m.constants.Len() > 0 {
		return m.constants.cut(t, idx, n)
	}
	if uint64(idx) >= uint64(len(m.inline)) {
		t.Failf(ErrFormat, bufferIdx, "data_buffer_idx", "constant %d, the file has %d", idx, len(m.inline))
		return nil
	}
	data := m.inline[idx]
	if n > int64(len(data)) {
		t.Failf(ErrFormat, bufferIdx, "data_buffer_idx", "constant %d of %d bytes, the tensor has %d", idx, len(data), n)
		return nil
	}
	return data[:n:n]
}
