package grammar

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/etrun-go/etrun/internal/jinja"
)

// property is one of an object.
type property struct {
	part     Part
	required bool
}

// pattern is one of patternProperties.
type keyPattern struct {
	path   string // of the schema that has it
	text   string
	schema located
}

// objectSchema is what entries demand of objects.
type objectSchema struct {
	entries     []entry
	names       []string // of properties, and then those that are only required
	needed      map[string]bool
	patterns    []keyPattern
	keys        []located // propertyNames
	least, most int
}

// objectPart returns objects: their properties in the order of the schema, no others. Without properties any are accepted.
func (c *compiler) objectPart(entries []entry, path string) (Part, error) {
	o, err := c.objectOf(entries)
	if err != nil {
		return nil, err
	}
	if len(o.names) <= len(o.needed) && len(o.keys) > 0 { // none is listed
		if texts, ok := c.finite(append(slices.Clone(o.keys), located{dict("type", "string"), path}), maxTags); ok {
			o.list(texts)
		}
	}
	if o.names == nil {
		return c.freeObject(o, path)
	}
	var list []property
	for _, name := range o.names {
		p, err := c.member(o, name, path)
		switch {
		case errors.Is(err, errNothing) && !o.needed[name]:
		case err != nil:
			return nil, err
		default:
			list = append(list, property{c.Rule(Seq(Text(Quoted(name)+":"), c.space, p)), o.needed[name]})
		}
	}
	if o.least > len(list) {
		return nil, c.nothing(path, "minProperties %d of %d properties: no others are written", o.least, len(list))
	}
	if o.most >= 0 && len(o.needed) > o.most {
		return nil, c.nothing(path, "maxProperties %d, and %d are required", o.most, len(o.needed))
	}
	if o.least <= len(o.needed) {
		o.least = 0
	}
	if o.most >= len(list) {
		o.most = -1
	}
	if states := max(o.least, o.most); states > 1 && states*len(list) > maxCounted {
		c.skip(path, "minProperties")
		c.skip(path, "maxProperties")
		o.least, o.most = 0, -1
	}
	return c.ordered("{", list, "}", o.least, o.most), nil
}

// list puts names that are strings in JSON before those that are only required.
func (o *objectSchema) list(texts []string) {
	required := o.names
	o.names = nil
	for _, s := range texts {
		var name string
		if json.Unmarshal([]byte(s), &name) == nil {
			o.names = append(o.names, name)
		}
	}
	for _, name := range required {
		if !slices.Contains(o.names, name) {
			o.names = append(o.names, name)
		}
	}
}

// maxCounted bounds the states of objects and lists whose members are counted.
const maxCounted = 20_000

// objectOf collects what entries demand of objects.
func (c *compiler) objectOf(entries []entry) (*objectSchema, error) {
	o := &objectSchema{entries: entries, needed: make(map[string]bool)}
	known := make(map[string]bool)
	add := func(name, path string) error {
		if !known[name] {
			known[name] = true
			o.names = append(o.names, name)
		}
		return c.text(name, path)
	}
	for _, e := range entries {
		names, ok := e.d.Get("properties").(*jinja.Dict)
		if has(e.d, "properties") && !ok {
			return nil, c.fail(e.path, "properties: want an object")
		}
		for i := 0; ok && i < len(names.Keys()); i++ {
			if err := add(names.Keys()[i].(string), e.path); err != nil {
				return nil, err
			}
		}
		patterns, ok := e.d.Get("patternProperties").(*jinja.Dict)
		if has(e.d, "patternProperties") && !ok {
			return nil, c.fail(e.path, "patternProperties: want an object")
		}
		for i := 0; ok && i < len(patterns.Keys()); i++ {
			s := patterns.Keys()[i].(string)
			o.patterns = append(o.patterns, keyPattern{e.path, s, located{patterns.Get(s), e.path + "/patternProperties/" + escaped(s)}})
		}
		if has(e.d, "propertyNames") {
			o.keys = append(o.keys, located{e.d.Get("propertyNames"), e.path + "/propertyNames"})
		}
	}
	for _, e := range entries {
		l, ok := e.d.Get("required").(*jinja.List)
		if _, flag := e.d.Get("required").(bool); has(e.d, "required") && !ok && !flag { // in draft 3, of the property
			return nil, c.fail(e.path, "required: want a list")
		}
		for i := 0; ok && i < len(l.Items); i++ {
			name, ok := l.Items[i].(string)
			if !ok {
				return nil, c.fail(e.path, "required: want a list of strings")
			}
			if o.needed[name] = true; !known[name] && has(e.d, "unevaluatedProperties") {
				c.skip(e.path, "unevaluatedProperties")
			}
			if err := add(name, e.path); err != nil {
				return nil, err
			}
		}
	}
	var err error
	o.least, o.most, err = c.counts(entries, "minProperties", "maxProperties")
	return o, err
}

