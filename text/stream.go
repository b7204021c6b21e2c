package text

import (
	"bytes"
	"unicode/utf8"
)

// stream turns the bytes of tokens into pieces of text. It withholds bytes that may be the
// beginning of a stop string, or of a character.
type stream struct {
	stops   []string
	pending []byte
	out     []byte
}

func (s *stream) start(stops []string) {
	s.stops, s.pending, s.out = stops, s.pending[:0], s.out[:0]
}

// push adds bytes and returns the text that is final; stopped reports whether a stop string was
// found, before which the text ends. The text is valid until the next call.
func (s *stream) push(b []byte) (text []byte, stopped bool) {
	s.pending = append(s.pending, b...)
	end := len(s.pending) - s.withheld()
	for _, stop := range s.stops {
		if at := bytes.Index(s.pending, []byte(stop)); at >= 0 && (!stopped || at < end) {
			end, stopped = at, true
		}
	}
	text = s.emit(end, stopped)
	if stopped {
		s.pending = s.pending[:0]
	}
	return text, stopped
}

// flush returns the rest of the text.
func (s *stream) flush() []byte { return s.emit(len(s.pending), true) }

// withheld returns the length of the longest end of the pending bytes that is the beginning of a
// stop string.
func (s *stream) withheld() (longest int) {
	for _, stop := range s.stops {
		for n := min(len(stop)-1, len(s.pending)); n > longest; n-- {
			if string(s.pending[len(s.pending)-n:]) == stop[:n] {
				longest = n
			}
		}
	}
	return longest
}

// emit returns the first end pending bytes as valid UTF-8 and removes them. Each invalid sequence
// becomes U+FFFD; an incomplete character at the end remains pending, unless the text ends here.
func (s *stream) emit(end int, last bool) []byte {
	s.out = s.out[:0]
	at := 0
	for at < end {
		b := s.pending[at:end]
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			if n = partial(b); n == len(b) && !last && !utf8.FullRune(b) {
				break
			}
			s.out = utf8.AppendRune(s.out, utf8.RuneError)
		} else {
			s.out = append(s.out, b[:n]...)
		}
		at += n
	}
	s.pending = append(s.pending[:0], s.pending[at:]...)
	return s.out
}

// partial returns the length of the longest prefix of invalid UTF-8 that begins a character, at
// least 1.
func partial(b []byte) int {
	for n := min(len(b), utf8.UTFMax-1); n > 1; n-- {
		if !utf8.FullRune(b[:n]) {
			return n
		}
	}
	return 1
}
