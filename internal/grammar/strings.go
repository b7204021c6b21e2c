package grammar

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/etrun-go/etrun/internal/jinja"
)

// search is a keyword of schemas made here whose pattern matches anywhere.
const search = "\x00search"

// condition is what a string has to match.
type condition struct {
	text      string // a regular expression of ECMA 262
	path, key string // where it stands
	search    bool   // it matches anywhere
	not       bool
	wider     string // a format with more strings
	complete  bool   // all strings of the format are known
	re        *syntax.Regexp
}

// textual is what entries demand of strings.
type textual struct {
	conditions  []condition
	values      []string // which are not accepted
	least, most int
	bounded     bool
}

// textual returns what entries demand of strings.
func (c *compiler) textual(entries []entry) (*textual, error) {
	t := &textual{}
	var err error
	if t.least, t.most, err = c.counts(entries, "minLength", "maxLength"); err != nil {
		return nil, err
	}
	for _, e := range entries {
		t.bounded = t.bounded || has(e.d, "minLength") || has(e.d, "maxLength")
		for _, key := range []string{"pattern", notPattern} {
			s, ok := e.d.Get(key).(string)
			if !ok {
				continue
			}
			if err := c.text(s, e.path); err != nil {
				return nil, err
			}
			t.add(condition{text: s, path: e.path, key: strings.TrimPrefix(key, "\x00"), search: has(e.d, search), not: key == notPattern})
		}
		if s, _ := e.d.Get("format").(string); formats[s] != "" {
			t.add(condition{text: formatPattern(formats[s]), path: e.path, key: "format", wider: formatPattern(wider[s]),
				complete: slices.Contains(complete, s)})
		}
		if s, _ := e.d.Get("contentEncoding").(string); encodings[s] != "" {
			t.add(condition{text: formatPattern(encodings[s]), path: e.path, key: "contentEncoding"})
		}
		if l, ok := e.d.Get(notValues).(*jinja.List); ok {
			for _, v := range l.Items {
				if s, ok := v.(string); ok {
					t.values = append(t.values, s)
				}
			}
		}
	}
	sort.SliceStable(t.conditions, func(i, k int) bool { return order[t.conditions[i].key] < order[t.conditions[k].key] })
	return t, nil
}

// order is that of conditions: what is too much is left out from the last one on.
var order = map[string]string{"pattern": "1", "format": "2", "contentEncoding": "3"}

// maxConditions bounds those of a string.
const maxConditions = 12

func (t *textual) add(x condition) {
	if len(t.conditions) > 10*maxConditions { // of which most are not enforced
		return
	}
	if !slices.ContainsFunc(t.conditions, func(y condition) bool { return x.text == y.text && x.not == y.not && x.key == y.key }) {
		t.conditions = append(t.conditions, x)
	}
}

// key returns what strings are known by.
func (t *textual) key() string {
	var b strings.Builder
	for _, x := range t.conditions {
		fmt.Fprintf(&b, "%q %v %v ", x.text, x.search, x.not)
	}
	return fmt.Sprintf("%s %q %d %d", b.String(), t.values, t.least, t.most)
}

// stringPart returns strings.
func (c *compiler) stringPart(entries []entry, path string) (Part, error) {
	t, err := c.textual(entries)
	if err != nil {
		return nil, err
	}
	if len(t.conditions) == 0 && t.values == nil {
		return Seq(Text(`"`), Repeat(c.char, t.least, t.most), Text(`"`)), nil
	}
	if x := t.conditions; len(x) == 1 && t.values == nil && !t.bounded && !x[0].not && !x[0].search {
		if p, err := pattern(x[0].text); err == nil {
			return Seq(Text(`"`), p, Text(`"`)), nil
		}
	}
	key := t.key()
	if p, ok := c.texts[key]; ok {
		return p, nil
	}
	p, err := t.part(c, path)
	if err != nil {
		return nil, err
	}
	c.texts[key] = c.Rule(Seq(Text(`"`), p, Text(`"`)))
	return c.texts[key], nil
}

// parse reads the regular expressions. Those that are not supported are left out.
func (t *textual) parse(c *compiler) {
	t.conditions = slices.Clone(t.conditions)
	for i := range t.conditions {
		c.textWork -= len(t.conditions[i].text)
		if i < maxConditions && c.textWork > 0 {
			t.conditions[i].read()
		}
	}
	t.conditions = slices.DeleteFunc(t.conditions, func(x condition) bool { return x.re == nil && c.skipCondition(x) })
}

// skipCondition notes a condition that is not enforced.
func (c *compiler) skipCondition(x condition) bool {
	if x.path != "" {
		c.skip(x.path, x.key)
	}
	return true
}

// read reads the regular expression, nil if it is not supported. One with conditions on what is around matches anywhere.
func (x *condition) read() {
	s, alone, err := ecma(x.text)
	if err != nil {
		return
	}
	if re, err := syntax.Parse(s, syntax.Perl); err == nil {
		x.re, x.search = re, x.search || !alone
	}
}

// shorter are the lengths to which strings are bounded if there are too many states: fewer characters are accepted as well.
var shorter = []int{256, 64}

