package openai

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/text"
)

// splitting is how a reply is divided into thoughts, text and calls.
type splitting struct {
	format   *callFormat // nil without tools
	tools    []toolFunction
	single   bool
	thoughts thoughtMarks // empty if the template has none
	within   bool         // the reply begins within one
	apart    bool         // a reply is calls or a text: calls are at its beginning only
}

// piece is a part of a reply: one of its members is set.
type piece struct {
	text, thought string
	call          *toolCall // a part of one: its beginning has an id and a name
}

// toolCall is a call of a tool in an answer, or a part of it in a stream.
type toolCall struct {
	Index    *int         `json:"index,omitempty"` // in streams
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function calledObject `json:"function"`
}

type calledObject struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// zone is where a splitter is in the reply.
type zone int

const (
	opening zone = iota // before any text
	thinking
	writing
	calling
)

// splitter divides a reply.
type splitter struct {
	*splitting
	zone    zone
	pending string // not yet divided
	plain   bool   // the text has no calls
	read    int    // bytes of pending texts that were looked at
	// space is what precedes the pending text: none of the answer, unless more text follows.
	space strings.Builder

	calls  int // that have begun
	reader callReader
	mark   string          // before the reader's text
	begun  bool            // the reader has returned a part of a call
	raw    strings.Builder // what it has removed before
}

func newSplitter(s *splitting) *splitter {
	p := &splitter{splitting: s}
	if s.within {
		p.zone = thinking
	}
	return p
}

// maxCallBytes bounds the bytes of calls that are not complete: more are text.
const maxCallBytes = 1 << 20

// push divides further text; last means that the reply ends with it.
func (s *splitter) push(text string, last bool) (list []piece) {
	s.pending += text
	for {
		before := len(s.pending)
		at := s.zone
		s.read += before
		list = append(list, s.next(last)...)
		if s.zone == at && len(s.pending) == before || s.pending == "" && !last {
			break
		}
	}
	return list
}

// next divides the pending text in the current zone, as far as it is known.
func (s *splitter) next(last bool) []piece {
	switch s.zone {
	case opening:
		return s.open(last)
	case thinking:
		thought, found := cutAt(&s.pending, s.thoughts.end, last)
		if found {
			s.zone = opening
		}
		return pieces(piece{thought: thought})
	case calling:
		return s.call(last)
	}
	if s.format == nil || s.format.begin == "" || s.plain {
		text := s.pending
		s.pending = ""
		return pieces(piece{text: s.spaced(text)})
	}
	text, mark, found := s.beforeCalls(last)
	body := strings.TrimRight(text, " \n")
	after := text[len(body):]
	if body != "" {
		body = s.spaced(body)
	}
	s.space.WriteString(after)
	switch {
	case found:
		s.startCalls(mark)
	case last && s.calls == 0 && s.pending == "":
		body += s.spaced("")
	}
	return pieces(piece{text: body})
}

// spaced returns a text after the space before it.
func (s *splitter) spaced(text string) string {
	text = s.space.String() + text
	s.space.Reset()
	return text
}

// skipSpace removes space from the beginning of the pending text.
func (s *splitter) skipSpace() {
	rest := strings.TrimLeft(s.pending, " \n")
	s.space.WriteString(s.pending[:len(s.pending)-len(rest)])
	s.pending = rest
}

// beforeCalls removes the text before calls, and the mark with which they begin.
func (s *splitter) beforeCalls(last bool) (text, mark string, found bool) {
	f := s.format
	i, k := strings.Index(s.pending, f.begin), -1
	if f.also != "" {
		k = strings.Index(s.pending, f.also)
	}
	switch {
	case i >= 0 && (k < 0 || i < k):
		text, s.pending = s.pending[:i], s.pending[i+len(f.begin):]
		return text, f.begin, true
	case k >= 0: // it belongs to the call
		text, s.pending = s.pending[:k], s.pending[k:]
		return text, "", true
	}
	n := len(s.pending) - max(couldBegin(s.pending, f.begin, last), couldBegin(s.pending, f.also, last))
	text, s.pending = s.pending[:n], s.pending[n:]
	return text, "", false
}

// startCalls begins to read calls.
func (s *splitter) startCalls(mark string) {
	s.zone, s.begun, s.mark, s.reader = calling, false, mark, s.format.reader(s.format, s.tools)
	s.raw.Reset()
}

