// Package safetensors reads Hugging Face's safetensors files. Allocations are bounded by the
// size of the file and by the caller's limit.
package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/etrun-go/etrun/cmd/etrun/internal/npy"
	"github.com/etrun-go/etrun/internal/jsonerror"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// Classes of errors; match with errors.Is. A file above the limit is [npy.ErrLimit].
var (
	ErrFormat      = errors.New("malformed safetensors file")
	ErrUnsupported = errors.New("unsupported safetensors file")
)

// maxHeader is the maximum size of the header.
const maxHeader = 8 << 20

// maxTensors is the maximum number of tensors.
const maxTensors = 1 << 16

// startBytes is the number of first bytes that identify a file.
const startBytes = 10

// IsStart reports whether start is the beginning of a file: the length of the header, and its first bytes.
func IsStart(start []byte) bool {
	if len(start) < startBytes {
		return false
	}
	n := binary.LittleEndian.Uint64(start)
	return n >= 2 && n <= maxHeader && (string(start[8:10]) == `{"` || string(start[8:10]) == "{}")
}

// entry is the description of a tensor.
type entry struct {
	DType   string  `json:"dtype"`
	Shape   []int64 `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

// dtypes maps type names to the element types of programs.
var dtypes = map[string]tensor.DType{
	"F64": tensor.Float64, "F32": tensor.Float32, "F16": tensor.Float16, "BF16": tensor.BFloat16, "BOOL": tensor.Bool,
	"I64": tensor.Int64, "I32": tensor.Int32, "I16": tensor.Int16, "I8": tensor.Int8, "U8": tensor.Uint8,
	"U16": tensor.Uint16, "U32": tensor.Uint32, "U64": tensor.Uint64,
}

// Read reads the tensors of a file of size bytes, in file order. They have at most limit
// bytes in total.
func Read(r io.ReaderAt, size, limit int64) ([]*npy.Array, error) {
	entries, begin, err := readHeader(r, size)
	if err != nil {
		return nil, err
	}
	var list []*npy.Array
	for _, e := range entries {
		a, err := e.array(size - begin)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", e.name, err)
		}
		n := e.Offsets[1] - e.Offsets[0]
		if n > limit {
			return nil, fmt.Errorf("%w: %q has %d bytes, the remaining limit is %d", npy.ErrLimit, e.name, n, limit)
		}
		limit -= n
		a.Data = tensor.AlignedBytes(int(n))
		if got, err := r.ReadAt(a.Data, begin+e.Offsets[0]); got < len(a.Data) {
			return nil, fmt.Errorf("%w: %q: %w", ErrFormat, e.name, err)
		}
		list = append(list, a)
	}
	return list, nil
}

// named is an entry with its name.
type named struct {
	name string
	entry
}

// readHeader reads the header; begin is the offset of the elements.
func readHeader(r io.ReaderAt, size int64) (entries []*named, begin int64, err error) {
	start := make([]byte, startBytes)
	if n, _ := r.ReadAt(start, 0); !IsStart(start[:n]) {
		return nil, 0, fmt.Errorf("%w: first bytes %q", ErrFormat, start[:n])
	}
	n := int64(binary.LittleEndian.Uint64(start))
	if n > size-8 {
		return nil, 0, fmt.Errorf("%w: a header of %d bytes in a file of %d", ErrFormat, n, size)
	}
	text := make([]byte, n)
	if got, err := r.ReadAt(text, 8); got < len(text) {
		return nil, 0, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrFormat, jsonerror.Plain(err))
	}
	if len(raw) > maxTensors {
		return nil, 0, fmt.Errorf("%w: %d tensors, want at most %d", ErrUnsupported, len(raw), maxTensors)
	}
	for name, text := range raw {
		if name == "__metadata__" {
			continue
		}
		e := &named{name: name}
		d := json.NewDecoder(bytes.NewReader(text))
		if err := d.Decode(&e.entry); err != nil {
			return nil, 0, fmt.Errorf("%w: %q: %w", ErrFormat, name, jsonerror.Plain(err))
		}
		if len(e.Offsets) != 2 {
			return nil, 0, fmt.Errorf("%w: %q: %d offsets, want 2", ErrFormat, name, len(e.Offsets))
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b *named) int {
		return cmp.Or(cmp.Compare(a.Offsets[0], b.Offsets[0]), cmp.Compare(a.name, b.name))
	})
	return entries, 8 + n, nil
}

// array checks an entry against the size of all elements, and returns an array without
// elements.
func (e *named) array(bytes int64) (*npy.Array, error) {
	d, ok := dtypes[e.DType]
	if !ok {
		return nil, fmt.Errorf("%w: elements of type %.20q", ErrUnsupported, e.DType)
	}
	sizes := make([]int, len(e.Shape))
	for i, n := range e.Shape {
		if n < 0 || n > math.MaxInt {
			return nil, fmt.Errorf("%w: size %d", ErrFormat, n)
		}
		sizes[i] = int(n)
	}
	if err := tensor.CheckShape(sizes, nil); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	n, ok := tensor.Product(sizes)
	from, to := e.Offsets[0], e.Offsets[1]
	if !ok || from < 0 || to < from || to > bytes || int64(n) != (to-from)/int64(d.Size()) || (to-from)%int64(d.Size()) != 0 {
		return nil, fmt.Errorf("%w: bytes %d to %d of %d for %v %v", ErrFormat, from, to, bytes, d, sizes)
	}
	return &npy.Array{Name: e.name, DType: d, Sizes: sizes}, nil
}
