package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai"
	"github.com/etrun-go/etrun/text"
)

// called is an answer, or an event, with what belongs to tools and thoughts.
type called struct {
	Choices []struct {
		Message, Delta struct {
			Content   *string
			Reasoning *string `json:"reasoning_content"`
			Calls     []struct {
				Index    *int
				ID, Type string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		Finish *string `json:"finish_reason"`
	}
}

// jinja is a template with a place for tools, in few tokens: the test model has 256 positions.
func newChatPeer(t *testing.T, source string) *peer {
	t.Helper()
	tmpl, err := text.NewJinjaTemplate("own", source, "", "")
	must(t, err)
	return newPeerWith(t, serve.Options{}, serve.Config{}, openai.Config{Sessions: 2, Template: tmpl})
}

const oneTool = `,"tools":[{"type":"function","function":{"name":"f"}}]`

// Calls that a request demands come in the form of the protocol, as one answer and as a stream, whatever the model.
func testDemandedCalls(t *testing.T) {
	p := newChatPeer(t, `{% if tools %}{# "parameters" #}{% endif %}?`)
	for seed := range 4 {
		for _, choice := range []string{`"required"`, `{"type":"function","function":{"name":"f"}}`} {
			body := fmt.Sprintf(`{"messages":[{"role":"user","content":"x"}],"seed":%d,"tool_choice":%s%s}`, seed, choice, oneTool)
			status, data := ask(t, p, "POST", asChat, body)
			var got called
			if status != http.StatusOK || json.Unmarshal(data, &got) != nil {
				t.Fatalf("%d %s", status, data)
			}
			m := got.Choices[0].Message
			if len(m.Calls) != 1 || *got.Choices[0].Finish != "tool_calls" || m.Content != nil || m.Calls[0].Function.Name != "f" ||
				m.Calls[0].ID == "" || strings.Join(strings.Fields(m.Calls[0].Function.Arguments), "") != "{}" || m.Calls[0].Index != nil {
				t.Errorf("seed %d: %s", seed, data)
			}
			status, data = ask(t, p, "POST", asChat, strings.TrimSuffix(body, "}")+`,"stream":true}`)
			calls, finish, args := 0, "", ""
			for event := range strings.SplitSeq(string(data), "\n\n") {
				var part called
				if json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &part) != nil || len(part.Choices) == 0 {
					continue
				}
				for _, c := range part.Choices[0].Delta.Calls {
					if c.ID != "" {
						calls++
					}
					if c.Index == nil || *c.Index != 0 || calls != 1 || (c.ID != "") != (c.Type == "function" && c.Function.Name == "f") {
						t.Errorf("a part of a call: %s", event)
					}
					args += c.Function.Arguments
				}
				if text := part.Choices[0].Delta.Content; text != nil && *text != "" {
					t.Errorf("text of a call: %s", event)
				}
				if f := part.Choices[0].Finish; f != nil {
					finish = *f
				}
			}
			if status != http.StatusOK || calls != 1 || finish != "tool_calls" || args != m.Calls[0].Function.Arguments {
				t.Errorf("%d calls, finish %q, arguments %q, want %q: %s", calls, finish, args, m.Calls[0].Function.Arguments, data)
			}
		}
	}
}

// Answers have the form of their schema, whatever the model and the number of tokens.
func TestFormats(t *testing.T) {
	p := newPeer(t, serve.Config{})
	for _, format := range []string{
		`"response_format":{"type":"json_object"}`, `"guided_json":{"type":"object"}`, `"json_schema":{"type":"object"}`,
		`"response_format":{"type":"json_object","schema":{"type":"object"}}`,
		`"response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":{"type":"object","additionalProperties":{"type":"null"}}}}`,
	} {
		for most := 2; most < 20; most += 3 {
			for _, path := range []string{asChat, asCompletion} {
				prompt := `"prompt":"x"`
				if path == asChat {
					prompt = `"messages":[{"role":"user","content":"x"}]`
				}
				status, data := ask(t, p, "POST", path, fmt.Sprintf(`{%s,"seed":%d,"max_tokens":%d,%s}`, prompt, most, most, format))
				var got struct {
					Choices []struct {
						Text    string
						Message struct{ Content string }
					}
				}
				if status != http.StatusOK || json.Unmarshal(data, &got) != nil {
					t.Fatalf("%s: %d %s", format, status, data)
				}
				if s := got.Choices[0].Text + got.Choices[0].Message.Content; !json.Valid([]byte(s)) || strings.TrimSpace(s)[0] != '{' {
					t.Errorf("%s, %d tokens: %q", format, most, s)
				}
			}
		}
	}
}

// Texts have the form of a regular expression, of a grammar, or are one of some.
func TestOtherFormats(t *testing.T) {
	p := newPeer(t, serve.Config{})
	for format, want := range map[string]string{
		`"guided_regex":"[a-c]{2}-[0-9]+"`: `^[a-c]{2}-[0-9]+$`, `"regex":"(yes|no)é?"`: `^(yes|no)é?$`,
		`"guided_choice":["red","green","blue"]`: `^(red|green|blue)$`, `"structured_outputs":{"choice":["red","green"]}`: `^(red|green)$`,
		`"structured_outputs":{"regex":"a{2,3}"}`: `^a{2,3}$`, `"structured_outputs":{"json":{"type":"boolean"}}`: `^ ?(true|false)$`, `"grammar":"root ::= \"<\" [^>]{1,3} \">\""`: `(?s)^<[^>]{1,3}>$`,
	} {
		for seed := range 8 {
			c := answers(t, p, asCompletion, fmt.Sprintf(`{"prompt":"x","seed":%d,"max_tokens":12,%s}`, seed, format), 200)[0].Choices[0]
			if !regexp.MustCompile(want).MatchString(c.Text) {
				t.Errorf("%s: %q", format, c.Text)
			}
		}
	}
}

// Past calls, results, thoughts and names are in the prompt; values are those of the template.
func TestConversations(t *testing.T) {
	p := newChatPeer(t, `{% for m in messages %}{{ m.role[0] }}{{ m.name }}{{ m.content }}{{ m.reasoning_content }}`+
		`{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments.n }}{% endfor %}{{ m.tool_call_id }}{% endfor %}`+
		`{{ enable_thinking }}{{ tone }}{% if tools %}{{ tools[0].function.name }}{% endif %}`)
	body := `{"messages":[{"role":"user","name":"Al","content":"q"},{"role":"assistant","content":null,"reasoning_content":"why","tool_calls":[{"id":"i","type":"function",` +
		`"function":{"name":"f","arguments":"{\"n\": 7}"}}]},{"role":"tool","tool_call_id":"i","content":"r"}],` +
		`"chat_template_kwargs":{"enable_thinking":true,"tone":"low"}` + oneTool + `}`
	status, data := ask(t, p, "POST", "/tokenize", body)
	var got struct{ Tokens []int }
	if status != http.StatusOK || json.Unmarshal(data, &got) != nil {
		t.Fatalf("%d %s", status, data)
	}
	b := make([]byte, len(got.Tokens))
	for i, id := range got.Tokens {
		b[i] = byte(id)
	}
	if want := "uAlqawhyf7triTruelowf"; string(b) != want {
		t.Errorf("got %q, want %q", b, want)
	}
}

// What the template has no place for, and what contradicts itself, is refused.
func TestChatErrors(t *testing.T) {
	plain, own := newPeer(t, serve.Config{}), newChatPeer(t, "{% if tools %}{# <tool_call> #}{% endif %}?")
	bare := newChatPeer(t, `{% if tools %}{# "parameters" #}{% endif %}?`)
	messages := `{"messages":[{"role":"user","content":"x"}]`
	for _, c := range []struct {
		p           *peer
		body, param string
	}{
		{plain, messages + oneTool + `}`, "tools"},
		{plain, messages + `,"chat_template_kwargs":{"tone":1}}`, "chat_template_kwargs.tone"},
		{own, messages + `,"chat_template_kwargs":{"messages":[]}}`, "chat_template_kwargs.messages"},
		{own, messages + `,"chat_template_kwargs":{"enable_thinking":1}}`, "chat_template_kwargs.enable_thinking"},
		{own, messages + `,"max_tokens":2,"guided_choice":["four"]}`, "max_tokens"},
		{own, messages + `,"tool_choice":"required"}`, "tool_choice"},
		{own, messages + `,"tool_choice":{"type":"function","function":{"name":"g"}}` + oneTool + `}`, "tool_choice"},
		{own, messages + `,"tool_choice":"often"` + oneTool + `}`, "tool_choice"},
		{bare, messages + `,"response_format":{"type":"json_object"}` + oneTool + `}`, "response_format"},
		{own, messages + `,"guided_json":{}` + oneTool + `}`, "guided_json"},
		{own, messages + `,"response_format":{"type":"json_object"},"stop":"x"` + oneTool + `}`, "stop"},
		{own, messages + `,"response_format":{"type":"json_schema"}}`, "response_format.json_schema.schema"},
		{own, messages + `,"response_format":{"type":"json_schema","json_schema":{"schema":{"not":{}}}}}`, "response_format.json_schema.schema"},
		{own, messages + `,"response_format":{"type":"grammar"}}`, "response_format.type"},
		{own, messages + `,"guided_json":{},"json_schema":{}}`, "json_schema"},
		{own, messages + `,"guided_json":{},"grammar":"root ::= x"}`, "grammar"},
		{own, messages + `,"grammar":"root ::= x"}`, "grammar"},
		{own, messages + `,"grammar":7}`, "grammar"},
		{own, messages + `,"guided_regex":"(?=x)"}`, "guided_regex"},
		{own, messages + `,"regex":"("}`, "regex"},
		{own, messages + `,"guided_choice":[]}`, "guided_choice"},
		{own, messages + `,"guided_choice":["a",1]}`, "guided_choice"},
		{own, messages + `,"guided_grammar":"x"}`, "guided_grammar"},
		{own, messages + `,"structured_outputs":{"regex":"a","json_object":true}}`, "structured_outputs"},
		{own, messages + `,"structured_outputs":{"regex":"("}}`, "structured_outputs.regex"},
		{own, messages + `,"structured_outputs":{"structural_tag":"x"}}`, "structured_outputs.structural_tag"},
		{own, messages + `,"guided_json":{"type":"number","exclusiveMinimum":999999999999999}}`, "guided_json"},
		{own, messages + `,"response_format":{"type":"json_schema","json_schema":{"schema":{"pattern":7,"type":"x"}}}}`,
			"response_format.json_schema.schema"},
		{own, messages + `,"stop":"x","guided_json":{}}`, "stop"},
		{own, messages + `,"tools":[{"function":{"name":"f"}}]}`, "tools[0].type"},
		{own, messages + `,"tools":[{"type":"functions","function":{"name":"f"}}]}`, "tools[0].type"},
		{own, messages + `,"tools":[{"type":"web"}],"tool_choice":"required"}`, "tool_choice"},
		{own, messages + `,"tools":[{"type":"web"}],"tool_choice":{"type":"web"}}`, "tool_choice"},
		{own, messages + `,"tool_choice":{"type":"custom","custom":{"name":"f"}}` + oneTool + `}`, "tool_choice"},
		{own, messages + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"none","tools":[]}}` + oneTool + `}`, "tool_choice"},
		{own, messages + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"custom","custom":{"name":"f"}}]}}` +
			oneTool + `}`, "tool_choice"},
		{own, messages + `,"tools":[{"type":"custom","custom":{"name":"a b"}}]}`, "tools[0].custom.name"},
		{own, messages + `,"tools":[{"type":"custom","custom":{"name":"f","color":1}}]}`, "tools[0].custom.color"},
		{own, messages + `,"tools":[{"type":"custom","custom":{"name":"f","format":{"type":"json"}}}]}`, "tools[0].custom.format.type"},
		{own, messages + `,"tools":[{"type":"custom","custom":{"name":"f","format":{"type":"grammar"}}}]}`, "tools[0].custom.format.grammar.syntax"},
		{own, messages + `,"tools":[{"type":"custom","custom":{"name":"f","format":{"type":"grammar","grammar":{"syntax":"gbnf","definition":"x"}}}}]}`,
			"tools[0].custom.format.grammar.syntax"},
		{own, messages + `,"tools":[{"type":"custom","custom":{"name":"f","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"x"}}}}]}`,
			"tools"},
		{own, messages + `,"moderation":{"model":"x"}}`, "moderation"},
		{own, messages + `,"tools":[{"type":"function","function":{"name":"a b"}}]}`, "tools[0].function.name"},
		{own, messages + `,"tools":[{"type":"function","colour":1}]}`, "tools[0].colour"},
		{own, messages + `,"tools":[{"type":"function","function":{"name":"a","strict":true,"parameters":{"not":1}}}]}`, "tools"},
		{own, `{"messages":[{"role":"tool","content":"x"}]}`, "messages[0].tool_call_id"},
		{own, `{"messages":[{"role":"user","content":"x","tool_calls":[{"id":"i"}]}]}`, "messages[0].tool_calls"},
		{own, `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"","arguments":"[]"}}]}]}`, "messages[0].tool_calls[0].function.name"},
		{own, `{"messages":[{"role":"assistant","tool_calls":[{"type":"web","function":{"name":"f"}}]}]}`, "messages[0].tool_calls[0].type"},
		{own, messages + `,"max_tokens":1,"guided_json":{"type":"object"}}`, "max_tokens"},
	} {
		status, data := ask(t, c.p, "POST", asChat, c.body)
		var got reply
		if status != http.StatusBadRequest || json.Unmarshal(data, &got) != nil || got.Error.Param == nil || *got.Error.Param != c.param {
			t.Errorf("%s: got %d %s, want 400 and %q", c.body, status, data, c.param)
		}
	}
}

