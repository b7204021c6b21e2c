package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/sashabaranov/go-openai"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/await"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai"
)

const (
	asCompletion = "/v1/completions"
	asChat       = "/v1/chat/completions"
)

// choice is a choice of any answer or event.
type choice struct {
	Index    int
	Text     string
	Finish   *string `json:"finish_reason"`
	Delta    struct{ Role, Content string }
	LogProbs *struct {
		Content []struct {
			Token   string
			LogProb float64
			Top     []struct{ LogProb float64 } `json:"top_logprobs"`
		}
		Tokens []string
		Top    []map[string]float64 `json:"top_logprobs"`
	}
}

// reply is an answer, or an event of one.
type reply struct {
	Model   string
	Choices []choice
	Usage   json.RawMessage
	Data    []struct{ ID string }
	Error   struct {
		Message, Type string
		Param, Code   *string
	}
}

// replies returns an answer with a status, or its events. member is added to a request of the path's kind.
func replies(t *testing.T, p *peer, path, member string, status int) (list []reply) {
	t.Helper()
	body := `{"model":"lm","prompt":"hello","max_tokens":4,"seed":1` + member + "}"
	if path == asChat {
		body = `{"model":"lm","messages":[{"role":"user","content":"hi"}],"max_tokens":4,"seed":1` + member + "}"
	}
	return answers(t, p, path, body, status)
}

// answers returns an answer to a body.
func answers(t *testing.T, p *peer, path, body string, status int) (list []reply) {
	t.Helper()
	method := "POST"
	if body == "" {
		method = "GET"
	}
	got, text := ask(t, p, method, path, body)
	if got != status {
		t.Errorf("%s %.100s: got %d %.300s, want %d", path, body, got, text, status)
	}
	for event := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		var r reply
		if event = strings.TrimPrefix(event, "data: "); event == "[DONE]" {
			continue
		}
		must(t, json.Unmarshal([]byte(event), &r))
		list = append(list, r)
	}
	return list
}

// refusal checks the error of a request.
func refusal(t *testing.T, list []reply, param, code string) {
	t.Helper()
	e := list[0].Error
	got := [2]string{}
	for i, s := range []*string{e.Param, e.Code} {
		if s != nil {
			got[i] = *s
		}
	}
	if e.Message == "" || e.Type != "invalid_request_error" || got != [2]string{param, code} {
		t.Errorf("got %+v with %q, want param %q and code %q", e, got, param, code)
	}
}

