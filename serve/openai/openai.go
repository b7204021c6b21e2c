// Package openai (no compatibility promise) serves language models in the protocol of OpenAI's API:
// completions, chat completions and responses, as one answer or as a stream of server-sent events, vectors of texts, and the
// list of models; texts of recordings; besides, texts as tokens and tokens as texts. Ollama's API and the paths of llama-server that user interfaces
// ask for are doors to the same: see doors.go.
//
//	s, err := serve.New(serve.Options{}, serve.Config{Name: "story", Open: open, Attach: openai.Attach(config)})
//	err = s.LoadAll(ctx)
//	for _, pattern := range openai.Patterns {
//		mux.Handle(pattern, openai.New(s, openai.Options{}))
//	}
//
// Queues, time limits, loads and limits of memory are those of package serve. A request for a
// feature that is not supported is refused, never answered without it.
package openai

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai/audio"
	"github.com/etrun-go/etrun/serve/openai/embed"
	"github.com/etrun-go/etrun/serve/openai/internal/answer"
)

// Patterns are those of the handler's paths for an http.ServeMux, and of paths without /v1, to which it answers with the right one.
var Patterns = []string{"/v1/", "/tokenize", "/detokenize", "/models", "/completions", "/chat/completions", "/responses", "/embeddings",
	ollamaPath, "/completion", "/apply-template", "/props", "/slots", "/rerank", "/similarity"}

// Serves reports whether a path is one of the handler's.
func Serves(path string) bool {
	return slices.ContainsFunc(Patterns, func(p string) bool { return path == p || strings.HasSuffix(p, "/") && strings.HasPrefix(path, p) })
}

// New returns the handler of [Patterns].
func New(s *serve.Server, o Options) http.Handler {
	if o.BodyBytes == 0 {
		o.BodyBytes, o.MediaBytes = 1<<20, cmp.Or(o.MediaBytes, 32<<20)
	}
	h := &handler{server: s, options: o, created: time.Now().Unix()}
	mux := http.NewServeMux()
	for path, row := range h.table() {
		mux.HandleFunc(row.method+" "+path, row.f)
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", row.method)
			Refuse(w, r, http.StatusMethodNotAllowed, "method "+strings.ToValidUTF8(r.Method, "?")+", want "+row.method)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		Refuse(w, r, http.StatusNotFound, h.noPath(r.URL.Path))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.WriteBy(w)
		mux.ServeHTTP(w, r)
	})
}

// Refuse answers a request that another part of the server refuses, as this package would.
func Refuse(w http.ResponseWriter, r *http.Request, status int, message string) {
	answer.JSON(w, status, refusal(r.URL.Path, status, message))
}

// noPath returns the error of a path that is not there, such as that of a client whose base URL lacks /v1, or has it twice.
func (h *handler) noPath(path string) string {
	const base = "/v1"
	if strings.HasPrefix(path, ollamaPath) {
		return "no such path: models are files of the server; there are /api/tags, /api/show, /api/chat, /api/generate, /api/embed, /api/ps and /api/version"
	}
	for _, want := range []string{base + path, strings.TrimPrefix(path, base)} {
		if _, ok := h.table()[want]; ok && strings.HasPrefix(want, base) {
			return "no such path: want " + want + "; the base URL of a client ends with one " + base
		} else if ok {
			return "no such path: want " + want
		}
	}
	return "no such path: there are /v1/models, /v1/completions, /v1/chat/completions, /v1/responses, /v1/embeddings, /v1/rerank, " +
		"/v1/audio/transcriptions, /v1/audio/translations, /tokenize and /detokenize"
}

// route is the method of a path and its handler.
type route struct {
	method string
	f      http.HandlerFunc
}

// table returns the routes by path. A test compares them with package serve's description of the API.
func (h *handler) table() map[string]route {
	table := map[string]route{
		"/v1/models":               {"GET", h.models},
		"/v1/models/{model}":       {"GET", h.ModelName},
		"/v1/completions":          {"POST", h.completions},
		"/v1/chat/completions":     {"POST", h.chat},
		"/v1/responses":            {"POST", h.responses},
		"/v1/embeddings":           {"POST", h.embeddings},
		"/v1/audio/transcriptions": {"POST", h.transcriptions},
		"/v1/audio/translations":   {"POST", h.translations},
		"/tokenize":                {"POST", h.tokenize},
		"/detokenize":              {"POST", h.detokenize},
	}
	maps.Copy(table, h.doors())
	return table
}

// modelAnswer is a model in the list.
type modelAnswer struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	// Capabilities are completion, chat, vision, audio, embedding, transcription, translation, voice_detection and diarization; none
	// while the model is not loaded.
	Capabilities []string `json:"capabilities"`
}

// describe returns the answer for a model, which it does not load.
func (h *handler) describe(m *serve.Model) modelAnswer {
	a := modelAnswer{m.Name(), "model", h.created, "etrun", []string{}}
	m.Loaded(func(x serve.Attachment) {
		switch x := x.(type) {
		case *embed.Model:
			a.Capabilities = append(a.Capabilities, "embedding")
		case *audio.Model:
			a.Capabilities = append(a.Capabilities, x.Capabilities()...)
		case *generator:
			a.Capabilities = append(a.Capabilities, "completion")
			if x.template != nil {
				a.Capabilities = append(a.Capabilities, "chat")
			}
			a.Capabilities = append(a.Capabilities, x.senses()...)
		}
	})
	return a
}

func (h *handler) models(w http.ResponseWriter, _ *http.Request) {
	list := struct {
		Object string        `json:"object"`
		Data   []modelAnswer `json:"data"`
	}{"list", []modelAnswer{}}
	for _, m := range h.server.Models() {
		if m.Attached() && usable(m) {
			list.Data = append(list.Data, h.describe(m))
		}
	}
	answer.JSON(w, http.StatusOK, list)
}

func (h *handler) ModelName(w http.ResponseWriter, r *http.Request) {
	m, err := h.find(r.PathValue("model"), "")
	if err == nil && !usable(m) {
		err = h.server.ModelReady(m.Name(), "")
	}
	if err != nil {
		answer.Fail(w, err)
		return
	}
	answer.JSON(w, http.StatusOK, h.describe(m))
}
