package isa

import "fmt"

// Disassemble returns one line per command: the index of its first word, and its text. It stops at
// the first invalid word.
func Disassemble(f Family, stream []byte) (text string, err error) {
	r, s := NewReader(f, stream), Step{}
	for {
		ok, err := r.Next(&s)
		if !ok {
			return text, err
		}
		text += fmt.Sprintf("%5d %s\n", s.Word, s.Format(nil))
	}
}
