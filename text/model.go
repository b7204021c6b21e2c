package text

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/grammar"
	"github.com/etrun-go/etrun/kernels/tensor"
	"github.com/etrun-go/etrun/runtime/ir"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// Info describes how a model is run.
type Info struct {
	BOS        int   // token that begins each prompt given as text, -1 for none
	EOS        []int // tokens that end a text, sorted
	Context    int   // number of positions: the maximum number of tokens
	Vocabulary int   // logits of each token
	Chunk      int   // maximum number of tokens per call of the program
	Cache      Cache
	AllLogits  bool     // a call returns the logits of all its tokens, not only of the last
	Layers     int      // -1 if unknown
	Media      []Medium // parts of prompts that the model takes besides text
}

// TakesDrafts reports whether Options.Lookup has an effect.
func (i Info) TakesDrafts() bool {
	return i.AllLogits && i.Cache != CacheRecurrent && (i.Chunk > 1 || i.Cache == CacheNone)
}

// Model is a language model: a program and its tokenizer. It is immutable and safe for concurrent
// use, and refers to its program, which must stay open.
type Model struct {
	program *etrun.Program
	tok     tokenizer.Tokenizer // nil for none
	call    convention
	info    Info
	choices int // number of tokens that can be chosen
	ends    []int
	// Names of the control tokens, nil without a tokenizer that lists them.
	controls *names
	words    vocabulary

	warnings []string

	media *media // nil for a program that takes tokens only

	batch   batcher
	prompts promptQueue
	size    footprint

	mu     sync.Mutex
	spares []*Session     // closed or not used yet: without a text, with an instance in its initial state
	arenas []*etrun.Arena // of calls for parts of prompts, while none uses them: as many as there have been such calls at once
	closed bool
}

// Option configures [Load].
type Option func(*loading)

type loading struct {
	method  string
	context int
	chunk   int
	bos     *int
	eos     []int
	batch   int

	processor  []byte
	mediaLimit int64
}

// defaultMethod is the method without WithMethod.
const defaultMethod = "forward"

// WithMethod selects the method that takes tokens and returns logits; the default is "forward" or, of programs without it whose prompts
// have other parts than text, "text_decoder".
func WithMethod(name string) Option { return func(l *loading) { l.method = name } }

// WithContext sets the number of positions, for programs without such metadata or to use fewer. It
// cannot exceed the number in the metadata.
func WithContext(n int) Option { return func(l *loading) { l.context = n } }

// defaultChunk is the number of tokens without WithChunk. A prompt of 500 tokens takes 4 to 9 % longer than in one part, and in parts of
// 64 tokens 16 to 50 % (BenchmarkPromptParts).
const defaultChunk = 256

// WithChunk bounds the tokens per call of a program that takes a dynamic number of them; the default is 256. With fewer, prompts
// need less memory and more time, and prompts of other sessions wait less. With 1, results do not depend on what a session has computed
// before.
func WithChunk(n int) Option { return func(l *loading) { l.chunk = n } }

// WithBatch bounds the number of texts whose next tokens are computed together; 1 means that each session computes its own. The
// default is 32. Sessions of one model that generate text at the same time wait for each other, for about the time of half a token
// at most, and share what does not depend on their caches. That needs a program that takes a varying number
// of tokens, and memory for as many tokens as there are texts.
func WithBatch(n int) Option { return func(l *loading) { l.batch = n } }

// WithBOS sets the token that begins each prompt given as text; -1 means none. The default is the
// one in the program's metadata or, without it, that of the tokenizer, if it has one.
func WithBOS(id int) Option { return func(l *loading) { l.bos = &id } }

// WithEOS sets the tokens that end a text. The default is those in the program's metadata, those of
// the tokenizer, and the first token of texts if it is a control token. Where neither names one, it is a control token such as </s>.
func WithEOS(ids ...int) Option { return func(l *loading) { l.eos = append([]int{}, ids...) } }

