package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/internal/jinja"
)

// Placed is a picture or a sound in a message.
type Placed struct {
	At   int // the byte of the content that the part precedes
	Part *Part
}

// partMark stands for a part in the text of a message. It is not a character, and is removed from what messages contain.
const partMark = "\uFDD3"

// howPlaced is how the pictures and sounds of messages are written.
type howPlaced int

const (
	noParts   howPlaced = iota
	listParts           // in lists, as models' own templates read them
	markParts           // as marks in the text
)

// pieces returns the text of a message before, between and after its parts.
func (m *Message) pieces() (list []string) {
	at := 0
	for _, p := range m.Parts {
		next := min(max(p.At, at), len(m.Content))
		list, at = append(list, m.Content[at:next]), next
	}
	list = append(list, m.Content[at:])
	for i, s := range list {
		list[i] = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), partMark, "")
	}
	return list
}

// marked returns the text of a message with a mark for each part.
func (m *Message) marked() string { return strings.Join(m.pieces(), partMark) }

// contentList returns the content of a message as a list of parts, as models' own templates read it.
func (n *names) contentList(m *Message, literals []string) *jinja.List {
	list := &jinja.List{}
	add := func(kind, key string, value any) {
		d := jinja.NewDict()
		d.Set("type", kind)
		if key != "" {
			d.Set(key, value)
		}
		list.Items = append(list.Items, d)
	}
	for i, s := range m.pieces() {
		if i > 0 {
			add(map[Medium]string{Picture: "image", Sound: "audio"}[m.Parts[i-1].Part.medium], "", nil)
		}
		if s != "" || len(m.Parts) == 0 {
			add("text", "text", n.guard(s, literals, m.Role == assistant))
		}
	}
	return list
}

// parts returns the parts of a conversation, in order.
func (d *Conversation) parts() (list []*Part) {
	for i := range d.Messages {
		for _, p := range d.Messages[i].Parts {
			list = append(list, p.Part)
		}
	}
	return list
}

// checkMedia refuses conversations with parts that are not in order, or not the user's.
func (m *Model) checkMedia(t *Template, d *Conversation) error {
	for i := range d.Messages {
		x := &d.Messages[i]
		if len(x.Parts) > 0 && x.Role != user {
			return &TemplateError{t.name, fmt.Errorf("message %d of the role %.100q has a %s, want it in one of the user", i, x.Role,
				x.Parts[0].Part.medium)}
		}
		if !slices.IsSortedFunc(x.Parts, func(a, b Placed) int { return a.At - b.At }) {
			return &TemplateError{t.name, fmt.Errorf("message %d: its parts are not in the order of their places", i)}
		}
	}
	return m.checkParts(d.parts())
}

// around is what stands around a part where the template does not say so: patterns, in which {NAME} is a control token. The first row applies
// whose tokens the tokenizer has.
var around = []struct {
	medium                 Medium
	before, between, after string // between one part and the next
}{
	{Picture, "{<start_of_image>}", "{<end_of_image>}\n", ""},
	{Picture, "{<|vision_start|>}", "", "{<|vision_end|>}"},
	{Picture, "{<|image_start|>}", "", "{<|image_end|>}"},
	{Sound, "{[BEGIN_AUDIO]}", "", ""},
	{Sound, "{<|audio_bos|>}", "", "{<|audio_eos|>}"},
}

// mediaTokens are the control tokens for which models' own templates expect a part, and what replaces them; {part} is the part.
var mediaTokens = []struct {
	medium Medium
	name   string
	with   string
}{
	{Picture, "<start_of_image>", "\n\n{<start_of_image>}{part}{<end_of_image>}\n\n"}, // as Gemma's processor does
	{Picture, "<image>", "{part}"},
	{Picture, "<|image_pad|>", "{part}"},
	{Picture, "<|image|>", "{part}"},
	{Picture, "[IMG]", "{part}"},
	{Sound, "[AUDIO]", "{part}"},
	{Sound, "<|audio|>", "{part}"},
	{Sound, "<|AUDIO|>", "{part}"},
	{Sound, "<|audio_pad|>", "{part}"},
}

// pattern returns the segments of a pattern, nil if the tokenizer does not have its control tokens.
func (m *Model) pattern(s string) []segment {
	list, err := parsePattern("part", s, false)
	for i := range list {
		if list[i].kind != control {
			continue
		}
		if list[i].text == "part" {
			list[i].kind = placed
		} else if _, ok := m.tok.ID(list[i].text); !ok {
			return nil
		}
	}
	if err != nil {
		return nil
	}
	return list
}

// framed returns a prompt with marks of parts as segments, in which what stands around parts is written. Names of control tokens were
// split from it before.
func (m *Model) framed(t *Template, rendered []segment, parts []*Part) []segment {
	var p prompt
	for _, s := range rendered {
		if s.kind != plain {
			p.segments = append(p.segments, s)
			continue
		}
		for i, piece := range strings.Split(s.text, partMark) {
			if i > 0 && len(parts) > 0 {
				m.frame(t, &p, parts[0].medium)
				parts = parts[1:]
			}
			p.text(piece)
		}
	}
	return p.segments
}

