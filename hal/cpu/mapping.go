package cpu

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Mapping is a read-only view of a file's bytes. Writing to it faults, and so does
// reading it after the file was made shorter.
type Mapping struct {
	once  sync.Once
	bytes []byte
}

// MapFile maps the first size bytes of f, which may be closed afterwards.
func MapFile(f *os.File, size int64) (*Mapping, error) {
	b, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	return &Mapping{bytes: b}, nil
}

// Bytes is the file's contents, page aligned, valid until Close.
func (m *Mapping) Bytes() []byte { return m.bytes }

// Close ends the mapping. Closing twice is fine.
func (m *Mapping) Close() {
	m.once.Do(func() {
		_ = unix.Munmap(m.bytes) // it fails for addresses that are no mapping, which these are
		m.bytes = nil
	})
}
