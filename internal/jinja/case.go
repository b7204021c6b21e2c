package jinja

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longUpper are the characters whose upper case has several, each with it (Unicode's SpecialCasing.txt).
const longUpper = "ßSS ŉʼN ǰJ\u030C ΐΙ\u0308\u0301 ΰΥ\u0308\u0301 ևԵՒ ẖH\u0331 ẗT\u0308 ẘW\u030A ẙY\u030A ẚAʾ ὐΥ\u0313 " +
	"ὒΥ\u0313\u0300 ὔΥ\u0313\u0301 ὖΥ\u0313\u0342 ᾀἈΙ ᾁἉΙ ᾂἊΙ ᾃἋΙ ᾄἌΙ ᾅἍΙ ᾆἎΙ ᾇἏΙ ᾈἈΙ ᾉἉΙ ᾊἊΙ ᾋἋΙ ᾌἌΙ ᾍἍΙ ᾎἎΙ ᾏἏΙ " +
	"ᾐἨΙ ᾑἩΙ ᾒἪΙ ᾓἫΙ ᾔἬΙ ᾕἭΙ ᾖἮΙ ᾗἯΙ ᾘἨΙ ᾙἩΙ ᾚἪΙ ᾛἫΙ ᾜἬΙ ᾝἭΙ ᾞἮΙ ᾟἯΙ ᾠὨΙ ᾡὩΙ ᾢὪΙ ᾣὫΙ ᾤὬΙ ᾥὭΙ ᾦὮΙ ᾧὯΙ ᾨὨΙ ᾩὩΙ ᾪὪΙ " +
	"ᾫὫΙ ᾬὬΙ ᾭὭΙ ᾮὮΙ ᾯὯΙ ᾲᾺΙ ᾳΑΙ ᾴΆΙ ᾶΑ\u0342 ᾷΑ\u0342Ι ᾼΑΙ ῂῊΙ ῃΗΙ ῄΉΙ ῆΗ\u0342 ῇΗ\u0342Ι ῌΗΙ ῒΙ\u0308\u0300 " +
	"ΐΙ\u0308\u0301 ῖΙ\u0342 ῗΙ\u0308\u0342 ῢΥ\u0308\u0300 ΰΥ\u0308\u0301 ῤΡ\u0313 ῦΥ\u0342 ῧΥ\u0308\u0342 ῲῺΙ ῳΩΙ " +
	"ῴΏΙ ῶΩ\u0342 ῷΩ\u0342Ι ῼΩΙ ﬀFF ﬁFI ﬂFL ﬃFFI ﬄFFL ﬅST ﬆST ﬓՄՆ ﬔՄԵ ﬕՄԻ ﬖՎՆ ﬗՄԽ"

// toUpper replaces these characters.
var toUpper = func() *strings.Replacer {
	var list []string
	for pair := range strings.FieldsSeq(longUpper) {
		_, n := utf8.DecodeRuneInString(pair)
		list = append(list, pair[:n], pair[n:])
	}
	return strings.NewReplacer(list...)
}()

// upper returns a text in upper case, as Python does.
func upper(s string) string { return strings.ToUpper(toUpper.Replace(s)) }

// lower returns a text in lower case, as Python does: a sigma at the end of a word has another form.
func lower(s string) string {
	if !strings.ContainsAny(s, "ΣİI") {
		return strings.ToLower(s)
	}
	text := []rune(s)
	var b strings.Builder
	for i, c := range text {
		switch {
		case c == 'İ':
			b.WriteString("i\u0307")
		case c == 'Σ' && isCased(text[:i], true) && !isCased(text[i+1:], false):
			b.WriteRune('ς')
		default:
			b.WriteRune(unicode.ToLower(c))
		}
	}
	return b.String()
}

// isCased reports whether the character at the end or the beginning of a text has a case, without marks and the like.
func isCased(text []rune, atEnd bool) bool {
	if atEnd {
		text = slices.Clone(text[max(len(text)-maxMarks, 0):])
		slices.Reverse(text)
	}
	for _, c := range text[:min(len(text), maxMarks)] {
		if !unicode.In(c, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk) && !strings.ContainsRune("'.:\u00B7\u2018\u2019", c) {
			return unicode.IsUpper(c) || unicode.IsLower(c) || unicode.IsTitle(c)
		}
	}
	return false
}

// maxMarks bounds the marks between a sigma and a letter.
const maxMarks = 32

// first returns the first character of a text in upper case for titles, and the text after it.
func first(s string) (head, rest string) {
	_, n := utf8.DecodeRuneInString(s)
	head, rest = s[:n], s[n:]
	if long := toUpper.Replace(head); long != head {
		c, n := utf8.DecodeRuneInString(long)
		return string(unicode.ToTitle(c)) + lower(long[n:]), rest
	}
	return strings.ToTitle(head), rest
}

// title begins each word with a capital.
func title(s string) string {
	var b strings.Builder
	for s != "" {
		i := strings.IndexFunc(s, unicode.IsLetter)
		if i < 0 {
			break
		}
		b.WriteString(s[:i])
		head, rest := first(s[i:])
		n := strings.IndexFunc(rest, func(c rune) bool { return !unicode.IsLetter(c) })
		if n < 0 {
			n = len(rest)
		}
		b.WriteString(head + lower(rest[:n]))
		s = rest[n:]
	}
	return b.String() + s
}

// titleWords is the filter title: words are what white space, hyphens and opening brackets separate.
func titleWords(s string) string {
	var b strings.Builder
	for s != "" {
		n := strings.IndexFunc(s, func(c rune) bool { return isSpace(c) || strings.ContainsRune("-({[<", c) })
		if n < 0 {
			n = len(s)
		}
		if n > 0 {
			_, size := utf8.DecodeRuneInString(s)
			b.WriteString(upper(s[:size]) + lower(s[size:n]))
		}
		for n < len(s) {
			c, size := utf8.DecodeRuneInString(s[n:])
			if !isSpace(c) && !strings.ContainsRune("-({[<", c) {
				break
			}
			b.WriteRune(c)
			n += size
		}
		s = s[n:]
	}
	return b.String()
}

func capitalize(s string) string {
	if s == "" {
		return ""
	}
	head, rest := first(s)
	return head + lower(rest)
}
