package text

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etrun-go/etrun"
)

// Controls lists the control tokens.
func (b *byteTokenizer) Controls() []string { return b.controls }

const ownTemplate = `{{ bos_token }}{%- for m in messages %}{%- set c = m.content %}` +
	`{%- if m.role == 'assistant' and '</think>' in c %}{%- set c = c.split('</think>')[-1] %}{%- endif %}` +
	`{{- '<|im_start|>' + m.role + '\n' + c }}{%- for k in m.tool_calls or [] %}{{- k.function | tojson }}{%- endfor %}{{- '<|im_end|>\n' }}{%- endfor %}` +
	`{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- if enable_thinking is false %}{{- '<think>off' }}{%- endif %}{%- endif %}`

func ownModel(t *testing.T) *Model {
	t.Helper()
	f := fakeDefault()
	f.vocabulary, f.meta["get_vocab_size"] = firstByte+256, firstByte+256
	return f.load(t, &byteTokenizer{controls: []string{"<|im_start|>", "<|im_end|>", "<think>", "</think>", "<bos>"}})
}

// Control tokens come from the template only; the ends of a reply are those that it writes.
func TestOwnTemplate(t *testing.T) {
	m := ownModel(t)
	tmpl, err := NewJinjaTemplate("own", ownTemplate, "<bos>", "<|im_end|>")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.CheckTemplate(tmpl); err != nil {
		t.Fatal(err)
	}
	call := []Call{{ID: "i", Name: "<bos>", Arguments: json.RawMessage(`{"a": "<|im_end|>"}`)}}
	off, err := tmpl.Thinking(false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		template *Template
		d        Conversation
		want     string
	}{
		{tmpl, Conversation{Messages: []Message{{Role: user, Content: "a<|im_end|>\uFDD0<bo"}}},
			"[<bos>][<|im_start|>]user\na<|im_end|><bo[<|im_end|>]\n[<|im_start|>]assistant\n"},
		{off, Conversation{Messages: []Message{{Role: user, Content: "</think>"}}},
			"[<bos>][<|im_start|>]user\n</think>[<|im_end|>]\n[<|im_start|>]assistant\n[<think>]off"},
		{tmpl, Conversation{Messages: []Message{{Role: user, Content: "q"}, {Role: assistant, Content: "<think>t</think>r<|im_end|>", Calls: call}}},
			"[<bos>][<|im_start|>]user\nq[<|im_end|>]\n[<|im_start|>]assistant\nr<|im_end|>" +
				`{"name": "<bos>", "arguments": {"a": "<|im_end|>"}}` + "[<|im_end|>]\n[<|im_start|>]assistant\n"},
		{tmpl, Conversation{Messages: []Message{{Role: user, Content: "q"}, {Role: assistant, Content: "Once "}}, Continue: true},
			"[<bos>][<|im_start|>]user\nq[<|im_end|>]\n[<|im_start|>]assistant\nOnce "},
	} {
		prompt, ends, err := m.EncodeConversation(c.template, &c.d)
		if err != nil {
			t.Errorf("%q: %v", c.want, err)
			continue
		}
		if got := shown(m, prompt); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
		if id, _ := m.tok.ID("<|im_end|>"); !slices.Equal(ends, []int{id}) {
			t.Errorf("ends %d, want %d", ends, id)
		}
	}
}

// shown writes tokens with control tokens in brackets.
func shown(m *Model, ids []int) string {
	var b strings.Builder
	for _, id := range ids {
		if id < firstByte {
			b.WriteString("[" + m.tok.(*byteTokenizer).controls[id] + "]")
		} else {
			b.WriteByte(byte(id - firstByte))
		}
	}
	return b.String()
}

// Files of a model are templates, or errors that say what is wanted instead.
func TestTemplateFiles(t *testing.T) {
	m := ownModel(t)
	for source, want := range map[string]string{
		ownTemplate: "",
		`{"chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}", "bos_token": {"content": "<bos>"}, "eos_token": "<|im_end|>"}`:        "",
		`{"chat_template": [{"name": "tool_use", "template": "x{{ 1 / 0 }}"}, {"name": "default", "template": "{{ 1 }}"}], "eos_token": "<|im_end|>"}`: "",
		`{"tokenizer_class": "X"}`: "no chat_template",
		`{"chat_template": [{"name": "a", "template": "x"}, {"name": "b", "template": "y"}], "eos_token": "e"}`: "none of which is named default",
		`{"chat_template": "{% include 'x' %}", "bos_token": "a"}`:                                              "include",
		`{"chat_template": "{{ 1 }}", "eos_token": "<none>", "bos_token": null}`:                                "<none>",
		"{{ raise_exception('no') }}":                       "no",
		"{% for x in messages %}":                           "endfor",
		`{"chat_template": 7, "eos_token": "x"}`:            "chat_template",
		`{"model": {}, "added_tokens": [], "x": "{{ 1 }}"}`: "tokenizer.json",
	} {
		tmpl, err := NewTemplate("file", source)
		if err == nil {
			err = m.CheckTemplate(tmpl)
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, etrun.ErrInput)) {
			t.Errorf("%s: got %v, want %q", source, err, want)
		}
	}
}

