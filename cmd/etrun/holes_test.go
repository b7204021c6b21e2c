package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/prometheus/procfs"
)

// asCommand is the variable that makes the test binary the command line; peakFile is the path
// of a file for its peak resident memory. The rusage of a child includes the process that
// it was forked from.
const asCommand, peakFile = "ETRUN_TEST_COMMAND", "ETRUN_TEST_PEAK"

func runAsCommand() {
	if os.Getenv(asCommand) == "" {
		return
	}
	code := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	if name := os.Getenv(peakFile); name != "" {
		if err := os.WriteFile(name, fmt.Append(nil, peakResident()), 0o600); err != nil {
			panic(err)
		}
	}
	os.Exit(code)
}

// peakResident returns the largest resident memory of the process so far.
func peakResident() uint64 {
	p, err := procfs.Self()
	if err != nil {
		panic(err)
	}
	s, err := p.NewStatus()
	if err != nil {
		panic(err)
	}
	return s.VmHWM
}

// Programs that crash the native engine run within the memory limit, with the numbers of the Go
// engine, or are rejected.
func TestHoles(t *testing.T) {
	const limit = 64 << 20
	tooLarge := 9
	if strconv.IntSize == 32 {
		tooLarge = 3 // 2^28 elements in one value are invalid there
	}
	for _, c := range []struct {
		name string
		code int
	}{
		{"clamp-q8-abort", 0},
		{"fc-regrouped-oob", 0},
		{"fused-conv-abort", 0},
		{"maxpool-oob-crash", 0},
		{"xnn-indirection-6", 0},
		{"xnn-workspace-1GiB", tooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, err := filepath.Abs("testdata/holes/" + c.name + ".pte")
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			for _, engine := range []string{"auto", "reference"} {
				code, peak := runLine(t, file, "--xnnpack", engine, "--max-memory", "64MiB", "--output-npz", engine+".npz")
				if code != c.code {
					t.Errorf("%s: exit code %d, want %d", engine, code, c.code)
				}
				if peak > shadow*(limit+64<<20) {
					t.Errorf("%s: peak memory %d, want at most %d", engine, peak, shadow*(limit+64<<20))
				}
			}
			if c.code != 0 {
				return
			}
			got, err1 := os.ReadFile("auto.npz")
			want, err2 := os.ReadFile("reference.npz")
			if err1 != nil || err2 != nil || !bytes.Equal(got, want) {
				t.Errorf("outputs of auto (%d bytes, %v) and reference (%d bytes, %v) differ", len(got), err1, len(want), err2)
			}
		})
	}
}

// runLine runs a command line in a separate process. It returns the exit code, -1 after a
// signal, and the peak resident memory.
func runLine(t *testing.T, args ...string) (code int, peak int64) {
	t.Helper()
	var notes bytes.Buffer
	c := exec.Command(os.Args[0], args...)
	file := filepath.Join(t.TempDir(), "peak")
	c.Env, c.Stderr = append(os.Environ(), asCommand+"=1", peakFile+"="+file), &notes
	err := c.Run()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Logf("%v: %.2000s", err, notes.String())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return c.ProcessState.ExitCode(), 0 // ended by a signal
	}
	if peak, err = strconv.ParseInt(string(text), 10, 64); err != nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), peak
}
