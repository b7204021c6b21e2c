package grammar

import (
	"bytes"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/etrun-go/etrun/internal/jinja"
)

// source is a schema, with what its parts need to know about it.
type source struct {
	root  any
	bases map[*jinja.Dict]base
	named map[string]any // parts by their $id, and by an $anchor behind that
	lone  bool           // a string is no Unicode text
	work  int            // comparisons of schemas, or what a check does
}

// base is the part with an $id around a reference, at which its pointer begins.
type base struct {
	v  any
	id *url.URL
}

// read reads a schema.
func read(text []byte) (*source, error) {
	root, err := jinja.FromJSONAsWritten(text)
	if err != nil {
		return nil, err
	}
	s := &source{root: root, bases: make(map[*jinja.Dict]base), named: make(map[string]any), lone: !isText(text)}
	s.locate(root, base{root, &url.URL{}})
	return s, nil
}

// references are the keywords that stand for another part.
var references = []string{"$ref", "$dynamicRef", "$recursiveRef"}

// referenceOf returns the first keyword of a schema that is a reference, "" without one.
func referenceOf(d *jinja.Dict) string {
	for _, key := range references {
		if has(d, key) {
			return key
		}
	}
	return ""
}

// locate finds the bases of the references in a value, and the parts with names.
func (s *source) locate(v any, b base) {
	switch x := v.(type) {
	case *jinja.List:
		for _, item := range x.Items {
			s.locate(item, b)
		}
	case *jinja.Dict:
		id, ok := x.Get("$id").(string)
		if !ok {
			id, ok = x.Get("id").(string) // of draft 4
			ok = ok && v == s.root
		}
		u, err := url.Parse(id)
		switch {
		case !ok || err != nil:
		case strings.HasPrefix(id, "#"): // "#name" was a name, before draft 2019-09
			s.named[b.id.String()+id] = x
		default:
			u = b.id.ResolveReference(u)
			u.Fragment = ""
			b = base{x, u}
			s.named[u.String()] = x
		}
		for _, key := range []string{"$anchor", "$dynamicAnchor"} {
			if name, ok := x.Get(key).(string); ok {
				s.named[b.id.String()+"#"+name] = x
			}
		}
		if referenceOf(x) != "" {
			s.bases[x] = b
		}
		for _, k := range x.Keys() {
			if k != "enum" && k != "const" {
				s.locate(x.Get(k), b)
			}
		}
	}
}

// isText reports whether all strings of a JSON text are Unicode: there is no half of a surrogate pair alone.
func isText(text []byte) bool {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 || i+1 >= len(text) {
			return utf8.Valid(text)
		}
		if !utf8.Valid(text[:i]) {
			return false
		}
		if text = text[i+1:]; text[0] != 'u' {
			text = text[1:]
			continue
		}
		first, second := unit(text[1:]), rune(-1)
		if utf16.IsSurrogate(first) && len(text) > 6 && text[5] == '\\' && text[6] == 'u' {
			second = unit(text[7:])
		}
		switch {
		case !utf16.IsSurrogate(first):
			text = text[1:]
		case utf16.DecodeRune(first, second) == utf8.RuneError:
			return false
		default:
			text = text[7:]
		}
	}
}

// unit returns the number of four hexadecimal digits, or -1.
func unit(text []byte) rune {
	n, err := strconv.ParseUint(string(text[:min(4, len(text))]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// text rejects a string of the schema that is no Unicode text: JSON in UTF-8 cannot have it.
func (s *source) text(name, path string) error {
	if s.lone && strings.ContainsRune(name, utf8.RuneError) {
		return s.fail(path, "%.60q: half of a surrogate pair alone is not supported", name)
	}
	return nil
}

// resolve returns what a reference of a schema stands for, and its place.
func (c *source) resolve(d *jinja.Dict, key string) (target any, path string, err error) {
	s, ok := d.Get(key).(string)
	u, err := url.Parse(s)
	if !ok || err != nil {
		return nil, "", fmt.Errorf("%s %.100q: want one within the schema, such as #/$defs/name", key, s)
	}
	if err := c.text(s, key); err != nil {
		return nil, "", err
	}
	b, ok := c.bases[d]
	if !ok { // within a value
		b = base{c.root, &url.URL{}}
	}
	at, pointer, id := b.v, u.Fragment, b.id
	if u.Fragment = ""; u.String() != "" {
		id = b.id.ResolveReference(u)
		if at, ok = c.named[id.String()]; !ok {
			return nil, "", fmt.Errorf("%s %.100q: want one within the schema, such as #/$defs/name", key, s)
		}
	}
	if named, ok := c.named[id.String()+"#"+pointer]; ok && pointer != "" {
		return named, s, nil
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if c.work++; pointer == "" {
			break
		}
		if at = member(at, unescapeNames.Replace(part)); at == nil || pointer[0] != '/' {
			return nil, "", fmt.Errorf("%s %.100q: there is no such schema", key, s)
		}
	}
	return at, s, nil
}

var unescapeNames = strings.NewReplacer("~1", "/", "~0", "~")

// member returns a member of an object or a list by its name, nil if there is none.
func member(v any, name string) any {
	switch x := v.(type) {
	case *jinja.Dict:
		return x.Get(name)
	case *jinja.List:
		if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < len(x.Items) && strconv.Itoa(n) == name {
			return x.Items[n]
		}
	}
	return nil
}
