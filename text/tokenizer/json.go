package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/etrun-go/etrun/internal/jsonerror"
)

// hugging is a tokenizer.json of Hugging Face's tokenizers library. Its post_processor is only read
// for the tokens before and after a text, because the caller adds them; truncation and padding are ignored.
type hugging struct {
	vocabulary
	raw, normalized added // tokens found before and after normalization
	normalizers     []func(string) string
	trims           bool // a normalizer may drop the beginning of a text
	splitters       []splitter
	model           wordModel
	before, after   []int // see Frame
}

// wordModel encodes one word: a result of the pre-tokenizers.
type wordModel interface {
	encode(ids []int, word string) ([]int, error)
}

// document is the outline of the file.
type document struct {
	Version       string
	Truncation    json.RawMessage
	Padding       json.RawMessage
	AddedTokens   []addedToken `json:"added_tokens"`
	Normalizer    json.RawMessage
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage
	Model         json.RawMessage
}

func isJSON(data []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) }

func parseJSON(data []byte) (Tokenizer, error) {
	if !utf8.Valid(data) {
		return nil, malformed("file", "invalid UTF-8")
	}
	var doc document
	if err := decode(data, "file", &doc); err != nil {
		return nil, err
	}
	if doc.Version != "1.0" {
		return nil, unsupported("version", "%.40q, want \"1.0\"", doc.Version)
	}
	return newHugging(&doc)
}

