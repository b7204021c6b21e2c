package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
)

func digits(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, "testdata", "digits", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// benched runs bench with --json.
func benched(t *testing.T, args ...string) *benchReport {
	t.Helper()
	var out, notes bytes.Buffer
	if code := run(append([]string{"bench", "--json"}, args...), strings.NewReader(""), &out, &notes); code != 0 {
		t.Fatalf("exit code %d: %s", code, notes.String())
	}
	r := &benchReport{}
	if err := json.Unmarshal(out.Bytes(), r); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	return r
}

func TestBenchReport(t *testing.T) {
	r := benched(t, digits(t, "xnnpack.pte"), "--duration", "20ms", "--threads", "1")
	if r.Schema != "etrun.bench/1" || r.Interrupted || len(r.Arms) != 1 || len(r.Comparisons) != 0 {
		t.Fatalf("got %+v, want one arm", r)
	}
	a := r.Arms[0]
	l := a.Latency
	order := []float64{0, l.Min, l.P50, l.P90, l.P95, l.P99, l.Max}
	for i := 1; i < len(order); i++ {
		if order[i] < order[i-1] {
			t.Errorf("percentiles %v do not ascend", order)
		}
	}
	if l.N != a.PerCell*len(a.Cells) || l.N == 0 || a.FirstMS <= 0 || a.Threads != 1 || a.Methods[0] != "forward" {
		t.Errorf("%d runs in %d cells of %d, first %v ms, %d threads, methods %v", l.N, len(a.Cells), a.PerCell, a.FirstMS, a.Threads, a.Methods)
	}
	stages := make(map[string]bool)
	for _, s := range a.Stages {
		stages[s.Name] = true
	}
	for _, name := range []string{"read", "parse", "compile", "plan", "units"} {
		if !stages[name] {
			t.Errorf("no stage %q in %v", name, a.Stages)
		}
	}
	if m := a.Memory; m.Program <= 0 || m.Planned <= 0 || r.Process.PeakResident <= 0 || r.Process.GoHeap <= 0 {
		t.Errorf("memory %+v, process %+v", m, r.Process)
	}
	if a.Allocs > 0 && shadow == 1 {
		t.Errorf("%v allocations a run", a.Allocs)
	}
	if e := r.Environment; e.Version == "" || e.Processors < 1 || len(e.Backends) == 0 {
		t.Errorf("environment %+v", e)
	}
}

// Two engines of one program are two alternating arms; the Go engine takes longer.
func TestBenchCompares(t *testing.T) {
	r := benched(t, digits(t, "portable.pte"), digits(t, "xnnpack.pte"), "--vs", "--xnnpack go", "--threads", "1,2", "--duration", "20ms")
	if len(r.Arms) != 4 || len(r.Comparisons) != 2 {
		t.Fatalf("%d arms, %d comparisons, want 4 and 2", len(r.Arms), len(r.Comparisons))
	}
	for i, c := range r.Comparisons {
		if c.Blocks < stats.MinBlocks || !(c.Low <= c.Value && c.Value <= c.High) || c.Low <= 0 || c.Threads != [2]int{i + 1, i + 1} {
			t.Errorf("comparison %d: %+v", i, c)
		}
	}
	if b := r.Arms[1]; b.Name != "B" || b.Engines[0] != "XnnpackBackend go" || b.Flags != "--xnnpack go" {
		t.Errorf("arm B: %+v", b)
	}
}

// TestBenchLowered compares a program with itself lowered, whose delegates are not the file's.
func TestBenchLowered(t *testing.T) {
	r := benched(t, digits(t, "portable.pte"), "--lower", "rewrite", "--vs", "--lower all", "--duration", "20ms", "--threads", "1")
	if a, b := r.Arms[0], r.Arms[1]; len(a.Engines) != 0 || len(b.Engines) != 1 || !strings.HasPrefix(b.Engines[0], "XnnpackBackend ") {
		t.Errorf("engines %q and %q, want one in the second arm", a.Engines, b.Engines)
	}
}

// Benchstat's own parser accepts every line.
func TestBenchBenchstat(t *testing.T) {
	var out, notes bytes.Buffer
	args := []string{"bench", digits(t, "portable.pte"), "--threads", "1,2", "--duration", "20ms", "--format", "benchstat"}
	if code := run(args, strings.NewReader(""), &out, &notes); code != 0 {
		t.Fatalf("exit code %d: %s", code, notes.String())
	}
	lines := make(map[string]int)
	reader := benchfmt.NewReader(&out, "bench")
	for reader.Scan() {
		r, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			t.Errorf("no result: %v", reader.Result())
			continue
		}
		if seconds, ok := r.Value("sec/op"); !ok || !(seconds > 0) || math.IsInf(seconds, 0) || r.GetConfig("goos") == "" {
			t.Errorf("%s: %v s, goos %q", r.Name, seconds, r.GetConfig("goos"))
		}
		lines[string(r.Name)]++
	}
	if err := reader.Err(); err != nil {
		t.Fatal(err)
	}
	for _, arm := range []string{"arm=A/threads=1", "arm=B/threads=2"} {
		if n := lines["Run/model=portable.pte/"+arm]; n < 2*stats.MinBlocks {
			t.Errorf("%s: %d cells in %v", arm, n, lines)
		}
		if lines["Load/model=portable.pte/"+arm] != 1 || lines["FirstRun/model=portable.pte/"+arm] != 1 {
			t.Errorf("%s: load and first run in %v", arm, lines)
		}
	}
}

