package text

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/etrun-go/etrun/internal/jinja"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// Call is a call of a tool in a message of the assistant.
type Call struct {
	ID        string
	Name      string
	Arguments json.RawMessage // an object; a string for arguments that are no JSON, as a model may write them
}

// Conversation is what a prompt is made of.
type Conversation struct {
	Messages []Message
	// Continue means that the last message, one of the assistant, is the beginning of the reply.
	Continue bool
	// Tools are the definitions of tools, a JSON list. Only the models' own templates have a place for them.
	Tools json.RawMessage
	// Values are further variables of the models' own templates, such as enable_thinking.
	Values map[string]json.RawMessage
}

// own is a template in Jinja, as published with a model.
type own struct {
	template *jinja.Template
	source   string
	bos, eos string // names of tokens; empty for those of the tokenizer

	once  sync.Once
	parts map[string]bool // the roles whose contents are lists of parts
	lost  error           // texts are not written
}

// Marks in the strings of a request: after the first character of what could be the name of a control token, and where the
// reply begins. They are not characters, and are removed from what messages contain.
const (
	guardMark = "\uFDD0"
	replyMark = "\uFDD1"
)

var marks = strings.NewReplacer(guardMark, "", replyMark, "")

// NewJinjaTemplate parses a template in Jinja, as in chat_template.jinja and the member chat_template of
// tokenizer_config.json. bos and eos are the names of the tokens that begin and end texts, empty for those of the tokenizer.
// Errors are *TemplateError.
//
// The template is rendered as Hugging Face's library does, with messages, tools, add_generation_prompt, bos_token, eos_token
// and the values of the conversation. Control tokens come from the template only: their names in messages are text, but for
// those in replies of the assistant that the template compares with, such as </think>.
func NewJinjaTemplate(name, source, bos, eos string) (*Template, error) {
	if len(source) > maxTemplate || !utf8.ValidString(source) {
		return nil, &TemplateError{name, fmt.Errorf("want valid UTF-8 of at most %d bytes, got %d bytes", maxTemplate, len(source))}
	}
	t, err := jinja.Parse(source)
	if err != nil {
		return nil, &TemplateError{name, err}
	}
	return &Template{name: name, own: &own{template: t, source: source, bos: bos, eos: eos}}, nil
}

// WithTools returns the template for conversations with tools: that of the name tool_use, if the model has several, or else the same one.
func (t *Template) WithTools() *Template {
	if t.tools == nil {
		return t
	}
	with := *t.tools
	with.values = t.values
	return &with
}

// AddTools returns a template whose conversations with tools have the form of another one. Both are in Jinja.
func (t *Template) AddTools(tools *Template) *Template {
	with := *t
	with.tools = tools
	return &with
}

// Source returns the source of a template in Jinja, empty for others.
func (t *Template) Source() string {
	if t.own == nil {
		return ""
	}
	return t.own.source
}

// Mentions reports whether the source of a template in Jinja contains a text, such as the name of a variable.
func (t *Template) Mentions(s string) bool { return t.own != nil && strings.Contains(t.own.source, s) }

// at returns the control token with which a text begins, empty for none.
func (n *names) at(s string) string {
	if len(n[s[0]]) == 0 {
		return ""
	}
	if _, size := utf8.DecodeRuneInString(s); strings.HasPrefix(s[size:], guardMark) {
		return ""
	}
	for _, name := range n[s[0]] {
		if strings.HasPrefix(s, name) {
			return name
		}
	}
	return ""
}

// split returns a rendered prompt as segments. No two adjacent segments are text.
func (n *names) split(s string) []segment {
	var p prompt
	begin := 0
	for i := 0; i < len(s); {
		name := n.at(s[i:])
		if name == "" {
			i++
			continue
		}
		p.text(marks.Replace(s[begin:i]))
		p.segments = append(p.segments, segment{control, name})
		i += len(name)
		begin = i
	}
	p.text(marks.Replace(s[begin:]))
	return p.segments
}

// maxLiterals bounds the strings of a template that begin like control tokens: each is looked for in messages.
const maxLiterals = 1000

// compared returns the strings of a template that begin like control tokens.
func (n *names) compared(literals []string) (list []string, err error) {
	seen := make(map[string]bool)
	for _, l := range literals {
		if len(l) > 1 && len(n[l[0]]) > 0 && !seen[l] {
			seen[l], list = true, append(list, l)
		}
	}
	if len(list) > maxLiterals {
		return nil, fmt.Errorf("%d strings that begin like control tokens, at most %d are supported", len(list), maxLiterals)
	}
	return list, nil
}

