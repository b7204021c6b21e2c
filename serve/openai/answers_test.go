package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai"
	"github.com/etrun-go/etrun/text"
)

// ask returns the status and the body of an answer.
func ask(t testing.TB, p *peer, method, path, body string) (int, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, p.http.URL+path, strings.NewReader(body))
	must(t, err)
	answer, err := http.DefaultClient.Do(r)
	must(t, err)
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	must(t, err)
	return answer.StatusCode, b
}

// required are the members that the published schema of the protocol requires, by the value of "object" or the place in
// it; those in nullable may be null.
var (
	required = map[string][]string{
		"chat.completion":       {"id", "object", "created", "model", "choices", "usage"},
		"chat.completion.chunk": {"id", "object", "created", "model", "choices"},
		"text_completion":       {"id", "object", "created", "model", "choices"},
		"model":                 {"id", "object", "created", "owned_by"},
		"list":                  {"object", "data"},
		"usage":                 {"prompt_tokens", "completion_tokens", "total_tokens"},
		"error":                 {"message", "type", "param", "code"},
		"message":               {"role", "content", "refusal"},
		"chat choice":           {"index", "message", "logprobs", "finish_reason"},
		"chunk choice":          {"index", "delta", "finish_reason"},
		"text choice":           {"index", "text", "logprobs", "finish_reason"},
		"chat logprobs":         {"content", "refusal"},
		"text logprobs":         {"tokens", "token_logprobs", "top_logprobs", "text_offset"},
		"token":                 {"token", "logprob", "bytes", "top_logprobs"},
		"candidate":             {"token", "logprob", "bytes"},
	}
	nullable = []string{"logprobs", "refusal", "param", "code", "finish_reason", "usage"}
)

// checkObject checks the required members of an object and of those inside.
func checkObject(t *testing.T, kind string, object map[string]any) {
	t.Helper()
	for _, name := range required[kind] {
		if value, ok := object[name]; !ok || value == nil && !slices.Contains(nullable, name) {
			t.Errorf("%s without %s: %v", kind, name, object)
		}
	}
	inside := map[string]string{"choices": map[string]string{"chat.completion": "chat choice", "chat.completion.chunk": "chunk choice",
		"text_completion": "text choice"}[kind], "usage": "usage", "message": "message", "error": "error", "data": "model",
		"logprobs": map[string]string{"chat choice": "chat logprobs", "chunk choice": "chat logprobs", "text choice": "text logprobs"}[kind]}
	if kind == "chat logprobs" {
		inside["content"] = "token"
	}
	if kind == "token" {
		inside["top_logprobs"] = "candidate"
	}
	for name, of := range inside {
		switch value := object[name].(type) {
		case map[string]any:
			checkObject(t, of, value)
		case []any:
			for _, x := range value {
				if o, ok := x.(map[string]any); ok {
					checkObject(t, of, o)
				}
			}
		}
	}
}

// checkAnswer checks an answer, or each event of a stream, and returns them.
func checkAnswer(t *testing.T, body []byte) (list []map[string]any) {
	t.Helper()
	for event := range bytes.SplitSeq(body, []byte("\n\n")) {
		event = bytes.TrimPrefix(event, []byte("data: "))
		if len(event) == 0 || string(event) == "[DONE]" {
			continue
		}
		var o map[string]any
		if err := json.Unmarshal(event, &o); err != nil {
			t.Fatalf("%q: %v", event, err)
		}
		kind, _ := o["object"].(string)
		checkObject(t, kind, o)
		list = append(list, o)
	}
	return list
}

