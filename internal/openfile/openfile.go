// Package openfile opens external files: programs, data, inputs and caches.
//
// Files are checked by descriptor: kind and size after opening and before the first read, the first
// bytes before the rest. Opening never blocks, neither for the writer of a FIFO nor for a device,
// and a context ends every read.
package openfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// Kinds are the kinds of files allowed in addition to regular ones.
type Kinds uint8

// Allowed kinds. Directories and block devices are never allowed.
const (
	Pipes   Kinds = 1 << iota // FIFOs, process substitutions and sockets, read to the end
	Devices                   // character devices
)

// Rules are the requirements on a file.
type Rules struct {
	Kinds Kinds
	Limit int64                    // maximum size in bytes, 0 for no limit
	Start int                      // number of first bytes passed to Check; fewer if the file is shorter
	Check func(start []byte) error // checks the first bytes; may be nil
}

// Errors inside a *fs.PathError; match with errors.Is. When a context ends, the error wraps its
// cause; a file above the limit is a *SizeError.
var (
	ErrKind     = errors.New("wrong kind of file")
	ErrChanged  = errors.New("the file changed while it was read")
	ErrNoWriter = errors.New("no process writes to the pipe")
)

// kindError describes the kind of a file.
type kindError string

func (e kindError) Error() string { return string(e) }

// Is makes errors.Is(err, ErrKind) true.
func (e kindError) Is(target error) bool { return target == ErrKind }

// ErrSize is matched by every *SizeError.
var ErrSize = errors.New("file too large")

// SizeError reports a file above the limit.
type SizeError struct {
	Path  string
	Size  int64 // for a pipe: the bytes read
	Limit int64
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("%s: %d bytes, at most %d are allowed", e.Path, e.Size, e.Limit)
}

// Unwrap makes errors.Is(err, ErrSize) true.
func (e *SizeError) Unwrap() error { return ErrSize }

// File is an open file. It is used by one goroutine at a time.
type File struct {
	ctx    context.Context
	file   *os.File
	path   string
	info   fs.FileInfo
	limit  int64
	start  []byte // first bytes that Check has read, not yet returned by Read
	offset int64  // number of bytes read
	forget func() bool
}

// Open opens a file for reading. The context also ends later reads.
func Open(ctx context.Context, path string, rules Rules) (*File, error) {
	if ctx.Err() != nil {
		return nil, ended(ctx, path)
	}
	file, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, err
	}
	if err := inFolder(ctx, file, path); err != nil {
		_ = file.Close() // nothing was written
		return nil, err
	}
	return examine(ctx, file, path, rules)
}

// OpenIn opens a file in a folder, which must not be a symbolic link.
func OpenIn(ctx context.Context, folder *os.Root, name string, rules Rules) (*File, error) {
	file, err := folder.OpenFile(name, flags, 0)
	if err != nil {
		return nil, err
	}
	f, err := examine(ctx, file, file.Name(), rules)
	if err != nil {
		return nil, err
	}
	entry, err := folder.Lstat(name)
	if err == nil && !os.SameFile(entry, f.info) {
		err = f.fault("open", kindError("is a symbolic link"))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// examine applies the rules to an open file, and closes it on failure.
func examine(ctx context.Context, file *os.File, path string, rules Rules) (*File, error) {
	f := &File{ctx: ctx, file: file, path: path, limit: rules.Limit}
	f.forget = context.AfterFunc(ctx, func() { _ = file.SetReadDeadline(time.Unix(1, 0)) }) // regular files have no deadline and do not block
	err := f.checkKind(rules.Kinds)
	if err == nil && rules.Check != nil {
		err = f.checkStart(rules)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// checkKind checks the kind, and the size of a regular file.
func (f *File) checkKind(allowed Kinds) (err error) {
	if f.info, err = f.file.Stat(); err != nil {
		return err
	}
	mode := f.info.Mode()
	for _, k := range kinds {
		if mode&fs.ModeType == k.mode && (k.kind == 0 || allowed&k.kind == 0) {
			return f.fault("open", kindError(fmt.Sprintf("is %s, want %s", k.name, allowed)))
		}
	}
	if size := f.info.Size(); mode.IsRegular() && f.limit > 0 && size > f.limit {
		return &SizeError{f.path, size, f.limit}
	}
	return nil
}

// kinds are the file types other than regular; those of kind 0 are never allowed.
var kinds = []struct {
	mode fs.FileMode
	kind Kinds
	name string
}{
	{fs.ModeDir, 0, "a directory"},
	{fs.ModeDevice, 0, "a block device"},
	{fs.ModeIrregular, 0, "of no known kind"},
	{fs.ModeDevice | fs.ModeCharDevice, Devices, "a character device"},
	{fs.ModeNamedPipe, Pipes, "a pipe"},
	{fs.ModeSocket, Pipes, "a socket"},
}

// String lists the allowed kinds.
func (k Kinds) String() string {
	text := "a regular file"
	if k&Pipes != 0 {
		text += " or a pipe"
	}
	if k&Devices != 0 {
		text += " or a character device"
	}
	return text
}

// checkStart reads and checks the first bytes.
func (f *File) checkStart(rules Rules) error {
	start := make([]byte, rules.Start)
	n, err := io.ReadFull(f, start)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return err
	}
	f.start, f.offset = start[:n], 0
	if err := rules.Check(f.start); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return nil
}

// fault returns an error of the file.
func (f *File) fault(op string, err error) error {
	return &fs.PathError{Op: op, Path: f.path, Err: err}
}

// ended returns the error for a context that has ended.
func ended(ctx context.Context, path string) error {
	return fmt.Errorf("%s: %w", path, context.Cause(ctx))
}

// OS returns the underlying file, for callers that need a descriptor.
func (f *File) OS() *os.File { return f.file }

// Info returns the file's information from when it was opened.
func (f *File) Info() fs.FileInfo { return f.info }

// Size returns the size of a regular file; other files have none.
func (f *File) Size() (n int64, regular bool) { return f.info.Size(), f.info.Mode().IsRegular() }

// Close closes the file.
func (f *File) Close() {
	f.forget()
	_ = f.file.Close() // nothing was written
}
