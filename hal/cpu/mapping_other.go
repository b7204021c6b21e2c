//go:build !unix

package cpu

import (
	"io"
	"os"
)

// Mapping is bytes that were read: this system has no mappings.
type Mapping struct{ bytes []byte }

// MapFile reads the first size bytes of f.
func MapFile(f *os.File, size int64) (*Mapping, error) {
	return FillMapping(size, func(b []byte) error {
		_, err := f.ReadAt(b, 0)
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	})
}

// FillMapping makes size bytes, zeroed, that fill writes to.
func FillMapping(size int64, fill func([]byte) error) (*Mapping, error) {
	b := make([]byte, size)
	if err := fill(b); err != nil {
		return nil, err
	}
	return &Mapping{b}, nil
}

// MapMemory allocates size zeroed bytes.
func MapMemory(size int64) (*Mapping, error) { return &Mapping{make([]byte, size)}, nil }

// Sparse is false: memory of MapSparse costs what other memory does.
const Sparse = false

// MapSparse is MapMemory.
func MapSparse(size int64) (*Mapping, error) { return MapMemory(size) }

// Bytes returns the contents, valid until Close.
func (m *Mapping) Bytes() []byte { return m.bytes }

// Close releases the memory. Closing twice is allowed.
func (m *Mapping) Close() { m.bytes = nil }
