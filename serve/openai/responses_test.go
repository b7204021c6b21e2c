package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai"
	"github.com/etrun-go/etrun/text"
)

const asResponse = "/v1/responses"

// responseItem is an item of the output.
type responseItem struct {
	ID, Type, Status, Role string
	Content                []struct{ Type, Text string }
	CallID                 string `json:"call_id"`
	Name, Arguments        string
}

// responseObject is a response.
type responseObject struct {
	ID, Object, Status, Model string
	Error                     *struct{ Code, Message string }
	Details                   struct{ Reason string } `json:"incomplete_details"`
	Output                    []responseItem
	Store                     bool
	Instructions              *string
	Metadata                  map[string]string
	Tools                     []struct{ Name string }
	Usage                     struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
		Total  int `json:"total_tokens"`
		More   struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	}
}

// responseEvent is an event of a stream.
type responseEvent struct {
	Type            string
	Number          int `json:"sequence_number"`
	Response        responseObject
	Item            responseItem
	ItemID          string `json:"item_id"`
	Index           int    `json:"output_index"`
	Delta, Name     string
	Text, Arguments *string
}

func respond(t testing.TB, p *peer, body string) (r responseObject) {
	t.Helper()
	status, data := ask(t, p, "POST", asResponse, body)
	if status != http.StatusOK {
		t.Fatalf("%s: %d %s", body, status, data)
	}
	must(t, json.Unmarshal(data, &r))
	return r
}

func responseEvents(t testing.TB, data []byte) (list []responseEvent) {
	t.Helper()
	for event := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n\n") {
		var e responseEvent
		name, object, _ := strings.Cut(event, "\ndata: ")
		must(t, json.Unmarshal([]byte(object), &e))
		if name != "event: "+e.Type || e.Number != len(list) {
			t.Errorf("event %d: %s", len(list), event)
		}
		list = append(list, e)
	}
	return list
}

// streamedResponse checks the events of a stream, and returns the response of the last one.
func streamedResponse(t testing.TB, p *peer, body string) responseObject {
	t.Helper()
	_, data := ask(t, p, "POST", asResponse, strings.TrimSuffix(body, "}")+`,"stream":true}`)
	list := responseEvents(t, data)
	last := list[len(list)-1].Response
	texts, open, items := make(map[string]string), "", 0
	for _, e := range list {
		switch e.Type {
		case "response.output_item.added":
			if open != "" || e.Index != items || e.Item.Status != "in_progress" {
				t.Errorf("%+v in item %q", e, open)
			}
			open, items = e.Item.ID, items+1
		case "response.output_text.delta", "response.reasoning_text.delta", "response.function_call_arguments.delta":
			if e.ItemID != open || e.Delta == "" {
				t.Errorf("%+v in item %q", e, open)
			}
			texts[open] += e.Delta
		case "response.output_text.done", "response.reasoning_text.done", "response.function_call_arguments.done":
			all := e.Text
			if all == nil {
				all = e.Arguments
			}
			if all == nil || *all != texts[open] || e.Name != last.Output[e.Index].Name {
				t.Errorf("%+v, want %q", e, texts[open])
			}
		case "response.output_item.done":
			if e.Item.ID != open || fmt.Sprint(e.Item) != fmt.Sprint(last.Output[e.Index]) {
				t.Errorf("%+v, want %+v", e.Item, last.Output[e.Index])
			}
			open = ""
		}
	}
	if items != len(last.Output) || open != "" || list[len(list)-1].Type != "response."+last.Status {
		t.Errorf("%d items, %q open, %+v", items, open, last)
	}
	return last
}

// same compares responses without their ids.
func same(a, b responseObject) bool {
	for _, r := range []*responseObject{&a, &b} {
		r.ID, r.Output = "", append([]responseItem{}, r.Output...)
		for i := range r.Output {
			r.Output[i].ID = ""
			if r.Output[i].CallID != "" {
				r.Output[i].CallID = "id"
			}
		}
		r.Usage.Input, r.Usage.Total = 0, 0
	}
	return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b)
}

// The text is that of the chat with the same messages, as one response and as a stream.
func TestResponses(t *testing.T) {
	p := newPeer(t, serve.Config{})
	for input, prompt := range map[string]string{
		`"hello"`: "hello|",
		`[{"role":"user","content":"a"},{"type":"message","role":"assistant","id":"x","status":"completed","content":[{"type":"output_text","text":"b","annotations":[]}]},` +
			`{"role":"user","content":[{"type":"input_text","text":"c"},{"type":"input_text","text":"d"}]}]`: "a|b|cd|",
	} {
		want := want(t, prompt, text.Options{MaxTokens: 6})
		body := fmt.Sprintf(`{"input":%s,"max_output_tokens":6,"temperature":0,"metadata":{"k":"v"}}`, input)
		got := respond(t, p, body)
		if len(got.Output) != 1 || got.Output[0].Role != "assistant" || got.Output[0].Content[0].Text != want || got.Model != "lm" || got.Metadata["k"] != "v" ||
			got.Usage.Output != 6 || got.Usage.Input != len(prompt) || got.Usage.Total != 6+len(prompt) {
			t.Errorf("%s: got %+v, want %q", input, got, want)
		}
		if s := streamedResponse(t, p, body); !same(got, s) {
			t.Errorf("%s: streamed %+v, want %+v", input, s, got)
		}
	}
}

