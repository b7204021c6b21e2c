package openai

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/text"
)

// templateOf returns a template with a place for tools that writes calls.
func templateOf(call string) string {
	return `{% if tools %}Tools: {{ tools | tojson }}{% endif %}{% for m in messages %}<{{ m.role }}>{{ m.content }}` +
		`{% for c in m.tool_calls or [] %}{% set f = c.function %}` + call + `{% endfor %}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}`
}

// What a template writes for a call decides how calls are read, then its texts. A form that is not known is refused.
func TestFormatOfTemplates(t *testing.T) {
	items := `{% for k, v in f.arguments.items() %}`
	for _, c := range []struct{ template, want string }{
		{templateOf(`<tool_call>{{ {"name": f.name, "arguments": f.arguments} | tojson }}</tool_call>`), "Hermes"},
		{templateOf(`{{ {"name": f.name, "arguments": f.arguments} | tojson }}`), "JSON"},
		{templateOf(`{"name": {{ f.name | tojson }}, "parameters": {{ f.arguments | tojson }}}`), "Llama 3"},
		{templateOf(`{{ {'name': f.name, 'parameters': f.arguments} | tojson }}`), "Llama 3"},
		{templateOf(`[TOOL_CALLS][{{ {"name": f.name, "arguments": f.arguments} | tojson }}]`), "Mistral list"},
		{templateOf(`[TOOL_CALLS]{{ f.name }}[ARGS]{{ f.arguments | tojson }}`), "Mistral"},
		{templateOf(`<|tool_call|>[{{ {"name": f.name, "arguments": f.arguments} | tojson }}]<|/tool_call|>`), "Phi"},
		{templateOf(`<|tool_call_start|>[{{ f.name }}(` + items + `{{ k }}={{ v | tojson }}{% endfor %})]<|tool_call_end|>`), "LFM2"},
		{templateOf(`<|tool_call_start|>[{{ f.name }}(` + items + `{{ k }}='{{ v }}'{% endfor %})]<|tool_call_end|>`), "LFM2"},
		{templateOf(`<function_calls>{{ f.name }}(` + items + `{{ k }}={{ v | tojson }}{% endfor %})</function_calls>`), "OLMo 3"},
		{templateOf(`<|python_start|>{{ m.content }}<|python_end|>{"name": "{{ f.name }}", "parameters": {{ f.arguments | tojson }}}<|eot|>`), "Llama 3"},
		{templateOf(`[{{ f.name }}(` + items + `{{ k }}={{ v | tojson }}{% endfor %})]`), "Python"},
		{templateOf(`<tool_call>{{ f.name }}` + "\n" + items + `<arg_key>{{ k }}</arg_key>` + "\n" + `<arg_value>{{ v }}</arg_value>{% endfor %}</tool_call>`), "GLM"},
		{templateOf(`<tool_call><function={{ f.name }}>` + items + `<parameter={{ k }}>{{ v }}</parameter>{% endfor %}</function></tool_call>`), "Qwen3-Coder"},
		{templateOf(`<seed:tool_call><function={{ f.name }}>` + items + `<parameter={{ k }}>{{ v }}</parameter>{% endfor %}</function></seed:tool_call>`), "Seed-OSS"},
		{templateOf(`<minimax:tool_call><invoke name="{{ f.name }}">` + items + `<parameter name="{{ k }}">{{ v }}</parameter>{% endfor %}</invoke></minimax:tool_call>`),
			"MiniMax M2"},
		{templateOf(`<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "{{ f.name }}", "parameters": {{ f.arguments | tojson }}}]<|END_ACTION|>`), "Command R7B"},
		{templateOf(`<TOOLCALL>[{{ {"name": f.name, "arguments": f.arguments} | tojson }}]</TOOLCALL>`), "Nemotron"},
		{templateOf(`<function={{ f.name }}>{{ f.arguments | tojson }}</function>`), "Functionary"},
		{templateOf(`<|tool_call>call:{{ f.name + '{' }}` + items + `{{ k }}:<|"|>{{ v }}<|"|>{% endfor %}{{ '}' }}<tool_call|>`), "Gemma 4"},
		{`{% if tools %}List of tools: <|tool_list_start|>{{ tools }}{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}`, "LFM2"},
		{`{% if tools %}use [func_name1(params_name1=params_value1...)]{{ tools }}{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}`, "Python"},
		{`{% if tools %}{{ tools }}{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}`, "JSON"},
		{templateOf(`<call name="{{ f.name }}">{{ f.arguments | tojson }}</call>`), ""},
		{templateOf(`{{ f.name }} {{ f.arguments | tojson }}`), ""},
		{templateOf(`<|channel|>commentary to=functions.{{ f.name }}<|message|>{{ f.arguments | tojson }}<|call|>`), ""},
		{templateOf(`<tool_call>{{ f.name }} with {{ f.arguments.place }}</tool_call>`), ""},
		{`{% for m in messages %}{{ m.content }}{% endfor %}`, ""},
	} {
		template, err := text.NewJinjaTemplate("own", c.template, "", "")
		if err != nil {
			t.Fatal(err)
		}
		g := newGenerator(t, Config{Template: template})
		refused, ok := errors.AsType[*requestError](g.noCalls)
		switch {
		case c.want == "" && (!ok || refused.param != "tools"):
			t.Errorf("%s: got %+v, %v, want a refusal", c.template, g.calls, g.noCalls)
		case c.want != "" && (g.noCalls != nil || g.calls.name != c.want):
			t.Errorf("%s: got %+v, %v, want %s", c.template, g.calls, g.noCalls, c.want)
		}
	}
}

// Arguments of past calls that are no JSON are rendered as they are.
func TestBrokenArguments(t *testing.T) {
	for _, c := range []struct{ template, want string }{
		{`{{ f.arguments }}`, `{"a": "C:\Users`},
		{`{{ f.arguments | tojson }}`, `"{\"a\": \"C:\\Users"`},
		{`{% for k, v in f.arguments.items() %}{{ k }}={{ v }}{% endfor %}`, `arguments={"a": "C:\Users`},
		{`{{ 'x' + f.arguments }}`, `x{"a": "C:\Users`},
	} {
		template, err := text.NewJinjaTemplate("own", templateOf(c.template), "", "")
		if err != nil {
			t.Fatal(err)
		}
		g := newGenerator(t, Config{Template: template})
		m := message{Role: "assistant"}
		must := json.Unmarshal([]byte(`[{"id":"i","type":"function","function":{"name":"f","arguments":"{\"a\": \"C:\\Users"}}]`), &m.Calls)
		last, err := m.forTemplate("messages[1]")
		if err != nil || must != nil {
			t.Fatal(err, must)
		}
		got, err := g.model.RenderConversation(template, &text.Conversation{Messages: []text.Message{{Role: "user", Content: "?"}, last}})
		if want := "<assistant>" + c.want; err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, %v, want %q", c.template, got, err, want)
		}
	}
}
