package oip

import (
	"bytes"
	"io"
	"math"
	"sync"
)

// source is the JSON part as its decoder reads it. A read ends before the array of a member "data", so that the parser can read
// the array without the decoder, which gets an empty string in its place. (A decoder finds the end of each number before the parser reads the
// number.)
type source struct {
	from    io.Reader // nil if all is in buf
	buf     []byte    // read bytes, then those of padding
	at, end int       // what is left of the read ones
	err     error     // of from, after them
	base    int64     // position of buf in the JSON part
	begun   int64     // position of the array that is read without the decoder, with what precedes it
	cut     int64     // bytes that the decoder does not see
	state   lexState
	instead string // what the decoder reads next
}

// lexState is where in the JSON a source is, as far as it matters. From lexBegins to lexNamed-1, the bytes of a string have been those of
// "data" so far.
type lexState int

const (
	lexOutside lexState = iota // of strings
	lexBegins
	lexNamed   = lexBegins + lexState(len(dataMember)) // after a string "data"
	lexValued  = lexNamed + 1                          // and a colon
	lexText    = lexNamed + 2                          // in another string
	lexEscaped = lexNamed + 3                          // and after a backslash
)

// dataMember is the name with the quote at its end.
const dataMember = `data"`

const (
	padding     = 32        // bytes after those read, all 0, so that as many can be loaded at any of them
	longest     = 1 << 10   // bytes of an element
	smallBuffer = 16 << 10  // bytes of a buffer
	largeBuffer = 256 << 10 // of one for an array of more than longArray
	longArray   = 64 << 10  // bytes that were received, not elements that a shape claims
)

var buffers = [2]sync.Pool{
	{New: func() any { return new([smallBuffer]byte) }},
	{New: func() any { return new([largeBuffer]byte) }},
}

// newSource returns a source of a stream. free ends its use.
func newSource(from io.Reader) *source {
	return &source{from: from, buf: buffers[0].Get().(*[smallBuffer]byte)[:], begun: math.MaxInt64}
}

// sourceOf returns a source of bytes, which have padding after the first n.
func sourceOf(buf []byte, n int) *source { return &source{buf: buf, end: n, err: io.EOF} }

// free ends the use of a source of a stream.
func (s *source) free() {
	switch {
	case s.from == nil:
	case len(s.buf) == smallBuffer:
		buffers[0].Put((*[smallBuffer]byte)(s.buf))
	default:
		buffers[1].Put((*[largeBuffer]byte)(s.buf))
	}
	s.buf, s.at, s.end, s.err = nil, 0, 0, io.ErrClosedPipe
}

// enlarge gets a larger buffer for a long array.
func (s *source) enlarge() {
	if s.from == nil || len(s.buf) == largeBuffer {
		return
	}
	large := buffers[1].Get().(*[largeBuffer]byte)[:]
	s.end = copy(large, s.buf[s.at:s.end])
	s.base, s.at = s.base+int64(s.at), 0
	clear(large[s.end:][:padding])
	buffers[0].Put((*[smallBuffer]byte)(s.buf))
	s.buf = large
}

// fill reads until at least n bytes are left, or to the end. n is at most longest.
func (s *source) fill(n int) {
	for s.end-s.at < n && s.err == nil {
		if s.position()-s.begun > longArray {
			s.enlarge()
		}
		copy(s.buf, s.buf[s.at:s.end])
		s.base, s.at, s.end = s.base+int64(s.at), 0, s.end-s.at
		more := 0
		more, s.err = s.from.Read(s.buf[s.end : len(s.buf)-padding])
		s.end += more
		clear(s.buf[s.end:][:padding])
	}
}

// Read is for the decoder.
func (s *source) Read(p []byte) (n int, err error) {
	if n = copy(p, s.instead); n > 0 {
		s.instead = s.instead[n:]
		return n, nil
	}
	if s.fill(1); s.at == s.end {
		return 0, s.err
	}
	n = copy(p, s.buf[s.at:s.end])
	n = s.lex(p[:n])
	s.at += n
	return n, nil
}

// lex returns how many bytes precede the next array of a member "data", but those of an array at the begin, which the parser has left
// to the decoder.
func (s *source) lex(b []byte) int {
	for i := 0; i < len(b); i++ {
		if s.state == lexText {
			for i < len(b)-1 && b[i] != '"' && b[i] != '\\' {
				i++
			}
		}
		if s.state == lexValued && b[i] == '[' && i > 0 {
			return i
		}
		s.state = after(s.state, b[i])
	}
	return len(b)
}

// follows reports whether an array follows that the parser can read without the decoder. unread are the bytes after the name of its
// member that the decoder has already.
func (s *source) follows(unread []byte) bool {
	_, _, ok := s.array(unread)
	return ok
}

// open skips the bracket of an array that follows. The array must be read to its end, then close called.
func (s *source) open(unread []byte) bool {
	skip, instead, ok := s.array(unread)
	if ok {
		s.begun = s.position()
		s.at += skip
		s.instead, s.state = instead, lexOutside
		s.cut -= int64(len(s.instead))
	}
	return ok
}

// array returns how many bytes end with the bracket of the array that follows, and what the decoder gets instead.
func (s *source) array(unread []byte) (skip int, instead string, ok bool) {
	if s.state != lexNamed && s.state != lexValued {
		return 0, "", false
	}
	s.fill(longest)
	rest := s.buf[s.at:s.end]
	switch unread = bytes.TrimSpace(unread); string(unread) {
	case ":":
	case "":
		if rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, spaces), []byte(":")); !ok {
			return 0, "", false
		}
		instead = ":"
	default:
		return 0, "", false
	}
	if rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, spaces), []byte("[")); !ok {
		return 0, "", false
	}
	return s.end - s.at - len(rest), instead + `""`, true
}

const spaces = " \t\r\n"

// close ends reading an array.
func (s *source) close() {
	s.cut += s.position() - s.begun
	s.begun = math.MaxInt64
}

// position returns the position of the next byte.
func (s *source) position() int64 { return s.base + int64(s.at) }

// after returns the state after a byte.
func after(s lexState, c byte) lexState {
	switch {
	case s == lexEscaped:
		return lexText
	case s == lexText || s >= lexBegins && s < lexNamed:
		switch {
		case s != lexText && c == dataMember[s-lexBegins]:
			return s + 1
		case c == '"':
			return lexOutside
		case c == '\\':
			return lexEscaped
		}
		return lexText
	case c == '"':
		return lexBegins
	case s == lexNamed && c == ':':
		return lexValued
	case s >= lexNamed && isSpace(c):
		return s
	}
	return lexOutside
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
