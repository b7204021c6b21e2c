package grammar

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etrun-go/etrun/internal/grammar/grammartest"
)

func sorted(list []string) string {
	slices.Sort(list)
	return strings.Join(slices.Compact(list), " ")
}

// randomKeywords makes schemas of few keywords of all kinds.
type randomKeywords struct{ *rand.Rand }

func (r randomKeywords) of(list ...any) any { return list[r.IntN(len(list))] }

func (r randomKeywords) schemas(depth int) (list []any) {
	for range 1 + r.IntN(2) {
		list = append(list, r.schema(depth-1))
	}
	return list
}

func (r randomKeywords) named(depth int, names ...any) map[string]any {
	m := make(map[string]any)
	for range 1 + r.IntN(2) {
		m[r.of(names...).(string)] = r.schema(depth - 1)
	}
	return m
}

func (r randomKeywords) schema(depth int) any {
	if depth == 0 || r.IntN(12) == 0 {
		return r.of(true, false, map[string]any{}, map[string]any{"$ref": r.of("#/$defs/a", "#/$defs/b", "#", "#c", "d#/$defs/e", "urn:x")},
			map[string]any{"type": r.of("integer", "string", "object", "array", "null", "number", "boolean", []any{"number", "null"})})
	}
	one, sub := func() any { return r.schema(depth - 1) }, func() any { return r.schemas(depth) }
	number := func() any { return json.Number(r.of("0", "1", "2", "1.0", "0.5", "-1e0", "3e-1").(string)) }
	size := func() any { return r.of(0, 1, 2, 3) }
	list := []struct {
		name string
		make func() any
	}{
		{"type", func() any { return r.of("integer", "string", "object", "array", []any{"array", "object"}) }},
		{"const", func() any { return r.value(1) }}, {"enum", func() any { return []any{r.value(1), r.value(2), r.value(0)} }},
		{"minimum", number}, {"maximum", number}, {"exclusiveMinimum", number}, {"exclusiveMaximum", number},
		{"multipleOf", func() any { return r.of(1, 2, json.Number("0.5"), json.Number("1e-1")) }},
		{"minLength", size}, {"maxLength", size}, {"pattern", func() any { return r.of("^a", "b$", "a.*b", "é") }},
		{"minItems", size}, {"maxItems", size}, {"uniqueItems", func() any { return r.IntN(4) > 0 }},
		{"prefixItems", sub}, {"items", one}, {"contains", one}, {"minContains", size}, {"maxContains", size},
		{"minProperties", size}, {"maxProperties", size}, {"required", func() any { return []any{r.of("a", "b", "é/~")} }},
		{"properties", func() any { return r.named(depth, "a", "b", "é/~") }}, {"patternProperties", func() any { return r.named(depth, "^a", "b", "é") }},
		{"additionalProperties", one}, {"propertyNames", one},
		{"dependentRequired", func() any { return map[string]any{"a": []any{"b"}} }},
		{"dependentSchemas", func() any { return r.named(depth, "a", "b") }},
		{"dependencies", func() any { return map[string]any{"a": []any{"b"}, "b": r.schema(depth - 1)} }},
		{"allOf", sub}, {"anyOf", sub}, {"oneOf", sub}, {"not", one}, {"if", one}, {"then", one}, {"else", one},
		{"$ref", func() any { return r.of("#/$defs/a", "#/$defs/b", "#c", "d") }}, {"$dynamicRef", func() any { return r.of("#/$defs/a", "#c") }},
		{"unevaluatedItems", one}, {"unevaluatedProperties", one}, {"unevaluatedProperties", func() any { return false }},
	}
	s := make(map[string]any)
	for range 1 + r.IntN(4) {
		k := list[r.IntN(len(list))]
		s[k.name] = k.make()
	}
	return s
}

// root returns a schema with what references stand for.
func (r randomKeywords) root() string {
	s, ok := r.schema(3).(map[string]any)
	if !ok {
		s = make(map[string]any)
	}
	c, _ := r.schema(1).(map[string]any)
	s["$defs"] = map[string]any{"a": r.schema(2), "b": r.schema(1), "c": map[string]any{"$anchor": "c", "anyOf": []any{r.schema(1), true}},
		"d": map[string]any{"$id": "d", "items": map[string]any{"$ref": "#/$defs/e"}, "$defs": map[string]any{"e": c}}}
	text, err := json.Marshal(s)
	if err != nil { // cannot happen
		panic(err)
	}
	return string(text)
}

