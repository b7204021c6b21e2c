package xnn_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cbindings/xnn/xnntest"
)

// TestOpen checks the opened library's soname and build identifier, and that a second open returns
// the same library.
func TestOpen(t *testing.T) {
	lib := xnntest.Library(t)
	if !slices.Contains(xnn.Sonames, lib.Soname) {
		t.Errorf("got unsupported soname %q", lib.Soname.Name)
	}
	if len(lib.BuildIdentifier()) == 0 {
		t.Error("no build identifier")
	}
	again, err := xnn.Open(xnntest.Path())
	if again != lib || err != nil {
		t.Errorf("second open: got %p, %v, want %p", again, err, lib)
	}
}

// TestScripts checks that the scripts which fetch and build libraries name the supported versions.
func TestScripts(t *testing.T) {
	for i, script := range []string{"xnnpack.sh", "deps.sh"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "scripts", script))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"=" + xnn.Sonames[i].Name + "\n", xnn.Sonames[i].Build[:7]} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: does not contain %q", script, want)
			}
		}
	}
}

// TestFound checks which paths contain a library.
func TestFound(t *testing.T) {
	junk := filepath.Join(t.TempDir(), "libXNNPACK.so")
	if err := os.WriteFile(junk, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{t.TempDir(): false, junk: false, filepath.Dir(junk): false, xnntest.Path(): xnntest.Path() != ""} {
		if got := xnn.Found(path); path != "" && got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
	if lib := xnntest.Library(t); filepath.IsAbs(lib.Path) && xnn.Locate(xnntest.Path()) != lib.Soname {
		t.Errorf("%q: Locate returned %v, Open %v", xnntest.Path(), xnn.Locate(xnntest.Path()), lib.Soname)
	}
}

// TestOpenRefused checks the reason and location of each error.
func TestOpenRefused(t *testing.T) {
	dir := t.TempDir()
	folder := func(name string, files ...string) string {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if err := os.WriteFile(filepath.Join(path, f), []byte("a text, longer than the header of a library, which is 64 bytes long"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	tests := []struct {
		name, path string
		reason     error
		text       string
	}{
		{"missing path", filepath.Join(dir, "nowhere"), xnn.ErrAbsent, "nowhere: not there"},
		{"empty folder", folder("empty"), xnn.ErrAbsent, "no libXNNPACK"},
		{"other version", folder("older", "libXNNPACK.so.0.20220216"), xnn.ErrRefused, `unsupported version "libXNNPACK.so.0.20220216"`},
		{"not a library", folder("text", "libXNNPACK.so.0.20241108"), xnn.ErrRefused, "bad magic number"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := xnn.Open(test.path)
			if test.reason == xnn.ErrRefused && strings.Contains(err.Error(), "without dynamic loading") {
				t.Skip("needs dynamic loading (tag nodl)")
			}
			if !errors.Is(err, test.reason) {
				t.Errorf("got %v, want %v", err, test.reason)
			}
			if err == nil || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v, want text %q", err, test.text)
			}
		})
	}
}

// TestOpenOtherSoname opens the system's libm: the error names the soname.
func TestOpenOtherSoname(t *testing.T) {
	xnntest.Library(t)
	for _, pattern := range []string{"/lib/*/libm.so.6", "/usr/lib/*/libm.so.6"} {
		found, _ := filepath.Glob(pattern)
		if len(found) == 0 {
			continue
		}
		_, err := xnn.Open(found[0])
		if !errors.Is(err, xnn.ErrRefused) || !strings.Contains(err.Error(), `unsupported version "libm.so.6"`) {
			t.Errorf("got %v, want a refusal of libm.so.6 by name", err)
		}
		return
	}
	t.Skip("needs libm.so.6 in a folder of the system's libraries")
}

// TestPlaces checks that the user's folder is searched unless another user can write to it, and that
// the current folder is not searched.
func TestPlaces(t *testing.T) {
	data := t.TempDir()
	t.Setenv("XDG_DATA_HOME", data)
	dir := filepath.Join(data, "etrun", "lib")
	if got := xnn.UserFolder(); got != dir {
		t.Errorf("user folder: got %q, want %q", got, dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(xnn.Places(), dir) {
		t.Errorf("got %v, want %s in the list", xnn.Places(), dir)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(xnn.Places(), dir) {
		t.Errorf("got %v, want no folder that others can write to", xnn.Places())
	}
	here, err := os.Getwd()
	if err != nil || slices.Contains(xnn.Places(), here) {
		t.Errorf("got %v, want no current folder", xnn.Places())
	}
}
