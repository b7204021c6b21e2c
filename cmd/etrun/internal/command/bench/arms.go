package bench

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/procfs"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/bench"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/cmd/etrun/internal/stats"
	"github.com/etrun-go/etrun/runtime/trace"
)

// arm is one program with one set of flags, and its measurements.
type arm struct {
	Name      string        `json:"arm"`
	Model     string        `json:"model"`
	Bytes     int64         `json:"bytes"`
	Flags     string        `json:"flags,omitempty"` // of --vs
	Methods   []string      `json:"methods"`
	Threads   int           `json:"threads"`
	Engines   []string      `json:"engines"` // of delegates, each once
	LoadMS    float64       `json:"load_ms"`
	Stages    []stageReport `json:"load_stages"`
	FirstMS   float64       `json:"first_run_ms"`
	Warmup    int           `json:"warmup_runs"`
	Latency   stats.Summary `json:"latency_ms"` // of the steady state
	PerCell   int           `json:"runs_per_cell"`
	Cells     []float64     `json:"cells_ms"` // medians
	Allocs    float64       `json:"allocations_per_run"`
	Memory    armMemory     `json:"memory_bytes"`
	GoHeapRun float64       `json:"go_bytes_per_run"`

	options  *session.Options
	session  *session.Session
	measured bench.Arm
}

// stageReport is the total time of the load stages of one name.
type stageReport struct {
	Name  string  `json:"name"`
	MS    float64 `json:"ms"`
	Bytes int64   `json:"bytes,omitempty"`
}

// armMemory is the memory that a program reports, and the growth of the process.
type armMemory struct {
	Program  int64 `json:"program"`
	Folded   int64 `json:"folded"`
	Packed   int64 `json:"packed"`
	Planned  int64 `json:"planned"`
	Scratch  int64 `json:"scratch"`
	Resident int64 `json:"resident_added"` // by the load
}

// open opens the program with an observer that records the load stages.
func (a *arm) open(ctx context.Context, calls session.Calls) error {
	before := resident()
	recorder := &trace.Recorder{Kinds: trace.Loads | trace.Memories}
	if err := a.load(ctx, calls, etrun.WithObserver(recorder)); err != nil {
		return err
	}
	a.measured.Run = func(ctx context.Context) (time.Duration, error) { return a.session.Time(ctx) }
	a.measured.Reopen = func() func(context.Context) error {
		a.close()
		return func(ctx context.Context) error { return a.load(ctx, calls) }
	}
	a.Bytes, a.Threads, a.LoadMS = a.session.Spec().Size, a.session.Threads(), stats.MS(a.session.Loaded)
	for _, st := range a.session.Steps {
		a.Methods = append(a.Methods, st.Name())
	}
	a.Engines = a.engines()
	a.stages(recorder.Events)
	a.Memory.Resident = max(resident()-before, 0)
	return nil
}

// load opens the program and prepares its calls.
func (a *arm) load(ctx context.Context, calls session.Calls, more ...etrun.Option) error {
	s, err := session.Open(ctx, a.Model, a.options, more...)
	if err != nil {
		return err
	}
	if err := s.Prepare(ctx, slices.Clone(calls)); err != nil {
		s.Close()
		return err
	}
	a.session = s
	return nil
}

// close closes the program, if it is open.
func (a *arm) close() {
	if a.session != nil {
		a.session.Close()
		a.session = nil
	}
}

// engines returns the engines of the loaded methods' delegates.
func (a *arm) engines() []string {
	list := []string{}
	for _, st := range a.session.Steps {
		m, ok := st.Callee.(*etrun.Method)
		if !ok {
			continue
		}
		for _, info := range m.Delegates() {
			if text := info.Backend + " " + info.Engine; !slices.Contains(list, text) {
				list = append(list, text)
			}
		}
	}
	return list
}

// stages sums the load stages by name, in order, and the memory by kind.
func (a *arm) stages(events []trace.Event) {
	memory := map[string]*int64{trace.MemoryProgram: &a.Memory.Program, trace.MemoryFolded: &a.Memory.Folded,
		trace.MemoryPacked: &a.Memory.Packed, trace.MemoryPlanned: &a.Memory.Planned, trace.MemoryScratch: &a.Memory.Scratch}
	a.Stages = []stageReport{}
	for i := range events {
		e := &events[i]
		if sum, ok := memory[e.Name]; ok && e.Kind == trace.Memory {
			*sum += e.Bytes
		}
		if e.Kind != trace.Stage {
			continue
		}
		at := slices.IndexFunc(a.Stages, func(s stageReport) bool { return s.Name == e.Name })
		if at < 0 {
			at = len(a.Stages)
			a.Stages = append(a.Stages, stageReport{Name: e.Name})
		}
		a.Stages[at].MS += stats.MS(e.Duration())
		a.Stages[at].Bytes += e.Bytes
	}
}

// finish summarizes the measurements. Unless interrupted, it counts allocations in a few
// more runs.
func (a *arm) finish(ctx context.Context, p bench.Plan) {
	m := &a.measured
	a.FirstMS, a.Warmup, a.PerCell, a.Cells = stats.MS(m.First), m.Warmup, m.PerCell, append([]float64{}, m.Cells...)
	a.Latency = stats.Of(m.Runs)
	if ctx.Err() == nil && a.session != nil && len(m.Runs) > 0 {
		typical := time.Duration(a.Latency.P50 * float64(time.Millisecond))
		a.allocations(ctx, min(max(1, int(p.Duration/10/max(typical, 1))), 100))
	}
}

// allocations counts the Go heap allocations of n runs.
func (a *arm) allocations(ctx context.Context, n int) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		if _, err := a.session.Time(ctx); err != nil {
			return
		}
	}
	runtime.ReadMemStats(&after)
	a.Allocs = float64((after.Mallocs - before.Mallocs) / uint64(n)) // rounded down: stray allocations belong to the Go runtime
	a.GoHeapRun = float64((after.TotalAlloc - before.TotalAlloc) / uint64(n))
}

// resident returns the resident memory of the process, 0 if unknown.
func resident() int64 { return int64(processStatus().VmRSS) }

func processStatus() procfs.ProcStatus {
	p, err := procfs.Self()
	if err != nil {
		return procfs.ProcStatus{}
	}
	s, _ := p.NewStatus()
	return s
}
