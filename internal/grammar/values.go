package grammar

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/etrun-go/etrun/internal/jinja"
)

// ofType reports whether a value is of a type of schemas.
func ofType(v any, t string) bool {
	switch x := v.(type) {
	case nil:
		return t == "null"
	case bool:
		return t == "boolean"
	case json.Number:
		n, err := exact(x)
		return t == "number" || t == "integer" && err == nil && n.IsInt()
	case string:
		return t == "string"
	case *jinja.List:
		return t == "array"
	}
	return t == "object"
}

func isScalar(v any) bool {
	switch v.(type) {
	case *jinja.List, *jinja.Dict:
		return false
	}
	return true
}

// jsonText returns a value as JSON without spaces.
func jsonText(v any) string {
	switch x := v.(type) {
	case string:
		return quoted(x)
	case json.Number:
		return string(x)
	case *jinja.List:
		parts := make([]string, len(x.Items))
		for i, item := range x.Items {
			parts[i] = jsonText(item)
		}
		return "[" + strings.Join(parts, ",") + "]"
	case *jinja.Dict:
		var parts []string
		for _, k := range x.Keys() {
			parts = append(parts, jsonText(k)+":"+jsonText(x.Get(k)))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	b, err := json.Marshal(v)
	if err != nil { // cannot happen: nil or a bool
		return "null"
	}
	return string(b)
}

// quoted returns a string as JSON, without escapes for HTML.
func quoted(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil { // cannot happen
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// property is one of an object.
type property struct {
	part     Part
	required bool
}

// objectPart returns objects: their properties in the order of the schema, no others. Without properties any are accepted.
func (c *compiler) objectPart(d *jinja.Dict, path string) (Part, error) {
	list, err := c.properties(d, path)
	if err != nil {
		return nil, err
	}
	least, err := count(d, "minProperties", 0)
	most, err2 := count(d, "maxProperties", -1)
	if err := errors.Join(err, err2); err != nil {
		return nil, c.fail(path, "%w", err)
	}
	needed := 0
	for i := range list {
		if list[i].required {
			needed++
		}
	}
	if least > needed {
		return nil, c.fail(path, "minProperties is supported for as many properties as are required only")
	}
	if len(list) > 0 {
		if most >= 0 && most < len(list) {
			return nil, c.fail(path, "maxProperties %d of %d properties is not supported", most, len(list))
		}
		return c.ordered(list), nil
	}
	if d.Get("additionalProperties") == false {
		return Seq(Text("{"), c.space, Text("}")), nil
	}
	value, err := c.additional(d, path)
	if err != nil {
		return nil, err
	}
	return c.enclosed("{", c.Rule(Seq(c.str, Text(":"), c.space, value)), "}", 0, most), nil
}

// additional returns the values of properties that the schema does not list.
func (c *compiler) additional(d *jinja.Dict, path string) (Part, error) {
	if !has(d, "additionalProperties") {
		return c.any, nil
	}
	return c.schema(d.Get("additionalProperties"), path+"/additionalProperties")
}

// properties returns those that are listed, and then those that are only required.
func (c *compiler) properties(d *jinja.Dict, path string) (list []property, err error) {
	names, _ := d.Get("properties").(*jinja.Dict)
	if has(d, "properties") && names == nil {
		return nil, c.fail(path, "properties: want an object")
	}
	l, listed := d.Get("required").(*jinja.List)
	needed := make(map[any]bool)
	if listed {
		for _, v := range l.Items {
			needed[v] = true
		}
	}
	add := func(key string, value Part) error {
		list = append(list, property{c.Rule(Seq(Text(quoted(key)+":"), c.space, value)), needed[key]})
		return c.text(key, path)
	}
	if names != nil {
		for _, k := range names.Keys() {
			p, err := c.schema(names.Get(k), path+"/properties/"+k.(string))
			if err == nil {
				err = add(k.(string), p)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	if has(d, "required") && !listed {
		return nil, c.fail(path, "required: want a list")
	}
	if !listed {
		return list, nil
	}
	seen := make(map[string]bool)
	for _, v := range l.Items {
		key, ok := v.(string)
		if !ok {
			return nil, c.fail(path, "required: want a list of strings")
		}
		if names != nil && has(names, key) || seen[key] {
			continue
		}
		p, err := c.additional(d, path)
		if err == nil {
			err = add(key, p)
		}
		if err != nil {
			return nil, err
		}
		seen[key] = true
	}
	return list, nil
}

// ordered is an object of properties in their order.
func (c *compiler) ordered(list []property) Part {
	return func(b *Builder, next int32) int32 {
		end := Seq(c.space, Text("}"))(b, next)
		first, further := end, end // what begins with property i, without and after others
		for i := len(list) - 1; i >= 0 && b.err == nil; i-- {
			p := list[i]
			after := p.part(b, further)
			one := c.space(b, after)
			more := Seq(Text(","), c.space)(b, after)
			if !p.required {
				one = b.add(node{kind: splitNode, others: []int32{one, first}})
				more = b.add(node{kind: splitNode, others: []int32{more, further}})
			}
			first, further = one, more
		}
		return Text("{")(b, first)
	}
}

// listPart returns lists.
func (c *compiler) listPart(d *jinja.Dict, path string) (Part, error) {
	least, err := count(d, "minItems", 0)
	most, err2 := count(d, "maxItems", -1)
	if err := errors.Join(err, err2); err != nil {
		return nil, c.fail(path, "%w", err)
	}
	if d.Get("uniqueItems") == true && (most < 0 || most > 1) {
		return nil, c.fail(path, "uniqueItems is not supported")
	}
	items := c.any
	if v := d.Get("items"); v == false {
		items = nil
	} else if has(d, "items") {
		if items, err = c.schema(v, path+"/items"); err != nil {
			return nil, err
		}
	}
	var prefix []Part
	if c.old != "" && has(d, "prefixItems") {
		return nil, c.fail(path, "prefixItems is a keyword of draft 2020-12, not of the $schema %.60q", c.old)
	}
	if l, ok := d.Get("prefixItems").(*jinja.List); ok {
		for i, x := range l.Items {
			p, err := c.schema(x, fmt.Sprintf("%s/prefixItems/%d", path, i))
			if err != nil {
				return nil, err
			}
			prefix = append(prefix, p)
		}
	} else if has(d, "prefixItems") {
		return nil, c.fail(path, "prefixItems: want a list of schemas")
	}
	if items == nil && (most < 0 || most > len(prefix)) {
		most = len(prefix)
	}
	if most >= 0 && least > most {
		return nil, c.fail(path, "minItems %d of at most %d", least, most)
	}
	if prefix == nil && items != nil {
		return c.enclosed("[", items, "]", least, most), nil
	}
	return c.tuple(prefix, items, least, most), nil
}

// tuple is a list that begins with certain elements.
func (c *compiler) tuple(prefix []Part, items Part, least, most int) Part {
	if most >= 0 && most < len(prefix) {
		prefix = prefix[:most]
	}
	return func(b *Builder, next int32) int32 {
		end := Seq(c.space, Text("]"))(b, next)
		n := len(prefix)
		at := end // after all elements of the prefix
		if items != nil && (most < 0 || most > n) {
			rest := most
			if most >= 0 {
				rest = most - n
			}
			at = Repeat(Seq(Text(","), c.space, items), max(least-n, 0), rest)(b, end)
		}
		for i := n - 1; i >= 0 && b.err == nil; i-- {
			at = prefix[i](b, at)
			at = c.space(b, at)
			if i > 0 {
				at = Text(",")(b, at)
			}
			if i >= least {
				at = b.add(node{kind: splitNode, others: []int32{at, end}})
			}
		}
		return Text("[")(b, at)
	}
}

// stringPart returns strings.
func (c *compiler) stringPart(d *jinja.Dict, path string) (Part, error) {
	least, err := count(d, "minLength", 0)
	most, err2 := count(d, "maxLength", -1)
	if err := errors.Join(err, err2); err != nil {
		return nil, c.fail(path, "%w", err)
	}
	bounded := has(d, "minLength") || has(d, "maxLength")
	switch {
	case has(d, "pattern") && (bounded || has(d, "format")), has(d, "format") && bounded:
		return nil, c.fail(path, "pattern, format and lengths together are not supported")
	case has(d, "format"):
		s, _ := d.Get("format").(string)
		p, ok := formats[s]
		if !ok {
			return nil, c.fail(path, "the format %.60q is not supported", s)
		}
		return Seq(Text(`"`), p, Text(`"`)), nil
	case has(d, "pattern"):
		s, _ := d.Get("pattern").(string)
		if err := c.text(s, path); err != nil {
			return nil, err
		}
		p, err := pattern(s)
		if err != nil {
			return nil, c.fail(path, "pattern %.100q: %w", s, err)
		}
		return Seq(Text(`"`), p, Text(`"`)), nil
	case most >= 0 && least > most:
		return nil, c.fail(path, "minLength %d of at most %d", least, most)
	}
	return Seq(Text(`"`), Repeat(c.char, least, most), Text(`"`)), nil
}

// numberPart returns numbers.
func (c *compiler) numberPart(integers bool, d *jinja.Dict, path string) (Part, error) {
	if has(d, "multipleOf") {
		if x, err := exact(d.Get("multipleOf")); err != nil || x.Cmp(big.NewRat(1, 1)) != 0 {
			return nil, c.fail(path, "multipleOf is supported for 1 only")
		}
		integers = true
	}
	x, err := boundsOf(func(key string) (any, bool) { return d.Get(key), has(d, key) })
	if err != nil {
		return nil, c.fail(path, "%w", err)
	}
	switch {
	case x.low.value != nil || x.high.value != nil:
	case integers:
		return c.integer, nil
	default:
		return c.number, nil
	}
	x.integersOnly = integers
	p, err := x.part(c.jsonParts)
	if err != nil {
		return nil, c.fail(path, "%w", err)
	}
	return p, nil
}