// membersOf returns the schemas of a property by its name.
func (c *compiler) membersOf(entries []entry, name string) (list []located) {
	for _, e := range entries {
		listed := false
		if p, ok := e.d.Get("properties").(*jinja.Dict); ok && has(p, name) {
			list, listed = append(list, located{p.Get(name), e.path + "/properties/" + escaped(name)}), true
		}
		if p, ok := e.d.Get("patternProperties").(*jinja.Dict); ok {
			for _, k := range p.Keys() {
				if c.nameMatches(e, k.(string), name) {
					list, listed = append(list, located{p.Get(k), e.path + "/patternProperties/" + escaped(k.(string))}), true
				}
			}
		}
		if !listed {
			list = append(list, e.additional()...)
		}
	}
	return list
}

// nameMatches reports whether the name of a property matches a pattern, which is not enforced if it cannot be known.
func (c *compiler) nameMatches(e entry, pattern, name string) bool {
	if c.textWork <= 0 {
		c.skip(e.path, "patternProperties")
		return false
	}
	m := c.matchers[pattern]
	if m == nil {
		t := &textual{conditions: []condition{{text: pattern, key: "pattern", search: true}}}
		if t.parse(c); len(t.conditions) == 0 {
			c.skip(e.path, "patternProperties")
		}
		m = &nameMatcher{}
		m.automaton, m.start = t.spots(c, false)
		c.matchers[pattern] = m
	}
	matches := m.matches(m.start, name)
	if c.textWork <= 0 || m.failed {
		c.skip(e.path, "patternProperties")
	}
	return matches
}

// nameMatcher is an automaton of names.
type nameMatcher struct {
	*automaton
	start int32
}

// additional returns the schema of properties that an entry does not list.
func (e entry) additional() []located {
	if !has(e.d, "additionalProperties") {
		return nil
	}
	return []located{{e.d.Get("additionalProperties"), e.path + "/additionalProperties"}}
}

// member returns the values of a property that is listed or required.
func (c *compiler) member(o *objectSchema, name, path string) (Part, error) {
	if len(o.keys) > 0 {
		entries, err := c.flat(nil, o.keys)
		if err != nil {
			return nil, err
		}
		values, some, err := c.values(entries, path)
		ok := true
		if err == nil && some {
			ok = amongst([]any{name}, values, true) != nil
		} else if err == nil {
			ok, err = c.admits(name, entries, path)
		}
		if err != nil || !ok {
			return nil, errors.Join(err, c.nothing(path, "propertyNames: the property %.60q", name))
		}
		if slices.ContainsFunc(entries, func(e entry) bool {
			return slices.ContainsFunc(splitting, func(key string) bool { return has(e.d, key) })
		}) {
			c.skip(path, "propertyNames")
		}
	}
	return c.all(c.membersOf(o.entries, name))
}

