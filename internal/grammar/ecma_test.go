package grammar

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Patterns mean what they do in ECMA 262.
func TestECMA(t *testing.T) {
	for _, c := range []struct {
		pattern  string
		yes, not []string
	}{
		{`^\u0041\x42\u{43}\cJ\0\/-$`, []string{"ABC\n\x00/-"}, []string{"u0041"}},
		{`^\ud83d\ude00|\u{1F601}😂$`, []string{"😀", "😁😂"}, []string{"😁"}},
		{`^[\u4e00-\u9fa5]{2}$`, []string{"中文"}, []string{"ab", "中"}},
		{`^[^]$`, []string{"a", "]"}, []string{""}},
		{`^a[^]b$`, []string{"a]b"}, []string{"ab"}},
		{`^\s\S$`, []string{" x"}, []string{"x ", "  "}},
		{`^[^\S ]$`, []string{"\t", "\v", "\u00a0", "\ufeff", "\u2003"}, []string{" ", "x"}},
		{`^[^\s -~]$`, []string{"é", "\u200b"}, []string{"\u00a0", "\v", "a"}},
		{`^[^\p{Letter}\x20-~]$`, []string{"\u00a0", "²"}, []string{"é", "\ua7d2"}},
		{`^[\b]$`, []string{"\b"}, []string{"b"}},
		{`^(?<year>[0-9]{4})-(?<größe>x)$`, []string{"2024-x"}, []string{"24-x"}},
		{`^a+?b*?c??$`, []string{"aab", "ac"}, []string{"b"}},
		{`^[\w-.]+$`, []string{"a-b.c"}, []string{"a b"}},
		{`^[a-f\]\-&&x]{2}$`, []string{"]-", "&x"}, []string{"g]"}},
		{`^[[a]]$`, []string{"[]", "a]"}, []string{"a", "[a]"}},
		{`^a{b}{2,x}]$`, []string{"a{b}{2,x}]"}, []string{"ab"}},
		{`^\p{Lu}\p{Letter}\p{gc=Nd}\P{L}$`, []string{"Ab1-"}, []string{"ab1-", "Ab1b"}},
		{`^\p{Script=Greek}\p{sc=Cyrillic}$`, []string{"αж"}, []string{"aж"}},
		{`a|b`, []string{"a", "b"}, []string{"c", "ac"}}, // also a match within a text, which is not written
		{`^.$`, []string{"a", "~"}, []string{"\n", "\r", "\u2028"}},
		{`^$`, []string{""}, []string{"\n", "a"}},
		{`^[\p{L}\-\]]\/\u{41}\.$`, []string{"a/A.", "-/A.", "]/A."}, []string{`\/A.`}},
		{`^[\d.,]{1,3}\D\W\w$`, []string{"1,.-/x"}, []string{"1x"}},
	} {
		schema, _ := json.Marshal(map[string]string{"type": "string", "pattern": c.pattern})
		g, err := Schema(schema)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		check := validator(t, schema)
		for i, s := range append(c.yes, c.not...) {
			if text := Quoted(s); matches(g, text) != (i < len(c.yes)) {
				t.Errorf("%s: %s is accepted: %v", c.pattern, text, i >= len(c.yes))
			} else if err := check(text); i < len(c.yes) && err != nil {
				t.Errorf("%s: %s: %v", c.pattern, text, err)
			}
		}
	}
}

