package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/internal/jsonerror"
	"github.com/etrun-go/etrun/internal/modelfile"
)

// tekken is a file of Mistral's: ranked texts as in tiktoken files, behind special tokens.
type tekken struct {
	Config struct {
		Pattern string `json:"pattern"`
		Size    int    `json:"default_vocab_size"`         // with special tokens; the file may list more texts
		Special int    `json:"default_num_special_tokens"` // the id of the first text
	} `json:"config"`
	Vocab []struct {
		Rank int    `json:"rank"`
		Text []byte `json:"token_bytes"`
	} `json:"vocab"`
	Specials []struct {
		Rank int    `json:"rank"`
		Name string `json:"token_str"`
	} `json:"special_tokens"`
}

// oldTekken are the special tokens of files that do not list them.
var oldTekken = []string{"<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]",
	"[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]",
	"[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"}

func isTekken(data []byte) bool { return isJSON(data) && modelfile.Identify(data) == modelfile.Tekken }

func parseTekken(data []byte) (Tokenizer, error) {
	var f tekken
	if err := json.Unmarshal(data, &f); err != nil { // other members do not change tokens
		return nil, malformed("file", "%v", jsonerror.Plain(err))
	}
	size, special := f.Config.Size, f.Config.Special
	if special < 3 || special > size || size > maxTokens || size-special > len(f.Vocab) {
		return nil, malformed("config", "%d tokens, %d of them special, and %d texts; want at most %d tokens", size, special, len(f.Vocab), maxTokens)
	}
	pattern, err := newRegex(f.Config.Pattern, "config.pattern")
	if err != nil {
		return nil, err
	}
	t := &tiktoken{vocabulary: newVocabulary(size), ranks: newScored(size), pattern: pattern}
	for i, v := range f.Vocab[:size-special] {
		id := v.Rank + special
		if v.Rank < 0 || v.Rank >= size-special || len(v.Text) == 0 || len(v.Text) > maxName || t.known[id] {
			return nil, malformed(fmt.Sprintf("vocab[%d]", i), "rank %d of %d bytes, want each rank below %d once, and 1 to %d bytes", v.Rank,
				len(v.Text), size-special, maxName)
		}
		if err := t.addText(string(v.Text), id); err != nil {
			return nil, err
		}
	}
	if err := t.checkBytes(); err != nil {
		return nil, err
	}
	return t, t.addTekken(&f)
}

// addTekken adds the special tokens. Those without a name have one by their rank.
func (t *tiktoken) addTekken(f *tekken) error {
	names := slices.Clone(oldTekken)
	if f.Specials != nil {
		names = nil
	}
	names = append(names, make([]string, max(f.Config.Special-len(names), 0))...)[:f.Config.Special]
	for i, s := range f.Specials {
		if s.Rank < 0 || s.Rank >= len(names) || s.Name == "" || len(s.Name) > maxName || names[s.Rank] != "" {
			return malformed(fmt.Sprintf("special_tokens[%d]", i), "rank %d, name %.60q; want each rank below %d once", s.Rank, s.Name, len(names))
		}
		names[s.Rank] = s.Name
	}
	special := make(map[string]int, len(names))
	for id, name := range names {
		if name == "" {
			name = fmt.Sprintf("<SPECIAL_%d>", id)
		}
		if _, twice := special[name]; twice {
			return malformed("special_tokens", "the name %.60q occurs twice", name)
		}
		special[name] = id
	}
	for _, name := range []string{"<s>", "</s>"} {
		if _, ok := special[name]; !ok {
			return malformed("special_tokens", "no token %s", name)
		}
	}
	return t.addSpecial(&family{name: "tekken", bos: "<s>", eos: []string{"</s>"}, special: special})
}
