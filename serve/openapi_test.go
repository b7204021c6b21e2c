package serve

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/serve/oip"
)

// schema is the part of JSON Schema that openapi.json uses.
type schema struct {
	Ref        string `json:"$ref"`
	Type       any
	Enum       []string
	Required   []string
	Properties map[string]*schema
	Items      *schema
}

// description is the part of OpenAPI that is checked.
type description struct {
	Paths      map[string]map[string]json.RawMessage
	Components struct{ Schemas map[string]*schema }
}

func described(t *testing.T) *description {
	t.Helper()
	if !jsontext.Value(OpenAPI).IsValid() { // package json takes the last one of members of the same name
		t.Fatal("no JSON, or a member twice")
	}
	d := &description{}
	if !jsontext.Value(OpenAPI).IsValid() {
		t.Fatal("openapi.json is no JSON, or has a name twice")
	}
	if err := json.Unmarshal(OpenAPI, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestOpenAPIRoutes checks that the description has exactly the served paths and methods.
func TestOpenAPIRoutes(t *testing.T) {
	var got, want []string
	for path, item := range described(t).Paths {
		if !strings.HasPrefix(path, "/v2") {
			continue // package openai has a test of these
		}
		for method := range item {
			if method != "parameters" {
				got = append(got, strings.ToUpper(method)+" "+path)
			}
		}
	}
	for _, r := range (&Server{}).table() {
		want = append(want, r.method+" "+r.path)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("described\n%s\nanswered\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestOpenAPIWords checks that every status of an inference, datatype and state is described.
func TestOpenAPIWords(t *testing.T) {
	d := described(t)
	var infer struct {
		Responses map[string]any
	}
	if err := json.Unmarshal(d.Paths["/v2/models/{model}/infer"]["post"], &infer); err != nil {
		t.Fatal(err)
	}
	for _, s := range statuses {
		text := strconv.Itoa(s.code)
		if s.code != statusClosed && s.code != http.StatusForbidden && infer.Responses[text] == nil {
			t.Errorf("status %s of an inference is not described", text)
		}
	}
	for _, text := range []string{"429", "408", "500"} {
		if infer.Responses[text] == nil {
			t.Errorf("status %s is not described", text)
		}
	}
	for _, name := range d.Components.Schemas["Datatype"].Enum {
		if _, ok := oip.Datatype(name).DType(); !ok && name != string(oip.Bytes) {
			t.Errorf("datatype %s is described, but does not exist", name)
		}
	}
	states := d.Components.Schemas["Index"].Properties["state"].Enum
	if want := []string{string(Unloaded), string(Loading), string(Ready), string(Failed), string(Restarting)}; !slices.Equal(states, want) {
		t.Errorf("states %v, want %v", states, want)
	}
}

// checkAgainst reports members that an object lacks, that its schema lacks, or of the wrong kind.
func (d *description) checkAgainst(t *testing.T, place string, s *schema, value any) {
	if s.Ref != "" {
		s = d.Components.Schemas[s.Ref[strings.LastIndex(s.Ref, "/")+1:]]
	}
	kind := ""
	switch v := value.(type) {
	case map[string]any:
		kind = "object"
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				t.Errorf("%s: %s is missing", place, name)
			}
		}
		for name, member := range v {
			if s.Properties[name] == nil {
				t.Errorf("%s: %s is not described", place, name)
				continue
			}
			d.checkAgainst(t, place+"."+name, s.Properties[name], member)
		}
	case []any:
		kind = "array"
		for _, item := range v {
			if s.Items != nil {
				d.checkAgainst(t, place+"[]", s.Items, item)
			}
		}
	case string:
		if kind = "string"; s.Enum != nil && !slices.Contains(s.Enum, v) {
			t.Errorf("%s: %q, want one of %v", place, v, s.Enum)
		}
	case float64:
		kind = "integer"
	case bool:
		kind = "boolean"
	}
	if s.Type != nil && s.Type != kind {
		t.Errorf("%s: got a value of kind %s, want %v", place, kind, s.Type)
	}
}

// TestOpenAPIAnswers checks that answers match the description.
func TestOpenAPIAnswers(t *testing.T) {
	d := described(t)
	s := trial(t)
	const in = `{"id":"1","inputs":[{"name":"input_0","shape":[1,3],"datatype":"FP32","data":[1,2,3]},{"name":"input_1","shape":[1,3],"datatype":"FP32","data":[1,2,3]}]}`
	for _, c := range []struct{ method, path, body, schema string }{
		{"GET", "/v2", "", "Server"},
		{"GET", "/v2/models/m", "", "Model"},
		{"GET", "/v2/models/m/versions/forward", "", "Model"},
		{"POST", "/v2/models/m/infer", in, "Response"},
		{"POST", "/v2/models/m/versions/forward/infer", in, "Response"},
		{"POST", "/v2/models/m/infer", "{", "Error"},
		{"GET", "/v2/models/m/config", "", "Configuration"},
		{"GET", "/v2/models/m/versions/forward/config", "", "Configuration"},
		{"GET", "/v2/models/stats", "", "Statistics"},
		{"GET", "/v2/models/m/stats", "", "Statistics"},
		{"GET", "/v2/models/m/versions/forward/stats", "", "Statistics"},
		{"GET", "/v2/models/m/versions/gone/stats", "", "Error"},
		{"GET", "/v2/models/gone/config", "", "Error"},
		{"GET", "/v2/models/gone", "", "Error"},
		{"POST", "/v2/repository/models/m/load", `{"parameters":{"x":1}}`, "Error"},
	} {
		var object any
		w := recorded(s, c.method, c.path, c.body)
		if err := json.Unmarshal(w.Body.Bytes(), &object); err != nil || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v, %v", c.path, err, w.Header())
		}
		d.checkAgainst(t, c.path, d.Components.Schemas[c.schema], object)
	}
	var rows []any
	if err := json.Unmarshal(recorded(s, "POST", "/v2/repository/index", "").Body.Bytes(), &rows); err != nil || len(rows) != 1 {
		t.Errorf("index: %v, %v", rows, err)
	}
	for _, row := range rows {
		d.checkAgainst(t, "index", d.Components.Schemas["Index"], row)
	}
	for _, path := range []string{"/v2/health/live", "/v2/health/ready", "/v2/models/m/ready", "/v2/models/m/versions/forward/ready"} {
		if w := recorded(s, "GET", path, ""); w.Code != 200 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := recorded(s, "GET", "/v2/openapi.json", ""); w.Body.String() != string(OpenAPI) {
		t.Error("the served description differs from openapi.json")
	}
}

func recorded(s *Server, method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w
}

// trial serves a model with dynamic sizes.
func trial(t *testing.T) *Server {
	t.Helper()
	s, err := New(Options{Version: "v1", Control: true}, Config{Name: "m", Open: func(ctx context.Context) (*etrun.Program, error) {
		return etrun.OpenSource(ctx, etrun.File("../testdata/pte/dynamic_pair.pte"))
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.LoadAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}
