package tokenizer

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// word is a part of the text. First reports whether it is the beginning of the whole text.
type word struct {
	text  string
	first bool
}

// splitter is a pre-tokenizer.
type splitter func(words []word) ([]word, error)

// finder yields the matches of a pattern in a text.
type finder func(s string, yield func(start, end int))

// gpt2 is the pattern of the pre-tokenizer ByteLevel.
const gpt2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

func (t *hugging) readPreTokenizer(doc *document) error {
	return components(doc.PreTokenizer, "pre_tokenizer", "pretokenizers", func(kind string, data json.RawMessage) error {
		if t.trims && kind == "Metaspace" && bytes.Contains(data, []byte(`"first"`)) {
			return unsupported("pre_tokenizer", "Metaspace with prepend_scheme first after a normalizer that can drop the beginning of a text")
		}
		read, ok := preTokenizers[kind]
		if !ok {
			return unsupported("pre_tokenizer", "type %.40q", kind)
		}
		list, err := read(data)
		t.splitters = append(t.splitters, list...)
		return err
	})
}

var preTokenizers = map[string]func(json.RawMessage) ([]splitter, error){
	"ByteLevel":       readByteLevel,
	"Split":           readSplit,
	"Metaspace":       readMetaspace,
	"Digits":          readDigits,
	"WhitespaceSplit": readWhitespaceSplit,

	"BertPreTokenizer": readBERTSplit,
}

func readSplit(data json.RawMessage) ([]splitter, error) {
	var p struct {
		Type     string
		Pattern  pattern
		Behavior string
		Invert   bool
	}
	if err := decode(data, "pre_tokenizer", &p); err != nil {
		return nil, err
	}
	behavior, ok := behaviors[p.Behavior]
	switch {
	case !ok:
		return nil, unsupported("pre_tokenizer", "behavior %.40q", p.Behavior)
	case p.Pattern.Regex != nil:
		re, err := newRegex(*p.Pattern.Regex, "pre_tokenizer")
		if err != nil {
			return nil, err
		}
		return []splitter{cutting(re.each, behavior, p.Invert)}, nil
	case p.Pattern.String != nil && *p.Pattern.String != "":
		return []splitter{cutting(literal(*p.Pattern.String), behavior, p.Invert)}, nil
	}
	return nil, unsupported("pre_tokenizer", "a Split without a pattern")
}

func readMetaspace(data json.RawMessage) ([]splitter, error) {
	p, err := metaspaceOf(data, "pre_tokenizer")
	if err != nil {
		return nil, err
	}
	list := []splitter{mapping(func(w word) string {
		text := strings.ReplaceAll(w.text, " ", p.Replacement)
		if p.Scheme == "never" || p.Scheme == "first" && !w.first || strings.HasPrefix(text, p.Replacement) {
			return text
		}
		return p.Replacement + text
	})}
	if p.Split == nil || *p.Split {
		list = append(list, cutting(literal(p.Replacement), behaviors["MergedWithNext"], false))
	}
	return list, nil
}

// metaspace are the parameters of the pre-tokenizer and of the decoder.
type metaspace struct {
	Type        string
	Replacement string
	Prefix      *bool  `json:"add_prefix_space"`
	Scheme      string `json:"prepend_scheme"`
	Split       *bool
	Rep         string `json:"str_rep"` // of old files, the same as the replacement
}

func metaspaceOf(data json.RawMessage, place string) (*metaspace, error) {
	p := new(metaspace)
	if err := decode(data, place, p); err != nil {
		return nil, err
	}
	if p.Scheme == "" {
		p.Scheme = "always"
		if p.Prefix != nil && !*p.Prefix {
			p.Scheme = "never"
		}
	}
	switch {
	case utf8.RuneCountInString(p.Replacement) != 1:
		return nil, unsupported(place, "a Metaspace that replaces by %.40q", p.Replacement)
	case p.Scheme != "always" && p.Scheme != "first" && p.Scheme != "never":
		return nil, unsupported(place, "prepend_scheme %.40q", p.Scheme)
	case p.Prefix != nil && *p.Prefix == (p.Scheme == "never"):
		return nil, unsupported(place, "add_prefix_space %v with prepend_scheme %q", *p.Prefix, p.Scheme)
	}
	return p, nil
}

