package daemon

import (
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// maxSeries is the maximum number of series of a model of one method without --metrics-detail.
const maxSeries = 60

var seriesModel = regexp.MustCompile(`[{,]model="([^"]*)"`)

// canIsolate is whether models can run in processes of their own, see package isolate.
const canIsolate = runtime.GOOS == "linux" && (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64")

// busy runs a server with models of each kind, and sends requests that succeed and fail in many ways.
func busy(t *testing.T, change func(*Daemon)) *running {
	t.Helper()
	lm := model("lm", languageModel)
	lm.Tokenizer = byteTokenizer
	apart := model("apart", adder)
	apart.Isolate = canIsolate
	broken := model("broken", file(t, "broken.pte", "broken"))
	broken.Load = onDemand
	r := start(t, func(d *Daemon) {
		d.Models = append(d.Models, broken)
		if change != nil {
			change(d)
		}
	}, lm, model("digits", digits), model("adder", adder), apart)
	r.wait("the server is ready", func() bool { code, _, _ := r.ask("GET", "/v2/health/ready", ""); return code == 200 })
	for _, c := range []struct {
		path, body string
		code       int
	}{
		{"/v2/models/adder/infer", adderBody, 200},
		{"/v2/models/apart/infer", adderBody, 200},
		{"/v2/models/adder/infer", strings.Replace(adderBody, "{", `{"parameters":{"sequence_id":7,"sequence_start":true},`, 1), 200},
		{"/v2/models/adder/infer", strings.Replace(adderBody, "{", `{"parameters":{"sequence_id":8},`, 1), 410},
		{"/v2/models/adder/infer", strings.Replace(adderBody, "[4]", "[3]", 1), 400},
		{"/v2/models/adder/infer", strings.Replace(adderBody, "{", `{"parameters":{"timeout":1},`, 1), 504},
		{"/v2/models/digits/infer", digitsBody(), 200},
		{"/v2/models/none/infer", adderBody, 404},
		{"/v2/models/broken/infer", adderBody, 503},
		{"/v1/completions", `{"model":"lm","prompt":"hello","max_tokens":4,"temperature":0}`, 200},
		{"/v1/completions", `{"model":"lm","prompt":"hello, it is me","max_tokens":400,"temperature":0}`, 200},
		{"/v1/completions", `{"model":"lm","prompt":7}`, 400},
	} {
		if code, text, _ := r.ask("POST", c.path, c.body); code != c.code {
			t.Errorf("%s %s: %d %s, want %d", c.path, c.body, code, text, c.code)
		}
	}
	return r
}

// digitsBody is a request for the digits.
func digitsBody() string {
	return `{"inputs":[{"name":"input_0","shape":[1,1,8,8],"datatype":"FP32","data":[` + strings.Repeat("0,", 63) + "1]}]}"
}

// scrape returns the lines of the metrics, without comments.
func (r *running) scrape() (lines []string) {
	r.t.Helper()
	code, text, _ := r.ask("GET", metricsPath, "")
	if code != http.StatusOK {
		r.t.Fatalf("%d %s", code, text)
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// TestSeries counts the series of models. A server of a hundred models must not be a burden for Prometheus.
func TestSeries(t *testing.T) {
	for _, detail := range []bool{false, true} {
		r := busy(t, func(d *Daemon) { d.MetricsDetail = detail })
		counts := make(map[string]int)
		for _, line := range r.scrape() {
			if m := seriesModel.FindStringSubmatch(line); m != nil {
				counts[m[1]]++
			}
		}
		if len(counts) != 5 {
			t.Errorf("series of %d models", len(counts))
		}
		for name, n := range counts {
			if (n <= maxSeries) == (detail && name != "broken") {
				t.Errorf("detail %v: model %s has %d series, want at most %d without and more with", detail, name, n, maxSeries)
			}
		}
		t.Logf("detail %v: %v", detail, counts)
	}
}
