package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/sashabaranov/go-openai"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/delegate/all"
	"github.com/etrun-go/etrun/internal/await"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai"
	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// bytesTokenizer has one token for each byte.
func bytesTokenizer(t testing.TB) tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizer.Open(filepath.Join("..", "..", "text", "testdata", "bytes.json"))
	must(t, err)
	return tok
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open opens a model with 256 logits and 32 positions.
func open(ctx context.Context) (*etrun.Program, error) { return openWith(ctx) }

func openWith(ctx context.Context, options ...etrun.Option) (*etrun.Program, error) {
	data, err := os.ReadFile(filepath.Join("..", "..", "text", "testdata", "dynamic.pte"))
	if err != nil {
		return nil, err
	}
	return etrun.OpenSource(ctx, etrun.Bytes("dynamic.pte", data), append(options, etrun.WithDelegates(all.Backends()...))...)
}

// peer is a running server and a client of it.
type peer struct {
	server *serve.Server
	http   *httptest.Server
	client *client.Client

	mu    sync.Mutex
	stats []text.Stats
}

func newPeer(t testing.TB, c serve.Config) *peer { return newPeerOf(t, c, openai.Config{Sessions: 4}) }

func newPeerOf(t testing.TB, c serve.Config, texts openai.Config) *peer {
	return newPeerWith(t, serve.Options{}, c, texts)
}

func newPeerWith(t testing.TB, o serve.Options, c serve.Config, config openai.Config) *peer {
	t.Helper()
	tmpl, err := text.NewTemplate("plain", `{"message": "{text}|", "roles": {"system": "", "user": "", "assistant": ""}}`)
	must(t, err)
	if c.Name = "lm"; c.Open == nil {
		c.Open = open
	}
	if config.Tokenizer == nil {
		config.Tokenizer = bytesTokenizer(t)
	}
	if config.Template == nil {
		config.Template = tmpl
	}
	c.Attach = openai.Attach(config)
	p := &peer{}
	p.server, err = serve.New(o, c, serve.Config{Name: "plain", Open: func(context.Context) (*etrun.Program, error) {
		return nil, errors.New("not loaded in these tests")
	}})
	must(t, err)
	must(t, p.server.Model("lm").Load(t.Context()))
	mux := http.NewServeMux()
	texts := openai.New(p.server, openai.Options{Observe: func(_ string, _ text.Finish, s text.Stats) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.stats) < 100 { // the load test makes many texts
			p.stats = append(p.stats, s)
		}
	}})
	for _, pattern := range openai.Patterns {
		mux.Handle(pattern, texts)
	}
	p.http = httptest.NewServer(mux)
	settings := client.DefaultConfig("none")
	settings.BaseURL = p.http.URL + "/v1"
	p.client = client.NewClientWithConfig(settings)
	t.Cleanup(func() {
		p.http.Close()
		must(t, p.server.Close())
	})
	return p
}

// want returns what the library generates.
func want(t testing.TB, prompt string, o text.Options) string {
	t.Helper()
	answer, _, _ := direct(t, prompt, o)
	return answer
}

// direct returns the text that the library generates, and the memory of its session.
func direct(t testing.TB, prompt string, o text.Options) (answer string, memory, shared int64) {
	t.Helper()
	prog, err := open(t.Context())
	must(t, err)
	defer prog.Close()
	m, err := text.Load(t.Context(), prog, bytesTokenizer(t))
	must(t, err)
	defer m.Close()
	s, err := m.NewSession(t.Context())
	must(t, err)
	defer s.Close()
	for p, err := range s.Generate(t.Context(), prompt, o) {
		must(t, err)
		answer += p.Text
	}
	f, err := s.Footprint()
	must(t, err)
	return answer, f.Memory, m.SharedBytes()
}