// Calls, results, thoughts and instructions are in the prompt, and calls that a request demands in the output.
func TestResponseTools(t *testing.T) {
	p := newChatPeer(t, `{% for m in messages %}{{ m.role[0] }}{{ m.content }}{{ m.reasoning_content }}`+
		`{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments.n }}{% endfor %}{{ m.tool_call_id }}{% endfor %}`+
		`{% if tools %}{# "parameters" #}{{ tools[0].function.name }}{% endif %}`)
	const items = `"input":[{"role":"user","content":"q"},{"type":"reasoning","id":"rs","summary":[],"content":[{"type":"reasoning_text","text":"w"}]},` +
		`{"type":"function_call","id":"fc","call_id":"i","name":"f","arguments":"{\"n\": 7}"},{"type":"function_call_output","call_id":"i","output":"r"}],"instructions":"s"`
	const tools = `,"tools":[{"type":"function","name":"f","strict":null}]`
	got := respond(t, p, `{`+items+`,"max_output_tokens":1}`)
	if want := len("ssuqawf7tri"); got.Usage.Input != want || *got.Instructions != "s" { // the template writes what is in each message once
		t.Errorf("%d tokens of the prompt, want %d", got.Usage.Input, want)
	}
	p = newChatPeer(t, `{% if tools %}{# "parameters" #}{% endif %}?`)
	for _, choice := range []string{`"required"`, `{"type":"function","name":"f"}`} {
		body := `{"input":"q"` + tools + `,"temperature":0,"tool_choice":` + choice + `}`
		got := respond(t, p, body)
		if len(got.Output) != 1 || got.Output[0].Type != "function_call" || got.Output[0].Name != "f" || got.Output[0].CallID == "" ||
			strings.Join(strings.Fields(got.Output[0].Arguments), "") != "{}" || got.Status != "completed" || len(got.Tools) != 1 {
			t.Errorf("%s: got %+v", choice, got)
		}
		if s := streamedResponse(t, p, body); !same(got, s) {
			t.Errorf("%s: streamed %+v, want %+v", choice, s, got)
		}
	}
}

// Thoughts are an item of their own, and forms are those of chats.
func TestResponseForms(t *testing.T) {
	p := newChatPeer(t, "{# </think> #}<think>\n")
	if got := streamedResponse(t, p, `{"input":"x","max_output_tokens":6}`); got.Output[0].Type != "reasoning" || got.Usage.More.Reasoning == 0 {
		t.Errorf("got %+v", got)
	}
	p = newPeer(t, serve.Config{})
	for _, format := range []string{`{"type":"json_object"}`, `{"type":"json_schema","name":"n","strict":true,"schema":{"type":"object"}}`} {
		got := respond(t, p, `{"input":"x","max_output_tokens":8,"text":{"format":`+format+`}}`)
		if s := got.Output[0].Content[0].Text; !json.Valid([]byte(s)) || strings.TrimSpace(s)[0] != '{' {
			t.Errorf("%s: %q", format, s)
		}
	}
}

