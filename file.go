package etrun

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/kernels/tensor"
)

// file is the bytes of a file, read or mapped.
type file struct {
	path   string // empty for bytes in memory
	data   []byte
	mapped *cpu.Mapping
}

func (f *file) close() {
	if f.mapped != nil {
		f.mapped.Close()
		f.mapped = nil
	}
}

// reading says how files are read.
type reading struct {
	limit int64 // bytes of one file
	mmap  bool
}

// check refuses a size.
func (r reading) check(name string, size int64) error {
	if size < 0 || size > r.limit {
		return &LoadError{Class: ErrMemory, File: name, Err: &MemoryError{Want: size, Limit: r.limit, Parts: []MemoryPart{{"file", size}}}}
	}
	return nil
}

// openFile reads or maps a file. A pipe is read to its end.
func openFile(_ context.Context, path string, r reading) (*file, error) {
	h, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	info, err := h.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, &os.PathError{Op: "read", Path: path, Err: fmt.Errorf("is a directory")}
	}
	if err := r.check(path, info.Size()); err != nil {
		return nil, err
	}
	if r.mmap && info.Mode().IsRegular() && info.Size() > 0 {
		m, err := cpu.MapFile(h, info.Size())
		if err != nil {
			return nil, &os.PathError{Op: "mmap", Path: path, Err: err}
		}
		return &file{path: path, data: m.Bytes(), mapped: m}, nil
	}
	if !info.Mode().IsRegular() {
		return readStream(path, h, r)
	}
	b := tensor.AlignedBytes(int(info.Size()))
	if _, err := io.ReadFull(h, b); err != nil {
		return nil, &os.PathError{Op: "read", Path: path, Err: err}
	}
	return &file{path: path, data: b}, nil
}

func readStream(path string, from io.Reader, r reading) (*file, error) {
	raw, err := io.ReadAll(io.LimitReader(from, r.limit+1))
	if err != nil {
		return nil, err
	}
	if err := r.check(path, int64(len(raw))); err != nil {
		return nil, err
	}
	b := tensor.AlignedBytes(len(raw))
	copy(b, raw)
	return &file{path: path, data: b}, nil
}
