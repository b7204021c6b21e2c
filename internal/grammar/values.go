package grammar

import (
	"encoding/json"
	"errors"
	"math/big"
	"slices"
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
		return Quoted(x)
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

// Quoted returns a string as JSON, without escapes for HTML.
func Quoted(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil { // cannot happen
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// canonical returns the same text for values that are equal.
func canonical(v any) string { return string(appendCanonical(nil, v)) }

func appendCanonical(b []byte, v any) []byte {
	switch x := v.(type) {
	case json.Number:
		if n, err := exact(x); err == nil {
			return append(b, n.RatString()...)
		}
	case *jinja.List:
		b = append(b, '[')
		for _, item := range x.Items {
			b = append(appendCanonical(b, item), ',')
		}
		return append(b, ']')
	case *jinja.Dict:
		names := make([]string, 0, len(x.Keys()))
		for _, k := range x.Keys() {
			names = append(names, k.(string))
		}
		slices.Sort(names)
		b = append(b, '{')
		for _, name := range names {
			b = append(appendCanonical(append(b, Quoted(name)+":"...), x.Get(name)), ',')
		}
		return append(b, '}')
	}
	return append(b, jsonText(v)...)
}

// values returns the values of enum and const that entries accept. some is false without these keywords.
func (c *compiler) values(entries []entry, path string) (list []any, some bool, err error) {
	for _, e := range entries {
		for _, key := range []string{"const", "enum"} {
			if !has(e.d, key) {
				continue
			}
			items := []any{e.d.Get(key)}
			if key == "enum" {
				l, ok := e.d.Get(key).(*jinja.List)
				if !ok {
					return nil, false, c.fail(e.path, "enum: want a list")
				}
				items = l.Items
			}
			if some {
				items = amongst(items, list, true)
			}
			list, some = items, true
		}
	}
	if !some {
		return nil, false, nil
	}
	kept := make([]any, 0, len(list))
	for _, v := range list {
		ok, err := c.admits(v, entries, path)
		if err != nil {
			return nil, false, err
		}
		if ok {
			kept = append(kept, v)
		}
	}
	return kept, true, nil
}

// amongst returns the values of a list that are in another one, or that are not.
func amongst(list, other []any, in bool) (kept []any) {
	known := make(map[string]bool, len(other))
	for _, v := range other {
		known[canonical(v)] = true
	}
	for _, v := range list {
		if known[canonical(v)] == in {
			kept = append(kept, v)
		}
	}
	return kept
}

// admits reports whether entries accept a value, but for their enum and const.
func (c *compiler) admits(v any, entries []entry, path string) (bool, error) {
	for _, e := range entries {
		if has(e.d, "type") {
			types, err := c.typesOf(e.d, e.path)
			if err != nil {
				return false, err
			}
			if !slices.ContainsFunc(types, func(t string) bool { return ofType(v, t) }) {
				return false, nil
			}
		}
		if l, ok := e.d.Get(notValues).(*jinja.List); ok && amongst([]any{v}, l.Items, true) != nil {
			return false, nil
		}
	}
	switch x := v.(type) {
	case json.Number:
		return c.admitsNumber(x, entries)
	case string:
		t, err := c.textual(entries)
		return err == nil && (t.free() || t.matches(c, x)), err
	}
	kind := map[bool]string{true: "array", false: "object"}[ofType(v, "array")]
	for _, e := range entries {
		if !isScalar(v) && slices.ContainsFunc(typed[kind], func(key string) bool { return has(e.d, key) }) {
			c.skip(path, "enum") // what is in the value is not looked at
		}
	}
	return true, nil
}

// literals returns values as they are written.
func (c *compiler) literals(values []any, path string, err error) (Part, error) {
	if err != nil {
		return nil, err
	}
	var list []string
	for _, v := range values {
		s := jsonText(v)
		if err := c.text(s, path); err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	if list == nil {
		return nil, c.nothing(path, "enum")
	}
	return Literals(list), nil
}

// maxNested bounds the alternatives in alternatives of values that are few.
const maxFinite = 8

// finiteOf returns the values of entries as JSON, if they are few.
func (c *compiler) finiteOf(entries []entry, most, depth int) (texts []string, ok bool, err error) {
	for i, e := range entries {
		for n, key := range splitting {
			if e.done&(1<<n) != 0 || !has(e.d, key) {
				continue
			}
			options, err := c.options(e, key)
			if err != nil || depth > maxFinite || len(options) > most {
				return nil, false, err
			}
			rest := slices.Clone(entries)
			rest[i].done |= 1 << n
			if options == nil {
				return c.finiteOf(rest, most, depth+1)
			}
			return c.finiteOptions(rest, options, most, depth)
		}
	}
	list, some, err := c.values(entries, entries0(entries).path)
	if !some && err == nil {
		list, some, err = c.fewOf(entries, most)
	}
	if err != nil || !some || len(list) > most {
		return nil, false, err
	}
	known := make(map[string]bool)
	for _, v := range list {
		if k := canonical(v); !known[k] {
			known[k] = true
			texts = append(texts, jsonText(v))
		}
	}
	return texts, true, nil
}

func entries0(entries []entry) entry {
	if len(entries) == 0 {
		return entry{}
	}
	return entries[0]
}

func (c *compiler) finiteOptions(entries []entry, options [][]located, most, depth int) (texts []string, ok bool, err error) {
	for _, option := range options {
		both, err := c.flat(entries, option)
		var more []string
		if err == nil {
			if more, ok, err = c.finiteOf(both, most, depth+1); err == nil && !ok {
				return nil, false, nil
			}
		}
		if err != nil && !errors.Is(err, errNothing) {
			return nil, false, err
		}
		for _, s := range more {
			if !slices.Contains(texts, s) {
				texts = append(texts, s)
			}
		}
	}
	return texts, len(texts) <= most, nil
}

// fewOf returns the values of types that have few of them.
func (c *compiler) fewOf(entries []entry, most int) (list []any, ok bool, err error) {
	if len(entries) == 0 {
		return nil, false, nil
	}
	types, err := c.types(entries, entries[0].path)
	if err != nil {
		return nil, false, err
	}
	for _, t := range types {
		switch t {
		case "null":
			list = append(list, nil)
		case "boolean":
			list = append(list, false, true)
		case "integer":
			x, multiple, err := c.numbers(entries)
			if err != nil || x.low.value == nil || x.high.value == nil {
				return nil, false, err
			}
			few, ok := multiplesOf(x, multiple, most)
			if !ok {
				return nil, false, nil
			}
			list = append(list, few...)
		default:
			return nil, false, nil
		}
	}
	kept := list[:0]
	for _, v := range list {
		if ok, err := c.admits(v, entries, entries[0].path); err != nil {
			return nil, false, err
		} else if ok {
			kept = append(kept, v)
		}
	}
	return kept, true, nil
}

// admitsNumber reports whether a number satisfies the bounds and multiples of entries.
func (c *compiler) admitsNumber(n json.Number, entries []entry) (bool, error) {
	v, err := exact(n)
	if err != nil {
		return true, nil // beyond what is calculated with
	}
	x, multiple, err := c.numbers(entries)
	if err != nil {
		return false, err
	}
	return x.has(v) && (multiple == nil || new(big.Rat).Quo(v, multiple).IsInt()), nil
}
