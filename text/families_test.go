package text

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// familyTemplates are templates that write messages with calls as those of the families of models do, reduced to that.
var familyTemplates = []struct {
	name, source string
	controls     []string
	want         string
	ends         string
}{
	{"Qwen3-Coder", `{% for message in messages %}{{- '<|im_start|>' + message.role }}
{%- if message.content is string and message.content | trim | length > 0 %}{{- '\n' + message.content | trim + '\n' }}{% else %}{{- '\n' }}{% endif %}
{%- for tool_call in message.tool_calls or [] %}
{%- if tool_call.function is defined %}{%- set tool_call = tool_call.function %}{%- endif %}
{{- '\n<tool_call>\n<function=' + tool_call.name + '>\n' }}
{%- for args_name, args_value in tool_call.arguments | items %}
{{- '<parameter=' + args_name + '>\n' }}
{%- set args_value = args_value | tojson | safe if args_value is mapping or (args_value is sequence and args_value is not string) else args_value | string %}
{{- args_value }}{{- '\n</parameter>\n' }}
{%- endfor %}{{- '</function>\n</tool_call>' }}{%- endfor %}{{- '<|im_end|>\n' }}{% endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{% endif %}`,
		[]string{"<|im_start|>", "<|im_end|>", "<tool_call>"},
		"[<|im_start|>]user\nq\n[<|im_end|>]\n[<|im_start|>]assistant\n\n[<tool_call>]\n<function=f>\n<parameter=town>\nRo<tool_call>me\n</parameter>\n" +
			"<parameter=n>\n[1, 2]\n</parameter>\n</function>\n</tool_call>[<|im_end|>]\n[<|im_start|>]tool\nr\n[<|im_end|>]\n[<|im_start|>]assistant\n", "<|im_end|>"},
	{"DeepSeek V3", `{% for message in messages %}{%- if message['role'] == 'user' %}{{ '<｜User｜>' + message['content'] }}{% endif %}
{%- if message['role'] == 'assistant' and message['content'] is none %}{% for tool in message['tool_calls'] %}
{{- '<｜Assistant｜><｜tool▁calls▁begin｜>' + tool['type'] + '<｜tool▁sep｜>' + tool['function']['name'] + '\n` + "```json" + `\n' + tool['function']['arguments'] + '\n` + "```" + `' }}
{%- endfor %}{% elif message['role'] == 'assistant' %}{{ '<｜Assistant｜>' + message['content'] + '<｜end▁of▁sentence｜>' }}{% endif %}
{%- if message['role'] == 'tool' %}{{ message['content'] }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<｜Assistant｜>' }}
{%- if not thinking is defined %}{% set thinking = false %}{% endif %}{% if thinking %}{{ '<think>' }}{% else %}{{ '</think>' }}{% endif %}{% endif %}`,
		[]string{"<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>", "<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>", "<think>", "</think>"},
		"[<｜User｜>]q[<｜Assistant｜>][<｜tool▁calls▁begin｜>]function[<｜tool▁sep｜>]f\n```json\n{\"town\": \"Ro<tool_call>me\", \"n\": [1, 2]}\n```r[<｜Assistant｜>][</think>]",
		"<｜end▁of▁sentence｜>"},
	{"Gemma 4", `{%- macro format_argument(argument) -%}{%- if argument is string -%}{{- '<|"|>' + argument + '<|"|>' -}}
{%- elif argument is boolean -%}{{- 'true' if argument else 'false' -}}
{%- elif argument is sequence -%}{{- '[' -}}{%- for item in argument -%}{{- format_argument(item) -}}{%- if not loop.last -%},{%- endif -%}{%- endfor -%}{{- ']' -}}
{%- else -%}{{- argument -}}{%- endif -%}{%- endmacro -%}
{%- for message in messages -%}{{- '<|turn>' + ('model' if message['role'] == 'assistant' else message['role']) + '\n' -}}
{%- set thinking_text = message.get('reasoning') or message.get('reasoning_content') -%}
{%- if thinking_text and message.get('tool_calls') -%}{{- '<|channel>thought\n' + thinking_text + '\n<channel|>' -}}{%- endif -%}
{%- for tool_call in message.get('tool_calls') or [] -%}{%- set function = tool_call['function'] -%}{{- '<|tool_call>call:' + function['name'] + '{' -}}
{%- if function['arguments'] is mapping -%}{%- set ns = namespace(found=false) -%}{%- for key, value in function['arguments'] | dictsort -%}
{%- if ns.found %},{% endif -%}{%- set ns.found = true -%}{{- key -}}:{{- format_argument(value) -}}{%- endfor -%}{%- endif -%}{{- '}<tool_call|>' -}}{%- endfor -%}
{{- message['content'] -}}{{- '<turn|>\n' -}}{%- endfor -%}{%- if add_generation_prompt -%}{{- '<|turn>model\n' -}}
{%- if not enable_thinking | default(false) -%}{{- '<|channel>thought\n<channel|>' -}}{%- endif -%}{%- endif -%}`,
		[]string{"<|turn>", "<turn|>", "<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", `<|"|>`},
		"[<|turn>]user\nq[<turn|>]\n[<|turn>]model\n[<|channel>]thought\nwhy\n[<channel|>][<|tool_call>]call:f{n:[1,2],town:[<|\"|>]Ro<tool_call>me[<|\"|>]}[<tool_call|>]" +
			"[<turn|>]\n[<|turn>]tool\nr[<turn|>]\n[<|turn>]model\n[<|channel>]thought\n[<channel|>]", "<turn|>"},
}