// Every answer and every event has the members that the schema requires, for all combinations of the members that change
// its form.
func TestRequiredMembers(t *testing.T) {
	p := newPeer(t, serve.Config{})
	for _, kind := range []struct{ path, begin string }{
		{"/v1/completions", `{"model":"lm","prompt":"hello"`},
		{"/v1/chat/completions", `{"model":"lm","messages":[{"role":"user","content":"hi"}]`},
	} {
		logProbs := []string{"", `,"logprobs":true`, `,"logprobs":true,"top_logprobs":0`, `,"logprobs":true,"top_logprobs":3`,
			`,"logprobs":false`}
		if kind.path == "/v1/completions" {
			logProbs = []string{"", `,"logprobs":0`, `,"logprobs":2`}
		}
		for _, lp := range logProbs {
			for _, stream := range []string{"", `,"stream":true`, `,"stream":true,"stream_options":{"include_usage":true}`} {
				for _, n := range []string{"", `,"n":3`, `,"stop":"e"`} {
					body := kind.begin + `,"max_tokens":3,"seed":1` + lp + stream + n + "}"
					status, text := ask(t, p, "POST", kind.path, body)
					list := checkAnswer(t, text)
					if status != 200 || len(list) == 0 {
						t.Errorf("%s: %d %q", body, status, text)
					}
					for i, o := range list {
						_, given := o["usage"]
						if want := stream == "" || strings.Contains(stream, "usage"); given != want || given && (o["usage"] != nil) != (i == len(list)-1) {
							t.Errorf("%s: event %d has the usage %v (%v), want it: %v", body, i, o["usage"], given, want)
						}
					}
				}
			}
		}
	}
	for _, path := range []string{"/v1/models", "/v1/models/lm"} {
		_, text := ask(t, p, "GET", path, "")
		checkAnswer(t, text)
	}
}

// Every error has the form of the protocol, and the codes that clients know.
func TestErrorForm(t *testing.T) {
	p := newPeer(t, serve.Config{})
	long := strings.Repeat("word ", 50)
	for _, c := range []struct {
		method, path, body string
		status             int
		kind, param, code  string
	}{
		{"POST", "/v1/completions", `{"model":"lm","prompt":"` + long + `"}`, 400, "invalid_request_error", "prompt", "context_length_exceeded"},
		{"POST", "/v1/chat/completions", `{"model":"lm","messages":[{"role":"user","content":"` + long + `"}]}`, 400, "invalid_request_error",
			"messages", "context_length_exceeded"},
		{"POST", "/v1/chat/completions", `{"model":"lm","stream":true,"messages":[{"role":"user","content":"` + long + `"}]}`, 400,
			"invalid_request_error", "messages", "context_length_exceeded"},
		{"POST", "/v1/completions", `{"model":"lm","prompt":""}`, 400, "invalid_request_error", "prompt", ""},
		{"POST", "/v1/completions", `{"model":"lm"}`, 400, "invalid_request_error", "prompt", "missing_required_parameter"},
		{"POST", "/v1/completions", `{"model":"lm","prompt":"x","max_tokens":"3"}`, 400, "invalid_request_error", "max_tokens", ""},
		{"POST", "/v1/completions", `{"model":"lm","prompt":"x","temperature":-1}`, 400, "invalid_request_error", "temperature", ""},
		{"POST", "/v1/completions", `{"model":"lm","prompt":"x","top_p":2}`, 400, "invalid_request_error", "top_p", ""},
		{"POST", "/v1/completions", `{"model":"lm","prompt":"x","stop_token_ids":[9999]}`, 400, "invalid_request_error", "stop_token_ids", ""},
		{"POST", "/v1/completions", `{"model":"lm","prompt":"x","ebnf":"a"}`, 400, "invalid_request_error", "ebnf",
			"unsupported_parameter"},
		{"POST", "/v1/completions", `{"model":"lm","prompt":"x","temprature":1}`, 400, "invalid_request_error", "temprature",
			"unknown_parameter"},
		{"POST", "/v1/completions", `{"prompt":"x","max_tokens":3.5}`, 400, "invalid_request_error", "max_tokens", ""},
		{"POST", "/v1/completions", `{"model":"lm","prompt":"x","Max_Tokens":null}`, 400, "invalid_request_error", "Max_Tokens",
			"unknown_parameter"},
		{"POST", "/v1/chat/completions", `{"model":"lm","messages":[{"role":"user"}]}`, 400, "invalid_request_error", "messages[0].content",
			"missing_required_parameter"},
		{"POST", "/v1/chat/completions", `{"model":"lm","messages":[{"role":"user","content":"x"},{"role":"system","content":null}]}`, 400,
			"invalid_request_error", "messages[1].content", "missing_required_parameter"},
		{"POST", "/v1/chat/completions", `{"model":"lm","messages":[null]}`, 400, "invalid_request_error", "messages[0].role",
			"missing_required_parameter"},
		{"POST", "/v1/completions", `{"model":"no","prompt":"x"}`, 404, "invalid_request_error", "model", "model_not_found"},
		{"GET", "/v1/completions", "", 405, "invalid_request_error", "", "method_not_supported"},
		{"GET", "/v1/none", "", 404, "invalid_request_error", "", ""},
	} {
		status, text := ask(t, p, c.method, c.path, c.body)
		checkAnswer(t, text)
		var o struct {
			Error struct {
				Type        string
				Param, Code *string
			}
		}
		must(t, json.Unmarshal(text, &o))
		param, code := "", ""
		if o.Error.Param != nil {
			param = *o.Error.Param
		}
		if o.Error.Code != nil {
			code = *o.Error.Code
		}
		if status != c.status || o.Error.Type != c.kind || param != c.param || code != c.code {
			t.Errorf("%s %.80s: got %d, %s, want %d, %s, %q, %q", c.path, c.body, status, text, c.status, c.kind, c.param, c.code)
		}
	}
}

