package openai

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// Config configures a language model.
type Config struct {
	Tokenizer tokenizer.Tokenizer
	Template  *text.Template // nil: the one of the tokenizer's control tokens, if there is one; one that does not fit is an error
	Load      []text.Option
	Sessions  int // texts that are kept for prompts with the same beginning, including those in progress; default 2
	// Bytes bounds the memory of these sessions, and of what they share to compute tokens together, default 1 GiB: fewer are kept if they are larger. A
	// session in use is never closed, so that each running request has one.
	Bytes int64
	// Warn receives contradictions of the program: see text.Model.Warnings. It may be nil.
	Warn func(warning string)
	// Observe is called when sessions were opened or closed, or have grown, with the change of their
	// number and of their memory in bytes; it may be nil. It must not block.
	Observe func(sessions int, bytes int64)
}

// Attach returns the function for serve.Config.Attach.
func Attach(c Config) func(ctx context.Context, p *etrun.Program) (serve.Attachment, error) {
	return func(ctx context.Context, p *etrun.Program) (serve.Attachment, error) {
		m, err := text.Load(ctx, p, c.Tokenizer, c.Load...)
		if err != nil {
			return nil, err
		}
		g := &generator{model: m, template: c.Template, max: max(c.Sessions, 2), limit: cmp.Or(c.Bytes, 1<<30), observe: c.Observe}
		if err := g.setTemplate(c.Tokenizer); err != nil {
			_ = m.Close() // frees memory only
			return nil, err
		}
		for _, w := range m.Warnings() {
			if c.Warn != nil {
				c.Warn(w)
			}
		}
		return g, nil
	}
}

// generator is the attachment: a language model and its sessions.
type generator struct {
	model    *text.Model
	template *text.Template
	noChat   error // why there is no template
	calls    *callFormat
	noCalls  error // why there is no format of calls

	mu   sync.Mutex
	idle []*held // the most recently used is the last
	all  int     // number of sessions, idle or in use
	max  int

	limit   int64 // of their memory
	size    int64 // memory of the largest one, in bytes
	observe func(sessions int, bytes int64)
	told    struct { // to observe
		sessions int
		bytes    int64
	}
}

func (g *generator) tokenizer() tokenizer.Tokenizer { return g.model.Tokenizer() }
func (g *generator) encode(s string) ([]int, error) { return g.model.Encode(s) }

func (g *generator) bounds() (context, vocabulary int) {
	i := g.model.Info()
	return i.Context, i.Vocabulary
}

// setTemplate checks the template, or finds one. Without one there are no chats.
func (g *generator) setTemplate(tok tokenizer.Tokenizer) error {
	defer func() {
		if g.template != nil {
			g.calls, g.noCalls = formatOf(g.model, g.template.WithTools())
		}
	}()
	if g.template != nil {
		return g.model.CheckTemplate(g.template)
	}
	if g.template, g.noChat = text.FindTemplate(tok); g.noChat == nil {
		g.noChat = g.model.CheckTemplate(g.template)
	}
	if g.noChat != nil {
		g.template = nil
	}
	return nil
}

// most returns the number of sessions that may be kept.
func (g *generator) most() int {
	if g.size == 0 {
		return g.max
	}
	return max(1, min(g.max, int(min((g.limit-g.model.SharedBytes())/g.size, 1<<30))))
}

// tell reports changes of the sessions. The caller holds mu.
func (g *generator) tell() {
	sessions, bytes := g.all, int64(g.all)*g.size+g.model.SharedBytes()
	if g.observe != nil && (sessions != g.told.sessions || bytes != g.told.bytes) {
		g.observe(sessions-g.told.sessions, bytes-g.told.bytes)
	}
	g.told.sessions, g.told.bytes = sessions, bytes
}

// held is an idle session, the tokens that it has computed, and whose they are.
type held struct {
	session *text.Session
	tokens  []int
	owner   owner
}

