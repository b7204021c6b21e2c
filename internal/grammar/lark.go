package grammar

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// quotedText writes all characters as in a string of JSON, each in one way.
var quotedText = writer{func(r rune) Part { return inJSON([]rune{r, r}) }, inJSON}

// inJSON returns a character of ranges as in a string of JSON, nil if there is none.
func inJSON(ranges []rune) Part {
	var list []Part
	var long []rune
	for i := 0; i+1 < len(ranges); i += 2 {
		for r := ranges[i]; r <= min(ranges[i+1], ' '-1); r++ {
			list = append(list, runes(r, r))
		}
		if first, last := max(ranges[i], ' '), min(ranges[i+1], '~'); first <= last {
			list = append(list, runes(first, last))
		}
		if first := max(ranges[i], '~'+1); first <= ranges[i+1] {
			long = append(long, first, ranges[i+1])
		}
	}
	if p := characters(long); p != nil {
		list = append(list, p)
	}
	if list == nil {
		return nil
	}
	return Alt(list...)
}

// Expression returns the strings of JSON whose texts match a regular expression from their beginning to their end.
func (b *Builder) Expression(s string) (Part, error) {
	p, err := inQuotes(s)
	return Seq(Text(`"`), p, Text(`"`)), err
}

// inQuotes returns what is in the quotes of such strings.
func inQuotes(s string) (Part, error) {
	if len(s) > maxPattern {
		return nil, fmt.Errorf("a regular expression of %d bytes, at most %d are supported", len(s), maxPattern)
	}
	return quotedText.pattern(s)
}

// Lark returns the strings of JSON whose texts are those of the rule start of a grammar in the notation of Lark. There is no lexer:
// where that of Lark would prefer the longest terminal, any division of a text is one.
func (b *Builder) Lark(text string) (Part, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("want valid UTF-8")
	}
	r := &larkReader{gbnfReader: newGBNF(b, ""), line: 1, ignores: strings.Contains(text, "%ignore")}
	if err := r.translate(text); err != nil {
		return nil, fmt.Errorf("line %d: %w", r.line, err)
	}
	r.all, r.rest = r.out.String(), r.out.String()
	p, err := r.read("root-")
	return Seq(Text(`"`), p, Text(`"`)), err
}

// larkReader translates a grammar to GBNF, with rules for its terminals. Names with a hyphen are not the grammar's.
type larkReader struct {
	*gbnfReader
	out     strings.Builder
	line    int
	lines   int      // that have ended since the last rule
	depth   int      // of brackets
	name    string   // of the rule that is read
	list    [][]byte // its alternatives
	ignores bool     // text between terminals
	ignored []string // the rules of that
}

var (
	larkText  = `"(?:\\.|[^"\\\n])*"`
	larkToken = regexp.MustCompile(`^(?:(?P<space>[ \t\f\r]+|(?://|#)[^\n]*)|(?P<end>\n(?:\s|(?://|#)[^\n]*\n)*)|` +
		`[!?]*(?P<rule>_?[A-Za-z][A-Za-z0-9_]*)[ \t]*:|(?P<name>_?[A-Za-z][A-Za-z0-9_]*)|(?P<text>` + larkText + `i?)|` +
		`(?P<regex>/(?:\\.|[^/\\\n])+/[a-z]*)|(?P<alias>->[ \t]*[A-Za-z_][A-Za-z0-9_]*)|~[ \t]*(?P<times>[0-9]+(?:[ \t]*\.\.[ \t]*[0-9]+)?)|` +
		`(?P<ignore>%ignore\b)|%import[ \t]+common(?P<import>\.\w+(?:[ \t]*->[ \t]*\w+)?|[ \t]*\([^)]*\))|(?P<open>[(\[])|(?P<close>[)\]])|(?P<mark>[|*+?]))`)
	larkRange  = regexp.MustCompile(`^[ \t]*\.\.[ \t]*(` + larkText + `)`)
	larkImport = regexp.MustCompile(`^([A-Z_]+)(?:\s*->\s*([A-Z_][A-Z0-9_]*))?$`)
	itself     = regexp.MustCompile(`(?s)^\s*([A-Za-z0-9_]+)(\s*[^\s*+?{].*|\s*)$`)
)

// translate writes all rules.
func (r *larkReader) translate(text string) error {
	for text != "" {
		m := larkToken.FindStringSubmatch(text)
		if m == nil {
			return fmt.Errorf("%.20q is not supported", text)
		}
		text = text[len(m[0]):]
		i := 1 + slices.IndexFunc(m[1:], func(s string) bool { return s != "" })
		if err := r.token(larkToken.SubexpNames()[i], m[i], &text); err != nil {
			return err
		}
		r.line += strings.Count(m[0], "\n")
	}
	r.end()
	skip := ""
	if r.ignores {
		r.out.WriteString("\nskip- ::= (" + strings.Join(r.ignored, " | ") + ")*")
		skip = "skip- "
	}
	r.out.WriteString("\nroot- ::= " + skip + "start")
	return nil
}

// token translates a token of a kind, behind which the rest of the text follows.
func (r *larkReader) token(kind, s string, rest *string) error {
	switch kind {
	case "end":
		r.lines += strings.Count(s, "\n")
		if r.depth == 0 && !strings.HasPrefix(*rest, "|") {
			r.end()
		}
	case "rule", "ignore":
		r.end()
		if kind == "ignore" {
			s = fmt.Sprintf("I-%d", len(r.ignored)) // a terminal
			r.ignored = append(r.ignored, s)
		}
		r.name, r.list = s, [][]byte{nil}
	case "name":
		r.add(r.spaced(s, s == strings.ToUpper(s)))
	case "text", "regex":
		return r.terminal(s, rest)
	case "times":
		r.add("{" + strings.ReplaceAll(s, "..", ",") + "}")
	case "import":
		return r.imports(s)
	case "open":
		r.depth++
		r.add("(")
	case "close":
		r.depth--
		r.add(map[string]string{")": ")", "]": ")?"}[s])
	case "mark":
		if s == "|" && r.depth == 0 {
			r.list = append(r.list, nil)
			return nil
		}
		r.add(s)
	}
	return nil
}

