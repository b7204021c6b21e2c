package grammar

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkMask finds the tokens that can follow at each token of a text: with a matcher of its own, as for one text, and again with the
// same states.
func BenchmarkMask(b *testing.B) {
	for name, schema := range map[string]string{
		"any": `{}`,
		"object": `{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0,"maximum":150},
			"tags":{"type":"array","items":{"enum":["red","green","blue"]}}},"required":["name","age","tags"]}`,
		"tree":    operations("+"),
		"lengths": `{"type":"array","items":{"type":"string","minLength":2,"maxLength":200},"maxItems":50}`,
		"pattern": `{"type":"string","pattern":"^(ab|cd|[a-f]{2,5}x)*$"}`,
	} {
		g, err := Schema([]byte(schema))
		if err != nil {
			b.Fatal(err)
		}
		v, texts := words(rand.New(rand.NewPCG(5, 6)))
		b.Run(name+"/first", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				mask(b, g, v, texts, nil)
			}
		})
		b.Run(name+"/again", func(b *testing.B) {
			m := g.NewMatcher(v, nil)
			b.ReportAllocs()
			for b.Loop() {
				mask(b, g, v, texts, m)
			}
		})
	}
}

// mask follows a random text of 40 tokens.
func mask(b *testing.B, g *Grammar, v *Vocabulary, texts []string, m *Matcher) {
	if m == nil {
		m = g.NewMatcher(v, nil)
	}
	first, r := m.now, rand.New(rand.NewPCG(7, 8))
	ids := make([]int, 0, len(texts))
	for range 40 {
		ids = ids[:0]
		if !m.Each(v, 1<<20, func(id int) { ids = append(ids, id) }) {
			b.Fatal("too many")
		}
		if len(ids) == 0 {
			m.now = first
			continue
		}
		m.Advance([]byte(texts[ids[r.IntN(len(ids))]]))
	}
	m.now = first
}
