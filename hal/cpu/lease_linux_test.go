package cpu

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// A leased file that others truncate or overwrite keeps its bytes in the mapping.
func TestMapLeased(t *testing.T) {
	want := bytes.Repeat([]byte("weights "), 1<<16)
	for name, change := range map[string]func(path string) error{
		"truncated":   func(path string) error { return os.Truncate(path, 1) },
		"overwritten": func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("WEIGHTS "), 1<<16), 0o600) },
		"removed":     os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // writers wait
			f, path := create(t, want)
			m, err := MapLeased(f, int64(len(want)))
			if err != nil {
				t.Skip("no lease here: ", err)
			}
			defer m.Close()
			m.Forgettable()
			bytesBefore := m.Bytes()
			if err := change(path); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if !bytes.Equal(bytesBefore, want) {
					t.Error("the mapping changed with the file")
				}
				Forget() // not what is no longer the file's
			}
			m.Close()
			m.Close()
		})
	}
}

// A file that may change already is not leased.
func TestNoLease(t *testing.T) {
	f, path := create(t, []byte("weights"))
	if _, err := MapLeased(f, 6); err == nil {
		t.Error("mapped a file of another size")
	}
	writer, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if _, err := MapLeased(f, 7); err == nil {
		t.Error("mapped a file that is open for writing")
	}
}

// create writes a file and opens it for reading.
func create(t *testing.T, contents []byte) (f *os.File, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, contents, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, path
}
