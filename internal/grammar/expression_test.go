package grammar

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// TestMatches compares matches with those of another implementation.
func TestMatches(t *testing.T) {
	patterns := []string{`a`, `^a+$`, `(?=ab)a`, `a(?!b)`, `(?<=a)b`, `(?<!a)b`, `(a|b)\1`, `^(?<x>a+)-\k<x>$`, `\bab\b`, `\Bb`, `^(?=.*\d)(?=.*[a-z]).{2,}$`,
		`^(?!.*aa)[ab]*$`, `(?<=^|-)a`, `^(a*)*$`, `^(?:a|ab)(?:c|bcd)?$`, `(a)|b\1`, `^(?=(a+))\1b`, `a{2,3}?b`, `\2(a)(b)`, `(?<=\d{2})-`, `[^\d]\B`, `ü(?=é)`, `(?!)|b`, `(?<!^)a`}
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		patterns = append(patterns, randomPattern(r, 4))
	}
	const letters = "aab-1é"
	for _, s := range patterns {
		want, err := regexp2.Compile(s, regexp2.ECMAScript|regexp2.Unicode)
		if err != nil {
			continue
		}
		match, err := expression(s)
		if err != nil {
			if !strings.Contains(s, "(?<") || !strings.Contains(err.Error(), "a back-reference in a look-behind") {
				t.Errorf("%s: %v", s, err)
			}
			continue
		}
		for range 20 {
			var text strings.Builder
			for range r.IntN(7) {
				text.WriteRune([]rune(letters)[r.IntN(6)])
			}
			got, _ := match(text.String())
			if ok, err := want.MatchString(text.String()); err == nil && got != ok {
				t.Errorf("%s: got %v for %q, want %v", s, !ok, text.String(), ok)
			}
		}
	}
}

// randomPattern makes an expression, with conditions on what is around and references to the text of the first group.
func randomPattern(r *rand.Rand, depth int) string {
	if depth == 0 {
		return []string{"a", "b", "[ab]", ".", `\d`, "-", "^", "$", `\b`, "[^a]"}[r.IntN(10)]
	}
	x, y := randomPattern(r, depth-1), randomPattern(r, r.IntN(depth))
	form := []string{"%s%s", "%s%s", "(?:%s|%s)", "(?:%s)*%s", "(?:%s)+?%s", "(?:%s){1,2}%s", "(?=%s)%s", "(?!%s)%s", "(?<=%s)%s", "(?<!%s)%s", `^(%s)%s\1`}[r.IntN(11)]
	if strings.Contains(x+y, `\1`) && strings.Contains(form, `\1`) {
		form = "%s%s"
	}
	return fmt.Sprintf(form, x, y)
}

// What other dialects have, and what is no expression, is an error; what takes too long counts as a match.
func TestExpressionBounds(t *testing.T) {
	for _, s := range []string{"(?i)a", "(", "a{2", `\k<x>`, "[b-a]", `(?<=(a)\1)b`, strings.Repeat("a", maxPattern+1), `a{0,2000}`} {
		if _, err := expression(s); err == nil && s != "a{2" {
			t.Errorf("%.20q: no error", s)
		}
	}
	for _, s := range []string{`^(?=a)(a+)+$`, `(?<=^(?:a|a)*)b`, `^(?:(?!b)a)*b$`, `(.*)(.*)(.*)\1\2\3x`} {
		match, err := expression(s)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		match(strings.Repeat("a", 20000))
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("%s: %v", s, took)
		}
	}
}
