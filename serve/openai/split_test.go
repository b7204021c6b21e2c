package openai

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/internal/grammar"
)

// divided returns what a splitter makes of a reply that comes in parts.
func divided(s *splitting, parts []string) (text, thought string, calls []toolCall) {
	p := newSplitter(s)
	for i, part := range parts {
		for _, x := range p.push(part, i == len(parts)-1) {
			text, thought, calls = text+x.text, thought+x.thought, append(calls, x.calls...)
		}
	}
	return text, thought, calls
}

// cut divides a text into random parts.
func cut(r *rand.Rand, s string) (parts []string) {
	for s != "" {
		n := 1 + r.IntN(min(len(s), 9))
		parts, s = append(parts, s[:n]), s[n:]
	}
	return append(parts, "")
}

var testTools = []toolFunction{{Name: "weather"}, {Name: "f"}, {Name: "add_2"}}

func formatNamed(t *testing.T, name, named string) *callFormat {
	t.Helper()
	for i := range callFormats {
		if f := &callFormats[i]; f.name == name && f.named == named {
			return f
		}
	}
	t.Fatalf("no format %s", name)
	return nil
}

// Replies as the families' models write them.
func TestTranscripts(t *testing.T) {
	for _, c := range []struct {
		format, named  string
		thinks         bool
		reply          string
		text, thought  string
		names, argList []string
	}{
		{"Hermes", "", true, "<think>\nlook\n</think>\n\nOne moment.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"town\": \"Rome\"}}\n</tool_call>\n" +
			"<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>", "One moment.", "\nlook\n", []string{"weather", "f"}, []string{`{"town": "Rome"}`, `{}`}},
		{"Hermes", "", false, "a <tool_ca b", "a <tool_ca b", "", nil, nil},
		{"Hermes", "", false, "<tool_call>no JSON</tool_call> end", "<tool_call>no JSON</tool_call> end", "", nil, nil},
		{"Hermes", "", false, `<tool_call>{"name": "unknown", "arguments": {}}</tool_call>`, `<tool_call>{"name": "unknown", "arguments": {}}</tool_call>`, "", nil, nil},
		{"Llama 3", "", false, `{"name": "weather", "parameters": {"town": "};"}}`, "", "", []string{"weather"}, []string{`{"town": "};"}`}},
		{"Llama 3", "", false, `<|python_tag|>{"name": "f", "parameters": {}}; {"name": "f", "parameters": {"a": 1}}`, "", "", []string{"f", "f"}, []string{"{}", `{"a": 1}`}},
		{"Llama 3", "", false, "It is {warm}.", "It is {warm}.", "", nil, nil},
		{"Llama 3", "", false, `{"warm": true}`, `{"warm": true}`, "", nil, nil},
		{"Mistral", "", false, `[TOOL_CALLS] [{"name": "add_2", "arguments": {"a": 1}, "id": "123456789"}]`, "", "", []string{"add_2"}, []string{`{"a": 1}`}},
		{"Mistral", "[ARGS]", false, `[TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]weather[ARGS]{}`, "", "", []string{"f", "weather"}, []string{`{"a": 1}`, "{}"}},
		{"Phi", "", false, `<|tool_call|>[{"name": "f", "arguments": {"x": [1]}}, {"name": "f", "arguments": "{}"}]<|/tool_call|>`, "", "",
			[]string{"f", "f"}, []string{`{"x": [1]}`, "{}"}},
		{"JSON", "", false, "```tool_code\n{\"name\": \"f\", \"parameters\": {\"x\": 2}}\n```", "", "", []string{"f"}, []string{`{"x": 2}`}},
		{"JSON", "", false, "```go\nx := 1\n```", "```go\nx := 1\n```", "", nil, nil},
	} {
		s := &splitting{format: formatNamed(t, c.format, c.named), tools: testTools, thinks: c.thinks}
		r := rand.New(rand.NewPCG(1, 1))
		for range 20 {
			parts := cut(r, c.reply)
			text, thought, calls := divided(s, parts)
			ok := len(calls) == len(c.names)
			for i := range min(len(calls), len(c.names)) {
				ok = ok && calls[i].Function == calledObject{c.names[i], c.argList[i]} && *calls[i].Index == i && len(calls[i].ID) == 9
			}
			if !ok || strings.TrimRight(text, "\n ") != c.text || thought != c.thought {
				t.Fatalf("%s %q: got %q, %q, %v\nwant %q, %q, %v", c.format, parts, text, thought, calls, c.text, c.thought, c.argList)
			}
		}
	}
}

