package grammar

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// limit is the largest integer of maxDigits digits.
const limit = 999_999_999_999_999

// places are the digits that follow the first one of a number: those of decimal numbers, or the further bytes of a character in
// UTF-8.
type places struct{ low, high byte }

var decimal, utf8Bytes = places{'0', '9'}, places{0x80, 0xbf}

// any is n of any digits.
func (p places) any(n int) Part { return Repeat(Between(p.low, p.high), n, n) }

// digits is n of any decimal digits.
func digits(n int) Part { return decimal.any(n) }

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

// natural is a number from a to b without a sign, nil if there is none.
func natural(a, b int64) Part {
	if a > b {
		return nil
	}
	var list []Part
	for a <= b {
		end := int64(9)
		for end < a {
			end = end*10 + 9
		}
		end = min(end, b)
		list = append(list, decimal.sameLength(strconv.FormatInt(a, 10), strconv.FormatInt(end, 10)))
		a = end + 1
	}
	return Alt(list...)
}

// bounds are those of a number.
type bounds struct {
	low, high         float64
	openLow, openHigh bool // the bounds themselves are excluded
	hasLow, hasHigh   bool
	integersOnly      bool
}

// integers returns the range of integers within the bounds and the limit of digits.
func (x *bounds) integers() (low, high int64) {
	l, h := math.Ceil(max(x.low, -limit)), math.Floor(min(x.high, limit))
	if x.openLow && l == x.low {
		l++
	}
	if x.openHigh && h == x.high {
		h--
	}
	if l > limit || h < -limit {
		return 1, 0
	}
	return int64(l), int64(h)
}

// part returns the numbers within the bounds: integers, and fractions between two of them.
func (x *bounds) part() (Part, error) {
	if !x.hasLow {
		x.low = math.Inf(-1)
	}
	if !x.hasHigh {
		x.high = math.Inf(1)
	}
	if x.low > limit || x.high < -limit {
		return nil, fmt.Errorf("no number between the bounds has at most %d digits", maxDigits)
	}
	low, high := x.integers()
	var list []Part
	add := func(sign string, a, b int64, end Part) {
		if p := natural(a, b); p != nil {
			list = append(list, Seq(Text(sign), p, end))
		}
	}
	add("", max(low, 0), high, Seq())
	add("-", max(-high, 1), -low, Seq())
	if !x.integersOnly {
		fraction := Seq(Text("."), Repeat(digit, 1, maxFraction))
		top := int64(math.Floor(min(x.high, limit))) // fractions below it are within the bounds
		bottom := int64(math.Ceil(max(x.low, -limit)))
		add("", max(low, 0), top-1, fraction)
		add("-", max(-high, 0), -bottom-1, fraction)
	}
	if list == nil {
		return nil, errors.New("no number between the bounds can be written with integers around it")
	}
	return Alt(list...), nil
}

// boundsOf reads the bounds of a schema.
func boundsOf(get func(key string) (any, bool)) (x bounds, err error) {
	for _, k := range []struct {
		key       string
		low, open bool
	}{{"minimum", true, false}, {"exclusiveMinimum", true, true}, {"maximum", false, false}, {"exclusiveMaximum", false, true}} {
		v, ok := get(k.key)
		if !ok {
			continue
		}
		f, ok := floatOf(v)
		if !ok {
			return x, fmt.Errorf("%s: want a number", k.key)
		}
		switch {
		case k.low && (!x.hasLow || f > x.low || f == x.low && k.open):
			x.low, x.openLow, x.hasLow = f, k.open, true
		case !k.low && (!x.hasHigh || f < x.high || f == x.high && k.open):
			x.high, x.openHigh, x.hasHigh = f, k.open, true
		}
	}
	return x, nil
}

func floatOf(v any) (float64, bool) {
	switch n := v.(type) {
	case int:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}
