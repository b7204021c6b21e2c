package etrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/etrun-go/etrun/hal/cpu"
	"github.com/etrun-go/etrun/internal/openfile"
	"github.com/etrun-go/etrun/runtime/pte"
)

// Source provides the bytes of a program or of external data: [File], [FS], [Bytes] or [ReaderAt].
// It is not opened before use, and may be used several times.
type Source struct {
	name string
	open func(ctx context.Context, r reading) (*file, error)
}

// read opens the source and reads all of it.
func (s Source) read(ctx context.Context, r reading) (*file, error) {
	if s.open == nil {
		return nil, &LoadError{Class: ErrInput, Err: errors.New("empty Source: use File, FS, Bytes or ReaderAt")}
	}
	f, err := s.open(ctx, r)
	if err != nil || r.check == nil {
		return f, err
	}
	if err := r.check(s.name, f.data); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// File is a file of the operating system, or a pipe, which is read to the end.
func File(path string) Source {
	return Source{path, func(ctx context.Context, r reading) (*file, error) { return openFile(ctx, path, r) }}
}

// FS is a regular file of an fs.FS, such as an embed.FS.
func FS(files fs.FS, name string) Source {
	return Source{name, func(ctx context.Context, r reading) (*file, error) {
		f, err := files.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("not a regular file")}
		}
		return readSized(ctx, name, f, info.Size(), r)
	}}
}

// Bytes is a byte slice. It is copied to aligned, padded memory, as kernels need it, when the
// source is used. name identifies it in errors.
func Bytes(name string, data []byte) Source {
	return Source{name, func(_ context.Context, r reading) (*file, error) {
		if err := r.checkSize(name, int64(len(data))); err != nil {
			return nil, err
		}
		f := &file{path: name}
		f.data = f.allocate(len(data))
		copy(f.data, data)
		return f, nil
	}}
}

// ReaderAt is the first size bytes of a reader. They are read once per use. name identifies them in
// errors.
func ReaderAt(name string, from io.ReaderAt, size int64) Source {
	return Source{name, func(ctx context.Context, r reading) (*file, error) {
		if f, ok := from.(*openfile.Scratch); ok && size > 0 {
			return mapScratch(name, f, size, r)
		}
		return readSized(ctx, name, io.NewSectionReader(from, 0, size), size, r)
	}}
}

// mapScratch maps size bytes of a file that nothing changes.
func mapScratch(name string, from *openfile.Scratch, size int64, r reading) (*file, error) {
	if err := r.checkSize(name, size); err != nil {
		return nil, err
	}
	m, err := cpu.MapFile(from.File, size)
	if err != nil {
		return nil, &fs.PathError{Op: "mmap", Path: name, Err: err}
	}
	m.Forgettable()
	f := &file{path: name, data: m.Bytes(), pages: []*cpu.Mapping{m}}
	if err := r.checkStart(f.data[:min(len(f.data), pte.StartBytes)]); err != nil {
		f.close()
		return nil, loadError(name, "", err, ErrFormat)
	}
	return f, nil
}

// readSized reads size bytes, until ctx ends. It checks the format before it reads the rest.
func readSized(ctx context.Context, name string, from io.Reader, size int64, r reading) (*file, error) {
	if err := r.checkSize(name, size); err != nil {
		return nil, err
	}
	start := make([]byte, min(size, pte.StartBytes))
	if _, err := io.ReadFull(from, start); err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	if err := r.checkStart(start); err != nil {
		return nil, loadError(name, "", err, ErrFormat)
	}
	const chunk = 1 << 20
	f := &file{path: name}
	f.data = f.allocate(int(size))
	for at := copy(f.data, start); at < len(f.data); at += chunk {
		if ctx.Err() != nil {
			f.close()
			return nil, fmt.Errorf("%s: %w", name, context.Cause(ctx))
		}
		if _, err := io.ReadFull(from, f.data[at:min(at+chunk, len(f.data))]); err != nil {
			f.close()
			return nil, &fs.PathError{Op: "read", Path: name, Err: err}
		}
	}
	return f, nil
}