// Each text of the form of demanded calls is divided into calls of known tools, with arguments that are objects, and nothing else.
func TestFormsOfCalls(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	texts := make([]string, 256)
	for b := range texts {
		texts[b] = string([]byte{byte(b)})
	}
	v := grammar.NewVocabulary(texts)
	tools := []toolFunction{{Name: "weather", Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)},
		{Name: "f"}, {Name: "add_2", Parameters: json.RawMessage(`{"not":{}}`)}}
	for i := range callFormats {
		f := &callFormats[i]
		for _, single := range []bool{false, true} {
			u := &toolUse{tools: tools, must: true, single: single}
			b := grammar.NewBuilder()
			p, err := f.calls(b, u)
			if err != nil {
				t.Fatal(err)
			}
			g, err := b.Build(p)
			if err != nil {
				t.Fatal(err)
			}
			for range 4 {
				reply := walked(g, v, r)
				text, _, calls := divided(&splitting{format: f, tools: tools, single: single}, cut(r, reply))
				if text != "" || len(calls) == 0 || single && len(calls) > 1 {
					t.Fatalf("%s %q: %q, %v", f.name, reply, text, calls)
				}
				for _, c := range calls {
					var args map[string]any
					if err := json.Unmarshal([]byte(c.Function.Arguments), &args); err != nil || c.Function.Name == "weather" && args["n"] == nil {
						t.Fatalf("%s %q: %v, %v", f.name, reply, c, err)
					}
				}
			}
		}
	}
}

// walked returns a random text of a grammar.
func walked(g *grammar.Grammar, v *grammar.Vocabulary, r *rand.Rand) string {
	m := g.NewMatcher(v.Has)
	var b []byte
	for left := m.Least() + r.IntN(80); left > 0 && !m.Complete(); left-- {
		var ids []int
		m.Each(v, left-1, func(id int) { ids = append(ids, id) })
		if len(ids) == 0 {
			break
		}
		b = append(b, byte(ids[r.IntN(len(ids))]))
		m.Advance(b[len(b)-1:])
	}
	return string(b)
}

// Without a demand a reply is any text, or calls; with a thought at its beginning, what follows it is calls.
func TestFreeForms(t *testing.T) {
	f := formatNamed(t, "Hermes", "")
	call := "<tool_call>\n" + `{"name": "f", "arguments": {}}` + "\n</tool_call>"
	for _, c := range []struct {
		u      toolUse
		thinks bool
		yes    []string
		not    []string
	}{
		{toolUse{strict: true}, false, []string{"", "text <tool_c", call, "text" + call, "<<tool_call>\n" + call[12:]}, []string{"<tool_call>x", call + "x"}},
		{toolUse{must: true}, true, []string{"so </think>\n\n" + call, "</think>" + call}, []string{call, "so </think>", "so </think> no"}},
	} {
		c.u.tools = []toolFunction{{Name: "f"}}
		form, err := f.grammar(&c.u, c.thinks)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range append(c.yes, c.not...) {
			m := form.NewMatcher(func(s string) bool { return len(s) == 1 })
			if got := m.Advance([]byte(s)) && m.Accepts(); got != (i < len(c.yes)) {
				t.Errorf("%+v %q: accepted %v", c.u, s, got)
			}
		}
	}
}
