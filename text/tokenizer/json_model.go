package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

func (t *hugging) readModel(doc *document) error {
	kind, err := kindOf(doc.Model, "model")
	if err != nil {
		return err
	}
	t.vocabulary = newVocabulary(0)
	switch kind {
	case "BPE", "": // old files have no type
		return t.readBPE(doc)
	case "Unigram":
		return t.readUnigram(doc)
	case "WordPiece":
		return t.readWordPiece(doc)
	}
	return unsupported("model", "type %.40q, want BPE, Unigram or WordPiece", kind)
}

// pairBPE is byte pair encoding with a list of merges.
type pairBPE struct {
	ids          map[string]int32 // without special tokens
	ascii        [128]int32       // by character, -1 for none
	merges       map[uint64]merge // by the two ids
	ignoreMerges bool             // a word that is a token is not split
	byteFallback bool
	byteIDs      [256]int32
	unknown      int32 // -1 for none
	fuseUnknown  bool
	whole        bool // words cannot be encoded one by one
}

type merge struct{ rank, id int32 }

type bpeModel struct {
	Type         string
	Dropout      *float64
	UnkToken     *string `json:"unk_token"`
	Prefix       *string `json:"continuing_subword_prefix"`
	Suffix       *string `json:"end_of_word_suffix"`
	FuseUnk      bool    `json:"fuse_unk"`
	ByteFallback bool    `json:"byte_fallback"`
	IgnoreMerges bool    `json:"ignore_merges"`
	Vocab        map[string]int32
	Merges       json.RawMessage
}

func (m *bpeModel) check() error {
	switch {
	case m.Dropout != nil && *m.Dropout != 0:
		return unsupported("model", "dropout %v", *m.Dropout)
	case m.Prefix != nil && *m.Prefix != "":
		return unsupported("model", "continuing_subword_prefix %.40q", *m.Prefix)
	case m.Suffix != nil && *m.Suffix != "":
		return unsupported("model", "end_of_word_suffix %.40q", *m.Suffix)
	}
	return nil
}

// defineAll defines the tokens of a vocabulary, of at most so many bytes.
func (t *hugging) defineAll(vocabulary map[string]int32, most int) error {
	if len(vocabulary) == 0 || len(vocabulary) > maxTokens {
		return unsupported("model", "%d tokens, want 1 to %d", len(vocabulary), maxTokens)
	}
	for name, id := range vocabulary {
		if err := t.checkToken(name, int(id), most); err != nil {
			return err
		}
		t.define(int(id), name)
	}
	return nil
}

func (t *hugging) readBPE(doc *document) error {
	var m bpeModel
	if err := decode(doc.Model, "model", &m); err != nil {
		return err
	}
	if err := m.check(); err != nil {
		return err
	}
	if err := t.defineAll(m.Vocab, maxName); err != nil {
		return err
	}
	b := &pairBPE{ids: m.Vocab, ignoreMerges: m.IgnoreMerges, fuseUnknown: m.FuseUnk, unknown: -1}
	if err := b.readUnknown(&m); err != nil {
		return err
	}
	if err := b.readMerges(m.Merges); err != nil {
		return err
	}
	special := doc.specials()
	for name, id := range m.Vocab { // a special token is never the encoding of plain text
		if special[int(id)] {
			delete(m.Vocab, name)
		}
	}
	for c := range b.ascii {
		b.ascii[c] = b.lookup(string(rune(c)))
	}
	b.whole = b.whole || b.lookup(meta) < 0 // unknown characters of two words may be one token
	t.model = b
	return nil
}

// checkToken checks a token of the model, of at most so many bytes.
func (t *hugging) checkToken(name string, id, most int) error {
	place := fmt.Sprintf("model: token %d", id)
	switch {
	case id < 0 || id >= maxTokens:
		return unsupported(place, "want an id from 0 to %d", maxTokens-1)
	case len(name) > most:
		return unsupported(place, "%d bytes, at most %d are allowed", len(name), most)
	case id < len(t.known) && t.known[id]:
		return malformed(place, "two tokens have this id, one is %.60q", name)
	}
	return nil
}

func (b *pairBPE) lookup(text string) int32 {
	if id, ok := b.ids[text]; ok {
		return id
	}
	return -1
}

