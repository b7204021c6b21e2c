package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
)

// Every engine must be as accurate as PyTorch; the native one only if its library is available.
func TestDigits(t *testing.T) {
	lib, err := filepath.Abs("../../lib")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(lib); err == nil {
		t.Setenv(xnn.EnvPath, lib)
	}
	var out strings.Builder
	if err := run("../../testdata/digits", &out); err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{`portable operators +99 of 100`, `XNNPACK, native +(99 of 100|not available)`, `XNNPACK, in Go +99 of 100`} {
		if !regexp.MustCompile(row).MatchString(out.String()) {
			t.Errorf("no row %q in\n%s", row, out.String())
		}
	}
}

func TestDigitsRefusesOtherData(t *testing.T) {
	folder := t.TempDir()
	for name, n := range map[string]int{"images.f32.bin": 4 * pixels, "labels.u8.bin": 2, "logits.f32.bin": 4 * classes} {
		if err := os.WriteFile(filepath.Join(folder, name), make([]byte, n), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	err := run(folder, &strings.Builder{})
	if err == nil || !strings.Contains(err.Error(), "do not match") {
		t.Errorf("got %v", err)
	}
}
