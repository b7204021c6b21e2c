package openfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestScratch copies files, one of which changes meanwhile, to files without names.
func TestScratch(t *testing.T) {
	dir, want := t.TempDir(), bytes.Repeat([]byte("program "), part/4)
	path := filepath.Join(t.TempDir(), "file")
	for name, change := range map[string]func() error{
		"unchanged": func() error { return nil },
		"shorter":   func() error { return os.Truncate(path, part+1) },
		"longer":    func() error { return os.Truncate(path, int64(len(want)+1)) },
		"other":     func() error { return os.Chtimes(path, time.Time{}, time.Unix(1, 0)) },
	} {
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Open(t.Context(), path, Rules{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := NewScratch(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		n, err := f.WriteTo(s)
		got := make([]byte, n)
		_, failed := s.ReadAt(got, 0)
		if name == "unchanged" && (err != nil || failed != nil || !bytes.Equal(got, want)) || name != "unchanged" && !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %d bytes, %v, %v, want %d", name, n, err, failed, len(want))
		}
		f.Close()
		if err := s.Close(); err != nil {
			t.Errorf("%s: Close: %v", name, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
