package tokenizer

import "slices"

type drop uint8

// Decode returns the text of ids. Where Encode puts a space before a text, it is dropped.
// The text is not valid UTF-8 if the tokens of a character are incomplete.
func Decode(t Tokenizer, ids []int) (string, error) {
	var rule leading
	if l, ok := t.(interface{ lead() leading }); ok {
		rule = l.lead()
	}
	var text []byte
	begun := rule.drop == dropNothing
	for _, id := range ids {
		n := len(text)
		var err error
		if text, err = t.Append(text, id); err != nil {
			return "", err
		}
		if !begun && len(text) > n {
			text, begun = rule.apply(text, id)
		}
	}
	return string(text), nil
}

// apply drops from the text of a first token; done is false if the next token is a first one, too.
func (l leading) apply(text []byte, id int) (rest []byte, done bool) {
	if l.drop == dropAll {
		return slices.DeleteFunc(text, func(c byte) bool { return c == ' ' }), true
	}
	if first, ok := l.firsts[id]; ok {
		return []byte(first), true
	}
	if text[0] != ' ' || slices.Contains(l.keeps, id) {
		return text, true
	}
	return text[1:], l.drop != dropPieces || len(text) > 1
}

func (v *vocabulary) lead() leading { return v.leading }
