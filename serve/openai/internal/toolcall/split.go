package toolcall

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/text"
)

// Splitting is how a reply is divided into thoughts, text and calls.
type Splitting struct {
	Format    *Format // nil without tools
	tools     []toolFunction
	single    bool
	Thoughts  thoughtMarks // empty if the template has none
	Within    bool         // the reply begins within one
	exclusive bool         // a reply is calls or a text: calls are at its beginning only
}

// Piece is a part of a reply: one of its members is set.
type Piece struct {
	Text, Thought string
	Call          *Call // a part of one: its beginning has an id and a name
}

// Call is a call of a tool in an answer, or a part of it in a stream.
type Call struct {
	Index    *int   `json:"index,omitzero"` // in streams
	ID       string `json:"id,omitzero"`
	Type     string `json:"type,omitzero"`
	Function Called `json:"function,omitzero"`
	Custom   Input  `json:"custom,omitzero"` // of the type custom
}

type Called struct {
	Name      string `json:"name,omitzero"`
	Arguments string `json:"arguments"`
}

// Input is the text of a call of a custom tool.
type Input struct {
	Name  string `json:"name,omitzero"`
	Input string `json:"input"`
}

// zone is where a splitter is in the reply.
type zone int

const (
	opening zone = iota // before any text
	thinking
	writing
	calling
)

// Splitter divides a reply.
type Splitter struct {
	*Splitting
	zone    zone
	pending string // not yet divided
	plain   bool   // the text has no calls
	read    int    // bytes of pending texts that were looked at
	// space is what precedes the pending text: none of the answer, unless more text follows.
	space strings.Builder

	calls  int        // that have begun
	input  *unwrapper // of a call of a custom tool
	reader callReader
	mark   string          // before the reader's text
	begun  bool            // the reader has returned a part of a call
	raw    strings.Builder // what it has removed before
}

func NewSplitter(s *Splitting) *Splitter {
	p := &Splitter{Splitting: s}
	if s.Within {
		p.zone = thinking
	}
	return p
}

// maxCallBytes bounds the bytes of calls that are not complete: more are text.
const maxCallBytes = 1 << 20

