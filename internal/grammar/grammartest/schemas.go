// Package grammartest (no compatibility promise) makes random JSON schemas, and checks texts against schemas with another
// implementation than package grammar, for tests.
package grammartest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
)

// Count returns the number of random schemas of a test: that of the variable ETRUN_SCHEMAS, or otherwise.
func Count(otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv("ETRUN_SCHEMAS")); err == nil {
		return n
	}
	return otherwise
}

// Schemas yields random schemas of a depth as JSON: those whose keywords are enforced.
func Schemas(r *rand.Rand, depth int) func(yield func([]byte) bool) {
	return yieldOf(&schemas{Rand: r}, depth)
}

// Mixed yields random schemas with keywords beside each other, some of which accept nothing, or are not enforced.
func Mixed(r *rand.Rand, depth int) func(yield func([]byte) bool) {
	return yieldOf(&schemas{Rand: r, mixed: true}, depth)
}

func yieldOf(s *schemas, depth int) func(yield func([]byte) bool) {
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
	mixed bool
}

func (r *schemas) schema(depth int) map[string]any {
	kinds := []func(int) map[string]any{r.str, r.number, r.literal, r.simple, r.object, r.list, r.choice, r.tree, r.tagged}
	if depth == 0 {
		kinds = kinds[:4]
	} else if r.mixed {
		kinds = append(kinds, r.texts, r.multiple, r.named, r.set, r.together, r.narrowed, r.together, r.narrowed)
	}
	s := kinds[r.IntN(len(kinds))](depth)
	if r.IntN(4) == 0 {
		s["description"] = "any"
	}
	return s
}

// of returns one of several texts.
func (r *schemas) of(list ...string) string { return list[r.IntN(len(list))] }

func (r *schemas) str(int) map[string]any {
	s := map[string]any{"type": "string"}
	switch r.IntN(5) {
	case 0:
		s["pattern"] = r.of(`^[a-z]{2,5}$`, `^(ab|c)*d?$`, `^\d+-\w+$`, `^[^x]{3}"\\$`, `^\S.\s$`, `^[äö]+$`, `^[\w-.@]+$`)
	case 1:
		s["pattern"] = r.pattern(2)
	case 2:
		s["format"] = r.of("date", "time", "date-time", "uuid", "ipv4", "email")
	case 3:
		n := r.IntN(6)
		s["minLength"], s["maxLength"] = n, n+r.IntN(4)
	}
	return s
}

// pattern returns a regular expression of ECMA 262.
func (r *schemas) pattern(depth int) string {
	var b strings.Builder
	for range 1 + r.IntN(3) {
		atom := r.of("a", "é", `\d`, `\W`, `\s`, `\S`, ".", `[^]`, `\u0041`, `\u{1F600}`, `\ud83d\ude00`, `\x7e`, `\cJ`, `\0`, `\/`, `\t`,
			`[\b\v]`, `[^\S ]`, `[\w.-]`, `[a-f\-\]]`, `[^\x00-\x7e]`, `[\u4e00-\u9fa5]`, `\p{Lu}`, `[^\p{Letter}\x20-~]`, `\p{Script=Greek}`, `[[&]`)
		if depth > 0 && r.IntN(4) == 0 {
			atom = r.of("(", "(?:", "(?<n"+strconv.Itoa(r.IntN(1000000))+">") + r.pattern(depth-1) + "|" + r.pattern(depth-1) + ")"
		}
		b.WriteString(atom + r.of("", "", "", "*", "+?", "?", "{2}", "{0,3}?", "{1,}"))
	}
	if depth == 2 {
		return r.of("", "^") + b.String() + r.of("", "$")
	}
	return b.String()
}