// Try generates one token.
func (g *generator) Try(ctx context.Context) error {
	s, err := g.take(ctx, owner{}, []int{0})
	if err != nil {
		return err
	}
	defer func() {
		_ = s.Reset() // cannot fail: nothing else uses it
		g.put(s, owner{})
	}()
	prompt := []int{max(g.model.Info().BOS, 0)}
	for _, err := range s.GenerateTokens(ctx, prompt, text.Options{MaxTokens: 1}) {
		if err != nil {
			if _, exact := errors.AsType[*text.PromptError](err); exact {
				return nil // a model for texts of one length
			}
			return err
		}
	}
	return nil
}

// Close frees the sessions, none of which is in use.
func (g *generator) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	errs := []error{g.model.Close()}
	for _, h := range g.idle {
		errs = append(errs, h.session.Close())
	}
	g.idle, g.all = nil, 0
	g.tell()
	return errors.Join(errs...)
}

// take returns a session for a prompt of an owner: the idle one with the longest common prefix of its own. If it would lose
// tokens of another text, and one more session is allowed, take returns a copy of it.
func (g *generator) take(ctx context.Context, o owner, prompt []int) (*text.Session, error) {
	h, common, more := g.choose(o, prompt)
	switch {
	case h == nil:
		return g.opened(g.model.NewSession(ctx))
	case !h.serves(o): // what it has in memory is never passed on
		_ = h.session.Close() // frees memory only
		return g.opened(g.model.NewSession(ctx))
	case !more || common == len(h.tokens):
		return h.session, nil
	}
	defer g.put(h.session, o)
	if common == 0 {
		return g.opened(g.model.NewSession(ctx))
	}
	return g.opened(h.session.Fork(ctx))
}

// choose removes the idle session with the longest common prefix, nil if there is none, from the list. If there must not be more
// sessions it may be one of another owner. It counts a further
// one that the caller opens: more reports whether one more is allowed.
func (g *generator) choose(o owner, prompt []int) (h *held, common int, more bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	best := -1
	common = -1
	more = g.all < g.most()
	for i, h := range g.idle {
		n, own := 0, h.serves(o)
		if own {
			n = commonPrefix(h.tokens, prompt)
		} else if more {
			continue
		}
		if n > common || own && n == common && n == len(h.tokens) && n < len(g.idle[best].tokens) {
			best, common = i, n
		}
	}
	if best < 0 || more && common < len(g.idle[best].tokens) {
		g.all++ // even above the limit: the queue bounds the callers
	}
	if best >= 0 {
		h = g.idle[best]
		g.idle = append(g.idle[:best], g.idle[best+1:]...)
	}
	g.tell()
	return h, common, more
}

// opened counts a session that could not be opened.
func (g *generator) opened(s *text.Session, err error) (*text.Session, error) {
	if err != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.all--
		g.tell()
	}
	return s, err
}

// use calls f with a session for a prompt of an owner: see take. A session whose model failed, or panicked, is not used again.
func (g *generator) use(ctx context.Context, o owner, prompt []int, f func(s *text.Session) error) error {
	s, err := g.take(ctx, o, prompt)
	if err != nil {
		return fault(ctx, err, "")
	}
	failed := true // if f panics
	defer func() {
		if failed {
			g.drop(s)
		} else {
			g.put(s, o)
		}
	}()
	err = f(s)
	_, failed = errors.AsType[*modelError](err)
	return err
}

// drop closes a session that is in use.
func (g *generator) drop(s *text.Session) {
	_ = s.Close() // frees memory only
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all--
	g.tell()
}

// put returns a session of an owner. The least recently used ones are closed if there are too many.
func (g *generator) put(s *text.Session, o owner) {
	tokens, err := s.Tokens()
	f, err2 := s.Footprint()
	err2 = errors.Join(err2, s.Shrink())
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.tell()
	if err != nil || err2 != nil { // cannot happen: it is not in use
		g.all--
		_ = s.Close()
		return
	}
	g.size = max(g.size, f.Memory)
	g.idle = append(g.idle, &held{s, tokens, o})
	for g.all > g.most() && len(g.idle) > 0 {
		g.all--
		_ = g.idle[0].session.Close() // frees memory only
		g.idle = g.idle[1:]
	}
}

// commonPrefix returns the number of equal elements at the beginning.
func commonPrefix(a, b []int) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
