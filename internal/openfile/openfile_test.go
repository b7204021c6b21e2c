//go:build linux

package openfile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/bits"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/etrun-go/etrun/internal/openfile"
)

var errCheck = errors.New("no such contents")

// wantsData rejects files that do not start with DATA.
func wantsData(start []byte) error {
	if !bytes.HasPrefix(start, []byte("DATA")) {
		return errCheck
	}
	return nil
}

// small returns the default rules of the tests.
func small(kinds openfile.Kinds) openfile.Rules {
	return openfile.Rules{Kinds: kinds, Limit: 1 << 20, Start: 4, Check: wantsData}
}

func place(t testing.TB) string { return filepath.Join(t.TempDir(), "file") }

func regular(t testing.TB, contents string) string {
	t.Helper()
	path := place(t)
	if err := os.WriteFile(path, []byte(contents), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// sparse creates a file of size bytes: contents followed by a hole.
func sparse(t testing.TB, contents string, size int64) string {
	t.Helper()
	path := regular(t, contents)
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	return path
}

// fifo creates a pipe that write fills from another goroutine once it has a reader; nil for no
// writer.
func fifo(t testing.TB, write func(*os.File)) string {
	t.Helper()
	path := place(t)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if write != nil {
		go func() {
			if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
				defer f.Close()
				write(f)
			}
		}()
	}
	return path
}

func link(t testing.TB, to string) string {
	t.Helper()
	path := place(t)
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func socket(t testing.TB) string {
	t.Helper()
	path := place(t)
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return path
}

// slowly writes text byte by byte and closes the pipe.
func slowly(text string) func(*os.File) {
	return func(f *os.File) {
		for i := range text {
			io.WriteString(f, text[i:i+1])
			time.Sleep(time.Millisecond)
		}
	}
}

// silent keeps a pipe open until the test ends, without writing to it.
func silent(t testing.TB) func(*os.File) { return func(*os.File) { <-t.Context().Done() } }

// endless writes to a pipe until it is closed.
func endless(f *os.File) {
	for text := strings.Repeat("DATA", 1024); ; {
		if _, err := io.WriteString(f, text); err != nil {
			return
		}
	}
}

func TestReadFile(t *testing.T) {
	const pipes, devices = openfile.Pipes, openfile.Devices
	cases := []struct {
		name  string
		path  string
		rules openfile.Rules
		want  string
		err   error  // matched with errors.Is
		text  string // part of the error; if err is also nil, no error is expected
	}{
		{"regular", regular(t, "DATA and more"), small(0), "DATA and more", nil, ""},
		{"regular without rules", regular(t, ""), openfile.Rules{}, "", nil, ""},
		{"shorter than its start", regular(t, "DA"), small(0), "", errCheck, "no such contents"},
		{"of the largest size", regular(t, "DATA"), openfile.Rules{Limit: 4}, "DATA", nil, ""},
		{"above the limit", regular(t, "DATA and more"), openfile.Rules{Limit: 12}, "", nil, "13 bytes, at most 12"},
		{"symbolic link", link(t, regular(t, "DATA")), small(0), "DATA", nil, ""},
		{"absent", place(t), small(0), "", fs.ErrNotExist, "no such file"},
		{"link to itself", link(t, "file"), small(0), "", syscall.ELOOP, "symbolic links"},
		{"directory", t.TempDir(), small(pipes | devices), "", openfile.ErrKind, "is a directory, want a regular file or a pipe or a character device"},
		{"socket", socket(t), small(pipes), "", syscall.ENXIO, "no such device"},
		{"pipe", fifo(t, slowly("DATA slow")), small(pipes), "DATA slow", nil, ""},
		{"pipe of one byte", fifo(t, slowly("D")), openfile.Rules{Kinds: pipes}, "D", nil, ""},
		{"pipe that is not allowed", fifo(t, silent(t)), small(0), "", openfile.ErrKind, "is a pipe, want a regular file"},
		{"pipe without a writer", fifo(t, nil), small(pipes), "", openfile.ErrNoWriter, "no process writes"},
		{"pipe with a silent writer", fifo(t, silent(t)), small(pipes), "", context.DeadlineExceeded, ""},
		{"pipe without end", fifo(t, endless), small(pipes), "", nil, "at most 1048576"},
		{"pipe of other contents", fifo(t, slowly("nothing")), small(pipes), "", errCheck, "no such contents"},
		{"device", "/dev/zero", small(pipes), "", openfile.ErrKind, "is a character device"},
		{"endless device", "/dev/zero", openfile.Rules{Kinds: devices, Limit: 1 << 20}, "", nil, "at most 1048576"},
		{"device of other contents", "/dev/zero", small(devices), "", errCheck, "no such contents"},
		{"empty device", "/dev/null", openfile.Rules{Kinds: devices}, "", nil, ""},
		{"full device", "/dev/full", small(pipes), "", openfile.ErrKind, "is a character device"},
		{"sparse and above the limit", sparse(t, "DATA", 5<<30), small(0), "", nil, "5368709120 bytes, at most 1048576"},
		{"sparse of other contents", sparse(t, "", 5<<30), openfile.Rules{Limit: 8 << 30, Start: 4, Check: wantsData}, "", errCheck, "no such contents"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			begun := time.Now()
			got, err := openfile.ReadFile(ctx, c.path, c.rules)
			if c.err == nil && c.text == "" {
				if err != nil || string(got) != c.want {
					t.Fatalf("got %q, %v, want %q", got, err, c.want)
				}
				return
			}
			if got != nil || err == nil || c.err != nil && !errors.Is(err, c.err) || !strings.Contains(fmt.Sprint(err), c.text) || !strings.Contains(fmt.Sprint(err), c.path) {
				t.Errorf("got %q and %v, want %v with %q and the path", got, err, c.err, c.text)
			}
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			if large, ok := errors.AsType[*openfile.SizeError](err); ok && large.Size <= large.Limit {
				t.Errorf("%v", large)
			}
		})
	}
}

// Creating a block device requires privileges.
func TestBlockDevice(t *testing.T) {
	path := place(t)
	if err := syscall.Mknod(path, syscall.S_IFBLK|0o600, 0); err != nil {
		t.Skipf("no block device can be made: %v", err)
	}
	f, err := openfile.Open(t.Context(), path, openfile.Rules{Kinds: openfile.Pipes | openfile.Devices})
	if f != nil || err == nil {
		t.Errorf("got %v, %v", f, err)
	}
}

func TestUnreadable(t *testing.T) {
	path := regular(t, "DATA")
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // root can read every file: use another user on this thread
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		const nobody = 65534
		me, err := unix.SetfsuidRetUid(nobody)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.SetfsuidRetUid(me)
		if now, _ := unix.SetfsuidRetUid(-1); now != nobody {
			t.Skip("this user reads every file, and can be nobody else")
		}
	}
	if _, err := openfile.ReadFile(t.Context(), path, small(0)); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v", err)
	}
}

