// Package modelfile (no compatibility promise) recognises the files that language models are published with, for errors
// about a file in the place of another one.
package modelfile

import (
	"bytes"
	"encoding/json"
)

// Kinds of files.
const (
	Unknown         = ""
	Jinja           = "a Jinja template"
	TokenizerJSON   = "a tokenizer.json"
	TokenizerConfig = "a tokenizer_config.json"
	ChatTemplate    = "a chat_template.json with a Jinja template"
	SpecialTokens   = "a special_tokens_map.json"
	Vocabulary      = "a vocab.json or added_tokens.json"
	Merges          = "a merges.txt"
	Tekken          = "a tekken.json"
	ModelConfig     = "a config.json"
	Generation      = "a generation_config.json"
	Params          = "a params.json"
	WeightIndex     = "an index of weights"
	Template        = "a chat template in this project's form"
	Program         = "an ExecuTorch program"
	Safetensors     = "a safetensors file"
	GGUF            = "a GGUF file"
	Zip             = "a zip archive, as PyTorch writes"
)

// beginnings are bytes at a place of files.
var beginnings = []struct {
	kind, magic string
	at          int
}{
	{Program, "ET", 4}, {Safetensors, `{"`, 8}, {GGUF, "GGUF", 0}, {Zip, "PK\x03\x04", 0}, {Merges, "#version:", 0},
}

// members are JSON members that only files of a kind have. The first row of which a file has all members applies.
var members = []struct {
	kind  string
	names []string
}{
	{TokenizerJSON, []string{"model", "added_tokens"}},
	{Tekken, []string{"config", "vocab"}},
	{TokenizerConfig, []string{"tokenizer_class"}},
	{TokenizerConfig, []string{"added_tokens_decoder"}},
	{TokenizerConfig, []string{"chat_template", "eos_token"}},
	{TokenizerConfig, []string{"model_max_length"}},
	{ChatTemplate, []string{"chat_template"}},
	{WeightIndex, []string{"weight_map"}},
	{ModelConfig, []string{"architectures"}},
	{ModelConfig, []string{"model_type"}},
	{Params, []string{"dim", "n_layers"}},
	{Generation, []string{"eos_token_id"}},
	{Generation, []string{"transformers_version"}},
	{SpecialTokens, []string{"eos_token"}},
	{SpecialTokens, []string{"additional_special_tokens"}},
	{Template, []string{"message"}},
}

// maxMembers bounds the members of an object that are read.
const maxMembers = 256

// Identify returns the kind of a file from its content.
func Identify(data []byte) string {
	for _, b := range beginnings {
		if len(data) > b.at && bytes.HasPrefix(data[b.at:], []byte(b.magic)) {
			return b.kind
		}
	}
	text := bytes.TrimLeft(data, "\xef\xbb\xbf \t\r\n")
	if bytes.HasPrefix(text, []byte("{")) {
		if kind := object(text); kind != Unknown {
			return kind
		}
	}
	if bytes.Contains(text, []byte("{%")) || bytes.Contains(text, []byte("{{")) {
		return Jinja
	}
	return Unknown
}

// object returns the kind of a JSON object by its members.
func object(text []byte) string {
	found, numbers := make(map[string]bool), 0
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return Unknown
	}
	for d.More() && len(found) < maxMembers {
		name, err := d.Token()
		if err != nil {
			break // what was read may be enough
		}
		var value json.RawMessage
		if s, ok := name.(string); !ok || d.Decode(&value) != nil {
			break
		} else {
			found[s] = true
		}
		if c := value[0]; c == '-' || '0' <= c && c <= '9' {
			numbers++
		}
	}
	if len(found) == 0 {
		return Unknown
	}
	for _, m := range members {
		all := true
		for _, name := range m.names {
			all = all && found[name]
		}
		if all {
			return m.kind
		}
	}
	if numbers == len(found) {
		return Vocabulary
	}
	return Unknown
}
