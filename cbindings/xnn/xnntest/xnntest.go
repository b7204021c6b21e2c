// Package xnntest (no compatibility promise) finds libXNNPACK for tests.
package xnntest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
)

// Folder is the checkout's lib folder, which make deps fills, or "" outside of one.
func Folder() string {
	dir, err := os.Getwd()
	for err == nil {
		if _, gone := os.Stat(filepath.Join(dir, "go.mod")); gone == nil {
			return filepath.Join(dir, "lib")
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			break
		}
		dir = parent
	}
	return ""
}

// Library opens the library of the environment or of the checkout. Without one the
// test is skipped, for the reason that the search gave.
func Library(t testing.TB) *xnn.Library {
	t.Helper()
	lib, err := xnn.Open(Path())
	if err != nil {
		t.Skipf("needs libXNNPACK (make deps): %v", err)
	}
	return lib
}

// Path is what Library asks for: empty where the environment names a place, and where the
// build opens no libraries.
func Path() string {
	if os.Getenv(xnn.EnvPath) != "" || !xnn.DynamicLoading {
		return ""
	}
	if _, err := os.Stat(Folder()); err != nil {
		return ""
	}
	return Folder()
}
