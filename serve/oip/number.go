package oip

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// decimal is a number of JSON as an integer and a power of ten. It has four fields: structures with more are kept in memory.
type decimal struct {
	digits   uint64
	power    int
	negative bool
	form     form
}

// form is what a decimal says of its number.
type form uint8

const (
	inexact form = iota // less than all: it has more than 19 digits
	exact
	integer // exact, without a point and an exponent
)

// ahead is more than the bytes of a number in its usual form.
const ahead = 64

// scanDecimal reads the number at the begin of a text, which has padding. n is the number of its bytes, 0 if there is none.
func scanDecimal(text []byte) (decimal, int) {
	first := 0
	if text[0] == '-' {
		first = 1
	}
	digits, n := scanDigits(text, first, 0)
	count, power, is := n-first, 0, integer
	if count == 0 || text[first] == '0' && count > 1 {
		return decimal{}, 0
	}
	if text[n] == '.' {
		point := n + 1
		if digits, n = scanDigits(text, point, digits); n == point {
			return decimal{}, 0
		}
		is, power = exact, point-n
		count += n - point
	}
	if text[n]|0x20 == 'e' {
		e, end := scanExponent(text, n+1)
		if end == 0 {
			return decimal{}, 0
		}
		is, power, n = exact, power+e, end
	}
	if count > maxDigits {
		is = inexact
	}
	return decimal{digits, power, text[0] == '-', is}, n
}

// scanDigits appends the digits at a position to those of a number, and returns where they end.
func scanDigits(text []byte, at int, digits uint64) (uint64, int) {
	for {
		x, count := eight(binary.LittleEndian.Uint64(text[at:]))
		digits = digits*tens[count] + number8(x, count)
		if at += count; count < 8 {
			return digits, at
		}
	}
}

// eight returns the digits of eight bytes, and their number up to the first byte that is none. Digits are from 0 to 9.
func eight(text uint64) (x uint64, count int) {
	x = text ^ 0x3030303030303030
	return x, bits.TrailingZeros64((x&0x7F7F7F7F7F7F7F7F+0x7676767676767676|x)&0x8080808080808080) >> 3 & 15
}

// number8 returns the number of up to eight digits.
func number8(x uint64, count int) uint64 {
	x <<= 64 - 8*count // zeros precede them
	x = x * (1 + 10<<8) >> 8 & 0x00FF00FF00FF00FF
	x = x * (1 + 100<<16) >> 16 & 0x0000FFFF0000FFFF
	return x * (1 + 10000<<32) >> 32
}

var tens = [16]uint64{1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000}

// maxExponent bounds exponents. All larger ones are like it: the numbers are beyond every type, or 0.
const maxExponent = 99_999

// scanExponent reads the exponent at a position, and returns where it ends, 0 if there is none.
func scanExponent(text []byte, at int) (e, end int) {
	minus := text[at] == '-'
	if minus || text[at] == '+' {
		at++
	}
	begin := at
	for ; text[at] >= '0' && text[at] <= '9'; at++ {
		e = min(e*10+int(text[at]-'0'), maxExponent)
	}
	if at == begin {
		return 0, 0
	}
	if minus {
		e = -e
	}
	return e, at
}

// maxDigits fit into 64 bits, maxPower is the largest power of ten that a float64 has exactly.
const (
	maxDigits = 19
	maxPower  = 22
)

var powers = [maxPower + 1]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
	1e19, 1e20, 1e21, 1e22}

// factors are the float64 nearest to powers of ten, from -maxPower to maxPower.
var factors = func() (list [2*maxPower + 1]float64) {
	for i, p := range powers {
		list[maxPower+i], list[maxPower-i] = p, 1/p
	}
	return list
}()

// float64 returns the nearest float64; ok is false if that needs more than one operation.
func (d decimal) float64() (x float64, ok bool) {
	switch {
	case d.form == inexact || d.digits >= 1<<53 || d.power < -maxPower || d.power > maxPower:
		return 0, false
	case d.power < 0:
		x = float64(int64(d.digits)) / powers[-d.power]
	default:
		x = float64(int64(d.digits)) * powers[d.power]
	}
	if d.negative {
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

// float32 returns the nearest float32; ok is false if that needs more than a product.
func (d decimal) float32() (x float32, ok bool) {
	if d.form == inexact || d.digits > math.MaxInt64 || d.power < -maxPower || d.power > maxPower {
		return 0, false
	}
	return product32(d.digits, d.power, d.negative)
}

// product32 returns digits * 10^power as a float32. The product is rounded three times, with its factors, and therefore at most three of
// its last units from the number. These do not matter unless it is that close to the middle between two numbers of 32 bits; ok is false
// then.
func product32(digits uint64, power int, negative bool) (x float32, ok bool) {
	wide := float64(int64(digits)) * factors[power+maxPower]
	low := math.Float64bits(wide)&lacking - (half - nearHalf)
	ok = low > 2*nearHalf && (digits == 0 || wide >= 0x1p-125 && wide <= math.MaxFloat32/2)
	return math.Float32frombits(math.Float32bits(float32(wide)) | sign(negative)), ok
}

// usual32 reads the number at the begin of a text, which has padding, if it has the form of most: a sign or none, a digit, a point, and
// up to 15 digits. Their number decides no branch, since it varies from one number to the next, and that of the digits before the
// point is not computed, since all that follows would have to wait for it.
func usual32(text []byte) (x float32, n int, ok bool) {
	if text[0] == '-' {
		n = 1
	}
	t := (*[18]byte)(text[n:])
	first := uint64(t[0] - '0')
	a, count := eight(binary.LittleEndian.Uint64(t[2:]))
	b, more := eight(binary.LittleEndian.Uint64(t[10:]))
	more &= -(count >> 3) // 0 unless the first eight are digits
	digits := (first*tens[count]+number8(a, count))*tens[more] + number8(b, more)
	count += more
	x, ok = product32(digits, -count, text[0] == '-')
	n += 2 + count
	return x, n, ok && first <= 9 && t[1] == '.' && count > 0 && count < 16 && text[n]|0x20 != 'e'
}

// sign returns the bit of a sign.
func sign(negative bool) uint32 {
	if negative {
		return 1 << 31
	}
	return 0
}
