package etrun

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/runtime/exec"
	"github.com/etrun-go/etrun/runtime/pte"
)

// file is the contents of a file, read or mapped.
type file struct {
	path  string // empty for bytes in memory
	data  []byte
	pages []*cpu.Mapping // with data, if these are not in the Go heap
	own   bool           // pages are of this process alone
}

// resident returns the bytes of the file that are in memory, or all of one that is mapped.
func (f *file) resident() (n int64) {
	if !f.own {
		return int64(len(f.data))
	}
	for _, m := range f.pages {
		n += cpu.Resident(m.Bytes())
	}
	return n
}

func (f *file) close() {
	for _, m := range f.pages {
		m.Close()
	}
	f.pages = nil
}

// allocate returns n zeroed, aligned and padded bytes, which the file owns.
func (f *file) allocate(n int) []byte {
	b, pages := exec.Allocate(n, cpu.MapMemory)
	if pages != nil {
		f.pages, f.own = append(f.pages, pages), true
	}
	return b
}

// setData sets the contents, and closes the pages without them, such as those of a stream that has grown.
func (f *file) setData(data []byte) *file {
	f.data = data
	f.pages = slices.DeleteFunc(f.pages, func(m *cpu.Mapping) bool {
		unused := !cpu.Contains(m.Bytes(), data)
		if unused {
			m.Close()
		} else {
			cpu.UseSmallPages(m.Bytes()) // from now on: constants are released in parts, which the kernel would fill again
		}
		return unused
	})
	return f
}

// reading describes how to read a file and the formats it may have.
type reading struct {
	limit     int64 // bytes
	mmap      bool
	leases    bool         // map files that cannot change
	forget    bool         // see cpu.Forget
	available func() int64 // see WithAvailableMemory
	want      []pte.Format
	check     func(name string, data []byte) error // see WithFileCheck; may be nil
}

// checkSize returns an error for a size above the limit, before anything is allocated.
func (r reading) checkSize(name string, size int64) error {
	if size < 0 || size > r.limit {
		return loadError(name, "", &MemoryError{Want: size, Limit: r.limit, Parts: []MemoryPart{{"file", size}}}, ErrMemory)
	}
	return nil
}

// checkStart returns an error if the first bytes belong to another format.
func (r reading) checkStart(start []byte) error { return pte.CheckStart(start, r.want...) }

// openFile reads or maps a file. Pipes are read to the end.
func openFile(ctx context.Context, path string, r reading) (*file, error) {
	f, err := openfile.Open(ctx, path, openfile.Rules{Kinds: openfile.Pipes, Limit: r.limit, Start: pte.StartBytes, Check: r.checkStart})
	if err != nil {
		return nil, openError(err)
	}
	defer f.Close()
	m, err := r.mapFile(f)
	if err != nil {
		return nil, &fs.PathError{Op: "mmap", Path: path, Err: err}
	}
	if m != nil {
		if r.forget {
			m.Forgettable()
		}
		return &file{path: path, data: m.Bytes(), pages: []*cpu.Mapping{m}}, nil
	}
	if size, _ := f.Size(); r.available != nil {
		if left := r.available(); left > 0 && size > left {
			return nil, loadError(path, "", &MemoryError{Want: size, Limit: left, Available: true, Parts: []MemoryPart{{"file", size}}}, ErrMemory)
		}
	}
	read := &file{path: path}
	b, err := f.ReadAll(read.allocate)
	if err != nil {
		read.close()
		return nil, openError(err)
	}
	return read.setData(b), nil
}

// mapFile maps a file, or returns nil if it is to be read.
func (r reading) mapFile(f *openfile.File) (*cpu.Mapping, error) {
	size, regular := f.Size()
	switch {
	case !regular || size == 0:
		return nil, nil
	case r.mmap:
		return cpu.MapFile(f.OS(), size)
	case r.leases && size >= leasedBytes:
		m, _ := cpu.MapLeased(f.OS(), size) // without a lease the file is read
		return m, nil
	}
	return nil, nil
}

// leasedBytes is the size from which mapping a file saves more time than its lease takes.
const leasedBytes = 1 << 20

// openError adds the class to an error, except to one that prevented reading at all.
func openError(err error) error {
	if large, ok := errors.AsType[*openfile.SizeError](err); ok {
		err = fmt.Errorf("%s: %w", large.Path, &MemoryError{Want: large.Size, Limit: large.Limit, Parts: []MemoryPart{{"file", large.Size}}})
	}
	if _, unreadable := errors.AsType[*fs.PathError](err); unreadable {
		return err
	}
	return loadError("", "", err, ErrFormat)
}
