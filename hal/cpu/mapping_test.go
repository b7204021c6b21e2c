package cpu

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestMappings(t *testing.T) {
	want := bytes.Repeat([]byte("weights "), 1<<16)
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ofFile, err := MapFile(f, int64(len(want)))
	if err != nil {
		t.Fatal(err)
	}
	filled, err := FillMapping(int64(len(want)), func(b []byte) error {
		if i := bytes.IndexFunc(b, func(r rune) bool { return r != 0 }); i >= 0 {
			t.Errorf("byte %d is not zero", i)
		}
		copy(b, want)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*Mapping{"of a file": ofFile, "filled": filled} {
		if !bytes.Equal(m.Bytes(), want) {
			t.Errorf("%s: the bytes differ", name)
		}
		m.Close()
		m.Close()
		if m.Bytes() != nil {
			t.Errorf("%s: bytes after Close", name)
		}
	}
	fault := errors.New("a fault")
	if m, err := FillMapping(1, func([]byte) error { return fault }); m != nil || err != fault {
		t.Errorf("got %v, %v, want the fault", m, err)
	}
}
