package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// sentencePiece is a SentencePiece model of type BPE or Unigram.
type sentencePiece struct {
	vocabulary
	normalizer
	control      *prefixes
	model        pieceModel
	unknown      int32
	byteFallback bool
	byteIDs      [256]int32
}

// pieceModel splits a normalized text into pieces. Yield gets the bytes of each and its id.
type pieceModel interface {
	split(text string, yield func(start, end int32, id int32))
}

func parseSentencePiece(data []byte) (Tokenizer, error) {
	proto, err := readModel(data)
	if err != nil {
		return nil, err
	}
	if err := proto.check(); err != nil {
		return nil, err
	}
	t := &sentencePiece{vocabulary: newVocabulary(len(proto.pieces)), unknown: -1, byteFallback: proto.trainer.byteFallback}
	if err := t.define(proto); err != nil {
		return nil, err
	}
	var charsmap *charsmap
	if table := proto.normalizer.charsmap; len(table) > 0 {
		var err error
		if charsmap, err = parseCharsmap(table, "normalizer_spec.precompiled_charsmap"); err != nil {
			return nil, err
		}
	}
	t.normalizer = normalizer{
		charsmap:     charsmap,
		symbols:      newPrefixes(proto.entries(pieceUserDefined)),
		dummyPrefix:  proto.normalizer.dummyPrefix,
		removeSpaces: proto.normalizer.removeSpaces,
	}
	t.control = newPrefixes(proto.entries(pieceControl))
	t.leading.keeps = []int{int(t.unknown), int(t.byteIDs[' '])}
	switch {
	case proto.normalizer.removeSpaces:
		t.leading.drop = dropPieces
	case proto.normalizer.dummyPrefix:
		t.leading.drop = dropPiece
	}
	t.model = proto.model(t.symbols)
	t.bos = t.controlID(proto.trainer.bos)
	if eos := t.controlID(proto.trainer.eos); eos >= 0 {
		t.eos = []int{eos}
	}
	return t, t.selfTest(proto.samples)
}

// define fills the vocabulary.
func (t *sentencePiece) define(proto *modelProto) error {
	found := 0
	for id, p := range proto.pieces {
		place := fmt.Sprintf("piece %d", id)
		if _, twice := t.ids[p.text]; twice {
			return malformed(place, "the text %.40q occurs twice", p.text)
		}
		text := strings.ReplaceAll(p.text, meta, " ")
		switch p.kind {
		case pieceControl:
			text = ""
		case pieceUnknown:
			if t.unknown >= 0 {
				return malformed(place, "a second unknown piece")
			}
			t.unknown, text = int32(id), proto.trainer.unknownSurface
		case pieceByte:
			b, ok := byteOf(p.text)
			if !ok || !t.byteFallback {
				return malformed(place, "byte %.40q in a model with byte_fallback %v", p.text, t.byteFallback)
			}
			found++
			t.byteIDs[b], text = int32(id), string([]byte{b})
		}
		t.set(id, p.text, text)
	}
	if t.unknown < 0 || t.byteFallback && found != 256 {
		return malformed("pieces", "unknown piece %d, %d bytes with byte_fallback %v", t.unknown, found, t.byteFallback)
	}
	return nil
}

// controlID returns the id of a control piece, -1 if there is none.
func (t *sentencePiece) controlID(text string) int {
	if n, id := t.control.longest(text); n > 0 && n == len(text) {
		return int(id)
	}
	return -1
}

// byteOf is the inverse of byteName.
func byteOf(name string) (b byte, ok bool) {
	if len(name) != 6 || name[:3] != "<0x" || name[5] != '>' {
		return 0, false
	}
	for _, c := range []byte(name[3:5]) {
		switch {
		case c >= '0' && c <= '9':
			b = b<<4 | (c - '0')
		case c >= 'A' && c <= 'F':
			b = b<<4 | (c - 'A' + 10)
		default:
			return 0, false
		}
	}
	return b, true
}

