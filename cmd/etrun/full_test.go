//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// fileLimit is the variable that makes the test binary a command line with limited file
// sizes, as on a full disk.
const fileLimit = "ETRUN_TEST_FILE_LIMIT"

// runLimited runs the command line under fileLimit, if that is set, in a separate process, as
// the limit applies to all files of a process.
func runLimited() {
	n, err := strconv.ParseUint(os.Getenv(fileLimit), 10, 64)
	if err != nil {
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
		panic(err)
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Files that cannot be written completely are not written, and existing files do not change.
func TestDiskFull(t *testing.T) {
	add, err := filepath.Abs("testdata/add.pte")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		add + " --output-dir o",
		add + " --output-npz o.npz",
		add + " --output-dir o --output-npz o.npz",
		add + " --trace trace.json",
		add + " -o y.json",
		"profile " + add + " --pprof p.pb.gz",
		"profile " + add + " --flame f.svg",
		"plan " + add + " --svg plan.svg",
		"plan " + add + " --html plan.html",
		"report " + add + " -o page.html",
	} {
		t.Run(args, func(t *testing.T) {
			inScriptFolder(t)
			words := strings.Fields(args)
			made := words[len(words)-1]
			if made != "o" {
				write(t, made, []byte("before"))
			}
			before := here(t)
			var notes bytes.Buffer
			limited := exec.Command(os.Args[0], words...)
			limited.Env, limited.Stderr = append(os.Environ(), fileLimit+"=20"), &notes
			if err := limited.Run(); limited.ProcessState == nil {
				t.Fatal(err)
			}
			code := limited.ProcessState.ExitCode()
			if strings.Contains(notes.String(), ".etrun-") {
				t.Errorf("a hidden name: %s", notes.String())
			}
			if code != 1 || !strings.Contains(notes.String(), "output: ") || !strings.Contains(notes.String(), "file too large") {
				t.Errorf("exit code %d, stderr %q, want 1 and the reason", code, notes.String())
			}
			if after := here(t); after != before {
				t.Errorf("files\n%s, want\n%s", after, before)
			}
			if made != "o" {
				if b, err := os.ReadFile(made); err != nil || string(b) != "before" {
					t.Errorf("%s: %q, %v", made, b, err)
				}
			}
		})
	}
}

// here lists the working folder.
func here(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// Unwritable paths are reported, and nothing is written elsewhere.
func TestUnwritablePlaces(t *testing.T) {
	play(t, []script{
		{name: "no folder", args: "HERE/add.pte --output gone/y.npy", code: 2, stderr: []string{"etrun: open gone/y.npy: no such file"}},
		{name: "archive", args: "HERE/add.pte --output-npz four.bin/o.npz", code: 2, stderr: []string{"four.bin"}},
		{name: "archive next to a folder", args: "HERE/add.pte --output-dir o --output-npz four.bin/o.npz", code: 2, stderr: []string{"four.bin"}, absent: []string{"o"}},
		{name: "picture", args: "plan HERE/add.pte --svg four.bin/plan.svg", code: 2, stderr: []string{"four.bin"}},
		{name: "page", args: "plan HERE/add.pte --html gone/plan.html", code: 2, stderr: []string{"gone"}},
	})
}

// A full device as standard output is an error, also for small results; a closed pipe ends the
// command silently.
func TestStandardOutputFaults(t *testing.T) {
	add, err := filepath.Abs("testdata/add.pte")
	if err != nil {
		t.Fatal(err)
	}
	inScriptFolder(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	r, gone, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	r.Close()
	before := here(t)
	for _, args := range []string{add + " --output-npz o.npz", add + " --json", "inspect " + add, "plan " + add, "ops aten::relu", "doctor", "--help"} {
		var notes bytes.Buffer
		if code := run(strings.Fields(args), strings.NewReader(""), full, &notes); code != 1 || !strings.Contains(notes.String(), "no space left") {
			t.Errorf("%s on a full device: exit code %d, stderr %q", args, code, notes.String())
		}
		notes.Reset()
		if code := run(strings.Fields(args), strings.NewReader(""), gone, &notes); code != 1 || strings.Contains(notes.String(), "pipe") {
			t.Errorf("%s into a closed pipe: exit code %d, stderr %q", args, code, notes.String())
		}
		os.Remove("o.npz")
		if after := here(t); after != before {
			t.Errorf("%s: files\n%s, want\n%s", args, after, before)
		}
	}
}