// A file that changes its size between the check and the read is an error.
func TestChangedWhileRead(t *testing.T) {
	for _, size := range []int64{0, 3, 8, 1 << 20, 3 << 20} {
		path := regular(t, strings.Repeat("DATA", 1<<18))
		f, err := openfile.Open(t.Context(), path, openfile.Rules{})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		b, err := f.ReadAll(func(n int) []byte { return make([]byte, n) })
		if changed := size != 1<<20; changed != errors.Is(err, openfile.ErrChanged) || (b == nil) != changed {
			t.Errorf("from 1 MiB to %d bytes: %d bytes, %v", size, len(b), err)
		}
	}
}

// Holes are not touched; the data between them is read.
func TestSparseFileTakesNoMemory(t *testing.T) {
	const size = 3 << min(30, bits.UintSize-4) // 3 GiB, or 768 MiB of 32-bit addresses
	path := sparse(t, "DATA", size)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const middle, end = size/3 + 12345, size - 4
	for _, at := range []int64{middle, end} {
		if _, err := f.WriteAt([]byte("MORE"), at); err != nil {
			t.Fatal(err)
		}
	}
	before := resident(t)
	file, err := openfile.Open(t.Context(), path, openfile.Rules{Limit: 4 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	b, err := file.ReadAll(func(n int) []byte { // Go memory may have to be cleared
		b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Munmap(b) })
		return b
	})
	if err != nil {
		t.Fatal(err)
	}
	if taken := resident(t) - before; taken > 64<<20 {
		t.Errorf("%d bytes are resident of a file with %d bytes of data", taken, 12)
	}
	if string(b[:4]) != "DATA" || string(b[middle:middle+4]) != "MORE" || string(b[end:]) != "MORE" || b[size/6] != 0 {
		t.Errorf("%q, %q, %q", b[:4], b[middle:middle+4], b[end:])
	}
}

