package grammar

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// A builder whose schema is refused can go on: no call of the schema's rules is left.
func TestRefusedSchema(t *testing.T) {
	for _, bad := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#"},"b":{"type":"nosuch"}}}`,
		`{"type":"array","items":{"type":"string","minLength":19999},"prefixItems":[{"type":"array","items":{},"minItems":20000},` +
			strings.Repeat(`{"type":"string","minLength":19998},`, 20) + `{"type":"null"}]}`,
	} {
		b := NewBuilder()
		if _, err := b.Schema([]byte(bad)); err == nil {
			t.Fatalf("%.80s: no error", bad)
		}
		p, err := b.Schema([]byte(`{"type":"boolean"}`))
		if err != nil {
			t.Fatal(err)
		}
		g, err := b.Build(p)
		if err != nil || !matches(g, "true") {
			t.Errorf("%.80s: got %v", bad, err)
		}
	}
}

// Bounds that no number with the digits of this package keeps are refused.
func TestNumbersOutOfReach(t *testing.T) {
	for _, kind := range []string{"number", "integer"} {
		for _, bound := range []string{`"minimum":1e300`, `"maximum":-1e300`, `"exclusiveMinimum":1e16`, `"minimum":1e300,"maximum":1e301`,
			`"minimum":999999999999999.5`} {
			var failed *SchemaError
			if _, err := Schema(fmt.Appendf(nil, `{"type":%q,%s}`, kind, bound)); !errors.As(err, &failed) {
				t.Errorf("%s, %s: got %v", kind, bound, err)
			}
		}
	}
	g, err := Schema([]byte(`{"type":"number","minimum":-1e300,"maximum":1e300}`))
	if err != nil || !matches(g, "-5.5") || !matches(g, "999999999999999") {
		t.Errorf("wide bounds: %v", err)
	}
}

// many is a text of n parts.
func many(n int, format string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(parts, ",")
}

// The time of schemas does not grow with the square of their size.
func TestLargeSchemas(t *testing.T) {
	for name, s := range map[string]string{
		"oneOf of constants": `{"oneOf":[` + many(40_000, `{"const":"%d"}`) + `]}`,
		"oneOf of objects": `{"oneOf":[` +
			many(4_000, `{"type":"object","properties":{"k":{"const":"%d"}},"required":["k"]}`) + `]}`,
		"required":      `{"type":"object","properties":{` + many(60_000, `"%d":true`) + `},"required":[` + many(60_000, `"%d"`) + `]}`,
		"only required": `{"type":"object","required":[` + many(60_000, `"%d"`) + `]}`,
		"references":    `{"anyOf":[` + many(30_000, `{"$ref":"#/$defs/%d"}`) + `],"$defs":{` + many(30_000, `"%d":{}`) + `}}`,
		"types":         `{"type":[` + strings.Repeat(`"string",`, 50_000) + `"string"],"pattern":"a"}`,
		"pattern":       `{"type":"string","pattern":"` + strings.Repeat("x", 100_000) + `"}`,
	} {
		begin := time.Now()
		if _, err := Schema([]byte(s)); (err == nil) != slices.Contains([]string{"references", "oneOf of objects", "pattern"}, name) {
			t.Errorf("%s: got %v", name, err)
		}
		if d := time.Since(begin); d > 20*time.Second {
			t.Errorf("%s: %v", name, d)
		}
	}
}

