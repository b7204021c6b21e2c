package grammar

import (
	"math/rand/v2"
	"testing"

	"github.com/etrun-go/etrun/internal/cases"
	"github.com/etrun-go/etrun/internal/grammar/grammartest"
)

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
	m := g.NewMatcher(v, nil)
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

// Each text of the grammar of a schema is valid. make check-schemas runs it with many schemas.
func TestRandomSchemas(t *testing.T) {
	n := grammartest.Count(150)
	r := rand.New(rand.NewPCG(1, 2))
	v, texts := words(r)
	done, compiled := 0, 0
	for text := range grammartest.Schemas(r, 3) {
		if done++; done > n {
			break
		}
		g, err := Schema(text)
		if err != nil {
			continue // a range without numbers, or a list of too few elements
		}
		compiled++
		check := validator(t, text)
		for range 3 {
			got := walk(t, g, v, texts, r, 1+r.IntN(60))
			if err := check(got); err != nil {
				t.Fatalf("schema %d %s:\n%q: %v", done, text, got, err)
			}
		}
	}
	if compiled < n*8/10 {
		t.Errorf("%d of %d schemas have a grammar", compiled, n)
	}
}

// Each text of the grammar of a schema all of whose keywords are enforced is valid, also if they are beside each other.
func TestMixedSchemas(t *testing.T) {
	n := grammartest.Count(cases.Of(100, 300))
	r := rand.New(rand.NewPCG(3, 4))
	v, texts := words(r)
	done, enforced := 0, 0
	for text := range grammartest.Mixed(r, 2) {
		if done++; done > n {
			break
		}
		g, err := Schema(text)
		if err != nil {
			continue // no value satisfies all of it
		}
		check := func(string) error { return nil }
		if g.NotEnforced() == nil {
			enforced++
			check = validator(t, text)
		}
		for range 3 {
			got := walk(t, g, v, texts, r, 1+r.IntN(60))
			if err := check(got); err != nil {
				t.Fatalf("schema %d %s:\n%q: %v", done, text, got, err)
			}
		}
	}
	if enforced < n*5/10 {
		t.Errorf("%d of %d schemas are enforced", enforced, n)
	}
}

// validator returns the check of a text by another implementation.
func validator(t *testing.T, schema []byte) func(text string) error {
	t.Helper()
	check, err := grammartest.Validator(schema)
	if err != nil {
		t.Fatal(err)
	}
	return check
}