// Greedy and drawn texts are those of the library, as one answer and as a stream.
func TestTextIsTheLibrary(t *testing.T) {
	p := newPeer(t, serve.Config{})
	seed := 7
	for _, c := range []struct {
		name string
		r    client.CompletionRequest
		o    text.Options
	}{
		{"greedy", client.CompletionRequest{Prompt: "hello", MaxTokens: 12}, text.Options{MaxTokens: 12, Sampling: text.Sampling{}}},
		{"seed", client.CompletionRequest{Prompt: "hello", MaxTokens: 12, Temperature: 1.5, TopP: 0.5, Seed: &seed},
			text.Options{MaxTokens: 12, Sampling: text.Sampling{Temperature: 1.5, TopP: 0.5, Seed: 7}}},
		{"penalties", client.CompletionRequest{Prompt: "hello", MaxTokens: 12, PresencePenalty: 1.5, FrequencyPenalty: -0.5},
			text.Options{MaxTokens: 12, Sampling: text.Sampling{PresencePenalty: 1.5, FrequencyPenalty: -0.5}}},
		{"default length", client.CompletionRequest{Prompt: "ab"}, text.Options{MaxTokens: 16}},
	} {
		t.Run(c.name, func(t *testing.T) {
			expected := want(t, c.r.Prompt.(string), c.o)
			c.r.Model = "lm"
			got, err := p.client.CreateCompletion(t.Context(), withTemperature(c.r))
			must(t, err)
			if got.Choices[0].Text != expected {
				t.Errorf("got %q, want %q", got.Choices[0].Text, expected)
			}
			if u := got.Usage; u.PromptTokens != len(c.r.Prompt.(string)) || u.TotalTokens != u.PromptTokens+u.CompletionTokens || u.CompletionTokens == 0 {
				t.Errorf("usage %+v", u)
			}
			stream, err := p.client.CreateCompletionStream(t.Context(), withTemperature(c.r))
			must(t, err)
			defer stream.Close()
			text, finish := "", ""
			for {
				chunk, err := stream.Recv()
				if errors.Is(err, io.EOF) {
					break
				}
				must(t, err)
				text += chunk.Choices[0].Text
				finish = chunk.Choices[0].FinishReason
			}
			if text != expected || finish != got.Choices[0].FinishReason {
				t.Errorf("stream: got %q, %s, want %q, %s", text, finish, expected, got.Choices[0].FinishReason)
			}
		})
	}
}

// withTemperature works around the client, which omits a temperature of 0: the smallest number is
// greedy as well.
func withTemperature(r client.CompletionRequest) client.CompletionRequest {
	if r.Temperature == 0 {
		r.Temperature = 1e-30
	}
	return r
}

func TestChat(t *testing.T) {
	p := newPeer(t, serve.Config{})
	expected := want(t, "sys|hi|", text.Options{MaxTokens: 9})
	r := client.ChatCompletionRequest{Model: "lm", MaxCompletionTokens: 9, Temperature: 1e-30, LogProbs: true, TopLogProbs: 2,
		Messages: []client.ChatCompletionMessage{{Role: "system", Content: "sys"}, {Role: "user", Content: "hi"}}}
	got, err := p.client.CreateChatCompletion(t.Context(), r)
	must(t, err)
	c := got.Choices[0]
	if c.Message.Content != expected || c.Message.Role != "assistant" || c.FinishReason != "length" {
		t.Errorf("got %+v, want %q", c, expected)
	}
	if c.LogProbs == nil || len(c.LogProbs.Content) != 9 || len(c.LogProbs.Content[0].TopLogProbs) != 2 {
		t.Errorf("probabilities %+v, want those of 9 tokens with 2 candidates", c.LogProbs)
	}
	r.LogProbs, r.TopLogProbs = false, 0
	r.StreamOptions = &client.StreamOptions{IncludeUsage: true}
	stream, err := p.client.CreateChatCompletionStream(t.Context(), r)
	must(t, err)
	defer stream.Close()
	reply, usage := "", (*client.Usage)(nil)
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		if usage = chunk.Usage; len(chunk.Choices) > 0 {
			reply += chunk.Choices[0].Delta.Content
		}
	}
	if reply != expected || usage == nil || usage.CompletionTokens != 9 || usage.PromptTokensDetails.CachedTokens == 0 {
		t.Errorf("stream: got %q and %+v, want %q, 9 tokens and cached ones", reply, usage, expected)
	}
	models, err := p.client.ListModels(t.Context())
	must(t, err)
	if len(models.Models) != 1 || models.Models[0].ID != "lm" {
		t.Errorf("models %+v, want lm only", models.Models)
	}
}

