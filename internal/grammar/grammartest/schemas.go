// Package grammartest (no compatibility promise) makes random JSON schemas, and checks texts against schemas with another
// implementation than package grammar, for tests.
package grammartest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Count returns the number of random schemas of a test: that of the variable ETRUN_SCHEMAS, or otherwise.
func Count(otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv("ETRUN_SCHEMAS")); err == nil {
		return n
	}
	return otherwise
}

// Schemas yields random schemas of a depth as JSON.
func Schemas(r *rand.Rand, depth int) func(yield func([]byte) bool) {
	s := &schemas{Rand: r}
	return func(yield func([]byte) bool) {
		for {
			text, err := json.Marshal(s.schema(depth))
			if err != nil { // cannot happen
				panic(err)
			}
			if !yield(text) {
				return
			}
		}
	}
}

// schemas makes random schemas.
type schemas struct {
	*rand.Rand
	names int
}

func (r *schemas) schema(depth int) map[string]any {
	kinds := []func(int) map[string]any{r.str, r.number, r.literal, r.simple, r.object, r.list, r.choice}
	if depth == 0 {
		kinds = kinds[:4]
	}
	s := kinds[r.IntN(len(kinds))](depth)
	if r.IntN(4) == 0 {
		s["description"] = "any"
	}
	return s
}

func (r *schemas) str(int) map[string]any {
	s := map[string]any{"type": "string"}
	switch r.IntN(4) {
	case 0:
		s["pattern"] = []string{`^[a-z]{2,5}$`, `^(ab|c)*d?$`, `^\d+-\w+$`, `^[^x]{3}"\\$`, `^\S.\s$`, `^[äö]+$`}[r.IntN(6)]
	case 1:
		s["format"] = []string{"date", "time", "date-time", "uuid", "ipv4", "email"}[r.IntN(6)]
	case 2:
		n := r.IntN(6)
		s["minLength"], s["maxLength"] = n, n+r.IntN(4)
	}
	return s
}

func (r *schemas) number(int) map[string]any {
	s := map[string]any{"type": []string{"integer", "number"}[r.IntN(2)]}
	low := r.IntN(4000) - 2000
	if r.IntN(2) == 0 {
		s[[]string{"minimum", "exclusiveMinimum"}[r.IntN(2)]] = float64(low) / float64(1+r.IntN(4))
	}
	if r.IntN(2) == 0 {
		s[[]string{"maximum", "exclusiveMaximum"}[r.IntN(2)]] = float64(low) + 2000 + float64(r.IntN(4000))/2
	}
	return s
}

func (r *schemas) literal(int) map[string]any {
	if r.IntN(2) == 0 {
		return map[string]any{"const": []any{"a\"ü<", -3, 1.5, nil, true, []any{1, "x"}, map[string]any{"k": 1}}[r.IntN(7)]}
	}
	return map[string]any{"enum": []any{"red", "blue", 7, nil}[r.IntN(3):]}
}

func (r *schemas) simple(int) map[string]any {
	return []map[string]any{{"type": "boolean"}, {"type": "null"}, {"type": []any{"string", "null"}}, {}}[r.IntN(4)]
}

func (r *schemas) object(depth int) map[string]any {
	s := map[string]any{"type": "object"}
	properties, required := map[string]any{}, []any{}
	for range r.IntN(4) {
		r.names++
		name := []string{"a", "ü", "long name ", `q"`}[r.IntN(4)] + strconv.Itoa(r.names)
		properties[name] = r.schema(depth - 1)
		if r.IntN(2) == 0 {
			required = append(required, name)
		}
	}
	if len(properties) > 0 {
		s["properties"], s["required"] = properties, required
	}
	switch r.IntN(3) {
	case 0:
		s["additionalProperties"] = false
	case 1:
		s["additionalProperties"] = r.schema(depth - 1)
	}
	return s
}

func (r *schemas) list(depth int) map[string]any {
	s := map[string]any{"type": "array", "items": r.schema(depth - 1)}
	if r.IntN(2) == 0 {
		n := r.IntN(3)
		s["minItems"], s["maxItems"] = n, n+r.IntN(3)
	}
	if r.IntN(3) == 0 {
		s["prefixItems"] = []any{r.schema(depth - 1), r.schema(depth - 1)}
	}
	return s
}

func (r *schemas) choice(depth int) map[string]any {
	return map[string]any{"anyOf": []any{r.schema(depth - 1), r.schema(depth - 1)}}
}

// Validator returns the check of a text by a schema.
func Validator(schema []byte) (check func(text string) error, err error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		return nil, err
	}
	s, err := c.Compile("schema.json")
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
		return s.Validate(v)
	}, nil
}
