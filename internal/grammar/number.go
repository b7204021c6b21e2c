package grammar

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// limit is the largest integer of maxDigits digits.
const limit = 999_999_999_999_999

// places are the digits that follow the first one of a number: those of decimal numbers, or the further bytes of a character in
// UTF-8.
type places struct{ low, high byte }

var decimal, utf8Bytes = places{'0', '9'}, places{0x80, 0xbf}

// any is n of any digits.
func (p places) any(n int) Part { return Repeat(Between(p.low, p.high), n, n) }

// atLeast is a number of as many digits as s that is not smaller.
func (p places) atLeast(s string) Part {
	if s == "" {
		return Seq()
	}
	same := Seq(Text(s[:1]), p.atLeast(s[1:]))
	if s[0] == p.high {
		return same
	}
	return Alt(same, Seq(Between(s[0]+1, p.high), p.any(len(s)-1)))
}

// atMost is a number of as many digits as s that is not larger.
func (p places) atMost(s string) Part {
	if s == "" {
		return Seq()
	}
	same := Seq(Text(s[:1]), p.atMost(s[1:]))
	if s[0] == p.low {
		return same
	}
	return Alt(same, Seq(Between(p.low, s[0]-1), p.any(len(s)-1)))
}

// sameLength is a number from a to b, which have equally many digits.
func (p places) sameLength(a, b string) Part {
	if a == "" {
		return Seq()
	}
	if a[0] == b[0] {
		return Seq(Text(a[:1]), p.sameLength(a[1:], b[1:]))
	}
	list := []Part{Seq(Text(a[:1]), p.atLeast(a[1:])), Seq(Text(b[:1]), p.atMost(b[1:]))}
	if a[0]+1 < b[0] {
		list = append(list, Seq(Between(a[0]+1, b[0]-1), p.any(len(a)-1)))
	}
	return Alt(list...)
}

// natural is a number from a to b without a sign, and what follows a number of so many digits.
func natural(a, b int64, end func(digits int) Part) (list []Part) {
	for a <= b {
		last := int64(9)
		for last < a {
			last = last*10 + 9
		}
		last = min(last, b)
		s := strconv.FormatInt(a, 10)
		list = append(list, Seq(decimal.sameLength(s, strconv.FormatInt(last, 10)), end(len(s))))
		a = last + 1
	}
	return list
}

// nothing follows a number.
func nothing(int) Part { return Seq() }

// bound is one of numbers; without a value there is none.
type bound struct {
	value *big.Rat
	open  bool // it is excluded itself
}

// negated returns the bound of the negative numbers.
func (x bound) negated() bound {
	if x.value == nil {
		return x
	}
	return bound{new(big.Rat).Neg(x.value), x.open}
}

// bounds are those of a number.
type bounds struct {
	low, high    bound
	integersOnly bool
}

// part returns the numbers within the bounds, of at most maxDigits digits: readers that know no other numbers than doubles do not
// confuse these, and find them within the bounds, too.
func (x *bounds) part(j *jsonParts) (Part, error) {
	list := x.unsigned(x.low, x.high, false, j)
	for _, p := range x.unsigned(x.high.negated(), x.low.negated(), true, j) {
		list = append(list, Seq(Text("-"), p))
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no number of at most %d digits is between the bounds", maxDigits)
	}
	return Alt(list...), nil
}

// unsigned returns the numbers between two bounds that are not negative, or that are positive.
func (x *bounds) unsigned(low, high bound, positive bool, j *jsonParts) []Part {
	a, b := mark{open: positive}, mark{whole: limit}
	if low.value != nil && (low.value.Sign() > 0 || low.value.Sign() == 0 && low.open) {
		a = markOf(low, true)
	}
	if high.value != nil && high.value.Sign() < 0 || a.whole > limit {
		return nil
	}
	if high.value != nil && high.value.Cmp(new(big.Rat).SetInt64(limit)) <= 0 {
		b = markOf(high, false)
	}
	if x.integersOnly {
		return natural(a.next(), b.last(), nothing)
	}
	if a.whole == b.whole {
		return j.wholes(a.whole, &a, &b)
	}
	if a.whole > b.whole {
		return nil
	}
	list := append(j.wholes(a.whole, &a, nil), j.wholes(b.whole, nil, &b)...)
	return append(list, natural(a.whole+1, b.whole-1, j.fraction)...)
}

