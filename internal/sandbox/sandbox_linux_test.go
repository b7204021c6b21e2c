//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/etrun-go/etrun/internal/needs"
)

// attempt is the environment variable that turns this program into the confined process: the stage
// of its filter, or "born" for a process confined only by the parent's thread.
const attempt = "CONFINE_TEST_ATTEMPT"

func TestMain(m *testing.M) {
	if stage := os.Getenv(attempt); stage != "" {
		try(stage)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// attempts are the actions that a confined process tries.
var attempts = []struct {
	name string
	do   func(dir string) error
}{
	{"read a file that is allowed", func(dir string) error { _, err := os.ReadFile(filepath.Join(dir, "allowed")); return err }},
	{"read another file", func(dir string) error { _, err := os.ReadFile(filepath.Join(dir, "other")); return err }},
	{"write a file", func(dir string) error { return os.WriteFile(filepath.Join(dir, "new"), nil, 0o600) }},
	{"remove a file", func(dir string) error { return os.Remove(filepath.Join(dir, "doomed")) }},
	{"execute", func(string) error { return exec.Command("/bin/sh", "-c", "exit 0").Run() }},
	{"connect", func(string) error {
		c, err := net.Dial("tcp", os.Getenv("CONFINE_TEST_ADDRESS"))
		if err == nil {
			c.Close()
		}
		return err
	}},
	{"signal the parent", func(string) error { return syscall.Kill(os.Getppid(), 0) }},
	{"trace the parent", func(string) error { return unix.PtraceSeize(os.Getppid()) }},
	{"map code", func(string) error {
		_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
		return err
	}},
	{"have capabilities", func(string) error {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil || strings.Contains(string(status), "CapEff:\t0000000000000000") {
			return errors.New("none")
		}
		return nil
	}},
	{"compute on threads", func(string) error { compute(); return nil }},
}

// compute allocates memory and uses threads.
func compute() {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			runtime.LockOSThread() // the thread ends with it
			b := make([]byte, 8<<20)
			for i := range b {
				b[i] = 1
			}
		})
	}
	all.Wait()
	runtime.GC()
}

// try prints the name of each action that succeeds.
func try(stage string) {
	if stage == "load" || stage == "serve" {
		for _, s := range []Stage{Load, Serve}[:1+len(stage)-4] {
			if l := Filter(s); l.Err != nil {
				fmt.Println(l)
			}
		}
	}
	for _, a := range attempts {
		if a.do(os.Getenv("CONFINE_TEST_DIR")) == nil {
			fmt.Println(a.name)
		}
	}
}

// TestConfined starts this program with each layer and with all of them.
func TestConfined(t *testing.T) {
	for _, l := range Available() {
		if l.Err != nil {
			needs.Missing(t, "%s in the kernel: %v", l.Name, l.Err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	all := make([]string, len(attempts))
	for i := range attempts {
		all[i] = attempts[i].name
	}
	for _, c := range []struct {
		stage string
		born  bool
		can   []string
	}{
		{"born", false, all},
		{"load", false, []string{"read a file that is allowed", "read another file", "have capabilities", "compute on threads"}},
		{"serve", false, []string{"compute on threads"}},
		{"born", true, []string{"read a file that is allowed", "map code", "compute on threads"}},
		{"load", true, []string{"read a file that is allowed", "compute on threads"}},
		{"serve", true, []string{"compute on threads"}},
	} {
		if os.Getuid() != 0 && !c.born {
			continue // without capabilities some of these fail anyway
		}
		got := start(t, c.stage, c.born, listener.Addr().String())
		if strings.Join(got, ", ") != strings.Join(c.can, ", ") {
			t.Errorf("%s, born confined %v: it can %q, want %q", c.stage, c.born, got, c.can)
		}
	}
}

// start tries the actions in a process and returns those that succeeded.
func start(t *testing.T, stage string, confined bool, address string) (can []string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"allowed", "other", "doomed"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), attempt+"="+stage, "CONFINE_TEST_DIR="+dir, "CONFINE_TEST_ADDRESS="+address)
	c.Stderr = os.Stderr
	var out []byte
	var err error
	done := make(chan struct{})
	go OwnThread(func() {
		defer close(done)
		if confined {
			exe, _ := os.Executable()
			for _, l := range Thread(Files{Read: []string{filepath.Join(dir, "allowed"), filepath.Join(dir, "gone"), "/proc", os.DevNull},
				Execute: []string{exe, "/lib", "/lib64", "/usr/lib"}}) {
				if l.Err != nil {
					err = errors.Join(err, l.Err)
				}
			}
		}
		if err == nil {
			out, err = c.Output()
		}
	})
	<-done
	if err != nil {
		t.Fatalf("%s: %v\n%s", stage, err, out)
	}
	lines := bufio.NewScanner(strings.NewReader(string(out)))
	for lines.Scan() {
		can = append(can, lines.Text())
	}
	return can
}

// TestProgram checks that the jumps of a filter stay inside, and that every path ends with a
// decision.
func TestProgram(t *testing.T) {
	for _, s := range []Stage{Load, Serve} {
		list := program(allowed(s))
		for i, in := range list {
			class, reach := in.Code&7, 1
			if class == unix.BPF_JMP {
				reach = 1 + int(max(in.Jt, in.Jf))
			}
			if class != unix.BPF_RET && i+reach >= len(list) {
				t.Errorf("stage %d: instruction %d of %d reaches beyond the end", s, i, len(list))
			}
		}
		if last := list[len(list)-1]; last.Code != unix.BPF_RET|unix.BPF_K || last.K != refused {
			t.Errorf("stage %d ends with %+v", s, last)
		}
	}
}
