package toolcall

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/etrun-go/etrun/internal/grammar"
)

// pythonLiteral returns a list or a dictionary of Python as JSON: some templates write such values as Python does.
func pythonLiteral(s string) (text string, ok bool) {
	if s == "" || s[0] != '{' && s[0] != '[' {
		return "", false
	}
	r := &literalArguments{equals: "=", frames: []literalFrame{{shut: ')', object: true}}}
	pending := "v=" + s + ")"
	_, text, _, err := r.member(&pending)
	return text, err == nil && pending == ")"
}

// pythonWord returns a word of Python as JSON, a string if it is none of its constants and numbers.
func pythonWord(word string) string {
	word = strings.TrimSpace(word)
	switch word {
	case "True", "False", "true", "false":
		return strings.ToLower(word)
	case "None", "null":
		return "null"
	}
	digits := strings.ReplaceAll(word, "_", "")
	if s, ok := numberJSON(digits); ok && !integerText().MatchString(digits) {
		return s
	}
	if s, ok := integerJSON(digits); ok {
		return s
	}
	return grammar.Quoted(word)
}

// pythonString reads a string of Python up to its end: models forget to escape quotes, so that one ends a string only if what can follow a
// string follows.
func (r *literalArguments) pythonString(pending *string) error {
	for {
		if r.ended {
			rest := strings.TrimLeft(*pending, jsonSpace)
			r.space.WriteString((*pending)[:len(*pending)-len(rest)])
			if *pending = rest; rest == "" {
				return errMore
			}
			if r.ended = false; strings.IndexByte(",)]}:", rest[0]) >= 0 {
				return nil
			}
			r.text.WriteString(r.mark + r.space.String())
		}
		i := strings.IndexAny(*pending, `\`+r.mark[:1])
		if err := r.upTo(i, pending); err != nil {
			return err
		}
		if (*pending)[0] == '\\' {
			text, n := unescaped(*pending)
			if n == 0 {
				return errMore
			}
			r.text.WriteString(text)
			*pending = (*pending)[n:]
			continue
		}
		yes, perhaps := begins(*pending, r.mark)
		switch {
		case yes:
			*pending, r.ended = (*pending)[len(r.mark):], true
			r.space.Reset()
		case perhaps:
			return errMore
		default:
			r.text.WriteByte((*pending)[0])
			*pending = (*pending)[1:]
		}
	}
}

// pythonEscapes are the escapes of one character.
var pythonEscapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", '\\': `\`, '\'': "'", '"': `"`, 'a': "\a", 'b': "\b", 'f': "\f",
	'v': "\v", '\n': ""}

// escapeDigits are the numbers of hexadecimal digits of escapes.
var escapeDigits = map[byte]int{'x': 2, 'u': 4, 'U': 8}

// unescaped returns the text of an escape of Python and its length, 0 if more of it must come. What is none stays as it is.
func unescaped(s string) (text string, n int) {
	if len(s) < 2 {
		return "", 0
	}
	if text, ok := pythonEscapes[s[1]]; ok {
		return text, 2
	}
	if '0' <= s[1] && s[1] <= '7' {
		return octal(s)
	}
	c, n, ok := hexadecimal(s)
	if !ok {
		return s[:max(n, 1)], n
	}
	if utf16.IsSurrogate(c) { // JSON's way to write others
		low, m, ok := hexadecimal(s[n:])
		switch {
		case m == 0 && strings.HasPrefix(`\u`, s[n:min(n+2, len(s))]):
			return "", 0
		case ok && utf16.DecodeRune(c, low) != utf8.RuneError:
			c, n = utf16.DecodeRune(c, low), n+m
		}
	}
	return string(c), n
}

// hexadecimal reads an escape of hexadecimal digits. n is its length, 0 if more of it must come, and 1 if it is none.
func hexadecimal(s string) (c rune, n int, ok bool) {
	if len(s) < 2 {
		return 0, 0, false
	}
	digits := escapeDigits[s[1]]
	if s[0] != '\\' || digits == 0 {
		return 0, 1, false
	}
	text := s[2:min(2+digits, len(s))]
	x, err := strconv.ParseUint(text, 16, 32)
	switch {
	case err != nil && text != "":
		return 0, 1, false
	case len(text) < digits:
		return 0, 0, false
	}
	return rune(min(x, utf8.MaxRune+1)), 2 + digits, true
}

// octal reads an escape of up to three octal digits.
func octal(s string) (text string, n int) {
	c := rune(0)
	for n = 1; n < 4; n++ {
		if n == len(s) {
			return "", 0
		}
		if s[n] < '0' || s[n] > '7' {
			break
		}
		c = c*8 + rune(s[n]-'0')
	}
	return string(c), n
}
