package tokenizer

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

// files are the tokenizers in testdata. Those that are lossless decode a text without the strings
// in changes to itself.
var files = []struct {
	name     string
	lossless bool
	changes  []string
	bos      int
	eos      []int
}{
	{"llama2.bin", true, nil, 1, []int{2, 1}},
	{"bpe.model", true, []string{meta}, 1, []int{2}},
	{"unigram.model", false, nil, 1, []int{2}},
	{"split.json", true, []string{"<tool>"}, 676, []int{677}}, // takes the spaces on its left
	{"bytelevel.json", false, nil, -1, nil},                   // NFC changes the text
	{"fallback.json", true, []string{meta, "\n\n\n"}, 1, nil}, // the text after an added token begins with a space
	{"metaspace.json", false, nil, -1, nil},
	{"unigram.json", false, nil, -1, nil},
	{"precompiled.json", false, nil, 1, []int{2}},
	{"wordpiece.json", false, nil, 4, []int{5}},
	{"cased/vocab.txt", false, nil, 4, []int{5}},
}

// lossless reports whether a file decodes a text to itself.
func lossless(file int, text string) bool {
	f := files[file]
	return f.lossless && (f.name == "llama2.bin" || utf8.ValidString(text)) &&
		!slices.ContainsFunc(f.changes, func(c string) bool { return strings.Contains(text, c) })
}

func open(t testing.TB, name string) Tokenizer {
	t.Helper()
	tok, err := Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// vectors are texts with the ids and the decoded texts of each file, as the reference libraries give them.
type vectors struct {
	Texts []string
	Files map[string][]struct {
		IDs  []int
		Text string
	}
}

func readVectors(t testing.TB) *vectors { return readVectorsOf(t, "vectors.json") }

func readVectorsOf(t testing.TB, name string) *vectors {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	v := new(vectors)
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
	return v
}

// vectorsOf returns the vectors of a file.
func vectorsOf(t testing.TB, file string) *vectors {
	switch file {
	case "wordpiece.json", "cased/vocab.txt":
		return readVectorsOf(t, "vectors_wordpiece.json")
	case "precompiled.json":
		return readVectorsOf(t, "vectors_precompiled.json")
	}
	return readVectors(t)
}

// isHugging reports whether the vectors of a file are those of the library of Hugging Face.
func isHugging(file string) bool {
	return strings.HasSuffix(file, ".json") || strings.HasSuffix(file, ".txt")
}

func TestVectors(t *testing.T) {
	for _, f := range files {
		v := vectorsOf(t, f.name)
		tok := open(t, f.name)
		want := v.Files[f.name]
		if len(want) != len(v.Texts) || len(want) < 40 {
			t.Fatalf("%s: %d vectors for %d texts", f.name, len(want), len(v.Texts))
		}
		special := isHugging(f.name) // the other libraries have no such option
		for i, text := range v.Texts {
			got, err := tok.Encode(text, special)
			if err != nil {
				t.Errorf("%s: %q: %v", f.name, text, err)
			}
			if !slices.Equal(got, want[i].IDs) {
				t.Errorf("%s: %q: got %v, want %v", f.name, text, got, want[i].IDs)
			}
			if back, err := Decode(tok, got); err != nil || back != want[i].Text {
				t.Errorf("%s: %v: got %q, want %q, %v", f.name, got, back, want[i].Text, err)
			}
		}
		if tok.BOS() != f.bos || !slices.Equal(tok.EOS(), f.eos) {
			t.Errorf("%s: BOS %d, EOS %v, want %d, %v", f.name, tok.BOS(), tok.EOS(), f.bos, f.eos)
		}
	}
}

// Without special, the names of control tokens are text; with it, they are one token that has no text.
func TestSpecial(t *testing.T) {
	for _, c := range []struct{ file, name string }{
		{"llama2.bin", "<s>"}, {"bpe.model", "</s>"}, {"unigram.model", "<s>"}, {"split.json", "<|end|>"},
		{"bytelevel.json", "<|endoftext|>"}, {"fallback.json", "<|user|>"}, {"metaspace.json", "<s>"}, {"unigram.json", "</s>"},
		{"precompiled.json", "<s>"},
		{"wordpiece.json", "[MASK]"}, {"cased/vocab.txt", "[SEP]"},
	} {
		tok := open(t, c.file)
		id, ok := tok.ID(c.name)
		if !ok || id >= tok.Size() {
			t.Fatalf("%s: %q has the id %d, %v", c.file, c.name, id, ok)
		}
		text := "the " + c.name + " model"
		plain, err := tok.Encode(text, false)
		if err != nil || slices.Contains(plain, id) {
			t.Errorf("%s: %q is %v without special, %v", c.file, text, plain, err)
		}
		ids, err := tok.Encode(text, true)
		if err != nil || !slices.Contains(ids, id) {
			t.Errorf("%s: %q is %v with special, want %d among them, %v", c.file, text, ids, id, err)
		}
		if b, err := tok.Append([]byte("x"), id); err != nil || string(b) != "x" {
			t.Errorf("%s: token %d is %q, %v", c.file, id, b, err)
		}
	}
}

func TestLossless(t *testing.T) {
	texts := append(readVectors(t).Texts, "\x00\x01\x7f", strings.Repeat("é ", 500), "a\u0300\u0301", "\U0010FFFF")
	for i, f := range files {
		tok := open(t, f.name)
		for _, text := range texts {
			if lossless(i, text) {
				checkRoundTrip(t, tok, text)
			}
		}
	}
}

// checkRoundTrip checks that a text decodes to itself, and that all ids are in range.
func checkRoundTrip(t testing.TB, tok Tokenizer, text string) {
	t.Helper()
	ids, err := tok.Encode(text, false)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	back, err := Decode(tok, ids)
	if err != nil || back != text {
		t.Errorf("%q: decodes to %q, %v (ids %v)", text, back, err, ids)
	}
}

func TestTokenErrors(t *testing.T) {
	for _, f := range files {
		tok := open(t, f.name)
		for _, id := range []int{-1, tok.Size(), math.MaxInt} {
			if b, err := tok.Append([]byte("x"), id); !errors.Is(err, ErrToken) || string(b) != "x" {
				t.Errorf("%s: id %d: %q, %v", f.name, id, b, err)
			}
		}
		if id, ok := tok.ID("no such token"); ok {
			t.Errorf("%s: token %d", f.name, id)
		}
	}
}

func TestTextErrors(t *testing.T) {
	for _, f := range files {
		tok := open(t, f.name)
		if _, err := tok.Encode(strings.Repeat("a", maxText+1), false); !errors.Is(err, ErrText) {
			t.Errorf("%s: long text: %v", f.name, err)
		}
		ids, err := tok.Encode("ab\xff\xc3", false)
		if isHugging(f.name) {
			if !errors.Is(err, ErrText) || !strings.Contains(err.Error(), "byte 2") {
				t.Errorf("%s: invalid UTF-8: %v, %v", f.name, ids, err)
			}
			continue
		}
		if err != nil || len(ids) == 0 {
			t.Errorf("%s: invalid UTF-8: %v, %v", f.name, ids, err)
		}
	}
}

// A tokenizer is used by many goroutines.
func TestConcurrent(t *testing.T) {
	for _, f := range files {
		tok := open(t, f.name)
		v, special := vectorsOf(t, f.name), isHugging(f.name)
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for i, text := range v.Texts {
					if got, err := tok.Encode(text, special); err != nil || !slices.Equal(got, v.Files[f.name][i].IDs) {
						t.Errorf("%s: %q: got %v, %v", f.name, text, got, err)
					}
				}
			})
		}
		group.Wait()
	}
}

