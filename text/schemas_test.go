package text

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/etrun-go/etrun/internal/grammar/grammartest"
)

// wordTokenizer has a token for each byte, and for other texts.
type wordTokenizer []string

func (w wordTokenizer) Encode(s string, _ bool) (ids []int, err error) {
	for i := range len(s) {
		ids = append(ids, int(s[i]))
	}
	return ids, nil
}

func (w wordTokenizer) Append(b []byte, id int) ([]byte, error) {
	if id < 0 || id >= len(w) {
		return b, fmt.Errorf("no token %d", id)
	}
	return append(b, w[id]...), nil
}

func (w wordTokenizer) Size() int               { return len(w) }
func (w wordTokenizer) ID(s string) (int, bool) { i := slices.Index(w, s); return i, i >= 0 }
func (w wordTokenizer) BOS() int                { return -1 }
func (w wordTokenizer) EOS() []int              { return []int{len(w) - 1} }

// randomWords returns a tokenizer of 512 tokens; the last one ends texts.
func randomWords(r *rand.Rand) (list wordTokenizer) {
	for b := range 256 {
		list = append(list, string([]byte{byte(b)}))
	}
	list = append(list, `": "`, `", "`, `},`, `{"`, "true", "false", "null", "\n  ", `"a`, `"}`, `]}`)
	const letters = `{}[]",:0123456789.-eabtrufalsn\ ü` + "\n"
	for len(list) < 511 {
		b := make([]byte, 2+r.IntN(4))
		for i := range b {
			b[i] = letters[r.IntN(len(letters))]
		}
		if s := string(b); !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return append(list, "")
}

// Each answer of a model with random weights is valid by its random schema, whatever the schema, the weights, the vocabulary, the
// number of tokens and the sampling. make check-schemas runs it with many schemas.
func TestRandomSchemas(t *testing.T) {
	n, r := grammartest.Count(60), rand.New(rand.NewPCG(3, 4))
	var s *Session
	done, answered := 0, 0
	for schema := range grammartest.Schemas(r, 3) {
		if done++; done > n {
			break
		}
		if done%20 == 1 {
			c := transformer{Layers: 1, Dim: 16, Heads: 2, Vocabulary: 512, Context: 300, Seed: uint64(done)}
			m, err := Load(t.Context(), c.program(t), randomWords(r))
			if err != nil {
				t.Fatal(err)
			}
			if s, err = m.NewSession(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		form, err := SchemaForm(schema)
		if err != nil {
			continue // a range without numbers, or a list of too few elements
		}
		if answered++; !answerOf(t, s, schema, form, r) {
			break
		}
	}
	if answered < n*8/10 {
		t.Errorf("%d of %d schemas have answers", answered, n)
	}
}

// answerOf checks an answer with as many tokens as the form needs, and one with more.
func answerOf(t *testing.T, s *Session, schema []byte, form *Form, r *rand.Rand) bool {
	t.Helper()
	check, err := grammartest.Validator(schema)
	if err != nil {
		t.Fatal(err)
	}
	least := form.grammar.NewMatcher(s.model.vocabulary(), nil).Least()
	for _, most := range []int{least, least + 1 + r.IntN(40)} {
		o := Options{MaxTokens: most, Form: form, Sampling: Sampling{Temperature: float64(r.IntN(3)), Seed: r.Uint64()}}
		text := ""
		for p, err := range s.GenerateTokens(context.Background(), []int{r.IntN(256)}, o) {
			if option, ok := errors.AsType[*OptionError](err); ok && option.Option == "max tokens" && least > 200 {
				return true // it does not fit into the context
			}
			if err != nil {
				t.Fatalf("%s, %d tokens: %v", schema, most, err)
			}
			text += p.Text
		}
		if err := check(strings.TrimPrefix(text, " ")); err != nil {
			t.Errorf("%s, %d tokens: %q: %v", schema, most, text, err)
			return false
		}
	}
	return true
}

// Forms whose texts can be read in very many ways are followed to an end, with work for each token that is bounded.
func TestManyReadings(t *testing.T) {
	words := wordTokenizer{"0", "1", "{", "}", `"`, ":", ",", "op", "l", "r", "+", "-", "*", "/", `{"l":`}
	for begin, end := 0, 0; len(words) < 360; begin = end {
		if end = len(words); begin == 0 {
			begin, end = end, end+3
			words = append(words, "a", "b", "c")
		}
		for _, s := range words[begin:end] {
			words = append(words, s+"a", s+"b", s+"c")
		}
	}
	words = append(words, "")
	c := transformer{Layers: 1, Dim: 16, Heads: 2, Vocabulary: len(words), Context: 300, Seed: 4}
	m, err := Load(t.Context(), c.program(t), words)
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.NewSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	operation := func(o string) string {
		return `{"type":"object","properties":{"l":{"$ref":"#/$defs/e"},"op":{"const":"` + o + `"},"r":{"$ref":"#/$defs/e"}},"required":["l","op","r"]}`
	}
	expression := []byte(`{"$defs":{"e":{"anyOf":[` + strings.Join([]string{operation("+"), operation("-"), operation("*"), operation("/")}, ",") +
		`,{"enum":[0,1]}]}},"$ref":"#/$defs/e"}`)
	deep, err := SchemaForm(expression)
	if err != nil {
		t.Fatal(err)
	}
	wide, err := SchemaForm([]byte(`{"type":"string","pattern":"^` + strings.Repeat("(?:a?b?c?){300}", 14) + `$"}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		form *Form
		most int
		bias map[int]float32
	}{{deep, 280, map[int]float32{14: 50}}, {wide, 3, nil}} {
		for temperature := range 2 {
			o := Options{MaxTokens: c.most, Form: c.form, Sampling: Sampling{Temperature: float64(temperature), Seed: 1, Bias: c.bias}}
			text := ""
			for p, err := range s.GenerateTokens(t.Context(), []int{1}, o) {
				if err != nil {
					t.Fatalf("after %q: %v", text, err)
				}
				text += p.Text
			}
			if c.form == wide {
				if len(text) < 2 || strings.Trim(text[1:len(text)-1], "abc") != "" || text[0] != '"' || text[len(text)-1] != '"' {
					t.Errorf("got %q, want letters", text)
				}
				continue
			}
			check, err := grammartest.Validator(expression)
			if err != nil {
				t.Fatal(err)
			}
			if err := check(text); err != nil || strings.Count(text, "{") < 10 {
				t.Errorf("got %q: %v", text, err)
			}
		}
	}
}