func (r *schemas) number(int) map[string]any {
	s := map[string]any{"type": r.of("integer", "number")}
	low := r.IntN(4000) - 2000
	switch r.IntN(4) {
	case 0: // wide
		if r.IntN(2) == 0 {
			s[r.of("minimum", "exclusiveMinimum")] = float64(low) / float64(1+r.IntN(4))
		}
		if r.IntN(2) == 0 {
			s[r.of("maximum", "exclusiveMaximum")] = float64(low) + 2000 + float64(r.IntN(4000))/2
		}
	case 1: // with many digits, beside limits
		s[r.of("minimum", "exclusiveMinimum")] = r.numeral("-1e15", "-999999999999999", "-999999999999998", "-1E3", "-99999.5", "-0", "0.1",
			"0.30000000000000004", "0.29999999999999999", "99999", "1e-13", "99999.99999999999", "999999999999998", "-1e300", "12345.678901234567")
		s[r.of("maximum", "exclusiveMaximum")] = r.numeral("1e15", "999999999999999", "999999999999998.5", "100000", "123456.7890123456789",
			"0.5", "1e300", "1000000000000000000000", "100000.00000000000001")
	case 2: // narrow
		low := r.Int64N(1_000_000_000_000_000) / pow10(r.IntN(12))
		if r.IntN(2) == 0 {
			low = -low
		}
		places := r.IntN(14)
		s[r.of("minimum", "exclusiveMinimum")] = json.Number(fmt.Sprintf("%de-%d", low, places))
		s[r.of("maximum", "exclusiveMaximum")] = json.Number(fmt.Sprintf("%de-%d", low+1+r.Int64N(200), places))
	}
	if r.IntN(8) == 0 {
		s["multipleOf"] = 1
	}
	return s
}

func pow10(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}

// numeral returns one of several numbers.
func (r *schemas) numeral(list ...string) json.Number { return json.Number(r.of(list...)) }

func (r *schemas) literal(int) map[string]any {
	number := r.numeral("-3", "1.5", "12345678901234567890", "-9223372036854775809", "1e2", "1.0", "0.1", "123456789.123456789123456789", "1E+30")
	if r.IntN(2) == 0 {
		return map[string]any{"const": []any{"a\"ü<\u2028😀", number, nil, true, []any{number, "x"}, map[string]any{"k": number}}[r.IntN(6)]}
	}
	return map[string]any{"enum": []any{"red", "blue", number, 7, nil}[r.IntN(4):]}
}

// tree is a part with an $id and definitions of its own, which contain themselves, in alternatives that begin alike.
func (r *schemas) tree(depth int) map[string]any {
	r.names++
	id, node := "urn:etrun:"+strconv.Itoa(r.names), map[string]any{"$ref": "#/$defs/node"}
	alternatives := []any{r.schema(depth - 1)}
	for i := range 1 + r.IntN(4) {
		alternatives = append(alternatives, []map[string]any{
			{"type": "array", "items": node, "maxItems": i},
			{"type": "object", "properties": map[string]any{"l": node, "op": map[string]any{"const": i}, "r": node}, "required": []any{"op"}},
		}[r.IntN(2)])
	}
	return map[string]any{"$id": id, "$defs": map[string]any{"node": map[string]any{"anyOf": alternatives}},
		"type": "array", "items": node, "maxItems": 2}
}

// tagged is one of several objects with different constants.
func (r *schemas) tagged(depth int) map[string]any {
	var list []any
	for _, tag := range []any{"a", json.Number("12345678901234567890"), json.Number("1.50"), false}[:2+r.IntN(3)] {
		list = append(list, map[string]any{"type": "object", "required": []any{"tag"},
			"properties": map[string]any{"tag": map[string]any{"const": tag}, "v": r.schema(depth - 1)}})
	}
	return map[string]any{"oneOf": list}
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
		if r.IntN(3) == 0 {
			s["items"] = false
		}
	}
	return s
}

func (r *schemas) choice(depth int) map[string]any {
	return map[string]any{"anyOf": []any{r.schema(depth - 1), r.schema(depth - 1)}}
}
