package etrun_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/delegate/xnnpack"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/trace"
)

// observed are programs with operators, jumps, delegates and nodes.
var observed = []string{"testdata/digits/portable.pte", "testdata/digits/xnnpack.pte", "testdata/pte/map_loop.pte",
	"testdata/pte/two_conds.pte", "testdata/pte/split_passthrough.pte"}

// everything returns a recorder that also stores what one omits by default.
func everything() *trace.Recorder { return &trace.Recorder{Kinds: trace.Everything} }

// TestEventsOfAnExecute checks that every executed instruction has an event, in order and inside
// the run.
func TestEventsOfAnExecute(t *testing.T) {
	for _, path := range append(observed, "testdata/ethosu/programs/digits.pte") {
		for _, engine := range []xnnpack.Engine{xnnpack.EngineAuto, xnnpack.EngineGo} {
			t.Run(filepath.Base(path)+" "+string(engine), func(t *testing.T) {
				r := everything()
				m := load(t, path, etrun.WithDelegates(all.Backends()...), etrun.WithDelegates(xnnpack.Backend{Engine: engine}),
					etrun.WithLowering(etrun.LowerRewrite), etrun.WithObserver(r))
				setOnes(t, m)
				for range 3 {
					r.Reset()
					if err := m.Execute(t.Context()); err != nil {
						t.Fatal(err)
					}
					checkExecute(t, r.Events)
					checkWalk(t, r.Events, m.Program().Spec())
				}
			})
		}
	}
}

// checkWalk checks that the events follow the program's control flow from the first to the last
// instruction, without those that were executed at load.
func checkWalk(t *testing.T, events []trace.Event, p *pte.Program) {
	t.Helper()
	list := p.Methods[0].Chains[0].Instructions
	told := make([]bool, len(list))
	for _, e := range events {
		if trace.Instructions.Has(e.Kind) {
			told[e.Instruction] = true
		}
	}
	next := func(i int) int {
		for i < len(list) && !told[i] {
			i++
		}
		return i
	}
	at := next(0)
	var last trace.Event
	for _, e := range events {
		if !trace.Instructions.Has(e.Kind) {
			continue
		}
		jumped := last.Kind == trace.Jump && e.Instruction == next(list[last.Instruction].Target)
		if e.Instruction != at && !jumped {
			t.Fatalf("instruction %d (%s), want %d", e.Instruction, e.Name, at)
		}
		in := &list[e.Instruction]
		if in.Kind == pte.KernelCall && (e.Kind != trace.Operator || e.Name != p.Methods[0].Operators[in.Index].FullName()) ||
			in.Kind == pte.DelegateCall && (e.Kind != trace.Delegate || e.Backend != p.Methods[0].Delegates[in.Index].ID || e.Delegate != in.Index) {
			t.Fatalf("instruction %d is told of as %v %s", e.Instruction, e.Kind, e.Name)
		}
		last, at = e, next(e.Instruction+1)
	}
	if at != len(list) || len(list)-countTrue(told) > len(list)/2 {
		t.Fatalf("ends before instruction %d of %d; %d are told of", at, len(list), countTrue(told))
	}
}

func countTrue(list []bool) (n int) {
	for _, b := range list {
		if b {
			n++
		}
	}
	return n
}

// checkExecute checks the events of one run: Begin first, Execute last, instructions in sequence
// between them, nodes in sequence inside their delegate, which follows.
func checkExecute(t *testing.T, events []trace.Event) {
	t.Helper()
	n := len(events) - 1
	if n < 1 || events[0].Kind != trace.Begin || events[n].Kind != trace.Execute {
		t.Fatalf("%d events, want Begin first and Execute last", len(events))
	}
	whole := events[n]
	at, inside := whole.Start, time.Duration(0)
	var nodes []trace.Event
	for i, e := range events {
		if e.Run != whole.Run || e.Instance != whole.Instance || e.Method != "forward" || e.Run == 0 || e.Instance == 0 {
			t.Fatalf("event %d: run %d of instance %d of %q, want run %d of %d of forward", i, e.Run, e.Instance, e.Method, whole.Run, whole.Instance)
		}
		switch {
		case e.Kind == trace.Node:
			nodes = append(nodes, e)
		case trace.Instructions.Has(e.Kind):
			if e.Start < at || e.End < e.Start || e.End > whole.End || e.Chain < 0 || e.Instruction < 0 || e.Name == "" {
				t.Fatalf("event %d: %+v, after %v in %v to %v", i, e, at, whole.Start, whole.End)
			}
			at, inside = e.End, inside+e.Duration()
			checkNodes(t, nodes, &e)
			nodes = nil
		case i > 0 && i < n:
			t.Fatalf("event %d: %v", i, e.Kind)
		}
	}
	if inside > whole.Duration() || len(nodes) > 0 {
		t.Fatalf("instructions of %v in an execute of %v, %d nodes in no delegate", inside, whole.Duration(), len(nodes))
	}
}

