package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/text"
)

// splitting is how a reply is divided into thoughts, text and calls.
type splitting struct {
	format *callFormat // nil without tools
	tools  []toolFunction
	single bool
	thinks bool // the template has thoughts
	within bool // the reply begins within one
}

// piece is a part of a reply: one of its members is set.
type piece struct {
	text, thought string
	calls         []toolCall
}

// toolCall is a call of a tool in an answer.
type toolCall struct {
	Index    *int         `json:"index,omitempty"` // in streams
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function calledObject `json:"function"`
}

type calledObject struct {
	Name      string `json:"name"`
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
	calls   int
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
		list = append(list, s.next(last)...)
		if s.zone == at && len(s.pending) == before || s.pending == "" {
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
		thought, found := s.upTo(thoughtEnd, last)
		if found {
			s.zone = opening
		}
		return pieces(piece{thought: thought})
	case calling:
		return s.call(last)
	}
	if s.format == nil || s.format.begin == "" {
		text := s.pending
		s.pending = ""
		return pieces(piece{text: text})
	}
	text, found := s.upTo(s.format.begin, last)
	if found {
		s.zone = calling
	}
	if s.calls > 0 || found { // space between calls, and before the first one
		text = strings.TrimRight(text, " \n")
	}
	return pieces(piece{text: text})
}

// pieces leaves out empty ones.
func pieces(list ...piece) []piece {
	return slices.DeleteFunc(list, func(p piece) bool { return p.text == "" && p.thought == "" && p.calls == nil })
}

// open finds out how the text begins.
func (s *splitter) open(last bool) []piece {
	rest := strings.TrimLeft(s.pending, " \n")
	bare := s.format != nil && s.format.begin == ""
	if s.thinks && strings.HasPrefix(rest, thoughtBegin) {
		s.pending, s.zone = rest[len(thoughtBegin):], thinking
		return nil
	}
	waits := rest == "" || s.thinks && strings.HasPrefix(thoughtBegin, rest) || bare && strings.HasPrefix(pythonTag, rest)
	if waits && !last {
		return nil
	}
	s.zone = writing
	if s.thinks || bare {
		s.pending = rest
	}
	if bare && rest != "" && (strings.HasPrefix(rest, pythonTag) || strings.IndexByte("{[`", rest[0]) >= 0) {
		s.zone = calling
	}
	return nil
}

// pythonTag precedes calls of Llama's models.
const pythonTag = "<|python_tag|>"

// upTo removes the text before a mark, and the mark. Without it, what may be its beginning stays pending.
func (s *splitter) upTo(mark string, last bool) (text string, found bool) {
	if i := strings.Index(s.pending, mark); i >= 0 {
		text, s.pending = s.pending[:i], s.pending[i+len(mark):]
		return text, true
	}
	n := 0
	for k := min(len(mark)-1, len(s.pending)); k > 0 && !last && n == 0; k-- {
		if strings.HasSuffix(s.pending, mark[:k]) {
			n = k
		}
	}
	text, s.pending = s.pending[:len(s.pending)-n], s.pending[len(s.pending)-n:]
	return text, false
}

// call reads calls when they are complete. What is no call is text.
func (s *splitter) call(last bool) []piece {
	f := s.format
	body, rest := s.pending, ""
	i := -1
	if f.end != "" {
		i = strings.Index(body, f.end)
	}
	switch {
	case i >= 0:
		body, rest = body[:i], body[i+len(f.end):]
	case !last && len(body) < maxCallBytes:
		return nil
	}
	s.pending, s.zone = rest, writing
	calls := s.parse(body)
	if calls == nil {
		mark := ""
		if i >= 0 {
			mark = f.end
		}
		return pieces(piece{text: f.begin + body + mark})
	}
	if s.single {
		if s.calls > 0 {
			return nil
		}
		calls = calls[:1]
	}
	for k := range calls {
		n := s.calls
		calls[k].Index = &n
		s.calls++
	}
	return []piece{{calls: calls}}
}

// parse returns the calls in a text, nil if it is not calls only.
func (s *splitter) parse(body string) (list []toolCall) {
	if s.format.named != "" {
		for part := range strings.SplitSeq(body, s.format.begin) {
			name, args, _ := strings.Cut(part, s.format.named)
			if list = s.add(list, name, json.RawMessage(args)); list == nil {
				return nil
			}
		}
		return list
	}
	rest := unfenced(strings.TrimPrefix(body, pythonTag))
	for {
		if rest = strings.TrimLeft(rest, " \n\t\r;,"); rest == "" {
			return list
		}
		var v json.RawMessage
		d := json.NewDecoder(strings.NewReader(rest))
		if d.Decode(&v) != nil {
			return nil
		}
		rest = rest[d.InputOffset():]
		var objects []json.RawMessage
		if v[0] != '[' {
			objects = append(objects, v)
		} else if json.Unmarshal(v, &objects) != nil {
			return nil
		}
		for _, o := range objects {
			var c struct {
				Name       string
				Arguments  json.RawMessage
				Parameters json.RawMessage
			}
			if json.Unmarshal(o, &c) != nil {
				return nil
			}
			if c.Arguments == nil {
				c.Arguments = c.Parameters
			}
			if list = s.add(list, c.Name, c.Arguments); list == nil {
				return nil
			}
		}
	}
}

// unfenced returns a text without the marks of a block of code around it.
func unfenced(s string) string {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "```") && strings.HasSuffix(s, "```") && len(s) > 6 {
		s = s[3 : len(s)-3]
		if i := strings.IndexByte(s, '\n'); i >= 0 {
			s = s[i:]
		}
	}
	return s
}

// add adds a call of a known tool, and returns nil for others.
func (s *splitter) add(list []toolCall, name string, args json.RawMessage) []toolCall {
	var inner string
	if json.Unmarshal(args, &inner) == nil && inner != "" {
		args = json.RawMessage(inner)
	}
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	args = bytes.TrimSpace(args)
	known := slices.ContainsFunc(s.tools, func(t toolFunction) bool { return t.Name == name })
	if !known || !json.Valid(args) || args[0] != '{' {
		return nil
	}
	return append(list, toolCall{ID: newCallID(), Type: "function", Function: calledObject{name, string(args)}})
}

// newCallID returns an id of nine letters and digits, which all templates accept.
func newCallID() string { return fmt.Sprintf("%09x", rand.Uint64()&(1<<36-1)) }

// splittingOf returns how replies to a chat are divided, nil if they are text only.
func splittingOf(t *text.Template, u *toolUse, tail string) (*splitting, error) {
	s := &splitting{thinks: t.Mentions(thoughtEnd) || strings.HasPrefix(t.Name(), "qwen3")}
	trimmed := strings.TrimRight(tail, " \n")
	s.within = s.thinks && strings.HasSuffix(trimmed, thoughtBegin)
	if u == nil {
		if !s.thinks {
			return nil, nil
		}
		return s, nil
	}
	var err error
	s.format, err = formatOf(t)
	s.tools, s.single = u.tools, u.single
	return s, err
}
