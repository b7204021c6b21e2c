// Package retarget (no compatibility promise) modifies a libXNNPACK built against glibc 2.38 so
// that it loads on older systems. Only one of the glibc symbols it uses requires that version:
// fmodf, an old function that got a new version tag.
package retarget

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/etrun-go/etrun/internal/openfile"
)

// newest is the requirement to remove.
var newest = need{version: "GLIBC_2.38", symbols: []string{"fmodf"}}

// File changes that requirement of a library to the architecture's base version, atomically and in
// place, and reports it to out. It fails if the requirement covers other symbols, and leaves a
// library without the requirement unchanged.
func File(path string, out io.Writer) error {
	if err := rewrite(path, newest, out); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// maxLibrary is the largest size of a library, which is read completely.
const maxLibrary = 1 << 30

const elfMagic = "\x7fELF"

func checkELF(start []byte) error {
	if string(start) != elfMagic {
		return fmt.Errorf("first bytes %q, want %q of an ELF file", start, elfMagic)
	}
	return nil
}

// rewrite retargets one file atomically.
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
