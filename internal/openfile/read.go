package openfile

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/etrun-go/etrun/hal/cpu"
)

const (
	// part is the largest size of one read; the context is checked in between.
	part = 1 << 20
	// firstPart is the initial allocation for a pipe.
	firstPart = 64 << 10
	// writerWait is how long a FIFO may have no writer, whose process may still be starting.
	writerWait = 300 * time.Millisecond
	writerPoll = 5 * time.Millisecond
)

// ReadFile opens a file and reads all of it.
func ReadFile(ctx context.Context, path string, rules Rules) ([]byte, error) {
	f, err := Open(ctx, path, rules)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadAll(func(n int) []byte { return make([]byte, n) })
}

// Read reads the next bytes, until the context ends. If there are more bytes than the limit, the
// error is a *SizeError.
func (f *File) Read(p []byte) (int, error) {
	if len(f.start) > 0 {
		n := copy(p, f.start)
		f.start, f.offset = f.start[n:], f.offset+int64(n)
		return n, nil
	}
	if f.ctx.Err() != nil {
		return 0, ended(f.ctx, f.path)
	}
	n, err := f.file.Read(p[:min(len(p), part)])
	if err == io.EOF && f.offset == 0 && f.info.Mode()&fs.ModeNamedPipe != 0 {
		n, err = f.awaitWriter(p[:min(len(p), part)])
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return 0, ended(f.ctx, f.path)
	}
	f.offset += int64(n)
	if f.limit > 0 && f.offset > f.limit {
		return 0, &SizeError{f.path, f.offset, f.limit}
	}
	return n, err
}

// awaitWriter reads from a FIFO that has not been opened for writing yet.
func (f *File) awaitWriter(p []byte) (int, error) {
	for begun := time.Now(); time.Since(begun) < writerWait; {
		select {
		case <-f.ctx.Done():
			return 0, os.ErrDeadlineExceeded
		case <-time.After(writerPoll):
		}
		if n, err := f.file.Read(p); err != io.EOF {
			return n, err
		}
	}
	return 0, f.fault("read", ErrNoWriter)
}

// ReadAt reads at an offset of a regular file.
func (f *File) ReadAt(p []byte, at int64) (n int, err error) {
	for n < len(p) && err == nil {
		if f.ctx.Err() != nil {
			return n, ended(f.ctx, f.path)
		}
		var got int
		got, err = f.file.ReadAt(p[n:min(len(p), n+part)], at+int64(n))
		n += got
	}
	return n, err
}

// ReadAll reads the whole file into zeroed bytes returned by allocate. For the holes of a regular
// file no memory is touched, and for a pipe the memory grows with the data.
func (f *File) ReadAll(allocate func(n int) []byte) ([]byte, error) {
	size, regular := f.Size()
	if !regular {
		return f.readStream(allocate)
	}
	b := allocate(int(size))
	if err := f.readRegular(b); err != nil {
		return nil, err
	}
	info, err := f.file.Stat()
	if err == nil && info.Size() != size {
		err = f.fault("read", ErrChanged)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// readRegular reads a regular file, skipping its holes.
func (f *File) readRegular(b []byte) error {
	for at := 0; at < len(b); {
		data, ok := nextData(f.file, int64(at))
		if !ok { // a hole to the end
			return nil
		}
		if at = int(min(data, int64(len(b)))); at == len(b) {
			return nil
		}
		to := b[at:min(len(b), at+part)]
		cpu.Populate(to)
		n, err := f.ReadAt(to, int64(at))
		if err == io.EOF && n < min(len(b)-at, part) {
			err = f.fault("read", ErrChanged)
		}
		if err != nil && err != io.EOF {
			return err
		}
		at += n
	}
	return nil
}

// readStream reads to the end of a file without a size.
func (f *File) readStream(allocate func(n int) []byte) ([]byte, error) {
	b := allocate(f.most(firstPart))
	for n := 0; ; {
		got, err := f.Read(b[n:])
		n += got
		switch {
		case err == io.EOF:
			exact := allocate(n)
			copy(exact, b)
			return exact, nil
		case err != nil:
			return nil, err
		case n == len(b):
			grown := allocate(f.most(2 * n))
			copy(grown, b)
			b = grown
		}
	}
}

// most returns n, limited to one byte above the limit, which reveals a larger file.
func (f *File) most(n int) int {
	if f.limit > 0 {
		return int(min(int64(n), f.limit+1))
	}
	return n
}
