package tokenizer

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const maxPattern = 4 << 10

// spaces are the characters of \s in Oniguruma, which Hugging Face's library uses, and in Rust's
// fancy-regex, which tiktoken uses. Package regexp has fewer.
const spaces = `\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}`

// regex is a regular expression that means the same in package regexp as in these libraries, except
// for an alternative \s+(?!\S), which package regexp does not support: it is written ([spaces]+).
type regex struct {
	re   *regexp.Regexp
	rest *regexp.Regexp // the other alternatives, at the beginning of the text; nil without that alternative
}

func newRegex(pattern, place string) (*regex, error) {
	if len(pattern) > maxPattern {
		return nil, unsupported(place, "a pattern of %d bytes, at most %d are allowed", len(pattern), maxPattern)
	}
	v := vetting{rest: pattern, special: -1}
	if err := v.vet(); err != "" {
		return nil, unsupported(place, "pattern %.200q: %s", pattern, err)
	}
	text := v.out.String()
	r := &regex{}
	var err error
	if r.re, err = regexp.Compile(text); err == nil && v.special >= 0 {
		r.rest, err = regexp.Compile(`\A(?:` + without(text, v.special) + `)`)
	}
	if err != nil {
		return nil, unsupported(place, "pattern %.200q: %.200s", pattern, err)
	}
	return r, nil
}

// trailing replaces \s+(?!\S).
const trailing = "([" + spaces + "]+)"

// without returns a pattern without the alternative at an offset, which is trailing.
func without(pattern string, at int) string {
	before, after := strings.TrimSuffix(pattern[:at], "|"), strings.TrimPrefix(pattern[at+len(trailing):], "|")
	if before == "" || after == "" {
		return before + after
	}
	return before + "|" + after
}

// each yields the offsets of the matches that are not empty.
func (r *regex) each(s string, yield func(start, end int)) {
	for at := 0; at < len(s); {
		m := r.re.FindStringSubmatchIndex(s[at:])
		if m == nil {
			return
		}
		start, end := at+m[0], at+m[1]
		if r.rest != nil && m[2] >= 0 && end < len(s) {
			end = r.trail(s, start, end)
		}
		if end == start { // no match begins here
			_, size := utf8.DecodeRuneInString(s[start:])
			at = start + size
			continue
		}
		yield(start, end)
		at = end
	}
}

// trail returns the end of the match at start, where spaces end at end, before another character:
// (?!\S) leaves the last one. If it is the only one, other alternatives may match.
func (r *regex) trail(s string, start, end int) int {
	_, size := utf8.DecodeLastRuneInString(s[start:end])
	if end-size > start {
		return end - size
	}
	m := r.rest.FindStringIndex(s[start:])
	if m == nil {
		return start
	}
	return start + m[1]
}

// vetting checks that a pattern has the same meaning in all libraries, and translates it to package
// regexp.
type vetting struct {
	rest       string
	out        strings.Builder
	quantified bool // a quantifier precedes rest
	depth      int  // open groups
	begin      int  // offset in out of the current alternative outside of groups
	special    int  // offset in out of the alternative \s+(?!\S), -1 for none
}

// caseless are the texts for which ignoring the case means more than single characters: ß is ss.
var caseless = []string{"ss", "st", "ff", "fi", "fl"}

func (v *vetting) take(n int) {
	v.out.WriteString(v.rest[:n])
	v.rest = v.rest[n:]
}

// vet returns the unsupported part of a pattern, "" for none.
func (v *vetting) vet() string {
	for v.rest != "" {
		var problem string
		c := v.rest[0]
		quantifier := false
		switch c {
		case '\\':
			problem = v.escape(false)
		case '[':
			problem = v.class()
		case '(':
			problem = v.group()
		case '*', '+', '?', '{':
			quantifier = true
			problem = v.quantifier()
		case '^', '$', '.':
			problem = string(c) + " outside of a class"
		case ')':
			v.depth--
			v.take(1)
		case '|':
			v.take(1)
			if v.depth == 0 {
				v.begin = v.out.Len()
			}
		default:
			v.take(1)
		}
		if problem != "" {
			return problem
		}
		v.quantified = quantifier
	}
	return ""
}

func (v *vetting) quantifier() string {
	c := v.rest[0]
	if v.quantified && c != '?' {
		return "a possessive or repeated quantifier"
	}
	if c != '{' {
		v.take(1)
		return ""
	}
	end := strings.IndexByte(v.rest, '}')
	if end < 2 || strings.Trim(v.rest[1:end], "0123456789,") != "" || v.rest[1] == ',' {
		return "a { that begins no quantifier"
	}
	v.take(end + 1)
	if strings.HasPrefix(v.rest, "?") || strings.HasPrefix(v.rest, "+") {
		return "a repeated quantifier"
	}
	return ""
}

