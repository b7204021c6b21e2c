package tokenizer

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// tiktoken is a file of lines with a base64 text and its rank, which is also its id.
type tiktoken struct {
	vocabulary
	ranks   scored
	pattern *regex
	control *prefixes
}

// family is the part of a tokenizer that a tiktoken file does not contain.
type family struct {
	name    string
	ranks   int
	pattern string
	bos     string
	eos     []string
	special map[string]int
}

const (
	cl100k = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	o200k  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// families are identified by the number of ranks. Those with equal numbers, such as Llama 3 and 3.1, or
// o200k_base and o200k_harmony, have the same pattern; they differ in the names of special tokens.
func families() []family {
	return []family{
		{name: "gpt2", ranks: 50256, pattern: gpt2, eos: []string{"<|endoftext|>"}, special: map[string]int{"<|endoftext|>": 50256}},
		{name: "p50k_base", ranks: 50280, pattern: gpt2, eos: []string{"<|endoftext|>"}, special: map[string]int{"<|endoftext|>": 50256}},
		{name: "cl100k_base", ranks: 100256, pattern: cl100k, eos: []string{"<|endoftext|>"}, special: map[string]int{
			"<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|fim_middle|>": 100259, "<|fim_suffix|>": 100260, "<|endofprompt|>": 100276,
		}},
		{name: "o200k_base", ranks: 199998, pattern: o200k, eos: []string{"<|endoftext|>"}, special: map[string]int{
			"<|endoftext|>": 199999, "<|endofprompt|>": 200018,
		}},
		{name: "llama3", ranks: 128000, pattern: cl100k, bos: "<|begin_of_text|>",
			eos: []string{"<|end_of_text|>", "<|eom_id|>", "<|eot_id|>"}, special: llama3Special()},
	}
}

// llama3Special returns the special tokens of Llama 3.1 and later. Those of Llama 3 are the same
// except for the names of some reserved ones.
func llama3Special() map[string]int {
	names := []string{
		"<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|reserved_special_token_1|>",
		"<|finetune_right_pad_id|>", "<|step_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>", "<|eot_id|>", "<|python_tag|>",
	}
	special := make(map[string]int)
	for i := range 256 {
		name := fmt.Sprintf("<|reserved_special_token_%d|>", i-len(names)+2)
		if i < len(names) {
			name = names[i]
		}
		special[name] = 128000 + i
	}
	return special
}

// line splits a line into text and rank.
func line(data []byte) (text []byte, rank int, ok bool) {
	encoded, number, found := bytes.Cut(bytes.TrimSuffix(data, []byte("\r")), []byte(" "))
	if !found || len(encoded) > 2*maxName {
		return nil, 0, false
	}
	text, err := base64.StdEncoding.DecodeString(string(encoded))
	rank, err2 := strconv.Atoi(string(number))
	return text, rank, err == nil && err2 == nil && len(text) > 0 && len(text) <= maxName
}

func isTiktoken(data []byte) bool {
	first, _, _ := bytes.Cut(data, []byte("\n"))
	_, _, ok := line(first)
	return ok
}

func parseTiktoken(data []byte) (Tokenizer, error) {
	lines := bytes.Count(data, []byte("\n")) + 1
	if lines > maxTokens {
		return nil, unsupported("file", "%d lines, at most %d tokens are allowed", lines, maxTokens)
	}
	texts, err := readRanks(data, lines)
	if err != nil {
		return nil, err
	}
	count := 0
	for _, text := range texts {
		if text != "" {
			count++
		}
	}
	list := families()
	i := slices.IndexFunc(list, func(f family) bool { return f.ranks == count })
	if i < 0 {
		return nil, unsupported("file", "%d ranks: no known family of tiktoken files has this number, which stands for the pattern", count)
	}
	return newTiktoken(texts, &list[i])
}

// readRanks returns the texts by rank.
func readRanks(data []byte, lines int) ([]string, error) {
	texts := make([]string, 0, lines)
	n := 0
	for l := range bytes.Lines(data) {
		n++
		l = bytes.TrimRight(l, "\r\n")
		if len(l) == 0 {
			continue
		}
		text, rank, ok := line(l)
		if !ok || rank < 0 || rank > lines {
			return nil, malformed(fmt.Sprintf("line %d", n), "%.80q is not a text in base64 and its rank below %d", l, lines)
		}
		for len(texts) <= rank {
			texts = append(texts, "")
		}
		if texts[rank] != "" {
			return nil, malformed(fmt.Sprintf("line %d", n), "a second text of rank %d", rank)
		}
		texts[rank] = string(text)
	}
	return texts, nil
}

func newTiktoken(texts []string, f *family) (*tiktoken, error) {
	size := len(texts)
	for _, id := range f.special {
		size = max(size, id+1)
	}
	pattern, err := newRegex(f.pattern, f.name)
	if err != nil {
		return nil, err
	}
	t := &tiktoken{vocabulary: newVocabulary(size), ranks: newScored(size), pattern: pattern}
	for id, text := range texts {
		if text == "" {
			continue
		}
		if err := t.addText(text, id); err != nil {
			return nil, err
		}
	}
	if err := t.checkBytes(); err != nil {
		return nil, err
	}
	return t, t.addSpecial(f)
}

// addText adds a text, which pairs are merged to in the order of ids.
func (t *tiktoken) addText(text string, id int) error {
	if _, twice := t.ranks.ids[text]; twice {
		return malformed(fmt.Sprintf("token %d", id), "the text %.60q occurs twice", text)
	}
	t.set(id, text, text)
	t.ranks.add(text, id, float64(id))
	return nil
}

// checkBytes requires a token for each byte.
func (t *tiktoken) checkBytes() error {
	for b := range 256 {
		if t.ranks.find(string([]byte{byte(b)})) < 0 {
			return malformed("file", "no rank for the byte %d", b)
		}
	}
	return nil
}

func (t *tiktoken) addSpecial(f *family) error {
	var list []entry
	for name, id := range f.special {
		if t.known[id] {
			return malformed("file", "rank %d is the special token %s of %s", id, name, f.name)
		}
		t.set(id, name, "")
		list = append(list, entry{name, int32(id)})
	}
	t.control = newPrefixes(list)
	if f.bos != "" {
		t.bos = f.special[f.bos]
	}
	for _, name := range f.eos {
		t.eos = append(t.eos, f.special[name])
	}
	return nil
}

// Encode implements Tokenizer.
func (t *tiktoken) Encode(s string, special bool) ([]int, error) {
	if err := checkText(s); err != nil {
		return nil, err
	}
	if !utf8.ValidString(s) {
		return nil, notEncodable("invalid UTF-8 at byte %d", invalidAt(s))
	}
	encode := func(ids []int, text string) ([]int, error) {
		t.pattern.each(text, func(start, end int) { ids = t.word(ids, text[start:end]) })
		return ids, nil
	}
	if !special {
		return encode(nil, s)
	}
	return segments(s, t.control, encode)
}

// word appends the ids of a match of the pattern.
func (t *tiktoken) word(ids []int, w string) []int {
	if id := t.ranks.find(w); id >= 0 {
		return append(ids, int(id))
	}
	m := mergers.Get().(*merger)
	defer m.release()
	for i := range len(w) {
		m.add(symbol{start: int32(i), end: int32(i + 1), id: t.ranks.find(w[i : i+1])})
	}
	m.run(w, &t.ranks)
	return m.collect(ids)
}
