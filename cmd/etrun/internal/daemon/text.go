package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/cmd/etrun/internal/session"
	"github.com/etrun-go/etrun/internal/collect"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai"
	"github.com/etrun-go/etrun/serve/openai/audio"
	"github.com/etrun-go/etrun/serve/openai/embed"
	"github.com/etrun-go/etrun/speech"
	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// openText makes a language model of an opened program, or a model of speech if it has such methods. The tokenizer and the template are
// read again at each load.
func (m *served) openText(ctx context.Context, p *etrun.Program) (serve.Attachment, error) {
	ctx = m.confined(ctx)
	files := m.loading()
	if m.isSpeech(p) {
		return m.openSpeech(ctx, p, files)
	}
	tok, err := m.openTokenizer(ctx, files)
	if err != nil {
		return nil, err
	}
	if len(m.Methods) > 1 {
		return nil, session.Usage("model %s: --method is given %d times, a language model has one", m.Name, len(m.Methods))
	}
	o, found, err := m.Embedding.Options(ctx, m.Tokenizer, func(name string, data []byte) error { return files.check(ctx, name, data) })
	if err != nil {
		return nil, err
	}
	if found {
		return m.openEmbedder(ctx, p, tok, o, files)
	}
	c := openai.Config{Tokenizer: tok, Sessions: max(m.Texts, m.instances()), Bytes: int64(m.TextMemory),
		Warn: m.warn, Left: m.left,
		Observe: m.observeTexts}
	if c.Template, err = m.openTemplate(ctx, files); err != nil {
		return nil, err
	}
	m.metrics.Model(m.Name, m.known(files.digest()))
	for _, name := range m.Methods {
		c.Load = append(c.Load, text.WithMethod(name))
	}
	if _, parts, _ := text.MediaOf(p); parts {
		config, err := session.Processor(ctx, m.Tokenizer, func(name string, data []byte) error { return files.check(ctx, name, data) })
		if err != nil {
			return nil, err
		}
		c.Load = append(c.Load, text.WithProcessor(config))
	}
	a, err := openai.Attach(c)(ctx, p)
	if _, ok := errors.AsType[*text.ConventionError](err); ok && text.Encodes(p, slices.Concat(m.Methods, []string{"forward"})[0]) {
		err = fmt.Errorf("%w; for vectors of texts want --pooling mean, cls, last or none", err)
	}
	return a, err
}

// observeTexts counts the texts that are kept. What those that are dropped have left is collected.
func (m *served) observeTexts(sessions int, bytes int64) {
	m.counts.texts.keep(m.Name, sessions, bytes)
	if sessions < 0 || bytes < 0 {
		collect.Freed()
	}
}

func (m *served) warn(warning string) { m.log.Warn(warning, "model", m.Name) }

// openEmbedder makes a model that computes vectors of texts of an opened program.
func (m *served) openEmbedder(ctx context.Context, p *etrun.Program, tok tokenizer.Tokenizer, o text.EmbedOptions, files *modelFiles) (
	serve.Attachment, error) {
	if m.Template != "" {
		return nil, session.Usage("model %s: --template with a folder of sentence-transformers: a model that computes vectors of texts has no chats",
			m.Name)
	}
	m.metrics.Model(m.Name, m.known(files.digest()))
	o.Instances = cmp.Or(m.Instances, inferInstances)
	for _, name := range m.Methods {
		o.Method = name
	}
	a, err := embed.Attach(embed.Config{Tokenizer: tok, Options: o, Warn: m.warn})(ctx, p)
	if _, ok := errors.AsType[*text.ConventionError](err); ok && text.Generates(p, cmp.Or(o.Method, "forward")) {
		err = fmt.Errorf("%w; for generated texts want no --pooling, and a --tokenizer that is no folder of sentence-transformers", err)
	}
	return a, err
}

// isSpeech reports whether a program is one of speech: by its methods or, with forward alone, by a vocabulary of symbols.
func (m *served) isSpeech(p *etrun.Program) bool {
	if _, ok := speech.FamilyOf(p); ok {
		return true
	}
	return filepath.Base(m.Tokenizer) == "vocab.json" || existing(filepath.Join(m.Tokenizer, "vocab.json")) != "" &&
		existing(filepath.Join(m.Tokenizer, "tokenizer.json")) == "" && existing(filepath.Join(m.Tokenizer, "merges.txt")) == ""
}

