package toolcall

import (
	"errors"
	"testing"

	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/openaitest"
	"github.com/etrun-go/etrun/text"
)

// What a template writes for a call decides how calls are read, then its texts. A form that is not known is refused.
func TestFormatOfTemplates(t *testing.T) {
	m := openaitest.Model(t)
	items := `{% for k, v in f.arguments.items() %}`
	for _, c := range []struct{ template, want string }{
		{openaitest.Template(`<tool_call>{{ {"name": f.name, "arguments": f.arguments} | tojson }}</tool_call>`), "Hermes"},
		{openaitest.Template(`{{ {"name": f.name, "arguments": f.arguments} | tojson }}`), "JSON"},
		{openaitest.Template(`{"name": {{ f.name | tojson }}, "parameters": {{ f.arguments | tojson }}}`), "Llama 3"},
		{openaitest.Template(`{{ {'name': f.name, 'parameters': f.arguments} | tojson }}`), "Llama 3"},
		{openaitest.Template(`[TOOL_CALLS][{{ {"name": f.name, "arguments": f.arguments} | tojson }}]`), "Mistral list"},
		{openaitest.Template(`[TOOL_CALLS]{{ f.name }}[ARGS]{{ f.arguments | tojson }}`), "Mistral"},
		{openaitest.Template(`<|tool_call|>[{{ {"name": f.name, "arguments": f.arguments} | tojson }}]<|/tool_call|>`), "Phi"},
		{openaitest.Template(`<|tool_call_start|>[{{ f.name }}(` + items + `{{ k }}={{ v | tojson }}{% endfor %})]<|tool_call_end|>`), "LFM2"},
		{openaitest.Template(`<|tool_call_start|>[{{ f.name }}(` + items + `{{ k }}='{{ v }}'{% endfor %})]<|tool_call_end|>`), "LFM2"},
		{openaitest.Template(`<function_calls>{{ f.name }}(` + items + `{{ k }}={{ v | tojson }}{% endfor %})</function_calls>`), "OLMo 3"},
		{openaitest.Template(`<|python_start|>{{ m.content }}<|python_end|>{"name": "{{ f.name }}", "parameters": {{ f.arguments | tojson }}}<|eot|>`), "Llama 3"},
		{openaitest.Template(`[{{ f.name }}(` + items + `{{ k }}={{ v | tojson }}{% endfor %})]`), "Python"},
		{openaitest.Template(`<tool_call>{{ f.name }}` + "\n" + items + `<arg_key>{{ k }}</arg_key>` + "\n" + `<arg_value>{{ v }}</arg_value>{% endfor %}</tool_call>`), "GLM"},
		{openaitest.Template(`<tool_call><function={{ f.name }}>` + items + `<parameter={{ k }}>{{ v }}</parameter>{% endfor %}</function></tool_call>`), "Qwen3-Coder"},
		{openaitest.Template(`<seed:tool_call><function={{ f.name }}>` + items + `<parameter={{ k }}>{{ v }}</parameter>{% endfor %}</function></seed:tool_call>`), "Seed-OSS"},
		{openaitest.Template(`<minimax:tool_call><invoke name="{{ f.name }}">` + items + `<parameter name="{{ k }}">{{ v }}</parameter>{% endfor %}</invoke></minimax:tool_call>`),
			"MiniMax M2"},
		{openaitest.Template(`<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "{{ f.name }}", "parameters": {{ f.arguments | tojson }}}]<|END_ACTION|>`), "Command R7B"},
		{openaitest.Template(`<TOOLCALL>[{{ {"name": f.name, "arguments": f.arguments} | tojson }}]</TOOLCALL>`), "Nemotron"},
		{openaitest.Template(`<function={{ f.name }}>{{ f.arguments | tojson }}</function>`), "Functionary"},
		{openaitest.Template(`<|tool_call>call:{{ f.name + '{' }}` + items + `{{ k }}:<|"|>{{ v }}<|"|>{% endfor %}{{ '}' }}<tool_call|>`), "Gemma 4"},
		{`{% if tools %}List of tools: <|tool_list_start|>{{ tools }}{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}`, "LFM2"},
		{`{% if tools %}use [func_name1(params_name1=params_value1...)]{{ tools }}{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}`, "Python"},
		{`{% if tools %}{{ tools }}{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}`, "JSON"},
		{openaitest.Template(`<call name="{{ f.name }}">{{ f.arguments | tojson }}</call>`), ""},
		{openaitest.Template(`{{ f.name }} {{ f.arguments | tojson }}`), ""},
		{openaitest.Template(`<|channel|>commentary to=functions.{{ f.name }}<|message|>{{ f.arguments | tojson }}<|call|>`), ""},
		{openaitest.Template(`<tool_call>{{ f.name }} with {{ f.arguments.place }}</tool_call>`), ""},
		{`{% for m in messages %}{{ m.content }}{% endfor %}`, ""},
	} {
		template, err := text.NewJinjaTemplate("own", c.template, "", "")
		if err != nil {
			t.Fatal(err)
		}
		if err := m.CheckTemplate(template); err != nil {
			t.Fatal(err)
		}
		got, err := FormatOf(m, template.WithTools())
		refused, ok := errors.AsType[*fault.Error](err)
		switch {
		case c.want == "" && (!ok || refused.Param != "tools"):
			t.Errorf("%s: got %+v, %v, want a refusal", c.template, got, err)
		case c.want != "" && (err != nil || got.name != c.want):
			t.Errorf("%s: got %+v, %v, want %s", c.template, got, err, c.want)
		}
	}
}
