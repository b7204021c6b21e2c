package tokenizer

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// readBERT reads the normalizer of BERT. It can drop the beginning of a text.
func readBERT(data json.RawMessage) (steps []func(string) string, err error) {
	p := struct {
		Type         string
		CleanText    bool  `json:"clean_text"`
		Ideographs   bool  `json:"handle_chinese_chars"`
		StripAccents *bool `json:"strip_accents"`
		Lowercase    bool
	}{CleanText: true, Ideographs: true, Lowercase: true}
	if err := decode(data, "normalizer", &p); err != nil {
		return nil, err
	}
	strip := p.Lowercase
	if p.StripAccents != nil {
		strip = *p.StripAccents
	}
	for _, s := range []struct {
		on   bool
		step func(string) string
	}{{p.CleanText, cleanText}, {p.Ideographs, spaceIdeographs}, {strip, stripAccents}, {p.Lowercase, lowercase}} {
		if s.on {
			steps = append(steps, s.step)
		}
	}
	return steps, nil
}

// cleanText drops control characters, and makes each white space a space.
func cleanText(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case r == 0 || r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co):
			return -1
		case unicode.IsSpace(r):
			return ' '
		}
		return r
	}, s)
}

// ideographs are the characters that BERT takes for words. The gap from U+2B820 to U+2B91F is that of the library.
var ideographs = &unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0x3400, Hi: 0x4DBF, Stride: 1}, {Lo: 0x4E00, Hi: 0x9FFF, Stride: 1}, {Lo: 0xF900, Hi: 0xFAFF, Stride: 1}},
	R32: []unicode.Range32{{Lo: 0x20000, Hi: 0x2A6DF, Stride: 1}, {Lo: 0x2A700, Hi: 0x2B73F, Stride: 1}, {Lo: 0x2B740, Hi: 0x2B81F, Stride: 1},
		{Lo: 0x2B920, Hi: 0x2CEAF, Stride: 1}, {Lo: 0x2F800, Hi: 0x2FA1F, Stride: 1}},
}

// spaceIdeographs puts spaces around ideographs.
func spaceIdeographs(s string) string {
	var b strings.Builder
	done := 0
	for i, r := range s {
		if r >= 0x3400 && unicode.Is(ideographs, r) {
			b.WriteString(s[done:i])
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
			done = i + utf8.RuneLen(r)
		}
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// stripAccents decomposes characters, and drops the marks. Marks that can be reordered are dropped first, which leaves the
// order of all others as it is: package norm changes texts with many in a row.
func stripAccents(s string) string {
	dropped := func(r rune) bool {
		if !unicode.Is(unicode.Mn, r) {
			return false
		}
		var b [utf8.UTFMax]byte
		return norm.NFD.Properties(b[:utf8.EncodeRune(b[:], r)]).CCC() != 0
	}
	return dropping(norm.NFD.String(dropping(s, dropped)), func(r rune) bool { return unicode.Is(unicode.Mn, r) })
}

// dropping drops characters.
func dropping(s string, dropped func(r rune) bool) string {
	return strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf && dropped(r) {
			return -1
		}
		return r
	}, s)
}

// lowercase maps each character separately. Only U+0130 has a lower case of two characters.
func lowercase(s string) string {
	if strings.Contains(s, "\u0130") {
		s = strings.ReplaceAll(s, "\u0130", "i\u0307")
	}
	return strings.Map(unicode.ToLower, s)
}
