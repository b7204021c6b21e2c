//go:build cgo

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/etrun-go/etrun/internal/needs"
)

const (
	model    = "../../testdata/digits/xnnpack.pte"
	scalars  = "../../testdata/pte/scalar_inputs.pte"
	pictures = "../../testdata/digits/images.f32.bin"
	images   = 20
)

// run runs a program and returns what it prints.
func run(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	b, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, b)
	}
	return b
}

// build builds the library, and the command, whose results the library must reproduce.
func build(t *testing.T) (library, command string) {
	t.Helper()
	dir := t.TempDir()
	library, command = filepath.Join(dir, "libetrun.so"), filepath.Join(dir, "etrun")
	run(t, "go", "build", "-buildmode=c-shared", "-o", library, ".")
	run(t, "go", "build", "-o", command, "../../cmd/etrun")
	return library, command
}

// commandScores returns the command line's results for the images.
func commandScores(t *testing.T, command string) (scores []byte) {
	t.Helper()
	all, err := os.ReadFile(pictures)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for i := range images {
		in, out := filepath.Join(dir, "in.bin"), filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(in, all[i*256:][:256], 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, command, model, "--input", in, "--output-dir", out, "--threads", "1")
		b, err := os.ReadFile(filepath.Join(out, "out0.bin"))
		if err != nil {
			t.Fatal(err)
		}
		scores = append(scores, b...)
	}
	return scores
}

// TestLibrary checks that a C program and a Python program get the same bytes as the command line.
func TestLibrary(t *testing.T) {
	if testing.Short() {
		t.Skip("short: building the shared library takes a minute")
	}
	library, command := build(t)
	want := commandScores(t, command)
	program, out := filepath.Join(t.TempDir(), "digits"), filepath.Join(t.TempDir(), "out")
	run(t, "gcc", "-Wall", "-Wextra", "-Werror", "-I.", "-o", program, "testdata/digits.c", library, "-lpthread", "-Wl,-rpath,"+filepath.Dir(library))
	run(t, program, model, pictures, out)
	compare(t, "C", out, want)
	run(t, needs.Tool(t, "python3", "python3"), "testdata/digits.py", library, model, pictures, out)
	compare(t, "Python", out, want)
	run(t, needs.Tool(t, "python3", "python3"), "testdata/scalars.py", library, scalars)
}

func compare(t *testing.T, language, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) || len(want) != images*40 {
		t.Errorf("%s: %v, %d bytes, other than the command's %d", language, err, len(got), len(want))
	}
}
