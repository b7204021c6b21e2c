package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etrun-go/etrun/internal/cases"
)

func content(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// checkError checks that an error of Parse has a class.
func checkError(t testing.TB, err error) {
	t.Helper()
	if _, ok := errors.AsType[*Error](err); !ok || !errors.Is(err, ErrFormat) && !errors.Is(err, ErrUnsupported) {
		t.Errorf("an error without a class: %v", err)
	}
}

func TestTruncated(t *testing.T) {
	for _, f := range files {
		data := content(t, f.name)
		for n := 0; n < len(data); n += 1 + len(data)/300 {
			tok, err := Parse(data[:n])
			if err != nil {
				checkError(t, err)
				continue
			}
			use(t, tok)
		}
	}
}

// use encodes and decodes; all ids are in range.
func use(t testing.TB, tok Tokenizer) {
	t.Helper()
	for _, text := range []string{"", " the model's\n\n<s>12 é", "日本\x00"} {
		ids, err := tok.Encode(text, true)
		if err != nil {
			if !errors.Is(err, ErrText) {
				t.Errorf("%q: %v", text, err)
			}
			continue
		}
		if _, err := Decode(tok, ids); err != nil {
			t.Errorf("%q: ids %v of %d: %v", text, ids, tok.Size(), err)
		}
	}
}

func TestMutated(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, f := range files {
		data := content(t, f.name)
		accepted := 0
		n := cases.Of(150, 400)
		for range n {
			mutant := bytes.Clone(data)
			for range 1 + random.IntN(2) {
				at := random.IntN(len(mutant))
				if mutant[at] = byte(random.Uint32()); data[0] == '{' {
					mutant[at] = byte(' ' + random.IntN(95))
				}
			}
			tok, err := Parse(mutant)
			if err != nil {
				checkError(t, err)
				continue
			}
			accepted++
			use(t, tok)
		}
		if accepted == 0 || accepted == n {
			t.Errorf("%s: %d of %d mutants accepted", f.name, accepted, n)
		}
	}
}

// edit changes a tokenizer.json.
func edit(t *testing.T, name string, change func(doc map[string]any)) []byte {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(content(t, name), &doc); err != nil {
		t.Fatal(err)
	}
	change(doc)
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// What is not supported exactly is rejected, and the error names it.
func TestRejectedJSON(t *testing.T) {
	set := func(part, value string) func(map[string]any) {
		return func(doc map[string]any) { doc[part] = json.RawMessage(value) }
	}
	model := func(key, value string) func(map[string]any) {
		return func(doc map[string]any) { doc["model"].(map[string]any)[key] = json.RawMessage(value) }
	}
	split := func(pattern string) func(map[string]any) {
		quoted, _ := json.Marshal(pattern)
		return set("pre_tokenizer", fmt.Sprintf(`{"type":"Split","pattern":{"Regex":%s},"behavior":"Isolated","invert":false}`, quoted))
	}
	added := func(id int, content string) func(map[string]any) {
		return func(doc map[string]any) {
			doc["added_tokens"].([]any)[0] = map[string]any{"id": id, "content": content, "special": true}
		}
	}
	for _, c := range []struct {
		change func(map[string]any)
		want   string
	}{
		{set("version", `"2.0"`), "2.0"},
		{set("extra", `1`), "extra"},
		{set("normalizer", `{"type":"Precompiled","precompiled_charsmap":""}`), "normalizer.precompiled_charsmap: 0 bytes"},
		{set("normalizer", `{"type":"Precompiled","precompiled_charsmap":"!"}`), "base64"},
		{set("normalizer", `{"type":"Precompiled","precompiled_charsmap":"BAAAAAAAAAD/AA=="}`), "UTF-8"},
		{set("normalizer", string(precompiledJSON(charsmapOf(map[string]string{"a": strings.Repeat("b", 1025)}, false)))), "1025 bytes"},
		{set("normalizer", `{"type":"Replace","pattern":{"Regex":"a*"},"content":"b"}`), "empty text"},
		{set("normalizer", `{"type":"Replace","pattern":{"Regex":"^a"},"content":"b"}`), "^"},
		{set("normalizer", `{"type":"Unknown"}`), "Unknown"},
		{set("normalizer", `{"type":"Prepend","prepend":"`+strings.Repeat("a", 99)+`"}`), "99 bytes"},
		{set("normalizer", `{"type":"BertNormalizer","new":1}`), "new"},
		{set("pre_tokenizer", `{"type":"Whitespace"}`), "Whitespace"},
		{set("pre_tokenizer", `{"type":"UnicodeScripts"}`), "UnicodeScripts"},
		{set("pre_tokenizer", `{"type":"Metaspace","replacement":"__","prepend_scheme":"always"}`), "__"},
		{func(doc map[string]any) {
			set("normalizer", `{"type":"Strip","strip_left":true,"strip_right":false}`)(doc)
			set("pre_tokenizer", `{"type":"Metaspace","replacement":"_","prepend_scheme":"first","split":true}`)(doc)
		}, "first"},
		{func(doc map[string]any) {
			set("normalizer", `{"type":"Nmt"}`)(doc)
			set("pre_tokenizer", `{"type":"Metaspace","replacement":"_","prepend_scheme":"first","split":true}`)(doc)
		}, "first"},
		{set("pre_tokenizer", `{"type":"Digits","individual_digits":true,"new":1}`), "new"},
		{split(`\w+`), `\w`}, {split(`a++`), "possessive"}, {split(`^a`), "^"}, {split(`a{2}?`), "repeated"},
		{split(`[a&&b]`), "intersection"},
		{split(`[a[^b]]`), "inside"}, {split(`(?i:ss)`), "ss"}, {split(`(?<n>a)`), "group"}, {split(`\p{Cn}`), `\p`}, {split(`(`), "pattern"},
		{split(`a(?=b)`), "group"}, {split(`(?<=a)b`), "group"}, {split(`(?>a)b`), "group"}, {split(`a+(?!\S)`), "lookahead"},
		{split(`\s+(?!\S)a`), "lookahead"}, {split(`(\s+(?!\S))`), "lookahead"}, {split(`\s+(?!\s)`), "lookahead"},
		{split(`\s+(?!\S)|a|\s+(?!\S)`), "lookahead"}, {split(`[\S]`), `\S in a class`}, {split(`a{2000}`), "repeat"},
		{split(strings.Repeat("a", 5000)), "5000"},
		{set("decoder", `null`), "null"}, {set("decoder", `{"type":"WordPiece","suffix":"x"}`), "suffix"},
		{set("decoder", `{"type":"Sequence","decoders":[{"type":"Fuse"},{"type":"WordPiece"}]}`), "WordPiece"},
		{set("decoder", `{"type":"Sequence","decoders":[{"type":"WordPiece"},{"type":"Fuse"}]}`), "Fuse"},
		{set("decoder", `{"type":"BPEDecoder"}`), "BPEDecoder"},
		{set("decoder", `{"type":"Strip","content":" ","start":1,"stop":0}`), "Strip"},
		{set("model", `{"type":"WordPiece","vocab":{}}`), "0 tokens"}, {set("model", `{"type":"WordPiece","vocab":{"a":1},"new":1}`), "new"},
		{set("model", `{"type":"WordPiece","vocab":{"a":1},"max_input_chars_per_word":-1}`), "max_input_chars_per_word"},
		{set("model", `{"type":"WordLevel","vocab":{}}`), "WordLevel"},
		{model("dropout", `0.1`), "dropout"}, {model("continuing_subword_prefix", `"##"`), "continuing_subword_prefix"},
		{model("end_of_word_suffix", `"</w>"`), "end_of_word_suffix"}, {model("byte_fallback", `true`), "byte_fallback"},
		{model("unk_token", `"<none>"`), "<none>"}, {model("vocab", `{"a":-1}`), "-1"}, {model("vocab", `{"a":1,"b":1}`), "two tokens"},
		{model("vocab", `{"a":99999999}`), "99999999"},
		{model("merges", `[["a","nothing"]]`), "nothing"}, {model("merges", `["a b c"]`), "a b c"},
		{set("post_processor", `{"type":"New"}`), "New"}, {set("post_processor", `{"type":"BertProcessing"}`), "without cls"},
		{set("post_processor", `{"type":"BertProcessing","cls":["a"],"sep":["b",1]}`), "parts"},
		{set("post_processor", `{"type":"BertProcessing","cls":["a",-1],"sep":["b",1]}`), "-1"},
		{set("post_processor", `{"type":"BertProcessing","cls":["a",1],"sep":["b",99999]}`), "99999"},
		{set("post_processor", `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"none","type_id":0}},{"Sequence":{"id":"A","type_id":0}}]}`), "none"},
		{set("post_processor", `{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A","type_id":1}}]}`), "type_id"},
		{set("post_processor", `{"type":"TemplateProcessing","single":[{}]}`), "neither"},
		{set("post_processor", `{"type":"TemplateProcessing","single":[]}`), "0 texts"},
		{added(3, "the"), "added_tokens 0"},
		{added(99999999, "<x>"), "99999999"}, {added(700, ""), "empty"},
	} {
		_, err := Parse(edit(t, "split.json", c.change))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error with %q", err, c.want)
			continue
		}
		checkError(t, err)
	}
}

// Overlapping tokens that take spaces do not make the time quadratic.
func TestSpacesOfTokens(t *testing.T) {
	data := edit(t, "split.json", func(doc map[string]any) {
		doc["added_tokens"] = append(doc["added_tokens"].([]any),
			map[string]any{"id": 682, "content": " ", "rstrip": true, "lstrip": true})
	})
	tok, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	const n = 1 << 16
	begin := time.Now()
	ids, err := tok.Encode("a"+strings.Repeat(" ", n)+"b", false)
	if err != nil || len(ids) != n+2 || time.Since(begin) > 20*time.Second {
		t.Errorf("%d ids after %v, %v", len(ids), time.Since(begin), err)
	}
}

// Package norm changes a text with more than 30 combining characters in a row; other libraries do not.
func TestCombiningCharacters(t *testing.T) {
	tok := open(t, "bytelevel.json")
	for n, want := range map[int]error{30: nil, 31: ErrText, 1000: ErrText} {
		_, err := tok.Encode("x"+strings.Repeat("\u0327", n), false)
		if !errors.Is(err, want) {
			t.Errorf("%d: %v, want %v", n, err, want)
		}
	}
	if _, err := tok.Encode("a\u034Fb", false); err != nil {
		t.Error(err)
	}
}

// A pattern that takes exponential time with backtracking takes linear time.
func TestSlowPattern(t *testing.T) {
	data := edit(t, "split.json", func(doc map[string]any) {
		doc["pre_tokenizer"] = json.RawMessage(
			`{"type":"Split","pattern":{"Regex":"(?:a|a)(?:(?:a|aa)+)+b"},"behavior":"Isolated","invert":false}`)
	})
	tok, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("a", 5000)
	if ids, err := tok.Encode(text, false); err != nil || len(ids) == 0 {
		t.Errorf("%d ids, %v", len(ids), err)
	}
}

// TestRegex compares matches with those of a backtracking engine, which were written by hand.
func TestRegex(t *testing.T) {
	for _, c := range []struct{ pattern, text, want string }{
		{`\s+(?!\S)|\s+`, "a  b c\t\n", "[ ][ ][ ][\t\n]"},
		{`\s+(?!\S)`, "a  b c  ", "[ ][  ]"},
		{` ?b|\s+(?!\S)|\s+|c`, "a   b c", "[  ][ b][ ][c]"},
		{`\s+(?!\S)| ?b`, "a b   b", "[ b][  ][ b]"},
		{`x|\s+(?!\S)`, "  x \u00a0x\u3000", "[ ][x][ ][x][\u3000]"},
		{`(a|b)+|\d{1,2}`, "abba12345", "[abba][12][34][5]"},
		{`[^\s\d]+`, "a1b\u0085c \u0663", "[a][b][c]"},
		{`(?i:'s|'t)`, "'S'\u017f't", "['S]['\u017f]['t]"},
		{`a*`, "baac", "[aa]"},
		{`\u4e00|\x41`, "\u4e00A", "[\u4e00][A]"},
		{`\D\S`, "1ab2 3", "[ab][ 3]"},
	} {
		re, err := newRegex(c.pattern, "test")
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		var got strings.Builder
		re.each(c.text, func(start, end int) { got.WriteString("[" + c.text[start:end] + "]") })
		if got.String() != c.want {
			t.Errorf("%s on %q: got %q, want %q", c.pattern, c.text, got.String(), c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, file := range files {
		f.Add(content(f, file.name))
	}
	f.Add([]byte("IQ== 0\nIg== 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tok, err := Parse(data)
		if err != nil {
			checkError(t, err)
			return
		}
		use(t, tok)
	})
}

func FuzzEncode(f *testing.F) {
	for _, text := range readVectors(f).Texts {
		f.Add(text)
	}
	var all []Tokenizer
	for _, file := range files {
		all = append(all, open(f, file.name))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for i, tok := range all {
			ids, err := tok.Encode(text, false)
			if err != nil {
				if !errors.Is(err, ErrText) {
					t.Errorf("%s: %q: %v", files[i].name, text, err)
				}
				continue
			}
			back, err := Decode(tok, ids)
			if err != nil || lossless(i, text) && back != text {
				t.Errorf("%s: %q decodes to %q, %v", files[i].name, text, back, err)
			}
		}
	})
}