// readUnknown reads how characters without a token are encoded.
func (b *pairBPE) readUnknown(m *bpeModel) error {
	if m.UnkToken != nil && *m.UnkToken != "" {
		if b.unknown = b.lookup(*m.UnkToken); b.unknown < 0 {
			return malformed("model", "no token for unk_token %.60q", *m.UnkToken)
		}
	}
	if b.byteFallback = m.ByteFallback; !b.byteFallback {
		return nil
	}
	for c := range b.byteIDs {
		if b.byteIDs[c] = b.lookup(byteName(byte(c))); b.byteIDs[c] < 0 {
			return unsupported("model", "byte_fallback without a token %s", byteName(byte(c)))
		}
	}
	return nil
}

// readMerges reads the merges, which are lists of two texts or texts with a space in between.
func (b *pairBPE) readMerges(data json.RawMessage) error {
	var pairs [][2]string
	var lines []string
	begin := bytes.TrimLeft(data, " \t\r\n[")
	if len(begin) > 0 && begin[0] == '"' && bytes.Count(data[:len(data)-len(begin)], []byte("[")) == 1 {
		if err := json.Unmarshal(data, &lines); err != nil {
			return malformed("merges", "%.200s", err)
		}
	} else if err := json.Unmarshal(data, &pairs); err != nil {
		return malformed("merges", "%.200s", err)
	}
	count := max(len(pairs), len(lines))
	if count > maxMerges {
		return unsupported("merges", "%d, at most %d are allowed", count, maxMerges)
	}
	b.merges = make(map[uint64]merge, count)
	for i, p := range pairs {
		if err := b.addMerge(i, p[0], p[1]); err != nil {
			return err
		}
	}
	for i, line := range lines {
		space := bytes.IndexByte([]byte(line), ' ')
		if space < 0 || bytes.IndexByte([]byte(line[space+1:]), ' ') >= 0 {
			return malformed("merges", "merge %d is %.60q, want two tokens", i, line)
		}
		if err := b.addMerge(i, line[:space], line[space+1:]); err != nil {
			return err
		}
	}
	return nil
}

func (b *pairBPE) addMerge(rank int, left, right string) error {
	l, r, id := b.lookup(left), b.lookup(right), b.lookup(left+right)
	if l < 0 || r < 0 || id < 0 {
		return malformed("merges", "merge %d: no token for %.60q, %.60q or both together", rank, left, right)
	}
	key := uint64(l)<<32 | uint64(r)
	b.merges[key] = merge{int32(rank), id} // of duplicates the last one is used
	b.whole = b.whole || wordEnd(left+right) < len(left+right)
	return nil
}

func (b *pairBPE) join(_ string, l, r *symbol) (id int32, rank float64, ok bool) {
	m, ok := b.merges[uint64(l.id)<<32|uint64(r.id)]
	return m.id, float64(m.rank), ok
}

// encode implements wordModel.
func (b *pairBPE) encode(ids []int, w string) ([]int, error) {
	if b.ignoreMerges {
		if id, ok := b.ids[w]; ok {
			return append(ids, int(id)), nil
		}
	}
	for err := error(nil); w != ""; {
		end := len(w)
		if !b.whole {
			end = wordEnd(w)
		}
		if ids, err = b.encodeWord(ids, w[:end]); err != nil {
			return nil, err
		}
		w = w[end:]
	}
	return ids, nil
}

func (b *pairBPE) encodeWord(ids []int, w string) ([]int, error) {
	m := mergers.Get().(*merger)
	defer m.release()
	unknown := false // the last symbol is
	for i := 0; i < len(w); {
		id, n := b.character(w[i:])
		switch {
		case id >= 0:
			m.add(symbol{start: int32(i), end: int32(i + n), id: id})
		case b.byteFallback:
			for k := i; k < i+n; k++ {
				m.add(symbol{start: int32(k), end: int32(k + 1), id: b.byteIDs[w[k]]})
			}
		case b.unknown < 0:
			return nil, notEncodable("no token for %q, and the file names none for unknown characters", w[i:i+n])
		case unknown && b.fuseUnknown:
			m.symbols[len(m.symbols)-1].end += int32(n)
		default:
			m.add(symbol{start: int32(i), end: int32(i + n), id: b.unknown})
		}
		unknown = id < 0 && !b.byteFallback
		i += n
	}
	m.run(w, b)
	return m.collect(ids), nil
}