// The memory of kept texts is bounded in number and in bytes, and what is reported of it sums up.
func TestKeptBytes(t *testing.T) {
	var mu sync.Mutex
	sessions, most, size := 0, 0, int64(0)
	observe := func(n int, bytes int64) {
		mu.Lock()
		defer mu.Unlock()
		sessions, size = sessions+n, size+bytes
		most = max(most, sessions)
	}
	const within = 5 // percent
	prompts := []string{"one", "two", "three", "four", "five", "six"}
	one := int64(0)
	_, memory, shared := direct(t, prompts[0], text.Options{MaxTokens: 10, Sampling: text.Sampling{Temperature: 1e-30}}) // as check
	for _, c := range []struct {
		bytes func() int64
		least int // a text in progress needs more than one that is kept
		want  int
	}{
		{func() int64 { return 0 }, 4, 4},
		{func() int64 { return 1 }, 1, 1},
		{func() int64 { return shared + 2*one + one/2 }, 1, 2},
		{func() int64 { return 100 * one }, 4, 4},
	} {
		sessions, most, size = 0, 0, 0
		p := newPeerOf(t, serve.Config{}, openai.Config{Sessions: 4, Bytes: c.bytes(), Observe: observe})
		for range 2 {
			for _, prompt := range prompts {
				must(t, p.check(t.Context(), prompt, want(t, prompt, text.Options{MaxTokens: 10})))
			}
		}
		mu.Lock()
		if sum := memory*int64(sessions) + shared; sessions < c.least || most > c.want || size < sum*(100-within)/100 || size > sum*(100+within)/100 || c.bytes() > 1 && size > c.bytes() {
			t.Errorf("limit of %d bytes: %d sessions, at most %d, of %d bytes, want %d, of %d bytes each and %d, within %d %%", c.bytes(), sessions, most, size, c.want,
				memory, shared, within)
		}
		one = (size - shared) / int64(sessions)
		mu.Unlock()
		must(t, p.server.Model("lm").Unload(t.Context()))
		mu.Lock()
		if sessions != 0 || size != 0 {
			t.Errorf("limit of %d bytes: %d sessions of %d bytes after the end", c.bytes(), sessions, size)
		}
		mu.Unlock()
	}
}

// Several prompts and several texts for each give the texts that each gives alone.
func TestManyTexts(t *testing.T) {
	p := newPeer(t, serve.Config{})
	seed := 11
	prompts := []string{"hello", "other", "third"}
	for _, n := range []int{1, 3} {
		r := client.CompletionRequest{Model: "lm", Prompt: prompts, MaxTokens: 6, Temperature: 2, Seed: &seed, N: n}
		var expected []string
		promptTokens, generated := 0, 0
		for _, prompt := range prompts {
			promptTokens += len(prompt)
			for i := range n {
				expected = append(expected, want(t, prompt, text.Options{MaxTokens: 6, Sampling: text.Sampling{Temperature: 2, Seed: uint64(seed + i)}}))
				generated += 6
			}
		}
		got, err := p.client.CreateCompletion(t.Context(), r)
		must(t, err)
		if len(got.Choices) != len(expected) || got.Usage.PromptTokens != promptTokens || got.Usage.CompletionTokens != generated ||
			got.Usage.TotalTokens != promptTokens+generated {
			t.Fatalf("n %d: %d choices, usage %+v, want %d, %d and %d tokens", n, len(got.Choices), got.Usage, len(expected), promptTokens, generated)
		}
		for i, c := range got.Choices {
			if c.Index != i || c.Text != expected[i] || c.FinishReason != "length" {
				t.Errorf("n %d, choice %d: got %+v, want %q", n, i, c, expected[i])
			}
		}
		streamed, ends := make([]string, len(expected)), make([]int, len(expected))
		stream, err := p.client.CreateCompletionStream(t.Context(), r)
		must(t, err)
		for {
			chunk, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			c := chunk.Choices[0]
			streamed[c.Index] += c.Text
			if c.FinishReason != "" {
				ends[c.Index]++
			}
		}
		must(t, stream.Close())
		for i := range expected {
			if streamed[i] != expected[i] || ends[i] != 1 {
				t.Errorf("n %d, streamed choice %d: got %q with %d ends, want %q", n, i, streamed[i], ends[i], expected[i])
			}
		}
	}
}

