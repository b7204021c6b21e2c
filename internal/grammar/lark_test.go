package grammar

import (
	"encoding/json"
	"strings"
	"testing"
)

// patchGrammar is like those that coding agents prescribe for patches.
const patchGrammar = `start: head part+ tail
head: "*** Begin" LF
tail: "*** End" LF?

part: added | removed
    | changed  // on a line of its own
added: "*** Add: " name LF added_line+
removed: "*** Delete: " name LF
changed: "*** Update: " name LF moved? change?
name: /(.+)/
added_line: "+" /(.*)/ LF -> line
moved: "*** Move: " name LF
change: (context | change_line)+ last?
context: ("@@" | "@@ " /(.+)/) LF
change_line: ("+" | "-" | " ") /(.*)/ LF
last: "*** End of file" LF
%import common.LF
`

func TestLark(t *testing.T) {
	for _, c := range []struct {
		grammar  string
		yes, not []string
	}{
		{`start: "a" | "b"`, []string{"a", "b"}, []string{"", "ab"}},
		{"start: /x/", []string{"x"}, []string{"", "xx"}},
		{"start: \"a\"\n  | \"b\"\n\n  | (\n \"c\"\n | \"d\")\n", []string{"a", "b", "c", "d"}, []string{"cd"}},
		{"?start: pair+ -> pairs\n!pair: KEY \"=\" [VALUE]\nKEY: /[a-z]/i~2..3\nVALUE: (\"0\"..\"9\")+ | \"on\"i", []string{"ab=", "aBc=12", "ab=ON", "ab=1cd=oN"},
			[]string{"a=", "abcd=", "ab=off"}},
		{"# a\nstart: sum // b\nsum: sum \"+\" product | sum \"-\" product | product\nproduct: INT (\"*\" INT)*\n%import common.INT",
			[]string{"1", "12+3*4-5"}, []string{"+1", "1+", "1 + 2"}},
		{"start: sum\nsum: INT (\"+\" INT)*\n%import common (INT, WS -> SPACE)\n%ignore SPACE\n%ignore /#[^\\n]*/", []string{"1+2", " 1 +\n2 # x"}, []string{"1 2", "+"}},
		{`start: "\"\\\n\té" /[^"]/s`, []string{"\"\\\n\té\n", "\"\\\n\té日", "\"\\\n\té\x00"}, []string{"\"\\\n\té\""}},
		{`start: /a\/b|[\/x]{2}/`, []string{"a/b", "x/"}, []string{"a", "ab"}},
		{`start: /(?:.|\n)*z/`, []string{"z", "a\tb\n😀z"}, []string{"", "za"}},
		{patchGrammar, []string{"*** Begin\n*** Add: a.go\n+package a\n+\tx := \"é\"\n*** End", "*** Begin\n*** Delete: b\n*** Update: c\n*** Move: d\n@@ f()\n-x\n+y\n z\n*** End\n"},
			[]string{"", "*** Begin\n*** End", "*** Begin\n*** Add: a\n*** End", "*** Begin\n*** Add: \n+x\n*** End"}},
	} {
		b := NewBuilder()
		p, err := b.Lark(c.grammar)
		if err != nil {
			t.Errorf("%s: %v", c.grammar, err)
			continue
		}
		checkQuoted(t, c.grammar, b, p, c.yes, c.not)
	}
}

// checkQuoted checks which texts a form of strings of JSON accepts.
func checkQuoted(t *testing.T, name string, b *Builder, p Part, yes, not []string) {
	t.Helper()
	g, err := b.Build(Seq(Text(`"`), p, Text(`"`)))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	quote := func(s string) string {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(s); err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(b.String())
	}
	for _, s := range yes {
		if !matches(g, quote(s)) {
			t.Errorf("%s: %s is not accepted", name, quote(s))
		}
	}
	for _, s := range not {
		if matches(g, quote(s)) {
			t.Errorf("%s: %s is accepted", name, quote(s))
		}
	}
}

func TestExpression(t *testing.T) {
	for pattern, texts := range map[string][2][]string{
		`^[A-Z]{2}\d+$`: {{"AB1"}, {"ab1", "A1"}},
		`.+`:            {{"a\tb", "é\"\\"}, {"", "a\nb"}},
		`(?i)yes|no`:    {{"YES", "No"}, {"yesno"}},
		`\p{Greek}`:     {{"α"}, {"a"}},
	} {
		b := NewBuilder()
		p, err := b.Expression(pattern)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
			continue
		}
		checkQuoted(t, pattern, b, p, texts[0], texts[1])
	}
	for pattern, want := range map[string]string{`(?=a)`: "(?=", `\bword`: "not supported", `(`: "missing", strings.Repeat("a", maxPattern+1): "bytes"} {
		if _, err := NewBuilder().Expression(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %v, want %q", pattern, err, want)
		}
	}
}

// What is not supported is named, with its line; hostile grammars are refused within bounds.
func TestLarkErrors(t *testing.T) {
	for grammar, want := range map[string]string{
		"":                                   `no rule "start"`,
		"a: \"x\"":                           `no rule "start"`,
		"start: a":                           `no rule "a"`,
		"start: \"a\"\nstart: \"b\"":         `line 2: the rule "start" again`,
		"start: \"a":                         "line 1",
		"\nstart: /(?<=a)b/":                 "/(?<=a)b/: a regular expression that is not supported",
		"start: /a/x":                        "the flags x",
		"start: \"\\q\"":                     "an escape",
		"start: \"\\xff\"":                   "an escape",
		"start: A\nA.2: \"a\"":               "line 2: \".2",
		"start: list{\"a\"}":                 "{",
		"start: \"a\"\n%declare B":           "line 2: \"%declare",
		"start: \"a\"\n%import .other":       "line 2: \"%import",
		"start: \"a\"\n%import common.OTHER": "the import of common.OTHER",
		"start: \"z\"..\"a\"":                "not supported",
		"start: (\"a\"":                      "not closed",
		"start: \"a\")":                      "\")",
		"start: \"a\"~5..2":                  "repetition",
		"start: \"a\"~9999":                  "repetition",
		"start: start* \"a\"":                "begins with itself",
		"start: a\na: b \"x\"\nb: a \"y\" | \"z\"":       "begins with itself",
		"start: \"\xff\"":                                "UTF-8",
		"start: " + strings.Repeat("(", 100):             "parentheses",
		"start: " + strings.Repeat("\"a\" ", maxRules+1): "more than",
		"start: /.{1000}/~1000":                          "states",
	} {
		b := NewBuilder()
		p, err := b.Lark(grammar)
		if err == nil {
			_, err = b.Build(p)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v, want %q", grammar, err, want)
		}
	}
}

func FuzzLark(f *testing.F) {
	f.Add(patchGrammar)
	f.Add("start: a | start \"x\"~2..3 [b]\na: /x+/i \"a\"..\"c\"\n%import common (INT, WS)\n%ignore WS\n")
	f.Fuzz(func(t *testing.T, grammar string) {
		b := NewBuilder()
		if p, err := b.Lark(grammar); err == nil {
			_, _ = b.Build(p)
		}
	})
}
