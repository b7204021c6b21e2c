package openai

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai/embed"
	"github.com/etrun-go/etrun/serve/openai/internal/answer"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/llama"
	"github.com/etrun-go/etrun/serve/openai/internal/ollama"
	"github.com/etrun-go/etrun/serve/openai/internal/requests"
	"github.com/etrun-go/etrun/text"
)

// doors are the routes of other APIs: Ollama's, llama-server's own, and comparisons of texts.
func (h *handler) doors() map[string]route {
	return map[string]route{
		"/api/version":    {"GET", h.ollamaVersion},
		"/api/tags":       {"GET", h.ollamaTags},
		"/api/ps":         {"GET", h.ollamaRunning},
		"/api/show":       {"POST", h.ollamaShow},
		"/api/embed":      {"POST", h.ollamaEmbed},
		"/api/embeddings": {"POST", h.ollamaEmbed},
		"/api/chat": {"POST", func(w http.ResponseWriter, r *http.Request) {
			h.serve(w, r, ollama.ChatMembers, &ollama.Chat{})
		}},
		"/api/generate": {"POST", func(w http.ResponseWriter, r *http.Request) {
			h.serve(w, r, ollama.GenerateMembers, &ollama.Generate{})
		}},
		"/completion": {"POST", func(w http.ResponseWriter, r *http.Request) {
			h.serve(w, r, llama.CompletionMembers, &llama.Completion{})
		}},
		"/apply-template": {"POST", h.applyTemplate},
		"/props":          {"GET", h.props},
		"/slots":          {"GET", h.slots},
		"/models":         {"GET", h.models},
		"/v1/rerank":      {"POST", h.rerank},
		"/rerank":         {"POST", h.rerank},
		"/similarity":     {"POST", h.similarity},
	}
}

// ollamaPath is the prefix of the paths of Ollama's API.
const ollamaPath = "/api/"

// styled is the body of a request to another API than OpenAI's.
type styled interface{ Style() *answer.Style }

// styleOf returns the style of answers to a request, nil for OpenAI's.
func styleOf(body any) *answer.Style {
	switch b := body.(type) {
	case styled:
		return b.Style()
	case *ollama.Show, *ollama.Embed:
		return &ollama.Plain
	}
	return nil
}

func (h *handler) ollamaVersion(w http.ResponseWriter, _ *http.Request) {
	answer.JSON(w, http.StatusOK, map[string]string{"version": ollama.APIVersion})
}

func (h *handler) ollamaTags(w http.ResponseWriter, _ *http.Request) { h.listModels(w, false) }

func (h *handler) ollamaRunning(w http.ResponseWriter, _ *http.Request) { h.listModels(w, true) }

// listModels answers with the models that there are, or those that are loaded.
func (h *handler) listModels(w http.ResponseWriter, loaded bool) {
	list := ollama.List{Models: []ollama.Listed{}}
	for _, m := range h.server.Models() {
		if !m.Attached() || !usable(m) || loaded && m.State() != serve.Ready {
			continue
		}
		context := 0
		m.Loaded(func(x serve.Attachment) {
			if l, ok := x.(lexer); ok {
				context, _ = l.Bounds()
			}
		})
		list.Add(m.Name(), h.since(), loaded, context)
	}
	answer.JSON(w, http.StatusOK, &list)
}

// since is when the server was started.
func (h *handler) since() time.Time { return time.Unix(h.created, 0).UTC() }

func (h *handler) ollamaShow(w http.ResponseWriter, r *http.Request) {
	body := &ollama.Show{}
	h.convert(w, r, ollama.ShowMembers, body, func() (string, string) {
		if body.Model == "" {
			body.Model = body.Name
		}
		return ollama.Name(body.Model), ""
	}, func(l lexer, _ *serve.Reservation) (any, error) {
		context, _ := l.Bounds()
		switch x := l.(type) {
		case *generator:
			return ollama.NewShown(x.source(), h.since(), context, 0, x.abilities()), nil
		case *embed.Model:
			return ollama.NewShown("", h.since(), context, x.Info().Dimensions, []string{"embedding"}), nil
		}
		return nil, nil // there are no others
	})
}

