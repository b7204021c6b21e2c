package grammartest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Validator returns the check of a text by a schema, with patterns of ECMA 262: as numbers are written, and as doubles, as most readers
// have them.
func Validator(schema []byte) (check func(text string) error, err error) {
	exact, err := compile(jsonschema.UnmarshalJSON(bytes.NewReader(schema)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", schema, err)
	}
	doubles, err := compile(asDoubles(schema))
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

func compile(doc any, err error) (*jsonschema.Schema, error) {
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
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
