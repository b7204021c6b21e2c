package jinja

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is the kind of a token.
type kind int

const (
	eof kind = iota
	data
	printBegin
	printEnd
	tagBegin
	tagEnd
	name
	str
	number // value is an int or a float64
	op
)

// token is a part of a template.
type token struct {
	kind  kind
	text  string
	value any
	line  int
}

// lexer splits a template.
type lexer struct {
	src    string
	at     int
	tokens []token
	open   []byte // brackets
	line   int
	lineAt int // position up to which lines are counted
}

// operators are tried in order.
var operators = []string{"**", "//", "==", "!=", ">=", "<=", "+", "-", "~", "*", "/", "%", "=", ">", "<", ".", "(", ")", "[", "]", "{", "}",
	",", ":", "|"}

var closing = map[byte]byte{'(': ')', '[': ']', '{': '}'}

// lex returns the tokens of a template.
func lex(src string) ([]token, error) {
	src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	l := &lexer{src: strings.TrimSuffix(src, "\n"), line: 1}
	for l.at < len(l.src) {
		if err := l.part(); err != nil {
			return nil, fmt.Errorf("line %d: %w", l.here(), err)
		}
	}
	l.emit(eof, "", nil)
	return l.tokens, nil
}

// here returns the line of the current position.
func (l *lexer) here() int {
	at := min(l.at, len(l.src))
	if at > l.lineAt {
		l.line += strings.Count(l.src[l.lineAt:at], "\n")
		l.lineAt = at
	}
	return l.line
}

func (l *lexer) emit(k kind, text string, value any) {
	l.tokens = append(l.tokens, token{k, text, value, l.here()})
}

// part reads text, and what follows it in braces.
func (l *lexer) part() error {
	begin := l.at
	i := nextBrace(l.src[begin:])
	if i < 0 {
		l.emit(data, l.src[begin:], nil)
		l.at = len(l.src)
		return nil
	}
	open := l.src[begin+i : begin+i+2]
	l.at = begin + i + 2
	sign := l.sign()
	if text := l.before(l.src[begin:begin+i], begin, open, sign); text != "" {
		l.emit(data, text, nil)
	}
	switch open {
	case "{#":
		end := strings.Index(l.src[l.at:], "#}")
		if end < 0 {
			return errors.New("a comment without its end #}")
		}
		l.at += end
		if end > 0 && strings.IndexByte("-+", l.src[l.at-1]) >= 0 {
			l.at--
		}
		l.closes("#}", true)
		return nil
	case "{{":
		return l.inside(printBegin, printEnd, "}}")
	}
	if begin, ok := l.raw(); ok {
		return l.rawText(begin)
	}
	return l.inside(tagBegin, tagEnd, "%}")
}

// nextBrace returns the index of the next opening, -1 for none.
func nextBrace(s string) int {
	for from := 0; ; {
		i := strings.IndexByte(s[from:], '{')
		if i < 0 || from+i+1 >= len(s) {
			return -1
		}
		if from += i; strings.IndexByte("{%#", s[from+1]) >= 0 {
			return from
		}
		from++
	}
}

// sign reads the sign after an opening.
func (l *lexer) sign() (sign byte) {
	if l.at < len(l.src) && (l.src[l.at] == '-' || l.src[l.at] == '+') {
		sign = l.src[l.at]
		l.at++
	}
	return sign
}

// before returns the text before an opening without the white space that it drops.
func (l *lexer) before(text string, begin int, open string, sign byte) string {
	if sign == '-' {
		return strings.TrimRightFunc(text, unicode.IsSpace)
	}
	if sign == '+' || open == "{{" {
		return text
	}
	at := strings.LastIndexByte(text, '\n') + 1
	starts := at > 0 || begin == 0 || l.src[begin-1] == '\n'
	if starts && strings.TrimFunc(text[at:], unicode.IsSpace) == "" {
		return text[:at]
	}
	return text
}

// closes reads an end with its sign, and the white space that it drops; ok is false if there is none here.
func (l *lexer) closes(end string, block bool) bool {
	rest := l.src[l.at:]
	switch {
	case strings.HasPrefix(rest, "-"+end):
		rest = strings.TrimLeftFunc(rest[1+len(end):], unicode.IsSpace)
	case block && strings.HasPrefix(rest, "+"+end):
		rest = rest[1+len(end):]
	case strings.HasPrefix(rest, end):
		if rest = rest[len(end):]; block {
			rest = strings.TrimPrefix(rest, "\n")
		}
	default:
		return false
	}
	l.at = len(l.src) - len(rest)
	return true
}

// word reads a name in a tag, up to the tag's end.
func (l *lexer) word(from int, want string) (at int, ok bool) {
	rest := strings.TrimLeftFunc(l.src[from:], unicode.IsSpace)
	if !strings.HasPrefix(rest, want) {
		return 0, false
	}
	rest = strings.TrimLeftFunc(rest[len(want):], unicode.IsSpace)
	return len(l.src) - len(rest), true
}