func (v *vetting) group() string {
	switch {
	case strings.HasPrefix(v.rest, "(?!"):
		return v.lookahead()
	case strings.HasPrefix(v.rest, "(?:"):
		v.depth++
		v.take(len("(?:"))
		return ""
	case !strings.HasPrefix(v.rest, "(?"):
		v.depth++
		v.out.WriteString("(?:")
		v.rest = v.rest[1:]
		return ""
	}
	inner, ok := strings.CutPrefix(v.rest, "(?i:")
	end := strings.IndexByte(inner, ')')
	if !ok || end < 0 {
		return "a group of another kind"
	}
	for _, c := range []byte(inner[:end]) {
		if c != '\'' && c != '|' && c != '[' && c != ']' && (c < 'a' || c > 'z') {
			return "(?i:) with other than small letters"
		}
	}
	for _, text := range caseless {
		if strings.Contains(inner[:end], text) {
			return "(?i:) with " + text
		}
	}
	v.take(len("(?i:") + end + 1)
	return ""
}

// lookahead accepts (?!\S) at the end of the alternative \s+(?!\S).
func (v *vetting) lookahead() string {
	rest, ok := strings.CutPrefix(v.rest, `(?!\S)`)
	end := rest == "" || rest[0] == '|'
	if !ok || !end || v.depth > 0 || v.special >= 0 || v.out.String()[v.begin:] != "["+spaces+"]+" {
		return `a lookahead other than \s+(?!\S)`
	}
	text := v.out.String()[:v.begin] + trailing
	v.out.Reset()
	v.out.WriteString(text)
	v.special, v.rest = v.begin, rest
	return ""
}

// escape copies an escape sequence; inClass reports whether it is inside a class.
func (v *vetting) escape(inClass bool) string {
	if len(v.rest) < 2 {
		return "\\ at the end"
	}
	switch c := v.rest[1]; {
	case c == 's' || c == 'S' || c == 'd' || c == 'D':
		if inClass && c == 'S' {
			return `\S in a class`
		}
		v.out.WriteString(perl(c, inClass))
		v.rest = v.rest[2:]
	case strings.IndexByte("rntfv", c) >= 0, c < utf8.RuneSelf && unicode.In(rune(c), unicode.P, unicode.S), c == ' ':
		v.take(2)
	case c == 'p' || c == 'P':
		end := strings.IndexByte(v.rest, '}')
		if end < 4 || v.rest[2] != '{' || !knownClass(v.rest[3:end]) {
			return "a \\p that is no category or script"
		}
		v.take(end + 1)
	case c == 'u' && len(v.rest) >= 6 && strings.Trim(v.rest[2:6], "0123456789abcdefABCDEF") == "":
		v.out.WriteString(`\x{` + v.rest[2:6] + "}")
		v.rest = v.rest[6:]
	case c == 'x' && len(v.rest) >= 4 && strings.Trim(v.rest[2:4], "0123456789abcdefABCDEF") == "":
		v.take(4)
	default:
		return "\\" + string(rune(c))
	}
	return ""
}

// perl returns \s, \S, \d or \D for package regexp.
func perl(c byte, inClass bool) string {
	switch {
	case c == 'd':
		return `\p{Nd}`
	case c == 'D':
		return `\P{Nd}`
	case inClass:
		return spaces
	case c == 's':
		return "[" + spaces + "]"
	}
	return "[^" + spaces + "]"
}

// knownClass reports whether a name is a general category, except for those with unassigned
// characters, or a script.
func knownClass(name string) bool {
	if _, ok := unicode.Scripts[name]; ok {
		return true
	}
	_, ok := unicode.Categories[name]
	return ok && len(name) <= 2 && name[0] != 'C' && name != "LC"
}

// class copies a character class. A class inside it is a union in Oniguruma.
func (v *vetting) class() string {
	v.take(1)
	if strings.HasPrefix(v.rest, "^") {
		v.take(1)
	}
	if strings.HasPrefix(v.rest, "]") {
		return "an empty class"
	}
	depth := 1
	for v.rest != "" {
		switch c := v.rest[0]; {
		case c == '\\':
			if problem := v.escape(true); problem != "" {
				return problem
			}
		case c == '[':
			if len(v.rest) < 2 || strings.IndexByte("^:]", v.rest[1]) >= 0 || strings.HasSuffix(v.out.String(), "-") {
				return "a class inside a class"
			}
			depth++
			v.rest = v.rest[1:]
		case c == ']':
			if depth--; depth == 0 {
				v.take(1)
				return ""
			}
			v.rest = v.rest[1:]
			if strings.HasPrefix(v.rest, "-") {
				return "- after a class inside a class"
			}
		case strings.HasPrefix(v.rest, "&&"):
			return "an intersection of classes"
		default:
			v.take(1)
		}
	}
	return "a class without an end"
}