func readDigits(data json.RawMessage) ([]splitter, error) {
	var p struct {
		Type       string
		Individual bool `json:"individual_digits"`
	}
	if err := decode(data, "pre_tokenizer", &p); err != nil {
		return nil, err
	}
	behavior := behaviors["Contiguous"]
	if p.Individual {
		behavior = behaviors["Isolated"]
	}
	return []splitter{cutting(characters(unicode.IsNumber), behavior, false)}, nil
}

func readWhitespaceSplit(data json.RawMessage) ([]splitter, error) {
	var p struct{ Type string }
	if err := decode(data, "pre_tokenizer", &p); err != nil {
		return nil, err
	}
	return []splitter{cutting(characters(unicode.IsSpace), behaviors["Removed"], false)}, nil
}

// readBERTSplit reads the pre-tokenizer of BERT: words between spaces, and each punctuation character.
func readBERTSplit(data json.RawMessage) ([]splitter, error) {
	list, err := readWhitespaceSplit(data)
	return append(list, cutting(characters(isPunctuation), behaviors["Isolated"], false)), err
}

// isPunctuation includes the symbols of ASCII.
func isPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return '!' <= r && r <= '/' || ':' <= r && r <= '@' || '[' <= r && r <= '`' || '{' <= r && r <= '~'
	}
	return unicode.IsPunct(r)
}

// literal finds a text.
func literal(pattern string) finder {
	return func(s string, yield func(start, end int)) {
		for at := 0; ; {
			i := strings.Index(s[at:], pattern)
			if i < 0 {
				return
			}
			yield(at+i, at+i+len(pattern))
			at += i + len(pattern)
		}
	}
}

// characters finds characters one by one.
func characters(is func(r rune) bool) finder {
	return func(s string, yield func(start, end int)) {
		for i, r := range s {
			if is(r) {
				yield(i, i+utf8.RuneLen(r))
			}
		}
	}
}

// mapping returns a splitter that changes each word.
func mapping(change func(w word) string) splitter {
	return func(words []word) ([]word, error) {
		size := 0
		for i := range words {
			words[i].text = change(words[i])
			if size += len(words[i].text); size > 3*maxText {
				return nil, notEncodable("the text is longer than %d bytes after pre-tokenization", 3*maxText)
			}
		}
		return words, nil
	}
}

// span is a part of a word, between matches or a match.
type span struct {
	start, end int
	match      bool
}

// behaviors are the treatments of matches. They change the list of spans in place.
var behaviors = map[string]func(spans []span) []span{
	"Removed":            removed,
	"Isolated":           func(spans []span) []span { return spans },
	"MergedWithPrevious": mergedWithPrevious,
	"MergedWithNext":     mergedWithNext,
	"Contiguous":         contiguous,
}

func removed(spans []span) []span {
	kept := spans[:0]
	for _, s := range spans {
		if !s.match {
			kept = append(kept, s)
		}
	}
	return kept
}

// mergedWithPrevious joins each match to the span before it, unless that is a match as well.
func mergedWithPrevious(spans []span) []span {
	kept, after := spans[:0], false
	for _, s := range spans {
		if n := len(kept); s.match && !after && n > 0 {
			kept[n-1].end = s.end
		} else {
			kept = append(kept, s)
		}
		after = s.match
	}
	return kept
}

// mergedWithNext joins each match to the span after it, unless that is a match as well.
func mergedWithNext(spans []span) []span {
	kept := spans[:0]
	for i := 0; i < len(spans); i++ {
		s := spans[i]
		if s.match && i+1 < len(spans) && !spans[i+1].match {
			i++
			s.end = spans[i].end
		}
		kept = append(kept, s)
	}
	return kept
}

func contiguous(spans []span) []span {
	kept, previous := spans[:0], false
	for _, s := range spans {
		if n := len(kept); s.match == previous && n > 0 {
			kept[n-1].end = s.end
		} else {
			kept = append(kept, s)
		}
		previous = s.match
	}
	return kept
}

// cutting returns a splitter that splits words at matches. With invert, the text between matches
// takes their role.
func cutting(find finder, behavior func([]span) []span, invert bool) splitter {
	return func(words []word) (out []word, err error) {
		var spans []span
		for _, w := range words {
			spans = spans[:0]
			at := 0
			find(w.text, func(start, end int) {
				if at < start {
					spans = append(spans, span{at, start, invert})
				}
				spans = append(spans, span{start, end, !invert})
				at = end
			})
			if at < len(w.text) {
				spans = append(spans, span{at, len(w.text), invert})
			}
			for _, s := range behavior(spans) {
				out = append(out, word{w.text[s.start:s.end], w.first && s.start == 0})
			}
		}
		return out, nil
	}
}
