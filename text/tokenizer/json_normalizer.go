package tokenizer

import (
	"encoding/json"
	"strings"
	"unicode"

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
	"Lowercase": lowercase,
}

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
		var step func(string) string
		var err error
		switch kind {
		case "BertNormalizer":
			steps, err := readBERT(data)
			t.normalizers, t.trims = append(t.normalizers, steps...), true
			return err
		case "Prepend":
			step, err = prepend(data, place)
		case "Replace":
			step, err = replace(data, place)
		case "Strip":
			step, err = strip(data, place)
		default:
			if step = forms[kind]; step == nil {
				err = unsupported(place, "type %.40q", kind)
			}
		}
		t.normalizers = append(t.normalizers, step)
		t.trims = t.trims || canTrim(data)
		return err
	})
}

// canTrim reports whether a normalizer may drop the beginning of a text.
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

// replace reads a replacement of texts; it occurs among normalizers and decoders.
func replace(data json.RawMessage, place string) (func(string) string, error) {
	var r struct {
		Type    string
		Pattern pattern
		Content string
	}
	if err := decode(data, place, &r); err != nil {
		return nil, err
	}
	if r.Pattern.String == nil || *r.Pattern.String == "" {
		return nil, unsupported(place, "a Replace whose pattern is not a text")
	}
	if len(r.Content) > maxReplacement {
		return nil, unsupported(place, "a Replace with %d bytes, at most %d are allowed", len(r.Content), maxReplacement)
	}
	return func(s string) string { return strings.ReplaceAll(s, *r.Pattern.String, r.Content) }, nil
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
