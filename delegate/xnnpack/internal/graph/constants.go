package graph

import (
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/internal/flatbuf"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// constantTable is the payload's table of constants: in the current format a list of places
// (constant_data), in the older one a list of buffers (constant_buffer). Index 0 of either means no
// constant.
type constantTable struct {
	Places  []constantPlace
	buffers [][]byte
	aligned map[uint32][]byte // constants in use, by index: each is copied at most once
	stored  int               // size of aligned in bytes
	asked   int               // bytes of all values that use them
}

// Several values may use the same constant. The total size of the values is limited to constantReuse
// times the stored bytes plus constantSlack.
const (
	constantReuse = 16
	constantSlack = 64 << 20
)

type constantPlace struct {
	offset, size uint64
	Key          string // name in the program's named data, for which offset is unused
}

// Read reads the table.
func (c *constantTable) Read(root flatbuf.Table) {
	c.aligned = make(map[uint32][]byte)
	c.Places = flatbuf.List(root, 8, "constant_data", func(t flatbuf.Table) constantPlace {
		return constantPlace{t.Uint64(0, "offset", 0), t.Uint64(1, "size", 0), t.String(2, "named_key")}
	})
	c.buffers = flatbuf.List(root, 6, "constant_buffer", func(t flatbuf.Table) []byte {
		return t.Bytes(0, "storage")
	})
}

// readConstant sets the bytes of a value that is a constant.
func (r *Reader) readConstant(v *Value, t flatbuf.Table, place string) error {
	buffer := t.Uint32(3, "constant_buffer_idx", 0)
	if buffer == 0 || !t.OK() {
		return nil
	}
	if v.Arg != None {
		return PayloadError(place, "constant that is an argument of the call too")
	}
	data, err := r.constant(buffer, v.Datatype.Bytes(v.Shape), place)
	if int64(buffer) < int64(len(r.Table.Places)) && r.Table.Places[buffer].Key != "" {
		v.Found = &FoundData{r.Table.Places[buffer].Key, data}
	}
	if v.Data = data; err == nil && v.Datatype == QDInt8 {
		return v.checkPerToken(place)
	}
	return err
}

// FoundData is a constant's bytes and the key under which they were found.
type FoundData struct {
	Key  string
	Data []byte
}

// IsNamed reports whether the value has the bytes of named data of the program.
func (v *Value) IsNamed() bool { return v.Found.keyOf(v.Data) != "" }

// keyOf returns the key if data is still the slice that was found, else "". f may be nil.
func (f *FoundData) keyOf(data []byte) string {
	if f == nil || len(data) == 0 || len(f.Data) != len(data) || &f.Data[0] != &data[0] {
		return ""
	}
	return f.Key
}

// constant returns the first size bytes of constant i, aligned to 4 bytes. The bytes up to the
// capacity are readable.
func (r *Reader) constant(i uint32, size int, place string) ([]byte, error) {
	data, ok := r.Table.aligned[i]
	if !ok {
		found, err := r.constantBytes(i, place)
		if err != nil {
			return nil, err
		}
		data = Aligned(found, 4)
		r.Table.aligned[i] = data
		r.Table.stored += len(data)
	}
	if err := r.Table.ask(size, place); err != nil {
		return nil, err
	}
	if len(data) < size {
		return nil, PayloadError(place, "constant %d of %d bytes, want %d", i, len(data), size)
	}
	return data[:size], nil
}

// ask counts the bytes of a value that uses constants, and fails above the limit.
func (c *constantTable) ask(size int, place string) error {
	if c.asked += size; c.asked > constantReuse*c.stored+constantSlack {
		return PayloadError(place, "%d bytes of values made of %d bytes of constants", c.asked, c.stored)
	}
	return nil
}

func (r *Reader) constantBytes(i uint32, place string) ([]byte, error) {
	if len(r.Table.Places) == 0 {
		if int64(i) >= int64(len(r.Table.buffers)) {
			return nil, PayloadError(place, "constant %d of %d", i, len(r.Table.buffers))
		}
		return r.Table.buffers[i], nil
	}
	if int64(i) >= int64(len(r.Table.Places)) {
		return nil, PayloadError(place, "constant %d of %d", i, len(r.Table.Places))
	}
	at := r.Table.Places[i]
	if at.Key != "" {
		if r.named != nil {
			if data, ok := r.named.Named(at.Key); ok {
				return data, nil
			}
		}
		return nil, delegate.Errorf(ID, delegate.ErrMissing, place,
			"named data %.80q is in neither the program nor its data files: give the .ptd file that holds it", at.Key)
	}
	if n := uint64(len(r.constants)); at.offset > n || at.size > n-at.offset {
		return nil, PayloadError(place, "constant %d of %d bytes at %d, the payload has %d", i, at.size, at.offset, n)
	}
	return r.constants[at.offset : at.offset+at.size], nil
}

// floatConstant returns constant i as n float32.
func (r *Reader) floatConstant(i uint32, n int, place string) ([]float32, error) {
	data, err := r.constant(i, n*4, place)
	if err != nil {
		return nil, err
	}
	return tensor.View[float32](data), nil
}

// Aligned returns data, or a copy if data is not aligned to n bytes.
func Aligned(data []byte, n int) []byte {
	if tensor.Aligned(data, n) {
		return data
	}
	return Padded(data)
}

// Padded returns a copy of data that is aligned to a cache line and followed by readable bytes.
func Padded(data []byte) []byte {
	b := tensor.AlignedBytes(len(data))
	copy(b, data)
	return b
}
