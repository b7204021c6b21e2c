package forms

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/etrun-go/etrun/internal/grammar"
)

// Validate returns pointers to the places of a JSON text that do not satisfy a schema, without those of a pattern that is no regular
// expression of ECMA 262.
func Validate(schema []byte, text string) (invalid []string, err error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(schema)))
	if err != nil {
		return nil, err
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return []string{"#"}, nil
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(pattern)
	const name = "schema:/answer"
	if err := c.AddResource(name, modern(doc)); err != nil {
		return nil, err
	}
	s, err := c.Compile(name)
	if err != nil {
		return nil, err
	}
	failed, ok := errors.AsType[*jsonschema.ValidationError](s.Validate(v))
	if !ok {
		return nil, nil
	}
	return leaves(failed, nil), nil
}

// leaves adds the places of the errors that have no causes.
func leaves(e *jsonschema.ValidationError, list []string) []string {
	if len(e.Causes) == 0 {
		var b strings.Builder
		b.WriteByte('#')
		for _, part := range e.InstanceLocation {
			b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(part))
		}
		return append(list, b.String())
	}
	for _, x := range e.Causes {
		list = leaves(x, list)
	}
	return list
}

// noLoader loads no schemas: those of a request name no files.
type noLoader struct{}

// Load returns an error.
func (noLoader) Load(name string) (any, error) { return nil, fmt.Errorf("%s is not loaded", name) }

// expression is a regular expression of ECMA 262, nil for one of another dialect.
type expression struct {
	text  string
	match func(string) bool
}

// String returns the text.
func (x expression) String() string { return x.text }

// MatchString reports whether a string matches, and true beyond the limit of time.
func (x expression) MatchString(s string) bool { return x.match == nil || x.match(s) }

// pattern compiles a regular expression.
func pattern(s string) (jsonschema.Regexp, error) {
	match, err := grammar.Expression(s)
	if err != nil {
		match = nil
	}
	return expression{s, match}, nil
}

// modern returns a schema as draft 2020-12 has it: with keywords of earlier drafts and of OpenAPI in its words, as forms read them.
func modern(v any) any {
	switch x := v.(type) {
	case []any:
		for i := range x {
			x[i] = modern(x[i])
		}
	case map[string]any:
		for key, part := range x {
			if key != "enum" && key != "const" {
				x[key] = modern(part)
			}
		}
		return modernObject(x)
	}
	return v
}

func modernObject(x map[string]any) any {
	if _, ok := x["$schema"].(string); ok {
		delete(x, "$schema")
	}
	if list, ok := x["items"].([]any); ok {
		x["prefixItems"] = list
		if delete(x, "items"); x["additionalItems"] != nil {
			x["items"] = x["additionalItems"]
		}
	}
	for _, key := range [][2]string{{"exclusiveMinimum", "minimum"}, {"exclusiveMaximum", "maximum"}} {
		if open, ok := x[key[0]].(bool); ok {
			if delete(x, key[0]); open && x[key[1]] != nil {
				x[key[0]] = x[key[1]]
			}
		}
	}
	if _, ok := x["required"].(bool); ok {
		delete(x, "required")
	}
	if d, ok := x["discriminator"].(map[string]any); ok && d["propertyName"] != nil && x["oneOf"] != nil && x["anyOf"] == nil {
		x["anyOf"] = x["oneOf"] // the property decides, also for values that several schemas accept
		delete(x, "oneOf")
	}
	return orNull(x)
}

// orNull returns a schema with what nullable means.
func orNull(x map[string]any) any {
	if x["nullable"] != true {
		return x
	}
	delete(x, "nullable")
	switch t := x["type"].(type) {
	case string:
		x["type"] = []any{t, "null"}
	case []any:
		if !slices.Contains(t, any("null")) {
			x["type"] = append(t, "null")
		}
	case nil:
		if x["$ref"] != nil || x["allOf"] != nil || x["anyOf"] != nil || x["oneOf"] != nil {
			return map[string]any{"anyOf": []any{x, map[string]any{"type": "null"}}}
		}
	}
	return x
}
