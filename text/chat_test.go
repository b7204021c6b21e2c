package text

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun"
)

// byteTokenizer has a token per byte, from id 100 on, and control tokens before.
type byteTokenizer struct {
	controls []string
	strips   bool // white space after control tokens, as some tokenizers do
}

const firstByte = 100

func (b *byteTokenizer) Encode(s string, special bool) (ids []int, err error) {
	for s != "" {
		i := -1
		if special {
			i = slices.IndexFunc(b.controls, func(c string) bool { return strings.HasPrefix(s, c) })
		}
		if i < 0 {
			ids, s = append(ids, firstByte+int(s[0])), s[1:]
			continue
		}
		ids, s = append(ids, i), strings.TrimPrefix(s, b.controls[i])
		if b.strips {
			s = strings.TrimLeft(s, " \n")
		}
	}
	return ids, nil
}

func (b *byteTokenizer) Append(to []byte, id int) ([]byte, error) {
	switch {
	case id < 0 || id >= b.Size():
		return to, fmt.Errorf("no token %d", id)
	case id >= firstByte:
		return append(to, byte(id-firstByte)), nil
	}
	return to, nil
}

func (b *byteTokenizer) Size() int { return firstByte + 256 }

func (b *byteTokenizer) ID(token string) (int, bool) {
	i := slices.Index(b.controls, token)
	return i, i >= 0
}

func (b *byteTokenizer) BOS() int   { return -1 }
func (b *byteTokenizer) EOS() []int { return nil }

// show writes tokens with control tokens in brackets.
func (b *byteTokenizer) show(ids []int) string {
	var out strings.Builder
	for _, id := range ids {
		if id < firstByte {
			fmt.Fprintf(&out, "[%s]", b.controls[id])
		} else {
			out.WriteByte(byte(id - firstByte))
		}
	}
	return out.String()
}

// TestStrips checks that white space after a control token is dropped where the tokenizer does so.
func TestStrips(t *testing.T) {
	tok := &byteTokenizer{controls: phi3Controls, strips: true}
	tmpl, err := NamedTemplate("phi3")
	if err != nil {
		t.Fatal(err)
	}
	prompt, _, err := (&Model{tok: tok}).EncodeChat(tmpl, []Message{{Role: "user", Content: "Hi"}})
	if got, want := tok.show(prompt), "[<|user|>]Hi[<|end|>][<|assistant|>]"; got != want || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// TestTemplateErrors checks what templates reject.
func TestTemplateErrors(t *testing.T) {
	for _, c := range []struct {
		name, source string
		messages     []Message
		parses       bool
	}{
		{"no JSON", "message", nil, false},
		{"not UTF-8", "\xff", nil, false},
		{"unknown field", `{"message": "{text}", "nothing": 1}`, nil, false},
		{"more behind it", `{"message": "{text}"} {}`, nil, false},
		{"no text", `{"message": "{role}"}`, nil, false},
		{"text twice", `{"message": "{text}{text}"}`, nil, false},
		{"a brace", `{"message": "{text}}"}`, nil, false},
		{"an open brace", `{"message": "{text}{<|end|>"}`, nil, false},
		{"an empty name", `{"message": "{text}{}"}`, nil, false},
		{"a brace in a role", `{"message": "{role}{text}", "roles": {"user": "{"}}`, nil, false},
		{"unknown control token", `{"message": "{<|what|>}{text}"}`, []Message{{Role: "user", Content: "x"}}, true},
		{"no messages", `{"message": "{text}"}`, nil, true},
		{"role", `{"message": "{text}"}`, []Message{{Role: "user\n", Content: "x"}}, true},
		{"role that is not listed", `{"message": "{role}{text}", "roles": {"assistant": "a"}}`, []Message{{Role: "user", Content: "x"}}, true},
		{"second system message", `{"message": "{role}{text}", "merge": true}`, []Message{{Role: "system", Content: "x"}, {Role: "system", Content: "x"}}, true},
		{"system message alone", `{"message": "{role}{text}", "merge": true}`, []Message{{Role: "system", Content: "x"}}, true},
		{"two of the user", `{"message": "{role}{text}", "alternate": true}`, []Message{{Role: "system", Content: "x"}, {Role: "user", Content: "x"}, {Role: "user", Content: "x"}}, true},
		{"the assistant first", `{"message": "{role}{text}", "alternate": true}`, []Message{{Role: "assistant", Content: "x"}}, true},
		{"a brace in the reply", `{"message": "{role}{text}", "reply": "}"}`, nil, false},
		{"too large", strings.Repeat("x", maxTemplate+1), nil, false},
	} {
		tmpl, err := NewTemplate(c.name, c.source)
		if (err == nil) != c.parses {
			t.Errorf("%s: parsed with %v", c.name, err)
		}
		if err == nil {
			_, _, err = (&Model{tok: &byteTokenizer{controls: phi3Controls}}).EncodeChat(tmpl, c.messages)
		}
		if e, ok := errors.AsType[*TemplateError](err); !ok || e.Template != c.name || !errors.Is(err, etrun.ErrInput) {
			t.Errorf("%s: got %v, want a TemplateError", c.name, err)
		}
	}
}

// TestTemplateFile checks a template of a file with braces and text around the placeholders.
func TestTemplateFile(t *testing.T) {
	tmpl, err := NewTemplate("file", `{"begin": "{{{<|system|>}}}", "message": "<{role}>{text}</{role}>{<|end|>}", "roles": {"user": "U", "assistant": "{<|assistant|>}A"}}`)
	if err != nil {
		t.Fatal(err)
	}
	tok := &byteTokenizer{controls: phi3Controls}
	prompt, ends, err := (&Model{tok: tok}).EncodeChat(tmpl, []Message{{Role: "user", Content: "{role} {<|end|>}"}})
	want := "{[<|system|>]}<U>{role} {<|end|>}</U>[<|end|>]<[<|assistant|>]A>"
	if got := tok.show(prompt); got != want || err != nil || len(ends) > 0 {
		t.Errorf("got %q, ends %d, %v, want %q", got, ends, err, want)
	}
}

// TestDocumentedTemplate parses the template of docs/text.md.
func TestDocumentedTemplate(t *testing.T) {
	page, err := os.ReadFile("../docs/text.md")
	if err != nil {
		t.Fatal(err)
	}
	_, source, _ := strings.Cut(string(page), "```json\n")
	source, _, _ = strings.Cut(source, "```")
	tmpl, err := NewTemplate("documented", source)
	if err != nil {
		t.Fatal(err)
	}
	tok := &byteTokenizer{controls: chatMLControls}
	prompt, ends, err := (&Model{tok: tok}).EncodeChat(tmpl, []Message{{Role: "system", Content: "A"}, {Role: "user", Content: "B"}})
	want := "[<|im_start|>]system\nA[<|im_end|>]\n[<|im_start|>]user\nB[<|im_end|>]\n[<|im_start|>]assistant\n"
	if got := tok.show(prompt); got != want || err != nil || len(ends) != 1 {
		t.Errorf("got %q, ends %d, %v, want %q", got, ends, err, want)
	}
	for _, name := range Templates() {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the page does not name the template %s", name)
		}
	}
}