// failing opens the model with an operator that fails after a number of calls.
func failing(calls *atomic.Int64) func(context.Context) (*etrun.Program, error) {
	const name = "llama::update_cache.out"
	row, _, _, _ := etrun.DefaultOperators().Lookup(name)
	op := *row
	op.Func = func(c *kernels.Ctx, a kernels.Args) error {
		if calls.Add(-1) < 0 {
			return errors.New("planted")
		}
		return row.Func(c, a)
	}
	return func(ctx context.Context) (*etrun.Program, error) {
		return openWith(ctx, etrun.WithOperators(op))
	}
}

// What was generated before a run failed is answered, and the failure is the server's.
func TestTextBeforeAnError(t *testing.T) {
	var calls atomic.Int64
	calls.Store(1 << 40)
	p := newPeer(t, serve.Config{Open: failing(&calls)})
	expected := want(t, "hi|", text.Options{MaxTokens: 9})
	const chat = `{"model":"lm","messages":[{"role":"user","content":"hi"}],"max_tokens":9,"temperature":0`
	for steps := range int64(6) {
		calls.Store(4 + 4*steps) // four caches
		status, body := ask(t, p, "POST", "/v1/chat/completions", chat+`,"logprobs":true}`)
		var o struct {
			Error   *struct{ Type string }
			Choices []struct {
				Message  struct{ Content string }
				LogProbs struct{ Content []any }
				Finish   *string `json:"finish_reason"`
			}
		}
		must(t, json.Unmarshal(body, &o))
		checkAnswer(t, body)
		if status != 500 || o.Error == nil || o.Error.Type != "server_error" || len(o.Choices) != 1 || o.Choices[0].Finish != nil {
			t.Fatalf("after %d steps: got %d %s", steps, status, body)
		}
		if got := o.Choices[0]; !strings.HasPrefix(expected, got.Message.Content) || got.Message.Content == "" ||
			len(got.LogProbs.Content) <= int(steps) {
			t.Errorf("after %d steps: got %q and %d tokens, want the beginning of %q", steps, got.Message.Content, len(got.LogProbs.Content),
				expected)
		}
		calls.Store(4 + 4*steps)
		status, body = ask(t, p, "POST", "/v1/chat/completions", chat+`,"stream":true}`)
		streamed, last := "", map[string]any(nil)
		for _, last = range checkAnswer(t, body) {
			if list, ok := last["choices"].([]any); ok {
				delta := list[0].(map[string]any)["delta"].(map[string]any)
				s, _ := delta["content"].(string)
				streamed += s
			}
		}
		if status != 200 || streamed == "" || !strings.HasPrefix(expected, streamed) || last["error"] == nil {
			t.Errorf("after %d steps: streamed %d %q, want the beginning of %q and an error", steps, status, streamed, expected)
		}
	}
	calls.Store(0)
	if status, body := ask(t, p, "POST", "/v1/chat/completions", chat+"}"); status != 500 || !strings.Contains(string(body), "server_error") {
		t.Errorf("before any token: got %d %s", status, body)
	}
	calls.Store(1 << 40)
	if status, body := ask(t, p, "POST", "/v1/chat/completions", chat+"}"); status != 200 {
		t.Errorf("after that: got %d %s", status, body)
	}
}

