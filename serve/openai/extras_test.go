package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/serve"
)

// extras are members that change no answer, with values as clients send them, by path.
var extras = map[string][]string{
	asChat: {`"store":true`, `"verbosity":"low"`, `"verbosity":"high"`, `"client_metadata":{"a":{"b":[1]}}`, `"reasoning_effort":"minimal"`,
		`"reasoning_effort":"xhigh"`, `"service_tier":"priority"`, `"service_tier":"flex"`, `"safety_identifier":"x"`, `"prompt_cache_key":"x"`,
		`"prompt_cache_retention":"24h"`, `"prompt_cache_options":{"mode":"implicit","ttl":"30m"}`, `"metadata":{"a":"b"}`, `"user":"x"`,
		`"prediction":{"type":"content","content":"x"}`, `"modalities":["text"]`, `"functions":[]`, `"stream_options":null`},
	asCompletion: {`"user":"x"`, `"store":true`, `"metadata":{"a":"b"}`, `"suffix":null`, `"best_of":1`},
	asResponse: {`"store":true`, `"include":["reasoning.encrypted_content","file_search_call.results"]`, `"client_metadata":{"x-a":"{}"}`,
		`"truncation":"auto"`, `"truncation":"disabled"`, `"background":false`, `"reasoning":{"effort":"high","summary":"detailed","context":"auto"}`,
		`"reasoning":{"summary":"auto","generate_summary":"concise","mode":"pro"}`, `"text":{"verbosity":"high"}`, `"service_tier":"flex"`,
		`"safety_identifier":"x"`, `"prompt_cache_key":"x"`, `"prompt_cache_retention":"24h"`, `"prompt_cache_options":{"mode":"explicit"}`,
		`"user":"x"`, `"metadata":{"a":"b"}`, `"max_tool_calls":3`, `"top_logprobs":0`, `"context_management":[]`, `"conversation":null`},
}

// textOf returns the text of an answer of any path, and its status.
func textOfAnswer(t *testing.T, data []byte) string {
	t.Helper()
	var a struct {
		Choices []struct {
			Text    string
			Message struct{ Content string }
			Finish  string `json:"finish_reason"`
		}
		Output []responseItem
		Status string
	}
	must(t, json.Unmarshal(data, &a))
	text := a.Status
	for _, c := range a.Choices {
		text += c.Text + c.Message.Content + "|" + c.Finish
	}
	for _, x := range a.Output {
		text += fmt.Sprint(x.Type, x.Content)
	}
	return text
}

// What asks for extras is answered as if it did not.
func TestExtras(t *testing.T) {
	p := newPeer(t, serve.Config{})
	for path, list := range extras {
		body := map[string]string{asChat: `{"messages":[{"role":"user","content":"hello"}],"max_tokens":6,"seed":7`, asCompletion: `{"prompt":"hello","max_tokens":6,"seed":7`,
			asResponse: `{"input":"hello","max_output_tokens":6,"temperature":0`}[path]
		ask(t, p, "POST", path, body+"}")
		_, data := ask(t, p, "POST", path, body+"}")
		want := textOfAnswer(t, data)
		for _, member := range list {
			status, data := ask(t, p, "POST", path, body+","+member+"}")
			if got := textOfAnswer(t, data); status != http.StatusOK || got != want || len(want) < 6 {
				t.Errorf("%s %s: %d %s, want 200 and %s", path, member, status, data, want)
			}
		}
		status, data := ask(t, p, "POST", path, body+`,"stream":true,"stream_options":{"include_obfuscation":true}}`)
		if status != http.StatusOK || !strings.Contains(string(data), "data: ") {
			t.Errorf("%s: padded events: %d %s", path, status, data)
		}
	}
}

