package text

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/pte"
	"github.com/etrun-go/etrun/runtime/pte/ptetest"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// sized is a tokenizer of a number of tokens, with a BOS and EOS.
type sized struct {
	tokenizer.Tokenizer
	size, bos int
	eos       []int
}

func (s sized) Size() int  { return s.size }
func (s sized) BOS() int   { return s.bos }
func (s sized) EOS() []int { return s.eos }
func (s sized) Append(b []byte, id int) ([]byte, error) {
	if id < 3 {
		return b, nil
	}
	return append(b, 'a'+byte(id%26)), nil
}

func (s sized) Encode(text string, _ bool) (ids []int, err error) {
	for range text {
		ids = append(ids, 7)
	}
	return ids, nil
}

// TestLoadErrors checks programs, metadata, tokenizers and options that Load rejects.
func TestLoadErrors(t *testing.T) {
	set := func(name string, value any) func(*fake) {
		return func(f *fake) { f.meta = maps.Clone(f.meta); f.meta[name] = value }
	}
	convention, metadata, vocabulary, option := is[*ConventionError], is[*MetadataError], is[*VocabularyError], is[*OptionError]
	for _, c := range []struct {
		name    string
		change  func(*fake)
		tok     tokenizer.Tokenizer
		options []Option
		is      func(error) bool
		class   error
	}{
		{"float tokens", func(f *fake) { f.tokens = tensor.Float32 }, nil, nil, convention, etrun.ErrUnsupported},
		{"integer logits", func(f *fake) { f.logits = tensor.Int64 }, nil, nil, convention, etrun.ErrUnsupported},
		{"two positions for seven tokens", func(f *fake) { f.positions = 2 }, nil, nil, convention, etrun.ErrUnsupported},
		{"chunks of a fixed length, last logits", func(f *fake) { f.dynamic = false }, nil, nil, convention, etrun.ErrUnsupported},
		{"chunks of a fixed length, state", func(f *fake) { f.dynamic, f.all, f.cache = false, true, "count" }, nil, nil,
			convention, etrun.ErrUnsupported},
		{"another method", nil, nil, []Option{WithMethod("prefill")}, convention, etrun.ErrUnsupported},
		{"negative length", set("get_max_seq_len", -1), nil, nil, metadata, etrun.ErrFormat},
		{"huge length", set("get_max_context_len", 1<<30), nil, nil, metadata, etrun.ErrFormat},
		{"two lengths", set("get_max_seq_len", []int{1, 2}), nil, nil, metadata, etrun.ErrFormat},
		{"a length that is a string", set("get_max_seq_len", "24"), nil, nil, metadata, etrun.ErrFormat},
		{"more tokens than logits", set("get_vocab_size", 65), nil, nil, metadata, etrun.ErrFormat},
		{"BOS beyond the tokens", set("get_bos_id", 64), nil, nil, option, etrun.ErrInput},
		{"EOS beyond the tokens", set("get_eos_ids", []int{1, 64}), nil, nil, option, etrun.ErrInput},
		{"no cache with a cache", set("use_kv_cache", false), nil, nil, metadata, etrun.ErrFormat},
		{"smaller tokenizer", nil, sized{size: 55}, nil, vocabulary, etrun.ErrInput},
		{"larger tokenizer", nil, sized{size: 66}, nil, vocabulary, etrun.ErrInput},
		{"longer context", nil, nil, []Option{WithContext(25)}, option, etrun.ErrInput},
		{"negative context", nil, nil, []Option{WithContext(-1)}, option, etrun.ErrInput},
		{"negative chunk", nil, nil, []Option{WithChunk(-1)}, option, etrun.ErrInput},
		{"BOS option", nil, nil, []Option{WithBOS(64)}, option, etrun.ErrInput},
		{"EOS option", nil, nil, []Option{WithEOS(-5)}, option, etrun.ErrInput},
	} {
		f := fakeDefault()
		if c.change != nil {
			c.change(&f)
		}
		_, err := Load(context.Background(), f.program(t), c.tok, c.options...)
		if !c.is(err) || !errors.Is(err, c.class) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
}

// is reports whether an error has a type.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// TestOtherMethods checks the error for programs of another kind.
func TestOtherMethods(t *testing.T) {
	for _, names := range [][]string{{"encode"}, {"prefill_forward", "kv_forward"}, {"text_decoder"}, {"text_decoder", "token_embedding"},
		{"text_decoder", "token_embedding", "has_ple"}} {
		var methods []pte.Method
		for _, name := range names {
			methods = append(methods, constantMethod(name, 1))
		}
		p, err := etrun.Parse(ptetest.Write(&pte.Program{Methods: methods}, ptetest.Layout{}))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Load(context.Background(), p, nil)
		want := "forward"
		if len(names) > 1 && names[1] == "token_embedding" {
			want = "text_decoder"
		}
		if e, ok := errors.AsType[*ConventionError](err); !ok || e.Method != want {
			t.Errorf("%q: got %v", names, err)
		}
		p.Close()
	}
}

// TestEnds checks the tokens that begin and end texts.
func TestEnds(t *testing.T) {
	for _, c := range []struct {
		name    string
		meta    map[string]any
		tok     tokenizer.Tokenizer
		options []Option
		bos     int
		eos     []int
		ends    []int
		prompt  []int // of the text "aa"
	}{
		{"nothing", nil, nil, nil, -1, nil, nil, nil},
		{"program", map[string]any{"get_bos_id": 1, "get_eos_ids": []int{9, 2}}, nil, nil, 1, []int{2, 9}, []int{2, 9}, nil},
		{"tensor", map[string]any{"get_eos_ids": []int64{4, 3, 4}}, nil, nil, -1, []int{3, 4}, []int{3, 4}, nil},
		{"old name", map[string]any{"get_eos_id": 5}, nil, nil, -1, []int{5}, []int{5}, nil},
		{"tokenizer", nil, sized{size: 64, bos: 1, eos: []int{2}}, nil, 1, []int{2}, []int{2, 1}, []int{1, 7, 7}},
		{"both", map[string]any{"get_bos_id": 5, "get_eos_ids": 6}, sized{size: 64, bos: 1, eos: []int{2}}, nil,
			5, []int{2, 6}, []int{2, 6}, []int{5, 7, 7}},
		{"no BOS in the tokenizer", map[string]any{"get_bos_id": 5}, sized{size: 64, bos: -1}, nil, -1, nil, nil, []int{7, 7}},
		{"options", map[string]any{"get_bos_id": 5}, sized{size: 64, bos: 1, eos: []int{2}}, []Option{WithBOS(-1), WithEOS()},
			-1, nil, nil, []int{7, 7}},
	} {
		f := fakeDefault()
		f.meta = c.meta
		m := f.load(t, c.tok, c.options...)
		if info := m.Info(); info.BOS != c.bos || !slices.Equal(info.EOS, c.eos) || !slices.Equal(m.ends, c.ends) {
			t.Errorf("%s: got %+v, ends %d", c.name, info, m.ends)
		}
		prompt, err := m.Encode("aa")
		if !slices.Equal(prompt, c.prompt) || (err != nil) != (c.tok == nil) {
			t.Errorf("%s: got the prompt %d, %v, want %d", c.name, prompt, err, c.prompt)
		}
	}
}

// TestContextOption uses fewer positions than the program has.
func TestContextOption(t *testing.T) {
	for _, c := range conventions {
		f := conventionOf(c.name)
		s := sessionOf(t, f.load(t, nil, WithContext(10)))
		got, _, last, err := collect(s.GenerateTokens(context.Background(), []int{3, 4}, Options{}))
		if want := fakeGreedy([]int{3, 4}, 64, 9); !slices.Equal(got, want) || last.Finish != FinishContext || err != nil {
			t.Errorf("%s: got %d, %q, %v, want %d", c.name, got, last.Finish, err, want)
		}
	}
}
