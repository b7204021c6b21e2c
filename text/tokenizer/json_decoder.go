package tokenizer

import (
	"encoding/json"
	"strings"
)

// Byte-level tokenizers write each byte as one printable character: these bytes as themselves, the
// others as the characters from U+0100 on.
var byteLevel = func() (t struct {
	char [256]string
	of   map[rune]byte
}) {
	t.of = make(map[rune]byte)
	other := rune(0x100)
	for b := range 256 {
		c := rune(b)
		if b < '!' || b > '~' && b < 0xA1 || b == 0xAD {
			c = other
			other++
		}
		t.char[b], t.of[c] = string(c), byte(b)
	}
	return t
}()

func toByteLevel(s string) string {
	var b strings.Builder
	b.Grow(len(s) + len(s)/2)
	for i := range len(s) {
		b.WriteString(byteLevel.char[s[i]])
	}
	return b.String()
}

// fromByteLevel returns the name itself if it is not in the alphabet, as added tokens may be.
func fromByteLevel(name string) string {
	b := make([]byte, 0, len(name))
	for _, r := range name {
		c, ok := byteLevel.of[r]
		if !ok {
			return name
		}
		b = append(b, c)
	}
	return string(b)
}

func fromByteName(name string) string {
	if b, ok := byteOf(name); ok {
		return string([]byte{b})
	}
	return name
}

// decoders returns the steps that turn the name of a token into its bytes. A Strip that follows
// Fuse, or a Metaspace, drops the leading space of the text.
func (t *hugging) decoders(data json.RawMessage) (steps []func(string) string, err error) {
	const place = "decoder"
	if isNull(data) {
		return nil, unsupported(place, "null, which puts a space between tokens")
	}
	fused := false
	err = components(data, place, "decoders", func(kind string, data json.RawMessage) error {
		if t.leading.drop != dropNothing {
			return unsupported(place, "%.40q after a leading space was dropped", kind)
		}
		if fused && kind != "Strip" && kind != "Fuse" {
			return unsupported(place, "%.40q after Fuse", kind)
		}
		var step func(string) string
		var err error
		switch kind {
		case "ByteLevel":
			step, fused = fromByteLevel, true
		case "ByteFallback":
			step = fromByteName
		case "Fuse":
			fused = true
		case "Replace":
			step, err = replaceText(data, place)
		case "Strip":
			err = t.stripDecoder(data, fused)
		case "Metaspace":
			step, err = t.metaspaceDecoder(data)
		case "WordPiece":
			step, err = t.wordPieceDecoder(data, len(steps) > 0 || fused)
		default:
			err = unsupported(place, "type %.40q", kind)
		}
		if step != nil {
			steps = append(steps, step)
		}
		return err
	})
	return steps, err
}

func (t *hugging) stripDecoder(data json.RawMessage, fused bool) error {
	var p struct {
		Type, Content string
		Start, Stop   int
	}
	if err := decode(data, "decoder", &p); err != nil {
		return err
	}
	if !fused || p.Content != " " || p.Start != 1 || p.Stop != 0 {
		return unsupported("decoder", "a Strip of other than one leading space of the text")
	}
	t.leading.drop = dropText
	return nil
}

func (t *hugging) metaspaceDecoder(data json.RawMessage) (func(string) string, error) {
	p, err := metaspaceOf(data, "decoder")
	if err != nil {
		return nil, err
	}
	if p.Scheme != "never" {
		t.leading.drop = dropAll
	}
	return func(name string) string { return strings.ReplaceAll(name, p.Replacement, " ") }, nil
}