// mark is a bound of numbers without a sign, in digits.
type mark struct {
	whole int64
	frac  string // digits after the point, none of them a last zero
	open  bool
}

// markOf returns a bound with the digits that numbers have: the next one up or down.
func markOf(x bound, up bool) mark {
	whole := new(big.Int).Quo(x.value.Num(), x.value.Denom())
	if !whole.IsInt64() || whole.Int64() > limit {
		return mark{whole: limit + 1}
	}
	n := fractionDigits(len(whole.String()))
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
	scaled, rest := new(big.Int).QuoRem(new(big.Int).Mul(x.value.Num(), scale), x.value.Denom(), new(big.Int))
	if up && rest.Sign() != 0 {
		scaled.Add(scaled, big.NewInt(1))
	}
	s := fmt.Sprintf("%0*s", n+1, scaled)
	near, _ := new(big.Rat).SetFrac(scaled, scale).Float64()
	value, _ := x.value.Float64()
	// A bound that is excluded is not the number beside it, but for readers of doubles.
	m := mark{frac: strings.TrimRight(s[len(s)-n:], "0"), open: x.open && near == value}
	m.whole, _ = strconv.ParseInt(s[:len(s)-n], 10, 64) // at most limit+1
	return m
}

// next returns the first integer behind a lower bound.
func (m mark) next() int64 {
	if m.frac != "" || m.open {
		return m.whole + 1
	}
	return m.whole
}

// last returns the last integer before an upper bound.
func (m mark) last() int64 {
	if m.frac == "" && m.open {
		return m.whole - 1
	}
	return m.whole
}

// fractionDigits returns how many digits can be after the point of a number with so many before it.
func fractionDigits(before int) int { return min(maxFraction, maxDigits-before) }

// fraction is any fraction, or none, of a number with so many digits before the point.
func (j *jsonParts) fraction(before int) Part {
	n := fractionDigits(before)
	if n == 0 {
		return Seq()
	}
	return Opt(Seq(Text("."), digit, j.further[n-1]))
}

// wholes returns the numbers with certain digits before the point, at least low and at most high; nil is no bound.
func (j *jsonParts) wholes(whole int64, low, high *mark) []Part {
	text := strconv.FormatInt(whole, 10)
	none, more := j.between(low, high, 0, fractionDigits(len(text)))
	list := make([]Part, 0, 2)
	if none {
		list = append(list, Text(text))
	}
	if more != nil {
		list = append(list, Seq(Text(text+"."), more))
	}
	return list
}

// between returns the digits of fractions from place i, at most n: whether there can be none, and one or more. Before place i the
// digits are those of low and of high; nil is no bound.
func (j *jsonParts) between(low, high *mark, i, n int) (none bool, more Part) {
	none = (low == nil || len(low.frac) <= i && !low.open) && (high == nil || len(high.frac) > i || !high.open)
	if n == 0 {
		return none, nil
	}
	if low == nil && high == nil {
		return none, Seq(digit, j.further[n-1])
	}
	var list []Part
	add := func(c byte, low, high *mark) {
		rest, more := j.between(low, high, i+1, n-1)
		if rest {
			list = append(list, Text(string([]byte{c})))
		}
		if more != nil {
			list = append(list, Seq(Text(string([]byte{c})), more))
		}
	}
	first, last := low.digit(i, '0'), high.digit(i, '9')
	switch {
	case first == last:
		add(first, low, high)
	case first < last:
		add(first, low, nil)
		add(last, nil, high)
		if first+1 < last {
			list = append(list, Seq(Between(first+1, last-1), j.further[n-1]))
		}
	}
	if list == nil {
		return none, nil
	}
	return none, Alt(list...)
}

// digit returns a digit of the fraction, without a bound another one.
func (m *mark) digit(i int, otherwise byte) byte {
	switch {
	case m == nil:
		return otherwise
	case i < len(m.frac):
		return m.frac[i]
	}
	return '0'
}

// has reports whether a number is within the bounds.
func (x *bounds) has(v *big.Rat) bool {
	within := func(b bound, sign int) bool {
		return b.value == nil || v.Cmp(b.value)*sign > 0 || v.Cmp(b.value) == 0 && !b.open
	}
	return within(x.low, 1) && within(x.high, -1)
}

