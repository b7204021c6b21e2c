package openai

import "strings"

// scanner finds the end of a JSON value that comes in parts. It follows strings and brackets; other faults of the value are left
// to the client.
type scanner struct {
	open     []byte // the brackets that close what is open
	inString bool
	escaped  bool
	begun    bool
}

// scanState is how far a value has been found.
type scanState int

const (
	valueGoesOn scanState = iota
	valueEnds
	valueBroken
)

// scan returns how many of the following bytes belong to the value.
func (s *scanner) scan(text string) (n int, state scanState) {
	for i := range len(text) {
		c := text[i]
		switch {
		case s.inString && s.escaped:
			s.escaped = false
		case s.inString && c < ' ':
			return i, valueBroken
		case s.inString && c == '\\':
			s.escaped = true
		case s.inString && c == '"':
			s.inString = false
			if len(s.open) == 0 {
				return i + 1, valueEnds
			}
		case s.inString:
		case len(s.open) == 0 && s.begun && strings.IndexByte(",}] \t\r\n", c) >= 0: // after a number or a word
			return i, valueEnds
		case c == '"':
			s.inString = true
		case c == '{' || c == '[':
			s.open = append(s.open, c+2) // the closing bracket
		case c == '}' || c == ']':
			last := len(s.open) - 1
			if last < 0 || s.open[last] != c {
				return i, valueBroken
			}
			if s.open = s.open[:last]; last == 0 {
				return i + 1, valueEnds
			}
		}
		s.begun = true
	}
	return len(text), valueGoesOn
}
