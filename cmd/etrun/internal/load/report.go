package load

// Report is the JSON object of load.
type Report struct {
	Schema   string  `json:"schema"`
	Version  string  `json:"etrun"`
	URL      string  `json:"url"`
	Model    string  `json:"model"`
	Method   string  `json:"version,omitempty"` // the version of the model that was requested
	Kind     string  `json:"kind"`              // infer or texts
	Tensors  string  `json:"tensors,omitempty"` // binary or json
	Bytes    int     `json:"request_bytes"`     // of the largest request
	Requests int     `json:"different_requests"`
	Loop     string  `json:"loop"`                // closed, open with constant intervals, or open with random ones
	InFlight int     `json:"in_flight,omitempty"` // maximum number of requests in progress of an open loop
	Warmup   float64 `json:"warmup_seconds"`      // of each level
	Level    float64 `json:"interval_level"`      // confidence level of the intervals low to high

	Levels      []*Level `json:"levels"`
	Interrupted bool     `json:"interrupted,omitempty"` // by a signal or the time limit; the last level is not complete
}

// Kinds of requests.
const (
	KindInfer = "infer"
	KindTexts = "texts"
)

// Failed returns the numbers of requests that failed, and of all that were measured.
func (r *Report) Failed() (failed, all int) {
	for _, l := range r.Levels {
		failed, all = failed+l.Failed, all+l.Failed+l.Answered
	}
	return failed, all
}
