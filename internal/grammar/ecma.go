package grammar

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/etrun-go/etrun/internal/lazy"
)

// ecma returns a regular expression of ECMA 262 with the flag u, as JSON schemas recommend it, in the syntax of package regexp. Escapes
// of punctuation and brackets that are characters, which only expressions without the flag have, are read as there. Other syntax is an
// error that names it.
//
// Look-ahead is in groups with names, and alone is true if there is none, nor another condition on what is around.
func ecma(s string) (text string, alone bool, err error) {
	if len(s) > maxPattern {
		return "", false, fmt.Errorf("%d bytes, at most %d are supported", len(s), maxPattern)
	}
	e := &ecmaReader{rest: s}
	if text, err = e.all(); err != nil {
		return "", false, fmt.Errorf("a regular expression of ECMA 262 that is not supported: %w", err)
	}
	if e.with != "" && e.without != "" {
		return "", false, fmt.Errorf("a regular expression of ECMA 262 that is not supported: %q needs the flag u, and %q is an error with it",
			e.with, e.without)
	}
	return text, e.conditions == 0, nil
}

// all translates an expression.
func (e *ecmaReader) all() (string, error) {
	var b strings.Builder
	for e.rest != "" {
		t, err := e.next()
		if err != nil {
			return "", err
		}
		b.WriteString(t)
	}
	return b.String(), nil
}

// Beginnings of the names of groups that are conditions on what follows, or on what is before, or that are the texts of groups again. Package
// syntax has no look-around, nor references; these are in its syntax.
const (
	aheadName     = "ahead"
	notAheadName  = "notAhead"
	behindName    = "behind"
	notBehindName = "notBehind"
	groupName     = "group"
	backName      = "back"
)

// ecmaReader reads a regular expression.
type ecmaReader struct {
	rest          string
	conditions    int            // on what is before or after, which no part can be made of alone
	backtracks    bool           // groups are captured, and look-behind and back-references are translated
	groups        int            // that are captured
	names         map[string]int // of groups
	with, without string         // what means a set or a character with the flag u only, and without it only; empty for none
}

var (
	reference  = lazy.Pattern(`^\\(?:([1-9][0-9]?)|k<([^>]*)>)`)
	quantifier = lazy.Pattern(`^\{[0-9]+(,[0-9]*)?\}`)
	namedGroup = lazy.Pattern(`^\(\?<[\pL_$][\pL\pN_$]*>`)
	spaces     = []rune{'\t', '\r', ' ', ' ', 0xa0, 0xa0, 0x1680, 0x1680, 0x2000, 0x200a, 0x2028, 0x2029, 0x202f, 0x202f, 0x205f, 0x205f,
		0x3000, 0x3000, 0xfeff, 0xfeff}
	lineEnds = []rune{'\n', '\n', '\r', '\r', 0x2028, 0x2029}
)

// next translates what is next outside of classes.
func (e *ecmaReader) next() (string, error) {
	switch e.rest[0] {
	case '\\':
		if strings.HasPrefix(e.rest, `\b`) || strings.HasPrefix(e.rest, `\B`) {
			edge := e.rest[:2]
			e.conditions, e.rest = e.conditions+1, e.rest[2:]
			return edge, nil
		}
		if back := reference().FindStringSubmatch(e.rest); back != nil && e.backtracks {
			return e.back(back)
		}
		a, err := e.escape(false)
		if err != nil || !a.set {
			return quotedRune(a.char), err
		}
		return "[" + a.ranges + "]", nil
	case '[':
		return e.class()
	case '(':
		return e.group()
	case '.':
		e.rest = e.rest[1:]
		return "[^" + rangesText(lineEnds) + "]", nil
	case '{':
		if q := quantifier().FindString(e.rest); q != "" {
			e.rest = e.rest[len(q):]
			return q, nil
		}
		if strings.HasPrefix(e.rest, "{,") {
			return "", fmt.Errorf("%.20q, which is no number of times in ECMA 262: want {0,", e.rest)
		}
		e.without = "{"
	case '}', ']':
		e.without = e.rest[:1]
	case '^', '$', '|', '*', '+', '?', ')':
		c := e.rest[:1]
		e.rest = e.rest[1:]
		return c, nil
	}
	return quotedRune(e.rune()), nil
}

// back translates a back-reference. One to a group that has no text matches nothing.
func (e *ecmaReader) back(parts []string) (string, error) {
	n, known := e.names[parts[2]]
	if parts[1] != "" {
		n, _ = strconv.Atoi(parts[1])
	} else if !known {
		return "", fmt.Errorf("%s before the group", parts[0])
	}
	e.conditions, e.rest = e.conditions+1, e.rest[len(parts[0]):]
	return fmt.Sprintf("(?P<%s%dx%d>.)", backName, n, e.conditions), nil
}

