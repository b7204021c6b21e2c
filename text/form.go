package text

import (
	"math"
	"slices"
	"sync"

	"github.com/etrun-go/etrun/internal/grammar"
)

// Form prescribes the form of a text: see Options.Form. It is immutable and safe for concurrent use.
type Form struct{ grammar *grammar.Grammar }

// NewForm returns a form of a grammar, for packages of this module.
func NewForm(g *grammar.Grammar) *Form { return &Form{g} }

// JSONForm returns the form of JSON objects.
func JSONForm() (*Form, error) {
	g, err := grammar.JSON()
	return &Form{g}, err
}

// SchemaForm returns the form of JSON texts that a JSON schema accepts. docs/serve.md lists the keywords; others are an error.
func SchemaForm(schema []byte) (*Form, error) {
	g, err := grammar.Schema(schema)
	return &Form{g}, err
}

// vocabulary is the text of a model's tokens. It is made when a form is first used.
type vocabulary struct {
	once sync.Once
	*grammar.Vocabulary
}

// vocabulary returns the text of the tokens that can be chosen.
func (m *Model) vocabulary() *grammar.Vocabulary {
	m.words.once.Do(func() {
		texts := make([]string, m.choices)
		var b []byte
		for id := range texts {
			b, _ = m.tok.Append(b[:0], id) // unknown tokens have no text
			texts[id] = string(b)
		}
		m.words.Vocabulary = grammar.NewVocabulary(texts)
	})
	return m.words.Vocabulary
}

// former holds the position of a text in its form.
type former struct {
	*grammar.Matcher
	logits []float32 // of the tokens that the form allows
	bytes  []byte
}

// startForm prepares a call with a form, which must have an end within the tokens that can be generated.
func (g *generation) startForm(prompt int) error {
	g.former.Matcher = nil
	if g.o.Form == nil {
		return nil
	}
	if g.model.tok == nil {
		return &OptionError{Option: "form", Got: "a form", Want: "none without a tokenizer"}
	}
	if len(g.o.Stop) > 0 {
		return &OptionError{Option: "stop", Got: "strings", Want: "none together with a form: the text would end within it"}
	}
	v, excluded := g.model.vocabulary(), make(map[string]bool)
	for id, b := range g.o.Bias {
		if math.IsInf(float64(b), -1) {
			excluded[string(g.tokenText(id))] = true
		}
	}
	g.former.Matcher = g.o.Form.grammar.NewMatcher(func(s string) bool { return v.Has(s) && !excluded[s] })
	if n := g.remaining(prompt); g.Least() > n {
		want := "a number of tokens with which the form has an end"
		if least := g.Least(); least < 1<<20 {
			want = decimal(least) + " or more: the shortest text of the form needs as many"
		}
		return &OptionError{Option: "max tokens", Got: n, Want: want}
	}
	return nil
}

// remaining returns the number of tokens that can be generated.
func (g *generation) remaining(prompt int) int {
	n := g.model.info.Context - prompt + 1
	if g.o.MaxTokens > 0 {
		n = min(n, g.o.MaxTokens)
	}
	return n - g.stats.Generated
}

// endsText reports whether a token ends the text.
func (g *generation) endsText(id int) bool {
	return !g.o.IgnoreEOS && slices.Contains(g.model.ends, id) || slices.Contains(g.o.Ends, id)
}

// tokenText returns the bytes of a token.
func (g *generation) tokenText(id int) []byte {
	if name, ok := g.o.Shown[id]; ok {
		return append(g.former.bytes[:0], name...)
	}
	g.former.bytes, _ = g.model.tok.Append(g.former.bytes[:0], id)
	return g.former.bytes
}

// formed returns the chosen token if the form allows it, or else one of those that it allows.
func (g *generation) formed(id int, logits []float32) (int, bool) {
	left := g.remaining(g.sampler.prompt) - 1
	if g.endsText(id) {
		if g.Accepts() {
			return id, true
		}
	} else if s := g.tokenText(id); len(s) > 0 && g.Allows(s, left) {
		return id, true
	}
	f := &g.former
	f.logits = slices.Grow(f.logits[:0], len(logits))[:len(logits)]
	for i := range f.logits {
		f.logits[i] = float32(math.Inf(-1))
	}
	g.Each(g.model.vocabulary(), left, func(id int) {
		if !g.endsText(id) {
			f.logits[id] = logits[id]
		}
	})
	if g.Accepts() {
		for _, id := range slices.Concat(g.model.ends, g.o.Ends) {
			if id < len(logits) && g.endsText(id) {
				f.logits[id] = logits[id]
			}
		}
	}
	return g.sampler.choose(f.logits, g.text())
}