// Load returns the model of a program and its tokenizer. If the tokenizer is nil, the model takes
// and returns only tokens. Load runs the program's metadata methods, loads the method "forward",
// which the first session will use, and checks that they agree. Errors are *ConventionError,
// *MetadataError, *VocabularyError, *OptionError and those of etrun.
func Load(ctx context.Context, prog *etrun.Program, tok tokenizer.Tokenizer, options ...Option) (*Model, error) {
	l := loading{method: defaultMethod, batch: defaultBatch}
	for _, o := range options {
		o(&l)
	}
	call, err := signature(prog, l.method)
	if err != nil {
		return nil, err
	}
	meta, err := readMetadata(ctx, prog)
	if err != nil {
		return nil, err
	}
	if l.batch < 1 {
		return nil, &OptionError{Option: "batch", Got: l.batch, Want: "a number of texts, at least 1"}
	}
	m := &Model{program: prog, tok: tok, call: *call, controls: controlNames(tok), batch: batcher{most: l.batch},
		prompts: newPromptQueue(prog.Threads())}
	if err := m.checkVocabulary(meta); err != nil {
		return nil, err
	}
	if err := m.setEnds(&l, meta); err != nil {
		return nil, err
	}
	if call.rows > 0 {
		if m.media, err = openMedia(ctx, prog, call.rows, &l); err != nil {
			return nil, err
		}
		m.info.Media = m.media.list()
	}
	first, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	looks := first.method // values are looked up in a table by the tokens
	if first.embed != nil {
		looks = first.embed
	}
	m.boundVocabulary(looks.Report().Plan.Method)
	if err := m.setContext(&l, meta, first.method, first.method.Report()); err != nil {
		return nil, errors.Join(err, first.closeMethods())
	}
	m.spares = []*Session{first}
	return m, nil
}

// open returns a new session, with instances of its own.
func (m *Model) open(ctx context.Context) (*Session, error) {
	s := &Session{model: m}
	var err error
	if s.method, err = m.program.Load(ctx, m.call.method, etrun.WithTransientOutputs()); err != nil {
		return nil, err
	}
	s.part.method = s.method
	if m.call.rows > 0 {
		if s.embed, err = m.program.Load(ctx, methodRows, etrun.WithTransientOutputs()); err != nil {
			return nil, errors.Join(err, s.closeMethods())
		}
	}
	return s, nil
}

// checkVocabulary compares the numbers of tokens. Exporters pad the logits, and some tokenizers
// have a few tokens for other media that the text model lacks.
func (m *Model) checkVocabulary(d *metadata) error {
	n := m.call.vocabulary
	if d.vocabulary > int64(n) {
		return &MetadataError{Name: "get_vocab_size", Got: decimal(int(d.vocabulary)),
			Want: "at most the " + decimal(n) + " logits of the output"}
	}
	if d.vocabulary > 0 {
		n = int(d.vocabulary)
	}
	m.info.Vocabulary, m.choices = n, n
	if m.tok == nil {
		return nil
	}
	size := m.tok.Size()
	if size > n+n/64 || size < n-n/8 {
		return &VocabularyError{Program: n, Tokenizer: size}
	}
	m.choices = min(n, size)
	return nil
}

// setEnds sets the tokens that begin and end texts.
func (m *Model) setEnds(l *loading, d *metadata) error {
	eos := l.eos
	if eos == nil {
		for _, id := range d.eos {
			eos = append(eos, int(id))
		}
		if m.tok != nil {
			eos = append(eos, m.tok.EOS()...)
		}
		eos = slices.DeleteFunc(eos, func(id int) bool { return id < 0 })
		if len(eos) == 0 {
			eos = m.usualEnds()
		}
	}
	slices.Sort(eos)
	m.info.EOS = slices.Compact(eos)
	m.setBOS(l, d)
	for _, id := range append(slices.Clone(m.info.EOS), m.info.BOS) {
		if id < -1 || id >= m.info.Vocabulary {
			return &OptionError{Option: "BOS or EOS", Got: id, Want: "a token below " + decimal(m.info.Vocabulary)}
		}
	}
	m.ends = m.info.EOS
	if l.eos == nil && m.isControl(m.info.BOS) && !slices.Contains(m.ends, m.info.BOS) {
		m.ends = append(slices.Clone(m.ends), m.info.BOS)
	}
	return nil
}

// usualEnds returns the control tokens that end texts by their names, where neither the program nor the tokenizer says so.
func (m *Model) usualEnds() (ends []int) {
	if m.controls == nil {
		return nil
	}
	for _, name := range []string{"</s>", "<eos>", "<|endoftext|>", "<|end_of_text|>"} {
		if id, ok := m.tok.ID(name); ok && id < m.choices && m.isControl(id) {
			ends = append(ends, id)
		}
	}
	return ends
}

