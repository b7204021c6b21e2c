package toolcall

import (
	"fmt"
	"strings"
)

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

// scan returns how many of the following bytes belong to the value, and these as JSON: models write line feeds and tabs in strings as
// they are.
func (s *scanner) scan(text string) (value string, n int, state scanState) {
	var repaired strings.Builder
	from := 0 // of the text that was not copied
	end := func(n int, state scanState) (string, int, scanState) {
		if from == 0 {
			return text[:n], n, state
		}
		repaired.WriteString(text[from:n])
		return repaired.String(), n, state
	}
	for i := range len(text) {
		c := text[i]
		switch {
		case s.inString && c < ' ':
			repaired.WriteString(text[from:i])
			repaired.WriteString(escaped(c)[s.after():])
			from, s.escaped = i+1, false
		case s.inString && s.escaped:
			s.escaped = false
		case s.inString && c == '\\':
			s.escaped = true
		case s.inString && c == '"':
			s.inString = false
			if len(s.open) == 0 {
				return end(i+1, valueEnds)
			}
		case s.inString:
		case len(s.open) == 0 && s.begun && strings.IndexByte(",}] \t\r\n", c) >= 0: // after a number or a word
			return end(i, valueEnds)
		case c == '"':
			s.inString = true
		case c == '{' || c == '[':
			s.open = append(s.open, c+2) // the closing bracket
		case c == '}' || c == ']':
			last := len(s.open) - 1
			if last < 0 || s.open[last] != c {
				return end(i, valueBroken)
			}
			if s.open = s.open[:last]; last == 0 {
				return end(i+1, valueEnds)
			}
		}
		s.begun = true
	}
	return end(len(text), valueGoesOn)
}

// after returns the length of the beginning of an escape that has come: a backslash.
func (s *scanner) after() int {
	if s.escaped {
		return 1
	}
	return 0
}

// escaped returns the escape of a control character in JSON.
func escaped(c byte) string {
	switch c {
	case '\n':
		return `\n`
	case '\t':
		return `\t`
	case '\r':
		return `\r`
	}
	return fmt.Sprintf(`\u%04x`, c)
}