// add adds to the last alternative.
func (r *larkReader) add(s string) {
	if r.list == nil {
		r.list = [][]byte{nil}
	}
	last := &r.list[len(r.list)-1]
	*last = append(append(*last, s...), ' ')
}

// spaced returns a part of a rule: a terminal that is no part of another one has ignored text after it.
func (r *larkReader) spaced(s string, terminal bool) string {
	if terminal && r.ignores && r.name != strings.ToUpper(r.name) {
		return "(" + s + " skip-)"
	}
	return s
}

// end writes the rule that was read. Alternatives that begin with the rule itself follow the others any number of times.
func (r *larkReader) end() {
	var first, again [][]byte
	for _, s := range r.list {
		if m := itself.FindSubmatch(s); m != nil && string(m[1]) == r.name {
			again = append(again, m[2])
		} else {
			first = append(first, s)
		}
	}
	text := bytes.Join(first, []byte("|"))
	switch {
	case first == nil:
		text = bytes.Join(r.list, []byte("|")) // an error of its own
	case again != nil:
		text = fmt.Appendf(nil, "(%s)(%s)*", text, bytes.Join(again, []byte("|")))
	}
	if r.list != nil {
		fmt.Fprintf(&r.out, "%s ::= %s", r.name, text)
	}
	r.out.WriteString(strings.Repeat("\n", r.lines))
	r.name, r.list, r.lines = "", nil, 0
}

// define adds a rule of a regular expression.
func (r *larkReader) define(name, s string) error {
	p, err := inQuotes(s)
	if err != nil || r.rules[name] != nil {
		return err
	}
	rule := r.rule(name)
	rule.defined = true
	r.Define(rule.id, p)
	return r.err
}

// terminal adds a text, a regular expression, or a range of characters.
func (r *larkReader) terminal(s string, rest *string) error {
	text, err := larkExpression(s)
	if m := larkRange.FindStringSubmatch(*rest); m != nil && err == nil {
		first := text
		text, err = larkExpression(m[1])
		text, *rest = "["+first+"-"+text+"]", (*rest)[len(m[0]):]
	}
	if err == nil && len(r.rules) >= maxRules {
		err = fmt.Errorf("more than %d rules and terminals", maxRules)
	}
	if err != nil {
		return err
	}
	name := fmt.Sprintf("t-%d", len(r.rules))
	r.add(r.spaced(name, true))
	return r.define(name, text)
}

// larkExpression returns a text or a regular expression in the syntax of package regexp.
func larkExpression(s string) (string, error) {
	end := strings.LastIndexAny(s, `"/`)
	inside, flags := strings.ReplaceAll(s[1:end], `\/`, "/"), s[end+1:]
	switch {
	case strings.Trim(flags, "imsu") != "":
		return "", fmt.Errorf("%.40s: the flags %s, want i, m or s", s, flags)
	case s[0] == '"':
		text, err := strconv.Unquote(`"` + inside + `"`)
		if err != nil || !utf8.ValidString(text) {
			return "", fmt.Errorf("the text %.40s: an escape that is not supported", s)
		}
		inside = regexp.QuoteMeta(text)
	}
	if flags = strings.ReplaceAll(flags, "u", ""); flags != "" {
		inside = "(?" + flags + ":" + inside + ")"
	}
	return inside, nil
}

const larkFloat = `[0-9]+[eE][+-]?[0-9]+|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?`

// larkCommon are the terminals that a grammar can import.
var larkCommon = map[string]string{
	"DIGIT": `[0-9]`, "HEXDIGIT": `[0-9a-fA-F]`, "INT": `[0-9]+`, "SIGNED_INT": `[+-]?[0-9]+`, "DECIMAL": `[0-9]+\.[0-9]*|\.[0-9]+`,
	"FLOAT": larkFloat, "SIGNED_FLOAT": `[+-]?(` + larkFloat + `)`, "NUMBER": larkFloat + `|[0-9]+`,
	"SIGNED_NUMBER": `[+-]?(` + larkFloat + `|[0-9]+)`, "ESCAPED_STRING": `"([^"\\\n]|\\.)*"`, "LCASE_LETTER": `[a-z]`,
	"UCASE_LETTER": `[A-Z]`, "LETTER": `[a-zA-Z]`, "WORD": `[a-zA-Z]+`, "CNAME": `[_a-zA-Z][_a-zA-Z0-9]*`, "WS_INLINE": `[ \t]+`,
	"WS": `[ \t\f\r\n]+`, "CR": `\r`, "LF": `\n`, "NEWLINE": `(\r?\n)+`, "SH_COMMENT": `#[^\n]*`, "CPP_COMMENT": `//[^\n]*`,
	"C_COMMENT": `/\*([^*]|\*+[^*/])*\*+/`, "SQL_COMMENT": `--[^\n]*`,
}

// imports adds terminals that are imported from common.
func (r *larkReader) imports(s string) error {
	for one := range strings.SplitSeq(strings.Trim(s, "(.) \t"), ",") {
		m := larkImport.FindStringSubmatch(strings.TrimSpace(one))
		if m == nil || larkCommon[m[1]] == "" {
			return fmt.Errorf("the import of common.%.40s is not supported", strings.TrimSpace(one))
		}
		if err := r.define(cmp.Or(m[2], m[1]), larkCommon[m[1]]); err != nil {
			return err
		}
	}
	return nil
}
