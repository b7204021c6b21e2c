package grammar

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/internal/jinja"
)

// maxDependents bounds the keys of dependentRequired and the like: each one doubles the alternatives.
const maxDependents = 4

// options returns the alternatives of a keyword: all schemas of one of them are accepted. It is nil for what is not enforced.
func (c *compiler) options(e entry, key string) (list [][]located, err error) {
	k := splitKey{e.d, key}
	if list, ok := c.expanded[k]; ok {
		return list, nil
	}
	switch path := e.path + "/" + key; key {
	case "anyOf", "oneOf":
		list, err = c.choices(e, key)
	case "if":
		list = c.conditional(e)
	case "not":
		list = c.opposite(e.d.Get(key), path)
	default:
		list, err = c.dependents(e, key)
	}
	if err != nil {
		return nil, err
	}
	if list == nil {
		c.skip(e.path, key)
	}
	c.expanded[k] = list
	return list, nil
}

// choices returns the schemas of anyOf or oneOf.
func (c *compiler) choices(e entry, key string) (list [][]located, err error) {
	schemas, err := c.schemas(e.d, key, e.path)
	if err != nil {
		return nil, err
	}
	d, _ := e.d.Get("discriminator").(*jinja.Dict)
	tag := ""
	if d != nil {
		tag, _ = d.Get("propertyName").(string)
	}
	for _, s := range schemas {
		option := []located{s}
		if tag != "" {
			option = append(option, located{c.tagged(d, tag, s), s.path})
		}
		list = append(list, option)
	}
	if key == "oneOf" && tag == "" && !c.exclusive(schemas) {
		c.skip(e.path, key)
	}
	return list, nil
}

// tagged returns what the discriminator of OpenAPI demands of a schema: a property with its name, or the name that stands for it.
func (c *compiler) tagged(discriminator *jinja.Dict, tag string, s located) *jinja.Dict {
	required := dict("type", "object", "required", &jinja.List{Items: []any{tag}})
	entries, err := c.flat(nil, []located{s})
	if err != nil {
		return required
	}
	if _, finite := c.finite(c.membersOf(entries, tag), maxTags); finite {
		return required
	}
	d, _ := s.v.(*jinja.Dict)
	if d == nil || !has(d, "$ref") {
		return required
	}
	ref, _ := d.Get("$ref").(string)
	last := ref[strings.LastIndexByte(ref, '/')+1:]
	names := &jinja.List{}
	if mapping, ok := discriminator.Get("mapping").(*jinja.Dict); ok {
		for _, name := range mapping.Keys() {
			if to := mapping.Get(name); to == ref || to == last {
				names.Items = append(names.Items, name)
			}
		}
	}
	if names.Items == nil {
		names.Items = []any{last}
	}
	required.Set("properties", dict(tag, dict("type", "string", "enum", names)))
	return required
}

const maxTags = 1000

// orNull returns an object of OpenAPI 3.0 as an alternative to null.
func (c *compiler) orNull(d *jinja.Dict) *jinja.Dict {
	k := splitKey{d, "nullable"}
	if c.expanded[k] == nil {
		plain := jinja.NewDict()
		for _, key := range d.Keys() {
			if key != "nullable" {
				plain.Set(key, d.Get(key))
			}
		}
		c.bases[plain] = c.bases[d]
		c.expanded[k] = [][]located{{{dict("anyOf", &jinja.List{Items: []any{plain, dict("type", "null")}}), ""}}}
	}
	return c.expanded[k][0][0].v.(*jinja.Dict)
}

