package session

import (
	"context"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/text"
)

// Embedding holds the flags of a program that computes vectors of texts.
type Embedding struct {
	Pooling   string       // empty: that of the tokenizer's folder
	Normalize OptionalBool // empty: as the tokenizer's folder says, else false
}

// AddFlags adds the flags.
func (e *Embedding) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&e.Pooling, "pooling", e.Pooling,
		"compute vectors of texts, each from those of its tokens: `MODE` mean, cls or last; none if the program returns one per text "+
			"(default: as 1_Pooling/config.json in the tokenizer's folder says)")
	flags.Var(&e.Normalize, "normalize", "divide each vector of a text by its length (default: as modules.json in the tokenizer's folder says)")
	flags.Lookup("normalize").NoOptDefVal = "true"
}

// Options returns the options of the flags, and of the folder that the tokenizer is given as, of which the content of each file is
// checked first unless check is nil. found is false if neither says how vectors are computed.
func (e *Embedding) Options(ctx context.Context, tokenizer string, check func(name string, data []byte) error) (
	o text.EmbedOptions, found bool, err error) {
	o, found, err = folderEmbedding(ctx, tokenizer, check)
	if err != nil {
		return o, false, err
	}
	if e.Pooling != "" {
		o.Pooling, found = text.Pooling(e.Pooling), true
	}
	if e.Normalize != "" {
		o.Normalize = e.Normalize == "true"
	}
	return o, found, nil
}

// Wanted reports whether a model with this tokenizer computes vectors of texts: Options finds how, unless a file is wrong.
func (e *Embedding) Wanted(tokenizer string) bool {
	if e.Pooling != "" {
		return true
	}
	_, err := os.Stat(filepath.Join(tokenizer, "modules.json")) // see text.SentenceOptions
	return isFolder(tokenizer) && err == nil
}

// Check reports flags that do not fit.
func (e *Embedding) Check() error {
	switch text.Pooling(e.Pooling) {
	case "", text.PoolMean, text.PoolCLS, text.PoolLast, text.PoolNone:
		return nil
	}
	return Usage("--pooling %q, want mean, cls, last or none", e.Pooling)
}

// OptionalBool is the value of a flag that is true, false, or not given.
type OptionalBool string

// Set implements pflag.Value.
func (b *OptionalBool) Set(text string) error {
	on, err := strconv.ParseBool(text)
	if err == nil {
		*b = OptionalBool(strconv.FormatBool(on))
	}
	return err
}

// String implements pflag.Value.
func (b *OptionalBool) String() string { return string(*b) }

// Type implements pflag.Value.
func (b *OptionalBool) Type() string { return "bool" }
