package oip

import "math"

// decimal is a number of JSON as an integer of up to 19 digits and a power of ten. ok is false for numbers with more digits or
// a larger power than powers has.
func decimal(text []byte) (negative bool, digits uint64, power int, ok bool) {
	if len(text) > 0 && text[0] == '-' {
		negative, text = true, text[1:]
	}
	count, point := 0, -1
	for i, c := range text {
		switch {
		case c >= '0' && c <= '9':
			if count > 0 || c != '0' {
				count++
			}
			digits = digits*10 + uint64(c-'0')
		case c == '.' && point < 0:
			point = i
		case (c == 'e' || c == 'E') && i > 0:
			e, valid := exponent(text[i+1:])
			if point >= 0 {
				e -= i - point - 1
			}
			return negative, digits, e, valid && count <= maxDigits && e >= -maxPower && e <= maxPower
		default:
			return false, 0, 0, false
		}
	}
	if point >= 0 {
		power = point + 1 - len(text)
	}
	return negative, digits, power, len(text) > 0 && count <= maxDigits && power >= -maxPower
}

// exponent reads an exponent of one or two digits.
func exponent(text []byte) (e int, ok bool) {
	minus := len(text) > 0 && text[0] == '-'
	if minus || len(text) > 0 && text[0] == '+' {
		text = text[1:]
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		e = e*10 + int(c-'0')
		if e > 99 {
			return 0, false
		}
	}
	if minus {
		e = -e
	}
	return e, len(text) > 0
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

// fast64 returns the float64 nearest to a number of JSON; ok is false if that needs more than one operation.
func fast64(text []byte) (x float64, ok bool) {
	negative, digits, power, ok := decimal(text)
	if !ok || digits >= 1<<53 {
		return 0, false
	}
	if x = scaled(digits, power); negative {
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

// fast32 returns the float32 nearest to a number of JSON. Two roundings of a float64 are at most two of its last units, which do
// not matter unless it is that close to the middle between two numbers of 32 bits; ok is false then.
func fast32(text []byte) (x float32, ok bool) {
	negative, digits, power, ok := decimal(text)
	if !ok {
		return 0, false
	}
	wide := scaled(digits, power)
	low := int64(math.Float64bits(wide)&lacking) - half
	if low > -nearHalf && low < nearHalf || digits != 0 && (wide < 0x1p-125 || wide > math.MaxFloat32/2) {
		return 0, false
	}
	if x = float32(wide); negative {
		x = -x
	}
	return x, true
}
