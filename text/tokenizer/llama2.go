package tokenizer

import (
	"encoding/binary"
	"fmt"
	"math"
)

// A file of llama2.c has no magic number and no count: a little-endian int32 with the length of the
// longest token is followed by the tokens to the end of the file, each a float32 score, an int32
// length and the bytes. Ids 0 to 2 are control tokens, 3 to 258 the bytes.
const (
	llama2Bytes  = 3
	llama2Pieces = llama2Bytes + 256
)

type llama2 struct {
	vocabulary
	scored
	control *prefixes
	space   int32
}

// eachLlama2 yields the tokens; it returns false if the data violates the format.
func eachLlama2(data []byte, yield func(score float32, text []byte)) bool {
	if len(data) < 4 {
		return false
	}
	longest := binary.LittleEndian.Uint32(data)
	if longest == 0 || longest > maxPiece {
		return false
	}
	for data = data[4:]; len(data) > 0; {
		if len(data) < 8 {
			return false
		}
		score, n := math.Float32frombits(binary.LittleEndian.Uint32(data)), binary.LittleEndian.Uint32(data[4:])
		if n > longest || int(n) > len(data)-8 {
			return false
		}
		yield(score, data[8:8+n])
		data = data[8+n:]
	}
	return true
}

func isLlama2(data []byte) bool {
	n := 0
	return eachLlama2(data, func(float32, []byte) { n++ }) && n > llama2Bytes
}

func parseLlama2(data []byte) (Tokenizer, error) {
	var scores []float32
	var texts []string
	eachLlama2(data, func(score float32, text []byte) {
		scores, texts = append(scores, score), append(texts, string(text))
	})
	if len(texts) > maxTokens {
		return nil, unsupported("file", "%d tokens, at most %d are allowed", len(texts), maxTokens)
	}
	t := &llama2{vocabulary: newVocabulary(len(texts)), scored: newScored(len(texts))}
	for id, text := range texts {
		if err := t.define(id, text, float64(scores[id])); err != nil {
			return nil, err
		}
	}
	if len(texts) < llama2Pieces {
		return nil, malformed("file", "%d tokens, want the bytes in 3 to 258", len(texts))
	}
	space, ok := t.scored.ids[" "]
	if !ok {
		return nil, malformed("file", "no token for a space")
	}
	t.space, t.bos, t.eos = space, 1, []int{2, 1}
	t.leading = leading{drop: dropPiece, keeps: []int{llama2Bytes + ' '}}
	t.control = newPrefixes([]entry{{texts[0], 0}, {texts[1], 1}, {texts[2], 2}, {"<s>", 1}, {"</s>", 2}})
	return t, nil
}

// define adds a token.
func (t *llama2) define(id int, text string, score float64) error {
	place := fmt.Sprintf("token %d", id)
	if err := checkScore(score, place); err != nil {
		return err
	}
	switch {
	case id < llama2Bytes:
		t.set(id, text, "")
	case id < llama2Pieces:
		b := byte(id - llama2Bytes)
		if text != byteName(b) {
			return malformed(place, "text %.40q, want %q", text, byteName(b))
		}
		t.set(id, text, string([]byte{b}))
	default:
		if _, twice := t.scored.ids[text]; twice {
			return unsupported(place, "the text %.40q occurs twice", text)
		}
		t.set(id, text, text)
		t.add(text, id, -score)
	}
	return nil
}

// byteName is the name of a byte's token in llama2.c, SentencePiece and Hugging Face files.
func byteName(b byte) string { return fmt.Sprintf("<0x%02X>", b) }

// ID finds the control tokens by their usual names, too.
func (t *llama2) ID(token string) (int, bool) {
	if id, ok := t.vocabulary.ID(token); ok {
		return id, true
	}
	if n, id := t.control.longest(token); n > 0 && n == len(token) {
		return int(id), true
	}
	return 0, false
}

// Encode implements Tokenizer.
func (t *llama2) Encode(s string, special bool) ([]int, error) {
	if err := checkText(s); err != nil {
		return nil, err
	}
	if !special {
		return t.encode(nil, s), nil
	}
	return segments(s, t.control, func(ids []int, text string) ([]int, error) { return t.encode(ids, text), nil })
}

// segments encodes the parts of a text between control tokens.
func segments(s string, control *prefixes, encode func(ids []int, text string) ([]int, error)) (ids []int, err error) {
	for s != "" {
		start, length, id := control.next(s)
		if start > 0 {
			if ids, err = encode(ids, s[:start]); err != nil {
				return nil, err
			}
		}
		if length > 0 {
			ids = append(ids, int(id))
		}
		s = s[start+length:]
	}
	return ids, nil
}

// encode appends the ids of a text without control tokens.
func (t *llama2) encode(ids []int, s string) []int {
	if s == "" {
		return ids
	}
	s = " " + s
	m := mergers.Get().(*merger)
	defer m.release()
	m.add(symbol{start: 0, end: 1, id: t.space})
	for i := 1; i < len(s); {
		n := sequence(s[i:])
		if id := t.find(s[i : i+n]); id >= 0 {
			m.add(symbol{start: int32(i), end: int32(i + n), id: id})
		} else {
			for k := i; k < i+n; k++ {
				m.add(symbol{start: int32(k), end: int32(k + 1), id: int32(s[k]) + llama2Bytes, fixed: true})
			}
		}
		i += n
	}
	m.run(s, t)
	return m.collect(ids)
}

// collect appends the ids of the list.
func (m *merger) collect(ids []int) []int {
	if len(m.symbols) == 0 {
		return ids
	}
	for i := int32(0); i >= 0; i = m.symbols[i].next {
		ids = append(ids, int(m.symbols[i].id))
	}
	return ids
}

// sequence returns the length of a character as llama2.c reads it: a byte and up to three
// continuation bytes, valid or not.
func sequence(s string) int {
	n := 1
	for n < len(s) && n < 4 && s[n]&0xC0 == 0x80 {
		n++
	}
	return n
}

// join implements joiner. llama2.c never merges pieces with a score this low.
func (t *llama2) join(text string, a, b *symbol) (id int32, rank float64, ok bool) {
	id, rank, ok = t.scored.join(text, a, b)
	return id, rank, ok && rank < 1e10
}