// Tools that the server does not run are named in the answer, and the template has only the others.
func TestUnofferedTools(t *testing.T) {
	p := newChatPeer(t, `{% for t in tools or [] %}<tool_call>{{ t.function.name }}{% endfor %}?`)
	for _, c := range []struct {
		path, tools string
		header      string
		tokens      int // of the prompt
	}{
		{asChat, `{"type":"function","function":{"name":"f"}}`, "", len("<tool_call>f?")},
		{asChat, `{"type":"web_search","search_context_size":"low"},{"type":"function","function":{"name":"f"}},{"type":"web_search"}`, "web_search",
			len("<tool_call>f?")},
		{asChat, `{"type":"a\r\nb: c"},{"type":"file_search","x":[{"y":null}]}`, `a\r\nb: c, file_search`, 1},
		{asChat, `{"type":"custom","custom":{"name":"g"}},{"type":"mcp"}`, "mcp", len("<tool_call>g?")},
		{asResponse, `{"type":"web_search","external_web_access":true},{"type":"namespace","name":"n","description":"d","tools":[{"type":"function","name":"f"}]},` +
			`{"type":"function","name":"f","strict":false,"parameters":{},"defer_loading":false}`, "web_search, namespace", len("<tool_call>f?")},
		{asResponse, `{"type":"image_generation","background":"auto","strict":"odd"},{"type":"local_shell"},{"type":"code_interpreter","container":{"type":"auto"}},` +
			`{"type":"computer_use_preview","display_width":1},{"type":"file_search","vector_store_ids":["x"]}`,
			"image_generation, local_shell, code_interpreter, computer_use_preview, file_search", 1},
	} {
		for _, end := range []string{"}", `,"stream":true}`} {
			body := map[string]string{asChat: `{"messages":[{"role":"user","content":"x"}],"max_tokens":1`, asResponse: `{"input":"x","max_output_tokens":1`}[c.path]
			r, err := http.Post(p.http.URL+c.path, "application/json", strings.NewReader(body+`,"tools":[`+c.tools+`]`+end))
			must(t, err)
			must(t, r.Body.Close())
			if got := r.Header.Get("Etrun-Tools-Not-Offered"); r.StatusCode != http.StatusOK || got != c.header {
				t.Errorf("%s %s: %d, named %q, want %q", c.path, c.tools, r.StatusCode, got, c.header)
			}
		}
		_, data := ask(t, p, "POST", c.path, map[string]string{asChat: `{"messages":[{"role":"user","content":"x"}],"max_tokens":1`,
			asResponse: `{"input":"x","max_output_tokens":1`}[c.path]+`,"tools":[`+c.tools+`]}`)
		var a struct {
			Usage struct {
				Prompt int `json:"prompt_tokens"`
				Input  int `json:"input_tokens"`
			}
			Tools json.RawMessage
		}
		must(t, json.Unmarshal(data, &a))
		if a.Usage.Prompt+a.Usage.Input != c.tokens {
			t.Errorf("%s %s: a prompt of %d tokens, want %d", c.path, c.tools, a.Usage.Prompt+a.Usage.Input, c.tokens)
		}
		if c.path == asResponse && c.header != "" && !strings.HasPrefix(string(a.Tools), "["+c.tools[:20]) {
			t.Errorf("%s: the response repeats %s", c.tools, a.Tools)
		}
	}
}

// A custom tool is called with a text of its grammar, whatever the model: in chats and responses, as one answer and as a stream. What
// was answered can be sent back.
func TestCustomTools(t *testing.T) {
	p := newChatPeer(t, `{% if tools %}{# func_name1( #}{% endif %}?`) // whose calls are short
	for _, c := range []struct{ syntax, definition, pattern string }{
		{"regex", `[a-c]{2}\t"é\\`, "^[a-c]{2}\t\"é\\\\$"},
		{"lark", "start: line+ \"end\"\nline: (\"x\" | \"\\\"\") LF\n%import common.LF", "^([x\"]\n)+end$"},
	} {
		definition, _ := json.Marshal(c.definition)
		want := regexp.MustCompile(c.pattern)
		chat := fmt.Sprintf(`{"seed":3,"messages":[{"role":"user","content":"x"}],"tool_choice":{"type":"custom","custom":{"name":"f"}},"tools":[{"type":"custom","custom":`+
			`{"name":"f","description":"d","format":{"type":"grammar","grammar":{"syntax":%q,"definition":%s}}}}]`, c.syntax, definition)
		status, data := ask(t, p, "POST", asChat, chat+"}")
		var a struct {
			Choices []struct{ Message json.RawMessage }
		}
		must(t, json.Unmarshal(data, &a))
		if status != http.StatusOK {
			t.Fatalf("%s: %s", c.definition, data)
		}
		var m customMessage
		must(t, json.Unmarshal(a.Choices[0].Message, &m))
		if len(m.Calls) != 1 || m.Calls[0].Type != "custom" || m.Calls[0].Custom.Name != "f" || !want.MatchString(m.Calls[0].Custom.Input) ||
			strings.Contains(string(data), `"function"`) {
			t.Errorf("%s: %s", c.definition, data)
		}
		_, data = ask(t, p, "POST", asChat, chat+`,"stream":true}`)
		input := ""
		for _, raw := range chunksOf(t, data) {
			for _, call := range raw.Choices[0].Delta.Calls {
				input += call.Custom.Input
			}
		}
		if input != m.Calls[0].Custom.Input {
			t.Errorf("%s: streamed %q, want %q", c.definition, input, m.Calls[0].Custom.Input)
		}
		back := fmt.Sprintf(`{"max_tokens":1,"messages":[{"role":"user","content":"x"},%s,{"role":"tool","tool_call_id":%q,"content":"y"}]}`, a.Choices[0].Message, m.Calls[0].ID)
		if status, data := ask(t, p, "POST", asChat, back); status != http.StatusOK {
			t.Errorf("%s: sent back: %s", c.definition, data)
		}
		checkCustomResponse(t, p, fmt.Sprintf(`{"input":"x","temperature":0,"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"custom","name":"f"}]},`+
			`"parallel_tool_calls":false,"tools":[{"type":"function","name":"g"},{"type":"custom","name":"f","format":{"type":"grammar","syntax":%q,"definition":%s}}]`,
			c.syntax, definition), want)
	}
}

// customMessage is a message, or a part of one, with calls of custom tools.
type customMessage struct {
	Calls []struct {
		ID, Type string
		Custom   struct{ Name, Input string }
	} `json:"tool_calls"`
}

