package npu

import "math/bits"

// rounding is the rounding mode of scaling.
type rounding uint8

// Roundings. The U55 and U65 have the first three (DBL, TRUNCATE, NATURAL), the U85
// all of them.
const (
	doubleSymmetric  rounding = iota // half away from zero, at bit 31 and then at the shift
	towardZero                       // truncation
	natural                          // half up
	doubleAsymmetric                 // half away from zero at bit 31, then half up
	symmetric                        // half away from zero
	towardLower                      // floor
)

var (
	roundingsU65    = [4]rounding{doubleSymmetric, towardZero, natural, natural}
	roundingsU85    = [8]rounding{doubleSymmetric, natural, doubleAsymmetric, symmetric, towardZero, towardLower, natural, natural}
	roundingsIFMU85 = [2]rounding{doubleSymmetric, natural}
)

// scaling multiplies by mult and divides by 2^shift.
type scaling struct {
	mult     int64 // below 2^32
	shift    uint  // 0 to 63
	rounding rounding
}

// unit is the identity scaling.
var unit = scaling{mult: 1, rounding: natural}

func (s *scaling) isUnit() bool { return s.mult == 1 && s.shift == 0 }

// fits reports whether x·mult and its rounding fit 64 bits.
func fits(x int64) bool { return x < 1<<30 && x > -1<<30 }

// apply scales one value.
func (s *scaling) apply(x int64) int64 {
	if s.rounding == natural && fits(x) && s.shift-1 < 62 {
		return (x*s.mult + 1<<(s.shift-1)) >> s.shift
	}
	return s.wide(x)
}

// applyAll scales values in place.
func (s *scaling) applyAll(v []int64) {
	switch {
	case s.isUnit():
	case s.shift-1 >= 62:
		s.wideAll(v)
	case s.rounding == natural:
		s.naturalAll(v)
	case s.rounding == doubleSymmetric:
		s.doubleAll(v)
	default:
		s.wideAll(v)
	}
}

func (s *scaling) naturalAll(v []int64) {
	mult, shift, half := s.mult, s.shift, int64(1)<<(s.shift-1)
	for i, x := range v {
		if fits(x) {
			v[i] = (x*mult + half) >> (shift & 63)
		} else {
			v[i] = s.wide(x)
		}
	}
}

// doubleAll rounds half away from zero: half less one below zero, then towards lower.
func (s *scaling) doubleAll(v []int64) {
	mult, first, second := s.mult, min(s.shift, 31), s.shift-min(s.shift, 31)
	half1, half2 := int64(1)<<(first-1), int64(1)<<second>>1
	for i, x := range v {
		if !fits(x) {
			v[i] = s.wide(x)
			continue
		}
		p := x * mult
		p = (p + half1 + p>>63) >> (first & 63)
		if second > 0 {
			p = (p + half2 + p>>63) >> (second & 63)
		}
		v[i] = p
	}
}

func (s *scaling) wideAll(v []int64) {
	for i, x := range v {
		v[i] = s.wide(x)
	}
}

// wide scales with a product of 128 bits.
func (s *scaling) wide(x int64) int64 {
	p := product(x, s.mult)
	switch s.rounding {
	case doubleSymmetric:
		if s.shift > 31 {
			return wideOf(p.halfAway(31)).halfAway(s.shift - 31)
		}
		return p.halfAway(s.shift)
	case symmetric:
		return p.halfAway(s.shift)
	case doubleAsymmetric:
		if s.shift > 31 {
			nudge := wideOf(1 << 30)
			if p.hi < 0 {
				nudge = wideOf(-1 << 30)
			}
			p = p.add(nudge)
		}
		return p.halfUp(s.shift)
	case towardZero:
		if p.hi < 0 {
			p = p.add(wide{0, 1<<s.shift - 1})
		}
		return p.shiftRight(s.shift)
	case towardLower:
		return p.shiftRight(s.shift)
	}
	return p.halfUp(s.shift)
}

// wide is a signed number of 128 bits.
type wide struct {
	hi int64
	lo uint64
}

func wideOf(x int64) wide { return wide{x >> 63, uint64(x)} }

// product is x·m for m of at most 32 bits, without a sign.
func product(x, m int64) wide {
	hi, lo := bits.Mul64(uint64(x), uint64(m))
	if x < 0 {
		hi -= uint64(m)
	}
	return wide{int64(hi), lo}
}

func (a wide) add(b wide) wide {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	return wide{a.hi + b.hi + int64(carry), lo}
}

// shiftRight is the low half of floor(a / 2^s), s below 64.
func (a wide) shiftRight(s uint) int64 {
	if s == 0 {
		return int64(a.lo)
	}
	return int64(a.lo>>s | uint64(a.hi)<<(64-s))
}

func (a wide) halfUp(s uint) int64 {
	if s == 0 {
		return int64(a.lo)
	}
	return a.add(wide{0, 1 << (s - 1)}).shiftRight(s)
}

func (a wide) halfAway(s uint) int64 {
	if s > 0 && a.hi < 0 {
		return a.add(wide{0, 1<<(s-1) - 1}).shiftRight(s)
	}
	return a.halfUp(s)
}
