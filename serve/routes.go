package serve

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/etrun-go/etrun/internal/jsonerror"
	"github.com/etrun-go/etrun/serve/oip"
)

// OpenAPI describes the API, for generators of clients.
//
//go:embed openapi.json
var OpenAPI []byte

// route is a path and its handler. A test compares the routes with openapi.json.
type route struct {
	method, path string
	handler      http.HandlerFunc
}

// table returns all routes.
func (s *Server) table() []route {
	return []route{
		{"GET", "/v2", s.metadata},
		{"GET", "/v2/health/live", s.live},
		{"GET", "/v2/health/ready", s.ready},
		{"GET", "/v2/openapi.json", s.describe},
		{"GET", "/v2/models/{model}", s.modelMetadata},
		{"GET", statisticsPath, s.allStatistics},
		{"GET", "/v2/models/{model}/ready", s.modelReady},
		{"GET", "/v2/models/{model}/config", s.configuration},
		{"GET", "/v2/models/{model}/stats", s.modelStatistics},
		{"POST", "/v2/models/{model}/infer", s.infer},
		{"GET", "/v2/models/{model}/versions/{version}", s.modelMetadata},
		{"GET", "/v2/models/{model}/versions/{version}/ready", s.modelReady},
		{"GET", "/v2/models/{model}/versions/{version}/config", s.configuration},
		{"GET", "/v2/models/{model}/versions/{version}/stats", s.modelStatistics},
		{"POST", "/v2/models/{model}/versions/{version}/infer", s.infer},
		{"POST", "/v2/repository/index", s.index},
		{"POST", "/v2/repository/models/{model}/load", s.load},
		{"POST", "/v2/repository/models/{model}/unload", s.unload},
	}
}

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	paths := make(map[string][]string) // methods by path
	for _, r := range s.table() {
		mux.HandleFunc(r.method+" "+r.path, r.handler)
		paths[r.path] = append(paths[r.path], r.method)
	}
	delete(paths, statisticsPath) // the pattern of a model's metadata, which has the same methods, matches it
	for path, methods := range paths {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", strings.Join(methods, ", "))
			answer(w, http.StatusMethodNotAllowed, errorAnswer{fmt.Sprintf("method %.20q, want %s", r.Method, strings.Join(methods, " or "))})
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, fmt.Errorf("%w: path %.140q", ErrUnknown, r.URL.Path))
	})
	return mux
}

// live reports that the process answers.
func (s *Server) live(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

// ready reports whether all models are ready. Its clients may be unknown: the answer names no model.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	if !s.Ready() {
		fail(w, fmt.Errorf("%w: POST /v2/repository/index lists the models", errAnyNotReady))
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (s *Server) describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(OpenAPI) // the client may be gone
}

// serverAnswer is the server's metadata.
type serverAnswer struct {
	Name       string   `json:"name"`
	Version    string   `json:"version"`
	Extensions []string `json:"extensions"`
}

func (s *Server) metadata(w http.ResponseWriter, _ *http.Request) {
	extensions := []string{"binary_tensor_data", "sequence", "parameters", "model_configuration", "statistics", "classification"}
	if s.options.Control {
		extensions = append(extensions, "model_repository", "model_repository(unload_dependents)")
	}
	answer(w, http.StatusOK, serverAnswer{"etrun", s.options.Version, extensions})
}

// modelAnswer is the metadata of a model's method: the one that the version names, or the default.
type modelAnswer struct {
	Name     string         `json:"name"`
	Versions []string       `json:"versions"`
	Platform string         `json:"platform"`
	Inputs   []tensorAnswer `json:"inputs"`
	Outputs  []tensorAnswer `json:"outputs"`
}

// tensorAnswer describes an input or output. Shape has -1 for sizes that vary, up to MaxShape.
type tensorAnswer struct {
	Name     string       `json:"name"`
	Datatype oip.Datatype `json:"datatype"`
	Shape    []int        `json:"shape"`
	MaxShape []int        `json:"max_shape,omitempty"`
	Optional bool         `json:"optional,omitempty"`
}

func tensorAnswers(slots []slot, inputs bool) []tensorAnswer {
	list := make([]tensorAnswer, len(slots))
	for i := range slots {
		s := &slots[i]
		list[i] = tensorAnswer{Name: s.name, Datatype: s.datatype, Shape: s.shape(), Optional: inputs && s.optional()}
		if slices.Contains(list[i].Shape, -1) {
			list[i].MaxShape = s.meta.Sizes
		}
	}
	return list
}

