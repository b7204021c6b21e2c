package oip

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// checkNumber compares the fast conversions of a text with those of strconv, and returns which of them apply.
func checkNumber(t *testing.T, text string) (ok32, ok64 bool) {
	t.Helper()
	d, n := scanDecimal(append([]byte(text), make([]byte, padding)...))
	if n != len(text) {
		t.Fatalf("%q: read %d bytes", text, n)
	}
	x, ok32 := d.float32()
	want, err := strconv.ParseFloat(text, 32)
	if ok32 && (err != nil || math.Float32bits(x) != math.Float32bits(float32(want))) {
		t.Fatalf("%s: %v in 32 bits, want %v, %v", text, x, float32(want), err)
	}
	z, n, usual := usual32(append([]byte(text), make([]byte, padding)...))
	if usual && (n != len(text) || err != nil || math.Float32bits(z) != math.Float32bits(float32(want))) {
		t.Fatalf("%s: %v of %d bytes in the usual form, want %v, %v", text, z, n, float32(want), err)
	}
	y, ok64 := d.float64()
	want, err = strconv.ParseFloat(text, 64)
	if ok64 && (err != nil || math.Float64bits(y) != math.Float64bits(want)) {
		t.Fatalf("%s: %v in 64 bits, want %v, %v", text, y, want, err)
	}
	return ok32, ok64
}

// TestNumbers compares conversions of random numbers, and of numbers around the middle between two floats, with strconv.
func TestNumbers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	fast := 0
	const rounds = 50_000
	for range rounds {
		x := math.Float32frombits(random.Uint32())
		if x != x || math.IsInf(float64(x), 0) {
			continue
		}
		next := float64(math.Nextafter32(x, float32(math.Inf(1))))
		middle := (float64(x) + next) / 2
		small := random.Float32() * 10
		for _, text := range []string{
			strconv.FormatFloat(float64(x), 'g', -1, 32), strconv.FormatFloat(float64(x), 'g', -1, 64), strconv.FormatFloat(middle, 'g', -1, 64),
			strconv.FormatFloat(middle, 'e', random.IntN(20), 64), fmt.Sprint(int64(random.Uint64())), fmt.Sprintf("%d.%de%d", random.IntN(1000),
				random.IntN(1_000_000), random.IntN(60)-30),
			strconv.FormatFloat((float64(small)+float64(math.Nextafter32(small, 20)))/2, 'f', 18, 64),
			strconv.FormatFloat((float64(small)+float64(math.Nextafter32(small, 20)))/2, 'f', 1+random.IntN(16), 64),
		} {
			checkNumber(t, text)
		}
		for _, text := range []string{strconv.FormatFloat(float64(small), 'g', -1, 32), strconv.FormatFloat(float64(small), 'g', -1, 64)} {
			if ok, _ := checkNumber(t, text); ok {
				fast++
			}
		}
	}
	if fast < rounds*19/10 {
		t.Errorf("%d of %d usual numbers are converted the fast way", fast, 2*rounds)
	}
	for _, text := range []string{"0", "-0", "0.0", "-0e5", "1", "-1", "1e22", "1e23", "1e-22", "123456789012345678", "9999999999999999999", "18446744073709551616",
		"99999999999999999999", "3.4028235e38", "1e39", "1e-45", "1e-46", "16777217", "16777217.0000000001", "9007199254740993", "0.1e1", "1E5", "1E+05",
		"0.000000000000000000000000000001", "0e0", "1e400", "1e-400", "1e99999999999999999999", "0.00000000000000000001e20"} {
		checkNumber(t, text)
	}
	for _, text := range []string{"", "-", ".", "e", "1e", "1e+", "1..2", "1e5.", "x", "1x", "--1", "+1", "1e1e1", "NaN", "Inf", "0x10", "1_0", "01", "-01",
		"1.", ".5", "1.e5", "-.5", "00", "1-", "1e-"} {
		if isValue([]byte(text)) {
			t.Errorf("%q is a number", text)
		}
	}
}

// FuzzNumber compares conversions with strconv, and what is a number with encoding/json.
func FuzzNumber(f *testing.F) {
	for _, text := range []string{"0.1", "-12345678.87654321e-12", "123456789012345678901234567890", "[1]", "01"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for i := range len(text) {
			if !isPlain[text[i]] {
				return
			}
		}
		valid := json.Valid([]byte(text))
		if got := isValue([]byte(text)); got != valid {
			t.Fatalf("%q is a value: %v", text, got)
		}
		if _, err := strconv.ParseFloat(text, 64); err == nil && valid {
			checkNumber(t, text)
		}
	})
}