// source returns the source of the template, empty for none.
func (g *generator) source() string {
	if g.template == nil {
		return ""
	}
	return g.template.Source()
}

// abilities are what a model can do, as Ollama names it.
func (g *generator) abilities() []string {
	list := []string{"completion"}
	if g.template == nil {
		return list
	}
	if g.noCalls == nil {
		list = append(list, "tools")
	}
	if _, err := g.template.Thinking(true); err == nil {
		list = append(list, "thinking")
	}
	return append(list, g.senses()...)
}

// senses are what a model takes besides text.
func (g *generator) senses() (list []string) {
	for _, m := range g.model.Info().Media {
		list = append(list, map[text.Medium]string{text.Picture: "vision", text.Sound: "audio"}[m])
	}
	return list
}

func (h *handler) ollamaEmbed(w http.ResponseWriter, r *http.Request) {
	begun, body, list := time.Now(), &ollama.Embed{}, &answer.List{}
	v := &embed.Vectors{Embedding: &body.Embedding}
	var one []float32 // of /api/embeddings
	v.Each = func(vector []float32) error {
		one = slices.Clone(vector)
		return list.Add(v.Hold, vector)
	}
	h.vectors(w, r, ollama.EmbedMembers, body, v, func(m string) any {
		if body.Prompt != nil {
			return map[string]any{"embedding": one}
		}
		return &ollama.Vectors{Model: m, Vectors: list, Total: int64(time.Since(begun)), Prompt: v.Tokens()}
	})
}

func (h *handler) rerank(w http.ResponseWriter, r *http.Request) {
	body := &embed.Rerank{}
	v := &embed.Vectors{Embedding: &body.Embedding, Each: body.Add}
	h.vectors(w, r, embed.RerankMembers, body, v, func(m string) any { return body.Answer(m, v.Tokens()) })
}

func (h *handler) similarity(w http.ResponseWriter, r *http.Request) {
	body := &embed.Similarity{}
	v := &embed.Vectors{Embedding: &body.Embedding, Each: body.Add}
	h.vectors(w, r, embed.SimilarityMembers, body, v, func(m string) any { return body.Answer(m, v.Tokens()) })
}

func (h *handler) applyTemplate(w http.ResponseWriter, r *http.Request) {
	body := &requests.Chat{}
	h.convert(w, r, llama.TemplateMembers, body, func() (string, string) { return body.Model, KindText }, func(l lexer, hold *serve.Reservation) (any, error) {
		g, ok := l.(*generator)
		if !ok {
			return nil, fault.Refused("model", "computes vectors of texts only")
		}
		prompt, err := body.Render(g.prompts())
		if err != nil {
			return nil, fault.OfPrompt("messages", err)
		}
		return llama.Prompt{Prompt: prompt}, hold.Grow(textShare * int64(len(prompt)))
	})
}

func (h *handler) props(w http.ResponseWriter, r *http.Request) {
	h.about(w, r, func(m *serve.Model, g *generator, context int) any {
		_, most := m.Running()
		return llama.NewProps(m.Name(), g.source(), h.server.Metadata().Version, context, most)
	})
}

func (h *handler) slots(w http.ResponseWriter, r *http.Request) {
	h.about(w, r, func(m *serve.Model, _ *generator, context int) any {
		n, most := m.Running()
		return llama.Slots(context, n, most)
	})
}

// about answers a question about the model that the query names, or the only one.
func (h *handler) about(w http.ResponseWriter, r *http.Request, describe func(m *serve.Model, g *generator, context int) any) {
	var object any
	m, err := h.find(r.URL.Query().Get("model"), KindText)
	if err == nil {
		err = m.Peek(r.Context(), func(x serve.Attachment) error {
			g, ok := x.(*generator)
			if !ok {
				return notOfKind(m, noTexts(x))
			}
			context, _ := g.Bounds()
			object = describe(m, g, context)
			return nil
		})
	}
	if err != nil {
		answer.Fail(w, err)
		return
	}
	answer.JSON(w, http.StatusOK, object)
}

// refusal is the answer to a request for a path that another part of the server, or none, has.
func refusal(path string, status int, message string) any {
	if strings.HasPrefix(path, ollamaPath) {
		return ollama.Error{Error: message}
	}
	return fault.BodyOf(status, message)
}
