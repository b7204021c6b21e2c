package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/runtime/metrics"
	"github.com/etrun-go/etrun/runtime/trace"
)

const digits = "../../testdata/digits/xnnpack.pte"

// gather returns the metrics of a scrape, keyed by "name label=value …".
func gather(t *testing.T, c prometheus.Collector) map[string]*dto.Metric {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]*dto.Metric)
	for _, f := range families {
		for _, m := range f.Metric {
			key := f.GetName()
			for _, l := range m.Label {
				key += " " + l.GetName() + "=" + l.GetValue()
			}
			found[key] = m
		}
	}
	return found
}

// number returns the value of a counter or gauge, or the count of a histogram or summary.
func number(m *dto.Metric) float64 {
	if m.Summary != nil {
		return float64(m.Summary.GetSampleCount())
	}
	if m.Histogram != nil {
		return float64(m.Histogram.GetSampleCount())
	}
	return m.GetCounter().GetValue() + m.GetGauge().GetValue()
}

// run opens a program; callers run it n times each on a pool of two, and one caller once without
// its input.
func run(t *testing.T, c *metrics.Collector, callers, n int) {
	t.Helper()
	model := c.Model("digits", "0123abcd")
	prog, err := etrun.Open(digits, etrun.WithDelegates(xnnpack.Backend{Engine: xnnpack.EngineGo}), etrun.WithObserver(model))
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	pool, err := prog.NewPool("", 2)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	model.SetQueue(func() int { return pool.Stats().Waiting })
	if err := pool.Do(t.Context(), func(m *etrun.Method) error { return m.Execute(t.Context()) }); !errors.Is(err, etrun.ErrInput) {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range n {
				err := pool.Do(t.Context(), func(m *etrun.Method) error {
					_, err := etrun.Run[float32](t.Context(), m, make([]float32, 64))
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	held := gather(t, c)
	for _, kind := range []string{trace.MemoryProgram, trace.MemoryPlanned} {
		if m := held["etrun_memory_bytes kind="+kind+" model=digits"]; m == nil || number(m) <= 0 {
			t.Errorf("memory of kind %s while a program is open: %v", kind, m)
		}
	}
}

// TestNames checks the names and labels, on which dashboards rely.
func TestNames(t *testing.T) {
	for _, detail := range []bool{false, true} {
		checkNames(t, detail)
	}
}

func checkNames(t *testing.T, detail bool) {
	t.Helper()
	c := metrics.New(metrics.Options{Version: "v1", Backends: all.Backends(), Detail: detail})
	run(t, c, 1, 1)
	if _, err := etrun.Parse(nil, etrun.WithObserver(c.Model("digits", "0123abcd"))); err == nil {
		t.Error("Parse of an empty program: got no error")
	}
	var names []string
	for key := range gather(t, c) {
		fields := strings.Fields(key)
		name := fields[0] + "{"
		for i, f := range fields[1:] {
			label, value, _ := strings.Cut(f, "=")
			if i > 0 {
				name += ","
			}
			name += label
			if label == "stage" || label == "kind" || label == "result" || label == "reason" {
				name += "=" + value
			}
		}
		names = append(names, name+"}")
	}
	slices.Sort(names)
	stages := wantStages[detail]
	want := strings.Replace(wantNames, "STAGE", strings.Join(stages, "}\netrun_model_load_duration_seconds{model,stage="), 1)
	if got := strings.Join(names, "\n"); got != want {
		t.Errorf("detail %v: got\n%s\nwant\n%s", detail, got, want)
	}
	if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
}

// wantStages are the stages of loads, without and with detail.
var wantStages = map[bool][]string{
	false: {"load", "open"},
	true: {"allocate", "build", "compile", "data", "find", "fold", "lower", "parse", "plan", "read", "resolve", "rewrite",
		"units"},
}

const wantNames = `etrun_build_info{ethosu,go_version,version,xnnpack}
etrun_delegate_duration_seconds{backend,model}
etrun_errors_total{model,reason=format}
etrun_errors_total{model,reason=input}
etrun_inference_duration_seconds{backend,method,model}
etrun_inferences_in_flight{model}
etrun_inferences_total{method,model,result=error}
etrun_inferences_total{method,model,result=ok}
etrun_memory_bytes{kind=packed,model}
etrun_memory_bytes{kind=planned,model}
etrun_memory_bytes{kind=program,model}
etrun_memory_bytes{kind=scratch,model}
etrun_model_info{method,model,sha256}
etrun_model_load_duration_seconds{model,stage=STAGE}
etrun_queue_length{model}
etrun_queue_rejected_total{model}
etrun_queue_wait_seconds{model}`

// TestCounts runs callers concurrently and checks that every run is counted once.
func TestCounts(t *testing.T) {
	c := metrics.New(metrics.Options{})
	const callers, n = 4, 25
	run(t, c, callers, n)
	got := gather(t, c)
	for key, want := range map[string]float64{
		"etrun_inferences_total method=forward model=digits result=ok":                        callers * n,
		"etrun_inferences_total method=forward model=digits result=error":                     1,
		"etrun_inference_duration_seconds backend=XnnpackBackend method=forward model=digits": callers * n,
		"etrun_delegate_duration_seconds backend=XnnpackBackend model=digits":                 callers * n,
		"etrun_queue_wait_seconds model=digits":                                               callers*n + 1,
		"etrun_inferences_in_flight model=digits":                                             0,
		"etrun_errors_total model=digits reason=input":                                        1,
		"etrun_model_load_duration_seconds model=digits stage=open":                           1,
		"etrun_model_info method=forward model=digits sha256=0123abcd":                        1,
		"etrun_memory_bytes kind=program model=digits":                                        0,
		"etrun_memory_bytes kind=planned model=digits":                                        0,
		"etrun_memory_bytes kind=scratch model=digits":                                        0,
		"etrun_queue_rejected_total model=digits":                                             0,
	} {
		if m := got[key]; m == nil || number(m) != want {
			t.Errorf("%s: got %v, want %v", key, m, want)
		}
	}
	h := got["etrun_inference_duration_seconds backend=XnnpackBackend method=forward model=digits"].GetHistogram()
	if len(h.Bucket) != 10 || h.Schema == nil || h.GetSampleSum() <= 0 || h.GetSampleSum() > callers*n {
		t.Errorf("histogram %v, want 10 classic buckets and native ones", h)
	}
	if c.Remove("digits"); len(gather(t, c)) != 1 {
		t.Errorf("after Remove: %v", slices.Collect(maps.Keys(gather(t, c))))
	}
}

// TestRejected has one caller in a pool of one, and a queue of zero.
func TestRejected(t *testing.T) {
	c := metrics.New(metrics.Options{})
	prog, err := etrun.Open(digits, etrun.WithDelegates(all.Backends()...), etrun.WithObserver(c.Model("digits", "")))
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	pool, err := prog.NewPool("", 1, etrun.WithQueue(0))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	err = pool.Do(t.Context(), func(*etrun.Method) error {
		return pool.Do(t.Context(), func(*etrun.Method) error { return nil })
	})
	if !errors.Is(err, etrun.ErrBusy) {
		t.Fatal(err)
	}
	got := gather(t, c)
	for _, key := range []string{"etrun_queue_rejected_total model=digits", "etrun_errors_total model=digits reason=busy", "etrun_queue_wait_seconds model=digits"} {
		if m := got[key]; m == nil || number(m) != 1 {
			t.Errorf("%s: got %v, want 1", key, m)
		}
	}
}

// TestAllocatesNothing counts allocations of events whose series exist.
func TestAllocatesNothing(t *testing.T) {
	m := metrics.New(metrics.Options{}).Model("m", "")
	events := []trace.Event{
		{Kind: trace.Begin, Method: "forward"}, {Kind: trace.Delegate, Backend: "XnnpackBackend", End: time.Millisecond},
		{Kind: trace.Execute, Method: "forward", End: time.Millisecond}, {Kind: trace.Wait, End: time.Microsecond},
		{Kind: trace.Memory, Name: trace.MemoryPlanned, Bytes: 12}, {Kind: trace.Execute, Err: errors.New("x"), Reason: "other"},
	}
	f := func() {
		for i := range events {
			m.Observe(&events[i])
		}
	}
	f()
	if n := testing.AllocsPerRun(100, f); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	m := metrics.New(metrics.Options{}).Model("m", "")
	begin, end := trace.Event{Kind: trace.Begin, Method: "forward"}, trace.Event{Kind: trace.Execute, Method: "forward", End: time.Millisecond}
	b.ReportAllocs()
	for b.Loop() {
		m.Observe(&begin)
		m.Observe(&end)
	}
}

// A server registers the collector once and observes each program.
func Example() {
	c := metrics.New(metrics.Options{Backends: all.Backends()})
	registry := prometheus.NewRegistry() // or prometheus.DefaultRegisterer
	registry.MustRegister(c)
	prog, err := etrun.Open(digits, etrun.WithDelegates(all.Backends()...), etrun.WithObserver(c.Model("digits", "")))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer prog.Close()
	m, err := prog.Load(context.Background(), "forward")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	for range 3 {
		if _, err := etrun.Run[float32](context.Background(), m, make([]float32, 64)); err != nil {
			fmt.Println(err)
		}
	}
	families, _ := registry.Gather() // promhttp.HandlerFor(registry, …) serves them
	for _, f := range families {
		if f.GetName() == "etrun_inferences_total" {
			fmt.Println(f.GetName(), f.Metric[1].GetCounter().GetValue())
		}
	}
	// Output: etrun_inferences_total 3
}