func (s *Server) modelMetadata(w http.ResponseWriter, r *http.Request) {
	if _, v, err := s.need(r, time.Now()); err == nil { // a model that answers in another protocol has no methods here
		defer v.done()
		if v.attached != nil && r.PathValue("version") == "" {
			answer(w, http.StatusOK, modelAnswer{v.model.config.Name, []string{}, platform, []tensorAnswer{}, []tensorAnswer{}})
			return
		}
	}
	err := s.find(r, func(v *version, e *endpoint) {
		answer(w, http.StatusOK, modelAnswer{v.model.config.Name, v.methods(), platform,
			tensorAnswers(e.inputs, true), tensorAnswers(e.outputs, false)})
	})
	if err != nil {
		fail(w, err)
	}
}

func (s *Server) modelReady(w http.ResponseWriter, r *http.Request) {
	if err := s.readyVersion(r); err != nil {
		fail(w, err)
	}
}

// readyVersion returns an error if the method of a request is not loaded. It loads none.
func (s *Server) readyVersion(r *http.Request) error {
	m, err := s.modelOf(r)
	if err != nil {
		return err
	}
	v, err := m.acquire()
	if err != nil {
		return err
	}
	defer v.release()
	name := r.PathValue("version")
	if v.attached != nil && name == "" {
		return nil
	}
	_, err = v.pick(name)
	return err
}

// indexAnswer is a model in the list of all models.
type indexAnswer struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	State   State  `json:"state"`
	Reason  string `json:"reason"`
}

// indexed returns the model's row, without a version, and its current version, nil if none.
func (m *Model) indexed() (row indexAnswer, v *version) {
	m.mu.Lock()
	defer m.mu.Unlock()
	row.Name = m.config.Name
	row.State, row.Reason = m.now()
	return row, m.current
}

func (s *Server) index(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Ready bool `json:"ready"` // only models that are ready
	}
	if err := readCommand(w, r, &body); err != nil {
		fail(w, err)
		return
	}
	list := []indexAnswer{}
	for _, m := range s.Models() {
		row, v := m.indexed()
		if body.Ready && row.State != Ready {
			continue
		}
		if v == nil || len(v.endpoints) == 0 {
			list = append(list, row)
			continue
		}
		for _, row.Version = range v.methods() {
			list = append(list, row)
		}
	}
	answer(w, http.StatusOK, list)
}

// load loads or reloads a model. It continues if the client disconnects.
func (s *Server) load(w http.ResponseWriter, r *http.Request) {
	s.control(w, r, func(m *Model) error { return m.Load(s.home.ctx) })
}

func (s *Server) unload(w http.ResponseWriter, r *http.Request) {
	s.control(w, r, func(m *Model) error { return m.Unload(r.Context()) }, "unload_dependents")
}

// control calls act on a model, if requests may do that. Parameters that would change the load are
// refused.
func (s *Server) control(w http.ResponseWriter, r *http.Request, act func(*Model) error, ignored ...string) {
	err := s.mayControl(w, r, ignored)
	m := s.Model(r.PathValue("model"))
	if m == nil && err == nil {
		err = fmt.Errorf("%w: model %.140q", ErrUnknown, r.PathValue("model"))
	}
	if err == nil {
		err = act(m)
		s.writeBy(w, 0) // loading may have taken longer than an inference
	}
	if err != nil {
		failControl(w, err)
		return
	}
	answer(w, http.StatusOK, struct{}{})
}

func (s *Server) mayControl(w http.ResponseWriter, r *http.Request, ignored []string) error {
	if !s.options.Control {
		return errControl
	}
	var body struct {
		Parameters map[string]any `json:"parameters"`
	}
	if err := readCommand(w, r, &body); err != nil {
		return err
	}
	for name, value := range body.Parameters {
		if value != nil && !slices.Contains(ignored, name) {
			return fmt.Errorf("%w: %.40q", errNoLoad, name)
		}
	}
	return nil
}

// readCommand reads the body of a request about the model repository: nothing, or an object with the members of into.
func readCommand(w http.ResponseWriter, r *http.Request, into any) error {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, headerBytes))
	if err != nil {
		class := oip.ErrRead
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			class = oip.ErrTooLarge
		}
		return &oip.Error{Class: class, Err: err}
	}
	if len(text) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err = dec.Decode(into); err == nil {
		if _, err := dec.Token(); err == io.EOF {
			return nil
		}
		return &oip.Error{Class: oip.ErrInvalid, Err: errors.New("extra bytes after the JSON object")}
	}
	return &oip.Error{Class: oip.ErrInvalid, Err: jsonerror.Plain(err)}
}
