package grammar

import (
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/etrun-go/etrun/internal/jinja"
)

// Limits on the check of a text.
const (
	maxChecks = 1 << 22 // of keywords, values and characters: about a second
	maxWithin = 10_000  // schemas in schemas, also for values in values
)

// checker checks a text by a schema.
type checker struct {
	*source
	keywords []keyword
	matchers map[string]func(text string) (ok bool, steps int) // by pattern
	path     []string                                          // of the value
	depth    int
	invalid  []string
	err      error // after which the check ends
}

// subject is a value, and one of its schemas.
type subject struct {
	d    *jinja.Dict
	v    any
	up   *subject        // the schema around, if it is of the same value
	seen map[string]bool // members that have a schema, nil if it does not matter
}

// keyword is one of schemas for values of a type. Without a type it is for all values, and without a name it is always checked.
type keyword struct {
	name, of string
	check    func(c *checker, s *subject, k any) bool // false if the value k is not satisfied, but for places that it has added
}

// Validate returns pointers to the places of a JSON text that do not satisfy a schema of draft 2020-12, with the keywords of earlier drafts
// and of OpenAPI. A format, a pattern that is no regular expression of ECMA 262, a keyword that is malformed, and the comparison with a
// number that exact refuses are satisfied. An error reports a reference or a type that does not exist, or too much work.
func Validate(schema []byte, text string) (invalid []string, err error) {
	if !json.Valid([]byte(text)) {
		return []string{"#"}, nil
	}
	s, err := read(schema)
	if err != nil {
		return nil, err
	}
	v, err := jinja.FromJSONAsWritten([]byte(text))
	if err != nil {
		return nil, err
	}
	c := &checker{source: s, keywords: keywords(), matchers: make(map[string]func(string) (bool, int))}
	c.value(s.root, v, nil)
	return c.invalid, c.err
}

// keywords returns those that are checked, in this order.
func keywords() []keyword {
	least, most := limited("", atLeast), limited("", atMost)
	return []keyword{
		{"type", "", (*checker).types},
		{"const", "", func(c *checker, s *subject, k any) bool { return c.equalText(k) == c.equalText(s.v) }},
		{"enum", "", (*checker).enum},
		{"", "", (*checker).refer},
		{"minimum", "number", least}, {"minLength", "string", least}, {"minItems", "array", least}, {"minProperties", "object", least},
		{"maximum", "number", most}, {"maxLength", "string", most}, {"maxItems", "array", most}, {"maxProperties", "object", most},
		{"exclusiveMinimum", "number", limited("minimum", above)}, {"exclusiveMaximum", "number", limited("maximum", below)},
		{"multipleOf", "number", limited("", multiple)},
		{"pattern", "string", func(c *checker, s *subject, k any) bool { return c.matches(k, s.v.(string)) }},
		{"uniqueItems", "array", (*checker).unique},
		{"", "array", (*checker).elements},
		{"contains", "array", (*checker).contains},
		{"required", "object", (*checker).required},
		{"dependencies", "object", (*checker).dependent}, {"dependentRequired", "object", (*checker).dependent},
		{"dependentSchemas", "object", (*checker).dependent},
		{"", "object", (*checker).properties},
		{"propertyNames", "object", func(c *checker, s *subject, k any) bool {
			return !slices.ContainsFunc(names(s.v), func(name string) bool { return !c.accepts(k, name, nil) })
		}},
		{"not", "", func(c *checker, s *subject, k any) bool { return !c.accepts(k, s.v, s) }},
		{"allOf", "", func(c *checker, s *subject, k any) bool { return c.also(s, elementsOf(k)...) }},
		{"anyOf", "", func(c *checker, s *subject, k any) bool { return c.choice(s, k, false) }},
		{"oneOf", "", (*checker).one},
		{"if", "", (*checker).condition},
		{"unevaluatedItems", "array", (*checker).unevaluated}, {"unevaluatedProperties", "object", (*checker).unevaluated},
	}
}

// value adds the places of a value that do not satisfy a schema, and reports whether there are none. up is the schema around, if it is of
// the same value, or nil.
func (c *checker) value(schema, v any, up *subject) bool {
	before := len(c.invalid)
	d, ok := schema.(*jinja.Dict)
	c.depth++
	c.spend(2)
	switch {
	case c.depth > maxWithin:
		c.err = errors.New("too many schemas in schemas")
	case schema == false:
		c.fail()
	case schema == true || v == nil && ok && nullAround(d):
	case !ok:
		c.err = errors.New("want a schema: an object, true or false")
	default:
		c.check(&subject{d: d, v: v, up: up})
	}
	c.depth--
	return len(c.invalid) == before
}