func (r randomKeywords) value(depth int) any {
	switch n := r.IntN(10); {
	case n > 6 && depth > 0:
		m := make(map[string]any)
		for range r.IntN(4) {
			m[r.of("a", "b", "é/~", "ab").(string)] = r.value(depth - 1)
		}
		return m
	case n > 3 && depth > 0:
		list := []any{}
		for range r.IntN(4) {
			list = append(list, r.value(depth-1))
		}
		return list
	}
	return r.of(nil, true, false, "", "a", "ab", "é", "abc", 0, 1, 2, json.Number("1.0"), json.Number("0.5"), json.Number("1e1"), json.Number("-0"),
		json.Number("12345678901234567890.5"))
}

// The places of random texts of random schemas are those of another implementation.
func TestValidateRandom(t *testing.T) {
	n := grammartest.Count(100)
	r := randomKeywords{rand.New(rand.NewPCG(5, 6))}
	compared, invalid := 0, 0
	for i := range n {
		schema := r.root()
		for range 6 {
			text, err := json.Marshal(r.value(3))
			if err != nil {
				t.Fatal(err)
			}
			want, err := grammartest.Places(schema, string(text))
			if err != nil {
				break // the schema has a reference to nothing
			}
			got, err := Validate([]byte(schema), string(text))
			same := sorted(got) == sorted(want)
			if strings.Contains(schema, "propertyNames") { // the places of names that the other one has are sometimes of other values
				same = len(got) > 0 == (len(want) > 0)
			}
			if !same || err != nil {
				t.Fatalf("schema %d %s:\n%s: got %v, %v, want %v", i, schema, text, got, err, want)
			}
			compared++
			invalid += min(len(want), 1)
		}
	}
	if invalid < n/2 || compared-invalid < n/2 {
		t.Errorf("%d compared, %d invalid", compared, invalid)
	}
}

// What the other implementation does not know, or cannot decide: keywords of earlier drafts and of OpenAPI, names, numbers beyond the
// limit, and patterns that are none.
func TestValidate(t *testing.T) {
	for _, c := range []struct{ schema, text, want string }{
		{`{"items":[{"type":"string"},{"type":"integer"}],"additionalItems":{"type":"null"},"prefixItems":[false]}`, `[1,2,null,3]`, "#/0 #/3"},
		{`{"items":[true],"additionalItems":false}`, `[1,2]`, "#/1"},
		{`{"items":{},"additionalItems":false}`, `[1,2]`, ""},
		{`{"properties":{"a":{"minimum":5,"exclusiveMinimum":true},"b":{"maximum":5,"exclusiveMaximum":true},"c":{"minimum":5,"exclusiveMinimum":false}}}`,
			`{"a":5,"b":5,"c":5}`, "#/a #/b"},
		{`{"properties":{"a":{"type":"string","required":true},"nullable":true}}`, `{}`, ""},
		{`{"items":{"type":"string","nullable":true}}`, `[null,"a",1]`, "#/2"},
		{`{"items":{"nullable":true,"allOf":[{"type":"string"}]}}`, `[null,"a",1]`, "#/2"},
		{`{"items":{"nullable":true,"type":["string"],"enum":["a"]}}`, `[null,"a"]`, "#/0"},
		{`{"oneOf":[{"type":"number"},{"type":"integer"}],"discriminator":{"propertyName":"k"}}`, `1`, ""},
		{`{"definitions":{"a":{"type":"null"}},"properties":{"a":{"$ref":"#/definitions/a"},"b":{"$recursiveRef":"#"}}}`, `{"b":{"a":1}}`, "#/b/a"},
		{`{"id":"x:y","properties":{"a":{"$ref":"x:y"}},"required":["b"]}`, `{"b":0,"a":{}}`, "#/a"},
		{`{"propertyNames":{"pattern":"^a"}}`, `{"b":0,"c":1}`, "#"},
		{`{"properties":{"a~/é":{"propertyNames":false}}}`, `{"a~/é":{"b":0}}`, "#/a~0~1é"},
		{`{"items":{"minimum":3,"multipleOf":2,"type":"integer"}}`, `[1e999999999,-1e-999999999,1e500]`, ""},
		{`{"maximum":1e999999999,"multipleOf":1e-999999999}`, `3`, ""},
		{`{"enum":[1e999999999]}`, `1e999999999`, ""},
		{`{"uniqueItems":true}`, `[1e999999999,1e999999998,{"a":1,"b":[1.0]},{"b":[1],"a":2}]`, ""},
		{`{"uniqueItems":true}`, `[{"a":1,"b":[1.0]},{"b":[10e-1],"a":1}]`, "#"},
		{`{"pattern":"(?P<n>"}`, `"a"`, ""},
		{`{"pattern":"(?<=b)a"}`, `"ca"`, "#"},
		{`{"pattern":7,"minLength":"a","enum":1,"properties":[],"required":{},"dependencies":[1],"minItems":null,"multipleOf":0}`, `{"a":1}`, ""},
		{`{"format":"date"}`, `"x"`, ""},
		{`{"type":"string"}`, `{"a"`, "#"},
		{`{"type":"string"}`, `"a" 1`, "#"},
		{`{"type":"string"}`, `"a"]`, "#"},
		{`{"items":{"$ref":"#"},"type":"array"}`, strings.Repeat("[", 900) + "1" + strings.Repeat("]", 900), "#" + strings.Repeat("/0", 900)},
	} {
		got, err := Validate([]byte(c.schema), c.text)
		if sorted(got) != c.want || err != nil {
			t.Errorf("%s: %.100s: got %v, %v, want %s", c.schema, c.text, got, err, c.want)
		}
	}
}