// frame adds a part and what stands around it.
func (m *Model) frame(t *Template, p *prompt, medium Medium) {
	next := segment{placed, string(medium)}
	if own := m.pattern(map[Medium]string{Picture: t.format.Picture, Sound: t.format.Sound}[medium]); own != nil {
		p.add(own, nil)
		return
	}
	for _, a := range around {
		before := m.pattern(a.before)
		if a.medium != medium || before == nil {
			continue
		}
		if n := len(p.segments); n > 0 && p.segments[n-1].kind == placed {
			p.add(m.pattern(a.between), nil)
		}
		p.add(before, nil)
		p.segments = append(p.segments, next)
		p.add(m.pattern(a.after), nil)
		return
	}
	p.segments = append(p.segments, next)
}

// replaced returns a prompt of a template that has written the places of parts itself; ok is false if it has not.
func (m *Model) replaced(rendered []segment, parts []*Part) (list []segment, ok bool) {
	var p prompt
	for _, s := range rendered {
		with := []segment{s}
		if s.kind == control && len(parts) > 0 {
			for _, place := range mediaTokens {
				if place.name == s.text && place.medium == parts[0].medium {
					with, parts = m.pattern(place.with), parts[1:]
					break
				}
			}
		}
		p.add(with, nil)
	}
	return p.segments, len(parts) == 0
}

// renderParts returns the prompt of a conversation with parts, of a template in Jinja: it writes their places itself if it reads lists, and
// in texts there are marks.
func (m *Model) renderParts(t *Template, d *Conversation) ([]segment, error) {
	parts := d.parts()
	s, err := t.own.render(m.tok, m.controls, d, true, listParts)
	if err == nil {
		if list, ok := m.replaced(m.controls.split(s), parts); ok {
			return list, nil
		}
	}
	s, err = t.own.render(m.tok, m.controls, d, true, markParts)
	if err != nil {
		return nil, &TemplateError{t.name, err}
	}
	if n := strings.Count(s, partMark); n != len(parts) {
		return nil, &TemplateError{t.name, fmt.Errorf("it writes %d of %d pictures and sounds", n, len(parts))}
	}
	return m.framed(t, m.controls.split(s), parts), nil
}

// UserMessage returns a message of the user with parts: in the places of <image> and <audio> in the content, in order, and those without a
// place before it.
func UserMessage(content string, parts ...*Part) Message {
	marked, order := orderParts(content, parts)
	m := Message{Role: user}
	for i, piece := range strings.Split(marked, partMark) {
		if i > 0 {
			m.Parts = append(m.Parts, Placed{len(m.Content), order[i-1]})
		}
		m.Content += piece
	}
	return m
}

// placeholders stand for parts in prompts that are texts.
var placeholders = map[Medium]string{Picture: "<image>", Sound: "<audio>"}

// EncodeParts returns the tokens of a prompt that is a text with parts. <image> and <audio> in it are the places of pictures and sounds, in
// order; parts without a place precede the text. With special, names of control tokens are control tokens, and the prompt is all that the model
// gets. Without, it begins with the first token of texts, and what the model expects around a part is added.
func (m *Model) EncodeParts(s string, parts []*Part, special bool) ([]int, error) {
	if m.tok == nil {
		return nil, errNoTokenizer()
	}
	if err := m.checkParts(parts); err != nil {
		return nil, err
	}
	marked, order := orderParts(s, parts)
	var ids []int
	rendered := []segment{{plain, marked}}
	if special {
		rendered = nil
		for i, piece := range strings.Split(marked, partMark) {
			if i > 0 {
				rendered = append(rendered, segment{placed, ""})
			}
			rendered = append(rendered, segment{plain, piece})
		}
	} else if rendered = m.framed(new(Template), rendered, order); m.info.BOS >= 0 {
		ids = []int{m.info.BOS}
	}
	more, err := m.encodeSegments(new(Template), rendered, order, special)
	return append(ids, more...), err
}

// orderParts returns a text with marks for its parts, and these in the order of the marks.
func orderParts(s string, parts []*Part) (marked string, order []*Part) {
	s = strings.ReplaceAll(s, partMark, "")
	left := slices.Clone(parts)
	var b strings.Builder
	for {
		first, next := len(s), -1
		for i, p := range left {
			if at := strings.Index(s, placeholders[p.medium]); at >= 0 && at < first {
				first, next = at, i
			}
		}
		b.WriteString(s[:first])
		if next < 0 {
			break
		}
		b.WriteString(partMark)
		s = s[first+len(placeholders[left[next].medium]):]
		order, left = append(order, left[next]), slices.Delete(left, next, next+1)
	}
	return strings.Repeat(partMark, len(left)) + b.String(), append(left, order...)
}
