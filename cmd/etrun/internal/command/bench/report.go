package bench

import (
	"os"
	"runtime"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/etrun-go/etrun/cmd/etrun/internal/bench"
	"github.com/etrun-go/etrun/cmd/etrun/internal/machine"
	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/hal/cpu"
)

// report is the JSON object of bench.
type report struct {
	Schema      string        `json:"schema"`
	Environment environment   `json:"environment"`
	DurationS   float64       `json:"duration_s"`
	Rate        float64       `json:"rate,omitempty"`
	Interrupted bool          `json:"interrupted"`
	Arms        []*arm        `json:"arms"`
	Comparisons []comparison  `json:"comparisons"`
	Process     processMemory `json:"process_bytes"`
}

// comparison is the ratio of two arms that were measured together.
type comparison struct {
	Arm      string `json:"arm"`
	Baseline string `json:"baseline"`
	Threads  [2]int `json:"threads"` // of the arm and of the baseline
	stats.Ratio
	Verdict string `json:"verdict"` // faster, slower, or not resolved
}

// processMemory is the memory of the whole process, all arms together.
type processMemory struct {
	PeakResident int64 `json:"peak_resident"`
	GoHeap       int64 `json:"go_heap"` // live after the steady state, with the programs open
}

// environment is everything else that affects the times.
type environment struct {
	Version    string            `json:"version"`
	CPU        string            `json:"cpu"`
	Features   []string          `json:"features"`
	Processors int               `json:"processors"`
	Quota      string            `json:"cgroup_quota,omitempty"`
	GoMaxProcs int               `json:"gomaxprocs"`
	Governor   string            `json:"governor,omitempty"`
	LoadBefore float64           `json:"load_average_before"` // of the last minute
	LoadAfter  float64           `json:"load_average_after"`
	Backends   []machine.Backend `json:"backends"`
}

func newBenchReport(version string, p bench.Plan) *report {
	return &report{Schema: "etrun.bench/1", Environment: newEnvironment(version), DurationS: p.Duration.Seconds(), Rate: p.Rate,
		Arms: []*arm{}, Comparisons: []comparison{}}
}

func newEnvironment(version string) environment {
	e := environment{Version: version, CPU: machine.Processor(), Features: []string{}, Processors: cpu.Allowed(), Quota: machine.Quota(),
		GoMaxProcs: runtime.GOMAXPROCS(0), LoadBefore: loadAverage()}
	for _, f := range cpu.Features() {
		if f.Has {
			e.Features = append(e.Features, f.Name)
		}
	}
	for _, b := range all.Backends() {
		s := b.Probe()
		e.Backends = append(e.Backends, machine.Backend{ID: b.ID(), Loaded: s.Loaded, Engine: s.Engine, Detail: s.Detail})
	}
	if text, err := os.ReadFile("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"); err == nil {
		e.Governor = strings.TrimSpace(string(text))
	}
	return e
}

// loadAverage returns the load average of the last minute, 0 if unknown.
func loadAverage() float64 {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0
	}
	load, err := fs.LoadAvg()
	if err != nil {
		return 0
	}
	return load.Load1
}

// finish adds the figures of the end; err is the error that ended the measurement.
func (r *report) finish(err error) {
	r.Interrupted = err != nil
	r.Environment.LoadAfter = loadAverage()
	r.Process.PeakResident = int64(processStatus().VmHWM)
}

// liveHeap returns the live bytes of the Go heap.
func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// measured reports whether the steady state was measured.
func (r *report) measured() bool {
	return len(r.Arms) > 0 && r.Arms[0].Latency.N > 0
}

// compare adds the ratio of two arms.
func (r *report) compare(baseline, a *arm) {
	c := comparison{Arm: a.Name, Baseline: baseline.Name, Threads: [2]int{a.Threads, baseline.Threads},
		Ratio: stats.Compare(baseline.Cells, a.Cells), Verdict: "not resolved"}
	switch {
	case c.Resolved() && c.High < 1:
		c.Verdict = "faster"
	case c.Resolved():
		c.Verdict = "slower"
	}
	r.Comparisons = append(r.Comparisons, c)
}
