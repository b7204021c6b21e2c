package grammar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/internal/jinja"
)

// located is a schema with its place.
type located struct {
	v    any
	path string
}

// entry is a schema that is an object, without some of its keywords that stand for alternatives.
type entry struct {
	d    *jinja.Dict
	path string
	done uint16 // by the place in splitting
}

// matters reports whether an entry has a keyword with an effect that is not done.
func (e entry) matters() bool {
	for i, key := range splitting {
		if e.done&(1<<i) == 0 && has(e.d, key) {
			return true
		}
	}
	for _, list := range typed {
		if slices.ContainsFunc(list, func(key string) bool { return has(e.d, key) }) {
			return true
		}
	}
	return has(e.d, "type") || has(e.d, "enum") || has(e.d, "const")
}

// same is what entries are equal by.
type same struct {
	d    *jinja.Dict
	done uint16
}

// flattener adds schemas to entries, with those that $ref and allOf name.
type flattener struct {
	*compiler
	list []entry
	seen map[same]bool
	busy map[*jinja.Dict]bool
}

// flat returns entries and the further ones of schemas.
func (c *compiler) flat(entries []entry, list []located) ([]entry, error) {
	f := &flattener{c, slices.Clone(entries), make(map[same]bool), make(map[*jinja.Dict]bool)}
	for _, e := range entries {
		f.seen[same{e.d, e.done}] = true
	}
	c.work += len(entries)
	for _, l := range list {
		if err := f.add(l); err != nil {
			return nil, err
		}
	}
	return f.list, nil
}

func (f *flattener) add(l located) error {
	if f.work++; f.work > maxWork {
		return f.fail(l.path, "too many schemas of anyOf, oneOf and allOf together; want fewer of them")
	}
	d, ok := l.v.(*jinja.Dict)
	switch {
	case l.v == true:
		return nil
	case l.v == false:
		return f.nothing(l.path, "false accepts no value")
	case !ok:
		return f.fail(l.path, "want an object, or true")
	case f.busy[d]:
		return f.fail(l.path, "a form that begins with itself")
	case len(f.busy) > maxDepth:
		return f.fail(l.path, "more than %d schemas in schemas", maxDepth)
	}
	f.busy[d] = true
	defer delete(f.busy, d)
	if nullAround(d) {
		return f.add(located{f.orNull(d), l.path})
	}
	if key := referenceOf(d); key != "" {
		target, path, err := f.resolve(d, key)
		if err != nil {
			return f.fail(l.path, "%w", err)
		}
		if err := f.add(located{target, path}); err != nil {
			return err
		}
	}
	if has(d, "allOf") {
		list, err := f.schemas(d, "allOf", l.path)
		if err != nil {
			return err
		}
		for _, x := range list {
			if err := f.add(x); err != nil {
				return err
			}
		}
	}
	if e := (entry{d, l.path, 0}); e.matters() && !f.seen[same{d, 0}] {
		f.seen[same{d, 0}] = true
		f.list = append(f.list, e)
	}
	return nil
}

// nullAround reports whether nullable says that null does without the other keywords of a schema.
func nullAround(d *jinja.Dict) bool {
	return d.Get("nullable") == true && !has(d, "type") && (has(d, "$ref") || has(d, "allOf") || has(d, "anyOf") || has(d, "oneOf"))
}

// schemas returns the schemas of a keyword that is a list of them.
func (c *compiler) schemas(d *jinja.Dict, key, path string) (list []located, err error) {
	l, ok := d.Get(key).(*jinja.List)
	if !ok || len(l.Items) == 0 {
		return nil, c.fail(path+"/"+key, "want a list of schemas")
	}
	for i, x := range l.Items {
		list = append(list, located{x, fmt.Sprintf("%s/%s/%d", path, key, i)})
	}
	return list, nil
}

// all returns the part of what all of several schemas accept.
func (c *compiler) all(list []located) (Part, error) {
	entries, err := c.flat(nil, list)
	if err != nil {
		return nil, err
	}
	return c.rule(entries)
}

// key returns what entries are known by, in any order.
func (c *compiler) key(entries []entry) string {
	list := make([]uint64, len(entries))
	for i, e := range entries {
		id, ok := c.ids[e.d]
		if !ok {
			id = uint32(len(c.ids))
			c.ids[e.d] = id
		}
		list[i] = uint64(id)<<16 | uint64(e.done)
	}
	slices.Sort(list)
	var b []byte
	for _, x := range list {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	return string(b)
}

// rule returns the part of entries.
func (c *compiler) rule(entries []entry) (Part, error) {
	if len(entries) == 0 {
		return c.any, nil
	}
	path := entries[0].path
	key := c.key(entries)
	if r := c.rules[key]; r != nil {
		if r.nothing {
			return nil, c.fail(path, "%w", errNothing)
		}
		return Call(r.id), nil
	}
	if c.depth++; c.depth > maxDepth {
		return nil, c.fail(path, "more than %d schemas in schemas", maxDepth)
	}
	defer func() { c.depth-- }()
	r := &schemaRule{id: c.Declare()}
	c.rules[key] = r
	p, err := c.body(entries, path)
	switch {
	case errors.Is(err, errNothing): // schemas in it can have calls of the rule
		r.nothing = true
		c.Define(r.id, Alt())
		return nil, err
	case err != nil:
		return nil, err
	}
	c.Define(r.id, p)
	if c.err != nil {
		return nil, &SchemaError{path, c.err}
	}
	return Call(r.id), nil
}
