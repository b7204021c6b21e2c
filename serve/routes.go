package serve

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

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

func (s *Server) metadata(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, s.Metadata())
}

func (s *Server) modelMetadata(w http.ResponseWriter, r *http.Request) {
	about, err := s.ModelMetadata(r.Context(), r.PathValue("model"), r.PathValue("version"))
	reply(w, about, err)
}

func (s *Server) modelReady(w http.ResponseWriter, r *http.Request) {
	if err := s.ModelReady(r.PathValue("model"), r.PathValue("version")); err != nil {
		fail(w, err)
	}
}

// configuration answers the configuration of a model's method.
func (s *Server) configuration(w http.ResponseWriter, r *http.Request) {
	c, err := s.Configuration(r.Context(), r.PathValue("model"), r.PathValue("version"))
	reply(w, c, err)
}

// allStatistics answers the statistics of all loaded models.
func (s *Server) allStatistics(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, statisticsAnswer{s.AllStatistics()})
}

// modelStatistics answers the statistics of a model's methods, or of the one that the version names.
func (s *Server) modelStatistics(w http.ResponseWriter, r *http.Request) {
	list, err := s.Statistics(r.PathValue("model"), r.PathValue("version"))
	reply(w, statisticsAnswer{list}, err)
}

func (s *Server) index(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Ready bool `json:"ready"` // only models that are ready
	}
	if err := readCommand(w, r, &body); err != nil {
		fail(w, err)
		return
	}
	answer(w, http.StatusOK, s.Index(body.Ready))
}

func (s *Server) load(w http.ResponseWriter, r *http.Request) {
	s.control(w, r, s.LoadModel)
}

func (s *Server) unload(w http.ResponseWriter, r *http.Request) {
	s.control(w, r, func(m string, parameters map[string]any) error { return s.UnloadModel(r.Context(), m, parameters) })
}

// control calls act with the model of a request and the parameters in its body.
func (s *Server) control(w http.ResponseWriter, r *http.Request, act func(model string, parameters map[string]any) error) {
	var body struct {
		Parameters map[string]any `json:"parameters"`
	}
	err := s.mayControl()
	if err == nil {
		err = readCommand(w, r, &body)
	}
	if err == nil {
		err = act(r.PathValue("model"), body.Parameters)
		s.writeBy(w, 0) // loading may have taken longer than an inference
	}
	if err != nil {
		failControl(w, err)
		return
	}
	answer(w, http.StatusOK, struct{}{})
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
