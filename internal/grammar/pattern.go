package grammar

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"unicode"
	"unicode/utf8"
)

// maxPattern bounds the bytes of regular expressions.
const maxPattern = 4096

// writer writes the characters of a regular expression: in a string of JSON, or as they are.
type writer struct {
	one func(r rune) Part
	// ranges returns a character of pairs of the first and the last one, nil for none.
	ranges func(pairs []rune) Part
}

var (
	inString = writer{func(r rune) Part { return runes(r, r) }, class}
	plain    = writer{func(r rune) Part { return characters([]rune{r, r}) }, characters}
)

// Pattern returns the grammar of texts that match a regular expression from their beginning to their end.
func Pattern(s string, limits ...Limit) (*Grammar, error) {
	if len(s) > maxPattern {
		return nil, fmt.Errorf("%d bytes, at most %d are supported", len(s), maxPattern)
	}
	p, err := plain.pattern(s)
	if err != nil {
		return nil, err
	}
	return NewBuilder(limits...).Build(p)
}

// pattern returns strings of JSON that match a regular expression of ECMA 262 from their beginning to their end. Of a class,
// characters between space and ~ are used if there are any: the dialects of regular expressions differ in the others.
func pattern(s string) (Part, error) {
	t, alone, err := ecma(s)
	if err != nil {
		return nil, err
	}
	if !alone {
		return nil, errors.New("look-ahead or a word boundary")
	}
	return inString.pattern(t)
}

func (w writer) pattern(s string) (Part, error) {
	re, err := syntax.Parse(s, syntax.Perl)
	if e, ok := errors.AsType[*syntax.Error](err); ok {
		return nil, fmt.Errorf("a regular expression that is not supported: %s: %.40q", e.Code, e.Expr)
	}
	if err != nil { // cannot happen: the others are no results of the package
		return nil, err
	}
	return w.part(re, true, true)
}

// part returns the texts of an expression that begins or ends a string.
func (w writer) part(re *syntax.Regexp, begins, ends bool) (Part, error) {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return Seq(), nil
	case syntax.OpBeginText, syntax.OpBeginLine:
		if begins {
			return Seq(), nil
		}
	case syntax.OpEndText, syntax.OpEndLine:
		if ends {
			return Seq(), nil
		}
	case syntax.OpLiteral:
		return w.literal(re)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpCharClass:
		return w.class(re)
	case syntax.OpCapture:
		return w.part(re.Sub[0], begins, ends)
	case syntax.OpConcat:
		return w.list(re.Sub, func(i int) (bool, bool) { return begins && i == 0, ends && i == len(re.Sub)-1 }, Seq)
	case syntax.OpAlternate:
		return w.list(re.Sub, func(int) (bool, bool) { return begins, ends }, Alt)
	}
	return w.repeated(re)
}

// literal returns the characters of a text. Package syntax makes one whose case does not matter of classes such as [Aa].
func (w writer) literal(re *syntax.Regexp) (Part, error) {
	list := make([]Part, len(re.Rune))
	for i, r := range re.Rune {
		if re.Flags&syntax.FoldCase != 0 {
			list[i] = w.ranges(bothCases(r))
		} else {
			list[i] = w.one(r)
		}
		if list[i] == nil {
			return nil, fmt.Errorf("%U is no character", r)
		}
	}
	return Seq(list...), nil
}

// bothCases returns the ranges of a character in both cases. Of a letter of ASCII they are those in ASCII: the dialects differ in
// the others.
func bothCases(r rune) (ranges []rune) {
	for f := r; ; {
		if (f <= unicode.MaxASCII) == (r <= unicode.MaxASCII) {
			ranges = append(ranges, f, f)
		}
		if f = unicode.SimpleFold(f); f == r {
			return ranges
		}
	}
}

// class returns a character of a class, or of all.
func (w writer) class(re *syntax.Regexp) (Part, error) {
	if p := w.ranges(rangesOf(re)); p != nil {
		return p, nil
	}
	return nil, errors.New("a class without characters that can be written")
}

// rangesOf returns the characters of a class, or all.
func rangesOf(re *syntax.Regexp) []rune {
	switch re.Op {
	case syntax.OpAnyChar:
		return others(nil)
	case syntax.OpAnyCharNotNL:
		return others([]rune{'\n', '\n'})
	}
	return re.Rune
}

// list combines the parts of several expressions.
func (w writer) list(sub []*syntax.Regexp, edges func(i int) (begins, ends bool), combine func(...Part) Part) (Part, error) {
	var list []Part
	for i, x := range sub {
		begins, ends := edges(i)
		p, err := w.part(x, begins, ends)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return combine(list...), nil
}

// repeated returns the part of an expression that is repeated.
func (w writer) repeated(re *syntax.Regexp) (Part, error) {
	counts := countsOf(re)
	if counts == nil {
		return nil, fmt.Errorf("%.40q is not supported here", re.String())
	}
	p, err := w.part(re.Sub[0], false, false)
	if err != nil {
		return nil, err
	}
	return Repeat(p, counts[0], counts[1]), nil
}

// countsOf returns how often an expression is repeated, nil if it is none of that kind.
func countsOf(re *syntax.Regexp) []int {
	return map[syntax.Op][]int{syntax.OpStar: {0, -1}, syntax.OpPlus: {1, -1}, syntax.OpQuest: {0, 1}, syntax.OpRepeat: {re.Min, re.Max}}[re.Op]
}

// class returns a character of ranges as in a string of JSON, nil if there is none. Those beyond 16 bits are two characters for some
// readers, and are used if there are no others.
func class(ranges []rune) Part {
	var plain, control []Part
	var short []rune
	for i := 0; i+1 < len(ranges); i += 2 {
		low, high := ranges[i], ranges[i+1]
		if first, last := max(low, ' '), min(high, '~'); first <= last {
			plain = append(plain, runes(first, last))
		}
		for r := low; r <= min(high, ' '-1); r++ {
			control = append(control, runes(r, r))
		}
		if first, last := max(low, '~'+1), min(high, 0xffff); first <= last {
			short = append(short, first, last)
		}
	}
	if plain != nil {
		return oneOf(plain)
	}
	if p := characters(short); p != nil {
		return Alt(append(control, p)...)
	}
	if control != nil {
		return Alt(control...)
	}
	return characters(ranges)
}

// runes returns a character from low to high as in a string of JSON. Above ~ low and high are the same.
func runes(low, high rune) Part {
	if low > '~' || low < ' ' {
		if !utf8.ValidRune(low) {
			low = utf8.RuneError
		}
		s := Quoted(string(low))
		return Text(s[1 : len(s)-1])
	}
	var list []Part
	for _, special := range []rune{'"', '\\', '~' + 1} {
		if end := min(special-1, high); low <= end {
			list = append(list, Between(byte(low), byte(end)))
		}
		if low <= special && special <= high {
			list = append(list, Text(`\`+string(special)))
		}
		low = max(low, special+1)
	}
	return oneOf(list)
}

// oneOf is Alt without a state for one part alone: so that it can be a part of a fixed text.
func oneOf(list []Part) Part {
	if len(list) == 1 {
		return list[0]
	}
	return Alt(list...)
}
