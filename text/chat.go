package text

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/jsonerror"
	"github.com/etrun-go/etrun/internal/modelfile"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// Message is a message of a conversation. Only the models' own templates have a place for more than a role and a content.
type Message struct {
	Role      string // such as "system", "user" and "assistant"
	Content   string
	Reasoning string   // thoughts of the assistant
	Calls     []Call   // of tools, by the assistant
	CallID    string   // of the call that a message of a tool answers
	Name      string   // of the author, such as a tool; without effect in a template that does not read it
	Parts     []Placed // pictures and sounds of the user, in the order of their places
}

// plain reports whether a message has no more than a role, a content and a name.
func (m *Message) plain() bool { return m.Reasoning == "" && len(m.Calls) == 0 && m.CallID == "" }

// Template turns the messages of a conversation into a prompt. It is immutable and safe for concurrent
// use.
type Template struct {
	name   string
	format format
	first  []segment        // before the first message
	shape                   // of each message
	shapes map[string]shape // of those of some roles
	reply  []segment        // where the text of the reply begins
	roles  map[string][]segment
	forms  *thinking                  // nil for a template that does not distinguish them
	own    *own                       // in Jinja; nil for the others
	tools  *Template                  // for conversations with tools; nil for this one
	values map[string]json.RawMessage // of its variables
}

// TemplateError reports a template that cannot be used, or messages that it does not accept.
type TemplateError struct {
	Template string
	Err      error
}

func (e *TemplateError) Error() string {
	if e.Template == "" {
		return fmt.Sprintf("chat template: %v", e.Err)
	}
	return fmt.Sprintf("chat template %q: %v", e.Template, e.Err)
}

// Unwrap returns etrun.ErrInput and the cause.
func (e *TemplateError) Unwrap() []error { return []error{etrun.ErrInput, e.Err} }

// Roles that templates distinguish.
const (
	system    = "system"
	user      = "user"
	assistant = "assistant"
)

// Limits on conversations and templates.
const (
	maxTemplate = 1 << 20
	maxRole     = 64
	maxRendered = 64 << 20
)

// NewTemplate parses a template: a JSON object with
//
//	"begin"    text before the first message
//	"message"  each message: "{<|im_start|>}{role}\n{text}{<|im_end|>}\n"
//	"roles"    what {role} is replaced by: {"user": "user", "assistant": "model"}; other roles are
//	           rejected. Without it any role is allowed, and {role} is its name
//	"system"   a system message for conversations that have none
//	"heading"  text at the beginning of a first system message, which is then never missing
//	"merge"    if true, a system message is put before the text of the next message
//	"alternate"
//	           if true, messages of the user and the assistant alternate, the user's first
//	"trim"     if true, white space at both ends of texts is dropped
//	"thought"  what ends an assistant's thoughts: text of its messages up to there, and the line
//	           feeds that follow, are dropped
//	"reply"    what the reply begins with, in the place of the text of a message
//	"ends"     the control tokens that end a reply, a list
//	"messages" messages of some roles in the place of "message": {"user": "{[INST]}{text}{[/INST]}"}
//	"picture"  a picture, {part}, and what stands around it; without it what the tokenizer's models expect
//	"sound"    a sound, likewise
//
// Only "message" is required. In begin, message, reply and roles, {NAME} is the control token of
// that name, and {{ and }} are braces. Everything else is plain text, even if it looks like a control
// token, so no message can contain one.
//
// A source in Jinja, and the files tokenizer_config.json and chat_template.json, are templates as well: see [NewJinjaTemplate].
func NewTemplate(name, source string) (*Template, error) {
	switch modelfile.Identify([]byte(source)) {
	case modelfile.Jinja:
		return NewJinjaTemplate(name, source, "", "")
	case modelfile.TokenizerConfig, modelfile.ChatTemplate:
		return configTemplate(name, source)
	}
	if len(source) > maxTemplate || !utf8.ValidString(source) {
		err := fmt.Errorf("want valid UTF-8 of at most %d bytes, got %d bytes", maxTemplate, len(source))
		return nil, &TemplateError{name, cmp.Or(foreign(source), err)}
	}
	var f format
	d := json.NewDecoder(strings.NewReader(source))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, &TemplateError{name, cmp.Or(foreign(source), jsonerror.Plain(err))}
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, &TemplateError{name, errors.New("text follows the JSON object")}
	}
	return f.template(name)
}