// dependents returns the alternatives of properties on which others depend.
func (c *compiler) dependents(e entry, key string) (list [][]located, err error) {
	d, ok := e.d.Get(key).(*jinja.Dict)
	if !ok {
		return nil, c.fail(e.path, "%s: want an object", key)
	}
	if len(d.Keys()) > maxDependents {
		return nil, nil
	}
	list = [][]located{nil}
	for _, name := range d.Keys() {
		path := e.path + "/" + key + "/" + escaped(name.(string))
		with := []located{{dict("type", "object", "required", &jinja.List{Items: []any{name}}), path}}
		if l, ok := d.Get(name).(*jinja.List); ok {
			with = append(with, located{dict("required", l), path})
		} else {
			with = append(with, located{d.Get(name), path})
		}
		without := located{without(name), path}
		var more [][]located
		for _, option := range list {
			more = append(more, append(slices.Clone(option), with...), append(slices.Clone(option), without))
		}
		list = more
	}
	return list, nil
}

// without is the schema of objects that do not have a property.
func without(name any) *jinja.Dict { return dict("properties", dict(name, false)) }

// conditional returns the alternatives of if: then, or the opposite of it and else. They are nil if the opposite is not known.
func (c *compiler) conditional(e entry) [][]located {
	branch := func(option []located, key string) []located {
		if has(e.d, key) {
			option = append(option, located{e.d.Get(key), e.path + "/" + key})
		}
		return option
	}
	condition := e.d.Get("if")
	if !has(e.d, "then") && !has(e.d, "else") {
		return [][]located{nil}
	}
	others := c.opposite(condition, e.path+"/if")
	if others == nil {
		return nil
	}
	list := [][]located{branch([]located{{condition, e.path + "/if"}}, "then")}
	for _, o := range others {
		list = append(list, branch(slices.Clone(o), "else"))
	}
	return list
}

// opposite returns alternatives of values that a schema does not accept: not all of them. They are nil if it has other keywords than
// those that are known here.
func (c *compiler) opposite(v any, path string) (list [][]located) {
	d, ok := v.(*jinja.Dict)
	if !ok || !has(d, "$ref") && !(entry{d, path, 0}).matters() && !has(d, "allOf") {
		return [][]located{{{v == false, path}}}
	}
	one := func(pairs ...any) { list = append(list, []located{{dict(pairs...), path}}) }
	for _, k := range d.Keys() {
		switch key, x := k.(string), d.Get(k); key {
		case "type":
			types, err := c.typesOf(d, path)
			if err != nil {
				return nil
			}
			if others := otherTypes(types); !has(d, "properties") && others != nil {
				one("type", &jinja.List{Items: others})
			}
		case "const":
			one(notValues, &jinja.List{Items: []any{x}})
		case "enum":
			one(notValues, x)
		case "pattern":
			one("type", "string", notPattern, x)
		case "required":
			l, ok := x.(*jinja.List)
			if !ok {
				return nil
			}
			for _, name := range l.Items {
				one("type", "object", "properties", dict(name, false))
			}
		case "properties":
			p, ok := x.(*jinja.Dict)
			if !ok {
				return nil
			}
			for _, name := range p.Keys() {
				others := c.opposite(p.Get(name), path+"/properties/"+escaped(name.(string)))
				if others == nil {
					return nil
				}
				for _, o := range others {
					both := &jinja.List{}
					for _, l := range o {
						both.Items = append(both.Items, l.v)
					}
					one("type", "object", "required", &jinja.List{Items: []any{name}}, "properties", dict(name, dict("allOf", both)))
				}
			}
		default:
			if (entry{dict(key, x), path, 0}).matters() || key == "$ref" || key == "allOf" {
				return nil
			}
		}
	}
	return list
}

// otherTypes returns the types of all values that are of none of some.
func otherTypes(types []string) (list []any) {
	for _, t := range []string{"null", "boolean", "object", "array", "string", "number"} {
		if !slices.Contains(types, t) && (t != "number" || !slices.Contains(types, "integer")) {
			list = append(list, t)
		}
	}
	return list
}

// exclusive reports whether schemas certainly accept no common value.
func (c *compiler) exclusive(list []located) bool {
	for i := range list {
		for k := range i {
			if !c.excludes(list[i].v, list[k].v) || c.work > maxWork/2 {
				return false
			}
		}
	}
	return true
}