// The work for a grammar, and the depth of calls, do not grow faster than its size.
func TestLargeGrammars(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"alternatives":       {`root ::= "b"` + strings.Repeat(`|"a"`, 190_000), true},
		"empty alternatives": {`root ::= "a" (` + strings.Repeat("|", 1_000_000) + `)* "b"`, true},
		"repetitions":        {`root ::= "a"` + strings.Repeat("?", 1_000_000), false},
		"same characters":    {`root ::= [` + strings.Repeat("ab", 400_000) + `]{1000}`, true},
		"literal":            {`root ::= "` + strings.Repeat("a", 1_000_000) + `"`, false},
	} {
		begin := time.Now()
		g, err := GBNF(c.text)
		if (err == nil) != c.ok {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		if c.ok {
			edges := 0
			for _, n := range g.nodes {
				edges += len(n.others)
			}
			if edges > 2*len(g.nodes) {
				t.Errorf("%s: %d alternatives of %d states", name, edges, len(g.nodes))
			}
		}
		if d := time.Since(begin); d > 20*time.Second {
			t.Errorf("%s: %v", name, d)
		}
	}
}

// Schemas of a builder share the rules of JSON, and a schema that is only checked leaves nothing.
func TestManySchemas(t *testing.T) {
	const most = 5_000
	b, list := NewBuilder(), make([]Part, most)
	for i := range list {
		var err error
		if list[i], err = b.Schema([]byte(`{"type":"integer"}`)); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Check([]byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`)); err != nil {
			t.Fatal(err)
		}
	}
	g, err := b.Build(Seq(list...))
	if err != nil {
		t.Fatal(err)
	}
	if g.Size() > 10*most {
		t.Errorf("%d states", g.Size())
	}
}

// A class is listed only while there is room for it: a short pattern can have a thousand large ones.
func TestLargeClasses(t *testing.T) {
	n := testing.AllocsPerRun(1, func() {
		if _, err := Pattern(strings.Repeat(`\pL`, maxPattern/3)); err == nil {
			t.Error("no error")
		}
	})
	if n > 10*maxNodes {
		t.Errorf("%v allocations for at most %d states", n, maxNodes)
	}
}

// The distances are those of the shortest texts: no node has a shorter way than by what it needs.
func TestDistances(t *testing.T) {
	for text, want := range map[string]int{
		"root ::= \"abc\" | \"de\" | x\nx ::= [a-z]{4} | [A-Z]":                  1,
		"root ::= (\"a\" | \"b\" \"c\"){3} x\nx ::= y{5}\ny ::= \"y\" x | \"z\"": 8,
		"root ::= x x\nx ::= \"(\" x \")\" | \"a\" \"b\"":                        4,
		"root ::= \"\" | \"a\"": 0,
	} {
		g, err := GBNF(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if m := g.NewMatcher(singles, nil); m.Least() != want {
			t.Errorf("%s: %v, want %d", text, m.Least(), want)
		}
	}
}

// syllables is a vocabulary of all texts of a few letters.
func syllables(letters string, length int) *Vocabulary {
	texts := []string{`"`}
	for begin := 0; length > 0; length-- {
		end := len(texts)
		for _, s := range append([]string{""}, texts[max(begin, 1):end]...) {
			for _, c := range letters {
				if begin == 0 || s != "" {
					texts = append(texts, s+string(c))
				}
			}
		}
		begin = end
	}
	return NewVocabulary(texts)
}

// The work for a token is bounded, whatever the form. Where the bound is not reached, all tokens are found, else some.
func TestWorkOfTokens(t *testing.T) {
	v := syllables("ab", 10)
	for pattern, want := range map[string]bool{
		"(?:a?){1000}": true, "[ab]{1,1000}": true, "(?:a|b)*a(?:a|b){30}": true, "(?:(?:a?){30}){30}b*": true,
		"(?:a|b)*a(?:a|b){999}": false,
	} {
		g, err := Schema(fmt.Appendf(nil, `{"type":"string","pattern":%q}`, pattern))
		if err != nil {
			t.Fatal(err)
		}
		m := g.NewMatcher(v, nil)
		length := 1
		if !want { // positions after each of the letters
			length = 900
		}
		begin, all := time.Now(), true
		if !m.Advance([]byte(`"` + strings.Repeat("aab", 300)[:length])) {
			t.Fatalf("%s: a text is not accepted", pattern)
		}
		for range 4 {
			n := 0
			all = m.Each(v, m.Least()-1, func(int) { n++ }) && all
			if n == 0 {
				all = m.Each(v, 1<<20, func(int) { n++ }) && all
			}
			if m.kept > 2*maxKept {
				t.Errorf("%s: %d positions are kept", pattern, m.kept)
			}
			if n == 0 || !m.Advance([]byte("a")) {
				t.Errorf("%s: %d tokens", pattern, n)
			}
		}
		if all != want {
			t.Errorf("%s: got %v, want %v", pattern, all, want)
		}
		if d := time.Since(begin); d > 60*time.Second {
			t.Errorf("%s: %v", pattern, d)
		}
		if testing.Verbose() {
			t.Logf("%s: %v, %v", pattern, time.Since(begin), all)
		}
	}
}

// Each of many values can be chosen.
func TestAlternatives(t *testing.T) {
	for schema, texts := range map[string][]string{
		`{"enum":[` + many(30_000, `"v%d"`) + `,"v","w"]}`:                   {`"v0"`, `"v"`, `"v29999"`, `"v17"`, `"w"`},
		`{"type":"object","properties":{` + many(3_000, `"p%d":true`) + `}}`: {`{}`, `{"p2999":1}`},
		`{"anyOf":[` + many(12_000, `{"const":"v%d"}`) + `]}`:                {`"v0"`, `"v11999"`},
	} {
		g, err := Schema([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range texts {
			if !matches(g, s) {
				t.Errorf("%.60s: %q is not accepted", schema, s)
			}
		}
		if matches(g, `"v30000"`) || matches(g, `{"p3000":1}`) {
			t.Errorf("%.60s: another value is accepted", schema)
		}
	}
}

// A token is excluded, not its text: another one can have the same.
func TestExcludedTokens(t *testing.T) {
	v := NewVocabulary([]string{"a", "b", "a", "ab"})
	g, err := Choice([]string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		excluded []int
		ends     bool
	}{{nil, true}, {[]int{0}, true}, {[]int{2}, true}, {[]int{0, 1, 3}, true}, {[]int{0, 2}, false}} {
		if m := g.NewMatcher(v, c.excluded); m.Ends() != c.ends {
			t.Errorf("without %d: ends %v", c.excluded, m.Ends())
		}
	}
}

// Texts of the same form, vocabulary and exclusions share the distances.
func TestSharedDistances(t *testing.T) {
	g, err := JSON()
	if err != nil {
		t.Fatal(err)
	}
	first := g.NewMatcher(singles, nil)
	again := g.NewMatcher(singles, nil)
	other := g.NewMatcher(singles, []int{'{'})
	same := g.NewMatcher(singles, []int{'{'})
	third := g.NewMatcher(singles, []int{'a', '{'})
	if &first.dist[0] != &again.dist[0] || &first.dist[0] == &other.dist[0] || &other.dist[0] != &same.dist[0] ||
		&third.dist[0] == &same.dist[0] || other.Least() < unreached {
		t.Errorf("least %d and %d", first.Least(), other.Least())
	}
}

// BenchmarkNewMatcher begins a text of a large schema: its distances are those of an earlier text with the same vocabulary and
// exclusions, or new ones.
func BenchmarkNewMatcher(b *testing.B) {
	g, err := Schema([]byte(`{"type":"array","items":{"enum":[` + many(10_000, `"value %d"`) + `]}}`))
	if err != nil {
		b.Fatal(err)
	}
	v := syllables("abcdefg", 5)
	for name, excluded := range map[string][][]int{"kept": {nil}, "excluded": {{'x'}}, "others each time": {{'x'}, {'y'}}} {
		b.Run(name, func(b *testing.B) {
			for _, list := range excluded {
				g.NewMatcher(v, list)
			}
			for i := 0; b.Loop(); i++ {
				g.NewMatcher(v, excluded[i%len(excluded)])
			}
		})
	}
}