// Templates write the time of the request.
func TestTemplateTime(t *testing.T) {
	defer func(f func() time.Time) { now = f }(now)
	now = func() time.Time { return time.Date(2030, 2, 3, 0, 0, 0, 0, time.UTC) }
	m := ownModel(t)
	tmpl, err := NewJinjaTemplate("date", "{{ strftime_now('%d %b %Y') }}", "", "")
	if err != nil {
		t.Fatal(err)
	}
	prompt, _, err := m.EncodeChat(tmpl, []Message{{Role: user, Content: "x"}})
	if got := shown(m, prompt); err != nil || got != "03 Feb 2030" {
		t.Errorf("got %q, %v", got, err)
	}
}

// Characters that begin like control tokens stay whole, whatever the template does with them, and names that no prompt can have do
// no harm.
func TestNamesOfControls(t *testing.T) {
	m := ownModel(t)
	m.controls = controlNames(&byteTokenizer{controls: []string{"", "\xe2", "▁<PRE>", "▁", "<bos>"}})
	for _, s := range []string{"“é” ▁<PRE> ▁ x", "▁", "<BOS>", strings.Repeat("▁", 9)} {
		tmpl, err := NewJinjaTemplate("own", `{{ messages[0].content | upper }}{{ messages[0].content | tojson }}`, "", "")
		if err != nil {
			t.Fatal(err)
		}
		parts, err := m.renderOwn(tmpl, &Conversation{Messages: []Message{{Role: user, Content: s}}})
		if want := strings.ToUpper(s) + `"` + s + `"`; err != nil || len(parts) != 1 || parts[0].text != want {
			t.Errorf("%q: got %v, %v, want %q", s, parts, err, want)
		}
	}
	var list []string
	for i := range 2 * maxLiterals {
		list = append(list, "'<"+strings.Repeat("x", i)+"'")
	}
	tmpl, err := NewJinjaTemplate("own", "{{ ["+strings.Join(list, ",")+"] | length }}", "", "")
	var failed *TemplateError
	if err == nil {
		_, err = m.renderOwn(tmpl, &Conversation{Messages: []Message{{Role: user, Content: "x"}}})
	}
	if !errors.As(err, &failed) {
		t.Errorf("many strings: got %v, want a *TemplateError", err)
	}
}

// Templates of models for text and pictures read contents as lists of parts, for some roles or all: no text is lost.
func TestTemplatesOfParts(t *testing.T) {
	m := ownModel(t)
	parts := `{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}{% endif %}{% endfor %}`
	chat := &Conversation{Messages: []Message{{Role: system, Content: "be"}, {Role: user, Content: "hi"},
		{Role: assistant, Content: "so", Calls: []Call{{ID: "123456789", Name: "f", Arguments: json.RawMessage("{}")}}},
		{Role: "tool", Content: "res", CallID: "123456789"}, {Role: user, Content: "x"}, {Role: assistant, Content: "beg"}}, Continue: true}
	for source, want := range map[string]string{
		`{% for m in messages %}{{ m.role[0] }}` + parts + `{% endfor %}`:                                                                     "sbeuhiasotresuxabeg",
		`{% for m in messages %}{{ m.role[0] }}{{ m.content }}{% endfor %}`:                                                                   "sbeuhiasotresuxabeg",
		`{% for m in messages %}{{ m.role[0] }}{% if m.role == 'user' %}` + parts + `{% else %}{{ m.content }}{% endif %}{% endfor %}`:        "sbeuhiasotresuxabeg",
		`{% for m in messages %}{{ m.role[0] }}{% if m.content is string %}{{ m.content }}{% else %}` + parts + `{% endif %}{% endfor %}`:     "sbeuhiasotresuxabeg",
		`{% for m in messages %}{{ m.role[0] }}{{ m.content[0].text if m.content is not string else m.content | upper | lower }}{% endfor %}`: "sbeuhiasotresuxabeg",
		`{% for m in messages %}{{ m.role[0] }}{{ m.content[0]['text'] if m.role != 'tool' }}{% endfor %}`:                                    "sbeuhiasotuxabeg",
	} {
		tmpl, err := NewJinjaTemplate("own", source, "", "")
		if err == nil {
			err = m.CheckTemplate(tmpl)
		}
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		got, err := m.RenderConversation(tmpl, chat)
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", source, got, err, want)
		}
	}
	tmpl, err := NewJinjaTemplate("own", `{% for m in messages %}{{ m.role }}{% if m.content.nothing %}{{ m.content }}{% endif %}{% endfor %}`, "", "")
	var failed *TemplateError
	if err == nil {
		err = m.CheckTemplate(tmpl)
	}
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "writes the text of no message") {
		t.Errorf("a template without texts: got %v", err)
	}
}

// A model can have a template of its own for conversations with tools.
func TestNamedTemplates(t *testing.T) {
	m := ownModel(t)
	tmpl, err := NewTemplate("file", `{"chat_template": [{"name": "default", "template": "{% for m in messages %}a{{ m.content }}{% endfor %}{{ x }}"},
		{"name": "tool_use", "template": "{% for m in messages %}b{{ m.content }}{% endfor %}{{ x }}{{ tools | tojson }}"}], "eos_token": "<|im_end|>"}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ tools, want string }{{"", "aq1"}, {"[]", "bq1[]"}} {
		d := &Conversation{Messages: []Message{{Role: user, Content: "q"}}, Tools: json.RawMessage(c.tools),
			Values: map[string]json.RawMessage{"x": json.RawMessage("1")}}
		if got, err := m.RenderConversation(tmpl, d); err != nil || got != c.want {
			t.Errorf("tools %q: got %q, %v, want %q", c.tools, got, err, c.want)
		}
	}
	if !tmpl.WithTools().Mentions("tools") || tmpl.Mentions("tools") {
		t.Errorf("want the template tool_use for tools")
	}
}
