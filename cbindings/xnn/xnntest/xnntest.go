// Package xnntest (no compatibility promise) finds libXNNPACK for tests.
package xnntest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/internal/needs"
)

// folder is the checkout's lib folder, which make deps fills, or "" outside of one.
func folder() string {
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

// Library opens the library of the environment or of the checkout. Builds that open no libraries
// skip the test.
func Library(t testing.TB) *xnn.Library {
	t.Helper()
	lib, err := xnn.Open(Path())
	if err != nil && !xnn.DynamicLoading {
		t.Skip(err)
	}
	if err != nil {
		needs.Missing(t, "libXNNPACK (make deps fetches it): %v", err)
	}
	return lib
}

// place is the folder of the checkout, empty where the environment names another place or the build opens no libraries.
var place = func() string {
	dir := folder()
	if os.Getenv(xnn.EnvPath) != "" || !xnn.DynamicLoading {
		return ""
	}
	if _, err := os.Stat(dir); err != nil {
		return ""
	}
	os.Setenv(xnn.EnvPath, dir) // for backends without a path, and for programs that tests start
	return dir
}()

// Path is what Library asks for: empty where the environment names a place, and where the
// build opens no libraries.
func Path() string { return place }
