package compiletest

import (
	"fmt"

	"github.com/etrun-go/etrun/internal/flatbuf"
)

// Tags of the union of values.
const (
	tagNull       = 1
	tagInt        = 2
	tagTensor     = 5
	tagIntList    = 7
	tagTensorList = 10
	tagOptional   = 11
)

// value is an entry of the table of values. The fields are those of a tensor, except items.
type value struct {
	tag      uint8
	items    []int64
	dtype    int8
	sizes    []int32
	order    []uint8
	offset   int32 // storage_offset
	constant uint32
	memory   uint32 // 0 if it has no place
	place    uint64
	dynamism int8
	absent   bool // it has no list of sizes, or no dim order
	external bool
	key      string // of an external one
}

// elementSize has the bytes of an element, by scalar type.
var elementSize = map[int8]uint64{0: 1, 1: 1, 2: 2, 3: 4, 4: 8, 5: 2, 6: 4, 7: 8, 8: 4, 9: 8, 10: 16, 11: 1, 12: 1, 13: 1, 15: 2, 27: 2, 28: 4, 29: 8}

func (v *value) bytes() uint64 {
	n := elementSize[v.dtype]
	for _, s := range v.sizes {
		n *= uint64(s)
	}
	return n
}

func (v *value) String() string { return fmt.Sprint(v.tag, v.dtype, v.sizes, v.order, v.dynamism) }

// overlaps reports whether two tensors have a common byte in the planned memory.
func (v *value) overlaps(w *value) bool {
	return v.tag == tagTensor && w.tag == tagTensor && v.memory > 0 && v.memory == w.memory &&
		v.place < w.place+w.bytes() && w.place < v.place+v.bytes()
}

func readValues(plan flatbuf.Table) (list []value) {
	flatbuf.Each(plan, 2, "values", func(t flatbuf.Table) {
		tag, body := t.Union(0, "val")
		v := value{tag: tag}
		switch tag {
		case tagTensor:
			v.tensor(body)
		case tagIntList:
			v.items = flatbuf.Slice(body.Vector(0, "items", 8), flatbuf.Vector.Int64)
		case tagTensorList, tagOptional:
			for _, i := range flatbuf.Slice(body.Vector(0, "items", 4), flatbuf.Vector.Int32) {
				v.items = append(v.items, int64(i))
			}
		}
		list = append(list, v)
	})
	return list
}

func (v *value) tensor(t flatbuf.Table) {
	v.absent = !t.Has(2) || !t.Has(3)
	v.dtype, v.offset = t.Int8(0, "scalar_type", 0), t.Int32(1, "storage_offset", 0)
	v.sizes = flatbuf.Slice(t.Vector(2, "sizes", 4), flatbuf.Vector.Int32)
	v.order = flatbuf.Slice(t.Vector(3, "dim_order", 1), flatbuf.Vector.Uint8)
	v.constant, v.dynamism = t.Uint32(5, "data_buffer_idx", 0), t.Int8(8, "shape_dynamism", 0)
	if t.Has(6) {
		a := t.Table(6, "allocation_info")
		v.memory = a.Uint32(0, "memory_id", 0)
		v.place = uint64(a.Uint32(1, "low", 0)) | uint64(a.Uint32(2, "high", 0))<<32
		if v.memory == 0 {
			v.memory = 1 << 31 // never valid
		}
	}
	if t.Has(9) {
		v.external = t.Table(9, "extra_tensor_info").Int8(2, "location", 0) == 1
		v.key = t.Table(9, "extra_tensor_info").String(1, "fully_qualified_name")
	}
}

// physical returns the sizes of a tensor in the order of its memory.
func (v *value) physical() []int {
	list := []int{}
	for _, d := range v.order {
		if int(d) < len(v.sizes) {
			list = append(list, int(v.sizes[d]))
		}
	}
	return list
}