// foreign returns the error for a file that is not a template in the form of NewTemplate, nil if its kind is not known.
func foreign(source string) error {
	kind := modelfile.Identify([]byte(source))
	switch kind {
	case modelfile.Unknown, modelfile.Template:
		return nil
	}
	return fmt.Errorf("%s, not a chat template; want chat_template.jinja or tokenizer_config.json of the model, "+
		"one of the built-in templates %s, or a file in the JSON form of docs/text.md", kind, strings.Join(Templates(), ", "))
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
			return f.template()
		}
	}
	return nil, &TemplateError{name, fmt.Errorf("no such template; there are %s", strings.Join(Templates(), ", "))}
}

// FindTemplate returns the built-in template whose control tokens the tokenizer has. Families that
// differ only in their default system message are found as "chatml", which has none.
func FindTemplate(tok tokenizer.Tokenizer) (*Template, error) {
	for _, f := range families {
		missing := func(name string) bool { _, ok := tok.ID(name); return !ok }
		if len(f.detect) > 0 && !slices.ContainsFunc(f.detect, missing) {
			return f.template()
		}
	}
	return nil, &TemplateError{"", errors.New("the tokenizer has the control tokens of no built-in template; name one or give a file")}
}

// Name returns the template's name.
func (t *Template) Name() string { return t.name }

// Thinking returns the built-in template of the same models whose replies begin with thoughts, or without. It fails for
// templates that do not distinguish them.
func (t *Template) Thinking(on bool) (*Template, error) {
	for _, v := range []struct{ variable, mention string }{{"enable_thinking", "enable_thinking"}, {"thinking", "thinking is defined"},
		{"thinking", "if thinking"}} { // those of Qwen's, DeepSeek's and Granite's models
		if t.Mentions(v.mention) {
			with := *t
			with.values = map[string]json.RawMessage{v.variable: fmt.Append(nil, on)}
			return &with, nil
		}
	}
	if t.forms == nil {
		return nil, &TemplateError{t.name, errors.New("it has no forms with and without thoughts")}
	}
	if on {
		return NamedTemplate(t.forms.with)
	}
	return NamedTemplate(t.forms.without)
}

// render returns the prompt for a reply as segments. No two adjacent segments are text. If the last message is the
// beginning of the reply, the prompt ends with it.
func (t *Template) render(messages []Message, begun bool) ([]segment, error) {
	last, opening := len(messages)-1, ""
	if begun {
		if last < 1 || messages[last].Role != assistant {
			return nil, &TemplateError{t.name, errors.New("want a last message of the assistant, after another one, to continue it")}
		}
		messages, opening = messages[:last], t.begin(messages[last].Content)
	}
	messages, err := t.arrange(messages)
	if err != nil {
		return nil, err
	}
	p := prompt{segments: slices.Clone(t.first)}
	for _, m := range messages {
		name, err := t.role(m.Role)
		if err != nil {
			return nil, err
		}
		s, own := t.shapes[m.Role]
		if !own {
			s = t.shape
		}
		p.add(s.before, name)
		p.text(m.Content)
		p.add(s.after, name)
	}
	name, err := t.role(assistant)
	if err != nil {
		return nil, err
	}
	s, own := t.shapes[assistant]
	if !own {
		s = t.shape
	}
	p.add(s.before, name)
	p.add(t.reply, nil)
	p.text(opening)
	if p.size > maxRendered {
		return nil, &TemplateError{t.name, fmt.Errorf("a prompt of %d bytes, at most %d are allowed", p.size, maxRendered)}
	}
	return p.segments, nil
}

