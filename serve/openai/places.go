package openai

import (
	"slices"
	"unicode/utf8"

	"github.com/etrun-go/etrun/text/tokenizer"
)

// places finds where the tokens of a text begin in it, in characters. A token that is a part of a character is where that begins.
type places struct {
	tokenizer tokenizer.Tokenizer
	at        int
	rest      []byte // of an incomplete character
	begun     bool   // some token has a text
	dropped   []int  // a token whose text was a space that is dropped at the beginning
}

// next returns the place of the next token.
func (p *places) next(id int) int {
	at := p.at
	p.rest = append(p.rest, p.text(id)...)
	for utf8.FullRune(p.rest) {
		p.rest = p.rest[character(p.rest):]
		p.at++
	}
	return at
}

// skip passes over the tokens of a prompt that is not part of the text.
func (p *places) skip(prompt []int) {
	p.begun = slices.ContainsFunc(prompt, func(id int) bool {
		b, err := p.tokenizer.Append(nil, id)
		return err != nil || len(b) > 0
	})
}

// text returns the text of a token. Where texts begin with a space that was not in them, it is dropped.
func (p *places) text(id int) []byte {
	b, err := p.tokenizer.Append(nil, id) // unknown tokens have no text
	if p.begun || len(b) == 0 || err != nil {
		return b
	}
	s, _ := tokenizer.Decode(p.tokenizer, append(p.dropped[:len(p.dropped):len(p.dropped)], id))
	if p.begun = s != ""; !p.begun {
		p.dropped = []int{id} // further ones change nothing
	}
	return []byte(s)
}

// character returns the bytes of the first character, as a text has it: of an invalid one those that are replaced at once.
func character(b []byte) int {
	r, n := utf8.DecodeRune(b)
	if r != utf8.RuneError || n > 1 {
		return n
	}
	for n = min(len(b), utf8.UTFMax-1); n > 1 && utf8.FullRune(b[:n]); n-- {
	}
	return n
}
