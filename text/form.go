package text

import "github.com/etrun-go/etrun/internal/grammar"

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
	failed bool // the form has too many possibilities at once
}
