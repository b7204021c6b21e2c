package grammartest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Validator returns the check of a text by a schema, with patterns of ECMA 262: as numbers are written, and as doubles, as most readers
// have them.
func Validator(schema []byte) (check func(text string) error, err error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	exact, err := compile(doc, err, (*jsonschema.Compiler).AssertFormat)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", schema, err)
	}
	doc, err = asDoubles(schema)
	doubles, err := compile(doc, err, (*jsonschema.Compiler).AssertFormat)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", schema, err)
	}
	return func(text string) error {
		if !json.Valid([]byte(text)) || !utf8.ValidString(text) {
			return errors.New("no JSON")
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
		if err != nil {
			return err
		}
		w, err := asDoubles([]byte(text))
		if err != nil {
			return err
		}
		return errors.Join(exact.Validate(v), doubles.Validate(w))
	}, nil
}

func asDoubles(text []byte) (v any, err error) {
	err = json.Unmarshal(text, &v)
	return v, err
}

// Places returns pointers to the places of a text that do not satisfy a schema, whose formats are annotations.
func Places(schema, text string) (list []string, err error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	s, err := compile(doc, err)
	if err != nil {
		return nil, err
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	if failed, ok := errors.AsType[*jsonschema.ValidationError](s.Validate(v)); ok {
		list = leaves(failed, nil)
	}
	return list, nil
}

// leaves adds the places of errors without causes.
func leaves(e *jsonschema.ValidationError, list []string) []string {
	for _, x := range e.Causes {
		list = leaves(x, list)
	}
	if len(e.Causes) > 0 {
		return list
	}
	place := "#"
	for _, name := range e.InstanceLocation {
		place += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	}
	return append(list, place)
}

func compile(doc any, err error, options ...func(*jsonschema.Compiler)) (*jsonschema.Schema, error) {
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	for _, set := range options {
		set(c)
	}
	c.UseRegexpEngine(ecma)
	if err := c.AddResource("schema.json", doc); err != nil {
		return nil, err
	}
	return c.Compile("schema.json")
}

// pattern is a regular expression of ECMA 262.
type pattern struct{ *regexp2.Regexp }

func (p pattern) MatchString(s string) bool {
	ok, err := p.Regexp.MatchString(s)
	return ok && err == nil
}

// ecma compiles a regular expression, with the flag u if it has a meaning with it.
func ecma(s string) (jsonschema.Regexp, error) {
	r, err := regexp2.Compile(s, regexp2.ECMAScript|regexp2.Unicode)
	if err != nil {
		r, err = regexp2.Compile(s, regexp2.ECMAScript)
	}
	return pattern{r}, err
}
