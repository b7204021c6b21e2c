package requests

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
)

// use is what becomes of a member of a request.
type use int

const (
	honoured use = iota
	inert        // accepted without effect
	unable       // refused, unless its value asks for nothing
)

// member describes a member of a request.
type member struct {
	use     use
	neutral string            // with unable: JSON values that ask for nothing, besides null, with spaces between them
	why     string            // the reason, or the way out; for others than unable a remark
	inside  Object            // members of the object, or of the objects in the list
	types   map[string]Object // the same, by the member type: those of other types have any members
	most    int               // maximum number of members of the object, or of elements of the list that are no numbers; 0 for any
}

// Object lists the members of an object. Others are refused.
type Object map[string]member

// Of returns an object whose members may have any value. The names have spaces between them, so in the other methods.
func Of(names string) Object { return Object{}.add(member{}, names) }

func (o Object) add(m member, names string) Object {
	for _, name := range strings.Fields(names) {
		o[name] = m
	}
	return o
}

// Inert adds members that are accepted without effect.
func (o Object) Inert(names string) Object { return o.add(member{use: inert}, names) }

// No adds members that are refused, for a reason, unless their value is null or one of those with spaces between them.
func (o Object) No(why, neutral, names string) Object {
	return o.add(member{use: unable, why: why, neutral: neutral}, names)
}

// With adds members.
func (o Object) With(more Object) Object {
	maps.Copy(o, more)
	return o
}

// folds reports whether a name differs from a member's by its case only: package json sets that member.
func (o Object) folds(name string) bool {
	for known := range o {
		if strings.EqualFold(known, name) {
			return true
		}
	}
	return false
}

// checker checks the members of a request against their table.
type checker struct{ dec *jsontext.Decoder }

// checkMembers refuses a body that is not an object, has a member that the table does not list, has one twice, or has one that
// is not supported.
func checkMembers(body []byte, o Object) error {
	c := checker{decoderOf(body)}
	if kind := c.dec.PeekKind(); kind != '{' && kind != 0 {
		return &fault.Error{Class: etrun.ErrInput, Text: "body: want an object"}
	}
	if err := c.object("", member{inside: o}); err != nil {
		return err
	}
	if _, err := c.dec.ReadToken(); err == nil {
		return &fault.Error{Class: etrun.ErrInput, Text: "body: bytes follow the object"}
	}
	return nil
}

func decoderOf(body []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowInvalidUTF8(true))
}

// Object checks an object, or counts the members of one without a table.
func (c *checker) object(place string, m member) error {
	if _, err := c.dec.ReadToken(); err != nil {
		return syntax(err)
	}
	for n := 1; c.dec.PeekKind() == '"'; n++ {
		if m.most > 0 && n > m.most {
			return fault.Refused(place, "more than %d members", m.most)
		}
		token, err := c.dec.ReadToken()
		if err != nil {
			return syntax(err)
		}
		name := token.String()
		at, known := inner(place, name), member{}
		if m.inside != nil {
			var ok bool
			if known, ok = m.inside[name]; !ok && (c.dec.PeekKind() != 'n' || m.inside.folds(name)) { // null asks for nothing
				return fault.Unknown(at, "unknown member; docs/serve-members.md of etrun lists all of them")
			}
		}
		if m.inside == nil && c.dec.PeekKind() == 'n' {
			return fault.Refused(at, "null, want a value")
		}
		if err := c.value(at, known); err != nil {
			return err
		}
	}
	_, err := c.dec.ReadToken()
	return syntax(err)
}

// value checks the value of a member.
func (c *checker) value(place string, m member) error {
	kind := c.dec.PeekKind()
	switch {
	case m.use == unable:
		return c.unable(place, m)
	case kind == '{' && m.types != nil:
		return c.typed(place, m)
	case kind == '{' && (m.inside != nil || m.most > 0):
		return c.object(place, m)
	case kind == '[' && (m.inside != nil || m.types != nil || m.most > 0):
		return c.list(place, m)
	}
	return syntax(c.dec.SkipValue())
}

// list checks the objects in a list, and counts the elements.
func (c *checker) list(place string, m member) error {
	if _, err := c.dec.ReadToken(); err != nil {
		return syntax(err)
	}
	for i, n := 0, 0; ; i++ {
		kind := c.dec.PeekKind()
		if kind == ']' || kind == 0 {
			break
		}
		if kind != '0' {
			n++
		}
		if m.most > 0 && n > m.most {
			return fault.Refused(place, "more than %d elements", m.most)
		}
		err := error(nil)
		switch {
		case kind == 'n' && m.inside == nil: // package json takes it for an empty element
			err = fault.Refused(fmt.Sprintf("%s[%d]", place, i), "null, want a value")
		case kind == '{' && m.types != nil:
			err = c.typed(fmt.Sprintf("%s[%d]", place, i), m)
		case kind == '{' && m.inside != nil:
			err = c.object(fmt.Sprintf("%s[%d]", place, i), member{inside: m.inside})
		default:
			err = syntax(c.dec.SkipValue())
		}
		if err != nil {
			return err
		}
	}
	_, err := c.dec.ReadToken()
	return syntax(err)
}

// typed checks an object whose members depend on its type.
func (c *checker) typed(place string, m member) error {
	raw, err := c.dec.ReadValue()
	if err != nil {
		return syntax(err)
	}
	var t struct{ Type string }
	_ = json.Unmarshal(raw, &t) // a type that is no string is of no table
	if o := m.types[t.Type]; o != nil {
		return (&checker{decoderOf(raw)}).object(place, member{inside: o})
	}
	return nil
}

// unable refuses a member that asks for something.
func (c *checker) unable(place string, m member) error {
	raw, err := c.dec.ReadValue()
	if err != nil {
		return syntax(err)
	}
	if err := raw.Compact(); err != nil {
		return syntax(err)
	}
	if string(raw) == "null" || slices.ContainsFunc(strings.Fields(m.neutral), func(s string) bool { return same(string(raw), s) }) {
		return nil
	}
	return fault.Unsupported(place, "%.80s: not supported: %s", raw, m.why)
}

// same reports whether two JSON values are the same; numbers can differ in their form.
func same(a, b string) bool {
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return a == b || err == nil && err2 == nil && x == y
}

// inner returns the path of a member.
func inner(place, name string) string {
	name = fmt.Sprintf("%.140s", name)
	if place == "" {
		return name
	}
	return place + "." + name
}

// syntax returns an error of the JSON itself.
func syntax(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF): // nothing but spaces
		return &fault.Error{Class: etrun.ErrInput, Text: "body: empty, want an object"}
	}
	return fmt.Errorf("body: %w", inputError{err})
}

// Decode reads the body of a request whose members the table lists.
func Decode(body []byte, o Object, into any) error {
	if err := checkMembers(body, o); err != nil {
		return err
	}
	err := json.Unmarshal(integral(body), into)
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && e.Field != "" {
		return fault.Refused(memberOf(e.Field, o), "%s, want %v", cmp.Or(valueKinds[e.Value], e.Value), kindOf(e.Type.Kind()))
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	return syntax(err)
}
