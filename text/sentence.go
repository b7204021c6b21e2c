package text

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/jsonerror"
)

// Pooling is how the vectors of a text's tokens become the vector of the text.
type Pooling string

// Kinds of pooling.
const (
	// PoolMean: the mean of all tokens, control tokens included.
	PoolMean Pooling = "mean"
	// PoolCLS: the first token.
	PoolCLS Pooling = "cls"
	// PoolLast: the last token.
	PoolLast Pooling = "last"
	// PoolNone: the program returns one vector for each text.
	PoolNone Pooling = "none"
)

// EmbedOptions configures [LoadEmbedder]. Zero fields mean the defaults.
type EmbedOptions struct {
	Method    string  // of the program, default "forward"
	Pooling   Pooling // default PoolNone
	Normalize bool    // divide each vector by its Euclidean length
	Context   int     // maximum number of tokens, for programs without a bound or to use fewer
	Prompt    string  // precedes each text
	Instances int     // of the method that run at the same time, default 1
}

// SettingsError reports a file of a sentence-transformers model that is invalid, or has a setting that is not supported.
type SettingsError struct {
	File, Reason string
	Err          error // etrun.ErrUnsupported or ErrFormat
}

func (e *SettingsError) Error() string { return e.File + ": " + e.Reason }

// Unwrap returns the class.
func (e *SettingsError) Unwrap() error { return e.Err }

// sentenceFiles reads the files of a sentence-transformers model.
type sentenceFiles struct {
	read func(name string) ([]byte, error)
	o    EmbedOptions
}

// SentenceOptions returns the options in the files of a sentence-transformers model: modules.json and what it names,
// sentence_bert_config.json and config_sentence_transformers.json. read returns the content of a file of its folder, or an error that
// matches fs.ErrNotExist. found is false if there is no modules.json. Errors are those of read and *SettingsError.
func SentenceOptions(read func(name string) ([]byte, error)) (o EmbedOptions, found bool, err error) {
	s := &sentenceFiles{read: read}
	var modules []struct{ Path, Type string }
	if found, err = s.file("modules.json", &modules); err != nil || !found {
		return o, false, err
	}
	for _, m := range modules {
		kind := m.Type[strings.LastIndexByte(m.Type, '.')+1:]
		switch {
		case !filepath.IsLocal(cmp.Or(m.Path, ".")):
			return o, true, unsupportedSetting("modules.json", "the path %.100q, want one in the folder", m.Path)
		case kind == "Transformer":
			err = s.transformer(m.Path)
		case kind == "Pooling":
			err = s.pooling(filepath.Join(m.Path, "config.json"))
		case kind == "Normalize":
			s.o.Normalize = true
		default:
			err = unsupportedSetting("modules.json", "the module %.100q, want Transformer, Pooling and Normalize", m.Type)
		}
		if err != nil {
			return o, true, err
		}
	}
	return s.o, true, s.prompts()
}

// unsupportedSetting returns an error about a setting.
func unsupportedSetting(file, format string, args ...any) error {
	return &SettingsError{file, fmt.Sprintf(format, args...), etrun.ErrUnsupported}
}

// file decodes a file, if there is one.
func (s *sentenceFiles) file(name string, to any) (found bool, err error) {
	data, err := s.read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	if err := json.Unmarshal(data, to); err != nil {
		return true, &SettingsError{name, fmt.Sprintf("invalid JSON: %v", jsonerror.Plain(err)), etrun.ErrFormat}
	}
	return true, nil
}

// transformer reads the limit of a text's tokens.
func (s *sentenceFiles) transformer(folder string) error {
	name := filepath.Join(folder, "sentence_bert_config.json")
	var c struct {
		Most  *int `json:"max_seq_length"`
		Lower bool `json:"do_lower_case"`
	}
	_, err := s.file(name, &c)
	switch {
	case err != nil:
		return err
	case c.Lower:
		return unsupportedSetting(name, "do_lower_case true: the tokenizer's normalizer should convert texts to lower case")
	case c.Most != nil && *c.Most < 1:
		return unsupportedSetting(name, "max_seq_length %d, want at least 1", *c.Most)
	case c.Most != nil:
		s.o.Context = *c.Most
	}
	return nil
}

// poolings are the members of a pooling's configuration that are true or false.
var poolings = map[string]Pooling{"pooling_mode_mean_tokens": PoolMean, "pooling_mode_cls_token": PoolCLS,
	"pooling_mode_lasttoken": PoolLast}

// poolingNames are the values of pooling_mode of newer files.
var poolingNames = map[string]Pooling{"mean": PoolMean, "cls": PoolCLS, "lasttoken": PoolLast}

// pooling reads how texts are pooled.
func (s *sentenceFiles) pooling(name string) error {
	var members map[string]json.RawMessage
	found, err := s.file(name, &members)
	if err != nil {
		return err
	}
	if !found {
		return &SettingsError{name, "no such file, which modules.json names", etrun.ErrFormat}
	}
	for member, value := range members {
		p, on := poolings[member], string(value) == "true"
		var mode string
		switch {
		case member == "pooling_mode" && json.Unmarshal(value, &mode) == nil:
			p, on = poolingNames[mode], true
		case member == "include_prompt" && !on:
			return unsupportedSetting(name, "include_prompt false")
		case !strings.HasPrefix(member, "pooling_mode"):
			continue
		}
		switch {
		case on && p == "":
			return unsupportedSetting(name, "%s %.40s, want mean, cls or lasttoken", member, value)
		case on && s.o.Pooling != "":
			return unsupportedSetting(name, "several kinds of pooling at once")
		case on:
			s.o.Pooling = p
		}
	}
	return nil
}

// prompts reads the text that precedes all others.
func (s *sentenceFiles) prompts() error {
	const name = "config_sentence_transformers.json"
	var c struct {
		Prompts map[string]string
		Default *string `json:"default_prompt_name"`
	}
	if _, err := s.file(name, &c); err != nil || c.Default == nil {
		return err
	}
	p, ok := c.Prompts[*c.Default]
	if !ok {
		return unsupportedSetting(name, "default_prompt_name %.60q, which is none of the prompts", *c.Default)
	}
	s.o.Prompt = p
	return nil
}