// setBOS sets the first token of texts. Metadata has one even for models, such as Qwen's, whose
// texts begin without it.
func (m *Model) setBOS(l *loading, d *metadata) {
	m.info.BOS = int(d.bos)
	switch {
	case l.bos != nil:
		m.info.BOS = *l.bos
	case m.tok != nil && (d.bos < 0 || m.tok.BOS() < 0):
		m.info.BOS = m.tok.BOS()
	}
}

// isControl reports whether a token has no text.
func (m *Model) isControl(id int) bool {
	if m.tok == nil || id < 0 {
		return false
	}
	b, err := m.tok.Append(nil, id)
	return err == nil && len(b) == 0
}

// onlyControl reports whether a prompt has no text.
func (m *Model) onlyControl(prompt []int) bool {
	return !slices.ContainsFunc(prompt, func(id int) bool { return !m.isControl(id) })
}

// setContext sets the fields that depend on the state of an instance.
func (m *Model) setContext(l *loading, d *metadata, first *etrun.Method, r *etrun.Report) error {
	state := first.StateTensors()
	n, err := m.call.contextOf(d, state)
	if err == nil {
		n = m.boundContext(d, n, r.Plan.Method)
	}
	if l.context > 0 && (err != nil || l.context <= n) {
		if err != nil {
			n = l.context
		}
		err = nil
	}
	switch {
	case err != nil:
		return err
	case l.context < 0 || l.context > n:
		return &OptionError{Option: "context", Got: l.context, Want: "at most the " + decimal(n) + " positions of the program"}
	case l.chunk < 0:
		return &OptionError{Option: "chunk", Got: l.chunk, Want: "a positive number of tokens"}
	}
	if err := m.call.findCache(state, d.cache, n); err != nil {
		return err
	}
	if m.call.cache == CacheNone && (n > m.call.width || m.exact()) {
		n = m.call.width // every call computes the whole text
	}
	if l.context > 0 && l.context < n && !m.exact() {
		n = l.context
	}
	c := &m.call
	m.info.Context, m.info.Chunk, m.info.Cache, m.info.AllLogits = n, min(c.width, n), c.cache, c.all
	if !c.fixed && c.cache != CacheNone {
		m.info.Chunk = min(m.info.Chunk, cmp.Or(l.chunk, defaultChunk))
	}
	m.info.Layers = int(d.layers)
	m.setFootprint(r)
	return nil
}

// boundContext returns the number of positions for which the program's tensors have places, and warns if the metadata
// promise more.
func (m *Model) boundContext(d *metadata, n int, method *ir.Method) int {
	positions := counters(method)
	if m.call.positions > 0 {
		positions = method.Inputs[1:2]
	}
	b := method.Bound(positions...)
	if b.Most == 0 || b.Most >= n {
		return n
	}
	name := "the caches"
	switch n {
	case int(d.maxContext):
		name = "metadata method get_max_context_len"
	case int(d.maxSeq):
		name = "metadata method get_max_seq_len"
	}
	m.warnings = append(m.warnings, fmt.Sprintf("%s: %d positions, but %s has %d: the context is %d", name, n, b.Tensor, b.Most, b.Most))
	return b.Most
}

// counters returns the state that may count the tokens of the text.
func counters(m *ir.Method) (list []int) {
	for i := range m.Storages {
		s := &m.Storages[i]
		if s.Kind != ir.State || len(s.Values) == 0 {
			continue
		}
		x := m.Values[s.Values[0]].Tensor
		if n, _ := tensor.Product(x.Sizes); n == 1 && (x.DType == tensor.Int64 || x.DType == tensor.Int32) {
			list = append(list, s.Values[0])
		}
	}
	return list
}

// boundVocabulary excludes tokens that the program's embedding does not have.
func (m *Model) boundVocabulary(method *ir.Method) {
	n := m.info.Vocabulary
	b := method.Bound(method.Inputs[0])
	if b.Most == 0 || b.Most >= n {
		return
	}
	m.warnings = append(m.warnings, fmt.Sprintf("the program has logits of %d tokens, but %s has %d: no others are chosen or accepted", n,
		b.Tensor, b.Most))
	m.info.Vocabulary, m.choices = b.Most, min(m.choices, b.Most)
}

// Warnings returns contradictions of the program that do not prevent its use: the metadata promise more than its tensors
// have places for.
func (m *Model) Warnings() []string { return slices.Clone(m.warnings) }