// resident returns the resident memory of the process in bytes.
func resident(t *testing.T) (n int64) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc: ", err)
	}
	var all int64
	if _, err := fmt.Sscan(string(text), &all, &n); err != nil {
		t.Fatal(err)
	}
	return n * int64(os.Getpagesize())
}

// A context that ends during a read ends the read, with its cause.
func TestContextEndsReads(t *testing.T) {
	gone := errors.New("the user has gone")
	for name, path := range map[string]string{
		"silent writer": fifo(t, silent(t)),
		"no writer":     fifo(t, nil),
		"regular":       regular(t, "DATA"),
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		f, err := openfile.Open(ctx, path, openfile.Rules{Kinds: openfile.Pipes})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		time.AfterFunc(20*time.Millisecond, func() { cancel(gone) })
		begun := time.Now()
		for err == nil || errors.Is(err, io.EOF) {
			_, err = f.Read(make([]byte, 10))
		}
		if !errors.Is(err, gone) || time.Since(begun) > 10*time.Second {
			t.Errorf("%s: %v after %v", name, err, time.Since(begun))
		}
		if _, err := f.ReadAt(make([]byte, 1), 0); name == "regular" && !errors.Is(err, gone) {
			t.Errorf("%s: ReadAt gives %v", name, err)
		}
		if _, err := openfile.Open(ctx, path, openfile.Rules{}); !errors.Is(err, gone) {
			t.Errorf("%s: opened again: %v", name, err)
		}
	}
}

// Reads wait for a writer that comes a little later.
func TestLateWriter(t *testing.T) {
	path := fifo(t, nil)
	time.AfterFunc(50*time.Millisecond, func() {
		if f, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
			slowly("DATA late")(f)
			f.Close()
		}
	})
	got, err := openfile.ReadFile(t.Context(), path, small(openfile.Pipes))
	if err != nil || string(got) != "DATA late" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestOpenIn(t *testing.T) {
	folder := t.TempDir()
	for name, contents := range map[string]string{"file": "DATA", "other": "DATA"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(contents), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("other", filepath.Join(folder, "link")), os.Symlink("/etc/passwd", filepath.Join(folder, "out"))); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, ok := range map[string]bool{"file": true, "link": false, "out": false, "gone": false, "../file": false, ".": false} {
		f, err := openfile.OpenIn(t.Context(), root, name, small(0))
		if (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			f.Close()
		}
	}
}

func FuzzReadFile(f *testing.F) {
	f.Add([]byte("DATA"), int64(3), uint8(2))
	f.Add([]byte("DATA and more"), int64(0), uint8(200))
	f.Fuzz(func(t *testing.T, contents []byte, limit int64, start uint8) {
		var seen []byte
		rules := openfile.Rules{Limit: max(limit, 0), Start: int(start), Check: func(b []byte) error { seen = b; return nil }}
		got, err := openfile.ReadFile(t.Context(), regular(t, string(contents)), rules)
		if tooLarge := limit > 0 && int64(len(contents)) > limit; tooLarge {
			if _, ok := errors.AsType[*openfile.SizeError](err); !ok {
				t.Fatalf("%d bytes, limit %d: %v", len(contents), limit, err)
			}
			return
		}
		if err != nil || !bytes.Equal(got, contents) || !bytes.Equal(seen, contents[:min(len(contents), int(start))]) {
			t.Fatalf("got %q, checked %q, %v, want %q", got, seen, err, contents)
		}
	})
}
