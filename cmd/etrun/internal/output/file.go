package output

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// File is an output file being written. A regular file is written under a temporary name in
// the same folder and renamed when complete, with the mode of the file that it replaces;
// for a symbolic link, its target is replaced. Pipes and character devices are written
// directly. Close without Commit does not change existing regular files.
type File struct {
	ctx    context.Context
	place  string // path of a regular file, empty for direct writes
	mode   fs.FileMode
	file   *os.File // nil after Close
	forget func() bool
}

// Errors of paths; match with errors.Is.
var (
	errNoReader = errors.New("no process reads the pipe")
	errKind     = errors.New("neither a regular file nor a pipe nor a character device")
	errDangling = errors.New("a dangling symbolic link")
)

// Stdout is the path of standard output.
const Stdout = "-"

// CreateFile creates a file. It does not wait for the reader of a pipe. Canceling the
// context stops writing.
func CreateFile(ctx context.Context, path string) (*File, error) {
	if path == Stdout {
		return openStdout(ctx)
	}
	// An existing file is examined by its descriptor, and does not change before Commit.
	there, err := os.OpenFile(path, os.O_WRONLY|notWaiting, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return createNew(ctx, path)
	case errors.Is(err, syscall.ENXIO):
		return nil, &fs.PathError{Op: "open", Path: path, Err: errNoReader}
	case err != nil:
		return nil, err
	}
	f, err := createOver(ctx, path, there)
	if err != nil || f.file != there {
		_ = there.Close() // nothing was written
	}
	return f, err
}

// openStdout returns standard output, which stays open when the file is closed.
func openStdout(ctx context.Context) (*File, error) {
	file, err := duplicate(os.Stdout, "standard output")
	if err != nil {
		return nil, err
	}
	return newFile(ctx, file, "", 0), nil
}

// createNew creates a file that does not exist.
func createNew(ctx context.Context, path string) (*File, error) {
	if _, err := os.Lstat(path); err == nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errDangling}
	}
	return createTemporary(ctx, path, 0o644)
}

// createOver creates the replacement of an existing file, or opens a pipe or device.
func createOver(ctx context.Context, path string, there *os.File) (*File, error) {
	info, err := there.Stat()
	if err != nil {
		return nil, err
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, err
		}
		return createTemporary(ctx, target, mode.Perm())
	case mode&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeCharDevice) != 0:
		return newFile(ctx, there, "", 0), nil
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: errKind}
}

// createTemporary creates the temporary file of a path.
func createTemporary(ctx context.Context, place string, mode fs.FileMode) (*File, error) {
	file, err := os.CreateTemp(filepath.Dir(place), ".etrun-*")
	if err != nil {
		return nil, visible(err, place)
	}
	return newFile(ctx, file, place, mode), nil
}

func newFile(ctx context.Context, file *os.File, place string, mode fs.FileMode) *File {
	f := &File{ctx: ctx, file: file, place: place, mode: mode}
	f.forget = context.AfterFunc(ctx, func() { _ = file.SetWriteDeadline(time.Unix(1, 0)) }) // no effect on regular files
	return f
}

// Write implements io.Writer.
func (f *File) Write(b []byte) (int, error) {
	n, err := f.file.Write(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%s: %w", cmp.Or(f.place, f.file.Name()), context.Cause(f.ctx))
	}
	if f.place != "" {
		err = visible(err, f.place)
	}
	return n, err
}

// visible replaces the temporary name in an error by the final one.
func visible(err error, place string) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: e.Op, Path: place, Err: e.Err}
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return &fs.PathError{Op: e.Op, Path: place, Err: e.Err}
	}
	return err
}

// Commit renames the file to its final name.
func (f *File) Commit() (err error) {
	defer f.Close()
	if f.place == "" {
		err = f.file.Close()
		f.file = nil
		return err
	}
	if err := f.file.Chmod(f.mode); err != nil { // temporary files are private
		return err
	}
	if info, err := os.Lstat(f.place); err == nil && !info.Mode().IsRegular() {
		return &fs.PathError{Op: "replace", Path: f.place, Err: errKind}
	}
	if err := f.file.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.file.Name(), f.place); err != nil {
		return visible(err, f.place)
	}
	f.file = nil
	return nil
}

// Close removes an uncommitted file.
func (f *File) Close() {
	f.forget()
	if f.file == nil {
		return
	}
	_ = f.file.Close()
	if f.place != "" {
		_ = os.Remove(f.file.Name())
	}
	f.file = nil
}

// Fill writes the whole file and commits it. Errors are *Error.
func (f *File) Fill(fill func(io.Writer) error) error {
	defer f.Close()
	w := bufio.NewWriter(f)
	err := fill(w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Commit()
	}
	if err != nil {
		return &Error{err}
	}
	return nil
}

// Name is how messages name a path to write to.
func Name(path string) string {
	if path == Stdout {
		return "standard output"
	}
	return path
}

// WriteFile combines CreateFile and Fill. An error of CreateFile is not an *Error: nothing was computed for it yet.
func WriteFile(ctx context.Context, path string, fill func(io.Writer) error) error {
	f, err := CreateFile(ctx, path)
	if err != nil {
		return err
	}
	return f.Fill(fill)
}

// Beside returns where a temporary file for an output may be: the folder of a regular file, or of a new one, else that of the system.
func Beside(path string) string {
	if info, err := os.Stat(path); path == Stdout || err == nil && !info.Mode().IsRegular() {
		return os.TempDir()
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	return filepath.Dir(path)
}

// WriteBytes is WriteFile with the bytes of the file.
func WriteBytes(ctx context.Context, path string, b []byte) error {
	return WriteFile(ctx, path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// Content is a file to be written.
type Content struct {
	Path string
	From io.WriterTo
}

// WriteAll writes files that belong together. None is changed before the bytes of all are written; they are renamed in their order.
func WriteAll(ctx context.Context, list ...Content) error {
	files := make([]*File, 0, len(list))
	for _, c := range list {
		f, err := CreateFile(ctx, c.Path)
		if err != nil {
			return err
		}
		defer f.Close()
		files = append(files, f)
	}
	for i, f := range files {
		if _, err := list[i].From.WriteTo(f); err != nil {
			return &Error{err}
		}
	}
	for _, f := range files {
		if err := f.Commit(); err != nil {
			return &Error{err}
		}
	}
	return nil
}

// Error is an error of writing outputs.
type Error struct{ Err error }
