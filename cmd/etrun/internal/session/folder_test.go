package session

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// The template of a folder is that of chat_template.jinja, or else of tokenizer_config.json. Each file that is read is checked.
func TestFolderTemplate(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string // the file of the template; empty for none
		fails bool
	}{
		"none":      {map[string]string{"tokenizer.json": "{}"}, "", false},
		"config":    {map[string]string{"tokenizer_config.json": `{"chat_template":"{{ 1 }}","eos_token":"e"}`}, "tokenizer_config.json", false},
		"no member": {map[string]string{"tokenizer_config.json": `{"eos_token":"e"}`}, "", false},
		"both": {map[string]string{"chat_template.jinja": "{{ 2 }}", "tokenizer_config.json": `{"chat_template":"{% x %}","eos_token":{"content":"e"}}`},
			"chat_template.jinja", false},
		"processor": {map[string]string{"tokenizer_config.json": `{"eos_token":"e"}`, "chat_template.json": `{"chat_template":"{{ 1 }}"}`},
			"chat_template.json", false},
		"tools": {map[string]string{"chat_template.jinja": "{{ 2 }}", "additional_chat_templates/tool_use.jinja": "{{ 3 }}"}, "chat_template.jinja", false},
		"tools not supported": {map[string]string{"chat_template.jinja": "{{ 2 }}", "additional_chat_templates/tool_use.jinja": "{% include 'x' %}"},
			"", true},
		"no JSON":       {map[string]string{"tokenizer_config.json": `{`}, "", true},
		"not supported": {map[string]string{"chat_template.jinja": "{% include 'x' %}"}, "", true},
	} {
		folder := t.TempDir()
		for file, text := range c.files {
			path := filepath.Join(folder, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		checked := 0
		tmpl, err := FolderTemplate(t.Context(), folder, func(string, []byte) error { checked++; return nil })
		got := ""
		if tmpl != nil {
			got = filepath.Base(tmpl.Name())
		}
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
		}
		if _, ok := c.files["tokenizer.json"]; !ok && checked != len(c.files) {
			t.Errorf("%s: %d files were checked, want %d", name, checked, len(c.files))
		}
		if tools := c.files["additional_chat_templates/tool_use.jinja"] != "" && !c.fails; err == nil && tmpl != nil && tools != (tmpl.WithTools() != tmpl) {
			t.Errorf("%s: got another template for tools: %v, want %v", name, !tools, tools)
		}
		failed := errors.New("no signature")
		if _, err := FolderTemplate(t.Context(), folder, func(string, []byte) error { return failed }); checked > 0 && !errors.Is(err, failed) {
			t.Errorf("%s: got %v, want %v", name, err, failed)
		}
	}
	if tmpl, err := FolderTemplate(t.Context(), filepath.Join(t.TempDir(), "tokenizer.json"), nil); tmpl != nil || err != nil {
		t.Errorf("a file: got %v, %v", tmpl, err)
	}
}
