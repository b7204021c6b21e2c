// Package retarget (no compatibility promise) makes a libXNNPACK that was built against glibc 2.38 load on
// older systems. Of all that the library takes from glibc, one symbol names that
// version: fmodf, which got a new version tag there while the function is old.
package retarget

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/etrun-go/etrun/internal/openfile"
)

// newest is the requirement that is removed.
var newest = need{version: "GLIBC_2.38", symbols: []string{"fmodf"}}

// File changes that one requirement of a library to the base version of the architecture,
// in place and at once, and says so. It refuses a library in which the requirement covers
// anything else, and leaves one without it as it is.
func File(path string, out io.Writer) error {
	if err := rewrite(path, newest, out); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// maxLibrary bounds the size of a library, which is read whole.
const maxLibrary = 1 << 30

const elfMagic = "\x7fELF"

func checkELF(start []byte) error {
	if string(start) != elfMagic {
		return fmt.Errorf("first bytes %q, want %q of an ELF file", start, elfMagic)
	}
	return nil
}

// rewrite retargets one file; it appears whole or not at all.
func rewrite(path string, want need, out io.Writer) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	image, err := openfile.ReadFile(context.Background(), path, openfile.Rules{Limit: maxLibrary, Start: len(elfMagic), Check: checkELF})
	if err != nil {
		return err
	}
	changed, err := retarget(image, want)
	if err != nil || !changed {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".retarget-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(image)
	if closed := temp.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Chmod(temp.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err == nil {
		fmt.Fprintf(out, "%s: %s is no longer required\n", path, want.version)
	}
	return err
}
