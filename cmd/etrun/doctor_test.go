package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/cbindings/xnn"
	"github.com/etrun-go/etrun/cmd/etrun/internal/cli"
	"github.com/etrun-go/etrun/delegate"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/hal/ethosu"
)

func TestHints(t *testing.T) {
	t.Setenv(xnn.EnvPath, "")
	noLibrary, wrongPlace := "doctor --fix", "unset it"
	if !xnn.DynamicLoading {
		noLibrary, wrongPlace = staticBuild, staticBuild
	}
	if got := hintOfBackend(xnnpack.ID, delegate.Status{Engine: "go"}); !strings.Contains(got, noLibrary) {
		t.Errorf("no library: %q", got)
	}
	if got := hintOfBackend(xnnpack.ID, delegate.Status{Engine: "native"}); got != "" {
		t.Errorf("a library: %q", got)
	}
	t.Setenv(xnn.EnvPath, "/nowhere")
	if got := hintOfBackend(xnnpack.ID, delegate.Status{Engine: "go"}); !strings.Contains(got, wrongPlace) {
		t.Errorf("a wrong place: %q", got)
	}
	for _, d := range ethosu.Drivers() {
		if got := hintOfDriver(d.Name, ethosu.Skipped); got == "" && d.Name != "npu" {
			t.Errorf("no hint for driver %s", d.Name)
		}
		if got := hintOfDriver(d.Name, ethosu.Loaded); got != "" {
			t.Errorf("driver %s is there: %q", d.Name, got)
		}
	}
}

// onlyShell sets PATH to a folder with sh and scripts only.
func onlyShell(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"sh", "awk", "cat", "rm", "mkdir", "dirname"} {
		real, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(real, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

func TestFetchSaysWhatIsMissing(t *testing.T) {
	a := &app{App: cli.App{Notes: &bytes.Buffer{}}}
	onlyShell(t, nil)
	dir := filepath.Join(t.TempDir(), "lib")
	if err := a.fetch(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "apt-get: missing") {
		t.Errorf("got %v", err)
	}
	onlyShell(t, map[string]string{"apt-get": "exit 0", "dpkg-deb": "exit 0"})
	if err := a.fetch(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "cannot be installed") {
		t.Errorf("got %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("%v is left", entries)
	}
}

func TestFetchEndsWithTheContext(t *testing.T) {
	a := &app{App: cli.App{Notes: &bytes.Buffer{}}}
	onlyShell(t, map[string]string{"apt-get": "exit 0", "dpkg-deb": "exit 0"})
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if err := a.fetch(ctx, t.TempDir()); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func TestFixRefusesANamedPlace(t *testing.T) {
	t.Setenv(xnn.EnvPath, "/nowhere")
	wantCode, want := 2, "unset it first"
	if !xnn.DynamicLoading {
		wantCode, want = 1, staticBuild
	}
	var out, notes bytes.Buffer
	if code := run([]string{"doctor", "--fix"}, strings.NewReader(""), &out, &notes); code != wantCode || !strings.Contains(notes.String(), want) {
		t.Errorf("exit code %d: %s", code, notes.String())
	}
}

func TestRetargetCommand(t *testing.T) {
	var out, notes bytes.Buffer
	if code := run([]string{retargetCommand, filepath.Join(t.TempDir(), "gone.so")}, strings.NewReader(""), &out, &notes); code == 0 {
		t.Error("no fault of a file that is not there")
	}
	out.Reset()
	if run([]string{"--help"}, strings.NewReader(""), &out, &notes); strings.Contains(out.String(), retargetCommand) {
		t.Error("help lists it")
	}
}
