package grammar

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestGBNF(t *testing.T) {
	for _, c := range []struct {
		grammar  string
		yes, not []string
	}{
		{`root ::= "a" | "b"`, []string{"a", "b"}, []string{"", "ab", "c"}},
		{"# comment\nroot ::= (\n  \"x\" # here\n  | y\n)+ \"\\n\"?\ny ::=\n  [0-9]{2,3} |\n  \"é\\u00e9\\x41\"\n",
			[]string{"x", "12x\n", "123", "ééA"}, []string{"1", "1x", "x\n\n", ""}},
		{`root ::= [^"\\\n]* | "\""`, []string{"", "a b", "日本", `"`, "\U0010ffff"}, []string{`a"`, "\n", `\`, "\xff", "\xed\xa0\x80", "\xc0\x80"}},
		{`root ::= [^\x00-\U0000FFFF] | [а-я]{2}`, []string{"😀", "\U00010000", "да"}, []string{"a", "\uffff", "Д", "ж"}},
		{`root ::= item{3} item{0,1}` + "\n" + `item ::= [a-c-]`, []string{"abc", "a-cb"}, []string{"ab", "abcab", "abd"}},
		{`root ::= . . | expr` + "\n" + `expr ::= "(" expr ")" | "()"`, []string{"éx", "((()))"}, []string{"x", "(()"}},
		{`root ::= root "a" | root "b"? "c" | "d"`, []string{"d", "dabcc", "dcaa"}, []string{"a", "db", ""}},
		{`root ::= "a" root | "b"`, []string{strings.Repeat("a", 5000) + "b"}, []string{"aa"}},
		{`root ::= ""{900}{900}{900}{900} ("" | "")* "x"`, []string{"x"}, []string{"", "xx"}},
	} {
		g, err := GBNF(c.grammar)
		if err != nil {
			t.Errorf("%s: %v", c.grammar, err)
			continue
		}
		for _, s := range c.yes {
			if !matches(g, s) {
				t.Errorf("%s: %q is not accepted", c.grammar, s)
			}
		}
		for _, s := range c.not {
			if matches(g, s) {
				t.Errorf("%s: %q is accepted", c.grammar, s)
			}
		}
	}
}

// Grammars with an error are refused with its line, and hostile ones within bounds.
func TestGBNFErrors(t *testing.T) {
	for grammar, want := range map[string]string{
		"":                                      "no rule root",
		"x ::= \"a\"":                           "no rule root",
		"root ::= \"a\"\nroot ::= \"b\"":        "line 2: the rule",
		"root ::= x":                            "line 1: there is no rule \"x\"",
		"root = \"a\"":                          "line 1",
		"\n\nroot ::= \"a":                      "line 3: a literal",
		"root ::= [a":                           "a literal or a class",
		"root ::= []":                           "without characters",
		"root ::= [b-a]":                        "the range",
		"root ::= (\"a\"":                       "not closed",
		"root ::= \"a\")":                       "\")\"",
		"root ::= \"\\q\"":                      "escape",
		"root ::= \"\\uD800\"":                  "no character",
		"root ::= \"a\"{2000}":                  "repetition",
		"root ::= \"a\"{3,2}":                   "repetition",
		"root ::= \"a\"{":                       "repetition",
		"root ::= * \"a\"":                      "\"* ",
		"root ::= root* \"a\" | \"b\"":          "begins with itself",
		"root ::= x \"a\" | \"b\"\nx ::= root":  "begins with itself",
		"root ::= \"a\" root":                   "no finite text",
		"root ::= \"\xff\"":                     "UTF-8",
		"root ::= " + strings.Repeat("(", 100):  "parentheses",
		"root ::= .{1000}{1000}{1000}":          "states",
		strings.Repeat("a", 9) + " ::= schema":  "there is no rule",
		"root ::= x0\n" + chain(maxRules, true): "rules",
	} {
		if _, err := GBNF(grammar); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v, want %q", grammar, err, want)
		}
	}
	g, err := GBNF("root ::= x0\n" + chain(maxRules-2, false))
	if err != nil || !matches(g, strings.Repeat("a", maxRules-3)+"b") {
		t.Errorf("a chain of rules: %v", err)
	}
}

// chain is a list of rules that use the next one each.
func chain(n int, open bool) string {
	var b strings.Builder
	for i := range n - 1 {
		fmt.Fprintf(&b, "x%d ::= \"a\" x%d\n", i, i+1)
	}
	if !open {
		fmt.Fprintf(&b, "x%d ::= \"b\"\n", n-1)
	}
	return b.String()
}

func TestPattern(t *testing.T) {
	for _, c := range []struct {
		pattern  string
		yes, not []string
	}{
		{`^\d{3}-[a-z]+$`, []string{"123-abc"}, []string{"12-abc", "123-", "x123-abc"}},
		{`yes|no`, []string{"yes", "no"}, []string{"maybe", "yesno"}},
		{`[^a]"\\.`, []string{`b"\é`, `日"\x`}, []string{`a"\x`, "b\"\\\n"}},
		{`(?s).`, []string{"\n", "\u0000"}, []string{""}},
		{`[Yy]es[Δδ]`, []string{"Yesδ", "yesΔ"}, []string{"YESδ", "yes"}},
		{`(?i)ok|no`, []string{"Ok", "oK", "NO"}, []string{"o\u212a", "on"}},
	} {
		g, err := Pattern(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		for _, s := range c.yes {
			if !matches(g, s) {
				t.Errorf("%s: %q is not accepted", c.pattern, s)
			}
		}
		for _, s := range c.not {
			if matches(g, s) {
				t.Errorf("%s: %q is accepted", c.pattern, s)
			}
		}
	}
	for _, s := range []string{`(?=x)`, `a^`, `\b`, `\x{D800}`, `(?i)\x{DFFF}`, `[\x{D800}-\x{DFFF}]`, `(`,
		strings.Repeat("x", maxPattern+1), `a{500}{500}{500}`} {
		if _, err := Pattern(s); err == nil {
			t.Errorf("%.30q: no error", s)
		}
	}
}

func FuzzGBNF(f *testing.F) {
	f.Add("root ::= [^a-z]{2,3} (\"x\" | y)*\ny ::= \"\\u00e9\" .", "AB")
	f.Fuzz(func(t *testing.T, grammar, text string) {
		g, err := GBNF(grammar)
		if err != nil {
			return
		}
		if matches(g, text) && !utf8.ValidString(text) {
			t.Errorf("%q accepts %q", grammar, text)
		}
	})
}
