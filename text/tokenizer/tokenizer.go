// Package tokenizer converts text to the token ids of a language model, and ids to text. It reads
// the usual files: Hugging Face's tokenizer.json, Mistral's tekken.json, SentencePiece models, BERT's vocab.txt, tiktoken's ranks and
// llama2.c's .bin. A file with a feature that is not supported exactly is rejected, because wrong
// ids give wrong text without an error.
package tokenizer

import (
	"fmt"
	"math"
	"slices"
)

// Tokenizer converts text to token ids and back. It is safe for concurrent use.
type Tokenizer interface {
	// Encode returns the ids of s. Control tokens named in s are plain text unless special is true; no BOS or EOS is added.
	Encode(s string, special bool) ([]int, error)
	// Append appends the bytes of id to b. The bytes of one token may be part of a UTF-8 sequence. Control tokens have none.
	Append(b []byte, id int) ([]byte, error)
	// Size is one more than the largest id.
	Size() int
	// ID is the id of a token by its text, such as "<|eot_id|>".
	ID(token string) (int, bool)
	// BOS and EOS are the ids that the file names, -1 where it names none.
	BOS() int
	EOS() []int
}

// LeadingSpace is implemented by tokenizers whose Encode puts a space before the text. The first
// token of a whole text that is not a control token then has one leading space to drop, if
// DropsLeadingSpace returns true. The tokens of a continuation keep their spaces.
type LeadingSpace interface {
	DropsLeadingSpace() bool
}

// Framed is implemented by tokenizers whose file says which control tokens stand before and after a text.
type Framed interface {
	// Frame returns these tokens, which Encode does not add.
	Frame() (before, after []int)
}

// MaxBytes is the maximum size of a file.
const MaxBytes = 128 << 20

// Limits on files and texts.
const (
	maxTokens = 2 << 20
	maxMerges = 4 << 20
	maxPiece  = 1 << 10   // bytes of a token that is looked for at each place of a text
	maxName   = 8 << 10   // bytes of a token that pairs are merged to: some vocabularies have thousands of spaces
	maxText   = 8 << 20   // bytes of a text, before and after normalization
	maxAdded  = 256 << 10 // added tokens
)

// vocabulary is the common part of all kinds.
type vocabulary struct {
	ids     map[string]int32 // by the token's name
	bytes   []string         // decoded bytes by id, empty for control tokens
	known   []bool           // ids that exist
	bos     int
	eos     []int
	leading leading
}

func newVocabulary(size int) vocabulary {
	return vocabulary{ids: make(map[string]int32, size), bytes: make([]string, size), known: make([]bool, size), bos: -1}
}

// set defines a token.
func (v *vocabulary) set(id int, name, text string) {
	v.ids[name] = int32(id)
	v.bytes[id], v.known[id] = text, true
}

// Append implements Tokenizer.
func (v *vocabulary) Append(b []byte, id int) ([]byte, error) {
	if id < 0 || id >= len(v.bytes) || !v.known[id] {
		return b, &Error{Class: ErrToken, Err: fmt.Errorf("no token has the id %d; ids are below %d", id, len(v.bytes))}
	}
	return append(b, v.bytes[id]...), nil
}

// Size implements Tokenizer.
func (v *vocabulary) Size() int { return len(v.bytes) }

// ID implements Tokenizer.
func (v *vocabulary) ID(token string) (int, bool) {
	id, ok := v.ids[token]
	return int(id), ok
}

// BOS implements Tokenizer.
func (v *vocabulary) BOS() int { return v.bos }

// EOS implements Tokenizer.
func (v *vocabulary) EOS() []int { return v.eos }

// DropsLeadingSpace implements LeadingSpace.
func (v *vocabulary) DropsLeadingSpace() bool { return v.leading.drop != dropNothing }

// checkText rejects texts that are too long.
func checkText(s string) error {
	if len(s) > maxText {
		return &Error{Class: ErrText, Err: fmt.Errorf("%d bytes of text, at most %d are allowed", len(s), maxText)}
	}
	return nil
}

// checkScore rejects scores that cannot be ordered.
func checkScore(score float64, place string) error {
	if math.IsNaN(score) || math.IsInf(score, 0) {
		return malformed(place, "score %v", score)
	}
	return nil
}

// leading is what Decode drops at the beginning of a text, where Encode has put a space.
type leading struct {
	drop   drop
	keeps  []int          // ids whose leading space is text
	firsts map[int]string // texts of ids that have others elsewhere
}

const (
	dropNothing drop = iota
	dropText         // a space at the beginning of the text
	dropPiece        // a space at the beginning of the first token
	dropPieces       // a space at the beginning of each token, until there is text
	dropAll          // all spaces in the first token
)

// Controls is implemented by tokenizers that list their control tokens.
type Controls interface {
	// Controls returns the names of the control tokens, sorted.
	Controls() []string
}

// Controls implements [Controls]: tokens without text.
func (v *vocabulary) Controls() (names []string) {
	for name, id := range v.ids {
		if name != "" && v.known[id] && v.bytes[id] == "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
