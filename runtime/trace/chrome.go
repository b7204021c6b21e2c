package trace

import (
	"encoding/json"
	"io"
	"time"
)

// chromeEvent is a complete event ("ph":"X") of the Trace Event Format; times in µs.
type chromeEvent struct {
	Name     string         `json:"name"`
	Category string         `json:"cat"`
	Phase    string         `json:"ph"`
	Start    float64        `json:"ts"`
	Duration float64        `json:"dur"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	Args     map[string]int `json:"args"`
}

// WriteChrome writes the events as a Chrome trace, which Perfetto and
// chrome://tracing open.
func (r *Recorder) WriteChrome(w io.Writer) error {
	events := make([]chromeEvent, len(r.Events))
	for i, e := range r.Events {
		events[i] = chromeEvent{Name: e.Name, Category: e.Kind.String(), Phase: "X", Process: 1, Thread: 1,
			Start: micros(e.Start), Duration: micros(e.End - e.Start),
			Args: map[string]int{"run": e.Run, "chain": e.Chain, "instruction": e.Instruction}}
	}
	return json.NewEncoder(w).Encode(map[string]any{"traceEvents": events, "displayTimeUnit": "ns"})
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
