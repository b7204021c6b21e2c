package tokenizer

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

const (
	maxPattern    = 4 << 10
	maxBacktracks = 4 << 20         // entries of the stack of one match
	matchTime     = 5 * time.Second // of one match
	byteTime      = 10 * time.Microsecond
)

// budget is the time that the regular expressions of one Encode may take. Patterns of real files
// take less than a hundredth of it.
type budget struct{ end time.Time }

func newBudget(size int) *budget {
	return &budget{time.Now().Add(matchTime + time.Duration(size)*byteTime)}
}

// regex is a regular expression whose meaning in regexp2 is the same as in Oniguruma, which Hugging
// Face's library uses, and in Rust's fancy-regex, which tiktoken uses.
type regex struct{ re *regexp2.Regexp }

func newRegex(pattern, place string) (*regex, error) {
	if len(pattern) > maxPattern {
		return nil, unsupported(place, "a pattern of %d bytes, at most %d are allowed", len(pattern), maxPattern)
	}
	v := vetting{rest: pattern}
	if err := v.vet(); err != "" {
		return nil, unsupported(place, "pattern %.200q: %s", pattern, err)
	}
	re, err := regexp2.Compile(v.out.String(), regexp2.OptionMaxBacktrackingStackSize(maxBacktracks))
	if err != nil {
		return nil, unsupported(place, "pattern %.200q: %.200s", pattern, err)
	}
	re.MatchTimeout = matchTime
	return &regex{re}, nil
}

// each yields the offsets of the matches that are not empty.
func (r *regex) each(s string, b *budget, yield func(start, end int)) error {
	offset, at := 0, 0 // byte and rune before which all is done
	late := false
	err := r.re.FindRunesMatches([]rune(s), -1, func(m regexp2.MatchView) bool {
		index, length, _ := m.GroupRange(0)
		if late = time.Now().After(b.end); late || length == 0 {
			return !late
		}
		start := offset + runesLength(s[offset:], index-at)
		end := start + runesLength(s[start:], length)
		offset, at = end, index+length
		yield(start, end)
		return true
	})
	if err == nil && late {
		return notEncodable("the regular expressions take too long")
	}
	if err != nil {
		return notEncodable("regular expression: %.200s", err)
	}
	return nil
}

// runesLength returns the length of the first n characters of s.
func runesLength(s string, n int) int {
	i := 0
	for ; n > 0; n-- {
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return i
}

// vetting checks that a pattern uses only what means the same in all three libraries.
type vetting struct {
	rest       string
	out        strings.Builder
	quantified bool // a quantifier stands before rest
}

// groups are the beginnings of groups that are allowed.
var groups = []string{"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"}

// caseless are the texts for which ignoring the case means more than single characters: ß is ss.
var caseless = []string{"ss", "st", "ff", "fi", "fl"}

func (v *vetting) take(n int) {
	v.out.WriteString(v.rest[:n])
	v.rest = v.rest[n:]
}

// vet returns what is not supported, "" for nothing.
func (v *vetting) vet() string {
	for v.rest != "" {
		var problem string
		c := v.rest[0]
		quantifier := false
		switch c {
		case '\\':
			problem = v.escape()
		case '[':
			problem = v.class()
		case '(':
			problem = v.group()
		case '*', '+', '?', '{':
			quantifier = true
			problem = v.quantifier()
		case '^', '$', '.':
			problem = string(c) + " outside of a class"
		default:
			v.take(1)
		}
		if problem != "" {
			return problem
		}
		v.quantified = quantifier
	}
	return ""
}

func (v *vetting) quantifier() string {
	c := v.rest[0]
	if v.quantified && c != '?' {
		return "a possessive or repeated quantifier"
	}
	if c != '{' {
		v.take(1)
		return ""
	}
	end := strings.IndexByte(v.rest, '}')
	if end < 2 || strings.Trim(v.rest[1:end], "0123456789,") != "" || v.rest[1] == ',' {
		return "a { that begins no quantifier"
	}
	v.take(end + 1)
	if strings.HasPrefix(v.rest, "?") || strings.HasPrefix(v.rest, "+") {
		return "a repeated quantifier"
	}
	return ""
}

func (v *vetting) group() string {
	if !strings.HasPrefix(v.rest, "(?") {
		v.take(1)
		return ""
	}
	for _, g := range groups {
		if strings.HasPrefix(v.rest, g) {
			v.take(len(g))
			return ""
		}
	}
	inner, ok := strings.CutPrefix(v.rest, "(?i:")
	end := strings.IndexByte(inner, ')')
	if !ok || end < 0 {
		return "a group of another kind"
	}
	for _, c := range []byte(inner[:end]) {
		if c != '\'' && c != '|' && c != '[' && c != ']' && (c < 'a' || c > 'z') {
			return "(?i:) with other than small letters"
		}
	}
	for _, text := range caseless {
		if strings.Contains(inner[:end], text) {
			return "(?i:) with " + text
		}
	}
	v.take(len("(?i:") + end + 1)
	return ""
}

func (v *vetting) escape() string {
	if len(v.rest) < 2 {
		return "\\ at the end"
	}
	switch c := v.rest[1]; {
	case strings.IndexByte("sSdDrntfv", c) >= 0, c < utf8.RuneSelf && unicode.In(rune(c), unicode.P, unicode.S), c == ' ':
		v.take(2)
	case c == 'p' || c == 'P':
		end := strings.IndexByte(v.rest, '}')
		if end < 4 || v.rest[2] != '{' || !knownClass(v.rest[3:end]) {
			return "a \\p that is no category or script"
		}
		v.take(end + 1)
	case c == 'u' && len(v.rest) >= 6 && strings.Trim(v.rest[2:6], "0123456789abcdefABCDEF") == "":
		v.take(6)
	case c == 'x' && len(v.rest) >= 4 && strings.Trim(v.rest[2:4], "0123456789abcdefABCDEF") == "":
		v.take(4)
	default:
		return "\\" + string(rune(c))
	}
	return ""
}

// knownClass tells whether a name is a general category, except for those with unassigned
// characters, or a script.
func knownClass(name string) bool {
	if _, ok := unicode.Scripts[name]; ok {
		return true
	}
	_, ok := unicode.Categories[name]
	return ok && len(name) <= 2 && name[0] != 'C' && name != "LC"
}

// class copies a character class. A class inside it is a union in Oniguruma.
func (v *vetting) class() string {
	v.take(1)
	if strings.HasPrefix(v.rest, "^") {
		v.take(1)
	}
	if strings.HasPrefix(v.rest, "]") {
		return "an empty class"
	}
	depth := 1
	for v.rest != "" {
		switch c := v.rest[0]; {
		case c == '\\':
			if problem := v.escape(); problem != "" {
				return problem
			}
		case c == '[':
			if len(v.rest) < 2 || strings.IndexByte("^:]", v.rest[1]) >= 0 || strings.HasSuffix(v.out.String(), "-") {
				return "a class inside a class"
			}
			depth++
			v.rest = v.rest[1:]
		case c == ']':
			if depth--; depth == 0 {
				v.take(1)
				return ""
			}
			v.rest = v.rest[1:]
			if strings.HasPrefix(v.rest, "-") {
				return "- after a class inside a class"
			}
		case strings.HasPrefix(v.rest, "&&"):
			return "an intersection of classes"
		default:
			v.take(1)
		}
	}
	return "a class without an end"
}