// arrange returns the messages that are written: with their texts cleaned and the system message in
// its place.
func (t *Template) arrange(messages []Message) ([]Message, error) {
	if len(messages) == 0 {
		return nil, &TemplateError{t.name, errors.New("no messages")}
	}
	list := make([]Message, 0, len(messages)+1)
	if (t.format.System != "" || t.format.Heading != "") && messages[0].Role != system {
		list = append(list, Message{Role: system, Content: t.format.Heading + t.format.System})
	}
	for i, m := range messages {
		if !isRole(m.Role) {
			return nil, &TemplateError{t.name, fmt.Errorf("message %d has the role %.100q, want 1 to %d letters, digits, - and _",
				i, m.Role, maxRole)}
		}
		m.Content = t.clean(&m)
		if i == 0 && m.Role == system {
			m.Content = t.format.Heading + m.Content
		}
		list = append(list, m)
	}
	if t.format.Merge {
		var err error
		if list, err = t.merge(list); err != nil {
			return nil, err
		}
	}
	return list, t.checkOrder(list)
}

// merge puts the text of a first system message before that of the next one.
func (t *Template) merge(list []Message) ([]Message, error) {
	if list[0].Role == system {
		if len(list) == 1 {
			return nil, &TemplateError{t.name, errors.New("a system message only, want a message of the user after it")}
		}
		list[1].Content = list[0].Content + "\n\n" + list[1].Content
		list = list[1:]
	}
	if slices.ContainsFunc(list, func(m Message) bool { return m.Role == system }) {
		return nil, &TemplateError{t.name, errors.New("a system message follows other messages, want it first")}
	}
	return list, nil
}

// checkOrder rejects messages whose roles do not alternate, where they must.
func (t *Template) checkOrder(list []Message) error {
	if !t.format.Alternate {
		return nil
	}
	if list[0].Role == system {
		list = list[1:]
	}
	for i, m := range list {
		if want := [...]string{user, assistant}[i%2]; m.Role != want {
			return &TemplateError{t.name, fmt.Errorf("message %d without the system message is one of the role %q, want %q: roles alternate",
				i, m.Role, want)}
		}
	}
	return nil
}

// role returns the pattern that replaces {role}.
func (t *Template) role(name string) ([]segment, error) {
	if t.roles == nil {
		return []segment{{text: name}}, nil
	}
	list, ok := t.roles[name]
	if !ok {
		return nil, &TemplateError{t.name, fmt.Errorf("the role %.100q, want one of %s",
			name, strings.Join(slices.Sorted(maps.Keys(t.roles)), ", "))}
	}
	return list, nil
}

// clean returns the text of a message. One that is put before another keeps its white space.
func (t *Template) clean(m *Message) string {
	s := m.marked()
	if t.format.Thought != "" && m.Role == assistant {
		if i := strings.LastIndex(s, t.format.Thought); i >= 0 {
			s = strings.TrimLeft(s[i+len(t.format.Thought):], "\n")
		}
	}
	if t.format.Trim && !(t.format.Merge && m.Role == system) {
		s = strings.TrimFunc(s, isSpace)
	}
	return s
}

// begin returns the text with which a reply begins.
func (t *Template) begin(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if t.format.Trim {
		s = strings.TrimFunc(s, isSpace)
	}
	return s
}

// isSpace reports whether templates trim a character: white space and, as in Python, the separators
// of files, groups, records and units.
func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }

func isRole(s string) bool {
	return s != "" && len(s) <= maxRole && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && r != '_' && !('a' <= r && r <= 'z') && !('A' <= r && r <= 'Z') && !('0' <= r && r <= '9')
	})
}

// EncodeChat returns the prompt for the assistant's reply to messages, and the tokens that end the
// reply: see Options.Ends. Text in messages never becomes a control token.
func (m *Model) EncodeChat(t *Template, messages []Message) (prompt, ends []int, err error) {
	return m.EncodeConversation(t, &Conversation{Messages: messages})
}

