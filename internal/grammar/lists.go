package grammar

import (
	"fmt"

	"github.com/etrun-go/etrun/internal/jinja"
)

// listSchema is what an entry says about the elements of lists.
type listSchema struct {
	prefix []located
	items  []located // empty for any
}

// listOf returns the schemas of elements: in drafts before 2020-12, a list in items is the prefix, and additionalItems are the others.
func (c *compiler) listOf(e entry) (l listSchema, err error) {
	prefix, items := "prefixItems", "items"
	if _, ok := e.d.Get("items").(*jinja.List); ok {
		prefix, items = "items", "additionalItems"
	}
	if list, ok := e.d.Get(prefix).(*jinja.List); ok {
		for i, x := range list.Items {
			l.prefix = append(l.prefix, located{x, fmt.Sprintf("%s/%s/%d", e.path, prefix, i)})
		}
	} else if has(e.d, prefix) {
		return l, c.fail(e.path, "prefixItems: want a list of schemas")
	}
	if has(e.d, items) {
		l.items = []located{{e.d.Get(items), e.path + "/" + items}}
	} else if has(e.d, "unevaluatedItems") {
		if e.d.Get("unevaluatedItems") != false || len(l.prefix) == 0 {
			c.skip(e.path, "unevaluatedItems")
		}
		l.items = []located{{e.d.Get("unevaluatedItems"), e.path + "/unevaluatedItems"}}
	}
	return l, nil
}

// listPart returns lists.
func (c *compiler) listPart(entries []entry, path string) (Part, error) {
	least, most, err := c.counts(entries, "minItems", "maxItems")
	if err != nil {
		return nil, err
	}
	lists := make([]listSchema, len(entries))
	longest := 0
	var rest []located
	unique := ""
	for i, e := range entries {
		if lists[i], err = c.listOf(e); err != nil {
			return nil, err
		}
		longest, rest = max(longest, len(lists[i].prefix)), append(rest, lists[i].items...)
		if e.d.Get("uniqueItems") == true {
			unique = e.path
		}
		for _, key := range []string{"contains", "minContains", "maxContains"} {
			if has(e.d, key) {
				c.skip(e.path, key)
			}
		}
	}
	if unique != "" && (most < 0 || most > 1) {
		if texts, ok := c.finite(rest, maxUnique); ok && longest == 0 && rest != nil {
			return c.uniqueList(texts, least, most, path)
		}
		c.skip(unique, "uniqueItems")
	}
	var prefix []Part
	for i := range longest {
		var all []located
		for _, l := range lists {
			if i < len(l.prefix) {
				all = append(all, l.prefix[i])
			} else {
				all = append(all, l.items...)
			}
		}
		p, err := c.all(all)
		if isNothing(err) && i >= least {
			if rest = []located{{false, path}}; most < 0 || most > i {
				most = i
			}
			break
		}
		if err != nil {
			return nil, err
		}
		prefix = append(prefix, p)
	}
	items, err := c.all(rest)
	switch {
	case isNothing(err):
		items = nil
		if most < 0 || most > len(prefix) {
			most = len(prefix)
		}
	case err != nil:
		return nil, err
	}
	if most >= 0 && least > most {
		return nil, c.nothing(path, "minItems %d of at most %d", least, most)
	}
	if prefix == nil && items != nil {
		return c.enclosed("[", items, "]", least, most), nil
	}
	return c.tuple(prefix, items, least, most), nil
}

// Limits on the values of lists without the same element twice.
const (
	maxUnique = 1000
	maxSets   = 9 // values in any order
)

// uniqueList returns lists of different values: of a few in any order, else in that of the schema.
func (c *compiler) uniqueList(texts []string, least, most int, path string) (Part, error) {
	n := len(texts)
	if least > n {
		return nil, c.nothing(path, "minItems %d of %d different values", least, n)
	}
	if most < 0 || most > n {
		most = n
	}
	if n > maxSets {
		if max(least, most)*n > maxCounted {
			least, most = min(least, maxCounted/n), max(min(least, maxCounted/n), maxCounted/n)
		}
		list := make([]property, n)
		for i, s := range texts {
			list[i] = property{c.Rule(Text(s)), false}
		}
		if most >= n {
			most = -1
		}
		return c.ordered("[", list, "]", least, most), nil
	}
	return func(b *Builder, next int32) int32 {
		end := Seq(c.space, Text("]"))(b, next)
		at := make([]int32, 1<<n) // after a set of values
		for set := len(at) - 1; set >= 0 && b.err == nil; set-- {
			count := 0
			way := node{kind: splitNode}
			for i := range n {
				count += set >> i & 1
			}
			for i, s := range texts {
				if set>>i&1 == 0 && count < most {
					comma := ","
					if count == 0 {
						comma = ""
					}
					way.others = append(way.others, Seq(Text(comma), c.space, Text(s))(b, at[set|1<<i]))
				}
			}
			if count >= least {
				way.others = append(way.others, end)
			}
			at[set] = b.add(way)
		}
		return Text("[")(b, at[0])
	}, nil
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