// Each choice of a chat begins with its role.
func TestManyReplies(t *testing.T) {
	p := newPeer(t, serve.Config{})
	seed := 5
	r := client.ChatCompletionRequest{Model: "lm", MaxCompletionTokens: 4, Temperature: 2, Seed: &seed, N: 2,
		Messages: []client.ChatCompletionMessage{{Role: "user", Content: "hi"}}}
	got, err := p.client.CreateChatCompletion(t.Context(), r)
	must(t, err)
	stream, err := p.client.CreateChatCompletionStream(t.Context(), r)
	must(t, err)
	defer stream.Close()
	roles, streamed := make([]string, 2), make([]string, 2)
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		c := chunk.Choices[0]
		roles[c.Index] += c.Delta.Role
		streamed[c.Index] += c.Delta.Content
	}
	for i := range 2 {
		expected := want(t, "hi|", text.Options{MaxTokens: 4, Sampling: text.Sampling{Temperature: 2, Seed: uint64(seed + i)}})
		if got.Choices[i].Message.Content != expected || streamed[i] != expected || roles[i] != "assistant" {
			t.Errorf("choice %d: got %q, streamed %q with the role %q, want %q", i, got.Choices[i].Message.Content, streamed[i], roles[i], expected)
		}
	}
}

// The echo precedes each text.
func TestEcho(t *testing.T) {
	p := newPeer(t, serve.Config{})
	got, err := p.client.CreateCompletion(t.Context(), client.CompletionRequest{Model: "lm", Prompt: []string{"hello", "other"}, MaxTokens: 3, Temperature: 1e-30, Echo: true})
	must(t, err)
	for i, prompt := range []string{"hello", "other"} {
		if expected := prompt + want(t, prompt, text.Options{MaxTokens: 3}); got.Choices[i].Text != expected {
			t.Errorf("got %q, want %q", got.Choices[i].Text, expected)
		}
	}
}

// A prompt whose beginning a session has computed computes only the rest.
func TestPrefixIsReused(t *testing.T) {
	p := newPeer(t, serve.Config{})
	for i, prompt := range []string{"shared prefix one", "shared prefix two", "other", "shared prefix one"} {
		_, err := p.client.CreateCompletion(t.Context(), client.CompletionRequest{Model: "lm", Prompt: prompt, MaxTokens: 2, Temperature: 1e-30})
		must(t, err)
		got := p.stats[i].Reused
		if want := []int{0, len("shared prefix "), 0, len("shared prefix on")}[i]; got < want || i == 2 && got > 0 {
			t.Errorf("%q: %d tokens reused, want %d", prompt, got, want)
		}
	}
}

func post(t testing.TB, p *peer, path, body string) (status int, header http.Header, message string) {
	t.Helper()
	r, err := http.Post(p.http.URL+path, "application/json", strings.NewReader(body))
	must(t, err)
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	must(t, err)
	var e struct {
		Error struct{ Message, Type string }
	}
	if json.Unmarshal(b, &e) != nil && !strings.HasPrefix(string(b), "data: ") || r.StatusCode != 200 && (e.Error.Message == "" || e.Error.Type == "") {
		t.Errorf("%s: answer %q, want an error object", body, b)
	}
	return r.StatusCode, r.Header, e.Error.Message
}

