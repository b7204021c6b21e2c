package grammar

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// expression returns whether a text has a match of a regular expression of ECMA 262, also with look-around and back-references, which no
// grammar has, in how many steps. If finding out takes more than maxSteps, it says yes.
func expression(s string) (match func(text string) (ok bool, steps int), err error) {
	if len(s) > maxPattern {
		return nil, fmt.Errorf("%d bytes, at most %d are supported", len(s), maxPattern)
	}
	e := &ecmaReader{rest: s, backtracks: true}
	t, err := e.all()
	if err != nil {
		return nil, err
	}
	if e.conditions == 0 {
		r, err := regexp.Compile(t)
		if err != nil {
			return nil, err
		}
		return func(text string) (bool, int) { return r.MatchString(text), len(text) }, nil
	}
	re, err := syntax.Parse(t, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if refersBehind(re, false) {
		return nil, errors.New("a back-reference in a look-behind")
	}
	return func(text string) (bool, int) {
		b := &backtracker{text: text, steps: maxSteps, groups: make(map[string]string)}
		for at := 0; at <= len(text); at++ {
			if (at == len(text) || utf8.RuneStart(text[at])) && b.match(re, at, func(int) bool { return true }) {
				return true, maxSteps - b.steps
			}
		}
		return b.steps < 0, maxSteps - b.steps
	}, nil
}

// refersBehind reports whether there is a back-reference in a look-behind, where groups are read backwards.
func refersBehind(re *syntax.Regexp, behind bool) bool {
	kind := strings.TrimRight(re.Name, "0123456789x")
	behind = behind || kind == behindName || kind == notBehindName
	return behind && kind == backName || slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return refersBehind(sub, behind) })
}

const (
	maxSteps = 1 << 20 // a tenth of a second
	maxCalls = 1 << 13 // of calls
)

// backtracker tries all matches of an expression, the preferred ones first.
type backtracker struct {
	text   string
	steps  int // that are left; all matches fail after them
	depth  int
	groups map[string]string // texts of groups, by name
}

// match reports whether a match of re begins at a place, and next accepts the place behind it.
func (b *backtracker) match(re *syntax.Regexp, at int, next func(at int) bool) bool {
	if b.depth++; b.depth > maxCalls {
		b.steps = -1
	}
	defer func() { b.depth-- }()
	if b.steps--; b.steps < 0 {
		return false
	}
	switch re.Op {
	case syntax.OpEmptyMatch:
		return next(at)
	case syntax.OpBeginText, syntax.OpBeginLine:
		return at == 0 && next(at)
	case syntax.OpEndText, syntax.OpEndLine:
		return at == len(b.text) && next(at)
	case syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return b.edge(at) == (re.Op == syntax.OpWordBoundary) && next(at)
	case syntax.OpLiteral:
		text := string(re.Rune)
		return strings.HasPrefix(b.text[at:], text) && next(at+len(text))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpCharClass:
		n := b.character(re, at)
		return n > 0 && next(at+n)
	case syntax.OpCapture:
		return b.group(re, at, next)
	case syntax.OpConcat:
		return b.sequence(re.Sub, at, next)
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			if b.match(sub, at, next) {
				return true
			}
		}
	case syntax.OpStar:
		return b.repeat(re, 0, -1, at, next)
	case syntax.OpPlus:
		return b.repeat(re, 1, -1, at, next)
	case syntax.OpQuest:
		return b.repeat(re, 0, 1, at, next)
	case syntax.OpRepeat:
		return b.repeat(re, re.Min, re.Max, at, next)
	}
	return false
}

// sequence matches expressions one after the other.
func (b *backtracker) sequence(list []*syntax.Regexp, at int, next func(int) bool) bool {
	if len(list) == 0 {
		return next(at)
	}
	return b.match(list[0], at, func(at int) bool { return b.sequence(list[1:], at, next) })
}

// repeat matches an expression from least to most times, without a limit if that is negative. Further times that match nothing do not count.
func (b *backtracker) repeat(re *syntax.Regexp, least, most, at int, next func(int) bool) bool {
	again := func() bool {
		return most != 0 && b.match(re.Sub[0], at, func(to int) bool {
			return (to > at || least > 0) && b.repeat(re, max(0, least-1), max(-1, most-1), to, next)
		})
	}
	switch {
	case least > 0:
		return again()
	case re.Flags&syntax.NonGreedy != 0:
		return next(at) || again()
	case re.Sub[0].Op == syntax.OpCharClass && most < 0: // without a call for each character
		return b.characters(re.Sub[0], at, next)
	}
	return again() || next(at)
}

// characters matches as many characters as possible, or fewer.
func (b *backtracker) characters(re *syntax.Regexp, at int, next func(int) bool) bool {
	end := at
	for n := b.character(re, end); n > 0; n = b.character(re, end) {
		end += n
	}
	for ; b.steps >= 0; b.steps-- {
		if next(end) {
			return true
		}
		if end == at {
			return false
		}
		_, n := utf8.DecodeLastRuneInString(b.text[at:end])
		end -= n
	}
	return false
}

// group matches a group with a name of ecma.
func (b *backtracker) group(re *syntax.Regexp, at int, next func(int) bool) bool {
	here := func(to int) bool { return to == at }
	switch kind := strings.TrimRight(re.Name, "0123456789x"); kind {
	case aheadName:
		return b.match(re.Sub[0], at, func(int) bool { return true }) && next(at)
	case notAheadName:
		return !b.match(re.Sub[0], at, func(int) bool { return true }) && next(at)
	case behindName, notBehindName:
		found := false
		for from := at; from >= 0 && !found; from-- {
			found = (from == len(b.text) || utf8.RuneStart(b.text[from])) && b.match(re.Sub[0], from, here)
		}
		return found == (kind == behindName) && next(at)
	case backName:
		number, _, _ := strings.Cut(re.Name[len(backName):], "x")
		text := b.groups[groupName+number]
		return strings.HasPrefix(b.text[at:], text) && next(at+len(text))
	}
	return b.match(re.Sub[0], at, func(to int) bool {
		before := b.groups[re.Name]
		if b.groups[re.Name] = b.text[at:to]; next(to) {
			return true
		}
		b.groups[re.Name] = before
		return false
	})
}

// character returns the number of bytes of the character at a place if it is in the class, else 0.
func (b *backtracker) character(re *syntax.Regexp, at int) int {
	r, n := utf8.DecodeRuneInString(b.text[at:])
	if n == 0 || re.Op == syntax.OpAnyChar || re.Op == syntax.OpAnyCharNotNL && r != '\n' {
		return n
	}
	for i := 0; i+1 < len(re.Rune); i += 2 {
		if re.Rune[i] <= r && r <= re.Rune[i+1] {
			return n
		}
	}
	return 0
}

// edge reports whether a word begins or ends at a place.
func (b *backtracker) edge(at int) bool {
	isWord := func(i int) bool {
		return i >= 0 && i < len(b.text) && (b.text[i] == '_' || b.text[i] < utf8.RuneSelf && (unicode.IsLetter(rune(b.text[i])) || unicode.IsDigit(rune(b.text[i]))))
	}
	return isWord(at-1) != isWord(at)
}