// part returns the strings. What cannot be enforced is left out: a format that excludes what a pattern demands, and what has too many
// states.
func (t *textual) part(c *compiler, path string) (Part, error) {
	t.parse(c)
	all, exact, tried := *t, true, 0
	for {
		p, err := all.automaton(c, exact)
		last := len(all.conditions) - 1
		switch {
		case p != nil:
			return p, nil
		case err == nil && tried == 0 && exact && all.open():
			exact = false
			continue
		case err == nil && tried == 0 && all.widen():
			continue
		case err == nil && tried == 0 && (last < 0 || all.conditions[last].key == "pattern"):
			return nil, c.nothing(path, "no string has the pattern, format and length")
		case err != nil && all.shorten(&tried):
			continue
		}
		if last == 0 && !t.bounded && t.values == nil && !t.conditions[0].search && !t.conditions[0].not {
			if p, err := pattern(t.conditions[0].text); err == nil {
				return p, nil
			}
		}
		if last < 0 && !t.bounded && t.values == nil { // there is no more work
			return Many(c.char), nil
		}
		if t.bounded && (tried > 0 || err != nil) {
			t.least, t.most, t.bounded = 0, -1, false
			c.skip(path, "minLength")
			c.skip(path, "maxLength")
		} else if last >= 0 {
			c.skipCondition(all.conditions[last])
			t.conditions = t.conditions[:last]
		} else {
			t.values = nil
			c.skip(path, "not")
		}
		all, exact, tried = *t, true, 0
	}
}

// widen replaces formats by those with more strings, and reports whether there are some.
func (t *textual) widen() (wider bool) {
	t.conditions = slices.Clone(t.conditions)
	for i, x := range t.conditions {
		if x.wider != "" {
			t.conditions[i], wider = condition{text: x.wider, path: x.path, key: x.key}, true
			t.conditions[i].read()
		}
	}
	return wider
}

// shorten bounds strings to the next shorter length, and reports whether there is one.
func (t *textual) shorten(tried *int) bool {
	for *tried < len(shorter) {
		most := shorter[*tried]
		*tried++
		if most >= t.least && (t.most > most || *tried == len(shorter)) {
			t.most, t.bounded = most, true
			return true
		}
	}
	return false
}

// open reports whether there is a pattern that can match within a text.
func (t *textual) open() bool {
	return slices.ContainsFunc(t.conditions, func(x condition) bool { return x.key == "pattern" && !x.not && !x.search })
}

// automaton returns the strings, nil if there is none.
func (t *textual) automaton(c *compiler, exact bool) (Part, error) {
	if !c.works() {
		return nil, errTooLarge
	}
	a, start := t.spots(c, exact)
	states, err := a.run(start, beforeNone)
	if err != nil {
		return nil, err
	}
	return a.part(states, c.charOf), nil
}

// works reports whether there is work left for automata, and whether the limits allow to go on.
func (c *compiler) works() bool {
	for _, limit := range c.limits {
		if err := limit(0); err != nil && c.err == nil {
			c.err = err
		}
	}
	return c.textWork > 0 && c.err == nil
}

// charOf returns a character of ranges, as a rule that all texts share.
func (c *compiler) charOf(ranges []rune) Part {
	key := string(ranges)
	p, ok := c.chars[key]
	if !ok {
		if p = class(ranges); len(ranges) > 2 || ranges[0] != ranges[1] {
			p = c.Rule(p)
		}
		c.chars[key] = p
	}
	return p
}

// spots returns an automaton, and the spot of all conditions. exact means that patterns match from beginning to end, but for those that
// have an anchor on one side only.
func (t *textual) spots(c *compiler, exact bool) (a *automaton, start int32) {
	a = newAutomaton(&c.textWork)
	any := func(next int32) int32 { return a.char(every, next) }
	var list []int32
	for _, x := range t.conditions {
		anchored := strings.HasPrefix(x.text, "^") == strings.HasSuffix(x.text, "$")
		if x.key != "pattern" || exact && anchored && !x.search && !x.not {
			list = append(list, a.expression(x.re, atEnd))
			continue
		}
		within := a.repeat(any, 0, -1, a.expression(x.re, anyText))
		if x.not {
			within = a.add(spot{kind: spotNot, next: within})
		}
		list = append(list, within)
	}
	for _, s := range t.values {
		at := atEnd
		for _, r := range slices.Backward([]rune(s)) {
			at = a.char([]rune{r, r}, at)
		}
		list = append(list, a.add(spot{kind: spotNot, next: at}))
	}
	if t.bounded {
		list = append(list, a.repeat(any, t.least, t.most, atEnd))
	}
	return a, a.all(list...)
}

// free reports whether any string is accepted.
func (t *textual) free() bool { return len(t.conditions) == 0 && t.values == nil && !t.bounded }

// matches reports whether a string is accepted. One that a format may have, beside the strings that are known to have it, is accepted, and the
// format noted as not enforced.
func (t *textual) matches(c *compiler, s string) bool {
	n := utf8.RuneCountInString(s)
	if n < t.least || t.most >= 0 && t.bounded && n > t.most || slices.Contains(t.values, s) {
		return false
	}
	patterns := textual{}
	for _, x := range t.conditions {
		switch {
		case x.key == "pattern":
			patterns.conditions = append(patterns.conditions, x)
		case x.matches(c, s):
		case x.complete:
			return false
		default:
			c.skipCondition(x)
		}
	}
	return patterns.matched(c, s)
}

// matches reports whether a string is among those that are known to have a format or an encoding.
func (x condition) matches(c *compiler, s string) bool {
	known := textual{conditions: []condition{x}}
	return known.matched(c, s) || x.wider != "" && known.widen() && known.matched(c, s)
}

// matched reports whether a string satisfies the conditions that are supported.
func (t *textual) matched(c *compiler, s string) bool {
	t.parse(c)
	a, start := t.spots(c, false)
	return a.matches(start, s)
}

func isNothing(err error) bool { return errors.Is(err, errNothing) }
