//go:build unix

package output

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// kinds are the file types that may exist at the path of an output, each in its own folder.
var kinds = []struct {
	name string
	make func(t *testing.T, path string)
	err  error // of writing, nil for none
}{
	{"nothing", func(*testing.T, string) {}, nil},
	{"a file", func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte("before"), 0o640)) }, nil},
	{"a link to a file", func(t *testing.T, path string) {
		must(t, os.WriteFile(path+".target", []byte("before"), 0o600), os.Symlink(filepath.Base(path)+".target", path))
	}, nil},
	{"a link to nothing", func(t *testing.T, path string) { must(t, os.Symlink("gone", path)) }, errDangling},
	{"a link to a full device", func(t *testing.T, path string) { must(t, os.Symlink("/dev/full", path)) }, syscall.ENOSPC},
	{"a link to a device", func(t *testing.T, path string) { must(t, os.Symlink("/dev/null", path)) }, nil},
	{"a folder", func(t *testing.T, path string) { must(t, os.Mkdir(path, 0o700)) }, syscall.EISDIR},
	{"a pipe without a reader", func(t *testing.T, path string) { must(t, syscall.Mkfifo(path, 0o600)) }, errNoReader},
	{"a pipe whose reader is slow", func(t *testing.T, path string) {
		must(t, syscall.Mkfifo(path, 0o600))
		openPipe(t, path, func(f *os.File) { time.Sleep(50 * time.Millisecond); io.Copy(io.Discard, f) })
	}, nil},
	{"a pipe whose reader sleeps", func(t *testing.T, path string) {
		must(t, syscall.Mkfifo(path, 0o600))
		openPipe(t, path, func(*os.File) {})
	}, context.DeadlineExceeded},
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// openPipe opens a pipe for reading until the test ends.
func openPipe(t *testing.T, path string, read func(*os.File)) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	go read(f)
}

// Only regular files are replaced; links, devices, pipes and folders are unchanged.
func TestWriteFileByKind(t *testing.T) {
	text := strings.Repeat("after ", 100_000) // more than a pipe holds
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "out")
			k.make(t, path)
			before, _ := os.Lstat(path)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
			defer cancel()
			err := WriteFile(ctx, path, func(w io.Writer) error {
				_, err := io.WriteString(w, text)
				return err
			})
			if !errors.Is(err, k.err) {
				t.Errorf("got %v, want %v", err, k.err)
			}
			if _, ok := errors.AsType[*Error](err); err != nil && !ok && !opening(err) {
				t.Errorf("got %T, want an error of opening or an *Error", err)
			}
			checkPlace(t, path, before, k.err == nil, text)
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".etrun-*")); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// checkPlace checks the file at path after a write.
func checkPlace(t *testing.T, path string, before fs.FileInfo, written bool, text string) {
	t.Helper()
	after, err := os.Lstat(path)
	if before != nil && (err != nil || after.Mode() != before.Mode() || !before.Mode().IsRegular() && !os.SameFile(before, after)) {
		t.Errorf("was %v, is %v, %v", before.Mode(), after, err)
	}
	if info, err := os.Stat(path); !written || err != nil || !info.Mode().IsRegular() {
		return
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != text {
		t.Errorf("%d bytes, %v, want %d", len(b), err, len(text))
	}
}

// The same for the archive and the folder, which write to existing files.
func TestOutputsByKind(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			dir := t.TempDir()
			npz, bin := filepath.Join(dir, "out.npz"), filepath.Join(dir, "out0.bin")
			k.make(t, npz)
			k.make(t, bin)
			beforeNPZ, _ := os.Lstat(npz)
			beforeBin, _ := os.Lstat(bin)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
			defer cancel()
			if err := writeArchive(ctx, npz); err == nil != (k.err == nil || k.err == context.DeadlineExceeded) {
				t.Errorf("archive: %v", err)
			}
			f, err := Open(ctx, dir)
			must(t, err)
			defer f.Close()
			_, err = f.Add(0, values()[:1])
			must(t, err)
			if err := f.Commit(); err == nil != (k.err == nil || k.err == context.DeadlineExceeded) {
				t.Errorf("folder: %v", err)
			}
			checkPlace(t, npz, beforeNPZ, false, "")
			checkPlace(t, bin, beforeBin, false, "")
		})
	}
}

func writeArchive(ctx context.Context, path string) error {
	a, err := CreateArchive(ctx, path)
	if err != nil {
		return err
	}
	defer a.Close()
	if err := a.Add(0, values()[:1]); err != nil {
		return err
	}
	return a.Commit()
}

// A device that is created during a run is not replaced either.
func TestPlaceThatChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f, err := CreateFile(t.Context(), path)
	must(t, err)
	defer f.Close()
	must(t, os.Symlink("/dev/null", path))
	if err := f.Commit(); !errors.Is(err, errKind) {
		t.Errorf("got %v, want %v", err, errKind)
	}
	if target, err := os.Readlink(path); err != nil || target != "/dev/null" {
		t.Errorf("%q, %v", target, err)
	}
}

// An existing index that is not a regular file is written to, and not removed.
func TestFolderKeepsItsIndex(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Symlink("/dev/null", filepath.Join(dir, index)))
	f, err := Open(t.Context(), dir)
	must(t, err)
	defer f.Close()
	_, err = f.Add(0, values()[:1])
	must(t, err, f.Commit())
	if got, want := listing(t, dir), []string{"out0.bin", index}; !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
	if target, err := os.Readlink(filepath.Join(dir, index)); err != nil || target != "/dev/null" {
		t.Errorf("%q, %v", target, err)
	}
}

// opening reports whether a file could not be opened.
func opening(err error) bool {
	e, ok := errors.AsType[*fs.PathError](err)
	return ok && e.Op == "open"
}
