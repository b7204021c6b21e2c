package tokenizer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/etrun-go/etrun/internal/jsonerror"
	"github.com/etrun-go/etrun/internal/modelfile"
)

// vocabularyConfig has the members of a tokenizer_config.json that change how BERT's vocab.txt is used.
type vocabularyConfig struct {
	Lower   *bool               `json:"do_lower_case"`
	Basic   *bool               `json:"do_basic_tokenize"`
	Chinese *bool               `json:"tokenize_chinese_chars"`
	Accents *bool               `json:"strip_accents"`
	Never   []string            `json:"never_split"`
	Unknown modelfile.TokenName `json:"unk_token"`
	CLS     modelfile.TokenName `json:"cls_token"`
	SEP     modelfile.TokenName `json:"sep_token"`
	Pad     modelfile.TokenName `json:"pad_token"`
	Mask    modelfile.TokenName `json:"mask_token"`
}

// isVocabulary reports whether a file is BERT's vocab.txt: a token on each line, among them the control tokens.
func isVocabulary(data []byte) bool {
	const line = "\n"
	text := line + string(data[:min(len(data), 1<<16)])
	text = strings.ReplaceAll(text, "\r\n", line)
	return strings.Contains(text, "\n[UNK]\n") && strings.Contains(text, "\n[SEP]\n") && strings.Contains(text, "\n[CLS]\n")
}

func parseVocabulary(data []byte) (Tokenizer, error) { return ParseVocabulary(data, nil) }

// ParseVocabulary reads BERT's vocab.txt, whose lines are the tokens of WordPiece in the order of their ids, with the
// tokenizer_config.json beside it. If that is nil, texts are converted to lower case unless a token has an upper case letter.
func ParseVocabulary(data, config []byte) (Tokenizer, error) {
	if !utf8.Valid(data) {
		return nil, malformed("file", "invalid UTF-8")
	}
	var c vocabularyConfig
	if config != nil {
		if err := json.Unmarshal(config, &c); err != nil {
			return nil, malformed("tokenizer_config.json", "%.200s", jsonerror.Plain(err))
		}
	}
	if c.Basic != nil && !*c.Basic || len(c.Never) > 0 {
		return nil, unsupported("tokenizer_config.json", "do_basic_tokenize false, or never_split")
	}
	ids, err := lines(data)
	if err != nil {
		return nil, err
	}
	doc, err := c.document(ids)
	if err != nil {
		return nil, err
	}
	return newHugging(doc)
}

// lines returns the tokens of a vocab.txt. Empty lines have ids that are no tokens.
func lines(data []byte) (map[string]int32, error) {
	ids, id := make(map[string]int32), int32(0)
	for line := range bytes.Lines(data) {
		name := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
		if _, twice := ids[name]; twice {
			return nil, malformed("file", "%.60q on line %d, and on an earlier one", name, id+1)
		}
		if id >= maxTokens {
			return nil, unsupported("file", "more than %d tokens", maxTokens)
		}
		if name != "" {
			ids[name] = id
		}
		id++
	}
	return ids, nil
}

// document describes the tokenizer as a tokenizer.json does.
func (c *vocabularyConfig) document(ids map[string]int32) (*document, error) {
	lower := !hasUpper(ids)
	if c.Lower != nil {
		lower = *c.Lower
	}
	cls, sep := string(cmp.Or(c.CLS, "[CLS]")), string(cmp.Or(c.SEP, "[SEP]"))
	unknown := cmp.Or(c.Unknown, "[UNK]")
	doc := &document{}
	for _, name := range []string{cls, sep, string(unknown), string(cmp.Or(c.Pad, "[PAD]")), string(cmp.Or(c.Mask, "[MASK]"))} {
		if id, ok := ids[name]; ok {
			doc.AddedTokens = append(doc.AddedTokens, addedToken{ID: int(id), Content: name, Special: true})
		}
	}
	for _, part := range []struct {
		to    *json.RawMessage
		value map[string]any
	}{
		{&doc.Normalizer, map[string]any{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": c.Chinese == nil || *c.Chinese,
			"strip_accents": c.Accents, "lowercase": lower}},
		{&doc.PreTokenizer, map[string]any{"type": "BertPreTokenizer"}},
		{&doc.Model, map[string]any{"type": "WordPiece", "unk_token": unknown, "vocab": ids}},
		{&doc.Decoder, map[string]any{"type": "WordPiece"}},
	} {
		var err error
		if *part.to, err = json.Marshal(part.value); err != nil {
			return nil, malformed("file", "%v", err)
		}
	}
	clsID, ok := ids[cls]
	sepID, ok2 := ids[sep]
	if !ok || !ok2 {
		return nil, malformed("file", "no token %.60q, or none %.60q", cls, sep)
	}
	var err error
	doc.PostProcessor, err = json.Marshal(map[string]any{"type": "BertProcessing", "cls": []any{cls, clsID}, "sep": []any{sep, sepID}})
	return doc, err
}

// hasUpper reports whether a token has an upper case letter. The names of control tokens do not count.
func hasUpper(ids map[string]int32) bool {
	for name := range ids {
		if !strings.HasPrefix(name, "[") && strings.ContainsFunc(name, unicode.IsUpper) {
			return true
		}
	}
	return false
}