// selfTest compares the samples of the file, which the trainer has written, with Encode.
func (t *sentencePiece) selfTest(samples []sample) error {
	for i, s := range samples {
		text, err := t.normalize(s.input)
		if err != nil {
			return err
		}
		if got := t.pieces(text); got != s.expected {
			return unsupported(fmt.Sprintf("self_test_data %d", i), "%.100q gives %.200q, want %.200q", s.input, got, s.expected)
		}
	}
	return nil
}

// pieces returns the pieces of a normalized text, with spaces in between.
func (t *sentencePiece) pieces(text string) string {
	var b strings.Builder
	unknown := false
	t.model.split(text, func(start, end, id int32) {
		joins := unknown && id == t.unknown
		if unknown = id == t.unknown; unknown && t.byteFallback {
			for i := start; i < end; i++ {
				b.WriteString(" " + byteName(text[i]))
			}
			return
		}
		if !joins {
			b.WriteByte(' ')
		}
		b.WriteString(text[start:end])
	})
	return strings.TrimPrefix(b.String(), " ")
}

// Encode implements Tokenizer. With special, the texts between control tokens are encoded one by
// one, each with its own leading space if the model has one. Invalid UTF-8 gives U+FFFD.
func (t *sentencePiece) Encode(s string, special bool) ([]int, error) {
	if err := checkText(s); err != nil {
		return nil, err
	}
	if !special {
		return t.encode(nil, s)
	}
	return segments(s, t.control, t.encode)
}

// encode appends the ids of a text without control tokens. Neighboring unknown pieces are one.
func (t *sentencePiece) encode(ids []int, s string) ([]int, error) {
	text, err := t.normalize(s)
	if err != nil {
		return nil, err
	}
	unknown := false
	t.model.split(text, func(start, end, id int32) {
		switch {
		case id != t.unknown:
			ids = append(ids, int(id))
		case t.byteFallback:
			for i := start; i < end; i++ {
				ids = append(ids, int(t.byteIDs[text[i]]))
			}
		case !unknown:
			ids = append(ids, int(id))
		}
		unknown = id == t.unknown
	})
	return ids, nil
}

// normalizer is SentencePiece's text normalization.
type normalizer struct {
	charsmap     *charsmap // nil for none
	symbols      *prefixes // user defined: never changed
	dummyPrefix  bool
	removeSpaces bool
}

// prefix returns the normalized form of the first part of s, and the length of this part.
func (n *normalizer) prefix(s string) (out string, length int) {
	if length, _ := n.symbols.longest(s); length > 0 {
		return s[:length], length
	}
	if out, length, ok := n.charsmap.longest(s); ok {
		return out, length
	}
	r, length := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && length == 1 {
		return "\uFFFD", 1
	}
	return s[:length], length
}

// normalize returns the text that the model splits, in which ▁ replaces spaces.
func (n *normalizer) normalize(s string) (string, error) {
	for n.removeSpaces && s != "" {
		out, length := n.prefix(s)
		if out != " " {
			break
		}
		s = s[length:]
	}
	if s == "" {
		return "", nil
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/2)
	if n.dummyPrefix {
		b.WriteString(meta)
	}
	afterSpace := n.removeSpaces
	for s != "" {
		out, length := n.prefix(s)
		if afterSpace {
			out = strings.TrimLeft(out, " ")
		}
		if out != "" {
			writeMeta(&b, out)
			afterSpace = n.removeSpaces && strings.HasSuffix(out, " ")
		}
		if b.Len() > maxText {
			return "", notEncodable("the normalized text is longer than %d bytes", maxText)
		}
		s = s[length:]
	}
	text := b.String()
	for n.removeSpaces && strings.HasSuffix(text, meta) {
		text = text[:len(text)-len(meta)]
	}
	return text, nil
}

// writeMeta writes a text with ▁ for each space.
func writeMeta(b *strings.Builder, s string) {
	for {
		i := strings.IndexByte(s, ' ')
		if i < 0 {
			b.WriteString(s)
			return
		}
		b.WriteString(s[:i])
		b.WriteString(meta)
		s = s[i+1:]
	}
}