// freeObject returns objects of any properties, or of those whose names have a pattern.
func (c *compiler) freeObject(o *objectSchema, path string) (Part, error) {
	key := c.str
	var err error
	names := append([]located{{dict("type", "string"), path}}, o.keys...)
	if len(o.keys) > 0 {
		if key, err = c.all(names); err != nil && !errors.Is(err, errNothing) {
			return nil, err
		}
	}
	var members []Part
	if len(o.patterns) == 0 {
		var values []located
		for _, e := range o.entries {
			values = append(values, e.additional()...)
			if e.d.Get("unevaluatedProperties") == false && !has(e.d, "additionalProperties") {
				values = append(values, located{false, e.path})
			} else if has(e.d, "unevaluatedProperties") {
				c.skip(e.path, "unevaluatedProperties")
			}
		}
		value, err := c.all(values)
		if err != nil && !errors.Is(err, errNothing) {
			return nil, err
		}
		if value != nil && key != nil {
			members = append(members, Seq(key, Text(":"), c.space, value))
		}
	}
	for i := range o.patterns {
		m, err := c.patternMember(o, i, names, path)
		if err != nil && !errors.Is(err, errNothing) {
			return nil, err
		}
		if m != nil {
			members = append(members, m)
		}
	}
	switch {
	case members == nil && o.least > 0:
		return nil, c.nothing(path, "minProperties %d, and no properties", o.least)
	case members == nil:
		return Seq(Text("{"), c.space, Text("}")), nil
	case o.least > 1: // a name can come again
		c.skip(path, "minProperties")
	}
	member := members[0]
	if len(members) > 1 {
		member = Alt(members...)
	}
	return c.enclosed("{", c.Rule(member), "}", o.least, o.most), nil
}

// patternMember returns the properties whose names match one pattern and no other one.
func (c *compiler) patternMember(o *objectSchema, i int, names []located, path string) (Part, error) {
	p := o.patterns[i]
	values := []located{p.schema}
	names = append(slices.Clone(names), located{dict("type", "string", "minLength", json.Number("0"), "pattern", p.text, search, true), path})
	many := len(o.patterns) > maxConditions/2
	if many { // a name can match several
		c.skip(p.path, "patternProperties")
	}
	for k, other := range o.patterns {
		if k != i && other.text == p.text {
			values = append(values, other.schema)
		} else if k != i && !many {
			names = append(names, located{dict("type", "string", notPattern, other.text), path})
		}
	}
	for _, e := range o.entries {
		if q, ok := e.d.Get("patternProperties").(*jinja.Dict); !ok || !has(q, p.text) {
			values = append(values, e.additional()...)
		}
	}
	key, err := c.all(names)
	if err != nil {
		return nil, err
	}
	value, err := c.all(values)
	if err != nil {
		return nil, err
	}
	return Seq(key, Text(":"), c.space, value), nil
}

// ordered is an object or a list of members in their order, least to most of them.
func (c *compiler) ordered(begin string, list []property, end string, least, most int) Part {
	counted := max(1, least, most) // more are not distinguished
	return func(b *Builder, next int32) int32 {
		last := Seq(c.space, Text(end))(b, next)
		at := make([]int32, counted+1) // what begins with member i after so many others; -1 is nothing
		for n := range at {
			if at[n] = last; n < least {
				at[n] = -1
			}
		}
		for i := len(list) - 1; i >= 0 && b.err == nil; i-- {
			p := list[i]
			made := make(map[int32]int32)
			before := make([]int32, len(at))
			for n := range before {
				before[n] = -1
				if !p.required {
					before[n] = at[n]
				}
				if most >= 0 && n == most || at[min(n+1, counted)] < 0 {
					continue
				}
				to := at[min(n+1, counted)]
				after, ok := made[to]
				if !ok {
					after = p.part(b, to)
					made[to] = after
				}
				if n > 0 {
					after = Seq(Text(","), c.space)(b, after)
				} else {
					after = c.space(b, after)
				}
				if before[n] >= 0 {
					after = b.add(node{kind: splitNode, others: []int32{after, before[n]}})
				}
				before[n] = after
			}
			at = before
		}
		if at[0] < 0 {
			at[0] = b.add(node{kind: splitNode})
		}
		return Text(begin)(b, at[0])
	}
}