// What cannot be followed, and what takes too long, is an error soon.
func TestValidateBounds(t *testing.T) {
	twice := func(n int) string { // n levels, each of which refers to the next one twice
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"%d":{"anyOf":[{"$ref":"#/$defs/%d"},{"$ref":"#/$defs/%d"}]},`, i, i+1, i+1)
		}
		return `{"$ref":"#/$defs/0","$defs":{` + b.String() + fmt.Sprintf(`"%d":false}}`, n)
	}
	long := func(before, item, after string, n int) string {
		return before + strings.Repeat(item+",", n) + item + after
	}
	for name, c := range map[string]struct{ schema, text string }{
		"no JSON":        {`{`, `1`},
		"no schema":      {`{"properties":{"a":7}}`, `{"a":1}`},
		"no type":        {`{"type":"colour"}`, `1`},
		"no such part":   {`{"$ref":"#/$defs/a"}`, `1`},
		"another one":    {`{"$ref":"https://example.com/a"}`, `1`},
		"twice each":     {twice(60), `1`},
		"deep":           {`{"items":{"$ref":"#"}}`, strings.Repeat("[", 5000) + strings.Repeat("]", 5000)},
		"values":         {`{"items":{"enum":` + long("[", `"a"`, "]", 10_000) + `}}`, long("[", `"b"`, "]", 10_000)},
		"required":       {`{"items":{"required":` + long("[", `"a"`, "]", 10_000) + `}}`, long("[", `{"a":1}`, "]", 10_000)},
		"dependencies":   {`{"items":{"dependentRequired":{"b":` + long("[", `"a"`, "]", 20_000) + `}}}`, long("[", `{"a":1,"b":2}`, "]", 20_000)},
		"bad patterns":   {`{"patternProperties":{` + many(5000, `"(%d":true`) + `}}`, "{" + many(5000, `"%d":1`) + "}"},
		"references":     {`{"items":{"$ref":"#/$defs/` + strings.Repeat("a", 10_000) + `"},"$defs":{"` + strings.Repeat("a", 10_000) + `":true}}`, long("[", "1", "]", 20_000)},
		"patterns":       {`{"items":{"pattern":"^(?=a)(a+)+$"}}`, long("[", `"`+strings.Repeat("a", 40)+`b"`, "]", 1000)},
		"large numbers":  {`{"items":{"multipleOf":3e-400,"enum":[7e-400]}}`, long("[", "1e400", "]", 50_000)},
		"unique in each": {`{"uniqueItems":true,"items":{"$ref":"#"}}`, strings.Repeat("[", 900) + long("[", `"`+strings.Repeat("a", 90)+`"`, "]", 100) + strings.Repeat("]", 900)},
	} {
		begun := time.Now()
		_, err := Validate([]byte(c.schema), c.text)
		if took := time.Since(begun); err == nil || took > 5*time.Second {
			t.Errorf("%s: %v after %v", name, err, took)
		}
	}
}

func FuzzValidate(f *testing.F) {
	r := randomKeywords{rand.New(rand.NewPCG(7, 8))}
	for range 20 {
		f.Add([]byte(r.root()), `{"a":[1,"b",{"b":1e999}]}`)
	}
	f.Fuzz(func(t *testing.T, schema []byte, text string) {
		if list, err := Validate(schema, text); err == nil && len(list) > maxChecks { // must return
			t.Error(len(list))
		}
	})
}