// contract has a test for each row of the table in docs/serve-reference.md.
var contract = map[string]func(t *testing.T, p *peer){
	"`GET /v1/models`": func(t *testing.T, p *peer) {
		if l := answers(t, p, "/v1/models", "", 200)[0].Data; len(l) != 1 || l[0].ID != "lm" {
			t.Errorf("models %+v", l)
		}
		must(t, p.server.Model("lm").Unload(t.Context()))
		if l := answers(t, p, "/v1/models", "", 200)[0].Data; len(l) != 0 {
			t.Errorf("unloaded: models %+v", l)
		}
		must(t, p.server.Model("lm").Load(t.Context()))
	},
	"no `model`": func(t *testing.T, p *peer) {
		for _, body := range []string{`{"prompt":"x"}`, `{"model":null,"prompt":"x"}`, `{"model":"","prompt":"x"}`} {
			if r := answers(t, p, asCompletion, body, 200)[0]; r.Model != "lm" {
				t.Errorf("%s: the model %q", body, r.Model)
			}
		}
		refusal(t, answers(t, several(t), asCompletion, `{"prompt":"x"}`, 400), "model", "missing_required_parameter")
	},
	"a model that is not there, or not loaded": func(t *testing.T, p *peer) {
		refusal(t, answers(t, p, asCompletion, `{"model":"no","prompt":"x"}`, 404), "model", "model_not_found")
		must(t, p.server.Model("lm").Unload(t.Context()))
		refusal(t, answers(t, p, asCompletion, `{"model":"lm","prompt":"x"}`, 404), "model", "model_not_found")
		refusal(t, answers(t, p, asChat, `{"messages":[{"role":"user","content":"x"}]}`, 404), "model", "model_not_found")
		refusal(t, answers(t, p, "/v1/models/lm", "", 404), "model", "model_not_found")
		must(t, p.server.Model("lm").Load(t.Context()))
	},
	"an unknown member": func(t *testing.T, p *peer) {
		refusal(t, replies(t, p, asCompletion, `,"temprature":1`, 400), "temprature", "unknown_parameter")
		refusal(t, answers(t, p, asChat, `{"messages":[{"role":"user","content":"x","color":1}]}`, 400), "messages[0].color", "unknown_parameter")
	},
	"a member that is not supported": func(t *testing.T, p *peer) {
		refusal(t, replies(t, p, asChat, `,"tools":[{"type":"function","function":{"name":"f"}}]`, 400), "tools", "unsupported_parameter")
		refusal(t, replies(t, p, asChat, `,"response_format":{"type":"json_object","grammar":"x"}`, 400), "response_format.grammar",
			"unsupported_parameter")
		replies(t, p, asChat, `,"tools":[],"tool_choice":"none"`, 200)
	},
	"a value of another type, or out of range": func(t *testing.T, p *peer) {
		refusal(t, replies(t, p, asChat, `,"temperature":"hot"`, 400), "temperature", "")
		refusal(t, replies(t, p, asChat, `,"top_p":2`, 400), "top_p", "")
		refusal(t, replies(t, p, asChat, `,"n":0.5`, 400), "n", "")
	},
	"an integer written `3.0`": func(t *testing.T, p *peer) {
		a := replies(t, p, asCompletion, `,"n":2,"top_k":3,"logprobs":1`, 200)[0].Choices
		b := replies(t, p, asCompletion, `,"n":2.0,"top_k":3.0,"logprobs":1e0`, 200)[0].Choices
		if len(b) != 2 || a[0].Text != b[0].Text || a[1].Text != b[1].Text {
			t.Errorf("got %+v, want %+v", b, a)
		}
		answers(t, p, asCompletion, `{"prompt":[1.0,2.0]}`, 200)
	},
	"a prompt longer than the context": func(t *testing.T, p *peer) {
		refusal(t, answers(t, p, asCompletion, `{"prompt":"`+strings.Repeat("x", 40)+`"}`, 400), "prompt", "context_length_exceeded")
	},
	"`n`": func(t *testing.T, p *peer) {
		for i, c := range replies(t, p, asChat, `,"n":3`, 200)[0].Choices {
			if c.Index != i {
				t.Errorf("choice %d has the index %d", i, c.Index)
			}
		}
	},
	"`stream`": func(t *testing.T, p *peer) {
		list := replies(t, p, asChat, `,"stream":true`, 200)
		last := list[len(list)-1].Choices[0]
		if list[0].Choices[0].Delta.Role != "assistant" || last.Finish == nil || *last.Finish != "length" {
			t.Errorf("first %+v, last %+v", list[0], last)
		}
		for _, r := range list[:len(list)-1] {
			if r.Usage != nil || r.Choices[0].Finish != nil {
				t.Errorf("an event %+v", r)
			}
		}
		if _, text := ask(t, p, "POST", asCompletion, `{"prompt":"x","stream":true}`); !strings.HasSuffix(string(text), "data: [DONE]\n\n") {
			t.Errorf("the end of a stream: %q", text)
		}
	},
	"`stream_options.include_usage`": func(t *testing.T, p *peer) {
		list := replies(t, p, asChat, `,"stream":true,"stream_options":{"include_usage":true}`, 200)
		for i, r := range list {
			if last := i == len(list)-1; last != (len(r.Choices) == 0) || last == (string(r.Usage) == "null") || r.Usage == nil {
				t.Errorf("event %d: %+v with the usage %s", i, r, r.Usage)
			}
		}
	},
	"`logprobs` of chats without `top_logprobs`": func(t *testing.T, p *peer) {
		for _, x := range replies(t, p, asChat, `,"logprobs":true`, 200)[0].Choices[0].LogProbs.Content {
			if x.Top == nil || len(x.Top) != 0 {
				t.Errorf("token %+v", x)
			}
		}
	},
	"`top_logprobs` of chats": func(t *testing.T, p *peer) {
		for _, x := range replies(t, p, asChat, `,"logprobs":true,"top_logprobs":3`, 200)[0].Choices[0].LogProbs.Content {
			if len(x.Top) != 3 || x.Top[0].LogProb < x.Top[1].LogProb || x.Top[1].LogProb < x.Top[2].LogProb {
				t.Errorf("token %+v", x)
			}
		}
	},
	"`text_offset`": func(t *testing.T, p *peer) {
		choices, _ := scored(t, p, `"prompt":"é","max_tokens":5,"logprobs":0,"guided_regex":"[é-ü]{2}a"`)
		if got := choices[0].LogProbs.Offsets; fmt.Sprint(got) != "[0 0 1 1 2]" {
			t.Errorf("the tokens of %q begin at %v", choices[0].Text, got)
		}
	},
	"`echo` with `logprobs`": func(t *testing.T, p *peer) {
		choices, n := scored(t, p, `"prompt":"éab","max_tokens":2,"logprobs":3,"echo":true`)
		checkScored(t, choices[0], n+2)
	},
	"`max_tokens` 0 of completions": func(t *testing.T, p *peer) {
		choices, _ := scored(t, p, `"prompt":"ab","max_tokens":0,"logprobs":3,"echo":true`)
		if choices[0].Text != "ab" || choices[0].Finish != "length" {
			t.Errorf("got %+v", choices[0])
		}
	},
	"`logprobs` of completions": func(t *testing.T, p *peer) {
		for _, most := range []int{0, 1, 3} {
			l := replies(t, p, asCompletion, fmt.Sprintf(`,"temperature":2,"logprobs":%d`, most), 200)[0].Choices[0].LogProbs
			for i, token := range l.Tokens {
				if _, ok := l.Top[i][token]; !ok || len(l.Top[i]) > most+1 {
					t.Errorf("logprobs %d: %q in %v", most, token, l.Top[i])
				}
			}
		}
	},
	"`stop`": func(t *testing.T, p *peer) {
		all := replies(t, p, asCompletion, `,"temperature":0`, 200)[0].Choices[0].Text
		c := replies(t, p, asCompletion, fmt.Sprintf(`,"temperature":0,"stop":%q`, all[2:3]), 200)[0].Choices[0]
		if at := strings.Index(all, all[2:3]); c.Text != all[:at] || *c.Finish != "stop" {
			t.Errorf("got %q, %s, want %q of %q", c.Text, *c.Finish, all[:at], all)
		}
	},
	"`max_tokens` reached": func(t *testing.T, p *peer) {
		if c := replies(t, p, asCompletion, "", 200)[0].Choices[0]; *c.Finish != "length" {
			t.Errorf("finish %s", *c.Finish)
		}
	},
	"`max_tokens` beyond the context": func(t *testing.T, p *peer) {
		if c := answers(t, p, asCompletion, `{"prompt":"x","max_tokens":9999,"ignore_eos":true}`, 200)[0].Choices[0]; *c.Finish != "length" {
			t.Errorf("finish %s", *c.Finish)
		}
	},
	"`/v1/embeddings`": func(t *testing.T, _ *peer) {
		p := newEmbedPeer(t, serve.Options{})
		_, data := ask(t, p.peer, "POST", "/v1/embeddings", `{"model":"vec","input":["the","model"]}`)
		var got client.EmbeddingResponse
		if must(t, json.Unmarshal(data, &got)); len(got.Data) != 2 || got.Data[1].Index != 1 || len(got.Data[1].Embedding) != 32 || got.Usage.TotalTokens != 6 {
			t.Errorf("got %+v", got)
		}
	},
	"`dimensions`": func(t *testing.T, _ *peer) {
		p := newEmbedPeer(t, serve.Options{})
		for n, status := range map[int]int{1: 200, 32: 200, 33: 400} {
			list := answers(t, p.peer, "/v1/embeddings", fmt.Sprintf(`{"model":"vec","input":"the","dimensions":%d}`, n), status)
			if status == 400 {
				refusal(t, list, "dimensions", "")
			}
		}
	},
	"an `input` longer than the model's context": func(t *testing.T, _ *peer) {
		p := newEmbedPeer(t, serve.Options{})
		refusal(t, answers(t, p.peer, "/v1/embeddings", `{"model":"vec","input":"`+strings.Repeat("x ", 11)+`"}`, 400), "input", "context_length_exceeded")
	},
	"a model of another kind": func(t *testing.T, _ *peer) {
		p := newEmbedPeer(t, serve.Options{})
		refusal(t, answers(t, p.peer, "/v1/embeddings", `{"model":"lm","input":"x"}`, 400), "model", "")
		refusal(t, answers(t, p.peer, asCompletion, `{"model":"vec","prompt":"x"}`, 400), "model", "")
	},
	"other paths below `/v1`": func(t *testing.T, p *peer) {
		list := answers(t, p, "/v1/audio/speech", `{"model":"lm","input":"x"}`, 404)
		if refusal(t, list, "", ""); !strings.Contains(list[0].Error.Message, "/v1/completions") {
			t.Errorf("got %s", list[0].Error.Message)
		}
	},
	"a path without `/v1`, or with it twice": func(t *testing.T, p *peer) {
		for path, want := range map[string]string{
			"/chat/completions": "want /v1/chat/completions;", "/embeddings": "want /v1/embeddings;",
			"/completions": "want /v1/completions;", "/responses": "want /v1/responses;", "/v1/v1/responses": "want /v1/responses;",
			"/v1/tokenize": "want /tokenize", "/v1/": "there are /v1/models,", "/v1/v1/v1/models": "there are /v1/models,",
		} {
			list := answers(t, p, path, "{}", 404)
			if refusal(t, list, "", ""); !strings.Contains(list[0].Error.Message, want) {
				t.Errorf("%s: got %s, want %q", path, list[0].Error.Message, want)
			}
		}
	},
	"`/v1/responses`": func(t *testing.T, p *peer) {
		r := respond(t, p, `{"input":"hello","temperature":0,"max_output_tokens":4}`)
		if r.Object != "response" || r.Status != "incomplete" || r.Details.Reason != "max_output_tokens" || len(r.Output) != 1 ||
			r.Output[0].Type != "message" || r.Usage.Output != 4 || r.Store {
			t.Errorf("got %+v", r)
		}
	},
	"`stream` of responses": func(t *testing.T, p *peer) {
		_, data := ask(t, p, "POST", asResponse, `{"input":"hello","max_output_tokens":4,"stream":true}`)
		list := responseEvents(t, data)
		if first, last := list[0].Type, list[len(list)-1].Type; first != "response.created" || last != "response.incomplete" {
			t.Errorf("first %s, last %s", first, last)
		}
	},
	"`previous_response_id`, `conversation`, `background`": func(t *testing.T, p *peer) {
		for member, value := range map[string]string{"previous_response_id": `"x"`, "conversation": `"x"`, "background": "true"} {
			refusal(t, answers(t, p, asResponse, fmt.Sprintf(`{"input":"x",%q:%s}`, member, value), 400), member, "unsupported_parameter")
		}
		answers(t, p, asResponse, `{"input":"x","max_output_tokens":1,"previous_response_id":null,"background":false,"store":true}`, 200)
	},
	"calls of tools": func(t *testing.T, _ *peer) { testDemandedCalls(t) },
	"thoughts": func(t *testing.T, _ *peer) {
		p := newChatPeer(t, "{# </think> #}<think>\n")
		var got called
		_, data := ask(t, p, "POST", asChat, `{"messages":[{"role":"user","content":"x"}],"max_tokens":6}`)
		if must(t, json.Unmarshal(data, &got)); got.Choices[0].Message.Reasoning == nil || *got.Choices[0].Message.Content != "" {
			t.Errorf("got %s, want reasoning_content", data)
		}
	},
	"another method": func(t *testing.T, p *peer) { refusal(t, answers(t, p, asChat, "", 405), "", "method_not_supported") },
	"a body that is too large": func(t *testing.T, p *peer) {
		refusal(t, answers(t, p, asChat, `{"model":"`+strings.Repeat("x", 2<<20)+`"}`, 413), "", "")
	},
	"no token, or a wrong one": func(t *testing.T, _ *peer) {
		w := httptest.NewRecorder()
		openai.Refuse(w, httptest.NewRequest("GET", "/v1/models", nil), http.StatusUnauthorized, "not authorized")
		var r reply
		must(t, json.Unmarshal(w.Body.Bytes(), &r))
		if refusal(t, []reply{r}, "", "invalid_api_key"); w.Code != 401 {
			t.Errorf("status %d", w.Code)
		}
	},
	"a full queue": func(t *testing.T, _ *peer) {
		p := newPeer(t, serve.Config{Instances: 1, Queue: -1})
		release := inUse(t, p)
		defer release()
		status, header, _ := post(t, p, asCompletion, `{"prompt":"x"}`)
		if status != 429 || header.Get("Retry-After") == "" {
			t.Errorf("got %d, Retry-After %q", status, header.Get("Retry-After"))
		}
		if e := answers(t, p, asCompletion, `{"prompt":"x"}`, 429)[0].Error; e.Type != "rate_limit_error" || *e.Code != "rate_limit_exceeded" {
			t.Errorf("got %+v", e)
		}
	},
	"no first token within the time limit": func(t *testing.T, _ *peer) {
		p := newPeer(t, serve.Config{Instances: 1, Queue: 1, Timeout: 100 * time.Millisecond})
		release := inUse(t, p)
		defer release()
		if e := answers(t, p, asCompletion, `{"prompt":"x"}`, 504)[0].Error; e.Type != "server_error" {
			t.Errorf("got %+v", e)
		}
	},
	"a model that is being loaded": func(t *testing.T, _ *peer) {
		slow := make(chan struct{})
		first := true
		p := newPeer(t, serve.Config{Open: func(ctx context.Context) (*etrun.Program, error) {
			if !first {
				<-slow
			}
			first = false
			return open(ctx)
		}})
		m, loaded := p.server.Model("lm"), make(chan error, 1)
		must(t, m.Unload(t.Context()))
		go func() { loaded <- m.Load(context.Background()) }()
		await.True(t, "it is being loaded", func() bool { return m.State() == serve.Loading })
		status, header, _ := post(t, p, asCompletion, `{"prompt":"x"}`)
		if l := answers(t, p, "/v1/models", "", 200)[0].Data; status != 503 || header.Get("Retry-After") == "" || len(l) != 1 {
			t.Errorf("got %d, Retry-After %q, models %+v", status, header.Get("Retry-After"), l)
		}
		close(slow)
		must(t, <-loaded)
	},
}