// customChunk is an event of a chat.
type customChunk struct {
	Choices []struct{ Delta customMessage }
}

func chunksOf(t *testing.T, data []byte) (list []customChunk) {
	t.Helper()
	for event := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n\n") {
		if event == "data: [DONE]" {
			return list
		}
		list = append(list, customChunk{})
		must(t, json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &list[len(list)-1]))
	}
	t.Fatalf("the stream does not end: %s", data)
	return nil
}

// checkCustomResponse checks the only call of a response.
func checkCustomResponse(t *testing.T, p *peer, body string, want *regexp.Regexp) {
	t.Helper()
	type custom struct {
		Output []struct {
			Type, Name, Status, Input string
			CallID                    string `json:"call_id"`
		}
	}
	var r custom
	status, data := ask(t, p, "POST", asResponse, body+"}")
	must(t, json.Unmarshal(data, &r))
	if status != http.StatusOK || len(r.Output) != 1 || r.Output[0].Type != "custom_tool_call" || r.Output[0].Name != "f" ||
		r.Output[0].CallID == "" || !want.MatchString(r.Output[0].Input) {
		t.Fatalf("%s: %s", body, data)
	}
	_, data = ask(t, p, "POST", asResponse, body+`,"stream":true}`)
	deltas := ""
	for event := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n\n") {
		_, object, _ := strings.Cut(event, "\ndata: ")
		var e struct{ Type, Delta, Input string }
		must(t, json.Unmarshal([]byte(object), &e))
		switch e.Type {
		case "response.custom_tool_call_input.delta":
			deltas += e.Delta
		case "response.custom_tool_call_input.done":
			if e.Input != deltas || deltas != r.Output[0].Input {
				t.Errorf("%s: parts %q, done %q, want %q", body, deltas, e.Input, r.Output[0].Input)
			}
			deltas = "done"
		}
	}
	if deltas != "done" {
		t.Errorf("%s: no end of the input: %s", body, data)
	}
	var items struct{ Output []json.RawMessage }
	_, data = ask(t, p, "POST", asResponse, body+"}")
	must(t, json.Unmarshal(data, &items))
	back := fmt.Sprintf(`{"max_output_tokens":1,"input":[{"role":"user","content":"x"},%s,{"type":"custom_tool_call_output","call_id":"c","output":"y"}]}`, items.Output[0])
	if status, data := ask(t, p, "POST", asResponse, back); status != http.StatusOK {
		t.Errorf("%s: sent back: %s", back, data)
	}
}

// Whatever a model wrote as arguments comes back into its prompt as it is.
func TestBrokenArguments(t *testing.T) {
	p := newChatPeer(t, `{% if tools %}{# <tool_call> #}{% endif %}{% for m in messages %}{{ m.content }}{{ m.reasoning_content }}{% for c in m.tool_calls or [] %}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}?`)
	for _, args := range []string{`{}`, `{"a": 1}`, `{"a": "b`, `[1, 2`, `[]`, `null`, `"x"`, `17`, `ls -l`, `{"a"}}`, "{\"a\": \"\n\"}", `{"a": "\ud8`, `é`} {
		quoted, _ := json.Marshal(args)
		want := args // a text of JSON is quoted in the prompt
		if !json.Valid([]byte(args)) || args[0] != '{' {
			want = strings.NewReplacer(`\u003c`, "<").Replace(string(quoted))
		}
		chat := fmt.Sprintf(`{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":`+
			`{"name":"f","arguments":%s}}]},{"role":"tool","tool_call_id":"c","content":"y"}]`, quoted)
		status, data := ask(t, p, "POST", "/tokenize", chat+"}")
		var tokens struct{ Tokens []int }
		must(t, json.Unmarshal(data, &tokens))
		got := make([]byte, len(tokens.Tokens))
		for i, id := range tokens.Tokens {
			got[i] = byte(id)
		}
		if status != http.StatusOK || string(got) != "x"+want+"y?" {
			t.Errorf("%s: the prompt %q, want %q", args, got, "x"+want+"y?")
		}
		items := fmt.Sprintf(`{"max_output_tokens":1,"input":[{"role":"user","content":"x"},{"type":"function_call","call_id":"c","name":"f","arguments":%s,"status":"incomplete"},`+
			`{"type":"function_call_output","call_id":"c","output":"y"}]}`, quoted)
		if status, data := ask(t, p, "POST", asResponse, items); status != http.StatusOK {
			t.Errorf("%s in a response: %s", args, data)
		}
	}
	for items, prompt := range map[string]string{ // replies that ended within their thoughts
		`[{"role":"user","content":"x"},{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}],"status":"incomplete"},{"role":"user","content":"x"}]`: "xhmx?",
		`[{"role":"user","content":"x"},{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}]`:                                                     "xhm?",
	} {
		status, data := ask(t, p, "POST", asResponse, `{"max_output_tokens":1,"input":`+items+`}`)
		var r responseObject
		must(t, json.Unmarshal(data, &r))
		if status != http.StatusOK || r.Usage.Input != len(prompt) {
			t.Errorf("%s: %d %s", items, status, data)
		}
	}
}
