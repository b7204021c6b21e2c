package text

import "github.com/etrun-go/etrun/internal/grammar"

// Form prescribes the form of a text: see Options.Form. It is immutable and safe for concurrent use.
type Form struct{ grammar *grammar.Grammar }

// newForm returns the form of a grammar, nil with an error.
func newForm(g *grammar.Grammar, err error) (*Form, error) {
	if err != nil {
		return nil, err
	}
	return &Form{g}, nil
}

// Size returns the number of the form's states. A state takes about a hundred bytes.
func (f *Form) Size() int { return f.grammar.Size() }

// JSONForm returns the form of JSON objects.
func JSONForm() (*Form, error) { return newForm(grammar.JSON()) }

// SchemaForm returns the form of JSON texts that a JSON schema accepts. docs/serve.md lists the keywords; others are an error.
func SchemaForm(schema []byte) (*Form, error) { return newForm(grammar.Schema(schema)) }

// PatternForm returns the form of texts that a regular expression matches from their beginning to their end. Look-around and
// word boundaries are an error.
func PatternForm(pattern string) (*Form, error) { return newForm(grammar.Pattern(pattern)) }

// ChoiceForm returns the form of one of several texts.
func ChoiceForm(texts []string) (*Form, error) { return newForm(grammar.Choice(texts)) }

// GrammarForm returns the form of the texts of a grammar in GBNF, the notation of llama.cpp, whose rule root is the text. A rule that
// the grammar uses and does not define can be a JSON schema, by its name: it stands for the JSON texts that the schema accepts.
func GrammarForm(gbnf string, schemas map[string][]byte) (*Form, error) {
	return newForm(grammar.GBNF(gbnf, schemas))
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