// replyOf returns the thought, the text and the calls of an answer, which the stream has as well.
func replyOf(t *testing.T, p *peer, body string) (thought, content string, calls []string) {
	t.Helper()
	status, data := ask(t, p, "POST", asChat, body)
	var got called
	if status != http.StatusOK || json.Unmarshal(data, &got) != nil {
		t.Fatalf("%s: %d %s", body, status, data)
	}
	m := got.Choices[0].Message
	for _, c := range m.Calls {
		calls = append(calls, c.Function.Name+c.Function.Arguments)
	}
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	thought, content = text(m.Reasoning), text(m.Content)
	_, data = ask(t, p, "POST", asChat, strings.TrimSuffix(body, "}")+`,"stream":true}`)
	streamed := ""
	for event := range strings.SplitSeq(string(data), "\n\n") {
		var part called
		if json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &part) != nil || len(part.Choices) == 0 {
			continue
		}
		d := part.Choices[0].Delta
		streamed += text(d.Reasoning) + text(d.Content)
		for _, c := range d.Calls {
			streamed += c.Function.Name + c.Function.Arguments
		}
	}
	if streamed != thought+content+strings.Join(calls, "") {
		t.Errorf("%s: streamed %q, want %q, %q and %q", body, streamed, thought, content, calls)
	}
	return thought, content, calls
}

