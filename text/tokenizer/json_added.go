package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// added finds added tokens in a text.
type added struct {
	tokens []entry // pattern, and index in all
	all    []addedToken
	find   *prefixes
}

func (a *added) build(all []addedToken) {
	a.all, a.find = all, newPrefixes(a.tokens)
	a.tokens = nil
}

// split yields the parts of a text in order: an added token with its id, other text with id -1.
// First reports whether a part is the beginning of the text. Special tokens are only found on demand.
// A token with rstrip takes the spaces after it even if they belong to the next token, as in
// Hugging Face's library.
func (a *added) split(s string, special bool, yield func(part string, first bool, id int) error) error {
	begin := 0  // of the text not yet yielded
	spaces := 0 // end of the spaces that the last token has taken
	for from := 0; from < len(s); {
		start, length, i := a.find.next(s[from:])
		if length == 0 {
			break
		}
		start += from
		end := start + length
		from = end
		token := &a.all[i]
		if token.Special && !special || token.SingleWord && insideWord(s, start, end) {
			continue
		}
		if token.LStrip && begin < start {
			start = begin + len(strings.TrimRightFunc(s[begin:start], unicode.IsSpace))
		}
		if token.RStrip {
			if end > spaces { // otherwise the spaces from here are known
				spaces = len(s) - len(strings.TrimLeftFunc(s[end:], unicode.IsSpace))
			}
			end = spaces
		}
		if begin < start {
			if err := yield(s[begin:start], begin == 0, -1); err != nil {
				return err
			}
		}
		if err := yield("", false, token.ID); err != nil {
			return err
		}
		begin = end
	}
	if begin < len(s) {
		return yield(s[begin:], begin == 0, -1)
	}
	return nil
}

// insideWord reports whether a word character stands next to s[start:end].
func insideWord(s string, start, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(s[:start])
	after, _ := utf8.DecodeRuneInString(s[end:])
	return start > 0 && isWord(before) || end < len(s) && isWord(after)
}

// isWord is \w of Unicode.
func isWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control)
}

type addedToken struct {
	ID         int
	Content    string
	SingleWord bool `json:"single_word"`
	LStrip     bool
	RStrip     bool
	Normalized bool
	Special    bool
}