func TestRefusals(t *testing.T) {
	p := newPeer(t, serve.Config{})
	const lm, chat = `{"model":"lm","prompt":"x",`, `{"model":"lm","messages":[{"role":"user","content":"x"}],`
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"completions", `{`, 400, "body"},
		{"completions", `[]`, 400, "body"},
		{"completions", `{"model":"lm","prompt":"x"} {}`, 400, "follow"},
		{"completions", `{"model":"no","prompt":"x"}`, 404, "no"},
		{"completions", `{"model":"plain","prompt":"x"}`, 404, "plain"},
		{"completions", `{"model":"lm"}`, 400, "prompt"},
		{"completions", `{"model":"lm","prompt":["a",5]}`, 400, "prompt"},
		{"completions", `{"model":"lm","prompt":["a",["b"]]}`, 400, "prompt"},
		{"completions", `{"model":"lm","prompt":["a",null]}`, 400, "prompt"},
		{"completions", `{"model":"lm","prompt":["a",""]}`, 400, "empty"},
		{"completions", `{"model":"lm","prompt":[]}`, 400, "empty"},
		{"completions", `{"model":"lm","prompt":["a",[1,2000]],"stream":true}`, 400, "2000"},
		{"completions", `{"model":"lm","prompt":[` + strings.Repeat(`"a",`, 128) + `"a"]}`, 400, "128"},
		{"completions", `{"model":"lm","prompt":["a","b"],"n":65}`, 400, "128"},
		{"completions", `{"model":"lm","prompt":["a",[1000000]],"echo":true}`, 400, "prompt"},
		{"completions", `{"model":"lm","prompt":{}}`, 400, "prompt"},
		{"completions", `{"model":"lm","prompt":[1,2000]}`, 400, "2000"},
		{"completions", `{"model":"lm","prompt":[-1]}`, 400, "-1"},
		{"completions", `{"model":"lm","prompt":"` + strings.Repeat("x", 40) + `"}`, 400, "32"},
		{"completions", lm + `"n":0}`, 400, "n:"},
		{"completions", lm + `"n":129}`, 400, "n:"},
		{"completions", lm + `"best_of":3}`, 400, "best_of"},
		{"completions", lm + `"suffix":"y"}`, 400, "suffix"},
		{"completions", lm + `"temperature":-1}`, 400, "temperature"},
		{"completions", lm + `"top_p":1.5}`, 400, "top_p: got 1.5"},
		{"completions", lm + `"max_tokens":-2}`, 400, "max_tokens"},
		{"chat/completions", chat + `"max_tokens":0}`, 400, "max_tokens"},
		{"chat/completions", chat + `"max_completion_tokens":-2}`, 400, "max_tokens"},
		{"completions", lm + `"max_tokens":1e99}`, 400, "max_tokens"},
		{"completions", lm + `"presence_penalty":2.5}`, 400, "presence_penalty"},
		{"completions", lm + `"frequency_penalty":-3}`, 400, "frequency_penalty"},
		{"completions", lm + `"logprobs":99}`, 400, "logprobs"},
		{"completions", lm + `"logit_bias":{"x":1}}`, 400, "logit_bias"},
		{"completions", lm + `"logit_bias":{"999":1}}`, 400, "999"},
		{"completions", lm + `"guided_choice":["a"],"logit_bias":{"97":-100}}`, 400, "without the tokens that a bias excludes"},
		{"completions", lm + `"guided_choice":["a"],"stop_token_ids":[97],"stream":true}`, 400, "that end a text"},
		{"completions", lm + `"stop":[` + strings.Repeat(`"a",`, 16) + `"a"]}`, 400, "stop"},
		{"completions", lm + `"stop":["a",null]}`, 400, "stop[1]: null"},
		{"completions", lm + `"stop_token_ids":[null]}`, 400, "stop_token_ids[0]: null"},
		{"completions", lm + `"guided_choice":["a",null]}`, 400, "guided_choice[1]: null"},
		{"completions", lm + `"logit_bias":{"5":null}}`, 400, "logit_bias.5: null"},
		{"completions", `{"model":"lm","prompt":[1,null]}`, 400, "prompt[1]: null"},
		{"completions", `{"model":"lm","prompt":["a",[1,null]]}`, 400, "prompt"},
		{"completions", lm + `"response_format":{"type":"xml"}}`, 400, "response_format"},
		{"completions", lm + `"stream_options":{"include_usage":true}}`, 400, "stream_options"},
		{"chat/completions", `{"model":"lm","messages":[]}`, 400, "messages"},
		{"chat/completions", `{"model":"lm","messages":[{"role":"wizard","content":"x"}]}`, 400, "wizard"},
		{"chat/completions", `{"model":"lm","messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, 400, "image_url"},
		{"chat/completions", `{"model":"lm","messages":[{"role":"user","content":[{"type":"text"}]}]}`, 400, "messages.content: part 0 without text"},
		{"chat/completions", `{"model":"lm","messages":[{"role":"user","content":[{"type":"text","text":5}]}]}`, 400,
			"messages.content.text: a number, want a string"},
		{"chat/completions", `{"model":"lm","messages":[{"role":"user","content":["a"]}]}`, 400, "messages.content: a string, want an object"},
		{"chat/completions", `{"model":"lm","messages":[{"role":"user","content":[null]}]}`, 400, `messages.content: part 0 of the type ""`},
		{"chat/completions", `{"model":"lm","messages":[{"role":"user","content":{}}]}`, 400, "messages.content: an object, want a string"},
		{"completions", lm + `"temperature":true}`, 400, "temperature: true or false, want a number"},
		{"completions", lm + `"logit_bias":[]}`, 400, "logit_bias: a list, want an object"},
		{"completions", lm + `"top_p":Infinity}`, 400, "body: invalid character"},
		{"chat/completions", chat + `"tools":[{}]}`, 400, "tools"},
		{"chat/completions", chat + `"modalities":["audio"]}`, 400, "modalities"},
		{"chat/completions", chat + `"top_logprobs":2}`, 400, "top_logprobs"},
		{"chat/completions", chat + `"user":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "at most"},
	} {
		status, _, message := post(t, p, "/v1/"+c.path, c.body)
		if status != c.status || !strings.Contains(message, c.want) {
			t.Errorf("%.100s: got %d %q, want %d and %q", c.body, status, message, c.status, c.want)
		}
	}
	for path, status := range map[string]int{"/v1/models/lm": 200, "/v1/models/plain": 404, "/v1/none": 404, "/v1/completions": 405} {
		r, err := http.Get(p.http.URL + path)
		must(t, err)
		r.Body.Close()
		if r.StatusCode != status {
			t.Errorf("GET %s: got %d, want %d", path, r.StatusCode, status)
		}
	}
}

