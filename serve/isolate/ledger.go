package isolate

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/runtime/trace"
)

// ledger forwards a process's valid events, and balances unfinished ones when it ends.
type ledger struct {
	observer etrun.Observer
	backends []string
	methods  []string

	mu      sync.Mutex
	running map[string]int   // runs in progress, by method
	memory  map[string]int64 // by kind
	closed  bool
}

func newLedger(o *Options, methods []etrun.MethodMeta) *ledger {
	l := &ledger{observer: o.Observer, backends: o.Backends, running: make(map[string]int), memory: make(map[string]int64)}
	for i := range methods {
		l.methods = append(l.methods, methods[i].Name)
	}
	return l
}

// What events may name, in addition to methods and backends.
var (
	stages = []string{trace.StageRead, trace.StageParse, trace.StageData, trace.StageFind, trace.StageCompile, trace.StageBuild,
		trace.StageFold, trace.StageRewrite, trace.StageLower, trace.StagePlan, trace.StageAllocate, trace.StageUnits, trace.StageResolve}
	memories = []string{trace.MemoryProgram, trace.MemoryFolded, trace.MemoryPacked, trace.MemoryPlanned, trace.MemoryScratch}
	reasons  = []string{"", "format", "unsupported", "missing", "input", "memory", "execute", "device", "closed", "busy", "panic",
		"deadline", "canceled", "io", "other"}
)

// maxMemory is more than any process has, maxTook longer than any event takes.
const (
	maxMemory = 1 << 46
	maxTook   = 24 * time.Hour
)

// note forwards an event.
func (l *ledger) note(m *event) error {
	names := map[trace.Kind][]string{trace.Stage: stages, trace.Memory: memories}[m.Kind]
	known := func(s string, list []string) bool { return s == "" || slices.Contains(list, s) }
	if !known(m.Name, names) || !known(m.Method, l.methods) || !known(m.Backend, l.backends) || !known(m.Reason, reasons) ||
		m.Took < 0 || m.Took > maxTook || m.Bytes > maxMemory || m.Bytes < -maxMemory {
		return fmt.Errorf("%w: an event of kind %d", errProtocol, m.Kind)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch m.Kind {
	case trace.Begin:
		l.running[m.Method]++
	case trace.Execute:
		l.running[m.Method]--
	case trace.Memory:
		l.memory[m.Name] += m.Bytes
	case trace.Delegate, trace.Open, trace.Load, trace.Stage:
	default:
		return fmt.Errorf("%w: an event of kind %d", errProtocol, m.Kind)
	}
	if n := l.memory[m.Name]; l.running[m.Method] < 0 || l.running[m.Method] > math.MaxInt16 || n < 0 || n > maxMemory {
		return fmt.Errorf("%w: an impossible event", errProtocol)
	}
	l.pass(m, nil)
	return nil
}

// pass calls the observer. l.mu is locked.
func (l *ledger) pass(m *event, err error) {
	if l.observer == nil || l.closed || !l.observer.Wants().Has(m.Kind) {
		return
	}
	if m.Reason != "" && err == nil {
		err = &remoteError{classes[0], m.Reason}
	}
	now := trace.Now()
	l.observer.Observe(&trace.Event{Kind: m.Kind, Name: m.Name, Method: m.Method, Backend: m.Backend, Start: now - m.Took, End: now,
		Bytes: m.Bytes, Err: err, Reason: m.Reason, Chain: -1, Instruction: -1, Delegate: -1, Index: -1})
}

// close ends runs in progress, and reports memory as freed.
func (l *ledger) close(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for method, n := range l.running {
		for range n {
			l.pass(&event{Kind: trace.Execute, Method: method, Reason: "other"}, why)
		}
	}
	for name, n := range l.memory {
		if n != 0 {
			l.pass(&event{Kind: trace.Memory, Name: name, Bytes: -n}, nil)
		}
	}
	l.closed = true
}
