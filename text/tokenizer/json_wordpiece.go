package tokenizer

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// wordPiece takes the longest token at each place of a word.
type wordPiece struct {
	begin, inside *prefixes // tokens at the beginning of a word, and elsewhere without their prefix
	unknown       int       // -1 for none
	unknownName   string
	most          int // characters of a word that is not unknown
}

func (t *hugging) readWordPiece(doc *document) error {
	m := struct {
		Type     string
		UnkToken string `json:"unk_token"`
		Prefix   string `json:"continuing_subword_prefix"`
		Most     int    `json:"max_input_chars_per_word"`
		Vocab    map[string]int32
	}{UnkToken: "[UNK]", Prefix: "##", Most: 100}
	if err := decode(doc.Model, "model", &m); err != nil {
		return err
	}
	if m.Most < 0 { // all words would be unknown
		return malformed("model", "max_input_chars_per_word %d, want a number of characters", m.Most)
	}
	if err := t.defineAll(m.Vocab, maxPiece); err != nil {
		return err
	}
	w := &wordPiece{unknown: -1, unknownName: m.UnkToken, most: m.Most}
	if id, ok := m.Vocab[m.UnkToken]; ok {
		w.unknown = int(id)
	}
	special := doc.specials()
	var begin, inside []entry
	for name, id := range m.Vocab {
		if special[int(id)] { // a special token is never the encoding of plain text
			continue
		}
		begin = append(begin, entry{name, id})
		if rest, ok := strings.CutPrefix(name, m.Prefix); ok {
			inside = append(inside, entry{rest, id})
		}
	}
	w.begin, w.inside = newPrefixes(begin), newPrefixes(inside)
	t.model = w
	return nil
}

// encode implements wordModel. A word of which a part has no token is unknown.
func (w *wordPiece) encode(ids []int, word string) ([]int, error) {
	before, list := len(ids), w.begin
	known := utf8.RuneCountInString(word) <= w.most
	for rest := word; known && rest != ""; list = w.inside {
		n, id := list.longest(rest)
		if known = n > 0; known {
			ids, rest = append(ids, int(id)), rest[n:]
		}
	}
	switch {
	case known:
		return ids, nil
	case w.unknown < 0:
		return nil, notEncodable("no tokens for %.60q, and the file has no token %.60q", word, w.unknownName)
	}
	return append(ids[:before], w.unknown), nil
}

// cleanups are the spaces that the decoder drops.
var cleanups = strings.NewReplacer(" .", ".", " ?", "?", " !", "!", " ,", ",", " ' ", "'", " n't", "n't", " 'm", "'m", " do not", " don't",
	" 's", "'s", " 've", "'ve", " 're", "'re")

// wordPieceDecoder puts a space before each token that begins a word.
func (t *hugging) wordPieceDecoder(data json.RawMessage, later bool) (func(string) string, error) {
	p := struct {
		Type, Prefix string
		Cleanup      bool
	}{Prefix: "##", Cleanup: true}
	if err := decode(data, "decoder", &p); err != nil {
		return nil, err
	}
	if later {
		return nil, unsupported("decoder", "a WordPiece after another decoder")
	}
	t.leading.drop, t.leading.firsts = dropText, make(map[int]string)
	for name, id := range t.ids {
		if strings.HasPrefix(name, p.Prefix) && p.Prefix != "" {
			t.leading.firsts[int(id)] = name
		}
	}
	return func(name string) string {
		rest, ok := strings.CutPrefix(name, p.Prefix)
		switch {
		case name == "":
			return name // a control token
		case !ok:
			rest = " " + name
		}
		if p.Cleanup {
			rest = cleanups.Replace(rest)
		}
		return rest
	}, nil
}