// A reply that begins within a thought has the form of the request after the thought, whatever the model.
func TestFormAfterThought(t *testing.T) {
	p := newChatPeer(t, `?<think>{# </think> #}`)
	thoughts := ""
	for format, want := range map[string]string{
		`"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"const":"</think>"}}}`: `^ ?"</think>"$`,
		`"response_format":{"type":"json_object"}`:                                                          `(?s)^ ?\{.*\}$`,
		`"guided_choice":["red","green"]`:                                                                   `^(red|green)$`,
		`"regex":"[0-9]{3}"`:                                                                                `^[0-9]{3}$`,
	} {
		for seed := range 4 {
			body := fmt.Sprintf(`{"messages":[{"role":"user","content":"x"}],"seed":%d,"max_tokens":40,%s}`, seed, format)
			thought, content, _ := replyOf(t, p, body)
			if thoughts += thought; !regexp.MustCompile(want).MatchString(content) || strings.Contains(thought, "</think>") {
				t.Errorf("%s, seed %d: %q after the thought %q, want %s", format, seed, content, thought, want)
			}
		}
	}
	if thoughts == "" {
		t.Error("no reply has a thought")
	}
}

// A reply that does not begin within a thought has the form from its beginning: marks of thoughts and space in it are text.
func TestFormWithThoughtMarks(t *testing.T) {
	p := newChatPeer(t, `?{# <think> </think> #}`)
	for _, want := range []string{"<think>a</think>b", " \nb", "<think>"} {
		thought, content, _ := replyOf(t, p, `{"messages":[{"role":"user","content":"x"}],"guided_choice":[`+strconv.Quote(want)+`]}`)
		if content != want || thought != "" {
			t.Errorf("got %q after the thought %q, want %q", content, thought, want)
		}
	}
}

// With tools, a reply is text of the form, or calls, whatever the model. Marks of calls in the text are text.
func TestFormBesideTools(t *testing.T) {
	p := newChatPeer(t, `{% if tools %}{# [TOOL_CALLS] [ARGS] #}{% endif %}?`)
	texts, called := 0, 0
	for seed := range 12 {
		_, content, calls := replyOf(t, p, fmt.Sprintf(`{"messages":[{"role":"user","content":"x"}],"seed":%d,"logit_bias":{"91":%d},
			"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"enum":["[TOOL_CALLS]",7]}}}%s}`, seed, 50*(seed%2), oneTool))
		text := strings.TrimSpace(content)
		switch {
		case len(calls) == 0 && (text == `"[TOOL_CALLS]"` || text == "7"):
			texts++
		case len(calls) > 0 && text == "" && strings.HasPrefix(calls[0], "f{"):
			called++
		default:
			t.Errorf("seed %d: %q and %q", seed, content, calls)
		}
	}
	if texts == 0 || called == 0 {
		t.Errorf("%d texts, %d replies with calls", texts, called)
	}
}
