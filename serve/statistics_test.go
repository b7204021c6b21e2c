package serve

import (
	"encoding/json"
	"net/http"
	"reflect"
	"testing"
	"time"
)

// statisticsOf returns the statistics of the methods at a path.
func statisticsOf(t *testing.T, s *Server, path string) []ModelStatistics {
	t.Helper()
	var all statisticsAnswer
	if err := json.Unmarshal(recorded(s, "GET", path, "").Body.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	return all.Models
}

// TestStatistics checks that requests and their parts are counted once, failed ones apart, and that a reload begins anew.
func TestStatistics(t *testing.T) {
	s, before := trial(t), time.Now().UnixMilli()
	const good = `{"inputs":[{"name":"input_0","shape":[1,3],"datatype":"FP32","data":[1,2,3]},{"name":"input_1","shape":[1,3],"datatype":"FP32","data":[1,2,3]}]}`
	const bad = `{"inputs":[{"name":"none","shape":[1,3],"datatype":"FP32","data":[1,2,3]}]}`
	for _, body := range []string{good, good, bad, good} {
		recorded(s, "POST", "/v2/models/m/infer", body)
	}
	list := statisticsOf(t, s, "/v2/models/m/stats")
	if len(list) != 1 {
		t.Fatalf("%d methods, want one", len(list))
	}
	m := &list[0]
	if m.Name != "m" || m.Version != "forward" || m.Inferences != 3 || m.Executions != 3 || m.Last < before {
		t.Errorf("got %+v", m)
	}
	parts := map[string]DurationStatistics{"queue": m.Stats.Queue, "input": m.Stats.Input, "infer": m.Stats.Infer, "output": m.Stats.Output}
	sum := int64(0)
	for name, d := range parts {
		if sum += d.NS; d.Count != 3 || d.NS <= 0 && name != "queue" {
			t.Errorf("%s: %+v, want three", name, d)
		}
	}
	if d := m.Stats.Success; d.Count != 3 || d.NS < sum {
		t.Errorf("success: %+v, its parts took %d ns", d, sum)
	}
	if d := m.Stats.Fail; d.Count != 1 || d.NS <= 0 {
		t.Errorf("fail: %+v, want one", d)
	}
	for _, path := range []string{"/v2/models/stats", "/v2/models/m/versions/forward/stats"} {
		if got := statisticsOf(t, s, path); !reflect.DeepEqual(got, list) {
			t.Errorf("%s: %+v, want %+v", path, got, list)
		}
	}
	if w := recorded(s, "POST", "/v2/repository/models/m/load", ""); w.Code != http.StatusOK {
		t.Fatal(w.Body)
	}
	if got := statisticsOf(t, s, "/v2/models/m/stats"); len(got) != 1 || got[0].Inferences != 0 || got[0].Stats.Fail.Count != 0 {
		t.Errorf("after a reload: %+v", got)
	}
	if w := recorded(s, "POST", "/v2/models/stats", ""); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET" {
		t.Errorf("POST: %d, %v", w.Code, w.Header())
	}
	if _, err := New(Options{}, Config{Name: "stats"}); err == nil {
		t.Error("a model with the name stats is accepted")
	}
}
