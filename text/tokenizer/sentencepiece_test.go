package tokenizer

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// message appends fields: strings and byte slices, numbers and floats.
func message(fields ...any) []byte {
	var b []byte
	for i := 0; i < len(fields); i += 2 {
		number := protowire.Number(fields[i].(int))
		switch v := fields[i+1].(type) {
		case string:
			b = protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), v)
		case []byte:
			b = protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), v)
		case int:
			b = protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), uint64(v))
		case float64:
			b = protowire.AppendFixed32(protowire.AppendTag(b, number, protowire.Fixed32Type), math.Float32bits(float32(v)))
		}
	}
	return b
}

// base are the pieces that every model needs, and two letters.
func base() []byte {
	return message(1, message(1, "<unk>", 3, pieceUnknown), 1, message(1, "<s>", 3, pieceControl),
		1, message(1, meta, 2, -2.0), 1, message(1, "a", 2, -1.0), 1, message(1, "b", 2, -1.5))
}

// What is not supported exactly is rejected, and the error names it.
func TestRejectedSentencePiece(t *testing.T) {
	table := func(trie []uint32, texts string) []byte {
		b := binary.LittleEndian.AppendUint32(nil, uint32(4*len(trie)))
		for _, unit := range trie {
			b = binary.LittleEndian.AppendUint32(b, unit)
		}
		return append(b, texts...)
	}
	for _, c := range []struct {
		more []byte
		want string
	}{
		{nil, ""},
		{message(2, message(3, modelBPE)), ""},
		{message(2, message(3, 3)), "WORD"},
		{message(2, message(3, 4)), "CHAR"},
		{message(2, message(24, 1)), "treat_whitespace_as_suffix"},
		{message(3, message(5, 0)), "escape_whitespaces"},
		{message(5, message(2, "xxxxx")), "denormalizer_spec"},
		{message(3, message(2, "abc")), "precompiled_charsmap"},
		{message(3, message(2, table([]uint32{0}, "no end"))), "zero byte"},
		{message(3, message(2, table([]uint32{0xFFFFFFFF}, "a\x00"))), ""}, // offsets out of range are no matches
		{message(3, message(2, "\xFF\xFF\xFF\xFFaaaa")), "trie"},
		{message(2, message(35, 1)), "byte_fallback"},
		{message(1, message(1, "<0x41>", 3, pieceByte)), "byte_fallback"},
		{message(1, message(1, "a")), "twice"},
		{message(1, message(1, "<unk2>", 3, pieceUnknown)), "second unknown"},
		{message(1, message(1, "c", 3, 9)), "type 9"},
		{message(1, message(1, "c", 2, math.NaN())), "NaN"},
		{message(1, message(1, strings.Repeat("c", maxPiece+1))), "1025 bytes"},
		{message(1, message(1, "")), "no text"},
		{message(4, message(1, message(1, "ab", 2, meta+" a b"))), ""},
		{message(4, message(1, message(1, "ab", 2, meta+" ab"))), "self_test_data 0"},
		{[]byte{0x0A, 0x7F}, "field 1"},
	} {
		_, err := Parse(append(base(), c.more...))
		if c.want == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error with %q", err, c.want)
			continue
		}
		checkError(t, err)
	}
	if _, err := Parse(message(1, message(1, "a"))); err == nil || !strings.Contains(err.Error(), "unknown piece") {
		t.Error(err)
	}
}

// Without an unknown piece's surface in the file, unknown characters decode to the standard's.
func TestUnknownPieces(t *testing.T) {
	tok, err := Parse(base())
	if err != nil {
		t.Fatal(err)
	}
	ids, err := tok.Encode("axyb", false)
	if err != nil || len(ids) != 4 {
		t.Fatalf("%v, %v: want one id for xy", ids, err)
	}
	if text, err := Decode(tok, ids); err != nil || text != "a \u2047 b" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestPrefixes(t *testing.T) {
	p := newPrefixes([]entry{{"a", 1}, {"ab", 2}, {"abcd", 3}, {"b", 4}, {"ab", 5}, {"", 6}, {"日", 7}})
	for _, c := range []struct {
		text          string
		start, length int
		id            int32
	}{
		{"", 0, 0, 0}, {"xabcx", 1, 2, 5}, {"xabcd", 1, 4, 3}, {"ba", 0, 1, 4}, {"\xE6\x97x", 3, 0, 0}, {"x日", 1, 3, 7},
	} {
		if start, length, id := p.next(c.text); start != c.start || length != c.length || id != c.id {
			t.Errorf("%q: got %d, %d, %d, want %d, %d, %d", c.text, start, length, id, c.start, c.length, c.id)
		}
	}
}
