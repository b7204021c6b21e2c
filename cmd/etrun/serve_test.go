package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/etrun-go/etrun/internal/await"
)

// service is etrun serve in a separate process, started like systemd does.
type service struct {
	t      *testing.T
	cmd    *exec.Cmd
	socket string
	states chan string // states reported to systemd, one per line
	client *http.Client

	mu  sync.Mutex
	log bytes.Buffer
}

func (s *service) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(b)
}

func (s *service) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// startService starts it on a unix socket. files are passed like sockets of systemd.
func startService(t *testing.T, env []string, files []*os.File, args ...string) *service {
	t.Helper()
	dir := t.TempDir()
	s := &service{t: t, socket: filepath.Join(dir, "s"), states: make(chan string, 100)}
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { notify.Close() })
	go s.listen(notify)
	s.client = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", s.socket) }}}
	t.Cleanup(s.client.CloseIdleConnections)
	s.cmd = exec.Command(os.Args[0], append([]string{"serve"}, args...)...)
	if len(files) > 0 { // the variable contains the id of the process
		s.cmd = exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ exec "$0" "$@"`, os.Args[0], "serve"}, args...)...)
	}
	s.cmd.Env = append(os.Environ(), asCommand+"=1", "NOTIFY_SOCKET="+filepath.Join(dir, "notify"))
	s.cmd.Env = append(s.cmd.Env, env...)
	s.cmd.Stderr, s.cmd.ExtraFiles = s, files
	if len(files) == 0 {
		s.cmd.Args = append(s.cmd.Args, "--listen", "unix:"+s.socket)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	return s
}

func (s *service) listen(notify *net.UnixConn) {
	b := make([]byte, 4096)
	for {
		n, err := notify.Read(b)
		if err != nil {
			return
		}
		for line := range strings.Lines(string(b[:n])) {
			s.states <- strings.TrimSpace(line)
		}
	}
}

// waitForState waits until systemd receives a state.
func (s *service) waitForState(want string) {
	s.t.Helper()
	for {
		select {
		case state := <-s.states:
			if strings.HasPrefix(state, want) {
				return
			}
		case <-time.After(20 * time.Second):
			s.t.Fatalf("systemd is not told %s; log:\n%s", want, s.text())
		}
	}
}

func (s *service) waitForLog(want string) {
	s.t.Helper()
	if !await.Until(func() bool { return strings.Contains(s.text(), want) }) {
		s.t.Fatalf("the log has no %q: %s", want, s.text())
	}
}

func (s *service) signal(number syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(number); err != nil {
		s.t.Fatal(err)
	}
}

// end waits for the end of the process and compares its exit code.
func (s *service) end(want int) {
	s.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- s.cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		s.t.Fatalf("it does not end; log:\n%s", s.text())
	}
	if code := s.cmd.ProcessState.ExitCode(); code != want {
		s.t.Errorf("exit code %d, want %d; log:\n%s", code, want, s.text())
	}
}

const addInput = `{"inputs":[{"name":"input_0","shape":[4],"datatype":"FP32","data":[1,2,3,4]}]}`

func (s *service) infer(model string) (int, string) {
	s.t.Helper()
	answer, err := s.client.Post("http://localhost/v2/models/"+model+"/infer", "application/json", strings.NewReader(addInput))
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Error(err)
	}
	return answer.StatusCode, string(b)
}

func modelFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.pte")
	if err := os.WriteFile(path, []byte(readText(t, "testdata", "pte", "initial_state.pte")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestServeSignals checks that SIGHUP reloads models, except those that fail their self-test, and
// that SIGTERM ends the server.
func TestServeSignals(t *testing.T) {
	path := modelFile(t)
	s := startService(t, nil, nil, path)
	s.waitForState("READY=1")
	code, first := s.infer("m")
	if code != 200 {
		t.Fatalf("%d, %s", code, first)
	}
	if err := os.WriteFile(path+".new", []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	s.signal(syscall.SIGHUP)
	s.waitForState("RELOADING=1")
	s.waitForState("MONOTONIC_USEC=")
	s.waitForState("READY=1")
	if code, text := s.infer("m"); code != 200 || text != first {
		t.Errorf("after a load of a broken file: %d, %s", code, text)
	}
	s.waitForLog("model not loaded")
	s.signal(syscall.SIGTERM)
	s.waitForState("STOPPING=1")
	s.end(0)
}

// TestServeEndsAtOnce checks that SIGTERM ends the server at any time: during startup and during a
// reload.
func TestServeEndsAtOnce(t *testing.T) {
	for i := range 6 {
		s := startService(t, nil, nil, modelFile(t))
		switch i % 3 {
		case 0:
			time.Sleep(time.Duration(20+i*10) * time.Millisecond) // before its signal handlers are set up the process ends anyway
			s.signal(syscall.SIGTERM)
			_ = s.cmd.Wait()
			if code := s.cmd.ProcessState.ExitCode(); code > 0 && code != 8 {
				t.Errorf("exit code %d; log:\n%s", code, s.text())
			}
			continue
		case 1:
			s.waitForState("READY=1")
			s.signal(syscall.SIGHUP)
		case 2:
			s.waitForState("READY=1")
			for range 20 {
				s.signal(syscall.SIGHUP)
			}
		}
		s.signal(syscall.SIGTERM)
		s.end(0)
	}
}

// TestServeWatchdog checks that the watchdog is notified as long as models run.
func TestServeWatchdog(t *testing.T) {
	s := startService(t, []string{"WATCHDOG_USEC=100000"}, nil, modelFile(t))
	s.waitForState("READY=1")
	s.waitForState("WATCHDOG=1")
	s.waitForState("WATCHDOG=1")
	s.signal(syscall.SIGTERM)
	s.end(0)
}

// TestServeSocketActivation uses a socket that systemd opened.
func TestServeSocketActivation(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := startService(t, []string{"LISTEN_FDS=1"}, []*os.File{f}, modelFile(t), "--listen", "systemd")
	s.waitForState("READY=1")
	s.client.Transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("tcp", l.Addr().String())
	}}
	if code, text := s.infer("m"); code != 200 {
		t.Fatalf("%d, %s; log:\n%s", code, text, s.text())
	}
	s.signal(syscall.SIGTERM)
	s.end(0)
}

func TestServeUsage(t *testing.T) {
	for line, want := range map[string]string{
		"serve":          "no model",
		"serve gone.pte": "gone.pte",
		"serve testdata/add.pte testdata/add.pte":       "two models",
		"serve testdata/add.pte --listen 0.0.0.0:0":     "--insecure",
		"serve testdata/add.pte --queue -1":             "want at least 0",
		"serve testdata/add.pte --log-format xml":       "xml",
		"serve testdata/add.pte --json":                 "--log-format",
		"serve testdata/add.pte --method gone":          "gone",
		"serve a/b=testdata/add.pte":                    "a/b=testdata/add.pte",
		"serve .x=testdata/add.pte":                     "model name",
		"serve testdata/add.pte --max-batch 4":          "batch",
		"serve testdata/add.pte --config testdata/gone": "gone",
		"serve testdata/add.pte --token-file serve.go":  "want at least 16",
		"serve testdata/add.pte --tls-cert serve.go":    "--tls-key",
		"serve testdata/add.pte --max-memory 1":         "the limit is 1",
		"serve testdata/add.pte --listen 127.0.0.1":     "missing port",
		"serve testdata/add.pte --host 0.0.0.0":         "want --listen",
		"serve testdata/add.pte --port 8000":            "want --listen HOST:PORT",
		"serve testdata/add.pte --api-key x":            "--token-file",
	} {
		if !strings.Contains(line, "--listen") {
			line += " --listen unix:" + filepath.Join(t.TempDir(), "s")
		}
		code, _, notes := etrunLines(t, line)
		if code == 0 || strings.Count(notes, want) == 0 || want == "gone.pte" && strings.Count(notes, "no such file") != 1 {
			t.Errorf("%s: exit code %d, %q is not in %s, or its cause is twice", line, code, want, notes)
		}
	}
}

// TestServeMemory checks that the command's own memory is far below its limits.
func TestServeMemory(t *testing.T) {
	s := startService(t, nil, nil, modelFile(t))
	s.waitForState("READY=1")
	for range 50 {
		if code, text := s.infer("m"); code != 200 {
			t.Fatal(code, text)
		}
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(status), "\n")
	at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "VmRSS:") })
	kB, err := strconv.Atoi(strings.Fields(lines[at])[1])
	if err != nil || kB > 128<<10 {
		t.Errorf("%d kB resident, %v", kB, err)
	}
	t.Logf("%d kB resident", kB)
	s.signal(syscall.SIGTERM)
	s.end(0)
}

// TestServeConfiguration checks that SIGHUP reads the configuration again: models are added, changed and
// removed, and what fails stays as it was.
func TestServeConfiguration(t *testing.T) {
	first, second := modelFile(t), modelFile(t)
	path := filepath.Join(t.TempDir(), "serve.json")
	configure := func(text string) {
		text = strings.NewReplacer("FIRST", first, "SECOND", second).Replace(text)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure(`{"models": [{"name": "a", "path": "FIRST"}, {"name": "b", "path": "FIRST"}]}`)
	s := startService(t, nil, nil, "--config", path, "--queue", "9")
	s.waitForState("READY=1")
	for _, c := range []struct {
		text string
		a, b int // statuses of requests
		c    int
		log  string
	}{
		{`{"models": [{"name": "a", "path": "FIRST", "method": ["none"]}, {"name": "c", "path": "SECOND"}]}`, 200, 404, 200, "model removed"},
		{`{"models": [{"name": "a", "path": "FIRST"}, {"name": "c", "path": "missing"}, {"name": "b", "path": "missing"}]}`, 200, 503, 200,
			"missing"},
		{`{"models": [`, 200, 503, 200, "configuration not reloaded"},
		{`{"models": [{"name": "a", "path": "FIRST"}, {"name": "a", "path": "SECOND"}]}`, 200, 503, 200, "two models with the name"},
		{`{"drain": "3s", "models": [{"name": "b", "path": "SECOND", "instances": 3}]}`, 404, 200, 404, "settings of the server have changed"},
	} {
		configure(c.text)
		s.signal(syscall.SIGHUP)
		s.waitForState("RELOADING=1")
		s.waitForState("READY=1")
		for name, want := range map[string]int{"a": c.a, "b": c.b, "c": c.c} {
			if code, text := s.infer(name); code != want {
				t.Errorf("%s: model %s: %d %s, want %d", c.text, name, code, text, want)
			}
		}
		s.waitForLog(c.log)
	}
	s.signal(syscall.SIGTERM)
	s.end(0)
}
