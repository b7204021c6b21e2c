package grammar

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits on grammars in GBNF.
const (
	maxRepeat = 1000 // of a part
	maxNested = 64   // parentheses
	maxRules  = 20_000
)

// GBNF returns the grammar of the texts of the rule root of a grammar in GBNF, the notation of llama.cpp: literals, classes of
// characters, groups, alternatives and repetitions.
func GBNF(text string, limits ...Limit) (*Grammar, error) {
	r := newGBNF(NewBuilder(limits...), text)
	root, err := r.read("root")
	if err != nil {
		return nil, err
	}
	return r.Build(root)
}

func newGBNF(b *Builder, text string) *gbnfReader {
	return &gbnfReader{Builder: b, all: text, rest: text, rules: make(map[string]*gbnfRule)}
}

// read returns the texts of a rule of the grammar.
func (r *gbnfReader) read(root string) (Part, error) {
	text := r.all
	if !utf8.ValidString(text) {
		return nil, errors.New("want valid UTF-8")
	}
	for r.space(true); r.rest != ""; r.space(true) {
		if err := r.definition(); err != nil {
			return nil, fmt.Errorf("line %d: %w", r.line(len(text)-len(r.rest)), err)
		}
	}
	for name, rule := range r.rules {
		if !rule.defined {
			return nil, fmt.Errorf("line %d: there is no rule %.60q", r.line(rule.at), name)
		}
	}
	if r.rules[root] == nil {
		return nil, fmt.Errorf("there is no rule %s", root)
	}
	return Call(r.rules[root].id), nil
}

// gbnfRule is a rule that is defined or used.
type gbnfRule struct {
	id      int32
	at      int // offset of the first use
	defined bool
}

// gbnfReader reads a grammar in GBNF.
type gbnfReader struct {
	*Builder
	all, rest string
	rules     map[string]*gbnfRule
	nested    int
	current   string // the rule that is read
}

// line returns the number of the line at an offset.
func (r *gbnfReader) line(at int) int { return 1 + strings.Count(r.all[:at], "\n") }

// rule returns a rule by its name.
func (r *gbnfReader) rule(name string) *gbnfRule {
	if r.rules[name] == nil {
		r.rules[name] = &gbnfRule{id: r.Declare(), at: len(r.all) - len(r.rest)}
	}
	return r.rules[name]
}

// space skips spaces and comments, with lines also their ends.
func (r *gbnfReader) space(lines bool) {
	for r.rest != "" {
		switch c := r.rest[0]; {
		case c == '#':
			end := strings.IndexByte(r.rest, '\n')
			if end < 0 {
				end = len(r.rest)
			}
			r.rest = r.rest[end:]
		case c == ' ', c == '\t', lines && (c == '\n' || c == '\r'):
			r.rest = r.rest[1:]
		default:
			return
		}
	}
}

// name reads the name of a rule, empty if there is none.
func (r *gbnfReader) name() string {
	n := strings.IndexFunc(r.rest, func(c rune) bool {
		return c != '-' && c != '_' && !('a' <= c && c <= 'z') && !('A' <= c && c <= 'Z') && !('0' <= c && c <= '9')
	})
	if n < 0 {
		n = len(r.rest)
	}
	name := r.rest[:n]
	r.rest = r.rest[n:]
	return name
}

// definition reads a rule.
func (r *gbnfReader) definition() error {
	name := r.name()
	if name == "" {
		return fmt.Errorf("%.20q, want the name of a rule", r.rest)
	}
	if len(r.rules) >= maxRules {
		return fmt.Errorf("more than %d rules", maxRules)
	}
	rule := r.rule(name)
	if rule.defined {
		return fmt.Errorf("the rule %.60q again", name)
	}
	if r.space(false); !strings.HasPrefix(r.rest, "::=") {
		return fmt.Errorf("%.20q after the name of a rule, want ::=", r.rest)
	}
	r.rest = r.rest[len("::="):]
	r.space(true)
	r.current = name
	p, err := r.alternatives()
	if err != nil {
		return err
	}
	if r.rest != "" && !strings.ContainsAny(r.rest[:1], "\r\n") {
		return fmt.Errorf("%.20q in the rule %.60q", r.rest, name)
	}
	rule.defined = true
	r.Define(rule.id, p)
	return r.err
}

// alternatives reads sequences with | between them. Those of a rule that begin with itself follow the others any number of times.
func (r *gbnfReader) alternatives() (Part, error) {
	var list, again []Part
	for {
		before := r.rest
		itself := r.nested == 0 && r.name() == r.current
		if r.space(false); !itself || r.rest != "" && strings.ContainsAny(r.rest[:1], "*+?{") {
			r.rest, itself = before, false
		}
		p, err := r.sequence()
		switch {
		case err != nil:
			return nil, err
		case itself:
			again = append(again, p)
		default:
			list = append(list, p)
		}
		if !strings.HasPrefix(r.rest, "|") {
			break
		}
		r.rest = r.rest[1:]
		r.space(true)
	}
	p := Alt(list...)
	if len(list) == 1 {
		p = list[0]
	}
	if again != nil {
		p = Seq(p, Many(r.Rule(Alt(again...))))
	}
	return p, r.err
}

