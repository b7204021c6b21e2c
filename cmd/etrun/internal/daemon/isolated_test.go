//go:build linux && (amd64 || arm64)

package daemon

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etrun-go/etrun/cmd/etrun/internal/bytesize"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/internal/await"
	"github.com/etrun-go/etrun/serve"
)

func isolated(name, path string) *Model {
	m := model(name, path)
	m.Isolate = true
	return m
}

// workers returns the child processes of this one, in no particular order.
func workers(t *testing.T) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		t.Fatalf("no processes in /proc: %v", err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended
		}
		// PID (NAME) STATE PPID …, where NAME may contain anything.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) < 2 || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func kill(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Error(err)
		}
	}
}

// TestIsolated checks that an isolated model answers like others, next to one that is not isolated,
// is reloaded and unloaded.
func TestIsolated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.pte")
	good, err := os.ReadFile(digits)
	if err != nil {
		t.Fatal(err)
	}
	write := func(b []byte) {
		if err := errors.Join(os.WriteFile(path+".new", b, 0o600), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	write(good)
	r := start(t, func(d *Daemon) { d.Control = true }, isolated("m", path), isolated("sums", adder), model("here", adder), isolated("tested", bundle))
	if n := len(workers(t)); n != 3 {
		t.Errorf("%d processes, want 3", n)
	}
	for _, e := range exchanges(t, digits, 3, true) {
		if code, err := e.send(t.Context(), r.client, r.url); code != 200 || err != nil {
			t.Errorf("%d, %v", code, err)
		}
	}
	_, here, _ := r.ask("POST", "/v2/models/here/infer", adderBody)
	if code, text, _ := r.ask("POST", "/v2/models/sums/infer", adderBody); code != 200 || strings.Replace(text, "sums", "here", 1) != here {
		t.Errorf("%d, %s, want %s", code, text, here)
	}
	write(good[:len(good)/2])
	if code, text, _ := r.ask("POST", "/v2/repository/models/m/load", ""); code != 500 || !strings.Contains(text, path) {
		t.Errorf("a broken file: %d, %s", code, text)
	}
	write(good)
	before := workers(t)
	if code, text, _ := r.ask("POST", "/v2/repository/models/m/load", ""); code != 200 {
		t.Errorf("reloaded: %d, %s", code, text)
	}
	if code, text, _ := r.ask("POST", "/v2/repository/models/sums/unload", ""); code != 200 {
		t.Errorf("unloaded: %d, %s", code, text)
	}
	r.wait("two processes are left, one of them new", func() bool {
		now := workers(t)
		fresh := slices.DeleteFunc(slices.Clone(now), func(pid int) bool { return slices.Contains(before, pid) })
		return len(now) == 2 && len(fresh) == 1
	})
	_, text, _ := r.ask("GET", "/metrics", "")
	for _, line := range []string{`etrun_inferences_total{method="forward",model="m",result="ok"} 7`, `etrun_model_info{method="forward",model="m",sha256="`,
		`etrun_inference_duration_seconds_count{backend="XnnpackBackend",method="forward",model="m"} 7`, `etrun_memory_bytes{kind="planned",model="m"}`} {
		if !strings.Contains(text, line) {
			t.Errorf("%s is not among the metrics\n%s", line, text)
		}
	}
}

// TestIsolatedCrash checks that a model is not ready while its process restarts, and that its
// sequences have ended.
func TestIsolatedCrash(t *testing.T) {
	r := start(t, nil, isolated("m", adder))
	step := func(parameters string) (int, string) {
		code, text, _ := r.ask("POST", "/v2/models/m/infer", `{"parameters":{"sequence_id":"s"`+parameters+`},`+adderBody[1:])
		return code, text
	}
	_, first := step(`,"sequence_start":true`)
	if code, second := step(""); code != 200 || second == first {
		t.Errorf("%d, %s after %s", code, second, first)
	}
	old := workers(t)
	kill(t, old)
	r.wait("a new process is ready", func() bool {
		code, _, _ := r.ask("GET", "/v2/health/ready", "")
		now := workers(t)
		return code == 200 && len(now) == 1 && now[0] != old[0]
	})
	if code, text := step(""); code != 410 {
		t.Errorf("a sequence of the old process: %d, %s", code, text)
	}
	if code, text := step(`,"sequence_start":true`); code != 200 || text != first {
		t.Errorf("restarted: %d, %s, want %s", code, text, first)
	}
	kill(t, workers(t))
	r.wait("it is counted", func() bool {
		_, text, _ := r.ask("GET", "/metrics", "")
		return strings.Contains(text, `etrun_isolated_exits_total{model="m"} 2`)
	})
	r.wait("it is ready", func() bool { code, _, _ := r.ask("GET", "/v2/health/ready", ""); return code == 200 })
	if code, text := step(`,"sequence_start":true`); code != 200 || text != first {
		t.Errorf("a start of a sequence that was lost: %d, %s, want %s", code, text, first)
	}
}

// TestIsolatedUnderLoad checks that, under load, a crash fails only the requests in progress: those
// get 502, new ones 503 until the next process is ready, and all answers are correct.
func TestIsolatedUnderLoad(t *testing.T) {
	period := 200 * time.Millisecond
	if loadTime(t) > 10*time.Second {
		period = 5 * time.Second
	}
	m := isolated("m", loadModel())
	m.Instances, m.Queue, m.Timeout = 2, 14, 2*time.Second
	r := start(t, func(d *Daemon) { d.AccessLog = false }, m)
	list := exchanges(t, m.Path, 8, true)
	storm(t, r, 32, list, loadTime(t)/4, func() {})
	before := settled(t)
	kills := 0
	result := storm(t, r, 32, list, loadTime(t), func() {
		for end := time.Now().Add(loadTime(t) - period); time.Now().Before(end); kills++ {
			time.Sleep(period)
			r.wait("there is a process", func() bool { return len(workers(t)) > 0 })
			kill(t, workers(t))
		}
	}, 502, 503)
	after := settled(t)
	t.Logf("%v with %d kills: codes %v, p50 %v, p99 %v, %d MB resident before and %d MB after", loadTime(t), kills, result.codes,
		result.percentile(50), result.percentile(99), before>>20, after>>20)
	if result.codes[200] == 0 || kills == 0 || result.codes[502] > kills*m.Instances || result.percentile(99) > m.Timeout {
		t.Errorf("codes %v after %d kills, p99 %v", result.codes, kills, result.percentile(99))
	}
	if after > before+before/10+16<<20 {
		t.Errorf("memory went from %d to %d bytes", before, after)
	}
}

// TestIsolatedOrphan checks that a process does not outlive a daemon that is killed.
func TestIsolatedOrphan(t *testing.T) {
	if os.Getenv("ETRUN_TEST_ORPHAN") != "" {
		start(t, nil, isolated("m", adder))
		for _, pid := range workers(t) {
			os.Stdout.WriteString("worker " + strconv.Itoa(pid) + "\n")
		}
		kill(t, []int{os.Getpid()})
	}
	c := exec.Command(os.Args[0], "-test.run=^TestIsolatedOrphan$")
	c.Env = append(os.Environ(), "ETRUN_TEST_ORPHAN=1")
	out, err := c.Output()
	_, text, ok := strings.Cut(string(out), "worker ")
	pid, _ := strconv.Atoi(strings.TrimSpace(text))
	if err == nil || !ok || pid == 0 {
		t.Fatalf("%v, %s", err, out)
	}
	await.True(t, "the worker ends", func() bool {
		text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return syscall.Kill(pid, 0) != nil || strings.Contains(string(text), ") Z ") // here, no process may wait for orphans
	})
}

// TestIsolatedRefusals checks that options that do not work with isolation are refused.
func TestIsolatedRefusals(t *testing.T) {
	for _, flags := range [][]string{{"--weights-cache", t.TempDir()}, {"--device", "fvp"}, {"--qparams", "a.json"}} {
		m := isolated("m", adder)
		options, err := m.With(flags)
		if err != nil {
			t.Fatal(err)
		}
		m.Options = *options
		if _, _, err := m.workerArgs(t.Context(), &modelFiles{}); !errors.Is(err, session.ErrUsage) {
			t.Errorf("%v: %v", flags, err)
		}
	}
	l := DefaultLimits()
	l.IsolateMemory = 1
	if err := l.check(); !errors.Is(err, session.ErrUsage) {
		t.Errorf("memory without isolation: %v", err)
	}
}

// The memory of isolated models counts toward the limit of all models, as in this process: those that do not fit are not ready at once.
func TestIsolatedMemory(t *testing.T) {
	const size, models = 256 << 10, 4
	used := make(map[bool]int64)
	for _, isolate := range []bool{false, true} {
		folder := t.TempDir()
		for i := range models {
			place(t, filepath.Join(folder, "m"+strconv.Itoa(i)+".pte"), numbered(t, float32(i), size))
		}
		r := startFolder(t, folder, func(d *Daemon) {
			d.Memory, d.CommonLimits.Isolate = bytesize.Size(size*3/2), isolate
			d.CommonLimits.Load = onDemand
		})
		r.wait("the server is ready", func() bool { code, _, _ := r.ask("GET", "/v2/health/ready", ""); return code == 200 })
		for i := range models {
			if _, code, text := r.firstOf("m" + strconv.Itoa(i)); code != 200 {
				t.Fatalf("model %d: %d %s", i, code, text)
			}
			ready := 0
			for _, m := range r.server.Models() {
				if m.State() == serve.Ready {
					ready++
				}
			}
			if ready != 1 {
				t.Errorf("isolated %v: %d models are ready within the memory of one", isolate, ready)
			}
			used[isolate] = max(used[isolate], r.server.MemoryBytes())
		}
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
	}
	if used[true] < size || used[true] != used[false] {
		t.Errorf("an isolated model of %d bytes counts %d, in this process %d", size, used[true], used[false])
	}
}
