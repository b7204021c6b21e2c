package cpu

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
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

// TestMapDense checks that areas are independent, whether others are closed before or after them.
func TestMapDense(t *testing.T) {
	var list []*Mapping
	for i := range 90 { // of more than one region
		m, err := MapDense(int64(1 + i*8191))
		if err != nil {
			t.Fatal(err)
		}
		if i := bytes.IndexFunc(m.Bytes(), func(r rune) bool { return r != 0 }); i >= 0 {
			t.Fatalf("area %d: byte %d is not zero", len(list), i)
		}
		for k := range m.Bytes() {
			m.Bytes()[k] = byte(i)
		}
		list = append(list, m)
		if i%3 == 2 {
			list[i/2].Close()
			list[i/2].Close()
		}
	}
	for i, m := range list {
		if got, want := bytes.Count(m.Bytes(), []byte{byte(i)}), len(m.Bytes()); got != want {
			t.Errorf("area %d: %d of %d bytes are as they were written", i, got, want)
		}
		m.Close()
	}
	for _, size := range []int64{-1, 0, 1 << 62} {
		if m, err := MapDense(size); err == nil && runtime.GOOS == "linux" {
			t.Errorf("%d bytes: got %d, want an error", size, len(m.Bytes()))
		}
	}
}