// character returns the token of the first character, -1 for none, and its length.
func (b *pairBPE) character(s string) (id int32, length int) {
	if s[0] < utf8.RuneSelf {
		return b.ascii[s[0]], 1
	}
	_, n := utf8.DecodeRuneInString(s)
	return b.lookup(s[:n]), n
}

// scoredToken is a token and its logarithmic probability, written as a list of two.
type scoredToken struct {
	text  string
	score float64
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *scoredToken) UnmarshalJSON(data []byte) error {
	return readPair(data, "text and score", &s.text, &s.score)
}

// readPair reads a token that is written as a list of two.
func readPair(data []byte, want string, first, second any) error {
	list := []any{first, second}
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	if len(list) != 2 {
		return fmt.Errorf("a token of %d parts, want %s", len(list), want)
	}
	return nil
}

// wordUnigram is the Unigram model.
type wordUnigram struct {
	unigram
	byteFallback bool
	byteIDs      [256]int32
}

func (t *hugging) readUnigram(doc *document) error {
	var m struct {
		Type         string
		UnkID        *int32 `json:"unk_id"`
		ByteFallback bool   `json:"byte_fallback"`
		Vocab        []scoredToken
	}
	if err := decode(doc.Model, "model", &m); err != nil {
		return err
	}
	if len(m.Vocab) == 0 || len(m.Vocab) > maxTokens {
		return unsupported("model", "%d tokens, want 1 to %d", len(m.Vocab), maxTokens)
	}
	u := &wordUnigram{unigram: unigram{unknown: -1, round: func(f float64) float64 { return f }}}
	special := doc.specials()
	var list []entry
	lowest := m.Vocab[0].score
	for id, v := range m.Vocab {
		if err := t.checkUnigramToken(v, id); err != nil {
			return err
		}
		t.define(id, v.text)
		lowest = min(lowest, v.score)
		if !special[id] {
			list = append(list, entry{v.text, int32(id)})
		}
	}
	u.pieces, u.penalty = newPrefixes(list), lowest-unknownPenalty
	u.score = func(id int32, _ int) float64 { return m.Vocab[id].score }
	if m.UnkID != nil {
		if u.unknown = *m.UnkID; u.unknown < 0 || int(u.unknown) >= len(m.Vocab) {
			return malformed("model", "unk_id %d of %d tokens", u.unknown, len(m.Vocab))
		}
	}
	t.model = u
	return u.readBytes(t, m.ByteFallback)
}

func (t *hugging) checkUnigramToken(v scoredToken, id int) error {
	if _, twice := t.ids[v.text]; twice || v.text == "" {
		return unsupported(fmt.Sprintf("model: token %d", id), "the text %.60q is empty or occurs twice", v.text)
	}
	if err := checkScore(v.score, fmt.Sprintf("model: token %d", id)); err != nil {
		return err
	}
	return t.checkToken(v.text, id, maxPiece)
}

func (u *wordUnigram) readBytes(t *hugging, fallback bool) error {
	if u.byteFallback = fallback; !fallback {
		return nil
	}
	for c := range u.byteIDs {
		id, ok := t.ids[byteName(byte(c))]
		if !ok {
			return unsupported("model", "byte_fallback without a token %s", byteName(byte(c)))
		}
		u.byteIDs[c] = id
	}
	return nil
}

// encode implements wordModel. Neighboring unknown characters are one token.
func (u *wordUnigram) encode(ids []int, w string) (_ []int, err error) {
	unknown := false
	u.split(w, func(start, end, id int32) {
		switch {
		case id != u.unknown:
			ids = append(ids, int(id))
		case u.byteFallback:
			for _, c := range []byte(w[start:end]) {
				ids = append(ids, int(u.byteIDs[c]))
			}
		case u.unknown < 0:
			err = notEncodable("no token for %q, and the file names none for unknown characters", w[start:end])
		case !unknown:
			ids = append(ids, int(id))
		}
		unknown = id == u.unknown
	})
	return ids, err
}