// newHugging returns the tokenizer that a document describes.
func newHugging(doc *document) (Tokenizer, error) {
	t := &hugging{}
	steps := []func(*document) error{t.readNormalizer, t.readPreTokenizer, t.readModel, t.readAdded, t.readDecoder, t.readTemplate}
	for _, step := range steps {
		if err := step(doc); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// decode reads a part of the file. Fields that the destination does not have are not supported.
func decode(data []byte, place string, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		if bytes.Contains([]byte(err.Error()), []byte("unknown field")) {
			return unsupported(place, "%.200s", jsonerror.Plain(err))
		}
		return malformed(place, "%.200s", jsonerror.Plain(err))
	}
	if _, err := d.Token(); err == nil {
		return malformed(place, "data after the end of the object")
	}
	return nil
}

// isNull reports whether an optional part is missing.
func isNull(data json.RawMessage) bool { return len(data) == 0 || string(data) == "null" }

// kindOf returns the type of a component, "" if it has none. The type usually comes first, which
// saves reading the rest.
func kindOf(data json.RawMessage, place string) (string, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err == nil && open == json.Delim('{') {
		if name, err := d.Token(); err == nil && name == "type" {
			if kind, err := d.Token(); err == nil {
				if text, ok := kind.(string); ok {
					return text, nil
				}
			}
		}
	}
	var head struct{ Type string }
	if err := json.Unmarshal(data, &head); err != nil {
		return "", malformed(place, "%.200s", jsonerror.Plain(err))
	}
	return head.Type, nil
}

// maxComponents bounds the number of normalizers, pre-tokenizers or decoders, maxNesting the depth of sequences.
const (
	maxComponents = 16
	maxNesting    = 4
)

// components yields the components of a part in their order, sequences replaced by their members.
func components(data json.RawMessage, place, member string, yield func(kind string, data json.RawMessage) error) error {
	n := 0
	var visit func(data json.RawMessage, depth int) error
	visit = func(data json.RawMessage, depth int) error {
		kind, err := kindOf(data, place)
		if err != nil {
			return err
		}
		if n++; n > maxComponents || depth > maxNesting {
			return unsupported(place, "more than %d components, or nested more than %d deep", maxComponents, maxNesting)
		}
		if kind != "Sequence" {
			return yield(kind, data)
		}
		var list map[string]json.RawMessage
		if err := json.Unmarshal(data, &list); err != nil {
			return malformed(place, "%.200s", err)
		}
		var members []json.RawMessage
		if err := json.Unmarshal(list[member], &members); err != nil || len(list) != 2 {
			return malformed(place, "a sequence without %q: %v", member, err)
		}
		for _, m := range members {
			if err := visit(m, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if isNull(data) {
		return nil
	}
	return visit(data, 0)
}

// readAdded reads the added tokens, which take precedence over those of the model.
func (t *hugging) readAdded(doc *document) error {
	if len(doc.AddedTokens) > maxAdded {
		return unsupported("added_tokens", "%d, at most %d are allowed", len(doc.AddedTokens), maxAdded)
	}
	for i, a := range doc.AddedTokens {
		place := fmt.Sprintf("added_tokens %d", i)
		if err := t.checkAdded(a, place); err != nil {
			return err
		}
		t.define(a.ID, a.Content)
		pattern, list, err := a.Content, &t.raw, error(nil)
		if a.Normalized {
			list = &t.normalized
			pattern, err = t.normalize(a.Content, 4*len(a.Content)+maxReplacement)
		}
		if err != nil || pattern == "" {
			return unsupported(place, "%.60q is empty after normalization, or cannot be normalized: %v", a.Content, err)
		}
		list.tokens = append(list.tokens, entry{pattern, int32(i)})
	}
	t.raw.build(doc.AddedTokens)
	t.normalized.build(doc.AddedTokens)
	return nil
}

func (t *hugging) checkAdded(a addedToken, place string) error {
	switch {
	case a.Content == "":
		return unsupported(place, "empty content")
	case len(a.Content) > maxPiece:
		return unsupported(place, "%d bytes, at most %d are allowed", len(a.Content), maxPiece)
	case a.ID < 0 || a.ID >= maxTokens:
		return unsupported(place, "id %d, at most %d are allowed", a.ID, maxTokens-1)
	}
	id, named := t.ids[a.Content]
	if taken := a.ID < len(t.known) && t.known[a.ID]; named && int(id) != a.ID || taken && !named {
		return unsupported(place, "%.60q has the id %d, which does not agree with the model or another added token", a.Content, a.ID)
	}
	return nil
}

// define sets the name of a token; readDecoder turns names into bytes.
func (t *hugging) define(id int, name string) {
	for len(t.bytes) <= id {
		t.bytes, t.known = append(t.bytes, ""), append(t.known, false)
	}
	t.set(id, name, name)
}

// Encode implements Tokenizer.
func (t *hugging) Encode(s string, special bool) ([]int, error) {
	if err := checkText(s); err != nil {
		return nil, err
	}
	if !utf8.ValidString(s) {
		return nil, notEncodable("invalid UTF-8 at byte %d", invalidAt(s))
	}
	var ids []int
	err := t.raw.split(s, special, func(part string, first bool, id int) (err error) {
		if id >= 0 {
			ids = append(ids, id)
			return nil
		}
		ids, err = t.encodePart(ids, part, first, special)
		return err
	})
	return ids, err
}

// encodePart encodes a text without the added tokens that are found before normalization.
func (t *hugging) encodePart(ids []int, s string, first, special bool) ([]int, error) {
	s, err := t.normalize(s, maxText)
	if err != nil {
		return nil, err
	}
	err = t.normalized.split(s, special, func(part string, begins bool, id int) (err error) {
		if id >= 0 {
			ids = append(ids, id)
			return nil
		}
		words := []word{{part, first && begins}}
		for _, split := range t.splitters {
			if words, err = split(words); err != nil {
				return err
			}
		}
		for _, w := range words {
			if ids, err = t.model.encode(ids, w.text); err != nil {
				return err
			}
		}
		return nil
	})
	return ids, err
}

// invalidAt returns the offset of the first byte that is not UTF-8.
func invalidAt(s string) int {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return i
			}
		}
	}
	return len(s)
}

// specials returns the ids of the special tokens.
func (doc *document) specials() map[int]bool {
	ids := make(map[int]bool)
	for _, a := range doc.AddedTokens {
		if a.Special {
			ids[a.ID] = true
		}
	}
	return ids
}

// readDecoder turns the names of tokens into bytes. Special tokens have none.
func (t *hugging) readDecoder(doc *document) error {
	steps, err := t.decoders(doc.Decoder)
	if err != nil {
		return err
	}
	special := doc.specials()
	for id, name := range t.bytes {
		if special[id] {
			name = ""
		}
		for _, step := range steps {
			if name = step(name); len(name) > maxName {
				return unsupported("decoder", "token %d has more than %d bytes", id, maxName)
			}
		}
		t.bytes[id] = name
	}
	t.bytes, t.known = slices.Clip(t.bytes), slices.Clip(t.known)
	return nil
}

func readByteLevel(data json.RawMessage) ([]splitter, error) {
	p := struct {
		Type           string
		AddPrefixSpace bool `json:"add_prefix_space"`
		TrimOffsets    bool `json:"trim_offsets"`
		UseRegex       bool `json:"use_regex"`
	}{UseRegex: true}
	if err := decode(data, "pre_tokenizer", &p); err != nil {
		return nil, err
	}
	var list []splitter
	if p.AddPrefixSpace {
		list = append(list, mapping(func(w word) string {
			if strings.HasPrefix(w.text, " ") {
				return w.text
			}
			return " " + w.text
		}))
	}
	if p.UseRegex {
		re, err := newRegex(gpt2, "pre_tokenizer")
		if err != nil {
			return nil, err
		}
		list = append(list, cutting(re.each, behaviors["Isolated"], false))
	}
	return append(list, mapping(func(w word) string { return toByteLevel(w.text) })), nil
}