func (c *checker) check(s *subject) {
	before := len(c.invalid)
	if s.up != nil && s.up.seen != nil || has(s.d, "unevaluatedItems") || has(s.d, "unevaluatedProperties") {
		s.seen = make(map[string]bool)
	}
	for i, key := range c.keywords {
		if key.name != "" && !has(s.d, key.name) || key.of != "" && !ofType(s.v, key.of) {
			continue
		}
		k := s.d.Get(key.name)
		if c.spend(1 + size(k) + size(s.v)); c.err != nil {
			return
		}
		if !key.check(c, s, k) {
			c.fail()
		}
		if i < 3 && len(c.invalid) > before {
			return // a value of another type, or another value
		}
	}
	for name := range s.seen {
		if s.up != nil && len(c.invalid) == before {
			s.up.see(name)
		}
	}
}

// also checks the value by further schemas.
func (c *checker) also(s *subject, schemas ...any) bool {
	for _, x := range schemas {
		c.value(x, s.v, s)
	}
	return true
}

// accepts is value without the places.
func (c *checker) accepts(schema, v any, up *subject) bool {
	before := len(c.invalid)
	ok := c.value(schema, v, up)
	c.invalid = c.invalid[:before]
	return ok
}

// inside checks a member or an element of a value by its schema.
func (c *checker) inside(s *subject, name string, schema any) bool {
	s.see(name)
	c.path = append(c.path, name)
	ok := c.value(schema, member(s.v, name), nil)
	c.path = c.path[:len(c.path)-1]
	return ok
}

// see notes a member that has a schema.
func (s *subject) see(name string) {
	if s.seen != nil {
		s.seen[name] = true
	}
}

// fail adds the place of the value.
func (c *checker) fail() {
	var b strings.Builder
	b.WriteByte('#')
	for _, name := range c.path {
		b.WriteString("/" + escaped(name))
	}
	c.spend(b.Len())
	c.invalid = append(c.invalid, b.String())
}

// spend counts work.
func (c *checker) spend(n int) {
	if c.work += n; c.work > maxChecks {
		c.err = errors.New("the check of the text takes too long")
	}
}

// names are those of the members of an object, or the numbers of elements.
func names(v any) (list []string) {
	if d, ok := v.(*jinja.Dict); ok {
		for _, name := range d.Keys() {
			list = append(list, name.(string))
		}
	}
	for i := range elementsOf(v) {
		list = append(list, strconv.Itoa(i))
	}
	return list
}

func elementsOf(v any) []any {
	if x, ok := v.(*jinja.List); ok {
		return x.Items
	}
	return nil
}

// size is the number of characters, elements or members.
func size(v any) int {
	switch x := v.(type) {
	case string:
		return utf8.RuneCountInString(x)
	case *jinja.Dict:
		return len(x.Keys())
	}
	return len(elementsOf(v))
}

// compared reports whether two numbers are in an order. It also holds for what exact refuses.
func compared(x, y any, holds func(x, y *big.Rat) bool) bool {
	a, err := exact(x)
	b, err2 := exact(y)
	return err != nil || err2 != nil || holds(a, b)
}

func atLeast(x, y *big.Rat) bool  { return x.Cmp(y) >= 0 }
func atMost(x, y *big.Rat) bool   { return x.Cmp(y) <= 0 }
func above(x, y *big.Rat) bool    { return x.Cmp(y) > 0 }
func below(x, y *big.Rat) bool    { return x.Cmp(y) < 0 }
func multiple(x, y *big.Rat) bool { return y.Sign() <= 0 || x.Quo(x, y).IsInt() }

// limited compares a number, or the size of another value, with k. In draft 4, that can be true, for the value of another keyword.
func limited(other string, holds func(x, y *big.Rat) bool) func(*checker, *subject, any) bool {
	return func(_ *checker, s *subject, k any) bool {
		if k == true {
			k = s.d.Get(other)
		}
		if ofType(s.v, "number") {
			return compared(s.v, k, holds)
		}
		return compared(numeral(size(s.v)), k, holds)
	}
}

func numeral(n int) json.Number { return json.Number(strconv.Itoa(n)) }

func (c *checker) types(s *subject, _ any) bool {
	list, err := c.typesOf(s.d, "#")
	if err != nil {
		c.err = err
	}
	_, err = exact(s.v)
	return slices.ContainsFunc(list, func(t string) bool {
		return ofType(s.v, t) || t == "integer" && ofType(s.v, "number") && err != nil
	})
}

// equalText is canonical, whose work counts.
func (c *checker) equalText(v any) string {
	text := canonical(v)
	c.spend(10 + len(text))
	return text
}

func (c *checker) enum(s *subject, k any) bool {
	text := c.equalText(s.v)
	return !ofType(k, "array") || slices.ContainsFunc(elementsOf(k), func(x any) bool { return c.equalText(x) == text })
}

