package jinja

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Value is a value of a template: nil, a bool, an int, a float64, a string, a *List or a *Dict. Values must not be changed.
type Value = any

// List is a list, or a tuple.
type List struct {
	Items []any
	Tuple bool
}

// Dict is a dictionary in the order of its keys.
type Dict struct {
	keys   []any
	values map[any]any
}

// NewDict returns an empty dictionary.
func NewDict() *Dict { return &Dict{values: make(map[any]any)} }

// Set sets the value of a key: a string, a number, a bool or nil.
func (d *Dict) Set(key, value any) {
	if _, ok := d.values[key]; !ok {
		d.keys = append(d.keys, key)
	}
	d.values[key] = value
}

// Has reports whether there is a key.
func (d *Dict) Has(key any) bool {
	_, ok := d.values[key]
	return ok
}

// Get returns the value of a key, nil without one.
func (d *Dict) Get(key any) any { return d.values[key] }

// undefined is the value of what does not exist.
type undefined struct{ name string }

// namespace has members that can be set.
type namespace struct{ members map[string]any }

// describe names the kind of a value, for errors.
func describe(v any) string {
	switch x := v.(type) {
	case nil:
		return "none"
	case bool:
		return "a bool"
	case int:
		return "an integer"
	case float64:
		return "a number"
	case string:
		return "a string"
	case *List:
		return "a list"
	case *Dict:
		return "a dictionary"
	case undefined:
		return fmt.Sprintf("%.60q, which is not defined", x.name)
	}
	return "an object"
}

func hashable(v any) bool {
	switch v.(type) {
	case nil, bool, int, float64, string:
		return true
	}
	return false
}

// truth returns whether a value is true in a condition.
func truth(v any) bool {
	switch x := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return x
	case int:
		return x != 0
	case float64:
		return x != 0
	case string:
		return x != ""
	case *List:
		return len(x.Items) > 0
	case *Dict:
		return len(x.keys) > 0
	}
	return true
}

var errNested = fmt.Errorf("a value of more than %d levels", maxNesting)

// str returns the text of a value as Python's str does.
func (r *run) str(v any) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	if _, ok := v.(undefined); ok {
		return "", nil
	}
	return r.repr(v)
}

// repr returns the text of a value as Python's repr does.
func (r *run) repr(v any) (string, error) {
	var b strings.Builder
	err := r.appendRepr(&b, v, 0)
	return b.String(), err
}

func (r *run) appendRepr(b *strings.Builder, v any, depth int) error {
	if depth > maxNesting {
		return errNested
	}
	before := b.Len()
	switch x := v.(type) {
	case *List:
		if err := r.reprList(b, x, depth); err != nil {
			return err
		}
	case *Dict:
		b.WriteByte('{')
		for i, k := range x.keys {
			if i > 0 {
				b.WriteString(", ")
			}
			if err := r.appendRepr(b, k, depth+1); err != nil {
				return err
			}
			b.WriteString(": ")
			if err := r.appendRepr(b, x.values[k], depth+1); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	default:
		b.WriteString(scalar(v))
	}
	return errors.Join(r.step(1), r.made(b.Len()-before))
}

func (r *run) reprList(b *strings.Builder, x *List, depth int) error {
	open, end := "[", "]"
	if x.Tuple {
		if open, end = "(", ")"; len(x.Items) == 1 {
			end = ",)"
		}
	}
	b.WriteString(open)
	for i, item := range x.Items {
		if i > 0 {
			b.WriteString(", ")
		}
		if err := r.appendRepr(b, item, depth+1); err != nil {
			return err
		}
	}
	b.WriteString(end)
	return nil
}

// scalar returns the text of a value without elements.
func scalar(v any) string {
	switch x := v.(type) {
	case nil:
		return "None"
	case bool:
		if x {
			return "True"
		}
		return "False"
	case int:
		return strconv.Itoa(x)
	case float64:
		return float(x)
	case string:
		return pythonQuote(x)
	case undefined:
		return "Undefined"
	}
	return "<object>"
}

// float returns a number as Python does.
func float(x float64) string {
	switch {
	case math.IsNaN(x):
		return "nan"
	case math.IsInf(x, 1):
		return "inf"
	case math.IsInf(x, -1):
		return "-inf"
	case x == math.Trunc(x) && math.Abs(x) < 1e16:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case math.Abs(x) >= 1e-4 && math.Abs(x) < 1e16:
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'e', -1, 64)
}

// pythonQuote returns a string as Python's repr does.
func pythonQuote(s string) string {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b := []byte{quote}
	for _, c := range s {
		switch {
		case c == rune(quote) || c == '\\':
			b = append(b, '\\', byte(c))
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c < 0x20 || c >= 0x7f && c < 0xa1 || c == 0xad:
			b = fmt.Appendf(b, `\x%02x`, c)
		default:
			b = utf8.AppendRune(b, c)
		}
	}
	return string(append(b, quote))
}

// items returns the elements of a value: of a dictionary its keys, of a string its characters.
func (r *run) items(v any) ([]any, error) {
	switch x := v.(type) {
	case *List:
		return x.Items, r.step(len(x.Items))
	case *Dict:
		return x.keys, r.step(len(x.keys))
	case string:
		if err := errors.Join(r.step(len(x)), r.made(16*len(x))); err != nil {
			return nil, err
		}
		var list []any
		for _, c := range x {
			list = append(list, string(c))
		}
		return list, nil
	case undefined:
		return nil, nil
	}
	return nil, fmt.Errorf("%s has no elements", describe(v))
}

// length returns the number of elements.
func length(v any) (int, error) {
	switch x := v.(type) {
	case *List:
		return len(x.Items), nil
	case *Dict:
		return len(x.keys), nil
	case string:
		return utf8.RuneCountInString(x), nil
	case undefined:
		return 0, nil
	}
	return 0, fmt.Errorf("%s has no length", describe(v))
}

// Keys returns the keys in their order.
func (d *Dict) Keys() []any { return d.keys }
