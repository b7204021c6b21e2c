package grammar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

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

// words is a vocabulary of all bytes and of random texts.
func words(r *rand.Rand) (*Vocabulary, []string) {
	texts := make([]string, 0, 900)
	for b := range 256 {
		texts = append(texts, string([]byte{byte(b)}))
	}
	const letters = `{}[]",:0123456789.-eabtrufalsn\ ü` + "\n"
	for range 600 {
		n := 2 + r.IntN(4)
		b := make([]byte, n)
		for i := range b {
			b[i] = letters[r.IntN(len(letters))]
		}
		texts = append(texts, string(b))
	}
	texts = append(texts, `": "`, `", "`, `},`, `{"`, "true", "false", "null", "\n  ", `"a`, "")
	return NewVocabulary(texts), texts
}

// walk generates a text of random tokens of those that are allowed.
func walk(t *testing.T, g *Grammar, v *Vocabulary, texts []string, r *rand.Rand, most int) string {
	m := g.NewMatcher(v.Has)
	var b []byte
	left := max(most, m.Least())
	for ; left > 0 && !m.Complete(); left-- {
		if m.Accepts() && r.IntN(3) == 0 {
			break
		}
		var ids []int
		m.Each(v, left-1, func(id int) { ids = append(ids, id) })
		if len(ids) == 0 {
			if m.Accepts() {
				break
			}
			t.Fatalf("no token follows %q, %d are left", b, left)
		}
		s := texts[ids[r.IntN(len(ids))]]
		if !m.Allows([]byte(s), left-1) || !m.Advance([]byte(s)) {
			t.Fatalf("%q after %q is listed, but not allowed", s, b)
		}
		b = append(b, s...)
	}
	if !m.Accepts() {
		t.Fatalf("%q is no end", b)
	}
	return string(b)
}

// Each text of the grammar of a schema is valid. ETRUN_SCHEMAS sets the number of random schemas.
func TestRandomSchemas(t *testing.T) {
	n := 150
	if s := os.Getenv("ETRUN_SCHEMAS"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	r := &schemas{Rand: rand.New(rand.NewPCG(1, 2))}
	v, texts := words(r.Rand)
	compiled := 0
	for i := range n {
		text, err := json.Marshal(r.schema(3))
		if err != nil {
			t.Fatal(err)
		}
		g, err := Schema(text)
		if err != nil {
			continue // a range without numbers, or a list of too few elements
		}
		compiled++
		check := validator(t, text)
		for range 3 {
			got := walk(t, g, v, texts, r.Rand, 1+r.IntN(60))
			if err := check(got); err != nil {
				t.Fatalf("schema %d %s:\n%q: %v", i, text, got, err)
			}
		}
	}
	if compiled < n*8/10 {
		t.Errorf("%d of %d schemas have a grammar", compiled, n)
	}
}

// validator returns the check of a text by another implementation.
func validator(t *testing.T, schema []byte) func(text string) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return func(text string) error {
		if !json.Valid([]byte(text)) || !utf8.ValidString(text) {
			return fmt.Errorf("no JSON")
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
		if err != nil {
			return err
		}
		return s.Validate(v)
	}
}