// exact reports whether the model accepts texts of one length only.
func (m *Model) exact() bool {
	return m.call.cache == CacheNone && m.call.fixed && !m.call.all
}

// Info describes how the model is run.
func (m *Model) Info() Info {
	info := m.info
	info.EOS, info.Media = slices.Clone(info.EOS), slices.Clone(info.Media)
	return info
}

// Program returns the program that the model was loaded from.
func (m *Model) Program() *etrun.Program { return m.program }

// Tokenizer returns the model's tokenizer, nil if it has none.
func (m *Model) Tokenizer() tokenizer.Tokenizer { return m.tok }

// Encode returns the tokens of a prompt: the first token of texts, if the model has one, and those
// of s, in which the names of control tokens are plain text.
func (m *Model) Encode(s string) ([]int, error) {
	if m.tok == nil {
		return nil, errNoTokenizer()
	}
	ids, err := m.tok.Encode(s, false)
	if err != nil || m.info.BOS < 0 {
		return ids, err
	}
	return append([]int{m.info.BOS}, ids...), nil
}

// SharedBytes returns the memory that the sessions share: to compute tokens together, for prompts, and of parts that are kept, with their
// encoders.
func (m *Model) SharedBytes() int64 {
	n := m.batch.bytes() + m.media.bytes()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.arenas {
		n += a.Bytes()
	}
	return n
}

// lend lets the next call of a session use the memory of an earlier one, of any session; returnSession ends that. The logits of the call are
// then not available any more.
func (m *Model) lend(s *Session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := len(m.arenas) - 1; last >= 0 {
		_ = s.method.AttachArena(m.arenas[last]) // if it is closed, so the call fails
		m.arenas = m.arenas[:last]
	}
}

func (m *Model) returnSession(s *Session) {
	a, err := s.method.DetachArena()
	if a == nil || err != nil {
		return
	}
	s.logits = nil
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		a.Close()
		return
	}
	m.arenas = append(m.arenas, a)
}

// Close frees the instances that no session uses, and the encoders. Sessions remain usable.
func (m *Model) Close() error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	return errors.Join(m.Shrink(), m.media.close())
}

// Shrink frees what no session uses: instances, memory that sessions share, and parts that are kept. Later sessions make theirs.
func (m *Model) Shrink() error {
	m.media.shrink()
	m.mu.Lock()
	spares, arenas := m.spares, m.arenas
	m.spares, m.arenas = nil, nil
	m.mu.Unlock()
	for _, a := range arenas {
		a.Close()
	}
	m.batch.shrink()
	var errs []error
	for _, s := range spares {
		errs = append(errs, s.closeMethods())
	}
	return errors.Join(errs...)
}

// spare returns a session without a text, nil if there is none.
func (m *Model) spare() *Session {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := len(m.spares) - 1
	if last < 0 {
		return nil
	}
	s := m.spares[last]
	m.spares = m.spares[:last]
	return s
}

// recycle keeps the instance of a closed session, which nothing uses, for another one, and reports whether it does. There are never
// more instances than there were sessions.
func (m *Model) recycle(s *Session) bool {
	if s.method.Reset() != nil || s.method.Shrink() != nil || s.embed != nil && s.embed.Shrink() != nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || len(m.spares) >= defaultBatch {
		return false
	}
	m.spares = append(m.spares, s.emptied())
	return true
}

// vocabulary is the text of a model's tokens. It is made when a form is first used.
type vocabulary struct {
	once sync.Once
	*grammar.Vocabulary
}

// names are the control tokens of a tokenizer by their first byte, the longest first.
type names [256][]string

// controlNames returns the control tokens of a tokenizer, nil if it does not list them.
func controlNames(tok tokenizer.Tokenizer) *names {
	c, ok := tok.(tokenizer.Controls)
	if !ok {
		return nil
	}
	var n names
	for _, s := range append(c.Controls(), "<s>", "</s>") {
		if s == "" || !utf8.ValidString(s) { // no prompt has it
			continue
		}
		if _, ok := tok.ID(s); ok && !slices.Contains(n[s[0]], s) {
			n[s[0]] = append(n[s[0]], s)
		}
	}
	for i := range n {
		slices.SortFunc(n[i], func(a, b string) int { return len(b) - len(a) })
	}
	return &n
}