// pieces leaves out empty ones.
func pieces(list ...piece) []piece {
	return slices.DeleteFunc(list, func(p piece) bool { return p.text == "" && p.thought == "" && p.call == nil })
}

// open finds out how the text begins.
func (s *splitter) open(last bool) []piece {
	s.skipSpace()
	rest := s.pending
	bare := s.format != nil && s.format.begin == ""
	thought, perhaps := begins(rest, s.thoughts.begin)
	if thought {
		s.pending, s.zone = rest[len(s.thoughts.begin):], thinking
		s.space.Reset()
		return nil
	}
	call, mayCall := false, false
	if bare {
		call, mayCall = s.format.beginsBare(rest)
	}
	if !last && (perhaps || rest == "" || mayCall) {
		return nil
	}
	if s.apart && !bare {
		marked, mayMark := begins(rest, s.format.begin)
		also, mayAlso := begins(rest, s.format.also)
		if !last && (mayMark || mayAlso) {
			return nil
		}
		s.plain = !marked && !also
	}
	s.zone = writing
	if s.thoughts.begin != "" || bare {
		s.space.Reset()
	}
	if call {
		s.startCalls("")
	}
	return nil
}

// beginsBare reports whether a text begins like calls without a mark, or could when more of it comes.
func (f *callFormat) beginsBare(s string) (yes, perhaps bool) {
	for _, mark := range append([]string{"{", "[", "`"}, f.skip...) {
		is, may := begins(s, mark)
		yes, perhaps = yes || is, perhaps || may
	}
	return yes, perhaps && !yes
}

// call reads calls as far as they are known. What is no call is text; the beginning of one at the end of the reply is dropped.
func (s *splitter) call(last bool) (list []piece) {
	before := s.pending
	parts, state := s.reader.read(&s.pending, last)
	if !s.begun {
		s.raw.WriteString(before[:len(before)-len(s.pending)])
	}
	for _, p := range parts {
		if !s.begun {
			s.begun = true
			s.space.Reset()
			s.raw.Reset()
		}
		if c := s.part(p); c != nil {
			list = append(list, piece{call: c})
		}
	}
	half := last && state == callsGoOn && !s.begun
	switch {
	case half && s.format.begin == "" && !s.reader.named():
		state = noCall
	case half:
		s.pending = ""
	case !s.begun && s.raw.Len()+len(s.pending) > maxCallBytes:
		state = noCall
	}
	if state == callsEnd || state == noCall {
		s.zone = writing
	}
	if state == noCall {
		text := s.mark + s.raw.String()
		if text == "" && s.format.also != "" && strings.HasPrefix(s.pending, s.format.also) { // else it would be read again
			text, s.pending = s.format.also, s.pending[len(s.format.also):]
		}
		list = append(list, pieces(piece{text: s.spaced(text)})...)
	}
	return list
}

// part returns a part of a call for the answer, nil if it is not wanted.
func (s *splitter) part(p callPart) *toolCall {
	c := &toolCall{}
	if p.name != "" {
		s.calls++
		c.ID, c.Type, c.Function.Name = newCallID(), "function", p.name
	}
	if s.single && s.calls > 1 {
		return nil
	}
	n := s.calls - 1
	c.Index, c.Function.Arguments = &n, p.args
	return c
}

// newCallID returns an id of nine letters and digits, which all templates accept.
func newCallID() string { return fmt.Sprintf("%09x", rand.Uint64()&(1<<36-1)) }

// splittingOf returns how replies to a chat are divided, nil if they are text only.
func splittingOf(t *text.Template, f *callFormat, u *toolUse, tail string) *splitting {
	s := &splitting{}
	if strings.HasPrefix(t.Name(), "qwen3") {
		s.thoughts = thoughtForms[0]
	}
	for _, m := range thoughtForms {
		if t.Mentions(m.end) {
			s.thoughts = m
			break
		}
	}
	thinks := s.thoughts.begin != ""
	s.within = thinks && strings.HasSuffix(strings.TrimRight(tail, " \n"), s.thoughts.begin)
	if u == nil {
		if !thinks {
			return nil
		}
		return s
	}
	s.format, s.tools, s.single, s.apart = f, u.tools, u.single, u.answer != nil
	return s
}