func checkNodes(t *testing.T, nodes []trace.Event, around *trace.Event) {
	t.Helper()
	if delegated := around.Kind == trace.Delegate; delegated != (len(nodes) > 0) {
		t.Fatalf("%v %s: %d nodes", around.Kind, around.Name, len(nodes))
	}
	at := around.Start
	for i, e := range nodes {
		if e.Index != i || e.Start != at || e.End < e.Start || e.End > around.End || e.Backend != around.Backend || e.Name == "" ||
			e.Chain != around.Chain || e.Instruction != around.Instruction || e.Delegate != around.Delegate {
			t.Fatalf("node %d: %+v in %+v", i, e, *around)
		}
		at = e.End
	}
}

// TestEventsOfALoad checks that every stage occurs once, in order, inside its load.
func TestEventsOfALoad(t *testing.T) {
	r := everything()
	p, err := etrun.Open("testdata/digits/xnnpack.pte", etrun.WithDelegates(all.Backends()...), etrun.WithObserver(r))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		m, err := p.Load(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
	}
	info, err := os.Stat("testdata/digits/xnnpack.pte")
	if err != nil {
		t.Fatal(err)
	}
	shared := []string{trace.StageFind, trace.StageCompile, trace.StageBuild, trace.StageFold, trace.StageRewrite,
		trace.StageLower, trace.StageLower, trace.StagePlan}
	own := []string{trace.StageAllocate, trace.StageUnits, trace.StageResolve, "forward"}
	want := slices.Concat([]string{trace.StageRead, trace.StageParse, trace.StageData, "testdata/digits/xnnpack.pte"}, shared, own, own)
	var got []string
	var at time.Duration
	for i, e := range r.Events {
		if !trace.Loads.Has(e.Kind) {
			continue
		}
		got = append(got, e.Name)
		if e.Kind == trace.Stage && e.Start < at || e.End < e.Start || e.Instance == 0 || e.Run != 0 || e.Err != nil {
			t.Errorf("event %d: %+v, after %v", i, e, at)
		}
		switch at = e.End; e.Name {
		case trace.StageRead, trace.StageParse:
			if e.Bytes != info.Size() {
				t.Errorf("%s: %d bytes, the file has %d", e.Name, e.Bytes, info.Size())
			}
		case trace.StageCompile:
			if e.Backend != "XnnpackBackend" || e.Delegate != 0 || e.Method != "forward" {
				t.Errorf("%+v, want delegate 0 of forward", e)
			}
		case trace.StageAllocate, trace.StagePlan:
			if e.Bytes <= 0 {
				t.Errorf("%s: %d bytes", e.Name, e.Bytes)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("told of\n%q, want\n%q", got, want)
	}
}

// TestEventsOfMemory checks that all allocated memory is freed, also after failures.
func TestEventsOfMemory(t *testing.T) {
	for _, path := range append(observed, "testdata/pte/bundle.bpte", "testdata/pte/inline_delegate.pte") {
		r := &trace.Recorder{Kinds: trace.Memories}
		p, err := etrun.Open(path, etrun.WithDelegates(all.Backends()...), etrun.WithObserver(r))
		if err != nil {
			t.Fatal(err)
		}
		m, err := p.Load(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		other, err := p.Load(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		sum := func(list []trace.Event) map[string]int64 {
			s := make(map[string]int64)
			for _, e := range list {
				s[e.Name] += e.Bytes
			}
			return s
		}
		taken := sum(r.Events)
		planned := m.Memory().Planned
		if taken[trace.MemoryProgram] <= 0 || taken[trace.MemoryPlanned] != 2*planned || planned < m.Report().Plan.Bytes() {
			t.Errorf("%s: %v taken, want the file and two times %d planned, at least %d", path, taken, planned, m.Report().Plan.Bytes())
		}
		if other.Close() != nil || p.Close() != nil || m.Close() != nil {
			t.Errorf("%s: does not close", path)
		}
		for kind, bytes := range sum(r.Events) {
			if bytes != 0 {
				t.Errorf("%s: %d bytes of %s after the last Close", path, bytes, kind)
			}
		}
	}
}

// TestEventsOfFailures checks the reason, and that each failed call has one event.
func TestEventsOfFailures(t *testing.T) {
	r := everything()
	last := func(t *testing.T, kind trace.Kind, err error, reason string) {
		t.Helper()
		e := r.Events[len(r.Events)-1]
		if e.Kind != kind || e.Err == nil || err == nil || e.Err.Error() != err.Error() || e.Reason != reason {
			t.Errorf("last event %v with %v (%q), want %v with %v (%q)", e.Kind, e.Err, e.Reason, kind, err, reason)
		}
		r.Reset()
	}
	with := etrun.WithObserver(r)
	_, err := etrun.Open("testdata/none.pte", with)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	last(t, trace.Open, err, "io")
	_, err = etrun.Parse([]byte("neither"), with)
	last(t, trace.Open, err, "format")
	p, err := etrun.Open("testdata/digits/xnnpack.pte", with)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Load(t.Context(), "backward")
	last(t, trace.Load, err, "input")
	_, err = p.Load(t.Context(), "")
	last(t, trace.Load, err, "missing")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.Load(cancelled, "")
	last(t, trace.Load, err, "canceled")
	p.Close()
	_, err = p.Load(t.Context(), "")
	last(t, trace.Load, err, "closed")

	begun, proceed := make(chan struct{}), make(chan struct{})
	m := load(t, convProgram, with, etrun.WithOperatorSet(slow(begun, proceed)))
	err = m.Execute(t.Context())
	last(t, trace.Execute, err, "input")
	setOnes(t, m)
	expired, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	err = m.Execute(expired)
	last(t, trace.Execute, err, "deadline")
	done := make(chan error)
	go func() { done <- m.Execute(t.Context()) }()
	<-begun
	err = m.Execute(t.Context())
	last(t, trace.Execute, err, "busy")
	close(proceed)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	m.Close()
	err = m.Execute(t.Context())
	last(t, trace.Execute, err, "closed")

	set := replaced("aten::convolution.out", func(kernels.Func) kernels.Func {
		return func(*kernels.Ctx, kernels.Args) error { panic("a fault of the kernel") }
	})
	m = load(t, convProgram, with, etrun.WithOperatorSet(set))
	setOnes(t, m)
	r.Reset()
	err = m.Execute(t.Context())
	if e := r.Events[len(r.Events)-2]; e.Kind != trace.Operator || e.Name != "aten::convolution.out" || e.Reason != "panic" {
		t.Errorf("before the end of the execute: %+v, want the convolution that panicked", e)
	}
	last(t, trace.Execute, err, "panic")
}

// TestWants checks that each observer receives only the events that it subscribes to.
func TestWants(t *testing.T) {
	var options []etrun.Option
	wants := []trace.Kinds{trace.Executes, trace.Delegates, trace.Instructions, trace.Nodes, trace.Loads, trace.Memories, trace.Pools, 0}
	got := make([]trace.Kinds, len(wants))
	for i, w := range wants {
		options = append(options, etrun.WithObserver(trace.Func{Kinds: w, Do: func(e *trace.Event) { got[i] |= 1 << e.Kind }}))
	}
	p, err := etrun.Open("testdata/digits/xnnpack.pte", append(options, etrun.WithDelegates(all.Backends()...))...)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := p.NewPool("", 1)
	if err != nil {
		t.Fatal(err)
	}
	err = pool.Do(t.Context(), func(m *etrun.Method) error {
		setOnes(t, m)
		return m.Execute(t.Context())
	})
	if err != nil || pool.Close() != nil || p.Close() != nil {
		t.Fatal(err)
	}
	for i, w := range wants {
		if got[i]&^w != 0 || w != 0 && got[i] == 0 {
			t.Errorf("wants %b, was told of %b", w, got[i])
		}
	}
}