func (c *checker) unique(s *subject, k any) bool {
	known := make(map[string]bool)
	for _, x := range elementsOf(s.v) {
		known[c.equalText(x)] = true
	}
	return k != true || len(known) == size(s.v)
}

// matches reports whether a text has a match of a pattern.
func (c *checker) matches(pattern any, text string) bool {
	p, ok := pattern.(string)
	match, known := c.matchers[p]
	if !known {
		match, _ = expression(p) // nil with an error
		c.matchers[p] = match
	}
	if !ok || match == nil {
		return true
	}
	ok, steps := match(text)
	c.spend(steps)
	return ok
}

// refer checks the value by other schemas. Nothing satisfies one that stands for itself.
func (c *checker) refer(s *subject, _ any) bool {
	for _, key := range references {
		if !has(s.d, key) {
			continue
		}
		target, _, err := c.resolve(s.d, key)
		if err != nil {
			c.err = err
			return true
		}
		c.spend(size(s.d.Get(key)))
		for around := s; around != nil; around = around.up {
			if c.spend(1); target == any(around.d) {
				return false
			}
		}
		c.also(s, target)
	}
	return true
}

// elements checks those of a list by the keywords that have their schemas.
func (c *checker) elements(s *subject, _ any) bool {
	first, rest := elementsOf(s.d.Get("prefixItems")), "items"
	if list := s.d.Get("items"); ofType(list, "array") { // before draft 2020-12
		first, rest = elementsOf(list), "additionalItems"
	}
	for i, name := range names(s.v) {
		switch {
		case i < len(first):
			c.inside(s, name, first[i])
		case has(s.d, rest):
			c.inside(s, name, s.d.Get(rest))
		}
	}
	return true
}

func (c *checker) contains(s *subject, k any) bool {
	before, found := len(c.invalid), 0
	for _, name := range names(s.v) {
		if c.inside(&subject{v: s.v}, name, k) {
			found++
			s.see(name)
		}
	}
	if least := s.d.Get("minContains"); least == nil && found == 0 || !compared(numeral(found), least, atLeast) {
		return len(c.invalid) > before
	}
	c.invalid = c.invalid[:before]
	return compared(numeral(found), s.d.Get("maxContains"), atMost)
}

func (c *checker) required(s *subject, k any) bool {
	c.spend(size(k))
	return !slices.ContainsFunc(elementsOf(k), func(name any) bool { return !s.v.(*jinja.Dict).Has(name) })
}

func (c *checker) dependent(s *subject, k any) bool {
	ok := true
	for _, name := range names(k) {
		switch x := member(k, name); {
		case c.err != nil || !has(s.v.(*jinja.Dict), name):
		case ofType(x, "array"):
			ok = c.required(s, x) && ok
		default:
			c.also(s, x)
		}
	}
	return ok
}

// properties checks the members of an object by the keywords that have their schemas.
func (c *checker) properties(s *subject, _ any) bool {
	patterns, further := s.d.Get("patternProperties"), s.d.Get("additionalProperties")
	ok := true
	for _, name := range names(s.v) {
		if c.spend(size(patterns)); c.err != nil {
			break
		}
		own := member(s.d.Get("properties"), name)
		rest := own == nil && has(s.d, "additionalProperties")
		if own != nil {
			c.inside(s, name, own)
		}
		for _, p := range names(patterns) {
			if c.matches(p, name) {
				rest = false
				c.inside(s, name, member(patterns, p))
			}
		}
		switch {
		case rest && further == false:
			ok = false
			s.see(name)
		case rest:
			c.inside(s, name, further)
		}
	}
	return ok
}

// choice checks the value by alternatives, of which it has to satisfy any, or one alone.
func (c *checker) choice(s *subject, k any, alone bool) bool {
	before, found := len(c.invalid), 0
	for _, x := range elementsOf(k) {
		if c.value(x, s.v, s) {
			found++
		}
		if found > 1 && alone || found > 0 && !alone && s.seen == nil {
			break
		}
	}
	if found > 0 {
		c.invalid = c.invalid[:before]
	}
	return found < 2 || !alone
}

// one is choice, but that a discriminator decides also for values that several schemas accept.
func (c *checker) one(s *subject, k any) bool {
	d, ok := s.d.Get("discriminator").(*jinja.Dict)
	return c.choice(s, k, !ok || !has(d, "propertyName") || has(s.d, "anyOf"))
}

func (c *checker) condition(s *subject, k any) bool {
	branch := "else"
	if c.accepts(k, s.v, s) {
		branch = "then"
	}
	return !has(s.d, branch) || c.also(s, s.d.Get(branch))
}

func (c *checker) unevaluated(s *subject, k any) bool {
	for _, name := range names(s.v) {
		if !s.seen[name] {
			c.inside(s, name, k)
		}
	}
	return true
}
