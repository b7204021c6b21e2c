package text

import (
	"fmt"
	"strings"
)

// format is the content of a template: see NewTemplate.
type format struct {
	Begin     string            `json:"begin"`
	Message   string            `json:"message"`
	Reply     string            `json:"reply"`
	Roles     map[string]string `json:"roles"`
	System    string            `json:"system"`
	Heading   string            `json:"heading"`
	Thought   string            `json:"thought"`
	Merge     bool              `json:"merge"`
	Alternate bool              `json:"alternate"`
	Trim      bool              `json:"trim"`
	Ends      []string          `json:"ends"`
	Messages  map[string]string `json:"messages"`
	Picture   string            `json:"picture"`
	Sound     string            `json:"sound"`
}

// segment is a part of a pattern or of a prompt.
type segment struct {
	kind kind
	text string // of kind plain, or the name of a control token
}

// kind is the kind of a segment.
type kind int

const (
	plain   kind = iota
	control      // a control token
	role         // placeholder of a message's role
	content      // placeholder of a message's text
	placed       // a part that is not text
)

// shape is what a message has before and after its text.
type shape struct{ before, after []segment }

// shapeOf parses the pattern of a message.
func shapeOf(pattern string) (s shape, err error) {
	message, err := parsePattern("message", pattern, true)
	if err != nil {
		return s, err
	}
	at := indexContent(message)
	if at < 0 || indexContent(message[at+1:]) >= 0 {
		return s, fmt.Errorf("message %.100q, want {text} once", pattern)
	}
	return shape{message[:at], message[at+1:]}, nil
}

func indexContent(list []segment) int {
	for i := range list {
		if list[i].kind == content {
			return i
		}
	}
	return -1
}

// parsePattern splits a pattern. {role} and {text} have their meaning only in messages.
func parsePattern(what, s string, message bool) (list []segment, err error) {
	var p prompt
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			p.text(s)
			break
		}
		p.text(s[:i])
		rest := s[i+1:]
		if rest != "" && rest[0] == s[i] { // doubled
			p.text(s[i : i+1])
			s = rest[1:]
			continue
		}
		name, after, ok := strings.Cut(rest, "}")
		if s[i] == '}' || !ok || name == "" || strings.Contains(name, "{") {
			return nil, fmt.Errorf("%s: a brace at %.40q, want {NAME}, {{ or }}", what, s[i:])
		}
		p.segments = append(p.segments, named(name, message))
		s = after
	}
	return p.segments, nil
}

// named returns the segment of a name in braces.
func named(name string, message bool) segment {
	switch {
	case message && name == "role":
		return segment{kind: role}
	case message && name == "text":
		return segment{kind: content}
	}
	return segment{control, name}
}

// prompt is a list of segments. No two adjacent segments are text.
type prompt struct {
	segments []segment
	size     int // of all texts, in bytes
}

// text adds text.
func (p *prompt) text(s string) {
	if s == "" {
		return
	}
	p.size += len(s)
	if n := len(p.segments); n > 0 && p.segments[n-1].kind == plain {
		p.segments[n-1].text += s
		return
	}
	p.segments = append(p.segments, segment{plain, s})
}

// add adds a pattern, in which name replaces the role.
func (p *prompt) add(pattern, name []segment) {
	for _, s := range pattern {
		switch s.kind {
		case role:
			p.add(name, nil)
		case plain:
			p.text(s.text)
		default:
			p.segments = append(p.segments, s)
		}
	}
}

// template parses the patterns of a format.
func (f format) template(name string) (*Template, error) {
	t := &Template{name: name, format: f}
	var err error
	if t.shape, err = shapeOf(f.Message); err != nil {
		return nil, &TemplateError{name, err}
	}
	t.shapes = make(map[string]shape)
	for r, pattern := range f.Messages {
		if t.shapes[r], err = shapeOf(pattern); err != nil {
			return nil, &TemplateError{name, err}
		}
	}
	if t.first, err = parsePattern("begin", f.Begin, false); err != nil {
		return nil, &TemplateError{name, err}
	}
	if t.reply, err = parsePattern("reply", f.Reply, false); err != nil {
		return nil, &TemplateError{name, err}
	}
	if f.Roles == nil {
		return t, nil
	}
	t.roles = make(map[string][]segment, len(f.Roles))
	for r, pattern := range f.Roles {
		if t.roles[r], err = parsePattern("role "+r, pattern, false); err != nil {
			return nil, &TemplateError{name, err}
		}
	}
	return t, nil
}

// template parses the format.
func (f *family) template() (*Template, error) {
	t, err := f.format.template(f.name)
	if err != nil {
		return nil, err
	}
	for i := range thinkers {
		if k := &thinkers[i]; k.with == f.name || k.without == f.name {
			t.forms = k
		}
	}
	return t, nil
}
