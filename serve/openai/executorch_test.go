package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/etrun-go/etrun/serve"
)

// streamed is what a client puts together of a stream.
type streamed struct {
	role, content, finish string
	done, failed, object  bool
	usage                 map[string]int
	chunks, usages        int
}

// stream sends a chat and reads its events.
func stream(t *testing.T, p *peer, body string) (s streamed) {
	t.Helper()
	status, data := ask(t, p, "POST", asChat, body)
	if status != http.StatusOK {
		t.Fatalf("%s: %d %s", body, status, data)
	}
	s.object = true
	for line := range strings.Lines(string(data)) {
		event, ok := strings.CutPrefix(strings.TrimSpace(line), "data:")
		if event = strings.TrimSpace(event); !ok || s.done {
			continue
		}
		if s.done = event == "[DONE]"; s.done {
			continue
		}
		var c struct {
			Object  string
			Choices []struct {
				Delta  struct{ Role, Content string }
				Finish string `json:"finish_reason"`
			}
			Usage map[string]int
			Error json.RawMessage
		}
		must(t, json.Unmarshal([]byte(event), &c))
		s.object, s.failed = s.object && c.Object == "chat.completion.chunk", s.failed || c.Error != nil
		s.chunks++
		if c.Usage != nil {
			s.usage, s.usages = c.Usage, s.usages+1
		}
		for _, x := range c.Choices {
			s.role, s.content, s.finish = s.role+x.Delta.Role, s.content+x.Delta.Content, s.finish+x.Finish
		}
	}
	return s
}

// chatOf is a chat with a message and other members.
func chatOf(message, members string) string {
	text, _ := json.Marshal(message) // cannot fail
	return fmt.Sprintf(`{"model":"lm","messages":[{"role":"user","content":%s}]%s}`, text, members)
}

// executorchContract has the cases of the contract that ExecuTorch's example server keeps (examples/llm_server). Invalid requests have
// the status 400 here, as at OpenAI, and 422 there.
var executorchContract = map[string]func(t *testing.T, p *peer){
	"models": func(t *testing.T, p *peer) {
		var got struct {
			Object string
			Data   []struct{ ID, Object string }
		}
		status, data := ask(t, p, "GET", "/v1/models", "")
		if must(t, json.Unmarshal(data, &got)); status != 200 || got.Object != "list" || got.Data[0].ID != "lm" || got.Data[0].Object != "model" {
			t.Errorf("%d %s", status, data)
		}
	},
	"a whole answer": func(t *testing.T, p *peer) {
		var got struct {
			Object  string
			Choices []struct {
				Message struct {
					Role    string
					Content *string
				}
				Finish *string `json:"finish_reason"`
			}
			Usage struct {
				Prompt     int `json:"prompt_tokens"`
				Completion int `json:"completion_tokens"`
				Total      int `json:"total_tokens"`
			}
		}
		_, data := ask(t, p, "POST", asChat, chatOf("Hello", `,"max_tokens":16,"temperature":0.0`))
		must(t, json.Unmarshal(data, &got))
		c, u := got.Choices[0], got.Usage
		if got.Object != "chat.completion" || c.Message.Role != "assistant" || c.Message.Content == nil || c.Finish == nil ||
			u.Prompt < 1 || u.Completion < 1 || u.Total != u.Prompt+u.Completion {
			t.Errorf("%s", data)
		}
	},
	"a stream": func(t *testing.T, p *peer) {
		if s := stream(t, p, chatOf("Count", `,"max_tokens":16,"stream":true`)); s.role != "assistant" || s.content == "" || !s.done || !s.object ||
			s.finish == "" || s.usages != 0 {
			t.Errorf("%+v", s)
		}
	},
	"characters of several bytes": func(t *testing.T, p *peer) {
		s := stream(t, p, chatOf("你好 🌍 é", `,"max_tokens":12,"temperature":2,"seed":7,"stream":true`))
		if s.content == "" || !utf8.ValidString(s.content) || !s.done || s.failed {
			t.Errorf("%+v", s)
		}
	},
	"the usage in a stream": func(t *testing.T, p *peer) {
		u := stream(t, p, chatOf("Hi", `,"max_tokens":6,"stream":true,"stream_options":{"include_usage":true}`)).usage
		if u["prompt_tokens"] < 1 || u["completion_tokens"] < 1 || u["total_tokens"] != u["prompt_tokens"]+u["completion_tokens"] {
			t.Errorf("%v", u)
		}
	},
	"calls of tools": func(t *testing.T, _ *peer) { testDemandedCalls(t) },
	"tools": func(t *testing.T, _ *peer) {
		p := newChatPeer(t, "{% if tools %}{# <tool_call> #}{% endif %}?")
		answers(t, p, asChat, chatOf("hi", `,"max_tokens":4,"tools":[{"type":"function","function":{"name":"f","parameters":{}}}]`), 200)
	},
	"a prompt that is too long": func(t *testing.T, p *peer) {
		for _, members := range []string{"", `,"stream":true`} {
			refusal(t, answers(t, p, asChat, chatOf(strings.Repeat("word ", 4000), members), 400), "messages", "context_length_exceeded")
		}
	},
	"an unknown model": func(t *testing.T, p *peer) {
		refusal(t, answers(t, p, asChat, `{"model":"other","messages":[{"role":"user","content":"hi"}]}`, 404), "model", "model_not_found")
	},
	"sampling": func(t *testing.T, p *peer) { // the same seed and settings are the same text
		members := `,"max_tokens":7,"temperature":0.9,"top_p":0.8,"top_k":32,"seed":123,"stream":true`
		if a, b := stream(t, p, chatOf("hi", members)), stream(t, p, chatOf("hi", members)); a.content != b.content || a.finish != "length" {
			t.Errorf("%+v and %+v", a, b)
		}
	},
	"invalid requests": func(t *testing.T, p *peer) {
		for body, param := range map[string]string{
			`{"model":"lm"}`: "messages", `{"model":"lm","messages":"none"}`: "messages", chatOf("hi", `,"temperature":"hot"`): "temperature",
			chatOf("hi", `,"stream":"maybe"`): "stream", `{"model":"lm","messages":[{"content":"no role"}]}`: "messages[0].role",
		} {
			e := answers(t, p, asChat, body, 400)[0].Error
			if e.Param == nil || *e.Param != param || e.Type != "invalid_request_error" {
				t.Errorf("%s: %+v", body, e)
			}
		}
	},
}

func TestExecuTorchContract(t *testing.T) {
	p := newPeer(t, serve.Config{})
	for name, test := range executorchContract {
		t.Run(name, func(t *testing.T) { test(t, p) })
	}
}
