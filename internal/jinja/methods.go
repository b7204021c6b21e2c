package jinja

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// stringMethod is a method of strings.
type stringMethod func(r *run, s string, c *call) (any, error)

// dictMethod is a method of dictionaries.
type dictMethod func(r *run, d *Dict, c *call) (any, error)

// bound returns a method of a value as a function.
func bound[T any, F ~func(r *run, v T, c *call) (any, error)](m F, v any) function {
	x, _ := v.(T)
	return func(r *run, c *call) (any, error) { return m(r, x, c) }
}

var dictMethods = map[string]dictMethod{
	"items": func(r *run, d *Dict, _ *call) (any, error) { return d.items(r) },
	"keys":  func(r *run, d *Dict, _ *call) (any, error) { return &List{Items: d.keys}, r.step(len(d.keys)) },
	"values": func(r *run, d *Dict, _ *call) (any, error) {
		l := &List{}
		for _, k := range d.keys {
			l.Items = append(l.Items, d.values[k])
		}
		return l, r.step(len(d.keys))
	},
	"get": func(r *run, d *Dict, c *call) (any, error) {
		key := c.arg(0, "", nil)
		if err := r.keyed(key); err != nil {
			return nil, err
		}
		if hashable(key) {
			if v, ok := d.values[key]; ok {
				return v, nil
			}
		}
		return c.arg(1, "", nil), nil
	},
}

// items returns the keys with their values.
func (d *Dict) items(r *run) (any, error) {
	l := &List{}
	for _, k := range d.keys {
		l.Items = append(l.Items, &List{Items: []any{k, d.values[k]}, Tuple: true})
	}
	return l, r.step(len(d.keys))
}

var stringMethods = map[string]stringMethod{
	"strip": trimming(strings.TrimFunc, strings.Trim), "lstrip": trimming(strings.TrimLeftFunc, strings.TrimLeft),
	"rstrip": trimming(strings.TrimRightFunc, strings.TrimRight),
	"upper":  changing(upper), "lower": changing(lower), "title": changing(title), "capitalize": changing(capitalize),
	"startswith": affix(strings.HasPrefix), "endswith": affix(strings.HasSuffix),
	"split": split, "rsplit": rsplit, "splitlines": splitLines, "replace": replace, "find": find, "count": countOf,
	"removeprefix": cutting(strings.TrimPrefix), "removesuffix": cutting(strings.TrimSuffix),
	"isdigit": every(unicode.IsDigit), "isalpha": every(unicode.IsLetter), "isspace": every(isSpace),
	"isalnum": every(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }),
	"isupper": func(r *run, s string, _ *call) (any, error) { return r.cased(s, upper) },
	"islower": func(r *run, s string, _ *call) (any, error) { return r.cased(s, lower) },
}

func init() { stringMethods["join"] = joining } // which refers to the methods

// isSpace reports whether Python's strip drops a character.
func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }

// words returns the arguments as strings.
func words(c *call, most int) (list []string, err error) {
	for i := range most {
		v := c.arg(i, "", nil)
		s, ok := v.(string)
		if v == nil {
			break
		}
		if !ok {
			return nil, fmt.Errorf("the argument %s, want a string", describe(v))
		}
		list = append(list, s)
	}
	return list, nil
}

func trimming(space func(string, func(rune) bool) string, chars func(string, string) string) stringMethod {
	return func(r *run, s string, c *call) (any, error) {
		list, err := words(c, 1)
		if err == nil {
			err = r.made(len(s))
		}
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return space(s, isSpace), nil
		}
		if err := r.step(len(s) * min(len(list[0]), maxSteps/max(len(s), 1)+1) / 16); err != nil {
			return nil, err
		}
		return chars(s, list[0]), nil
	}
}

func changing(f func(string) string) stringMethod {
	return func(r *run, s string, _ *call) (any, error) {
		if err := r.made(4 * len(s)); err != nil {
			return nil, err
		}
		return f(s), nil
	}
}

func cutting(f func(s, part string) string) stringMethod {
	return func(r *run, s string, c *call) (any, error) {
		list, err := words(c, 1)
		if err != nil || len(list) == 0 {
			return nil, errors.Join(err, errArguments)
		}
		return f(s, list[0]), r.keyed(list[0])
	}
}

func every(f func(rune) bool) stringMethod {
	return func(r *run, s string, _ *call) (any, error) {
		return s != "" && strings.IndexFunc(s, func(c rune) bool { return !f(c) }) < 0, r.made(len(s))
	}
}

var errArguments = errors.New("arguments are missing")

// affix is startswith or endswith, of one string or of a tuple.
func affix(f func(s, part string) bool) stringMethod {
	return func(r *run, s string, c *call) (any, error) {
		if len(c.args) == 0 {
			return nil, errArguments
		}
		list := []any{c.args[0]}
		if l, ok := c.args[0].(*List); ok {
			list = l.Items
		}
		for _, x := range list {
			part, ok := x.(string)
			if !ok {
				return nil, fmt.Errorf("the argument %s, want a string", describe(x))
			}
			if err := r.keyed(part); err != nil {
				return nil, err
			}
			if f(s, part) {
				return true, nil
			}
		}
		return false, r.step(len(list))
	}
}

// list returns strings as a list.
func (r *run) list(parts []string, bytes int) (any, error) {
	l := &List{Items: make([]any, len(parts))}
	for i, p := range parts {
		l.Items[i] = p
	}
	return l, errors.Join(r.step(len(parts)), r.made(bytes))
}

