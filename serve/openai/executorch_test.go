package openai_test

import (
	"encoding/json"
	"fmt"
	"maps"
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
	usage                 tokenUsage
	chunks, usages        int
}

// tokenUsage counts tokens.
type tokenUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
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
			Usage *tokenUsage
			Error json.RawMessage
		}
		must(t, json.Unmarshal([]byte(event), &c))
		s.object, s.failed = s.object && c.Object == "chat.completion.chunk", s.failed || c.Error != nil
		s.chunks++
		if c.Usage != nil {
			s.usage, s.usages = *c.Usage, s.usages+1
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
			Usage tokenUsage
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
		if u.Prompt < 1 || u.Completion < 1 || u.Total != u.Prompt+u.Completion {
			t.Errorf("%+v", u)
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

// endpointBodies are requests with objects of all kinds.
var endpointBodies = map[string][]string{
	asCompletion: {`{"prompt":"x","max_tokens":1,"stream":true,"stream_options":{"include_usage":true}}`,
		`{"prompt":"x","max_tokens":9,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}}}`},
	asChat: {`{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"max_tokens":1}`,
		`{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[{"id":"i","type":"function",` +
			`"function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"i","content":"r"}],"max_tokens":32,` +
			`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"f"}}}`},
	"/tokenize":   {`{"prompt":"x"}`, `{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`},
	"/detokenize": {`{"tokens":[1,2]}`},
}

// objectsIn returns the objects of a value, other than schemas, with their paths.
func objectsIn(path string, value any) (list map[string]map[string]any) {
	list = make(map[string]map[string]any)
	switch v := value.(type) {
	case []any:
		for i, x := range v {
			maps.Copy(list, objectsIn(fmt.Sprintf("%s[%d]", path, i), x))
		}
	case map[string]any:
		list[path] = v
		for key, x := range v {
			if key != "schema" {
				maps.Copy(list, objectsIn(strings.TrimPrefix(path+"."+key, "."), x))
			}
		}
	}
	return list
}

// At every endpoint an unknown member of any object, at any depth, is refused with its path.
func TestUnknownMembersAnywhere(t *testing.T) {
	p := newChatPeer(t, `{% if tools %}{# "parameters" #}{% endif %}?`)
	for path, bodies := range endpointBodies {
		for _, body := range bodies {
			answers(t, p, path, body, 200)
			var root any
			must(t, json.Unmarshal([]byte(body), &root))
			for at, object := range objectsIn("", root) {
				object["colour"] = 1
				text, err := json.Marshal(root)
				must(t, err)
				refusal(t, answers(t, p, path, string(text), 400), strings.TrimPrefix(at+".colour", "."), "unknown_parameter")
				delete(object, "colour")
			}
		}
	}
}
