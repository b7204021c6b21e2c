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
	bases map[*jinja.Dict]any // what pointers in $ref begin at, for those within a part with an $id of its own
	lone  bool                // a string is no Unicode text
	old   string              // the $schema, if it is of a draft before 2020-12
}

// read reads a schema.
func read(text []byte) (*source, error) {
	root, err := jinja.FromJSONAsWritten(text)
	if err != nil {
		return nil, err
	}
	d := &source{root: root, bases: make(map[*jinja.Dict]any), lone: !isText(text)}
	if top, ok := root.(*jinja.Dict); ok {
		draft, _ := top.Get("$schema").(string)
		if strings.Contains(draft, "//json-schema.org/") && !strings.Contains(draft, "2020-12") {
			d.old = draft
		}
	}
	d.locate(root, root)
	return d, nil
}

// locate finds the bases of the references in a value.
func (s *source) locate(v, base any) {
	switch x := v.(type) {
	case *jinja.List:
		for _, item := range x.Items {
			s.locate(item, base)
		}
	case *jinja.Dict:
		if id, ok := x.Get("$id").(string); ok && !strings.HasPrefix(id, "#") { // "#name" was a name, before draft 2019-09
			base = x
		}
		if has(x, "$ref") {
			s.bases[x] = base
		}
		for _, k := range x.Keys() {
			s.locate(x.Get(k), base)
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
func (c *compiler) text(s, path string) error {
	if c.lone && strings.ContainsRune(s, utf8.RuneError) {
		return c.fail(path, "%.60q: half of a surrogate pair alone is not supported", s)
	}
	return nil
}

// reference returns the part of a schema elsewhere in the document.
func (c *compiler) reference(d *jinja.Dict, path string) (Part, error) {
	target, to, err := c.resolve(d)
	if err != nil {
		return nil, c.fail(path, "%w", err)
	}
	return c.schema(target, to)
}

// resolve returns what the reference of a schema stands for.
func (c *compiler) resolve(d *jinja.Dict) (target any, path string, err error) {
	s, _ := d.Get("$ref").(string)
	if s != "#" && !strings.HasPrefix(s, "#/") {
		return nil, "", fmt.Errorf("$ref %.100q: want one within the schema, such as #/$defs/name", s)
	}
	if err := c.text(s, "$ref"); err != nil {
		return nil, "", err
	}
	pointer, err := url.PathUnescape(s[1:])
	if err != nil {
		return nil, "", fmt.Errorf("$ref %.100q: %w", s, err)
	}
	at := c.bases[d]
	if s == "#" {
		return at, s, nil
	}
	for part := range strings.SplitSeq(pointer[1:], "/") {
		c.work++
		if at = member(at, strings.NewReplacer("~1", "/", "~0", "~").Replace(part)); at == nil {
			return nil, "", fmt.Errorf("$ref %.100q: there is no such schema", s)
		}
	}
	return at, s, nil
}

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
