package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestWordEnd(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 1, "▁": 3, "▁▁ab▁c": 8, "a▁": 1, "▁a▁▁b": 4, "▁▁▁": 9, "日▁": 3} {
		if got := wordEnd(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

// Encoding word by word gives the same ids as encoding the whole text.
func TestWordByWord(t *testing.T) {
	tok := open(t, "fallback.json").(*hugging)
	words := tok.model.(*pairBPE)
	whole := *words
	whole.whole = true

	proto, err := readModel(content(t, "bpe.model"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range proto.pieces {
		if proto.pieces[i].kind == pieceUnused {
			proto.pieces[i].kind = pieceNormal
		}
	}
	pieces := proto.bpe(newPrefixes(proto.entries(pieceUserDefined))).(*pieceBPE)
	wholePieces := *pieces
	wholePieces.whole = true
	if words.whole || pieces.whole {
		t.Fatal("no file is encoded word by word")
	}
	for _, text := range append(readVectors(t).Texts, strings.Repeat("the model  reads ", 200)) {
		text = strings.ReplaceAll(text, " ", meta)
		got, err := words.encode(nil, text)
		want, err2 := whole.encode(nil, text)
		if err != nil || err2 != nil || !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v, %v, %v", text, got, want, err, err2)
		}
		if got, want := splitOf(pieces, text), splitOf(&wholePieces, text); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func splitOf(m pieceModel, text string) string {
	var b strings.Builder
	m.split(text, func(start, end, id int32) { fmt.Fprintf(&b, "%d-%d:%d ", start, end, id) })
	return b.String()
}
