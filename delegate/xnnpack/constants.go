package xnnpack

import (
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/internal/flatbuf"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// constantTable is where the payload keeps constants: in the current form a list of
// places (constant_data), in the older one of buffers (constant_buffer). Number 0 of
// either stands for none.
type constantTable struct {
	places  []constantPlace
	buffers [][]byte
	aligned map[uint32][]byte // those in use: each is copied at most once
	stored  int               // their bytes
	asked   int               // bytes of all values made of them
}

// A constant may serve many values. What is made of them stays within so many times
// the bytes that are there, and some.
const (
	constantReuse = 16
	constantSlack = 64 << 20
)

type constantPlace struct {
	offset, size uint64
	key          string // a name among the program's named data; offset then means nothing
}

func (c *constantTable) read(root flatbuf.Table) {
	c.aligned = make(map[uint32][]byte)
	c.places = flatbuf.List(root, 8, "constant_data", func(t flatbuf.Table) constantPlace {
		return constantPlace{t.Uint64(0, "offset", 0), t.Uint64(1, "size", 0), t.String(2, "named_key")}
	})
	c.buffers = flatbuf.List(root, 6, "constant_buffer", func(t flatbuf.Table) []byte {
		return t.Bytes(0, "storage")
	})
}

// readConstant finds the bytes of a value that is a constant.
func (r *reader) readConstant(v *value, t flatbuf.Table, place string) error {
	buffer := t.Uint32(3, "constant_buffer_idx", 0)
	if buffer == 0 || !t.OK() {
		return nil
	}
	if v.Arg != none {
		return payloadError(place, "constant that is an argument of the call too")
	}
	data, err := r.constant(buffer, v.Datatype.bytes(v.Shape), place)
	if int64(buffer) < int64(len(r.table.places)) {
		v.found = foundData{r.table.places[buffer].key, data}
	}
	if v.Data = data; err == nil && v.Datatype == qdint8 {
		return v.checkPerToken(place)
	}
	return err
}

// foundData is the key under which the bytes of a constant were found, empty for none.
type foundData struct {
	key  string
	data []byte
}

// of is the key of data, if it is still what was found.
func (f *foundData) of(data []byte) string {
	if len(data) == 0 || len(f.data) != len(data) || &f.data[0] != &data[0] {
		return ""
	}
	return f.key
}

// constant is the first size bytes of constant number i, from a multiple of 4 on. Its
// capacity is what may be read behind them.
func (r *reader) constant(i uint32, size int, place string) ([]byte, error) {
	data, ok := r.table.aligned[i]
	if !ok {
		found, err := r.constantBytes(i, place)
		if err != nil {
			return nil, err
		}
		data = aligned(found, 4)
		r.table.aligned[i] = data
		r.table.stored += len(data)
	}
	if err := r.table.ask(size, place); err != nil {
		return nil, err
	}
	if len(data) < size {
		return nil, payloadError(place, "constant %d of %d bytes, want %d", i, len(data), size)
	}
	return data[:size], nil
}

// ask counts bytes of a value that is made of constants.
func (c *constantTable) ask(size int, place string) error {
	if c.asked += size; c.asked > constantReuse*c.stored+constantSlack {
		return payloadError(place, "%d bytes of values made of %d bytes of constants", c.asked, c.stored)
	}
	return nil
}

func (r *reader) constantBytes(i uint32, place string) ([]byte, error) {
	if len(r.table.places) == 0 {
		if int64(i) >= int64(len(r.table.buffers)) {
			return nil, payloadError(place, "constant %d of %d", i, len(r.table.buffers))
		}
		return r.table.buffers[i], nil
	}
	if int64(i) >= int64(len(r.table.places)) {
		return nil, payloadError(place, "constant %d of %d", i, len(r.table.places))
	}
	at := r.table.places[i]
	if at.key != "" {
		if r.named != nil {
			if data, ok := r.named.Named(at.key); ok {
				return data, nil
			}
		}
		return nil, delegate.Errorf(ID, delegate.ErrMissing, place,
			"named data %.80q is in neither the program nor its data files: give the .ptd file that holds it", at.key)
	}
	if n := uint64(len(r.constants)); at.offset > n || at.size > n-at.offset {
		return nil, payloadError(place, "constant %d of %d bytes at %d, the payload has %d", i, at.size, at.offset, n)
	}
	return r.constants[at.offset : at.offset+at.size], nil
}

// floatConstant is a constant of n float32.
func (r *reader) floatConstant(i uint32, n int, place string) ([]float32, error) {
	data, err := r.constant(i, n*4, place)
	if err != nil {
		return nil, err
	}
	return tensor.View[float32](data), nil
}

// aligned is data itself or, where it does not start at a multiple of n, a copy.
func aligned(data []byte, n int) []byte {
	if tensor.Aligned(data, n) {
		return data
	}
	return padded(data)
}

// padded is a copy of data that starts at a cache line and has readable bytes behind.
func padded(data []byte) []byte {
	b := tensor.AlignedBytes(len(data))
	copy(b, data)
	return b
}
