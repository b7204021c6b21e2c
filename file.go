package etrun

import (
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

// openFile reads or maps a file of at most limit bytes. A pipe is read to its end.
func openFile(path string, limit int64, mmap bool) (*file, error) {
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
	if info.Size() > limit {
		return nil, &LoadError{Class: ErrMemory, Err: &MemoryError{Want: info.Size(), Limit: limit, Parts: []MemoryPart{{"file", info.Size()}}}}
	}
	if mmap && info.Mode().IsRegular() && info.Size() > 0 {
		m, err := cpu.MapFile(h, info.Size())
		if err != nil {
			return nil, &os.PathError{Op: "mmap", Path: path, Err: err}
		}
		return &file{path: path, data: m.Bytes(), mapped: m}, nil
	}
	if !info.Mode().IsRegular() {
		return readStream(h, limit)
	}
	b := tensor.AlignedBytes(int(info.Size()))
	if _, err := io.ReadFull(h, b); err != nil {
		return nil, &os.PathError{Op: "read", Path: path, Err: err}
	}
	return &file{path: path, data: b}, nil
}

func readStream(r io.Reader, limit int64) (*file, error) {
	raw, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) > limit {
		return nil, &LoadError{Class: ErrMemory, Err: &MemoryError{Want: int64(len(raw)), Limit: limit, Parts: []MemoryPart{{"file", int64(len(raw))}}}}
	}
	b := tensor.AlignedBytes(len(raw))
	copy(b, raw)
	return &file{data: b}, nil
}