// EncodeContinued is EncodeChat for a reply that has begun: it begins with the text of the last message, which must be one
// of the assistant.
func (m *Model) EncodeContinued(t *Template, messages []Message) (prompt, ends []int, err error) {
	return m.EncodeConversation(t, &Conversation{Messages: messages, Continue: true})
}

// EncodeConversation is EncodeChat for conversations with tools and other values. A template that is not in Jinja refuses these. A nil
// conversation has no messages.
func (m *Model) EncodeConversation(t *Template, d *Conversation) (prompt, ends []int, err error) {
	if m.tok == nil {
		return nil, nil, errNoTokenizer()
	}
	if d == nil {
		d = new(Conversation)
	}
	rendered, err := m.rendered(t, d)
	if err != nil {
		return nil, nil, err
	}
	if prompt, err = m.encodeSegments(t, rendered, d.parts(), false); err != nil {
		return nil, nil, err
	}
	if t.own != nil {
		return prompt, m.ownEnds(t), nil
	}
	for _, name := range t.format.Ends {
		if id, ok := m.tok.ID(name); ok {
			ends = append(ends, id)
		}
	}
	return prompt, ends, nil
}

// encodeSegments returns the tokens of a prompt with parts, in order. special is whether names of control tokens in texts are those.
func (m *Model) encodeSegments(t *Template, rendered []segment, parts []*Part, special bool) (prompt []int, err error) {
	strip := false
	for _, part := range rendered {
		if part.kind == placed {
			if len(parts) == 0 {
				return nil, &TemplateError{t.name, errors.New("it writes more pictures and sounds than there are")}
			}
			prompt, parts, strip = append(prompt, parts[0].ids...), parts[1:], false
			continue
		}
		if part.kind == control {
			id, ok := m.tok.ID(part.text)
			if !ok {
				return nil, &TemplateError{t.name, fmt.Errorf("the tokenizer does not have the control token %.100q", part.text)}
			}
			prompt, strip = append(prompt, id), m.strips(part.text, id)
			continue
		}
		text := part.text
		if strip {
			text = strings.TrimLeftFunc(text, unicode.IsSpace)
		}
		ids, err := m.tok.Encode(text, special)
		if err != nil {
			return nil, err
		}
		prompt, strip = append(prompt, ids...), false
	}
	if len(parts) > 0 {
		return nil, &TemplateError{t.name, fmt.Errorf("it does not write a %s of the messages", parts[0].medium)}
	}
	return prompt, nil
}

// CheckTemplate reports whether the tokenizer has the control tokens of a template. The error names those that are missing,
// and the built-in templates that fit.
func (m *Model) CheckTemplate(t *Template) error {
	if m.tok == nil {
		return errNoTokenizer()
	}
	if t.own != nil {
		return m.checkOwn(t)
	}
	missing := t.missing(m.tok)
	if len(missing) == 0 {
		return nil
	}
	fit := []string{}
	for i := range families {
		if other, err := families[i].template(); err == nil && len(other.missing(m.tok)) == 0 {
			fit = append(fit, other.name)
		}
	}
	way := "none of the built-in templates fits, give a file"
	if len(fit) > 0 {
		way = "the built-in templates " + strings.Join(fit, ", ") + " fit"
	}
	return &TemplateError{t.name, fmt.Errorf("the tokenizer does not have the control tokens %.300q; %s", missing, way)}
}

// missing returns the control tokens of the template that a tokenizer does not have.
func (t *Template) missing(tok tokenizer.Tokenizer) (names []string) {
	parts := [][]segment{t.first, t.before, t.after, t.reply}
	for _, r := range slices.Sorted(maps.Keys(t.roles)) {
		parts = append(parts, t.roles[r])
	}
	for _, r := range slices.Sorted(maps.Keys(t.shapes)) {
		parts = append(parts, t.shapes[r].before, t.shapes[r].after)
	}
	for _, s := range slices.Concat(parts...) {
		if _, ok := tok.ID(s.text); s.kind == control && !ok && !slices.Contains(names, s.text) {
			names = append(names, s.text)
		}
	}
	return names
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
