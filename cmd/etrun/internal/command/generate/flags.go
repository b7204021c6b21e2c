package generate

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/text"
)

// samplingFlags are the flags that choose tokens and end a text.
type samplingFlags struct {
	text text.Options
	bias []string
}

func (f *samplingFlags) addFlags(flags *pflag.FlagSet) {
	flags.IntVarP(&f.text.MaxTokens, "max-tokens", "n", 0,
		"end the text after `N` tokens (default: when the model ends it, or the context is full)")
	// A TEXT is not checked by session.RejectEmpty; package text refuses an empty one.
	flags.Var(session.Texts(&f.text.Stop), "stop", "end the text before this `TEXT`; may be repeated")
	flags.BoolVar(&f.text.IgnoreEOS, "ignore-eos", false, "continue after tokens that end texts")
	flags.Float64VarP(&f.text.Temperature, "temperature", "t", 0, "divide logits by `T` and draw tokens; 0 selects the most likely one")
	flags.IntVar(&f.text.TopK, "top-k", 0, "draw from the `K` most likely tokens; 0 means all")
	flags.Float64Var(&f.text.TopP, "top-p", 0, "draw from the most likely tokens whose probabilities sum to `P`; 0 means all")
	flags.Float64Var(&f.text.MinP, "min-p", 0, "draw from tokens at least `P` times as likely as the most likely one")
	flags.Float64Var(&f.text.RepetitionPenalty, "repeat-penalty", 0,
		"divide positive logits of tokens in the text by `R`, multiply negative ones")
	flags.IntVar(&f.text.PenaltyWindow, "repeat-window", 0, "apply --repeat-penalty to the last `N` tokens only (default: all)")
	flags.Float64Var(&f.text.PresencePenalty, "presence-penalty", 0, "subtract `X` from logits of tokens that have been generated")
	flags.Float64Var(&f.text.FrequencyPenalty, "frequency-penalty", 0, "subtract `X` for each time that a token has been generated")
	flags.Var(session.Texts(&f.bias), "logit-bias", "add to the logit of a token, `ID=X`; -inf excludes it; may be repeated")
	flags.IntVar(&f.text.Lookup, "lookup", 0, "draft up to `N` tokens from earlier parts of the text; needs a program that returns all logits")
	flags.BoolVar(&f.text.LogProbs, "logprobs", false, "with --json: the logarithm of each token's probability")
	flags.IntVar(&f.text.Top, "top-logprobs", 0, "with --logprobs: also those of the `N` most likely tokens")
}

// sampling returns the options of a text.
func (f *samplingFlags) sampling(seed uint64) (text.Options, error) {
	o := f.text
	o.Seed = seed
	o.Stop = slices.Clone(f.text.Stop)
	for _, b := range f.bias {
		id, x, ok := strings.Cut(b, "=")
		n, err1 := strconv.Atoi(id)
		value, err2 := strconv.ParseFloat(x, 32)
		if !ok || err1 != nil || err2 != nil || math.IsNaN(value) {
			return o, session.Usage("--logit-bias %q, want ID=X such as 13=-2.5 or 13=-inf", b)
		}
		if o.Bias == nil {
			o.Bias = make(map[int]float32)
		}
		o.Bias[n] = float32(value)
	}
	return o, nil
}

// optionFlags are the flags of the options that package text checks.
var optionFlags = map[string]string{
	"temperature": "temperature", "top-k": "top-k", "top-p": "top-p", "min-p": "min-p", "repetition penalty": "repeat-penalty",
	"penalty window": "repeat-window", "presence penalty": "presence-penalty", "frequency penalty": "frequency-penalty",
	"bias": "logit-bias", "bias of a token": "logit-bias", "max tokens": "max-tokens", "lookup": "lookup", "top": "top-logprobs",
	"stop":    "stop",
	"context": "context", "tokenizer": "tokenizer",
}
