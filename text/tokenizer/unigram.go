package tokenizer

import (
	"math"
	"unicode/utf8"
)

// unknownPenalty is subtracted from the lowest score for characters without a piece.
const unknownPenalty = 10

// unigram finds the split with the highest sum of scores.
type unigram struct {
	pieces  *prefixes
	score   func(id int32, length int) float64
	unknown int32
	penalty float64               // score of an unknown character
	round   func(float64) float64 // precision of sums: SentencePiece stores them in 32 bits, Hugging Face in 64
}

// best is the best split that ends at a byte.
type best struct {
	sum   float64
	start int32 // of its last piece, -1 for none
	id    int32
}

// split implements pieceModel.
func (u *unigram) split(text string, yield func(start, end, id int32)) {
	ends := u.search(text)
	var cuts []int32
	for end := int32(len(text)); end > 0; end = ends[end].start {
		cuts = append(cuts, end)
	}
	for i := len(cuts) - 1; i >= 0; i-- {
		e := ends[cuts[i]]
		yield(e.start, cuts[i], e.id)
	}
}

func (u *unigram) search(text string) []best {
	ends := make([]best, len(text)+1)
	for i := range ends[1:] {
		ends[i+1].start = -1
	}
	for start := 0; start < len(text); {
		till := ends[start].sum
		char := min(charLength(text[start]), len(text)-start)
		single := false
		u.pieces.all(text[start:], func(length int, id int32) bool {
			u.improve(&ends[start+length], u.score(id, length)+till, start, id)
			single = single || length == char
			return true
		})
		if !single {
			u.improve(&ends[start+char], u.round(u.penalty+till), start, u.unknown)
		}
		start += char
	}
	return ends
}

func (u *unigram) improve(b *best, sum float64, start int, id int32) {
	if b.start < 0 || sum > b.sum {
		*b = best{u.round(sum), int32(start), id}
	}
}

// charLength returns the length that the first byte of a character declares.
func charLength(first byte) int {
	switch {
	case first < 0xC0:
		return 1
	case first < 0xE0:
		return 2
	case first < 0xF0:
		return 3
	}
	return utf8.UTFMax
}

// model returns the model of a SentencePiece file.
func (m *modelProto) model(symbols *prefixes) pieceModel {
	if m.trainer.model == modelBPE {
		return m.bpe(symbols)
	}
	return m.unigram()
}

func (m *modelProto) unigram() pieceModel {
	var list []entry
	u := &unigram{round: func(f float64) float64 { return float64(float32(f)) }}
	lowest, highest := float32(math.MaxFloat32), float32(0x1p-126) // the start of the maximum is SentencePiece's FLT_MIN
	for id, p := range m.pieces {
		switch p.kind {
		case pieceNormal:
			lowest, highest = min(lowest, p.score), max(highest, p.score)
			list = append(list, entry{p.text, int32(id)})
		case pieceUserDefined:
			list = append(list, entry{p.text, int32(id)})
		case pieceUnknown:
			u.unknown = int32(id)
		}
	}
	u.pieces = newPrefixes(list)
	u.penalty = float64(lowest - unknownPenalty)
	u.score = func(id int32, length int) float64 {
		if p := &m.pieces[id]; p.kind == pieceNormal {
			return float64(p.score)
		}
		return float64(float32(length)*highest) - 0.1 // user defined symbols always win
	}
	return u
}

// pieceBPE is SentencePiece's byte pair encoding. Unused pieces are merged like others and split
// afterwards.
type pieceBPE struct {
	scored
	symbols *prefixes // user defined: one piece each, never merged
	unused  []bool
	unknown int32
	whole   bool // words cannot be split one by one
}

func (m *modelProto) bpe(symbols *prefixes) pieceModel {
	b := &pieceBPE{scored: newScored(len(m.pieces)), symbols: symbols, unused: make([]bool, len(m.pieces))}
	for id, p := range m.pieces {
		switch p.kind {
		case pieceNormal, pieceUserDefined, pieceUnused:
			b.add(p.text, id, -float64(p.score))
			b.unused[id] = p.kind == pieceUnused
			b.whole = b.whole || b.unused[id] || wordEnd(p.text) < len(p.text)
		case pieceUnknown:
			b.unknown = int32(id)
		}
	}
	return b
}

// taking records how unused pieces were joined.
type taking struct {
	*pieceBPE
	parts map[string]int32 // length of the left part
}

func (t *taking) join(text string, a, b *symbol) (id int32, rank float64, ok bool) {
	id, rank, ok = t.scored.join(text, a, b)
	if ok && t.unused[id] {
		if t.parts == nil {
			t.parts = make(map[string]int32)
		}
		t.parts[text[a.start:b.end]] = a.end - a.start
	}
	return id, rank, ok
}

// split implements pieceModel.
func (b *pieceBPE) split(text string, yield func(start, end, id int32)) {
	for at := 0; at < len(text); {
		end := len(text)
		if !b.whole {
			end = at + wordEnd(text[at:])
		}
		b.splitWord(text[at:end], func(from, to, id int32) { yield(int32(at)+from, int32(at)+to, id) })
		at = end
	}
}

func (b *pieceBPE) splitWord(text string, yield func(start, end, id int32)) {
	m := mergers.Get().(*merger)
	defer m.release()
	for i := 0; i < len(text); {
		n, _ := b.symbols.longest(text[i:])
		fixed := n > 0
		if !fixed {
			n = min(charLength(text[i]), len(text)-i)
		}
		m.add(symbol{start: int32(i), end: int32(i + n), fixed: fixed})
		i += n
	}
	t := &taking{pieceBPE: b}
	m.run(text, t)
	for i := int32(0); i >= 0; i = m.symbols[i].next {
		t.emit(text, m.symbols[i].start, m.symbols[i].end, yield)
	}
}

// emit yields a symbol, or the parts of an unused one.
func (t *taking) emit(text string, start, end int32, yield func(start, end, id int32)) {
	id := t.find(text[start:end])
	if id < 0 {
		yield(start, end, t.unknown)
		return
	}
	left, parted := t.parts[text[start:end]]
	if !t.unused[id] || !parted {
		yield(start, end, id)
		return
	}
	t.emit(text, start, start+left, yield)
	t.emit(text, start+left, end, yield)
}
