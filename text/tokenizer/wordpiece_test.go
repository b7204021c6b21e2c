package tokenizer

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// small is a vocabulary of WordPiece.
const small = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ncafe\n##s\ncaf\n##é\n中\n##文\n中文\nno\nNo\nun\n##aff\n##able\n"

// The options of tokenizer_config.json are those of BERT's tokenizer.
func TestVocabulary(t *testing.T) {
	lower := strings.ReplaceAll(small, "\nNo\n", "\nnot\n")
	for _, c := range []struct {
		name, vocabulary, config, text string
		want                           []int
	}{
		{"with an upper case token", small, "", "No Cafe café", []int{13, 1, 7, 8}},
		{"without", lower, "", "No Cafés", []int{12, 5, 6}},
		{"with \\r\\n", strings.ReplaceAll(lower, "\n", "\r\n"), "", "unaffable", []int{14, 15, 16}},
		{"lower case", small, `{"do_lower_case":true}`, "NO", []int{12}},
		{"no lower case", lower, `{"do_lower_case":false}`, "NO no", []int{1, 12}},
		{"accents", lower, `{"do_lower_case":true,"strip_accents":false}`, "Café", []int{7, 8}},
		{"ideographs", small, `{"tokenize_chinese_chars":true}`, "中文", []int{9, 1}},
		{"words of ideographs", small, `{"tokenize_chinese_chars":false}`, "中文", []int{11}},
		{"other names", small, `{"unk_token":{"content":"[PAD]"},"cls_token":"[MASK]"}`, "zz", []int{0}},
	} {
		var config []byte
		if c.config != "" {
			config = []byte(c.config)
		}
		tok, err := ParseVocabulary([]byte(c.vocabulary), config)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if ids, err := tok.Encode(c.text, false); err != nil || !slices.Equal(ids, c.want) {
			t.Errorf("%s: %q: got %v, %v, want %v", c.name, c.text, ids, err, c.want)
		}
	}
}

func TestRejectedVocabulary(t *testing.T) {
	for _, c := range []struct{ vocabulary, config, want string }{
		{small, `{`, "tokenizer_config.json"}, {small, `{"never_split":["a"]}`, "never_split"}, {small, `{"do_basic_tokenize":false}`, "do_basic"},
		{small, `{"sep_token":"none"}`, "none"}, {small + "no\n", "", "line 18"}, {small + "\xff\n", "", "UTF-8"}, {"", "", "[CLS]"},
		{small + strings.Repeat("a", maxPiece+1), "", "1025 bytes"},
	} {
		var config []byte
		if c.config != "" {
			config = []byte(c.config)
		}
		_, err := ParseVocabulary([]byte(c.vocabulary), config)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error with %q", err, c.want)
			continue
		}
		checkError(t, err)
	}
}

// Open finds the configuration beside a vocabulary, and checks all files before it reads them.
func TestOpenVocabulary(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"vocab.txt": small, "tokenizer_config.json": `{"do_lower_case":true}`} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var checked []string
	tok, err := OpenChecked(t.Context(), folder, func(path string, data []byte) error {
		checked = append(checked, filepath.Base(path))
		return nil
	})
	if err != nil || !slices.Equal(checked, []string{"vocab.txt", "tokenizer_config.json"}) {
		t.Fatalf("checked %q, %v", checked, err)
	}
	if ids, err := tok.Encode("NO", false); err != nil || !slices.Equal(ids, []int{12}) {
		t.Errorf("got %v, %v", ids, err)
	}
	for _, bad := range checked {
		refused := errors.New("refused")
		_, err := OpenChecked(t.Context(), folder, func(path string, _ []byte) error {
			if filepath.Base(path) == bad {
				return refused
			}
			return nil
		})
		if !errors.Is(err, refused) {
			t.Errorf("%s refused: got %v", bad, err)
		}
	}
}

// The frame is that of the post-processor.
func TestFrame(t *testing.T) {
	for name, want := range map[string][2][]int{
		"wordpiece.json": {{4}, {5}}, "cased/vocab.txt": {{4}, {5}}, "split.json": {{676}, {677}}, "unigram.json": {nil, nil},
	} {
		before, after := open(t, name).(Framed).Frame()
		if !slices.Equal(before, want[0]) || !slices.Equal(after, want[1]) {
			t.Errorf("%s: got %v, %v, want %v", name, before, after, want)
		}
	}
}

// Each word of WordPiece is unknown, or its pieces are the longest ones from left to right.
func FuzzWordPiece(f *testing.F) {
	for _, text := range readVectorsOf(f, "vectors_wordpiece.json").Texts {
		f.Add(small, text)
	}
	f.Fuzz(func(t *testing.T, vocabulary, text string) {
		tok, err := ParseVocabulary([]byte(vocabulary), nil)
		if err != nil {
			checkError(t, err)
			return
		}
		h := tok.(*hugging)
		ids, err := tok.Encode(text, false)
		if err != nil {
			if !errors.Is(err, ErrText) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		plain, err := h.normalize(text, maxText)
		if err != nil {
			t.Fatal(err)
		}
		words := []word{{plain, true}}
		for _, split := range h.splitters {
			if words, err = split(words); err != nil {
				t.Fatal(err)
			}
		}
		var want []int
		for _, w := range words {
			want = append(want, slowPieces(h, w.text)...)
		}
		if !slices.Equal(ids, want) {
			t.Errorf("%q: got %v, want %v", text, ids, want)
		}
	})
}

// slowPieces encodes a word as WordPiece is defined.
func slowPieces(h *hugging, word string) (ids []int) {
	unknown := []int{h.model.(*wordPiece).unknown}
	runes := []rune(word)
	if len(runes) > 100 {
		return unknown
	}
	for start := 0; start < len(runes); {
		end, prefix := len(runes), ""
		if start > 0 {
			prefix = "##"
		}
		for ; end > start; end-- {
			if id, ok := h.ids[prefix+string(runes[start:end])]; ok && (h.bytes[id] != "" || prefix+string(runes[start:end]) == "##") {
				ids = append(ids, int(id))
				break
			}
		}
		if end == start {
			return unknown
		}
		start = end
	}
	return ids
}
