package etrun

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
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

// openFile reads or maps a file of one of the wanted formats. A pipe is read to its end.
// The limits allow what they do beside the used bytes of other files.
func openFile(ctx context.Context, path string, c *config, used int64, want ...pte.Format) (*file, error) {
	limit := c.limits.FileBytes
	if c.maxMemory > 0 && !c.mmap {
		limit = min(limit, max(c.maxMemory-used, 1))
	}
	f, err := openfile.Open(ctx, path, openfile.Rules{Kinds: openfile.Pipes, Limit: limit, Start: pte.StartBytes,
		Check: func(start []byte) error { return pte.CheckStart(start, want...) }})
	if err != nil {
		return nil, openError(err)
	}
	defer f.Close()
	if size, regular := f.Size(); c.mmap && regular && size > 0 {
		m, err := cpu.MapFile(f.OS(), size)
		if err != nil {
			return nil, &fs.PathError{Op: "mmap", Path: path, Err: err}
		}
		return &file{path: path, data: m.Bytes(), mapped: m}, nil
	}
	b, err := f.ReadAll(tensor.AlignedBytes)
	if err != nil {
		return nil, openError(err)
	}
	return &file{path: path, data: b}, nil
}

// openError gives an error its class, except where the file could not be read at all.
func openError(err error) error {
	if large, ok := errors.AsType[*openfile.SizeError](err); ok {
		err = fmt.Errorf("%s: %w", large.Path, &MemoryError{Want: large.Size, Limit: large.Limit, Parts: []MemoryPart{{"file", large.Size}}})
	}
	if _, unreadable := errors.AsType[*fs.PathError](err); unreadable {
		return err
	}
	return loadError("", "", err, ErrFormat)
}