// Push divides further text; last means that the reply ends with it.
func (s *Splitter) Push(text string, last bool) (list []Piece) {
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

// Next divides the pending text in the current zone, as far as it is known.
func (s *Splitter) next(last bool) []Piece {
	switch s.zone {
	case opening:
		return s.open(last)
	case thinking:
		thought, found := cutAt(&s.pending, s.Thoughts.End, last)
		if found {
			s.zone = opening
		}
		return Pieces(Piece{Thought: thought})
	case calling:
		return s.call(last)
	}
	if s.Format == nil || s.Format.begin == "" || s.plain {
		text := s.pending
		s.pending = ""
		return Pieces(Piece{Text: s.spaced(text)})
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
	return Pieces(Piece{Text: body})
}

// spaced returns a text after the space before it.
func (s *Splitter) spaced(text string) string {
	text = s.space.String() + text
	s.space.Reset()
	return text
}

// skipSpace removes space from the beginning of the pending text.
func (s *Splitter) skipSpace() {
	rest := strings.TrimLeft(s.pending, " \n")
	s.space.WriteString(s.pending[:len(s.pending)-len(rest)])
	s.pending = rest
}

// beforeCalls removes the text before calls, and the mark with which they begin.
func (s *Splitter) beforeCalls(last bool) (text, mark string, found bool) {
	f := s.Format
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
func (s *Splitter) startCalls(mark string) {
	s.zone, s.begun, s.mark, s.reader = calling, false, mark, s.Format.reader(s.Format, s.tools)
	s.raw.Reset()
}

// Pieces leaves out empty ones.
func Pieces(list ...Piece) []Piece {
	return slices.DeleteFunc(list, func(p Piece) bool { return p.Text == "" && p.Thought == "" && p.Call == nil })
}

// open finds out how the text begins.
func (s *Splitter) open(last bool) []Piece {
	s.skipSpace()
	rest := s.pending
	bare := s.Format != nil && s.Format.begin == ""
	thought, perhaps := begins(rest, s.Thoughts.begin)
	if thought {
		s.pending, s.zone = rest[len(s.Thoughts.begin):], thinking
		s.space.Reset()
		return nil
	}
	call, mayCall := false, false
	if bare {
		call, mayCall = s.Format.beginsBare(rest)
	}
	if !last && (perhaps || rest == "" || mayCall) {
		return nil
	}
	if s.exclusive && !bare {
		marked, mayMark := begins(rest, s.Format.begin)
		also, mayAlso := begins(rest, s.Format.also)
		if !last && (mayMark || mayAlso) {
			return nil
		}
		s.plain = !marked && !also
	}
	s.zone = writing
	if s.Thoughts.begin != "" || bare {
		s.space.Reset()
	}
	if call {
		s.startCalls("")
	}
	return nil
}

// beginsBare reports whether a text begins like calls without a mark, or could when more of it comes.
func (f *Format) beginsBare(s string) (yes, perhaps bool) {
	for _, mark := range append([]string{"{", "[", "`"}, f.skip...) {
		is, may := begins(s, mark)
		yes, perhaps = yes || is, perhaps || may
	}
	return yes, perhaps && !yes
}

// call reads calls as far as they are known. What is no call is text; the beginning of one at the end of the reply is dropped.
func (s *Splitter) call(last bool) (list []Piece) {
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
			list = append(list, Piece{Call: c})
		}
	}
	half := last && state == callsGoOn && !s.begun
	switch {
	case half && s.Format.begin == "" && !s.reader.named():
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
		if text == "" && s.Format.also != "" && strings.HasPrefix(s.pending, s.Format.also) { // else it would be read again
			text, s.pending = s.Format.also, s.pending[len(s.Format.also):]
		}
		list = append(list, Pieces(Piece{Text: s.spaced(text)})...)
	}
	return list
}

// part returns a part of a call for the answer, nil if it is not wanted.
func (s *Splitter) part(p callPart) *Call {
	c := &Call{}
	if p.name != "" {
		s.calls++
		c.ID, c.Type, c.Function.Name, s.input = newCallID(), "function", p.name, nil
		if slices.ContainsFunc(s.tools, func(t toolFunction) bool { return t.custom && t.Name == p.name }) {
			c.Type, c.Function.Name, c.Custom.Name, s.input = "custom", "", p.name, &unwrapper{}
		}
	}
	if s.single && s.calls > 1 {
		return nil
	}
	n := s.calls - 1
	if c.Index = &n; s.input == nil {
		c.Function.Arguments = p.args
	} else if c.Custom.Input = s.input.push(p.args); c.ID == "" && c.Custom.Input == "" {
		return nil
	}
	return c
}

// newCallID returns an id of nine letters and digits, which all templates accept.
func newCallID() string { return fmt.Sprintf("%09x", rand.Uint64()&(1<<36-1)) }

// SplittingOf returns how replies to a chat are divided, nil if they are text only.
func SplittingOf(t *text.Template, f *Format, u *Use, tail string) *Splitting {
	s := &Splitting{}
	if strings.HasPrefix(t.Name(), "qwen3") {
		s.Thoughts = thoughtForms[0]
	}
	for _, m := range thoughtForms {
		if t.Mentions(m.End) {
			s.Thoughts = m
			break
		}
	}
	thinks := s.Thoughts.begin != ""
	s.Within = thinks && strings.HasSuffix(strings.TrimRight(tail, " \n"), s.Thoughts.begin)
	if u == nil {
		if !thinks {
			return nil
		}
		return s
	}
	s.Format, s.tools, s.single, s.exclusive = f, u.Tools, u.Single, u.Answer != nil
	return s
}
