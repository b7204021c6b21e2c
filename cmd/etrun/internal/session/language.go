package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
	"github.com/spf13/pflag"
)

// LanguageModel holds the flags of a program that is run as a language model.
type LanguageModel struct {
	Tokenizer string
	Method    string
	context   int
	bos       int
	eos       []int

	flags *pflag.FlagSet
}

// AddFlags adds the flags.
func (l *LanguageModel) AddFlags(flags *pflag.FlagSet) {
	l.flags = flags
	flags.StringVar(&l.Tokenizer, "tokenizer", "", "`FILE` with the tokenizer of the model, or its folder, where chat_template.jinja or tokenizer_config.json is found as well")
	flags.StringVar(&l.Method, "method", "forward", "method `NAME` that takes tokens and returns logits; text_decoder of models that take pictures or sounds")
	flags.IntVar(&l.context, "context", 0, "use at most `N` positions (default: those of the program)")
	flags.IntVar(&l.bos, "bos", 0, "token `ID` that begins texts, -1 for none (default: that of the program, or of the tokenizer)")
	flags.IntSliceVar(&l.eos, "eos", nil, "token `IDS` that end texts (default: those of the program and of the tokenizer)")
}

// Open opens the program and loads the model.
func (l *LanguageModel) Open(ctx context.Context, path string, o *Options) (*Session, *text.Model, error) {
	var tok tokenizer.Tokenizer
	if l.Tokenizer != "" {
		var err error
		if tok, err = tokenizer.Open(l.Tokenizer); err != nil {
			return nil, nil, err
		}
	}
	s, err := Open(ctx, path, o)
	if err != nil {
		return nil, nil, err
	}
	model, err := l.load(ctx, s, tok, o)
	if err != nil {
		err = l.misused(s, err)
		s.Close()
		return nil, nil, WithHint(err)
	}
	s.Warn()
	for _, w := range model.Warnings() {
		o.Say("%s", w)
	}
	return s, model, nil
}

// load loads the model. What a picture or a sound takes counts toward --max-memory.
func (l *LanguageModel) load(ctx context.Context, s *Session, tok tokenizer.Tokenizer, o *Options) (*text.Model, error) {
	list := l.loading()
	if _, parts, _ := text.MediaOf(s.Program); parts {
		if l.Tokenizer != "" {
			config, err := Processor(ctx, l.Tokenizer, nil)
			if err != nil {
				return nil, err
			}
			list = append(list, text.WithProcessor(config))
		}
		if n := o.MaxMemory(); n > 0 {
			list = append(list, text.WithMediaLimit(n))
		}
	}
	return text.Load(ctx, s.Program, tok, list...)
}

// misused adds the command of an encoder of texts to an error.
func (l *LanguageModel) misused(s *Session, err error) error {
	_, shape := errors.AsType[*text.ConventionError](err)
	_, size := errors.AsType[*text.VocabularyError](err) // the output has dimensions instead of tokens
	if (shape || size) && text.Encodes(s.Program, cmp.Or(l.Method, "forward")) {
		return fmt.Errorf("%w; if the program computes vectors of texts, want etrun embed", err)
	}
	return err
}

func (l *LanguageModel) loading() []text.Option {
	var list []text.Option
	if l.Method != "" {
		list = append(list, text.WithMethod(l.Method))
	}
	if l.context != 0 {
		list = append(list, text.WithContext(l.context))
	}
	if l.changed("bos") {
		list = append(list, text.WithBOS(l.bos))
	}
	if l.changed("eos") {
		list = append(list, text.WithEOS(l.eos...))
	}
	return list
}

// changed reports whether the command line sets a flag.
func (l *LanguageModel) changed(name string) bool { return l.flags != nil && l.flags.Changed(name) }
