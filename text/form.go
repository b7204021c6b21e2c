package text

import "github.com/etrun-go/etrun/internal/grammar"

// Form prescribes the form of a text: see Options.Form. It is immutable and safe for concurrent use.
type Form struct{ grammar *grammar.Grammar }

// FormLimit is called before a form needs more memory to be made, with the number of bytes. Its error ends that, and is wrapped in
// that of the function. All this memory but 100 bytes for each state is free when the form is made.
type FormLimit func(bytes int64) error

// stateBytes are those of a state of a form while it is made, at most.
const stateBytes = 600

// limitsOf returns the limits of states.
func limitsOf(list []FormLimit) (limits []grammar.Limit) {
	for _, limit := range list {
		limits = append(limits, func(states int) error { return limit(int64(states) * stateBytes) })
	}
	return limits
}

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
func JSONForm(limits ...FormLimit) (*Form, error) { return newForm(grammar.JSON(limitsOf(limits)...)) }

// NotEnforced returns pointers to the keywords of JSON schemas that texts of the form may not satisfy, such as "#/properties/a/not": a
// finished text has to be checked. docs/serve-reference.md lists them.
func (f *Form) NotEnforced() []string { return f.grammar.NotEnforced() }

// SchemaForm returns the form of JSON texts that a JSON schema accepts, but for the keywords of NotEnforced. docs/serve-reference.md lists what is
// written.
func SchemaForm(schema []byte, limits ...FormLimit) (*Form, error) {
	return newForm(grammar.Schema(schema, limitsOf(limits)...))
}

// PatternForm returns the form of texts that a regular expression matches from their beginning to their end. Look-around and
// word boundaries are an error.
func PatternForm(pattern string, limits ...FormLimit) (*Form, error) {
	return newForm(grammar.Pattern(pattern, limitsOf(limits)...))
}

// ChoiceForm returns the form of one of several texts.
func ChoiceForm(texts []string, limits ...FormLimit) (*Form, error) {
	return newForm(grammar.Choice(texts, limitsOf(limits)...))
}

// GrammarForm returns the form of the texts of a grammar in GBNF, the notation of llama.cpp, whose rule root is the text.
func GrammarForm(gbnf string, limits ...FormLimit) (*Form, error) {
	return newForm(grammar.GBNF(gbnf, limitsOf(limits)...))
}

// BuildForm returns the form of the texts of a part that build makes.
func BuildForm(build func(b *grammar.Builder) (grammar.Part, error), limits ...FormLimit) (*Form, error) {
	b := grammar.NewBuilder(limitsOf(limits)...)
	p, err := build(b)
	if err != nil {
		return nil, err
	}
	return newForm(b.Build(p))
}

// After returns the form of texts with any beginning, a mark that does not occur before, such as the end of a thought, and a text of
// this form.
func (f *Form) After(mark string, limits ...FormLimit) (*Form, error) {
	return newForm(grammar.After(mark, f.grammar, limitsOf(limits)...))
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

// constraint holds the position of a text in its form.
type constraint struct {
	*grammar.Matcher
	logits []float32 // of the tokens that the form allows
	bytes  []byte
}