// openSpeech makes a model of speech of an opened program.
func (m *served) openSpeech(ctx context.Context, p *etrun.Program, files *modelFiles) (serve.Attachment, error) {
	if m.Template != "" || m.Pooling != "" {
		return nil, session.Usage("model %s: --template or --pooling with a program of speech", m.Name)
	}
	c, err := speech.OpenConfig(ctx, m.Tokenizer, p.MethodNames(), func(name string, data []byte) error { return files.check(ctx, name, data) })
	if err != nil {
		return nil, err
	}
	m.metrics.Model(m.Name, m.known(files.digest()))
	c.Instances = cmp.Or(m.Instances, inferInstances)
	return audio.Attach(c)(ctx, p)
}

// openTokenizer reads the tokenizer.
func (m *Model) openTokenizer(ctx context.Context, files *modelFiles) (tokenizer.Tokenizer, error) {
	return tokenizer.OpenChecked(ctx, m.Tokenizer, func(path string, data []byte) error { return files.check(ctx, path, data) })
}

// openTemplate reads the chat template that is named, or that of the tokenizer's folder; nil without either.
func (m *Model) openTemplate(ctx context.Context, files *modelFiles) (*text.Template, error) {
	if m.Template == "" {
		return session.FolderTemplate(ctx, m.Tokenizer, func(name string, data []byte) error { return files.check(ctx, name, data) })
	}
	return session.ChatTemplate(ctx, m.Template, func(data []byte) error { return files.check(ctx, m.Template, data) })
}

// texts are the metrics of language models.
type texts struct {
	tokens *prometheus.CounterVec
	ended  *prometheus.CounterVec
	first  *prometheus.HistogramVec
	each   *prometheus.HistogramVec
	kept   *prometheus.GaugeVec
	memory *prometheus.GaugeVec
}

func newTexts(detail bool) *texts {

	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets,
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100}, []string{"model"})
	}
	first, each := prometheus.ExponentialBuckets(4e-3, 4, 7), prometheus.ExponentialBuckets(1e-3, 4, 6)
	if detail {
		first, each = prometheus.ExponentialBuckets(1e-3, 2, 16), prometheus.ExponentialBuckets(1e-4, 2, 16)
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"model"})
	}
	return &texts{
		kept:   gauge("etrun_kept_texts", "Texts whose computed tokens are kept, and those in progress."),
		memory: gauge("etrun_kept_texts_bytes", "Memory of these texts: caches and working memory."),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "etrun_tokens_total",
			Help: "Tokens of language models, by kind: prompt (computed), reused (of prompts, not computed again) or generated."}, []string{"model", "kind"}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "etrun_texts_total",
			Help: "Generated texts by reason of their end: stop, length, context or cancelled; embedded: texts of which vectors were computed."},
			[]string{"model", "finish"}),
		first: histogram("etrun_time_to_first_token_seconds", "Time from the begin of a text's computation to its first token.", first),
		each:  histogram("etrun_time_per_output_token_seconds", "Mean time of a text's tokens after the first one.", each),
	}
}

func (t *texts) collectors() []prometheus.Collector {
	return []prometheus.Collector{t.tokens, t.ended, t.first, t.each, t.kept, t.memory}
}

// keep counts opened and closed sessions.
func (t *texts) keep(model string, sessions int, bytes int64) {
	t.kept.WithLabelValues(model).Add(float64(sessions))
	t.memory.WithLabelValues(model).Add(float64(bytes))
}

// embedded counts a text of which a vector was computed.
func (t *texts) embedded(model string, tokens int) {
	t.ended.WithLabelValues(model, "embedded").Inc()
	t.tokens.WithLabelValues(model, "prompt").Add(float64(tokens))
}

// observe counts a text.
func (t *texts) observe(model string, finish text.Finish, s text.Stats) {
	t.ended.WithLabelValues(model, string(finish)).Inc()
	t.tokens.WithLabelValues(model, "prompt").Add(float64(s.Prompt - s.Reused))
	t.tokens.WithLabelValues(model, "reused").Add(float64(s.Reused))
	t.tokens.WithLabelValues(model, "generated").Add(float64(s.Generated))
	if s.Generated > 0 {
		t.first.WithLabelValues(model).Observe(s.FirstToken.Seconds())
	}
	if s.Generated > 1 {
		t.each.WithLabelValues(model).Observe(s.Decode.Seconds() / float64(s.Generated-1))
	}
}
