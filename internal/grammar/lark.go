package grammar

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/etrun-go/etrun/internal/lazy"
)

// quotedText writes all characters as in a string of JSON, each in one way.
var quotedText = writer{func(r rune) Part { return inJSON([]rune{r, r}) }, inJSON}

// inJSON returns a character of ranges as in a string of JSON.
func inJSON(ranges []rune) Part {
	return func(b *Builder, next int32) int32 {
		var list []Part
		for i := 0; i+1 < len(ranges) && b.err == nil; i += 2 {
			low, high := ranges[i], ranges[i+1]
			for ; low <= min(high, ' '-1); low++ {
				list = append(list, runes(low, low))
			}
			if end := min(high, '~'); low <= end {
				list = append(list, runes(low, end))
			}
			list = append(list, inUTF8([]rune{max(low, '~'+1), high})...)
		}
		return Alt(list...)(b, next)
	}
}

// Expression returns the texts, in strings of JSON, that match a regular expression from their beginning to their end.
func (b *Builder) Expression(s string) (Part, error) {
	if len(s) > maxPattern {
		return nil, fmt.Errorf("a regular expression of %d bytes, at most %d are supported", len(s), maxPattern)
	}
	return quotedText.pattern(s)
}

const larkText = `"(?:\\.|[^"\\\n])*"i?`

// What is translated to GBNF. Names with a hyphen are not the grammar's; a terminal has its number between bytes 1, a rule follows a
// byte 0.
var (
	larkTerminal = lazy.Pattern(`//[^\n]*|#[^\n]*|(` + larkText + `)[ \t]*\.\.[ \t]*(` + larkText + `)|` + larkText +
		`|/(?:\\.|[^/\\\n])+/[a-z]*`)
	larkImport   = lazy.Pattern(`(?m)^%import[ \t]+common(?:\.(\w+)(?:[ \t]*->[ \t]*(\w+))?|[ \t]*\(([^)]*)\))`)
	larkKnown    = lazy.Pattern(`~[ \t]*\d+(?:[ \t]*\.\.[ \t]*\d+)?|->[ \t]*\w+|\x01\d+\x01|(?m:^%ignore\b)`)
	larkUnknown  = lazy.Pattern(`[^\w\s:|()\[\]*+?!].*`)
	larkRewrites = []struct {
		from func() *regexp.Regexp
		to   string
	}{
		{lazy.Pattern(`\x01(\d+)\x01`), `T-$1`},
		{lazy.Pattern(`(\s*\n\s*)\|`), `|$1`}, // GBNF has ends of lines after it
		{lazy.Pattern(`->[ \t]*\w+`), ``},
		{lazy.Pattern(`~[ \t]*(\d+)[ \t]*\.\.[ \t]*(\d+)`), `{$1,$2}`},
		{lazy.Pattern(`~[ \t]*(\d+)`), `{$1}`},
		{lazy.Pattern(`\[`), `(`},
		{lazy.Pattern(`\]`), `)?`},
		{lazy.Pattern(`(?m)^[!?]*([A-Za-z_]\w*)[ \t]*:`), "\x00$1 ::="},
		{lazy.Pattern(`(?m)^%ignore\b`), "\x00I- ::="},
	}
	larkName = lazy.Pattern(`[A-Za-z_][\w-]*`)
)

// Lark returns the texts, in strings of JSON, of the rule start of a grammar in the notation of Lark. There is no lexer: where that of
// Lark would prefer the longest terminal, any division of a text is one.
func (b *Builder) Lark(text string) (Part, error) {
	r := newGBNF(b, "")
	if !utf8.ValidString(text) || strings.Contains(text, "\x01") {
		return nil, errors.New("want valid UTF-8 without control characters")
	}
	var failed error
	text = larkTerminal().ReplaceAllStringFunc(text, func(s string) string {
		if s[0] == '#' || strings.HasPrefix(s, "//") || failed != nil {
			return ""
		}
		failed = r.larkTerminal(s)
		return fmt.Sprintf("\x01%d\x01", len(r.rules))
	})
	text = larkImport().ReplaceAllStringFunc(text, func(s string) string {
		failed = cmp.Or(failed, r.larkImport(s))
		return ""
	})
	if failed != nil {
		return nil, failed
	}
	rest := larkKnown().ReplaceAllString(text, "")
	if at := larkUnknown().FindStringIndex(rest); at != nil {
		return nil, fmt.Errorf("line %d: %.40q is not supported", 1+strings.Count(rest[:at[0]], "\n"), rest[at[0]:at[1]])
	}
	for _, x := range larkRewrites {
		text = x.from().ReplaceAllString(text, x.to)
	}
	r.all = larkRules(text)
	r.rest = r.all
	return r.read("root-")
}

