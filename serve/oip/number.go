package oip

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// decimal is a number of JSON as an integer and a power of ten.
type decimal struct {
	digits   uint64
	power    int
	negative bool
	integer  bool // without a point and an exponent
	exact    bool // digits and power are those of the number, which has at most 19 digits
}

// scanDecimal reads the number at the begin of a text, which has padding. n is the number of its bytes, 0 if there is none.
func scanDecimal(text []byte) (d decimal, n int) {
	if text[0] == '-' {
		d.negative, n = true, 1
	}
	first := n
	digits, n := scanDigits(text, n, 0)
	count := n - first
	if count == 0 || text[first] == '0' && count > 1 {
		return d, 0
	}
	d.integer = true
	if text[n] == '.' {
		point := n + 1
		if digits, n = scanDigits(text, point, digits); n == point {
			return d, 0
		}
		d.integer, d.power = false, point-n
		count += n - point
	}
	d.digits, d.exact = digits, count <= maxDigits
	if text[n]|0x20 == 'e' {
		d.integer = false
		return d.scanExponent(text, n+1)
	}
	return d, n
}

// scanDigits appends the digits at a position to those of a number, and returns where they end.
func scanDigits(text []byte, at int, digits uint64) (uint64, int) {
	x, count := eight(text, at)
	digits = digits*tens[count] + x
	for at += count; count == 8; at += count {
		x, count = eight(text, at)
		digits = digits*tens[count] + x
	}
	return digits, at
}

// eight returns the value of the digits at a position, up to eight, and their number.
func eight(text []byte, at int) (x uint64, count int) {
	x = binary.LittleEndian.Uint64(text[at:]) ^ 0x3030303030303030 // a byte of a digit is at most 9 then
	count = bits.TrailingZeros64((x&0x7F7F7F7F7F7F7F7F+0x7676767676767676|x)&0x8080808080808080) >> 3 & 15
	x <<= 64 - 8*count // zeros precede them
	x = x * (1 + 10<<8) >> 8 & 0x00FF00FF00FF00FF
	x = x * (1 + 100<<16) >> 16 & 0x0000FFFF0000FFFF
	return x * (1 + 10000<<32) >> 32, count
}

var tens = [16]uint64{1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000}

// maxExponent bounds exponents; larger ones are left to package strconv.
const maxExponent = 9999

// scanExponent reads the exponent at a position.
func (d decimal) scanExponent(text []byte, at int) (decimal, int) {
	minus := text[at] == '-'
	if minus || text[at] == '+' {
		at++
	}
	begin, e := at, 0
	for ; text[at] >= '0' && text[at] <= '9'; at++ {
		if e = e*10 + int(text[at]-'0'); e > maxExponent {
			e, d.exact = maxExponent, false
		}
	}
	if at == begin {
		return d, 0
	}
	if minus {
		e = -e
	}
	d.power += e
	return d, at
}

// maxDigits fit into 64 bits, maxPower is the largest power of ten that a float64 has exactly.
const (
	maxDigits = 19
	maxPower  = 22
)

var powers = [maxPower + 1]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
	1e19, 1e20, 1e21, 1e22}

// scaled returns digits * 10^power. It has two roundings at most, or one if digits has at most 53 bits.
func scaled(digits uint64, power int) float64 {
	if power < 0 {
		return float64(digits) / powers[-power]
	}
	return float64(digits) * powers[power]
}

// float64 returns the nearest float64; ok is false if that needs more than one operation.
func (d decimal) float64() (x float64, ok bool) {
	if !d.exact || d.digits >= 1<<53 || d.power < -maxPower || d.power > maxPower {
		return 0, false
	}
	if x = scaled(d.digits, d.power); d.negative {
		x = -x
	}
	return x, true
}

// Bits of a float64 that a float32 lacks. A number within nearHalf of half of them can be on either side.
const (
	lacking  = 1<<29 - 1
	half     = 1 << 28
	nearHalf = 8
)

// float32 returns the nearest float32. Two roundings of a float64 are at most two of its last units, which do not matter unless it
// is that close to the middle between two numbers of 32 bits; ok is false then.
func (d decimal) float32() (x float32, ok bool) {
	if !d.exact || d.power < -maxPower || d.power > maxPower {
		return 0, false
	}
	wide := scaled(d.digits, d.power)
	low := int64(math.Float64bits(wide)&lacking) - half
	if low > -nearHalf && low < nearHalf || d.digits != 0 && (wide < 0x1p-125 || wide > math.MaxFloat32/2) {
		return 0, false
	}
	if x = float32(wide); d.negative {
		x = -x
	}
	return x, true
}