// Accepted forms of fields.
func TestForms(t *testing.T) {
	p := newPeer(t, serve.Config{})
	for _, body := range []string{
		`{"model":"lm","prompt":["x"],"stop":null,"user":"u","suffix":""}`,
		`{"model":"lm","prompt":[[1,2,3]],"stop":"a","logprobs":0}`,
		`{"model":"lm","prompt":["x","y",[1,2]],"n":2,"best_of":2,"presence_penalty":-2,"frequency_penalty":2}`,
		`{"model":"lm","prompt":[[1,2],[3]],"n":2,"stream":true}`,
		`{"model":"lm","prompt":[1,2],"stop":["a","b"],"seed":-1,"echo":false,"logit_bias":{"5":-100}}`,
		`{"model":"lm","prompt":"x","echo":true,"top_k":3,"min_p":0.1,"repetition_penalty":1.2,"max_tokens":null}`,
	} {
		if status, _, message := post(t, p, "/v1/completions", body); status != 200 {
			t.Errorf("%s: got %d %q", body, status, message)
		}
	}
	for _, body := range []string{
		`{"model":"lm","messages":[{"role":"developer","content":"x"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}],"max_completion_tokens":3,"tools":[]}`,
		`{"model":"lm","messages":[{"role":"assistant","content":null},{"role":"user","content":"b"}],"max_tokens":3,"tools":null,"modalities":["text"],"unknown":null}`,
	} {
		if status, _, message := post(t, p, "/v1/chat/completions", body); status != 200 {
			t.Errorf("%s: got %d %q", body, status, message)
		}
	}
}