// onceWritten acts at the first write.
type onceWritten struct{ act func() }

func (w *onceWritten) Write(b []byte) (int, error) {
	if w.act != nil {
		w.act()
		w.act = nil
	}
	return len(b), nil
}

// An interrupt prints the figures so far, in JSON as one complete object. It comes later on a machine that is still warming up.
func TestBenchInterrupted(t *testing.T) {
	for running := 100 * time.Millisecond; ; running *= 4 {
		var out bytes.Buffer
		notes := &onceWritten{func() { // random inputs are told of
			time.AfterFunc(running, func() {
				if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
					t.Error(err)
				}
			})
		}}
		code := run([]string{"bench", digits(t, "portable.pte"), "--json", "--duration", "1h"}, strings.NewReader(""), &out, notes)
		r := &benchReport{}
		if err := json.Unmarshal(out.Bytes(), r); err != nil || code != 8 {
			t.Fatalf("exit code %d, want 8; %v in %q", code, err, out.String())
		}
		if r.Interrupted && len(r.Arms) == 1 && r.Arms[0].Latency.N > 0 && r.Arms[0].FirstMS > 0 {
			return
		}
		if running > 4*time.Second {
			t.Fatalf("got %+v, want the figures so far", r)
		}
	}
}

func TestBenchRefuses(t *testing.T) {
	play(t, []script{
		{name: "nothing", args: "bench", code: 2, stderr: []string{"0 arguments, want A.pte or A.pte B.pte"}},
		{name: "three programs", args: "bench a b c", code: 2, stderr: []string{"3 arguments"}},
		{name: "format", args: "bench HERE/add.pte --format csv", code: 2, stderr: []string{"table, json, benchstat"}},
		{name: "duration", args: "bench HERE/add.pte --duration 0s", code: 2, stderr: []string{"--duration 0s"}},
		{name: "rate", args: "bench HERE/add.pte --rate -1", code: 2, stderr: []string{"--rate -1"}},
		{name: "threads", args: "bench HERE/add.pte --threads 1,-2", code: 2, stderr: []string{"--threads [1 -2]"}},
		{name: "unknown flag of the second", args: "bench HERE/add.pte --vs --gpu", code: 2, stderr: []string{"--vs: unknown flag: --gpu"}},
		{name: "value of the second", args: "bench HERE/add.pte --vs --plan=best", code: 2, stderr: []string{"--vs: ", "--plan \"best\""}},
		{name: "absent", args: "bench HERE/add.pte gone.pte", code: 2, stderr: []string{"gone.pte"}},
		{name: "not a program", args: "bench noise.pte", code: 3},
		{name: "missing", args: "bench PTE/external_weights.pte", code: 4, stderr: []string{"l.weight"}},
		{name: "inputs", args: "bench HERE/add.pte --input ones", code: 5, stderr: []string{"input 1: missing"}},
		{name: "table", args: "bench HERE/state.pte --duration 20ms --threads 1", stdout: []string{"load average", "A  ", "load ", "first run", "p99", "MAD", "memory", "process: at most"}},
		{name: "stateful, two calls", args: "bench HERE/state.pte --input ones --next --input ones --duration 20ms --rate 1000", stdout: []string{"forward + forward"}},
	})
}