// separator returns the arguments of split: without a separator it is white space.
func separator(c *call) (sep string, most int, err error) {
	list, err := words(c, 1)
	if len(list) > 0 {
		if sep = list[0]; sep == "" {
			err = errors.New("an empty separator")
		}
	}
	most, ok := integer(c.arg(1, "maxsplit", -1))
	if !ok {
		err = errors.Join(err, errKinds)
	}
	if most < 0 {
		most = -2
	}
	return sep, most + 1, err
}

func split(r *run, s string, c *call) (any, error) {
	sep, most, err := separator(c)
	if err != nil {
		return nil, err
	}
	if sep != "" {
		if err := r.step(strings.Count(s, sep)); err != nil {
			return nil, err
		}
		return r.list(strings.SplitN(s, sep, most), len(s))
	}
	if err := r.step(len(s) / 16); err != nil { // there may be as many parts as half its bytes
		return nil, err
	}
	if most < 0 {
		return r.list(strings.FieldsFunc(s, isSpace), 2*len(s))
	}
	var parts []string
	for s = strings.TrimLeftFunc(s, isSpace); s != ""; s = strings.TrimLeftFunc(s, isSpace) {
		i := strings.IndexFunc(s, isSpace)
		if i < 0 || len(parts) == most-1 {
			parts = append(parts, s)
			break
		}
		parts, s = append(parts, s[:i]), s[i:]
	}
	return r.list(parts, 2*len(s))
}

func rsplit(r *run, s string, c *call) (any, error) {
	sep, most, err := separator(c)
	if err != nil {
		return nil, err
	}
	if most < 0 {
		return split(r, s, c)
	}
	if sep == "" {
		return nil, errors.New("rsplit without a separator")
	}
	var parts []string
	for len(parts) < most-1 {
		i := strings.LastIndex(s, sep)
		if i < 0 {
			break
		}
		parts, s = append(parts, s[i+len(sep):]), s[:i]
		if err := r.step(1); err != nil {
			return nil, err
		}
	}
	parts = append(parts, s)
	for i, k := 0, len(parts)-1; i < k; i, k = i+1, k-1 {
		parts[i], parts[k] = parts[k], parts[i]
	}
	return r.list(parts, len(s))
}

// isLineEnd reports whether Python's splitlines splits at a character.
func isLineEnd(r rune) bool {
	return r >= '\n' && r <= '\r' || r >= 0x1c && r <= 0x1e || r == 0x85 || r == 0x2028 || r == 0x2029
}

func splitLines(r *run, s string, c *call) (any, error) {
	keep := truth(c.arg(0, "keepends", false))
	var parts []string
	size := 2 * len(s)
	for s != "" {
		i := strings.IndexFunc(s, isLineEnd)
		if i < 0 {
			parts = append(parts, s)
			break
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		if strings.HasPrefix(s[i:], "\r\n") {
			n = 2
		}
		line := s[:i]
		if keep {
			line = s[:i+n]
		}
		parts, s = append(parts, line), s[i+n:]
		if err := r.step(1); err != nil {
			return nil, err
		}
	}
	return r.list(parts, size)
}

func replace(r *run, s string, c *call) (any, error) {
	list, err := words(c, 2)
	if err != nil {
		return nil, err
	}
	most, ok := integer(c.arg(2, "count", -1))
	if len(list) < 2 || !ok {
		return nil, errArguments
	}
	grows := max(len(list[1])-len(list[0]), 0)
	n := strings.Count(s, list[0])
	if err := errors.Join(r.step(n), r.made(len(s)+n*min(grows, maxBytes/max(n, 1)+1))); err != nil {
		return nil, err
	}
	return strings.Replace(s, list[0], list[1], most), nil
}

func find(r *run, s string, c *call) (any, error) {
	list, err := words(c, 1)
	if err != nil || len(list) == 0 {
		return nil, errors.Join(err, errArguments)
	}
	i := strings.Index(s, list[0])
	if i > 0 {
		i = len([]rune(s[:i]))
	}
	return i, r.made(4 * len(s))
}

func countOf(r *run, s string, c *call) (any, error) {
	list, err := words(c, 1)
	if err != nil || len(list) == 0 {
		return nil, errors.Join(err, errArguments)
	}
	return strings.Count(s, list[0]), r.made(len(s))
}

func joining(r *run, s string, c *call) (any, error) {
	return joinFilter(r, c.arg(0, "", nil), &call{args: []any{s}})
}

// member returns a method, or an element by its name.
func (r *run) member(v any, key string) (any, error) {
	switch x := v.(type) {
	case undefined:
		return nil, fmt.Errorf("%.60q is not defined", x.name)
	case *namespace:
		if m, ok := x.members[key]; ok {
			return m, nil
		}
	case *cycler:
		return x.member(key), nil
	case *loopState:
		if f := loopMembers[key]; f != nil {
			return f(x), nil
		}
	case *Dict:
		if m := dictMethods[key]; m != nil {
			return bound(m, v), nil
		}
		if item, ok := x.values[key]; ok {
			return item, nil
		}
	case string:
		if m := stringMethods[key]; m != nil {
			return bound(m, v), nil
		}
	}
	return undefined{key}, nil
}

func joinFilter(r *run, v any, c *call) (any, error) {
	items, err := r.items(v)
	if err != nil {
		return nil, err
	}
	sep, err := r.str(c.arg(0, "d", ""))
	if err != nil {
		return nil, err
	}
	parts := make([]string, len(items))
	for i, x := range items {
		if key := c.arg(1, "attribute", nil); key != nil {
			if x, err = r.path(x, key); err != nil {
				return nil, err
			}
		}
		if parts[i], err = r.str(x); err == nil {
			err = r.made(len(parts[i]) + len(sep))
		}
		if err != nil {
			return nil, err
		}
	}
	return strings.Join(parts, sep), nil
}