// several returns a server with two language models.
func several(t *testing.T) *peer {
	t.Helper()
	config := func(name string) serve.Config {
		return serve.Config{Name: name, Open: open, Attach: openai.Attach(openai.Config{Tokenizer: bytesTokenizer(t)})}
	}
	return serverOf(t, config("a"), config("b"))
}

// serverOf returns a server with models that are not loaded.
func serverOf(t *testing.T, models ...serve.Config) *peer {
	t.Helper()
	s, err := serve.New(serve.Options{}, models...)
	must(t, err)
	p := &peer{server: s, http: httptest.NewServer(openai.New(s, openai.Options{}))}
	t.Cleanup(func() {
		p.http.Close()
		must(t, s.Close())
	})
	return p
}

// inUse uses the model until release is called.
func inUse(t *testing.T, p *peer) (release func()) {
	t.Helper()
	held, end, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- p.server.Model("lm").Use(context.Background(), func(_ context.Context, _ serve.Attachment, l *serve.Lease) error {
			l.Began()
			close(held)
			<-end
			return nil
		})
	}()
	<-held
	return func() {
		close(end)
		must(t, <-ended)
	}
}

// The table of docs/serve-reference.md says what the server does, row by row.
func TestContract(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "serve-reference.md"))
	must(t, err)
	_, table, found := strings.Cut(string(page), "\n| request | answer |\n|---|---|\n")
	if !found {
		t.Fatal("docs/serve-reference.md has no table of requests and answers")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	p := newPeer(t, serve.Config{})
	var rows []string
	for line := range strings.Lines(table) {
		row := strings.TrimSpace(strings.Split(line, "|")[1])
		rows = append(rows, row)
		t.Run(row, func(t *testing.T) {
			test := contract[row]
			if test == nil {
				t.Fatal("no test")
			}
			test(t, p)
		})
	}
	for row := range contract {
		if !slices.Contains(rows, row) {
			t.Errorf("docs/serve-reference.md has no row %q", row)
		}
	}
}