// What a request can make the server hold has a limit: each number that a client chooses is refused or counted.
func TestAnswersAreBounded(t *testing.T) {
	const busy = 1 << 20
	p := newPeerLimits(t, serve.Options{BusyBytes: busy}, serve.Config{Open: open})
	grown := 0
	for _, n := range []int{1, 8, 64, 128} {
		for _, top := range []int{-1, 0, 5, 20} {
			for _, tokens := range []int{1, 10, math.MaxInt / 4} {
				for _, echo := range []bool{false, true} {
					lp := ""
					if top >= 0 {
						lp = fmt.Sprintf(`,"logprobs":%d`, top)
					}
					if top >= 0 && echo {
						continue
					}
					body := fmt.Sprintf(`{"model":"lm","prompt":"hello","n":%d,"max_tokens":%d,"echo":%v,"ignore_eos":true%s}`, n, tokens, echo, lp)
					status, text := ask(t, p, "POST", "/v1/completions", body)
					switch {
					case status == 200:
						grown = max(grown, len(text))
					case status != 400 || !strings.Contains(string(text), fmt.Sprint(busy/16)):
						t.Errorf("%s: got %d %.200s, want a refusal with the limit", body, status, text)
					}
					if n*min(tokens, 28)*(1+top)*32 > busy/16 && strings.Contains(string(text), "choices") {
						t.Errorf("%s: refused after texts were generated", body)
					}
					if most := min(tokens, 28); status == 400 && n*(200+most*(1+top)*60) < busy/32 || status == 200 && n*most*(1+top)*32 > busy/16 {
						t.Errorf("%s: got %d", body, status)
					}
				}
			}
		}
	}
	if grown > busy/16+busy/64 {
		t.Errorf("an answer has %d bytes, want at most %d", grown, busy/16)
	}
	big := `{"model":"lm","prompt":"` + strings.Repeat("x", busy/8) + `"}`
	if status, text := ask(t, p, "POST", "/v1/completions", big); status != 413 || !strings.Contains(string(text), fmt.Sprint(busy)) {
		t.Errorf("a body that takes more memory than there is when decoded: %d %.100s", status, text)
	}
	if status, text := ask(t, p, "POST", "/v1/completions", `{"model":"lm","prompt":"x"}`); status != 200 {
		t.Errorf("after that: %d %s", status, text)
	}
}

