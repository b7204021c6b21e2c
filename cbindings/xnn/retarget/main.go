// Command retarget makes a libXNNPACK that was built against glibc 2.38 load on
// older systems. Of all that the library takes from glibc, one symbol names that
// version: fmodf, which got a new version tag there while the function is old.
//
//	retarget -version GLIBC_2.38 -symbols fmodf lib/libXNNPACK.so.0.20241108
//
// It changes that one requirement to the base version of the architecture, in
// place and at once, and refuses a library in which the requirement covers
// anything else. A library without the requirement is left as it is.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/internal/openfile"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "retarget:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("retarget", flag.ContinueOnError)
	version := flags.String("version", "GLIBC_2.38", "the version requirement to remove")
	symbols := flags.String("symbols", "fmodf", "the symbols, comma-separated, that carry it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	want := need{version: *version, symbols: strings.Split(*symbols, ",")}
	slices.Sort(want.symbols)
	for _, path := range flags.Args() {
		if err := rewrite(path, want, out); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
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
