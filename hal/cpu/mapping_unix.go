//go:build unix

package cpu

import (
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Mapping is memory outside the Go heap: a mapped file or bytes that were read, which are read-only,
// or plain memory. Writing to the former faults, and so does reading a mapped file that was truncated.
type Mapping struct {
	mu      sync.Mutex
	bytes   []byte
	closing chan struct{} // of a lease, see [MapLeased]

	detached bool // no longer a file
}

// MapFile maps the first size bytes of f, which may be closed afterwards.
func MapFile(f *os.File, size int64) (*Mapping, error) {
	return mmap(int(f.Fd()), int(size), unix.PROT_READ, unix.MAP_PRIVATE)
}

func mmap(fd, size, protection, flags int) (*Mapping, error) {
	p, err := unix.MmapPtr(fd, 0, nil, uintptr(size), protection, flags)
	if err != nil {
		return nil, err
	}
	return &Mapping{bytes: unsafe.Slice((*byte)(p), size)}, nil
}

// FillMapping creates a zeroed mapping of size bytes and calls fill to write to it. With huge pages
// this takes half the time of filling Go memory.
func FillMapping(size int64, fill func([]byte) error) (*Mapping, error) {
	m, err := MapMemory(size)
	if err != nil {
		return nil, err
	}
	if err = fill(m.bytes); err == nil {
		err = unix.Mprotect(m.bytes, unix.PROT_READ)
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// MapMemory maps size bytes of zeroed, writable memory, with huge pages where they fit.
func MapMemory(size int64) (*Mapping, error) { return mapMemory(size, UseLargePages) }

// Sparse reports whether memory of MapSparse costs nothing before it is touched.
const Sparse = true

// MapSparse does that for memory much of which may never be touched: with small pages, as a huge one would be filled for a byte.
func MapSparse(size int64) (*Mapping, error) { return mapMemory(size, UseSmallPages) }

func mapMemory(size int64, advise func([]byte)) (*Mapping, error) {
	m, err := mmap(-1, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err == nil {
		advise(m.bytes)
	}
	return m, err
}

// Bytes returns the contents, page aligned and valid until Close.
func (m *Mapping) Bytes() []byte { return m.bytes }

// Close unmaps the memory. Closing twice is allowed.
func (m *Mapping) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.bytes) == 0 {
		return
	}
	if m.closing != nil {
		close(m.closing)
	}
	_ = unix.MunmapPtr(unsafe.Pointer(&m.bytes[0]), uintptr(cap(m.bytes))) // fails only for addresses that are not mapped
	m.bytes = nil
}
