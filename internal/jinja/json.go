package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// FromJSON returns the value of a JSON text. Objects keep the order of their members.
func FromJSON(text []byte) (Value, error) { return fromJSON(text, numberOf, maxNesting) }

// FromJSONAsWritten is FromJSON, but that numbers are of type json.Number, and that there can be more levels.
func FromJSONAsWritten(text []byte) (Value, error) {
	return fromJSON(text, func(s json.Number) (Value, error) { return s, nil }, maxWritten)
}

func fromJSON(text []byte, number func(json.Number) (Value, error), most int) (Value, error) {
	d := &jsonReader{json.NewDecoder(bytes.NewReader(text)), number, most}
	d.UseNumber()
	v, err := d.value(0)
	if err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

// jsonReader reads values, with numbers of a kind.
type jsonReader struct {
	*json.Decoder
	number func(json.Number) (Value, error)
	most   int // levels
}

func (d *jsonReader) value(depth int) (Value, error) {
	if depth > d.most {
		return nil, fmt.Errorf("a value of more than %d levels", d.most)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch x := t.(type) {
	case json.Number:
		return d.number(x)
	case json.Delim:
		if x == '{' {
			return d.dict(depth)
		}
		l := &List{}
		for d.More() {
			v, err := d.value(depth + 1)
			if err != nil {
				return nil, err
			}
			l.Items = append(l.Items, v)
		}
		_, err := d.Token()
		return l, err
	}
	return t, nil
}

func (d *jsonReader) dict(depth int) (Value, error) {
	dict := NewDict()
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		dict.Set(key, v)
	}
	_, err := d.Token()
	return dict, err
}

func numberOf(n json.Number) (Value, error) {
	s := string(n)
	if !strings.ContainsAny(s, ".eE") {
		if n, err := strconv.Atoi(s); err == nil {
			return n, nil
		}
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, fmt.Errorf("the number %.40s", s)
	}
	return x, nil
}

// jsonWriter writes values as Python's json does.
type jsonWriter struct {
	*run
	b            strings.Builder
	comma, colon string
	indent       int // -1 for one line
	ascii        bool
	sorted       bool
}

// line begins a line if there are several.
func (j *jsonWriter) line(depth int) {
	if j.indent >= 0 {
		j.b.WriteByte('\n')
		j.b.WriteString(strings.Repeat(" ", j.indent*depth))
	}
}

func (j *jsonWriter) value(v any, depth int) error {
	if depth > maxNesting {
		return errNested
	}
	if j.b.Len() > maxOutput { // with what is between the elements, which is not counted yet
		return fmt.Errorf("more than %d bytes of JSON", maxOutput)
	}
	before := j.b.Len()
	switch x := v.(type) {
	case nil:
		j.b.WriteString("null")
	case bool:
		j.b.WriteString(strconv.FormatBool(x))
	case int:
		j.b.WriteString(strconv.Itoa(x))
	case float64:
		j.b.WriteString(jsonFloat(x))
	case string:
		j.string(x)
	case *List:
		if err := j.list(x, depth); err != nil {
			return err
		}
	case *Dict:
		if err := j.dict(x, depth); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%s has no JSON form", describe(v))
	}
	return errors.Join(j.step(1), j.made(j.b.Len()-before))
}

func jsonFloat(x float64) string {
	switch {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 1):
		return "Infinity"
	case math.IsInf(x, -1):
		return "-Infinity"
	}
	return float(x)
}

func (j *jsonWriter) list(x *List, depth int) error {
	j.b.WriteByte('[')
	for i, item := range x.Items {
		if i > 0 {
			j.b.WriteString(j.comma)
		}
		j.line(depth + 1)
		if err := j.value(item, depth+1); err != nil {
			return err
		}
	}
	if len(x.Items) > 0 {
		j.line(depth)
	}
	j.b.WriteByte(']')
	return nil
}

func (j *jsonWriter) dict(x *Dict, depth int) error {
	keys := x.keys
	if j.sorted {
		var err error
		if keys, err = j.sortBy(keys, false, func(k any) (any, error) { return k, nil }); err != nil {
			return err
		}
	}
	j.b.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			j.b.WriteString(j.comma)
		}
		j.line(depth + 1)
		s, ok := k.(string)
		if !ok {
			s = map[any]string{nil: "null", true: "true", false: "false"}[k]
			if s == "" {
				s = scalar(k)
			}
		}
		j.string(s)
		j.b.WriteString(j.colon)
		if err := j.value(x.values[k], depth+1); err != nil {
			return err
		}
	}
	if len(keys) > 0 {
		j.line(depth)
	}
	j.b.WriteByte('}')
	return nil
}

// jsonEscapes are the characters with a short form.
var jsonEscapes = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}

func (j *jsonWriter) string(s string) {
	j.b.WriteByte('"')
	for _, c := range s {
		e, ok := jsonEscapes[c]
		switch {
		case ok:
			j.b.WriteString(e)
		case c < 0x20 || j.ascii && c > 0x7e && c < 0x10000 && !slices.Contains(kept, c):
			fmt.Fprintf(&j.b, `\u%04x`, c)
		case j.ascii && c >= 0x10000:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&j.b, `\u%04x\u%04x`, high, low)
		default:
			j.b.WriteRune(c)
		}
	}
	j.b.WriteByte('"')
}

// kept are characters that tojson never escapes: callers mark places in strings with them.
var kept = []rune{0xFDD0}
