package text

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"text/template"
	"unicode"
	"unicode/utf8"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// Message is a message of a dialogue.
type Message struct {
	Role    string // such as "system", "user" and "assistant"
	Content string
}

// Template turns the messages of a dialogue into a prompt. It is immutable and safe for concurrent
// use.
type Template struct {
	name string
	tree *template.Template
	ends []string // control tokens that end a reply
}

// TemplateError reports a template that cannot be used, or messages that it does not accept.
type TemplateError struct {
	Template string
	Err      error
}

func (e *TemplateError) Error() string { return fmt.Sprintf("chat template %q: %v", e.Template, e.Err) }

// Unwrap returns etrun.ErrInput and the cause.
func (e *TemplateError) Unwrap() []error { return []error{etrun.ErrInput, e.Err} }

// mark separates control tokens from text in what a template writes: token NAME is written as mark
// NAME mark. It is not valid UTF-8; messages and templates are, so that none of them contains it.
const mark = "\xff"

// Limits on dialogues and templates.
const (
	maxTemplate = 1 << 20
	maxRole     = 64
	maxRendered = 64 << 20
)

// NewTemplate parses a template in the language of Go's package text/template. Its data is a struct
// with
//
//	Messages []Message // of the dialogue
//	Reply    bool      // write the header of the assistant's reply after the messages
//
// and its functions, besides those of the language, are
//
//	token "<|eot_id|>"  the control token of that name
//	role "user"         the control token "<|user|>"; also for system, assistant and tool
//	trim .Content       the text without white space at both ends
//	fail "text"         rejects the messages
//
// All else is text, also what looks like a control token: no message can contain one. A template
// {{define "ends"}}<|eot_id|> <|end_of_text|>{{end}} lists the control tokens that end a reply,
// separated by spaces.
func NewTemplate(name, source string) (*Template, error) {
	t := &Template{name: name}
	if len(source) > maxTemplate || !utf8.ValidString(source) {
		return nil, &TemplateError{name, fmt.Errorf("want valid UTF-8 of at most %d bytes, got %d bytes", maxTemplate, len(source))}
	}
	var err error
	if t.tree, err = template.New(name).Funcs(functions).Option("missingkey=error").Parse(source); err != nil {
		return nil, &TemplateError{name, err}
	}
	if ends := t.tree.Lookup("ends"); ends != nil {
		var out limited
		if err := ends.Execute(&out, nil); err != nil {
			return nil, &TemplateError{name, err}
		}
		t.ends = strings.Fields(out.String())
	}
	return t, nil
}

var functions = template.FuncMap{
	"token": func(name string) string { return mark + name + mark },
	"role":  roleToken,
	"trim":  strings.TrimSpace,
	"fail":  func(text string) (string, error) { return "", errors.New(text) },
}

// roleToken returns the control token of a role. Others could be names of other control tokens.
func roleToken(name string) (string, error) {
	if !slices.Contains([]string{"system", "user", "assistant", "tool"}, name) {
		return "", fmt.Errorf("unknown role %q", name)
	}
	return mark + "<|" + name + "|>" + mark, nil
}

// limited is a buffer of at most maxRendered bytes.
type limited struct{ strings.Builder }

func (l *limited) Write(b []byte) (int, error) {
	if l.Len()+len(b) > maxRendered {
		return 0, fmt.Errorf("the prompt exceeds %d bytes", maxRendered)
	}
	return l.Builder.Write(b)
}

// Templates returns the names of the built-in templates.
func Templates() (names []string) {
	for _, f := range families {
		names = append(names, f.name)
	}
	return names
}

// NamedTemplate returns a built-in template: see [Templates].
func NamedTemplate(name string) (*Template, error) {
	for _, f := range families {
		if f.name == name {
			return NewTemplate(f.name, f.source)
		}
	}
	return nil, &TemplateError{name, fmt.Errorf("no such template; there are %s", strings.Join(Templates(), ", "))}
}

// FindTemplate returns the built-in template whose control tokens the tokenizer has. Some families
// differ only in the system message that they put before messages without one: they are found as
// "chatml", which puts none.
func FindTemplate(tok tokenizer.Tokenizer) (*Template, error) {
	for _, f := range families {
		missing := func(name string) bool { _, ok := tok.ID(name); return !ok }
		if len(f.detect) > 0 && !slices.ContainsFunc(f.detect, missing) {
			return NewTemplate(f.name, f.source)
		}
	}
	return nil, &TemplateError{"", errors.New("the tokenizer has the control tokens of no built-in template; name one or give a file")}
}

// Name returns the template's name.
func (t *Template) Name() string { return t.name }

// render writes the messages with marked control tokens.
func (t *Template) render(messages []Message) (string, error) {
	clean := make([]Message, len(messages))
	for i, m := range messages {
		if !isRole(m.Role) {
			return "", &TemplateError{t.name,
				fmt.Errorf("message %d has the role %.100q, want 1 to %d letters, digits, - and _", i, m.Role, maxRole)}
		}
		clean[i] = Message{m.Role, strings.ToValidUTF8(m.Content, "\uFFFD")}
	}
	if len(messages) == 0 {
		return "", &TemplateError{t.name, errors.New("no messages")}
	}
	var out limited
	err := t.tree.Execute(&out, struct {
		Messages []Message
		Reply    bool
	}{clean, true})
	if err != nil {
		return "", &TemplateError{t.name, err}
	}
	return out.String(), nil
}

func isRole(s string) bool {
	return s != "" && len(s) <= maxRole && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && r != '_' && !('a' <= r && r <= 'z') && !('A' <= r && r <= 'Z') && !('0' <= r && r <= '9')
	})
}

// EncodeChat returns the prompt for the assistant's reply to messages, and the tokens that end the
// reply: see Options.Ends. Text in messages never becomes a control token.
func (m *Model) EncodeChat(t *Template, messages []Message) (prompt, ends []int, err error) {
	if m.tok == nil {
		return nil, nil, errNoTokenizer()
	}
	rendered, err := t.render(messages)
	if err != nil {
		return nil, nil, err
	}
	strip := false
	for i, part := range strings.Split(rendered, mark) {
		switch {
		case i%2 == 1:
			id, ok := m.tok.ID(part)
			if !ok {
				return nil, nil, &TemplateError{t.name, fmt.Errorf("the tokenizer does not have the control token %.100q", part)}
			}
			prompt, strip = append(prompt, id), m.strips(part, id)
		case part != "":
			if strip {
				part = strings.TrimLeftFunc(part, unicode.IsSpace)
			}
			ids, err := m.tok.Encode(part, false)
			if err != nil {
				return nil, nil, err
			}
			prompt = append(prompt, ids...)
		}
	}
	for _, name := range t.ends {
		if id, ok := m.tok.ID(name); ok {
			ends = append(ends, id)
		}
	}
	return prompt, ends, nil
}

// strips reports whether the tokenizer drops white space after a control token.
func (m *Model) strips(name string, id int) bool {
	ids, err := m.tok.Encode(name+"\n", true)
	return err == nil && len(ids) == 1 && ids[0] == id
}

// Chat generates the assistant's reply to messages: it is [Session.GenerateTokens] for the prompt
// and the ends of [Model.EncodeChat].
func (s *Session) Chat(ctx context.Context, t *Template, messages []Message, o Options) iter.Seq2[Piece, error] {
	prompt, ends, err := s.model.EncodeChat(t, messages)
	if err != nil {
		return func(yield func(Piece, error) bool) { yield(Piece{}, err) }
	}
	o.Ends = append(slices.Clone(o.Ends), ends...)
	return s.GenerateTokens(ctx, prompt, o)
}