// What is refused has the names of this request.
func TestResponseErrors(t *testing.T) {
	plain, own := newPeer(t, serve.Config{}), newChatPeer(t, "{% if tools %}{# <tool_call> #}{% endif %}?")
	bare := newChatPeer(t, `{% if tools %}{# "parameters" #}{% endif %}?`)
	for _, c := range []struct {
		p           *peer
		body, param string
	}{
		{plain, `{}`, "input"}, {plain, `{"input":[]}`, "input"}, {plain, `{"input":7}`, "input"}, {plain, `{"input":["x"]}`, "input[0]"},
		{plain, `{"input":[{"type":"item_reference","id":"x"}]}`, "input[0].type"},
		{plain, `{"input":[{"role":"user","content":"x"},{"role":"user"}]}`, "input[1].content"},
		{plain, `{"input":[{"role":"user","content":7}]}`, "input[0].content"},
		{plain, `{"input":[{"role":7,"content":"x"}]}`, "input[0].role"},
		{plain, `{"input":[{"role":"user","content":[{"type":"input_image","text":"x"}]}]}`, "input[0].content[0].image_url"},
		{plain, `{"input":[{"role":"user","content":[{"type":"input_file","file_id":"x"}]}]}`, "input[0].content[0].file_id"},
		{plain, `{"input":[{"role":"user","content":[{"type":"input_image","image_url":"x"}]}]}`, "input[0].content[0].image_url"},
		{plain, `{"input":[{"role":"user","content":"x","call_id":"i"}]}`, "input[0].call_id"},
		{plain, `{"input":[{"role":"tool","content":"x"}]}`, "input[0].role"},
		{plain, `{"input":[{"type":"message","content":"x"}]}`, "input[0].role"},
		{plain, `{"input":[{"role":"user","content":"x","color":1}]}`, "input[0].color"},
		{plain, `{"input":[{"type":"function_call","name":"f","arguments":"{}"}]}`, "input[0].call_id"},
		{plain, `{"input":[{"role":"user","content":"x"},{"type":"custom_tool_call","call_id":"i","name":"a b","input":"[]"}]}`, "input[1].name"},
		{plain, `{"input":[{"role":"user","content":"x"},{"role":"assistant","content":"y"},{"type":"function_call","call_id":"i","name":"f","arguments":"{}"},` +
			`{"type":"function_call","call_id":"k","name":"a b","arguments":"{}"}]}`, "input[3].name"},
		{plain, `{"input":[{"type":"function_call_output","output":"x"}]}`, "input[0].call_id"},
		{plain, `{"input":[{"type":"reasoning","encrypted_content":"x"}]}`, "input[0].encrypted_content"},
		{plain, `{"input":"x","max_output_tokens":0}`, "max_output_tokens"}, {plain, `{"input":"x","temperature":-1}`, "temperature"},
		{plain, `{"input":"x","text":{"format":{"type":"json_schema"}}}`, "text.format.schema"},
		{bare, `{"input":"x","text":{"format":{"type":"json_object"}},"tools":[{"type":"function","name":"f"}]}`, "text.format"},
		{plain, `{"input":"x","text":{"format":{"type":"json_schema","schema":{"not":{}}}}}`, "text.format.schema"},
		{plain, `{"input":"x","text":{"format":{"type":"grammar"}}}`, "text.format.type"},
		{plain, `{"input":"x","max_output_tokens":1,"text":{"format":{"type":"json_object"}}}`, "max_output_tokens"},
		{plain, `{"input":"` + strings.Repeat("x", 40) + `"}`, "input"}, {plain, `{"input":"x","tools":[{"type":"function","name":"f"}]}`, "tools"},
		{own, `{"input":"x","tools":[{"type":7}]}`, "tools[0].type"}, {own, `{"input":"x","tools":[{"name":"f"}]}`, "tools[0].type"},
		{own, `{"input":"x","tools":["f"]}`, "tools[0]"}, {own, `{"input":"x","tools":[{"type":"custom","name":"f","format":"text"}]}`, "tools[0].format"},
		{own, `{"input":"x","tools":[{"type":"custom","name":"f","format":{"type":"grammar","syntax":"bnf","definition":"x"}}]}`, "tools[0].format.syntax"},
		{own, `{"input":"x","tools":[{"type":"mcp","server_label":"s"}],"tool_choice":{"type":"mcp","server_label":"s"}}`, "tool_choice"},
		{own, `{"input":"x","include":["message.output_text.logprobs"]}`, "include"},
		{own, `{"input":"x","tools":[{"type":"function","name":"a b"}]}`, "tools[0].name"},
		{own, `{"input":"x","tools":[{"type":"function","name":"f","strict":"yes"}]}`, "tools[0].strict"},
		{own, `{"input":"x","tool_choice":{"type":"allowed_tools"}}`, "tool_choice"}, {own, `{"input":"x","reasoning":{"effort":1}}`, "reasoning.effort"},
		{own, `{"input":"x","reasoning":{"effort":"low","color":1}}`, "reasoning.color"}, {own, `{"input":"x","temprature":1}`, "temprature"},
		{own, `{"input":"x","metadata":{"a":1}}`, "metadata"},
	} {
		status, data := ask(t, c.p, "POST", asResponse, c.body)
		var got reply
		if status != http.StatusBadRequest || json.Unmarshal(data, &got) != nil || got.Error.Param == nil || !strings.HasPrefix(*got.Error.Param, c.param) {
			t.Errorf("%.200s: got %d %s, want 400 and %q", c.body, status, data, c.param)
		}
	}
}

// A response that is too large for the memory of answers ends, also as a stream.
func TestResponseWithinMemory(t *testing.T) {
	p := newPeerWith(t, serve.Options{BusyBytes: 8 << 10}, serve.Config{}, openai.Config{})
	body := `{"input":"x","max_output_tokens":30,"metadata":{}`
	status, data := ask(t, p, "POST", asResponse, body+"}")
	if status != http.StatusBadRequest || !strings.Contains(string(data), `"param":"max_output_tokens"`) {
		t.Errorf("got %d %s", status, data)
	}
	_, data = ask(t, p, "POST", asResponse, body+`,"stream":true}`)
	if list := responseEvents(t, data); list[len(list)-1].Type != "response.failed" || list[len(list)-1].Response.Error == nil {
		t.Errorf("got %s", data)
	}
	hold := p.server.NewReservation()
	must(t, hold.Grow(8<<10)) // nothing is counted
	hold.Release()
}