// Requests beyond the queue get 429, those that wait too long 504; a client that leaves ends its text.
func TestQueue(t *testing.T) {
	p := newPeer(t, serve.Config{Instances: 1, Queue: 1, Timeout: 200 * time.Millisecond})
	release, held := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- p.server.Model("lm").Use(context.Background(), func(_ context.Context, _ serve.Attachment, l *serve.Lease) error {
			l.Began()
			close(held)
			<-release
			return nil
		})
	}()
	<-held
	waiting := make(chan int, 1)
	go func() {
		status, _, _ := post(t, p, "/v1/completions", `{"model":"lm","prompt":"x"}`)
		waiting <- status
	}()
	await.True(t, "a request waits", func() bool { return p.server.Model("lm").Waiting() > 0 })
	if status, header, _ := post(t, p, "/v1/completions", `{"model":"lm","prompt":"x"}`); status != 429 || header.Get("Retry-After") == "" {
		t.Errorf("got %d, Retry-After %q, want 429 with one", status, header.Get("Retry-After"))
	}
	if status := <-waiting; status != 504 {
		t.Errorf("got %d, want 504", status)
	}
	close(release)
	must(t, <-ended)
	if status, _, _ := post(t, p, "/v1/completions", `{"model":"lm","prompt":"x"}`); status != 200 {
		t.Errorf("after that: got %d, want 200", status)
	}
}

// check compares a stream with its text.
func (p *peer) check(ctx context.Context, prompt, expected string) error {
	stream, err := p.client.CreateCompletionStream(ctx, client.CompletionRequest{Model: "lm", Prompt: prompt, MaxTokens: 10, Temperature: 1e-30})
	if err != nil {
		return err
	}
	defer stream.Close()
	var got bytes.Buffer
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		got.WriteString(chunk.Choices[0].Text)
	}
	if got.String() != expected {
		return fmt.Errorf("%q: got %q, want %q", prompt, got.String(), expected)
	}
	return nil
}

// A form that needs too much memory gets 413 if it would not fit alone, and else 429, as other requests without room do.
func TestFormWithoutRoom(t *testing.T) {
	p := newPeerWith(t, serve.Options{BusyBytes: 4 << 20}, serve.Config{}, openai.Config{})
	others := p.server.NewReservation()
	for _, c := range []struct {
		others int64 // bytes of other requests
		body   string
		status int
	}{
		{0, `{"model":"lm","prompt":"x","json_schema":{"type":"string","maxLength":19001}}`, 413},
		{0, `{"model":"lm","prompt":"x","stream":true,"regex":"(abcdefgh){1000}"}`, 413},
		{7 << 19, `{"model":"lm","prompt":"x","json_schema":{"type":"string","maxLength":5001}}`, 429},
		{7 << 19, `{"model":"lm","prompt":"x","stream":true,"regex":"(abcdefgh){500}"}`, 429},
	} {
		must(t, others.Grow(c.others))
		status, header, message := post(t, p, "/v1/completions", c.body)
		if status != c.status || (header.Get("Retry-After") != "") != (status == 429) {
			t.Errorf("%s: got %d %q, Retry-After %q, want %d", c.body, status, message, header.Get("Retry-After"), c.status)
		}
		others.Release()
	}
	if status, _, message := post(t, p, "/v1/completions", `{"model":"lm","prompt":"x","json_schema":{"const":1}}`); status != 200 {
		t.Errorf("a small form: %d %q", status, message)
	}
}
