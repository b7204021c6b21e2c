package answer

import (
	"slices"
	"unicode/utf8"

	"github.com/etrun-go/etrun/text/tokenizer"
)

// offsets counts where the tokens of a text begin in it, in characters. A token that is a part of a character begins where that does.
type offsets struct {
	tokenizer tokenizer.Tokenizer
	at        int
	partial   []byte // of an incomplete character
	begun     bool   // some token has a text
	dropped   []int  // a token whose text was a space that is dropped at the beginning
}

// next returns where the next token begins.
func (o *offsets) next(id int) int {
	at := o.at
	o.partial = append(o.partial, o.text(id)...)
	for utf8.FullRune(o.partial) {
		o.partial = o.partial[character(o.partial):]
		o.at++
	}
	return at
}

// skip passes over the tokens of a prompt that is not part of the text.
func (o *offsets) skip(prompt []int) {
	o.begun = slices.ContainsFunc(prompt, func(id int) bool {
		b, err := o.tokenizer.Append(nil, id)
		return err != nil || len(b) > 0
	})
}

// text returns the text of a token. Where texts begin with a space that was not in them, it is dropped.
func (o *offsets) text(id int) []byte {
	b, err := o.tokenizer.Append(nil, id) // unknown tokens have no text
	if o.begun || len(b) == 0 || err != nil {
		return b
	}
	s, _ := tokenizer.Decode(o.tokenizer, append(o.dropped[:len(o.dropped):len(o.dropped)], id))
	if o.begun = s != ""; !o.begun {
		o.dropped = []int{id} // further ones change nothing
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
