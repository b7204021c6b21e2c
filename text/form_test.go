package text

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"runtime"
	"testing"
	"unicode/utf8"

	"github.com/etrun-go/etrun/internal/await"
)

// forms are schemas with the least number of tokens for a text.
var forms = []struct {
	schema string
	least  int
}{
	{`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string","maxLength":3}},"required":["a"]}`, 7},
	{`{"type":"array","items":{"enum":["x","yy",1,null]},"minItems":2}`, 5},
	{`{"anyOf":[{"type":"number","minimum":-1,"maximum":12},{"type":"boolean"}]}`, 1},
	{`{"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{"next":{"$ref":"#/$defs/tree"}},"additionalProperties":false}}}`, 2},
	{`true`, 1},
}

// A text with a form has it with each number of tokens from the least one on, whatever the model's logits and the seed.
func TestForms(t *testing.T) {
	f := fakeDefault()
	f.vocabulary, f.meta["get_vocab_size"] = firstByte+256, firstByte+256
	m := f.load(t, &byteTokenizer{})
	s, err := m.NewSession(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, c := range forms {
		form, err := SchemaForm([]byte(c.schema))
		if err != nil {
			t.Fatalf("%s: %v", c.schema, err)
		}
		for most := c.least; most < c.least+9; most++ {
			for seed := range uint64(3) {
				o := Options{MaxTokens: most, Form: form, Sampling: Sampling{Temperature: float64(seed), Seed: seed}}
				text := ""
				for p, err := range s.GenerateTokens(context.Background(), []int{firstByte + 'a'}, o) {
					if err != nil {
						t.Fatalf("%s, %d tokens: %v", c.schema, most, err)
					}
					text += p.Text
				}
				if s.gen.Matcher != nil {
					t.Fatal("an idle session keeps the positions of its form")
				}
				if !json.Valid([]byte(text)) || !utf8.ValidString(text) {
					t.Errorf("%s, %d tokens, seed %d: %q", c.schema, most, seed, text)
				}
			}
		}
		for _, err := range s.GenerateTokens(context.Background(), []int{firstByte}, Options{MaxTokens: c.least - 1, Form: form}) {
			var option *OptionError
			if c.least > 1 && !errors.As(err, &option) {
				t.Errorf("%s, %d tokens: got %v, want an error", c.schema, c.least-1, err)
			}
		}
	}
}

// A form that cannot be kept is refused.
func TestFormErrors(t *testing.T) {
	form, err := JSONForm()
	if err != nil {
		t.Fatal(err)
	}
	f := fakeDefault()
	f.vocabulary, f.meta["get_vocab_size"] = firstByte+256, firstByte+256
	for name, c := range map[string]struct {
		m *Model
		o Options
	}{
		"no tokenizer": {f.load(t, nil), Options{Form: form}},
		"stop":         {f.load(t, &byteTokenizer{}), Options{Form: form, Stop: []string{"x"}}},
		"one token":    {f.load(t, &byteTokenizer{}), Options{Form: form, MaxTokens: 1}},
	} {
		s, err := c.m.NewSession(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range s.GenerateTokens(context.Background(), []int{firstByte}, c.o) {
			var option *OptionError
			if !errors.As(err, &option) {
				t.Errorf("%s: got %v, want an *OptionError", name, err)
			}
		}
		s.Close()
	}
}

// A text with a form has it also without some tokens; if it cannot, the call is refused before its first token.
func TestFormsWithoutTokens(t *testing.T) {
	form, err := SchemaForm([]byte(`{"type":"array","items":{"enum":["x",true]},"minItems":1,"maxItems":2}`))
	if err != nil {
		t.Fatal(err)
	}
	f := fakeDefault()
	f.vocabulary, f.meta["get_vocab_size"] = firstByte+256, firstByte+256
	m := f.load(t, &byteTokenizer{})
	without := func(texts string) map[int]float32 {
		bias := make(map[int]float32)
		for _, b := range []byte(texts) {
			bias[firstByte+int(b)] = float32(math.Inf(-1))
		}
		return bias
	}
	for name, c := range map[string]struct {
		o    Options
		ends bool
	}{
		"one of two":             {Options{Sampling: Sampling{Bias: without("x")}}, true},
		"the other":              {Options{Sampling: Sampling{Bias: without("t ")}}, true},
		"an optional part":       {Options{Sampling: Sampling{Bias: without(",")}}, true},
		"both":                   {Options{Sampling: Sampling{Bias: without("xt")}}, false},
		"a necessary part":       {Options{Sampling: Sampling{Bias: without("]")}}, false},
		"an end":                 {Options{Ends: []int{firstByte + 'x'}}, true},
		"a necessary end":        {Options{Ends: []int{firstByte + ']'}}, false},
		"an end and a bias":      {Options{Ends: []int{firstByte + 'x'}, Sampling: Sampling{Bias: without("t")}}, false},
		"a bias that is no mask": {Options{Sampling: Sampling{Bias: map[int]float32{firstByte + ']': -99}}}, true},
	} {
		for seed := range uint64(20) {
			o := c.o
			o.Form, o.MaxTokens, o.Temperature, o.Seed = form, 14, 2, seed
			s := sessionOf(t, m)
			text, err := "", error(nil)
			for p, e := range s.GenerateTokens(context.Background(), []int{firstByte + 'a'}, o) {
				text, err = text+p.Text, e
			}
			var option *OptionError
			if c.ends && (err != nil || !json.Valid([]byte(text))) || !c.ends && (!errors.As(err, &option) || option.Option != "form" || text != "") {
				t.Errorf("%s, seed %d: %q, %v", name, seed, text, err)
			}
		}
	}
}

// A form that is kept does not keep the vocabulary of a model that is not used any more.
func TestFormsOfClosedModels(t *testing.T) {
	form, err := JSONForm()
	if err != nil {
		t.Fatal(err)
	}
	freed := make(chan struct{})
	func() {
		f := fakeDefault()
		f.vocabulary, f.meta["get_vocab_size"] = firstByte+256, firstByte+256
		m := f.load(t, &byteTokenizer{})
		v := m.vocabulary()
		runtime.AddCleanup(v, func(c chan struct{}) { close(c) }, freed)
		form.grammar.NewMatcher(v, nil)
		form.grammar.NewMatcher(v, []int{firstByte + 'x'})
	}()
	await.True(t, "the vocabulary is freed", func() bool {
		runtime.GC()
		select {
		case <-freed:
			return true
		default:
			return false
		}
	})
	runtime.KeepAlive(form)
}