// Syntax that other dialects have, or that means something else there, is refused by its name.
func TestNotECMA(t *testing.T) {
	for text, want := range map[string]string{
		`(?=a)b`: "look-ahead", `(?!a)b`: "look-ahead", `(?<=a)b`: "look-behind", `(?<!a)b`: "look-behind", `(?i)a`: "flags", `(?i:a)`: "flags",
		`(?P<n>a)`: "want (?<", `(?>a)`: "(?>", `(?#x)a`: "(?#", `\bword\b`: "word boundary", `\Ba`: "word boundary", `(a)\1`: "back-reference",
		`(?<n>a)\k<n>`: "back-reference", `\012`: "escape", `\Aa\z`: "escape", `a\Z`: "escape", `\Qa+\E`: "escape", `\pL`: "escape",
		`\p{Greek}`: "escape", `\p{Foo=L}`: "escape", `\x{41}`: "escape", `\x4`: "escape", `\u12`: "escape", `\u{110000}`: "escape", `\ud800`: "escape",
		`\udc00\ud800`: "escape", `\a`: "escape", `\e`: "escape", `\h`: "escape", `\C`: "escape", `\c1`: "escape", `[[:alpha:]]`: "[:alpha:]",
		`[]a]`: "[]", `[z-a]`: "range", `[a`: "not closed", `a{,3}`: "want {0,", `a**`: "nested", `a{2}{3}`: "nested", `a\`: "backslash",
		`[a\`: "backslash", `a{2000}`: "repeat", `(a`: "missing", `a)`: "unexpected", `*a`: "missing", `a^b`: "not supported", `a$b`: "not supported",
		`\p{L}\"`: `"\\p{" needs the flag u, and "\\\""`, `[\d-z]\P{L}`: "needs the flag u", `\u{41}{a}`: "needs the flag u", `[:]\p{Lu}]`: "needs the flag u",
		`\p{Lu}\-`: "needs the flag u", `(?:^)*a`: "not supported", `[^\0-\u{10ffff}]`: "", `\u{`: "escape", `\p{`: "escape", `(?<1>a)`: "(?<1>",
	} {
		if _, err := pattern(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func FuzzECMA(f *testing.F) {
	f.Add(`^[\w.-]{1,3}\u{41}(?<n>a|\p{Lu})$`, "aA")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		schema, _ := json.Marshal(map[string]string{"pattern": pattern})
		g, err := Schema(schema)
		if err != nil {
			return
		}
		matches(g, Quoted(text)) // must return
	})
}

// Numbers are within their bounds as they are written, and as doubles.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		bounds   string
		yes, not []string
	}{
		{`"exclusiveMinimum":999999999999998`, []string{"999999999999999"}, []string{"999999999999998", "999999999999998.5", "1000000000000000", "0.5"}},
		{`"minimum":99999,"exclusiveMaximum":100000`, []string{"99999", "99999.9999999999"}, []string{"99999.99999999999", "100000", "99998.9"}},
		{`"minimum":0.1,"maximum":0.5`, []string{"0.1", "0.10", "0.3", "0.123456789012", "0.5", "0.50"}, []string{"0", "0.09", "0.51", "0.1234567890123", "1"}},
		{`"exclusiveMinimum":0.1,"exclusiveMaximum":0.5`, []string{"0.11", "0.4999"}, []string{"0.1", "0.10", "0.5", "0.50"}},
		{`"exclusiveMinimum":0.29999999999999999`, []string{"0.31", "1"}, []string{"0.3", "0.30"}},
		{`"maximum":-0.25`, []string{"-0.25", "-1", "-3.5"}, []string{"-0.2", "-0", "0", "0.5"}},
		{`"minimum":-1.5,"maximum":1.5`, []string{"-1.5", "-0.7", "0", "0.0", "1.5"}, []string{"-1.51", "1.6", "-0"}},
		{`"exclusiveMinimum":0,"maximum":1e-3`, []string{"0.001", "0.000000000001"}, []string{"0", "0.0", "0.002"}},
		{`"exclusiveMinimum":-1e15,"exclusiveMaximum":-999999999999998`, []string{"-999999999999999"}, []string{"-999999999999998", "-1000000000000000"}},
		{`"minimum":5,"maximum":5`, []string{"5", "5.0"}, []string{"5.01", "4"}},
		{`"exclusiveMinimum":-1,"exclusiveMaximum":2e-13`, []string{"0", "0.0", "-0.5"}, []string{"0.000000000001", "-1", "-0"}},
		{`"exclusiveMinimum":1e-13,"maximum":1`, []string{"0.000000000001", "1"}, []string{"0", "0.0000000000001"}},
		{`"minimum":0,"exclusiveMaximum":1.00000000000000000000001`, []string{"0", "0.999999999999"}, []string{"1", "1.0"}}, // 1 as a double
		{`"minimum":12345678901234567e-4`, []string{"1234567890123.46"}, []string{"1234567890123.45", "1234567890123.4567"}},
	} {
		schema := []byte(`{"type":"number",` + c.bounds + `}`)
		g, err := Schema(schema)
		if err != nil {
			t.Errorf("%s: %v", c.bounds, err)
			continue
		}
		check := validator(t, schema)
		for i, s := range append(c.yes, c.not...) {
			if matches(g, s) != (i < len(c.yes)) {
				t.Errorf("%s: %s is accepted: %v", c.bounds, s, i >= len(c.yes))
			} else if err := check(s); i < len(c.yes) && err != nil {
				t.Errorf("%s: %s: %v", c.bounds, s, err)
			}
		}
	}
	for _, bounds := range []string{`"exclusiveMinimum":999999999999999`, `"minimum":1e15`, `"maximum":-1e300`, `"minimum":2,"maximum":1`,
		`"exclusiveMinimum":1,"exclusiveMaximum":1.0000000000001`, `"minimum":1e500`, `"minimum":1e-999999999`, `"minimum":"1"`,
		`"minimum":` + strings.Repeat("1", 500)} {
		for _, kind := range []string{"number", "integer"} {
			if g, err := Schema(fmt.Appendf(nil, `{"type":%q,%s}`, kind, bounds)); err == nil || strings.Contains(err.Error(), "finite") {
				t.Errorf("%s, %s: got %v, %v", kind, bounds, g, err)
			}
		}
	}
}