// excludes reports whether two schemas certainly accept no common value: they have no common type, or they are objects that
// require the same property with different values.
func (c *compiler) excludes(a, b any) bool {
	x, y := c.follow(a), c.follow(b)
	if x == nil || y == nil {
		return false
	}
	if v, w := c.constants(x), c.constants(y); v != nil && w != nil {
		return c.disjoint(v, w)
	}
	s, t := c.kinds(x), c.kinds(y)
	if s == nil || t == nil {
		return false
	}
	if !slices.ContainsFunc(s, func(k string) bool { return slices.Contains(t, k) }) {
		return true
	}
	return slices.Equal(s, []string{"object"}) && slices.Equal(t, s) && c.discriminated(x, y)
}

// disjoint reports whether lists have no common value. It is false when the work is too much.
func (c *compiler) disjoint(v, w []string) bool {
	for _, s := range v {
		if c.work += len(w); c.work > maxWork || slices.Contains(w, s) {
			return false
		}
	}
	return true
}

// follow returns a schema that is an object, behind references.
func (c *compiler) follow(v any) *jinja.Dict {
	for range maxDepth {
		if c.work += 10; c.work > maxWork {
			return nil
		}
		d, ok := v.(*jinja.Dict)
		if !ok {
			return nil
		}
		if !has(d, "$ref") {
			return d
		}
		target, _, err := c.resolve(d, "$ref")
		if err != nil {
			return nil
		}
		v = target
	}
	return nil
}

// constants returns the texts of const and enum, nil without them, or if lists or objects are among them.
func (c *compiler) constants(d *jinja.Dict) (list []string) {
	items := []any{d.Get("const")}
	if l, ok := d.Get("enum").(*jinja.List); ok {
		items = l.Items
	} else if !has(d, "const") {
		return nil
	}
	for _, v := range items {
		if !isScalar(v) {
			return nil
		}
		s := jsonText(v)
		if n, ok := v.(json.Number); ok { // the same for numbers that some readers do not distinguish
			x, err := n.Float64()
			if err != nil {
				return nil
			}
			s = strconv.FormatFloat(x+0, 'g', -1, 64)
		}
		c.work += 1 + len(s)/16
		list = append(list, s)
	}
	return list
}

// kinds returns the types of a schema, integers as numbers; nil if it names none.
func (c *compiler) kinds(d *jinja.Dict) (list []string) {
	if !has(d, "type") {
		return nil
	}
	types, err := c.typesOf(d, "")
	if err != nil {
		return nil
	}
	for _, t := range types {
		list = append(list, strings.Replace(t, "integer", "number", 1))
	}
	return list
}

// discriminated reports whether two objects require a property with different values.
func (c *compiler) discriminated(x, y *jinja.Dict) bool {
	p, ok := x.Get("properties").(*jinja.Dict)
	q, ok2 := y.Get("properties").(*jinja.Dict)
	if !ok || !ok2 {
		return false
	}
	for _, key := range p.Keys() {
		if c.work += 1; c.work > maxWork {
			return false
		}
		a, b := c.follow(p.Get(key)), c.follow(q.Get(key))
		if a == nil || b == nil || !c.required(x, key) || !c.required(y, key) {
			continue
		}
		v, w := c.constants(a), c.constants(b)
		if v != nil && w != nil && c.disjoint(v, w) {
			return true
		}
	}
	return false
}

func (c *compiler) required(d *jinja.Dict, key any) bool {
	l, ok := d.Get("required").(*jinja.List)
	if ok {
		c.work += len(l.Items)
	}
	return ok && slices.Contains(l.Items, key)
}

// finite returns the values that all of several schemas accept, as JSON, if these are few.
func (c *compiler) finite(list []located, most int) (texts []string, ok bool) {
	entries, err := c.flat(nil, list)
	if err == nil {
		texts, ok, err = c.finiteOf(entries, most, 0)
	}
	return texts, ok && (err == nil || errors.Is(err, errNothing))
}
