package answer

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/etrun-go/etrun/serve"
)

// buffer is a JSON value that grows, without its end. Its memory is counted before it is allocated.
type buffer struct{ b []byte }

// leastBuffer is the number of bytes of the first value.
const leastBuffer = 64

// add appends bytes after a text that begins or separates them. hold may be nil.
func (p *buffer) add(hold *serve.Reservation, before, s []byte) error {
	old := cap(p.b)
	if need := len(p.b) + len(before) + len(s) + 1; need > old { // with the end
		size := max(need, old+old/2, leastBuffer)
		if hold != nil {
			if err := hold.Grow(int64(size)); err != nil {
				return err
			}
			defer hold.Shrink(int64(old))
		}
		p.b = append(make([]byte, 0, size), p.b...)
	}
	p.b = append(append(p.b, before...), s...)
	return nil
}

// str is a string that grows.
type str struct{ buffer }

// add appends a text.
func (s *str) add(hold *serve.Reservation, text string) error {
	if text == "" {
		return nil
	}
	quoted, err := json.Marshal(text, format)
	if err != nil {
		return err
	}
	before := quoted[:1]
	if len(s.b) > 0 {
		before = nil
	}
	return s.buffer.add(hold, before, quoted[1:len(quoted)-1])
}

// MarshalJSONTo writes the string.
func (s *str) MarshalJSONTo(e *jsontext.Encoder) error {
	if len(s.b) == 0 {
		return e.WriteToken(jsontext.String(""))
	}
	return e.WriteValue(append(s.b, '"'))
}

// List is a list that grows.
type List struct{ buffer }

// Add appends an element. hold counts its memory; it may be nil.
func (l *List) Add(hold *serve.Reservation, element any) error {
	data, err := json.Marshal(element, format)
	if err != nil {
		return err
	}
	before := ","
	if len(l.b) == 0 {
		before = "["
	}
	return l.buffer.add(hold, []byte(before), data)
}

// MarshalJSONTo writes the list.
func (l *List) MarshalJSONTo(e *jsontext.Encoder) error {
	if len(l.b) == 0 {
		return e.WriteValue([]byte("[]"))
	}
	return e.WriteValue(append(l.b, ']'))
}
