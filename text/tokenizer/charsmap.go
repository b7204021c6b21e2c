package tokenizer

import (
	"bytes"
	"encoding/binary"
)

// charsmap is SentencePiece's precompiled table of replacements. A double array trie, in the format
// of darts-clone, maps byte sequences to offsets of NUL-terminated texts.
type charsmap struct {
	units []uint32
	texts []byte
}

// parseCharsmap reads a table; the place is for errors.
func parseCharsmap(data []byte, place string) (*charsmap, error) {
	if len(data) < 4 {
		return nil, malformed(place, "%d bytes", len(data))
	}
	declared := binary.LittleEndian.Uint32(data)
	data = data[4:]
	if declared == 0 || declared%4 != 0 || int64(declared) > int64(len(data)) {
		return nil, malformed(place, "a trie of %d bytes in %d", declared, len(data))
	}
	size := int(declared)
	c := &charsmap{units: make([]uint32, size/4), texts: bytes.Clone(data[size:])}
	for i := range c.units {
		c.units[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	if n := len(c.texts); n == 0 || c.texts[n-1] != 0 {
		return nil, malformed(place, "the texts do not end with a zero byte")
	}
	for text := range bytes.SplitSeq(c.texts, []byte{0}) {
		if len(text) > maxPiece {
			return nil, unsupported(place, "a replacement of %d bytes, at most %d are allowed", len(text), maxPiece)
		}
	}
	return c, nil
}

// offset returns the distance of a unit's children.
func offset(unit uint32) uint32 { return (unit >> 10) << ((unit & (1 << 9)) >> 6) }

// prefixes yields the prefixes of s that have a replacement, from short to long, with the offset of the replacement in texts.
// Offsets out of range, which no correct file contains, end the search.
func (c *charsmap) prefixes(s string, yield func(length, offset int) bool) {
	node := offset(c.units[0])
	for i := range len(s) {
		node ^= uint32(s[i])
		if int64(node) >= int64(len(c.units)) {
			return
		}
		unit := c.units[node]
		if unit&(1<<31|0xFF) != uint32(s[i]) {
			return
		}
		node ^= offset(unit)
		if leaf := unit>>8&1 == 1; !leaf {
			continue
		}
		if int64(node) >= int64(len(c.units)) {
			return
		}
		if v := int(c.units[node] & (1<<31 - 1)); v < len(c.texts) && !yield(i+1, v) {
			return
		}
	}
}

// text returns the replacement at an offset.
func (c *charsmap) text(offset int) string {
	text := c.texts[offset:]
	return string(text[:bytes.IndexByte(text, 0)])
}

// longest returns the replacement of the longest known prefix of s.
func (c *charsmap) longest(s string) (out string, length int, ok bool) {
	if c == nil {
		return "", 0, false
	}
	value := -1
	c.prefixes(s, func(n, offset int) bool {
		value, length = offset, n
		return true
	})
	if value < 0 {
		return "", 0, false
	}
	return c.text(value), length, true
}
