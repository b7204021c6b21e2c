package requests

import (
	"bytes"
	"math"
	"strconv"
)

// maxExact is the magnitude up to which all integers are float64.
const maxExact = 1 << 53

// integral returns JSON in which whole numbers have neither a fraction nor an exponent: 3.0 and 3e0 become 3, as some
// clients write integers. It returns the argument if there is no such number.
func integral(body []byte) []byte {
	var out []byte
	done, inString := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && (c == '-' || '0' <= c && c <= '9'):
			n := numberLen(body[i:])
			if text, ok := integerText(body[i : i+n]); ok {
				out = append(append(out, body[done:i]...), text...)
				done = i + n
			}
			i += n - 1
		}
	}
	if done == 0 {
		return body
	}
	return append(out, body[done:]...)
}

// numberLen returns the length of the number at the beginning.
func numberLen(b []byte) int {
	n := bytes.IndexFunc(b, func(r rune) bool { return !('0' <= r && r <= '9') && !bytes.ContainsRune([]byte("+-.eE"), r) })
	if n < 0 {
		return len(b)
	}
	return n
}

// integerText returns a number with a fraction or an exponent as an integer.
func integerText(number []byte) (string, bool) {
	if !bytes.ContainsAny(number, ".eE") {
		return "", false
	}
	x, err := strconv.ParseFloat(string(number), 64)
	if err != nil || x != math.Trunc(x) || math.Abs(x) > maxExact {
		return "", false
	}
	return strconv.FormatInt(int64(x), 10), true
}