// rune reads a character.
func (e *ecmaReader) rune() rune {
	c, n := utf8.DecodeRuneInString(e.rest)
	e.rest = e.rest[n:]
	return c
}

// group translates the beginning of a group.
func (e *ecmaReader) group() (string, error) {
	begin := namedGroup().FindString(e.rest)
	switch {
	case begin != "":
	case strings.HasPrefix(e.rest, "(?:"):
		begin = "(?:"
	case !strings.HasPrefix(e.rest, "(?"):
		begin = "("
	case strings.HasPrefix(e.rest, "(?P<"):
		return "", fmt.Errorf("%.20q: want (?<", e.rest)
	case strings.HasPrefix(e.rest, "(?=") || strings.HasPrefix(e.rest, "(?!"):
		name := map[byte]string{'=': aheadName, '!': notAheadName}[e.rest[2]]
		e.conditions, e.rest = e.conditions+1, e.rest[3:]
		return fmt.Sprintf("(?P<%s%d>", name, e.conditions), nil
	case e.backtracks && (strings.HasPrefix(e.rest, "(?<=") || strings.HasPrefix(e.rest, "(?<!")):
		name := map[byte]string{'=': behindName, '!': notBehindName}[e.rest[3]]
		e.conditions, e.rest = e.conditions+1, e.rest[4:]
		return fmt.Sprintf("(?P<%s%d>", name, e.conditions), nil
	default:
		return "", fmt.Errorf("%.20q: look-behind or flags", e.rest)
	}
	e.rest = e.rest[len(begin):]
	if e.backtracks && begin != "(?:" {
		if e.groups++; begin != "(" {
			if e.names == nil {
				e.names = make(map[string]int)
			}
			e.names[begin[3:len(begin)-1]] = e.groups
		}
		return fmt.Sprintf("(?P<%s%d>", groupName, e.groups), nil
	}
	return "(?:", nil
}

// atom is a character of a class, or a set of them in the syntax of one.
type atom struct {
	set    bool
	char   rune
	ranges string
}

func (a atom) text() string {
	if a.set {
		return a.ranges
	}
	return quotedRune(a.char)
}

// class translates a class of characters.
func (e *ecmaReader) class() (string, error) {
	rest, negated := strings.CutPrefix(e.rest[1:], "^")
	e.rest = rest
	var b strings.Builder
	for !strings.HasPrefix(e.rest, "]") {
		t, err := e.item()
		if err != nil {
			return "", err
		}
		b.WriteString(t)
	}
	e.rest = e.rest[1:]
	if negated && strings.Contains(b.String(), `\p`) { // what has no category yet can get this one in another version of Unicode
		b.WriteString(`\p{Cn}`)
	}
	switch {
	case b.Len() == 0 && negated:
		return "(?s:.)", nil
	case b.Len() == 0:
		return "", errors.New("[], which no character matches")
	case negated:
		return "[^" + b.String() + "]", nil
	}
	return "[" + b.String() + "]", nil
}

// item translates a character, a range or a set of a class. A hyphen beside a set is one itself.
func (e *ecmaReader) item() (string, error) {
	a, err := e.atom()
	if err != nil || !strings.HasPrefix(e.rest, "-") || strings.HasPrefix(e.rest, "-]") {
		return a.text(), err
	}
	e.rest = e.rest[1:]
	b, err := e.atom()
	switch {
	case err != nil:
		return "", err
	case a.set || b.set:
		e.without = a.text() + "-" + b.text()
		return a.text() + `\-` + b.text(), nil
	case a.char > b.char:
		return "", fmt.Errorf("the range %q-%q", a.char, b.char)
	}
	return a.text() + "-" + b.text(), nil
}

// atom reads a character or a set of a class.
func (e *ecmaReader) atom() (atom, error) {
	switch {
	case e.rest == "":
		return atom{}, errors.New("a class that is not closed")
	case e.rest[0] == '\\':
		return e.escape(true)
	case strings.HasPrefix(e.rest, "[:") && strings.Contains(e.rest, ":]"):
		return atom{}, fmt.Errorf("%.20q, which is no class in ECMA 262", e.rest)
	}
	return atom{char: e.rune()}, nil
}

