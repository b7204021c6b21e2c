package tokenizer

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxReplacement bounds the factor by which one step can lengthen a text.
const maxReplacement = 16

// pattern is a text or a regular expression.
type pattern struct {
	String *string
	Regex  *string
}

// forms are the normalizers without parameters.
var forms = map[string]func(string) string{
	"NFC": norm.NFC.String, "NFD": norm.NFD.String, "NFKC": norm.NFKC.String, "NFKD": norm.NFKD.String,
	"Lowercase": lowercase, "StripAccents": dropMarks, "Nmt": cleanLikeNMT,
}

// readers read the normalizers with parameters.
var parameterized = map[string]func(data json.RawMessage, place string) (func(string) string, error){
	"Precompiled": readPrecompiled, "Prepend": prepend, "Replace": replaceNormalizer, "Strip": strip,
}

// trimmers are the normalizers that may drop the beginning of a text.
var trimmers = []string{"Nmt", "Precompiled", "StripAccents"}

// graphemeJoiner is the character that package norm puts after 30 combining characters in a row, and that
// other libraries do not.
const graphemeJoiner = "\u034F"

// normalize fails if the text, or an intermediate one, is longer than the limit.
func (t *hugging) normalize(s string, limit int) (string, error) {
	joiners := strings.Count(s, graphemeJoiner)
	for _, step := range t.normalizers {
		if s = step(s); len(s) > limit {
			return "", notEncodable("the normalized text is longer than %d bytes", limit)
		}
	}
	if strings.Count(s, graphemeJoiner) > joiners {
		return "", notEncodable("more than 30 combining characters in a row")
	}
	return s, nil
}

func (t *hugging) readNormalizer(doc *document) error {
	const place = "normalizer"
	return components(doc.Normalizer, place, "normalizers", func(kind string, data json.RawMessage) error {
		if kind == "BertNormalizer" {
			steps, err := readBERT(data)
			t.normalizers, t.trims = append(t.normalizers, steps...), true
			return err
		}
		step := forms[kind]
		if read := parameterized[kind]; read != nil {
			var err error
			if step, err = read(data, place); err != nil {
				return err
			}
		}
		if step == nil {
			return unsupported(place, "type %.40q", kind)
		}
		t.normalizers = append(t.normalizers, step)
		t.trims = t.trims || slices.Contains(trimmers, kind) || canTrim(data)
		return nil
	})
}

// canTrim reports whether the parameters of a normalizer let it drop the beginning of a text.
func canTrim(data json.RawMessage) bool {
	var p struct {
		Left    bool `json:"strip_left"`
		Content *string
	}
	err := json.Unmarshal(data, &p)
	return err == nil && (p.Left || p.Content != nil && *p.Content == "")
}

func prepend(data json.RawMessage, place string) (func(string) string, error) {
	var p struct{ Type, Prepend string }
	if err := decode(data, place, &p); err != nil {
		return nil, err
	}
	if len(p.Prepend) > maxReplacement {
		return nil, unsupported(place, "a Prepend of %d bytes, at most %d are allowed", len(p.Prepend), maxReplacement)
	}
	return func(s string) string {
		if s == "" {
			return s
		}
		return p.Prepend + s
	}, nil
}

// replacement replaces the matches of a pattern by a text.
type replacement struct {
	Type    string
	Pattern pattern
	Content string
}

func readReplacement(data json.RawMessage, place string) (r replacement, err error) {
	if err := decode(data, place, &r); err != nil {
		return r, err
	}
	if len(r.Content) > maxReplacement {
		return r, unsupported(place, "a Replace with %d bytes, at most %d are allowed", len(r.Content), maxReplacement)
	}
	return r, nil
}

// replaceText reads the replacement of a text; it occurs among normalizers and decoders.
func replaceText(data json.RawMessage, place string) (func(string) string, error) {
	r, err := readReplacement(data, place)
	if err != nil {
		return nil, err
	}
	if r.Pattern.String == nil || *r.Pattern.String == "" {
		return nil, unsupported(place, "a Replace whose pattern is not a text")
	}
	return func(s string) string { return strings.ReplaceAll(s, *r.Pattern.String, r.Content) }, nil
}

// replaceNormalizer reads the replacement of a text or of the matches of a regular expression, which must not be empty.
func replaceNormalizer(data json.RawMessage, place string) (func(string) string, error) {
	r, err := readReplacement(data, place)
	if err != nil || r.Pattern.Regex == nil {
		return replaceText(data, place)
	}
	re, err := newRegex(*r.Pattern.Regex, place)
	if err != nil {
		return nil, err
	}
	if re.re.MatchString("") {
		return nil, unsupported(place, "a Replace whose pattern %.200q matches the empty text", *r.Pattern.Regex)
	}
	return func(s string) string {
		var b strings.Builder
		at := 0
		re.each(s, func(start, end int) {
			b.WriteString(s[at:start])
			b.WriteString(r.Content)
			at = end
		})
		b.WriteString(s[at:])
		return b.String()
	}, nil
}

// dropMarks drops all marks.
func dropMarks(s string) string {
	return dropping(s, func(r rune) bool { return unicode.Is(unicode.M, r) })
}

// cleanLikeNMT drops control characters, and makes other separators spaces, as SentencePiece does for translation models.
func cleanLikeNMT(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n', r == '\f', r == '\r', r == '\u1680', '\u200B' <= r && r <= '\u200F', r == '\u2028', r == '\u2029',
			r == '\u2581', r == '\uFEFF', r == utf8.RuneError:
			return ' '
		case 0 < r && r < ' ', r == '\x7F', r == '\u008F', r == '\u009F':
			return -1
		}
		return r
	}, s)
}

func strip(data json.RawMessage, place string) (func(string) string, error) {
	var p struct {
		Type  string
		Left  bool `json:"strip_left"`
		Right bool `json:"strip_right"`
	}
	if err := decode(data, place, &p); err != nil {
		return nil, err
	}
	return func(s string) string {
		if p.Left {
			s = strings.TrimLeftFunc(s, unicode.IsSpace)
		}
		if p.Right {
			s = strings.TrimRightFunc(s, unicode.IsSpace)
		}
		return s
	}, nil
}
