package grammartest

import (
	"encoding/json"
	"strconv"
)

// texts are strings with several conditions.
func (r *schemas) texts(int) map[string]any {
	s := map[string]any{"type": "string"}
	if r.IntN(2) == 0 {
		s["format"] = r.of("date", "time", "date-time", "uuid", "ipv4", "ipv6", "email", "hostname", "uri", "uri-reference", "duration", "json-pointer",
			"regex", "unheard-of", "byte")
	}
	if r.IntN(2) == 0 {
		s["pattern"] = r.of(`^[0-9a-f-]+$`, "a", "^.{3,30}$", `^(?=.*\d)`, `^(?!.*[aeiou]{2})`, `\d\b`, `^\S*$`, `[^\x00-\x7f]`, `^(a|b(?!a))+c?$`, `(?<=a)b`,
			`^(https?:|mailto:)`, `\.`, r.pattern(2))
	}
	if r.IntN(2) == 0 {
		s["minLength"] = r.IntN(12)
	}
	if r.IntN(2) == 0 {
		s["maxLength"] = 4 + r.IntN(40)
	}
	if r.IntN(4) == 0 {
		s["contentEncoding"] = "base64"
	}
	return s
}

// multiple are multiples of a number.
func (r *schemas) multiple(int) map[string]any {
	s := map[string]any{"type": r.of("integer", "number"), "multipleOf": r.numeral("2", "0.5", "0.01", "7", "1e2", "0.125", "1.5", "360", "1e-7", "25e1")}
	if r.IntN(2) == 0 {
		s[r.of("minimum", "exclusiveMinimum")] = r.IntN(400) - 200
	}
	if r.IntN(2) == 0 {
		s[r.of("maximum", "exclusiveMaximum")] = 300 + r.IntN(4000)
	}
	return s
}

// named are objects whose names have conditions.
func (r *schemas) named(depth int) map[string]any {
	s := map[string]any{"type": "object"}
	if r.IntN(2) == 0 {
		s["patternProperties"] = map[string]any{r.of("^a", "b$", "^[a-z]{2}$", "c"): r.schema(depth - 1), r.of("^x", "y$", "z"): r.schema(depth - 1)}
	}
	if r.IntN(2) == 0 {
		s["propertyNames"] = []any{map[string]any{"pattern": "^[a-z]+$"}, map[string]any{"enum": []any{"ab", "xy", "q"}}, map[string]any{"maxLength": 3}}[r.IntN(3)]
	}
	if r.IntN(2) == 0 {
		s["properties"] = map[string]any{"ab": r.schema(depth - 1), "xy": r.schema(depth - 1), "c": true}
	}
	switch r.IntN(4) {
	case 0:
		s["additionalProperties"] = false
	case 1:
		s["additionalProperties"] = r.schema(depth - 1)
	}
	if r.IntN(3) == 0 {
		s["required"] = []any{r.of("ab", "xy", "q")}
	}
	if r.IntN(3) == 0 {
		s["minProperties"] = r.IntN(2)
	}
	if r.IntN(3) == 0 {
		s["maxProperties"] = 1 + r.IntN(3)
	}
	return s
}

// set are lists of different elements.
func (r *schemas) set(int) map[string]any {
	values := []any{"a", "b", 1, json.Number("1.5"), nil, true, "c", 2, 3, 4, 5, 6, []any{1}}
	s := map[string]any{"type": "array", "uniqueItems": true, "items": []any{
		map[string]any{"enum": values[:1+r.IntN(len(values)-1)]}, map[string]any{"type": []any{"boolean", "null"}},
		map[string]any{"type": "integer", "minimum": 1, "maximum": 1 + r.IntN(20)}, map[string]any{"type": "string"}}[r.IntN(4)]}
	if r.IntN(2) == 0 {
		s["minItems"] = r.IntN(3)
	}
	if r.IntN(2) == 0 {
		s["maxItems"] = 2 + r.IntN(3)
	}
	return s
}

// together are schemas that a value has to satisfy at once.
func (r *schemas) together(depth int) map[string]any {
	s := r.schema(depth - 1)
	one := func() map[string]any { return r.schema(depth - 1) }
	keys := []string{"allOf", "anyOf", "oneOf", "not", "if", "const", "enum", "type"}
	for range 1 + r.IntN(2) {
		switch key := keys[r.IntN(len(keys))]; key {
		case "allOf":
			s[key] = []any{one(), map[string]any{}}
		case "anyOf", "oneOf":
			s[key] = []any{one(), one(), map[string]any{"type": r.of("string", "object", "integer")}}
		case "not":
			s[key] = []any{map[string]any{"type": r.of("string", "number", "null")}, map[string]any{"enum": []any{"a", 1, nil, true}}, map[string]any{"pattern": "a"},
				map[string]any{"required": []any{"ab"}}, one()}[r.IntN(5)]
		case "if":
			s[key], s["then"] = []any{map[string]any{"type": "string"}, map[string]any{"const": 1}, one()}[r.IntN(3)], one()
			if r.IntN(2) == 0 {
				s["else"] = one()
			}
		case "const":
			s[key] = []any{"a", 1, nil, true, json.Number("1.5"), []any{1}}[r.IntN(6)]
		case "enum":
			s[key] = []any{"a", "abc", 1, 7, nil, true, json.Number("1.5"), []any{1}, "2024-01-01"}
		case "type":
			s[key] = r.of("string", "number", "object", "array")
		}
	}
	return s
}

// narrowed are objects with alternatives beside their properties.
func (r *schemas) narrowed(depth int) map[string]any {
	s := map[string]any{"type": "object", "properties": map[string]any{"ab": r.schema(depth - 1), "k": map[string]any{"enum": []any{"x", "y", 1}},
		"xy": map[string]any{"type": "string"}}}
	switch r.IntN(5) {
	case 0:
		s["anyOf"] = []any{map[string]any{"required": []any{"ab"}}, map[string]any{"required": []any{"k"}, "properties": map[string]any{"k": map[string]any{"const": "x"}}}}
	case 1:
		s["dependentRequired"] = map[string]any{"ab": []any{"xy"}, "k": []any{"ab", "xy"}}
	case 2:
		s["dependentSchemas"] = map[string]any{"k": map[string]any{"properties": map[string]any{"xy": map[string]any{"maxLength": 2}}, "required": []any{"xy"}}}
	case 3:
		s["if"] = map[string]any{"properties": map[string]any{"k": map[string]any{"const": "x"}}, "required": []any{"k"}}
		s["then"], s["else"] = map[string]any{"required": []any{"xy"}}, map[string]any{"properties": map[string]any{"xy": map[string]any{"pattern": "^b*$"}}}
	case 4:
		s["$ref"], s["$defs"] = "#/$defs/d", map[string]any{"d": map[string]any{"properties": map[string]any{"k": map[string]any{"type": "string"}}}}
		r.names++
		s["$id"] = "urn:etrun:ref:" + strconv.Itoa(r.names)
	}
	if r.IntN(2) == 0 {
		s["minProperties"] = 1 + r.IntN(2)
	}
	return s
}
