package grammar

import (
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strings"
)

// multiples are the numbers without an exponent that are multiples of m, in digits that something else limits.
func (a *automaton) multiples(m *big.Rat) (int32, error) {
	places, zeros := 0, 0
	ten := big.NewRat(10, 1)
	for m = new(big.Rat).Set(m); !m.IsInt(); places++ {
		if m.Mul(m, ten); places > maxFraction {
			return 0, errTooLarge
		}
	}
	for n := new(big.Rat); places == 0 && n.Quo(m, ten).IsInt(); zeros++ {
		m.Set(n)
	}
	if !m.Num().IsInt64() || m.Num().Int64() > maxRemainders/int64(places+1) {
		return 0, errTooLarge
	}
	n := int(m.Num().Int64())
	end := atEnd
	for range zeros {
		end = a.char([]rune{'0', '0'}, end)
	}
	first := int32(len(a.spots)) // by digits after the point, and by remainder
	for range n * (places + 1) {
		a.some()
	}
	scale := 1 % n
	for place := places; place >= 0; place-- {
		for r := range n {
			at, next := first+int32(place*n+r), first+int32((place+1)*n)
			var list []int32
			if r*scale%n == 0 {
				list = append(list, end)
			}
			if place == 0 {
				next = first
			}
			if place < places || place == 0 {
				list = a.digits(list, next, r, n)
			}
			if place == 0 && places > 0 {
				list = append(list, a.char([]rune{'.', '.'}, a.some(a.digits(nil, first+int32(n), r, n)...)))
			}
			a.spots[at].list = list
		}
		scale = scale * 10 % n
	}
	start := a.some(first, a.char([]rune{'0', '0'}, atEnd))
	return a.some(start, a.char([]rune{'-', '-'}, start)), nil
}

// spelled is a number without an exponent, as it can be written.
func (a *automaton) spelled(n *big.Rat) int32 {
	whole, fraction, _ := strings.Cut(n.FloatString(maxFraction), ".")
	fraction = strings.TrimRight(fraction, "0")
	end := a.repeat(func(next int32) int32 { return a.char([]rune{'0', '0'}, next) }, 0, -1, atEnd)
	at := end
	if text := []rune("." + fraction); fraction != "" {
		for _, r := range slices.Backward(text) {
			at = a.char([]rune{r, r}, at)
		}
	} else {
		at = a.some(atEnd, a.char([]rune{'.', '.'}, end))
	}
	for _, r := range slices.Backward([]rune(whole)) {
		at = a.char([]rune{r, r}, at)
	}
	return at
}

// digits adds a digit each, which leads from a remainder to another one.
func (a *automaton) digits(list []int32, first int32, r, n int) []int32 {
	for d := range 10 {
		list = append(list, a.char([]rune{'0' + rune(d), '0' + rune(d)}, first+int32((10*r+d)%n)))
	}
	return list
}

// commonMultiple returns the least number that is a multiple of both; nil is none.
func commonMultiple(a, b *big.Rat) *big.Rat {
	if a == nil {
		return b
	}
	num := new(big.Int).Mul(a.Num(), b.Num())
	num.Quo(num, new(big.Int).GCD(nil, nil, a.Num(), b.Num()))
	return new(big.Rat).SetFrac(num, new(big.Int).GCD(nil, nil, a.Denom(), b.Denom()))
}

// multiplesPart returns the multiples of a number within bounds, without some; nil is any number.
func (c *compiler) multiplesPart(x bounds, multiple *big.Rat, without []any, path string) (Part, error) {
	if multiple != nil && x.integersOnly {
		if few, ok := multiplesOf(x, multiple, maxTags); ok {
			return c.literals(amongst(few, without, false), path, nil)
		}
	}
	var err error
	for _, digits := range []int{maxDigits, 9, 6, 4} { // numbers of fewer ones have fewer states
		power := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil))
		x.low.narrow(new(big.Rat).Neg(power), true, 1)
		x.high.narrow(power, true, -1)
		var p Part
		switch p, err = c.multiplesWithin(x, multiple, without); {
		case errors.Is(err, errTooLarge):
		case digits < maxDigits && (err != nil || p == nil):
			return nil, errTooLarge
		case err != nil || p == nil:
			return nil, c.nothing(path, "multipleOf: no multiple is between the bounds")
		default:
			return c.Rule(p), nil
		}
	}
	return nil, err
}

// multiplesWithin returns the multiples that bounds have a form for, nil if there is none.
func (c *compiler) multiplesWithin(x bounds, multiple *big.Rat, without []any) (Part, error) {
	if !c.works() {
		return nil, errTooLarge
	}
	scratch := NewBuilder()
	within, err := x.part(scratch.ofJSON())
	if err != nil {
		return nil, err
	}
	rule := scratch.Declare()
	scratch.Define(rule, within)
	a := newAutomaton(&c.textWork)
	list := []int32{a.copied(scratch, scratch.rules[rule], atEnd, make(map[[2]int32]int32))}
	if multiple != nil {
		start, err := a.multiples(multiple)
		if err != nil {
			return nil, err
		}
		list = append(list, start)
	}
	for _, v := range without {
		if n, err := exact(v); err == nil {
			list = append(list, a.add(spot{kind: spotNot, next: a.spelled(n)}))
		}
	}
	states, err := a.run(a.all(list...), beforeNone)
	if err != nil {
		return nil, err
	}
	return a.part(states, func(ranges []rune) Part {
		var list []Part
		for i := 0; i < len(ranges); i += 2 {
			list = append(list, Between(byte(ranges[i]), byte(ranges[i+1])))
		}
		return oneOf(list)
	}), nil
}

// multiplesOf returns the multiples between two integers, if there are few.
func multiplesOf(x bounds, multiple *big.Rat, most int) (list []any, ok bool) {
	if x.low.value == nil || x.high.value == nil {
		return nil, false
	}
	if multiple = commonMultiple(multiple, big.NewRat(1, 1)); new(big.Rat).Quo(new(big.Rat).Sub(x.high.value, x.low.value), multiple).Cmp(
		big.NewRat(int64(most), 1)) >= 0 {
		return nil, false
	}
	steps := new(big.Rat).Quo(x.low.value, multiple)
	n := new(big.Rat).Mul(new(big.Rat).SetInt(new(big.Int).Div(steps.Num(), steps.Denom())), multiple) // at most the lower bound
	for ; n.Cmp(x.high.value) <= 0; n = new(big.Rat).Add(n, multiple) {
		if digits := n.RatString(); x.has(n) && len(digits) <= maxDigits {
			list = append(list, json.Number(digits))
		}
	}
	return list, true
}
