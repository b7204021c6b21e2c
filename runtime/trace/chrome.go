package trace

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// chromeEvent is an event of the Trace Event Format: a complete event ("ph":"X") with times in µs,
// or the name of a thread ("ph":"M").
type chromeEvent struct {
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Phase    string         `json:"ph"`
	Start    float64        `json:"ts"`
	Duration float64        `json:"dur"`
	Process  int            `json:"pid"`
	Thread   int64          `json:"tid"`
	Args     map[string]any `json:"args"`
}

// spans are the kinds with a duration.
const spans = Everything &^ (1<<Begin | 1<<Memory)

// WriteChrome writes the events as a Chrome trace for Perfetto or chrome://tracing. Each method
// instance is a thread.
func (r *Recorder) WriteChrome(w io.Writer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := make([]chromeEvent, 0, len(r.Events))
	threads := make(map[int64]bool)
	for i := range r.Events {
		e := &r.Events[i]
		if !spans.Has(e.Kind) {
			continue
		}
		if !threads[e.Instance] {
			threads[e.Instance] = true
			events = append(events, chromeEvent{Name: "thread_name", Phase: "M", Process: 1, Thread: e.Instance,
				Args: map[string]any{"name": threadName(e)}})
		}
		events = append(events, chromeEvent{Name: e.Name, Category: e.Kind.String(), Phase: "X", Process: 1, Thread: e.Instance,
			Start: micros(e.Start), Duration: micros(e.Duration()), Args: chromeArgs(e)})
	}
	return json.NewEncoder(w).Encode(map[string]any{"traceEvents": events, "displayTimeUnit": "ns"})
}

func threadName(e *Event) string {
	if e.Method == "" {
		return "program"
	}
	return fmt.Sprintf("%s #%d", e.Method, e.Instance)
}

// chromeArgs returns the event's attributes that are set.
func chromeArgs(e *Event) map[string]any {
	args := make(map[string]any)
	for _, a := range []struct {
		name    string
		value   int64
		present bool
	}{
		{"run", e.Run, e.Run > 0},
		{"chain", int64(e.Chain), e.Chain >= 0},
		{"instruction", int64(e.Instruction), e.Instruction >= 0},
		{"delegate", int64(e.Delegate), e.Delegate >= 0},
		{"node", int64(e.Index), e.Index >= 0},
		{"bytes", e.Bytes, e.Bytes != 0},
	} {
		if a.present {
			args[a.name] = a.value
		}
	}
	if e.Err != nil {
		args["error"] = e.Err.Error()
	}
	return args
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
