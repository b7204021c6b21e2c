package edits

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestAlign(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"", "", ""},
		{"abc", "abc", "aa bb cc"},
		{"abc", "", "a- b- c-"},
		{"", "ab", "-a -b"},
		{"abcd", "acbd", "aa b- cc -b dd"},
		{"xab", "yab", "x- -y aa bb"},
		{"abx", "aby", "aa bb x- -y"},
	} {
		var got []string
		for _, p := range Align(split(c.a), split(c.b)) {
			got = append(got, at(c.a, p.A)+at(c.b, p.B))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%q and %q: got %s, want %s", c.a, c.b, text, c.want)
		}
	}
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "")
}

func at(s string, i int) string {
	if i < 0 {
		return "-"
	}
	return s[i : i+1]
}

// TestAlignRandom requires every line once and in order, pairs of equal lines, and at least as
// many pairs as a planted subsequence.
func TestAlignRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var a, b []string
		planted := 0
		for range r.IntN(40) {
			switch r.IntN(3) {
			case 0:
				a = append(a, string(rune('a'+r.IntN(4))))
			case 1:
				b = append(b, string(rune('a'+r.IntN(4))))
			default:
				line := string(rune('a' + r.IntN(4)))
				a, b, planted = append(a, line), append(b, line), planted+1
			}
		}
		var left, right []string
		common := 0
		for _, p := range Align(a, b) {
			if p.A >= 0 {
				left = append(left, a[p.A])
			}
			if p.B >= 0 {
				right = append(right, b[p.B])
			}
			if p.A >= 0 && p.B >= 0 {
				if common++; a[p.A] != b[p.B] {
					t.Fatalf("%q and %q: pair of %q and %q", a, b, a[p.A], b[p.B])
				}
			}
		}
		if !slices.Equal(left, a) || !slices.Equal(right, b) || common < planted {
			t.Fatalf("%q and %q: %q and %q, %d common, want at least %d", a, b, left, right, common, planted)
		}
	}
}