// escape reads an escape, in a class or outside.
func (e *ecmaReader) escape(class bool) (atom, error) {
	all := e.rest
	e.rest = e.rest[1:]
	if e.rest == "" {
		return atom{}, errors.New("a backslash at the end")
	}
	c := e.rune()
	if r, ok := letters[c]; ok {
		return atom{char: r}, nil
	}
	switch {
	case c == 'd' || c == 'D' || c == 'w' || c == 'W':
		return atom{set: true, ranges: `\` + string(c)}, nil
	case c == 's':
		return atom{set: true, ranges: rangesText(spaces)}, nil
	case c == 'S':
		return atom{set: true, ranges: rangesText(others(spaces))}, nil
	case c == 'b' && class:
		return atom{char: '\b'}, nil
	case c == '0' && (e.rest == "" || e.rest[0] < '0' || e.rest[0] > '9'):
		return atom{}, nil
	case c == 'c' && e.rest != "" && unicode.IsLetter(rune(e.rest[0])) && e.rest[0] < utf8.RuneSelf:
		return atom{char: e.rune() & 31}, nil
	case c == 'x' || c == 'u':
		if r, ok := e.number(c); ok {
			return atom{char: r}, nil
		}
	case c == 'p' || c == 'P':
		if t, ok := e.property(c == 'P'); ok {
			return atom{set: true, ranges: t}, nil
		}
	case c < utf8.RuneSelf && !unicode.IsLetter(c) && !unicode.IsDigit(c):
		if !strings.ContainsRune(`^$\.*+?()[]{}|/`, c) && !(class && c == '-') {
			e.without = `\` + string(c)
		}
		return atom{char: c}, nil
	}
	kind := "the escape"
	switch {
	case c == 'k' || '1' <= c && c <= '9':
		kind = "a back-reference"
	}
	return atom{}, fmt.Errorf("%s %.20q", kind, all)
}

// letters are the escapes of control characters.
var letters = map[rune]rune{'t': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r'}

// number reads the hexadecimal digits after \x or \u: of \u also those of a surrogate pair, or in braces.
func (e *ecmaReader) number(kind rune) (rune, bool) {
	digits := map[rune]int{'x': 2, 'u': 4}[kind]
	if inner, rest, ok := strings.Cut(strings.TrimPrefix(e.rest, "{"), "}"); ok && kind == 'u' && e.rest[0] == '{' {
		n, err := strconv.ParseUint(inner, 16, 32)
		e.rest, e.with = rest, `\u{`
		return rune(n), err == nil && n <= utf8.MaxRune && utf8.ValidRune(rune(n))
	}
	if len(e.rest) < digits {
		return 0, false
	}
	n, err := strconv.ParseUint(e.rest[:digits], 16, 16)
	e.rest = e.rest[digits:]
	r := rune(n)
	if utf16.IsSurrogate(r) && strings.HasPrefix(e.rest, `\u`) {
		r = utf16.DecodeRune(r, unit([]byte(e.rest[2:])))
		e.rest = e.rest[min(6, len(e.rest)):]
		return r, r != utf8.RuneError
	}
	return r, err == nil && utf8.ValidRune(r)
}

// property translates the name after \p: of a general category or a script.
func (e *ecmaReader) property(negated bool) (string, bool) {
	inner, rest, ok := strings.Cut(e.rest, "}")
	if !ok || !strings.HasPrefix(inner, "{") {
		return "", false
	}
	key, name, pair := strings.Cut(inner[1:], "=")
	if binary := binaryProperties[key]; binary != nil && !pair {
		e.rest, e.with = rest, `\p{`
		if negated {
			return rangesText(others(binary())), true
		}
		return rangesText(binary()), true
	}
	if !pair {
		key, name = "gc", key
	}
	table := map[string]map[string]*unicode.RangeTable{"gc": unicode.Categories, "General_Category": unicode.Categories,
		"sc": unicode.Scripts, "Script": unicode.Scripts}[key]
	if short, ok := unicode.CategoryAliases[name]; ok && table[name] == nil {
		name = short
	}
	if table[name] == nil {
		return "", false
	}
	e.rest, e.with = rest, `\p{`
	if negated {
		return `\P{` + name + `}`, true
	}
	return `\p{` + name + `}`, true
}

// quotedRune returns a character in the syntax of package regexp, in a class or outside.
func quotedRune(r rune) string {
	if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
		return string(r)
	}
	return fmt.Sprintf(`\x{%x}`, r)
}

// rangesText returns ranges of characters in the syntax of a class.
func rangesText(ranges []rune) string {
	var b strings.Builder
	for i := 0; i+1 < len(ranges); i += 2 {
		b.WriteString(quotedRune(ranges[i]) + "-" + quotedRune(ranges[i+1]))
	}
	return b.String()
}