// Past calls, results and thoughts are written as the families' templates do; names of control tokens in them stay text.
func TestFamilyTemplates(t *testing.T) {
	for _, c := range familyTemplates {
		f := fakeDefault()
		f.vocabulary, f.meta["get_vocab_size"] = firstByte+256, firstByte+256
		m := f.load(t, &byteTokenizer{controls: c.controls})
		tmpl, err := NewJinjaTemplate(c.name, c.source, "", "")
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		call := Call{ID: "i", Name: "f", Arguments: json.RawMessage(`{"town": "Ro<tool_call>me", "n": [1, 2]}`)}
		prompt, ends, err := m.EncodeConversation(tmpl, &Conversation{Messages: []Message{{Role: user, Content: "q"},
			{Role: assistant, Reasoning: "why", Calls: []Call{call}}, {Role: "tool", Content: "r", CallID: "i"}}})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		begun := &Conversation{Messages: []Message{{Role: user, Content: "q"}, {Role: assistant, Calls: []Call{call}}}, Continue: true}
		if _, _, err := m.EncodeConversation(tmpl, begun); err != nil {
			t.Errorf("%s: a reply that begins with calls: %v", c.name, err)
		}
		if got := shown(m, prompt); got != c.want {
			t.Errorf("%s: got %q\nwant %q", c.name, got, c.want)
		}
		call.Arguments = json.RawMessage(`"{\"town\": \"Os"`) // a reply that was cut
		prompt, _, err = m.EncodeConversation(tmpl, &Conversation{Messages: []Message{{Role: user, Content: "q"},
			{Role: assistant, Calls: []Call{call}}, {Role: "tool", Content: "r", CallID: "i"}}})
		if got := shown(m, prompt); err != nil || !strings.Contains(got, `{"town": "Os`) {
			t.Errorf("%s: arguments that were cut: got %q, %v", c.name, got, err)
		}
		if id, _ := m.tok.ID(c.ends); !slices.Contains(ends, id) {
			t.Errorf("%s: ends %d, want %d among them", c.name, ends, id)
		}
		for _, on := range []bool{false, true} {
			if c.name == "Qwen3-Coder" {
				if _, err := tmpl.Thinking(on); err == nil {
					t.Errorf("%s: it has thoughts", c.name)
				}
				continue
			}
			with, err := tmpl.Thinking(on)
			if err != nil {
				t.Fatal(err)
			}
			a, _, err := m.EncodeChat(with, []Message{{Role: user, Content: "q"}})
			b, _, err2 := m.EncodeChat(tmpl, []Message{{Role: user, Content: "q"}})
			if err != nil || err2 != nil || slices.Equal(a, b) == on {
				t.Errorf("%s: thinking %v: %q, by default %q", c.name, on, shown(m, a), shown(m, b))
			}
		}
	}
}