// The time for a text is nearly proportional to its length, also for texts without words.
// Quadratic time would be minutes.
func TestLongTexts(t *testing.T) {
	size := 1 << 18
	if testing.Short() {
		size >>= 3
	}
	for i, f := range files {
		tok := open(t, f.name)
		for _, part := range []string{"a", " ", "\n", "'", "7", "ab ", "日本語"} {
			text := strings.Repeat(part, size/len(part))
			begin := time.Now()
			ids, err := tok.Encode(text, false)
			if d := time.Since(begin); err != nil || d > 20*time.Second {
				t.Fatalf("%s: %q: %v, %v", f.name, part, d, err)
			}
			if back, err := Decode(tok, ids); err != nil || lossless(i, text) && back != text {
				t.Errorf("%s: %q times %d does not decode to itself, %v", f.name, part, len(text)/len(part), err)
			}
		}
	}
}

func TestOpen(t *testing.T) {
	if _, err := Open("testdata/none"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, err := Open("testdata"); err == nil {
		t.Error("a folder was opened")
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("no tokenizer"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path)
	if e, ok := errors.AsType[*Error](err); !ok || e.File != path || !errors.Is(err, ErrUnsupported) {
		t.Error(err)
	}
}

// Streaming: the bytes of all tokens together are the text, though one of them may end inside a character.
func TestAppendSplitsCharacters(t *testing.T) {
	tok := open(t, "llama2.bin")
	ids, err := tok.Encode("🐉", false)
	if err != nil || len(ids) < 4 {
		t.Fatal(ids, err)
	}
	b, _ := tok.Append(nil, ids[len(ids)-2])
	if utf8.Valid(b) {
		t.Errorf("%q", b)
	}
}

// TestOtherFiles gives files of a model's folder in the place of a tokenizer.
func TestOtherFiles(t *testing.T) {
	for data, want := range map[string]string{
		`{"chat_template":"{% if x %}{% endif %}","eos_token":"</s>"}`: "a tokenizer_config.json: want the tokenizer.json",
		`{"a":0,"b":1}`: "a vocab.json or added_tokens.json: want the tokenizer.json",
		"{% for m in messages %}{{ m.role }}{% endfor %}": "a Jinja template",
		"\x1c\x00\x00\x00ET12":                            "an ExecuTorch program",
		"PK\x03\x04":                                      "a zip archive",
		`{"message":"{text}"}`:                            "a chat template",
	} {
		_, err := Parse([]byte(data))
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", data, err, want)
		}
	}
}

// Vocabularies have tokens of thousands of spaces.
func TestLongToken(t *testing.T) {
	vocabulary, merges := make(map[string]int), [][2]string{}
	for _, s := range []string{"a", "Ġ"} {
		vocabulary[s] = len(vocabulary)
	}
	for s := "Ġ"; len(s) < maxName; s += s {
		merges = append(merges, [2]string{s, s})
		vocabulary[s+s] = len(vocabulary)
	}
	file, err := json.Marshal(map[string]any{"version": "1.0", "pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
		"decoder": map[string]any{"type": "ByteLevel"}, "model": map[string]any{"type": "BPE", "vocab": vocabulary, "merges": merges}})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat(" ", maxName/2)
	if got, err := tok.Encode("a"+long+"a", false); err != nil || len(got) != 3 {
		t.Errorf("got %d tokens, %v, want 3", len(got), err)
	}
	checkRoundTrip(t, tok, "a"+long+"a ")
}