// guard marks what could become the name of a control token. Literals of the template are kept if they are no names, in
// messages of the assistant in any case.
func (n *names) guard(s string, literals []string, reply bool) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(marks.Replace(s), "\uFFFD"), partMark, "")
	var b strings.Builder
	for i, c := range s {
		b.WriteRune(c)
		if len(n[s[i]]) == 0 {
			continue
		}
		kept := slices.ContainsFunc(literals, func(l string) bool {
			return strings.HasPrefix(s[i:], l) && (reply || n.at(l) == "")
		})
		if !kept {
			b.WriteString(guardMark)
		}
	}
	return b.String()
}

// guardAll marks the strings of a value.
func (n *names) guardAll(v any) any {
	switch x := v.(type) {
	case string:
		return n.guard(x, nil, false)
	case *jinja.List:
		l := &jinja.List{}
		for _, item := range x.Items {
			l.Items = append(l.Items, n.guardAll(item))
		}
		return l
	case *jinja.Dict:
		d := jinja.NewDict()
		for _, k := range x.Keys() {
			d.Set(n.guardAll(k), n.guardAll(x.Get(k)))
		}
		return d
	}
	return v
}

// value returns a JSON text as a value of templates.
func (n *names) value(what string, raw json.RawMessage) (any, error) {
	v, err := jinja.FromJSON(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return n.guardAll(v), nil
}

// contentMark is a text that no template has.
const contentMark = "\uFDD2content\uFDD2"

// contentSamples are conversations with the mark in a message of each role.
var contentSamples = map[string][]Message{
	user:      {{Role: user, Content: contentMark}},
	system:    {{Role: system, Content: contentMark}, {Role: user, Content: "?"}},
	assistant: {{Role: user, Content: "?"}, {Role: assistant, Content: contentMark}, {Role: user, Content: "?"}},
	"tool": {{Role: user, Content: "?"}, {Role: assistant, Calls: []Call{{ID: "123456789", Name: "f", Arguments: json.RawMessage("{}")}}},
		{Role: "tool", Content: contentMark, CallID: "123456789", Name: "f"}},
}

// findParts finds out which roles' messages the template reads as lists of parts, as those of models for text and pictures do: their
// text is written only then. It fails if the text of the user is never written.
func (o *own) findParts(tok tokenizer.Tokenizer) error {
	o.parts = make(map[string]bool)
	for _, role := range []string{user, system, assistant, "tool"} {
		written := func(parts bool) (bool, error) {
			o.parts[role] = parts
			s, err := o.render(tok, new(names), &Conversation{Messages: contentSamples[role]}, true, noParts)
			return err == nil && strings.Contains(s, contentMark), err
		}
		asText, err := written(false)
		if asText {
			continue
		}
		asParts, err2 := written(true)
		o.parts[role] = asParts
		switch {
		case asParts || role != user:
		case err != nil || err2 != nil: // it cannot be used: what follows finds out why
			return nil
		case strings.Contains(o.source, "content"):
			return errors.New("it writes the text of no message of the user, neither as a string nor as a list of parts")
		}
	}
	return nil
}

// wants is how a template reads messages with calls. Most templates read arguments as objects, and empty contents; DeepSeek's add
// the text of arguments to others, and compare contents with none.
type wants struct {
	text, none, parts bool
	placed            howPlaced
}

// wantsOf returns how a template reads messages with calls, by its source.
func (o *own) wantsOf() wants {
	joined := func(before string) bool {
		return strings.Contains(o.source, before+" tool['function']['arguments'] +") || strings.Contains(o.source, before+" tool.function.arguments +")
	}
	return wants{text: joined("+"), none: strings.Contains(o.source, "['content'] is none") || strings.Contains(o.source, ".content is none")}
}

// message returns a message as a value of templates.
func (n *names) message(m *Message, literals []string, w wants) (*jinja.Dict, error) {
	d := jinja.NewDict()
	d.Set("role", n.guard(m.Role, nil, false))
	list := m.pieces()
	for i, s := range list {
		list[i] = n.guard(s, literals, m.Role == assistant)
	}
	content := strings.Join(list, partMark)
	d.Set("content", content)
	if w.placed == listParts && len(m.Parts) > 0 {
		d.Set("content", n.contentList(m, literals))
	} else if w.parts {
		part := jinja.NewDict()
		part.Set("type", "text")
		part.Set("text", content)
		d.Set("content", &jinja.List{Items: []any{part}})
	}
	if w.none && m.Content == "" && len(m.Calls) > 0 {
		d.Set("content", nil)
	}
	for _, f := range []struct{ key, value string }{{"reasoning_content", m.Reasoning}, {"tool_call_id", m.CallID}, {"name", m.Name}} {
		if f.value != "" {
			d.Set(f.key, n.guard(f.value, nil, false))
		}
	}
	if len(m.Calls) == 0 {
		return d, nil
	}
	calls := &jinja.List{}
	for _, c := range m.Calls {
		args, err := n.value("arguments of "+c.Name, c.Arguments)
		if err != nil {
			return nil, err
		}
		if _, broken := args.(string); w.text && !broken {
			args = n.guard(string(c.Arguments), nil, false)
		}
		f := jinja.NewDict()
		f.Set("name", n.guard(c.Name, nil, false))
		f.Set("arguments", args)
		call := jinja.NewDict()
		call.Set("id", n.guard(c.ID, nil, false))
		call.Set("type", "function")
		call.Set("function", f)
		calls.Items = append(calls.Items, call)
	}
	d.Set("tool_calls", calls)
	return d, nil
}

// now is the time that templates write. Tests replace it.
var now = time.Now

// render renders a conversation. reply adds the beginning of a reply.
func (o *own) render(tok tokenizer.Tokenizer, n *names, d *Conversation, reply bool, how howPlaced) (string, error) {
	literals, err := n.compared(o.template.Literals())
	if err != nil {
		return "", err
	}
	list, w := &jinja.List{}, o.wantsOf()
	for i := range d.Messages {
		m, continued := d.Messages[i], d.Continue && i == len(d.Messages)-1
		v, err := n.message(&m, literals, wants{w.text, w.none && !continued, o.parts[m.Role], how})
		if err != nil {
			return "", err
		}
		if continued {
			holder, key := v, "content"
			if l, ok := v.Get(key).(*jinja.List); ok {
				holder, key = l.Items[0].(*jinja.Dict), "text"
			}
			holder.Set(key, holder.Get(key).(string)+replyMark)
		}
		list.Items = append(list.Items, v)
	}
	vars := map[string]any{"messages": list, "add_generation_prompt": reply, "bos_token": o.token(tok, n, o.bos, tok.BOS()), "tools": nil}
	vars["eos_token"] = ""
	if eos := tok.EOS(); o.eos != "" || len(eos) > 0 {
		vars["eos_token"] = o.token(tok, n, o.eos, append(eos, -1)[0])
	}
	for key, raw := range d.Values {
		v, err := n.value(key, raw)
		if err != nil {
			return "", err
		}
		vars[key] = v
	}
	if len(d.Tools) > 0 {
		v, err := n.value("tools", d.Tools)
		if err != nil {
			return "", err
		}
		vars["tools"] = v
	}
	return o.template.Render(vars, now())
}

// token returns the name of a token: the one that is given, or that of an id.
func (o *own) token(tok tokenizer.Tokenizer, n *names, name string, id int) string {
	if name != "" {
		return name
	}
	for i := range n {
		for _, s := range n[i] {
			if x, ok := tok.ID(s); ok && x == id {
				return s
			}
		}
	}
	return ""
}

// withText returns the conversation with other arguments for those that are strings; nil if there are none.
func (d *Conversation) withText(change func(text json.RawMessage) json.RawMessage) *Conversation {
	with, found := *d, false
	with.Messages = slices.Clone(d.Messages)
	for i := range with.Messages {
		m := &with.Messages[i]
		m.Calls = slices.Clone(m.Calls)
		for k := range m.Calls {
			if a := &m.Calls[k].Arguments; strings.HasPrefix(string(*a), `"`) {
				found, *a = true, change(*a)
			}
		}
	}
	if !found {
		return nil
	}
	return &with
}

// renderOwn returns the prompt of a template in Jinja as segments.
func (m *Model) renderOwn(t *Template, d *Conversation) ([]segment, error) {
	n := m.controls
	if n == nil {
		return nil, &TemplateError{t.name, errors.New("the tokenizer does not list its control tokens")}
	}
	if last := len(d.Messages) - 1; d.Continue && (last < 0 || d.Messages[last].Role != assistant) {
		return nil, &TemplateError{t.name, errors.New("want a last message of the assistant to continue it")}
	}
	for _, x := range d.Messages {
		if !isRole(x.Role) {
			return nil, &TemplateError{t.name, fmt.Errorf("the role %.100q, want 1 to %d letters, digits, - and _", x.Role, maxRole)}
		}
	}
	if t.own.once.Do(func() { t.own.lost = t.own.findParts(m.tok) }); t.own.lost != nil {
		return nil, &TemplateError{t.name, t.own.lost}
	}
	if len(d.parts()) > 0 && !d.Continue {
		return m.renderParts(t, d)
	}
	s, err := t.own.render(m.tok, n, d, !d.Continue, markParts)
	if other := d.withText(func(a json.RawMessage) json.RawMessage { return slices.Concat(json.RawMessage(`"?`), a[1:]) }); other != nil {
		if err == nil {
			var same string
			if same, err = t.own.render(m.tok, n, other, !d.Continue, markParts); err == nil && same == s {
				err = errors.New("it does not write arguments that are text")
			}
		}
		if err != nil { // it writes each member of arguments
			s, err = t.own.render(m.tok, n, d.withText(func(a json.RawMessage) json.RawMessage {
				return slices.Concat(json.RawMessage(`{"arguments":`), a, json.RawMessage("}"))
			}), !d.Continue, markParts)
		}
	}
	if err != nil {
		return nil, &TemplateError{t.name, err}
	}
	if d.Continue {
		i := strings.LastIndex(s, replyMark)
		if i < 0 {
			return nil, &TemplateError{t.name, errors.New("it does not write the last message as it is")}
		}
		s = s[:i]
	}
	return m.framed(t, n.split(s), d.parts()), nil
}

// replyEnds are control tokens that end the reply of a model, whatever its template.
var replyEnds = []string{"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<end_of_turn>", "<turn|>", "<|end_of_text|>",
	"<|endoftext|>", "<|return|>", "<|call|>", "</s>", "<eos>", "<｜end▁of▁sentence｜>", "<|tool_response>", "<start_function_response>"}

// ownEnds returns the control tokens that end a reply: the usual ones, and the one that the template writes after a reply.
func (m *Model) ownEnds(t *Template) (ends []int) {
	list := slices.Clone(replyEnds)
	const reply = "reply of the assistant"
	d := &Conversation{Messages: []Message{{Role: user, Content: "?"}, {Role: assistant, Content: reply}}}
	if s, err := t.own.render(m.tok, m.controls, d, false, noParts); err == nil {
		parts := m.controls.split(s)
		for i := range parts[:max(len(parts)-1, 0)] {
			if strings.HasSuffix(parts[i].text, reply) && parts[i+1].kind == control {
				list = append(list, parts[i+1].text)
			}
		}
	}
	for _, name := range list {
		id, ok := m.tok.ID(name)
		if ok && m.isControl(id) && !slices.Contains(ends, id) {
			ends = append(ends, id)
		}
	}
	return ends
}

// checkOwn renders a short conversation: a template that fails for it cannot be used.
func (m *Model) checkOwn(t *Template) error {
	_, err := m.renderOwn(t, &Conversation{Messages: []Message{{Role: user, Content: "Hello"}}})
	if err != nil {
		return err
	}
	for _, s := range []string{t.own.bos, t.own.eos} {
		if _, ok := m.tok.ID(s); s != "" && !ok {
			return &TemplateError{t.name, fmt.Errorf("the tokenizer does not have the control token %.100q", s)}
		}
	}
	return nil
}

// RenderConversation returns the prompt of a conversation as a text with the names of control tokens: see EncodeConversation.
func (m *Model) RenderConversation(t *Template, d *Conversation) (string, error) {
	if m.tok == nil {
		return "", errNoTokenizer()
	}
	if d == nil {
		d = new(Conversation)
	}
	list, err := m.rendered(t, d)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, s := range list {
		b.WriteString(s.text)
	}
	return b.String(), nil
}

// rendered returns the prompt of a conversation as segments.
func (m *Model) rendered(t *Template, d *Conversation) ([]segment, error) {
	if err := m.checkMedia(t, d); err != nil {
		return nil, err
	}
	if len(d.Tools) > 0 {
		t = t.WithTools()
	}
	if t.own != nil {
		with := *d
		with.Values = maps.Clone(t.values)
		for k, v := range d.Values {
			if with.Values == nil {
				with.Values = make(map[string]json.RawMessage)
			}
			with.Values[k] = v
		}
		return m.renderOwn(t, &with)
	}
	plain := len(d.Tools) == 0 && len(d.Values) == 0
	for i := range d.Messages {
		plain = plain && d.Messages[i].plain()
	}
	if !plain {
		return nil, &TemplateError{t.name, errors.New("it has no place for tools, their calls, thoughts or other values; " +
			"give the model's own template, chat_template.jinja or tokenizer_config.json")}
	}
	list, err := t.render(d.Messages, d.Continue)
	return m.framed(t, list, d.parts()), err
}