// A reply continues the last message.
func TestContinue(t *testing.T) {
	p := newPeer(t, serve.Config{})
	expected := want(t, "hi|well", text.Options{MaxTokens: 5})
	body := `{"model":"lm","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"well"}],"max_tokens":5,"temperature":0,
		"continue_final_message":true,"add_generation_prompt":false}`
	status, text := ask(t, p, "POST", "/v1/chat/completions", body)
	if !strings.Contains(string(text), fmt.Sprintf(`"content":%q`, expected)) && status == 200 {
		var o struct {
			Choices []struct{ Message struct{ Content string } }
		}
		must(t, json.Unmarshal(text, &o))
		if o.Choices[0].Message.Content != expected {
			t.Errorf("got %s, want %q", text, expected)
		}
	}
	for _, c := range []struct{ change, to, want string }{
		{`,"add_generation_prompt":false`, `,"add_generation_prompt":true`, "add_generation_prompt"},
		{`"continue_final_message":true`, `"continue_final_message":false`, "add_generation_prompt"},
		{`assistant`, `user`, "continue_final_message"},
		{`"max_tokens":5`, `"max_tokens":5,"chat_template_kwargs":{"enable_thinking":true}`, "enable_thinking"},
		{`"user"`, `"tool"`, "messages[0].tool_call_id"},
	} {
		if status, text := ask(t, p, "POST", "/v1/chat/completions", strings.Replace(body, c.change, c.to, 1)); status != 400 ||
			!strings.Contains(string(text), c.want) {
			t.Errorf("%s: got %d %s", c.to, status, text)
		}
	}
}

// Two names of a penalty are one, and tokens end a text.
func TestAliases(t *testing.T) {
	p := newPeer(t, serve.Config{})
	generated := func(members string) string {
		t.Helper()
		status, body := ask(t, p, "POST", "/v1/completions", `{"model":"lm","prompt":"hello","max_tokens":12,"temperature":0`+members+"}")
		var o struct{ Choices []struct{ Text string } }
		must(t, json.Unmarshal(body, &o))
		if status != 200 {
			t.Fatalf("%s: %d %s", members, status, body)
		}
		return o.Choices[0].Text
	}
	plain := generated("")
	penalized := want(t, "hello", text.Options{MaxTokens: 12, Sampling: text.Sampling{RepetitionPenalty: 3}})
	last := want(t, "hello", text.Options{MaxTokens: 12, Sampling: text.Sampling{RepetitionPenalty: 3, PenaltyWindow: 2}})
	for members, want := range map[string]string{
		`,"repetition_penalty":3`: penalized, `,"repeat_penalty":3`: penalized, `,"repeat_penalty":3,"repetition_penalty":3`: penalized,
		`,"repeat_penalty":3,"repeat_last_n":-1`: penalized, `,"repeat_penalty":3,"repeat_last_n":2`: last,
		`,"repeat_penalty":3,"repeat_last_n":0`: plain, `,"repeat_penalty":null`: plain,
	} {
		if got := generated(members); got != want {
			t.Errorf("%s: got %q, want %q", members, got, want)
		}
	}
	ids := want(t, "hello", text.Options{MaxTokens: 1})
	if id, ok := bytesTokenizer(t).ID(ids); ok {
		if got := generated(fmt.Sprintf(`,"stop_token_ids":[%d]`, id)); got != "" {
			t.Errorf("got %q, want a text that ends at its first token", got)
		}
	}
}

// A server whose texts take long is tested by their progress: a test does not wait for the queue.
func TestTryDuringLongTexts(t *testing.T) {
	p := newPeer(t, serve.Config{Instances: 1, Queue: 8})
	m := p.server.Model("lm")
	stop, running := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- m.Use(context.Background(), func(_ context.Context, _ serve.Attachment, l *serve.Lease) error {
			l.Began()
			close(running)
			for {
				select {
				case <-stop:
					return nil
				case <-time.After(10 * time.Millisecond):
					l.Began()
				}
			}
		})
	}()
	<-running
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := m.Try(ctx); err != nil {
		t.Errorf("a text that continues: %v", err)
	}
	close(stop)
	must(t, <-ended)
	must(t, m.Try(ctx))
}

// newPeerLimits is newPeer with limits of the server.
func newPeerLimits(t testing.TB, o serve.Options, c serve.Config) *peer {
	t.Helper()
	return newPeerWith(t, o, c, openai.Config{Sessions: 4})
}