// raw reports whether a raw tag begins here, and where its text begins.
func (l *lexer) raw() (begin int, ok bool) {
	at, ok := l.word(l.at, "raw")
	if !ok {
		return 0, false
	}
	rest := l.src[at:]
	if strings.HasPrefix(rest, "-%}") {
		return len(l.src) - len(strings.TrimLeftFunc(rest[3:], unicode.IsSpace)), true
	}
	return at + 2, strings.HasPrefix(rest, "%}")
}

// rawText reads text up to endraw.
func (l *lexer) rawText(begin int) error {
	for from := begin; ; {
		i := strings.Index(l.src[from:], "{%")
		if i < 0 {
			return errors.New("raw without endraw")
		}
		open := from + i
		l.at = open + 2
		sign := l.sign()
		at, ok := l.word(l.at, "endraw")
		if l.at = at; ok && l.closes("%}", true) {
			l.emit(data, l.before(l.src[begin:open], begin, "{%", sign), nil)
			return nil
		}
		from = open + 2
	}
}

// inside reads the tokens up to an end.
func (l *lexer) inside(begin, end kind, close string) error {
	l.emit(begin, "", nil)
	l.open = l.open[:0]
	for {
		for l.at < len(l.src) && unicode.IsSpace(rune(l.src[l.at])) {
			l.at++
		}
		if l.at == len(l.src) {
			return fmt.Errorf("a tag without its end %s", close)
		}
		line := l.here()
		if len(l.open) == 0 && l.closes(close, end == tagEnd) {
			l.tokens = append(l.tokens, token{end, "", nil, line})
			return nil
		}
		if err := l.one(); err != nil {
			return err
		}
	}
}

// one reads one token.
func (l *lexer) one() error {
	switch c := l.src[l.at]; {
	case c == '\'' || c == '"':
		return l.quoted(c)
	case '0' <= c && c <= '9':
		return l.number()
	case c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
		n := strings.IndexFunc(l.src[l.at:], func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if n < 0 {
			n = len(l.src) - l.at
		}
		l.emit(name, l.src[l.at:l.at+n], nil)
		l.at += n
		return nil
	}
	for _, o := range operators {
		if strings.HasPrefix(l.src[l.at:], o) {
			l.emit(op, o, nil)
			l.at += len(o)
			return l.bracket(o[0])
		}
	}
	r, _ := utf8.DecodeRuneInString(l.src[l.at:])
	return fmt.Errorf("the character %q", r)
}

// bracket follows the nesting of brackets.
func (l *lexer) bracket(c byte) error {
	if want, ok := closing[c]; ok {
		l.open = append(l.open, want)
	} else if c == ')' || c == ']' || c == '}' {
		if n := len(l.open); n == 0 || l.open[n-1] != c {
			return fmt.Errorf("a bracket %q that is not open", c)
		}
		l.open = l.open[:len(l.open)-1]
	}
	return nil
}

func (l *lexer) number() error {
	rest := l.src[l.at:]
	digits := func(from int) int {
		for from < len(rest) && '0' <= rest[from] && rest[from] <= '9' {
			from++
		}
		return from
	}
	n := digits(0)
	end := n
	if n+1 < len(rest) && rest[n] == '.' {
		if k := digits(n + 1); k > n+1 {
			end = k
		}
	}
	if end < len(rest) && (rest[end] == 'e' || rest[end] == 'E') {
		k := end + 1
		if k < len(rest) && (rest[k] == '+' || rest[k] == '-') {
			k++
		}
		if m := digits(k); m > k {
			end = m
		}
	}
	var value any
	var err error
	if end > n {
		value, err = strconv.ParseFloat(rest[:end], 64)
	} else {
		value, err = strconv.Atoi(rest[:end])
	}
	l.emit(number, rest[:end], value)
	l.at += end
	return err
}

// escapes are those of one character in strings.
var escapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", '\\': "\\", '\'': "'", '"': `"`, '0': "\x00", 'a': "\a", 'b': "\b",
	'f': "\f", 'v': "\v", '\n': ""}

// hexes are the numbers of digits of characters by their code.
var hexes = map[byte]int{'x': 2, 'u': 4, 'U': 8}

// quoted reads a string.
func (l *lexer) quoted(quote byte) error {
	var b strings.Builder
	for i := l.at + 1; i < len(l.src); i++ {
		c := l.src[i]
		if c == quote {
			l.emit(str, b.String(), nil)
			l.at = i + 1
			return nil
		}
		if c != '\\' || i+1 == len(l.src) {
			b.WriteByte(c)
			continue
		}
		i++
		e := l.src[i]
		if s, ok := escapes[e]; ok {
			b.WriteString(s)
			continue
		}
		n := hexes[e]
		if n == 0 || i+n >= len(l.src) {
			b.WriteByte('\\')
			b.WriteByte(e)
			continue
		}
		x, err := strconv.ParseUint(l.src[i+1:i+1+n], 16, 32)
		if err != nil {
			return fmt.Errorf("the escape %.12q in a string", l.src[i-1:i+1+n])
		}
		b.WriteRune(rune(x))
		i += n
	}
	return errors.New("a string without its end")
}