// larkRules returns the rules of a translated grammar, and root-. Ignored texts may be at the beginning and after each terminal.
func larkRules(text string) string {
	var out strings.Builder
	var ignored []string
	ignores := strings.Contains(text, "\x00I- ")
	for i, rule := range strings.Split(text, "\x00") {
		name, body, isRule := strings.Cut(rule, " ::=")
		if name == "I-" {
			name = fmt.Sprintf("I-%d", i)
			ignored = append(ignored, name)
		}
		if ignores && isRule && name != strings.ToUpper(name) {
			body = larkName().ReplaceAllStringFunc(body, func(s string) string {
				if s != strings.ToUpper(s) {
					return s
				}
				return "(" + s + " skip-)"
			})
		}
		if out.WriteString(name); isRule {
			out.WriteString(" ::=" + body)
		}
	}
	skip := ""
	if ignores {
		out.WriteString("\nskip- ::= (" + strings.Join(ignored, " | ") + ")*")
		skip = "skip- "
	}
	return out.String() + "\nroot- ::= " + skip + "start"
}

// defineLark adds a rule of a regular expression.
func (r *gbnfReader) defineLark(name, s string) error {
	p, err := r.Expression(s)
	switch {
	case err == nil && len(r.rules) >= maxRules:
		err = fmt.Errorf("more than %d rules and terminals", maxRules)
	case err == nil && !r.rule(name).defined:
		r.rules[name].defined = true
		r.Define(r.rules[name].id, p)
		err = r.err
	}
	return err
}

// larkTerminal adds the next terminal: a text, a regular expression, or a range of characters.
func (r *gbnfReader) larkTerminal(s string) error {
	name := fmt.Sprintf("T-%d", len(r.rules)+1)
	if m := larkTerminal().FindStringSubmatch(s); m[1] != "" {
		first, err := larkExpression(m[1])
		last, err2 := larkExpression(m[2])
		return cmp.Or(err, err2, r.defineLark(name, "["+first+"-"+last+"]"))
	}
	text, err := larkExpression(s)
	if err == nil {
		err = r.defineLark(name, text)
	}
	if err != nil {
		return fmt.Errorf("%.40s: %w", s, err)
	}
	return nil
}

// larkExpression returns a text or a regular expression in the syntax of package regexp.
func larkExpression(s string) (string, error) {
	end := strings.LastIndexAny(s, `"/`)
	inside, flags := strings.ReplaceAll(s[1:end], `\/`, "/"), strings.ReplaceAll(s[end+1:], "u", "")
	if s[0] == '"' {
		text, err := strconv.Unquote(`"` + inside + `"`)
		if err != nil || !utf8.ValidString(text) {
			return "", errors.New("an escape that is not supported")
		}
		inside = regexp.QuoteMeta(text)
	}
	switch {
	case strings.Trim(flags, "ims") != "":
		return "", fmt.Errorf("the flags %s, want i, m or s", flags)
	case flags != "":
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

// larkImport adds terminals that are imported from common.
func (r *gbnfReader) larkImport(s string) error {
	m := larkImport().FindStringSubmatch(s)
	for one := range strings.SplitSeq(cmp.Or(m[3], m[1]+"->"+m[2]), ",") {
		name, as, _ := strings.Cut(one, "->")
		name, as = strings.TrimSpace(name), strings.TrimSpace(as)
		if larkCommon[name] == "" {
			return fmt.Errorf("the import of common.%.40s is not supported", name)
		}
		if err := r.defineLark(cmp.Or(as, name), larkCommon[name]); err != nil {
			return err
		}
	}
	return nil
}