// sequence reads parts, each of which can be repeated.
func (r *gbnfReader) sequence() (Part, error) {
	var list []Part
	for {
		r.space(r.nested > 0)
		p, err := r.part()
		if err != nil || p == nil {
			return Seq(list...), err
		}
		r.space(r.nested > 0)
		for n := 1; r.rest != "" && strings.ContainsAny(r.rest[:1], "*+?{"); n++ {
			if n > maxNested { // each is a call in a call when the grammar is built
				return nil, fmt.Errorf("more than %d repetitions of repetitions", maxNested)
			}
			if p, err = r.repeated(p); err != nil {
				return nil, err
			}
			r.space(r.nested > 0)
		}
		list = append(list, p)
	}
}

// part reads a part, nil if none begins here.
func (r *gbnfReader) part() (Part, error) {
	if r.rest == "" {
		return nil, nil
	}
	switch c := r.rest[0]; c {
	case '"':
		return r.literal()
	case '[':
		return r.class()
	case '.':
		r.rest = r.rest[1:]
		return characters(others(nil)), nil
	case '(':
		if r.nested++; r.nested > maxNested {
			return nil, fmt.Errorf("more than %d parentheses in parentheses", maxNested)
		}
		r.rest = r.rest[1:]
		p, err := r.alternatives()
		if err == nil && !strings.HasPrefix(r.rest, ")") {
			err = errors.New("a parenthesis is not closed")
		}
		if err != nil {
			return nil, err
		}
		r.nested--
		r.rest = r.rest[1:]
		return r.Rule(p), nil // a part can be repeated: its states are added once
	}
	if name := r.name(); name != "" {
		return Call(r.rule(name).id), nil
	}
	return nil, nil
}

// repeated reads how often a part occurs.
func (r *gbnfReader) repeated(p Part) (Part, error) {
	c := r.rest[0]
	r.rest = r.rest[1:]
	switch c {
	case '*':
		return Repeat(p, 0, -1), nil
	case '+':
		return Repeat(p, 1, -1), nil
	case '?':
		return Repeat(p, 0, 1), nil
	}
	inner, rest, found := strings.Cut(r.rest, "}")
	first, last, pair := strings.Cut(inner, ",")
	least, err := strconv.Atoi(strings.TrimSpace(first))
	most, err2 := least, error(nil)
	if last = strings.TrimSpace(last); pair && last == "" {
		most = -1
	} else if pair {
		most, err2 = strconv.Atoi(last)
	}
	if err != nil || err2 != nil || !found || least < 0 || least > maxRepeat || most > maxRepeat || most >= 0 && most < least {
		return nil, fmt.Errorf("the repetition {%.20s: want {m}, {m,} or {m,n} up to %d", r.rest, maxRepeat)
	}
	r.rest = rest
	return Repeat(p, least, most), nil
}

// literal reads a text in quotes.
func (r *gbnfReader) literal() (Part, error) {
	r.rest = r.rest[1:]
	var b strings.Builder
	for !strings.HasPrefix(r.rest, `"`) {
		c, err := r.character()
		if err != nil {
			return nil, err
		}
		b.WriteRune(c)
	}
	r.rest = r.rest[1:]
	return Text(b.String()), nil
}

// class reads a class of characters.
func (r *gbnfReader) class() (Part, error) {
	r.rest = r.rest[1:]
	rest, negated := strings.CutPrefix(r.rest, "^")
	r.rest = rest
	var pairs [][2]rune
	for !strings.HasPrefix(r.rest, "]") {
		low, err := r.character()
		if err != nil {
			return nil, err
		}
		high := low
		if strings.HasPrefix(r.rest, "-") && !strings.HasPrefix(r.rest, "-]") {
			r.rest = r.rest[1:]
			if high, err = r.character(); err != nil {
				return nil, err
			}
		}
		if high < low {
			return nil, fmt.Errorf("the range %q-%q", low, high)
		}
		pairs = append(pairs, [2]rune{low, high})
	}
	r.rest = r.rest[1:]
	ranges := joined(pairs)
	if negated {
		ranges = others(ranges)
	}
	if p := characters(ranges); p != nil {
		return p, nil
	}
	return nil, errors.New("a class without characters")
}

// escapes are the characters after a backslash that stand for others, or for themselves.
var escapes = map[byte]rune{'n': '\n', 'r': '\r', 't': '\t', '"': '"', '\\': '\\', '[': '[', ']': ']', '-': '-', '^': '^'}

// digitsOf are the numbers of hexadecimal digits after a backslash and a letter.
var digitsOf = map[byte]int{'x': 2, 'u': 4, 'U': 8}

// character reads a character of a literal or of a class.
func (r *gbnfReader) character() (rune, error) {
	c, size := utf8.DecodeRuneInString(r.rest)
	switch {
	case r.rest == "" || c == '\n':
		return 0, errors.New("a literal or a class does not end on its line")
	case c != '\\':
		r.rest = r.rest[size:]
		return c, nil
	case len(r.rest) < 2:
		return 0, errors.New("a backslash at the end")
	}
	kind := r.rest[1]
	if c, ok := escapes[kind]; ok {
		r.rest = r.rest[2:]
		return c, nil
	}
	n := digitsOf[kind]
	if n == 0 || len(r.rest) < 2+n {
		return 0, fmt.Errorf("the escape %.10q", r.rest)
	}
	x, err := strconv.ParseUint(r.rest[2:2+n], 16, 32)
	if err != nil || x > utf8.MaxRune || !utf8.ValidRune(rune(x)) {
		return 0, fmt.Errorf("the escape %.10q is no character", r.rest)
	}
	r.rest = r.rest[2+n:]
	return rune(x), nil
}