// narrow adds a bound: a lower one with the sign 1, an upper one with -1.
func (x *bound) narrow(n *big.Rat, open bool, sign int) {
	if x.value == nil || n.Cmp(x.value)*sign > 0 || n.Cmp(x.value) == 0 && open {
		*x = bound{n, open}
	}
}

// Limits on numbers of schemas that are calculated with.
const (
	maxNumber   = 400 // bytes
	maxExponent = 400
)

// exact returns a number of a schema.
func exact(v any) (*big.Rat, error) {
	s, ok := v.(json.Number)
	if !ok {
		return nil, errors.New("want a number")
	}
	_, exponent, _ := strings.Cut(strings.ToLower(string(s)), "e")
	if e, err := strconv.Atoi(exponent); exponent != "" && (err != nil || max(e, -e) > maxExponent) || len(s) > maxNumber {
		return nil, fmt.Errorf("the number %.40s: want one of at most %d digits, and an exponent from -%d to %d", s, maxNumber,
			maxExponent, maxExponent)
	}
	x, ok := new(big.Rat).SetString(string(s))
	if !ok { // cannot happen: it was read as JSON
		return nil, errors.New("want a number")
	}
	return x, nil
}

// floatOf returns the double of a number of a schema.
func floatOf(v any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	x, err := n.Float64()
	return x, err == nil
}

// maxRemainders bounds the spots of multiples.
const maxRemainders = 4000

// numbers returns the bounds of entries, and what their numbers are multiples of, nil for any.
func (c *compiler) numbers(entries []entry) (x bounds, multiple *big.Rat, err error) {
	for _, e := range entries {
		if err := x.read(e.d.Get, e.d.Has); err != nil {
			return x, nil, c.fail(e.path, "%w", err)
		}
		if f, ok := e.d.Get("format").(string); ok && numberFormats[f][0] != "" {
			for i, s := range numberFormats[f] {
				n, _ := new(big.Rat).SetString(s) // which the table has
				[]*bound{&x.low, &x.high}[i].narrow(n, false, 1-2*i)
			}
		}
		if !has(e.d, "multipleOf") {
			continue
		}
		m, err := exact(e.d.Get("multipleOf"))
		if err == nil && m.Sign() <= 0 {
			err = errors.New("want a number above 0")
		}
		if err != nil {
			return x, nil, c.fail(e.path, "multipleOf: %w", err)
		}
		multiple = commonMultiple(multiple, m)
	}
	return x, multiple, nil
}

// read narrows the bounds by those of a schema. In draft 4, exclusiveMinimum and exclusiveMaximum are true or false.
func (x *bounds) read(get func(key any) any, has func(key any) bool) error {
	for _, k := range []struct {
		key, exclusive string
		of             *bound
		sign           int
	}{{"minimum", "exclusiveMinimum", &x.low, 1}, {"maximum", "exclusiveMaximum", &x.high, -1}} {
		open, flag := get(k.exclusive).(bool)
		for _, key := range []string{k.key, k.exclusive} {
			if !has(key) || flag && key == k.exclusive {
				continue
			}
			n, err := exact(get(key))
			if err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			k.of.narrow(n, open || key == k.exclusive, k.sign)
		}
	}
	return nil
}

// numberPart returns numbers.
func (c *compiler) numberPart(integers bool, entries []entry, path string) (Part, error) {
	x, multiple, err := c.numbers(entries)
	if err != nil {
		return nil, err
	}
	one := big.NewRat(1, 1)
	if integers && multiple != nil {
		multiple = commonMultiple(multiple, one)
	}
	if multiple != nil && multiple.Cmp(one) == 0 {
		integers, multiple = true, nil
	}
	x.integersOnly = integers
	if without, by := excluded(entries, "number"); multiple != nil || without != nil {
		p, err := c.multiplesPart(x, multiple, without, path)
		if !errors.Is(err, errTooLarge) {
			return p, err
		}
		if multiple != nil {
			c.skip(path, "multipleOf")
		}
		for _, e := range by {
			c.skip(e.path, "enum")
		}
	}
	switch {
	case x.low.value != nil || x.high.value != nil:
	case integers:
		return c.integer, nil
	default:
		return c.number, nil
	}
	p, err := x.part(c.jsonParts)
	if err != nil {
		return nil, c.nothing(path, "%v", err)
	}
	return p, nil
}
