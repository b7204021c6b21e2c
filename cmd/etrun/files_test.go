//go:build unix

package main

import (
	"bytes"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etrun-go/etrun/internal/await"
	"github.com/etrun-go/etrun/internal/cputime"
)

// strangeFiles creates files of every kind in the working folder. The pipe none has no
// writer; the writer of the pipe silent never writes.
func strangeFiles(t *testing.T) {
	t.Helper()
	for _, ext := range []string{"pte", "ptd", "bin", "npy", "npz", "png", "json"} {
		for _, name := range []string{"none." + ext, "silent." + ext} {
			if err := syscall.Mkfifo(name, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f, err := os.OpenFile("silent."+ext, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		for name, target := range map[string]string{"zero.": "/dev/zero", "loop.": "loop." + ext, "folder.": "."} {
			if err := os.Symlink(target, name+ext); err != nil {
				t.Fatal(err)
			}
		}
		write(t, "sparse."+ext, nil)
		if err := os.Truncate("sparse."+ext, 9<<30); err != nil {
			t.Fatal(err)
		}
		write(t, "large."+ext, nil)
		if err := os.Truncate("large."+ext, 700<<20); err != nil {
			t.Fatal(err)
		}
	}
}

// purposes are the uses of files, with the exit codes for strange ones.
var purposes = []struct {
	name, args, ext       string
	zero, large, tooLarge int
}{
	{"program", "FILE --input ones", "pte", 2, 3, 9},
	{"program that is mapped", "FILE --input ones --mmap", "pte", 2, 3, 9},
	{"inspected program", "inspect FILE", "pte", 2, 3, 9},
	{"checked program", "check FILE", "pte", 2, 3, 9},
	{"measured program", "bench FILE --duration 10ms", "pte", 2, 3, 9},
	{"compared program", "compare FILE --vs --plan=naive", "pte", 2, 3, 9},
	{"reference", "compare HERE/add.pte --input ones --input ones --against FILE", "npz", 2, 2, 9},
	{"profiled program", "profile FILE", "pte", 2, 3, 9},
	{"verified program", "verify FILE", "pte", 2, 3, 9},
	{"planned program", "plan FILE", "pte", 2, 3, 9},
	{"lowered program", "lower FILE -o out.pte", "pte", 2, 3, 9},
	{"listed program", "npu disasm FILE", "pte", 2, 3, 9},
	{"data", "HERE/state.pte --data FILE --input ones", "ptd", 2, 3, 9},
	{"elements", "HERE/state.pte --input FILE", "bin", 5, 5, 5},
	{"array", "HERE/state.pte --input FILE", "npy", 2, 2, 2},
	{"archive", "HERE/state.pte --input FILE", "npz", 2, 2, 9},
	{"picture", "PTE/../digits/portable.pte --input FILE", "png", 2, 9, 9},
	{"quantisations", "HERE/state.pte --input ones --qparams FILE", "json", 2, 9, 9},
}

// With any kind of file, the command ends immediately, with the right exit code.
func TestStrangeFiles(t *testing.T) {
	here, _ := filepath.Abs("testdata")
	pte, _ := filepath.Abs("../../testdata/pte")
	inScriptFolder(t)
	strangeFiles(t)
	for _, p := range purposes {
		args := strings.NewReplacer("HERE", here, "PTE", pte).Replace(p.args)
		for _, c := range []struct {
			file string
			code int
		}{{"gone", 2}, {"loop", 2}, {"folder", 2}, {"none", 2}, {"zero", p.zero}, {"large", p.large}, {"sparse", p.tooLarge}} {
			file := c.file + "." + p.ext
			var notes bytes.Buffer
			begun, used := time.Now(), cputime.Process()
			code := run(strings.Fields(strings.Replace(args, "FILE", file, 1)), strings.NewReader(""), io.Discard, &notes)
			if code != c.code || !strings.Contains(notes.String(), file) {
				t.Errorf("%s, %s: exit code %d, want %d; %s", p.name, file, code, c.code, notes.String())
			}
			// To read nine gigabytes takes longer than this; an emulated processor needs half a second for what is right.
			if took, work := time.Since(begun), cputime.Process()-used; took > 10*time.Second || work > 5*time.Second {
				t.Errorf("%s, %s: took %v, %v of a processor", p.name, file, took, work)
			}
		}
	}
}

// A run with a silent pipe ends at the time limit, or by an interrupt.
func TestSilentFiles(t *testing.T) {
	here, _ := filepath.Abs("testdata")
	pte, _ := filepath.Abs("../../testdata/pte")
	inScriptFolder(t)
	strangeFiles(t)
	for _, p := range purposes {
		args := strings.Fields(strings.NewReplacer("HERE", here, "PTE", pte, "FILE", "silent."+p.ext).Replace(p.args))
		if p.ext == "npz" { // a pipe cannot be an archive
			continue
		}
		if p.args[:4] == "FILE" || p.ext != "pte" {
			wantEnd(t, append(args, "--timeout", "100ms"), func(<-chan struct{}) {}, "timeout of 100ms")
		}
		wantEnd(t, args, func(ended <-chan struct{}) { terminate(t, ended) }, "terminated")
	}
}

// terminate sends SIGTERM to this process until a command in it has ended: the first one that arrives after the command
// expects signals ends it. Each has arrived before the next is sent, so that none is left for the next command.
func terminate(t *testing.T, ended <-chan struct{}) {
	t.Helper()
	arrived := make(chan os.Signal, 1)
	signal.Notify(arrived, syscall.SIGTERM)
	defer signal.Stop(arrived)
	await.True(t, "a terminated command has ended", func() bool {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-arrived
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
}

// wantEnd requires that a command ends soon after end, in a fraction of a second on an idle machine, with exit code 8.
func wantEnd(t *testing.T, args []string, end func(ended <-chan struct{}), reason string) {
	t.Helper()
	var notes bytes.Buffer
	code, ended := 0, make(chan struct{})
	begun := time.Now()
	go func() {
		defer close(ended)
		code = run(args, strings.NewReader(""), io.Discard, &notes)
	}()
	end(ended)
	<-ended
	if took := time.Since(begun); code != 8 || !strings.Contains(notes.String(), reason) || took > 10*time.Second {
		t.Errorf("%v: exit code %d after %v, stderr %q, want 8 with %q", args, code, took, notes.String(), reason)
	}
}

// Pipes work like files if they are read to their end.
func TestPipes(t *testing.T) {
	here, _ := filepath.Abs("testdata")
	inScriptFolder(t)
	for name, from := range map[string]string{"p.pte": here + "/state.pte", "p.bin": "four.bin", "p.npy": "four.npy"} {
		contents, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(name, 0o600); err != nil {
			t.Fatal(err)
		}
		go os.WriteFile(name, contents, 0) // once there is a reader
	}
	for _, args := range []string{"p.pte --input zeros", here + "/state.pte --input p.bin", here + "/state.pte --input p.npy"} {
		var notes bytes.Buffer
		if code := run(strings.Fields(args), strings.NewReader(""), io.Discard, &notes); code != 0 {
			t.Errorf("%s: exit code %d, %s", args, code, notes.String())
		}
	}
}
