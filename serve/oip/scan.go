package oip

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// scan reads the elements of a tensor from an array in a source, whose bracket was read.
type scan struct {
	*source
	place string
	as    *format
	size  int    // of an element
	data  []byte // of all elements
	put   int    // where the next one goes
}

// read reads an array of all elements, flat or nested like the shape.
func (s *scan) read(shape []int) error {
	if s.peek() == '[' && len(shape) > 1 {
		return s.nested(shape)
	}
	return s.row(len(s.data) / s.size)
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scan) peek() byte {
	for {
		s.fill(ahead)
		for isSpace(s.buf[s.at]) {
			s.at++
		}
		if s.at < s.end || s.err != nil {
			return s.buf[s.at] // padding at the end
		}
	}
}

// nested reads the inside of an array of the outermost dimension of a shape.
func (s *scan) nested(shape []int) (err error) {
	if len(shape) == 1 {
		return s.row(shape[0])
	}
	n := 0
	for more := s.peek() != ']'; more; n++ {
		if n == shape[0] {
			return invalid(s.place, "more than %d arrays in a dimension of that size", n)
		}
		if s.peek() != '[' {
			return s.other("an array")
		}
		s.at++
		if err = s.nested(shape[1:]); err != nil {
			return err
		}
		if more, err = s.another(); err != nil {
			return err
		}
	}
	if n < shape[0] {
		return invalid(s.place, "%d arrays in a dimension of %d", n, shape[0])
	}
	s.at++
	return nil
}

// another reads a comma, before another value of an array, or finds the bracket at its end.
func (s *scan) another() (more bool, err error) {
	switch s.peek() {
	case ',':
		s.at++
		return true, nil
	case ']':
		return false, nil
	}
	return false, s.fault("want a comma or the end of the array")
}

// row reads n elements and the end of an array.
func (s *scan) row(n int) (err error) {
	i := 0
	for more := s.peek() != ']'; more; {
		done, ended := s.run(n - i)
		if i += done; !ended {
			if i == n && s.peek() != ']' {
				return invalid(s.place, "more than the %d elements of the shape", n)
			}
			if err = s.element(); err != nil {
				return err
			}
			i++
		}
		if more, err = s.another(); err != nil {
			return err
		}
	}
	if i < n {
		return invalid(s.place, "%d elements, want %d", i, n)
	}
	s.at++
	return nil
}

// run reads up to n elements in their usual form. If the last one has ended without a comma, ended is true; else another element
// should follow.
func (s *scan) run(n int) (i int, ended bool) {
	buf, at, last := s.buf, s.at, s.end-ahead
	if s.err != nil {
		last = s.end - 1
	}
	for i < n && at <= last {
		used := s.as.scan(s.data[s.put:][:s.size], buf[at:])
		if used == 0 {
			break
		}
		at += used
		s.put += s.size
		i++
		if buf[at] != ',' {
			ended = true
			break
		}
		if at++; buf[at] == ' ' {
			at++
		}
	}
	s.at = at
	return i, ended
}

// element reads an element in any form.
func (s *scan) element() error {
	s.peek()
	s.fill(longest)
	n := 0
	for isPlain[s.buf[s.at+n]] {
		n++
	}
	token := s.buf[s.at:][:n]
	switch {
	case n == 0:
		return s.other(string(s.as.name))
	case n >= longest:
		return &Error{ErrTooLarge, s.place, fmt.Errorf("element %d has %d bytes or more, want fewer", s.put/s.size, longest)}
	case !isValue(token):
		return s.fault("want a value")
	case !s.as.parse(s.data[s.put:][:s.size], token):
		return invalid(s.place, "element %d is %.40s, want %s", s.put/s.size, token, s.as.name)
	}
	s.at += n
	s.put += s.size
	return nil
}

// other returns an error for the next value, which is not what it should be.
func (s *scan) other(want string) error {
	c := s.peek()
	if c == '-' || c >= '0' && c <= '9' {
		c = '0'
	}
	name, ok := kinds[jsontext.Kind(c)]
	if !ok {
		return s.fault("want a value")
	}
	return invalid(s.place, "element %d is %s, want %s", s.put/s.size, name, want)
}

// fault returns an error of the JSON itself.
func (s *scan) fault(want string) error {
	if s.peek(); s.at == s.end {
		return invalid(s.place, "JSON truncated after %d bytes", s.position())
	}
	return invalid(s.place, "invalid JSON at byte %d: invalid character %q, %s", s.position(), s.buf[s.at], want)
}

// isPlain are the bytes of numbers, true, false and null. Delimiters, strings and white space end them.
var isPlain = func() (set [256]bool) {
	for _, c := range "+-.0123456789abcdefghijklmnopqrstuvwxyzE" {
		set[c] = true
	}
	return set
}()

// isValue reports whether a text of such bytes is a value of JSON.
func isValue(text []byte) bool {
	switch string(text) {
	case "true", "false", "null":
		return true
	}
	_, n := scanDecimal(append(text[:len(text):len(text)], make([]byte, padding)...))
	return n > 0 && n == len(text)
}
