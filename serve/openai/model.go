package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/toolcall"
	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// Config configures a language model.
type Config struct {
	Tokenizer tokenizer.Tokenizer
	Template  *text.Template // nil: the one of the tokenizer's control tokens, if there is one; one that does not fit is an error
	Load      []text.Option
	Sessions  int // texts that are kept for prompts with the same beginning, including those in progress; default 2
	// Bytes bounds the memory of these sessions, and of what they share to compute tokens together, default 1 GiB: fewer are kept if they are larger, and
	// requests wait for others if those in progress are. A request that is alone has a session in any case.
	Bytes int64
	// Left returns how much more memory the models of the server may use, nil for no bound. Requests wait, or are refused, without enough.
	Left func() int64
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
		g := &generator{model: m, template: c.Template, max: max(c.Sessions, 2), limit: cmp.Or(c.Bytes, 1<<30), observe: c.Observe, left: c.Left,
			expected: m.SessionBytes(typicalTokens), freed: make(chan struct{})}
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

// typicalTokens are those of a text, for the memory that is expected before one has ended.
const typicalTokens = 512

// generator is the attachment: a language model and its sessions.
type generator struct {
	model    *text.Model
	template *text.Template
	noChat   error // why there is no template
	calls    *toolcall.Format
	noCalls  error // why there is no format of calls

	mu   sync.Mutex
	idle []*idleSession // the most recently used is the last
	all  int            // number of sessions, idle or in use
	max  int

	limit    int64         // of their memory
	size     int64         // memory that the largest one has needed, in bytes; 0 before one has ended
	expected int64         // until then
	shared   int64         // memory that they share, at the last look
	left     func() int64  // see Config
	freed    chan struct{} // closed when a session is returned
	timer    *time.Timer   // of the next look at idle sessions
	watched  bool          // there will be one
	observe  func(sessions int, bytes int64)
	observed struct { // to observe
		sessions int
		bytes    int64
	}
}

func (g *generator) Tokenizer() tokenizer.Tokenizer { return g.model.Tokenizer() }
func (g *generator) Encode(s string) ([]int, error) { return g.model.Encode(s) }

// Bounds returns the number of positions of the context, and that of tokens.
func (g *generator) Bounds() (context, vocabulary int) {
	i := g.model.Info()
	return i.Context, i.Vocabulary
}

// setTemplate checks the template, or finds one. Without one there are no chats.
func (g *generator) setTemplate(tok tokenizer.Tokenizer) error {
	defer func() {
		if g.template != nil {
			g.calls, g.noCalls = toolcall.FormatOf(g.model, g.template.WithTools())
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

// bytes returns the memory of all sessions: of those in use what the largest has needed. The caller holds mu.
func (g *generator) bytes() (n int64) {
	for _, h := range g.idle {
		n += h.bytes
	}
	return n + int64(g.all-len(g.idle))*g.bytesPerText() + g.shared
}

// bytesPerText returns the memory that a text in progress may need. The caller holds mu.
func (g *generator) bytesPerText() int64 { return cmp.Or(g.size, g.expected) }

// most returns the number of sessions that may be kept or in use: each more may need as much as the largest. The caller holds mu.
func (g *generator) most() int {
	n := g.all + int(max(min((g.limit-g.bytes())/max(g.bytesPerText(), 1), 1<<30), -1<<30))
	return max(1, min(g.max, n))
}

// report reports changes of the sessions. The caller holds mu.
func (g *generator) report() {
	sessions, bytes := g.all, g.bytes()
	if g.observe != nil && (sessions != g.observed.sessions || bytes != g.observed.bytes) {
		g.observe(sessions-g.observed.sessions, bytes-g.observed.bytes)
	}
	g.observed.sessions, g.observed.bytes = sessions, bytes
}

// idleSession is an idle session, the tokens that it has computed, and whose they are.
type idleSession struct {
	session *text.Session
	tokens  []int
	owner   owner
	bytes   int64
	since   time.Time
	warm    bool // with the memory of its last call
}

// The times after which memory of idle sessions goes back to the system.
const (
	warmTime = time.Second      // that of the values of calls, which the next one then allocates again
	keepTime = 30 * time.Second // without requests, all but that of the last text
)

// Try generates one token.
func (g *generator) Try(ctx context.Context) error {
	s, err := g.acquire(ctx, owner{}, []int{0})
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
	g.idle, g.all, g.shared = nil, 0, 0
	if g.timer != nil {
		g.timer.Stop()
	}
	g.report()
	return errors.Join(errs...)
}

// acquire returns a session for a prompt of an owner: the idle one with the longest common prefix of its own. If it would lose
// tokens of another text, and one more session is allowed, take returns a copy of it.
func (g *generator) acquire(ctx context.Context, o owner, prompt []int) (*text.Session, error) {
	h, common, more, err := g.await(ctx, o, prompt)
	switch {
	case err != nil:
		return nil, err
	case h == nil:
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

// await is choose, after a wait for texts in progress if there is too little memory for one more.
func (g *generator) await(ctx context.Context, o owner, prompt []int) (h *idleSession, common int, more bool, err error) {
	for {
		h, common, more, full, err := g.choose(o, prompt)
		if full == nil {
			return h, common, more, err
		}
		select {
		case <-full:
		case <-ctx.Done():
			return nil, 0, false, fmt.Errorf("%w: no memory for one more text", context.Cause(ctx))
		}
	}
}

// admit makes room for a text in progress, in the session h or, if that is nil, in a new one: texts that are kept are dropped. With too
// little room it returns a channel that ends the wait for another try or, if nothing is in progress, an error. The caller holds mu.
func (g *generator) admit(h *idleSession) (full <-chan struct{}, err error) {
	running, need := g.all-len(g.idle), g.bytesPerText()
	if h != nil {
		need -= h.bytes
	}
	free := func() int64 {
		n := g.limit - g.bytes()
		if g.left != nil {
			n = min(n, g.left()-int64(running)*g.bytesPerText())
		}
		return n
	}
	g.reclaim(h, func() bool { return free() >= need })
	switch {
	case free() >= need, running == 0 && (g.left == nil || g.left() >= need):
		return nil, nil
	case running == 0:
		return nil, fmt.Errorf("%w: a text needs %d bytes, the models may use %d more", serve.ErrNoRoom, need, max(g.left(), 0))
	}
	return g.freed, nil
}

// choose removes the owner's idle session with the longest common prefix, nil if there is none, from the list. It counts a further
// one that the caller opens: more reports whether one more is allowed. If not, one of another owner is closed for it: what a session
// has in memory is never passed on. Without memory for a session, choose returns what admit does.
func (g *generator) choose(o owner, prompt []int) (h *idleSession, common int, more bool, full <-chan struct{}, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h, common = g.find(o, prompt)
	if full, err = g.admit(h); full != nil || err != nil {
		return nil, 0, false, full, err
	}
	more = g.all < g.most()
	if h == nil && !more && len(g.idle) > 0 {
		g.drop(0)
	}
	if h == nil || more && common < len(h.tokens) {
		g.all++ // even above their number: the queue bounds the callers
	}
	g.idle = slices.DeleteFunc(g.idle, func(e *idleSession) bool { return e == h })
	g.report()
	return h, common, more, nil, nil
}

// find returns the owner's idle session with the longest common prefix, the shortest of several that a prompt only extends.
func (g *generator) find(o owner, prompt []int) (best *idleSession, common int) {
	common = -1
	for _, h := range g.idle {
		if !h.serves(o) {
			continue
		}
		n := commonPrefix(h.tokens, prompt)
		if n > common || n == common && n == len(h.tokens) && n < len(best.tokens) {
			best, common = h, n
		}
	}
	return best, common
}

// opened counts a session that could not be opened.
func (g *generator) opened(s *text.Session, err error) (*text.Session, error) {
	if err != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.all--
		g.free()
		g.report()
	}
	return s, err
}

// use calls f with a session for a prompt of an owner: see take. A session whose model failed, or panicked, is not used again.
func (g *generator) use(ctx context.Context, o owner, prompt []int, f func(s *text.Session) error) error {
	s, err := g.acquire(ctx, o, prompt)
	if err != nil {
		return fault.Of(ctx, err, "")
	}
	failed := true // if f panics
	defer func() {
		if failed {
			g.discard(s)
		} else {
			g.put(s, o)
		}
	}()
	err = f(s)
	_, failed = errors.AsType[*fault.Failure](err)
	return err
}

// discard closes a session that is in use.
func (g *generator) discard(s *text.Session) {
	_ = s.Close() // frees memory only
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all--
	g.free()
	g.report()
}

// put returns a session of an owner. The least recently used ones are closed if there are too many.
func (g *generator) put(s *text.Session, o owner) {
	tokens, err := s.Tokens()
	f, err2 := s.Footprint()
	shared := g.model.SharedBytes()
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.report()
	defer g.free()
	if errors.Join(err, err2) != nil { // it is not in use, so an operator has panicked
		g.all--
		_ = s.Close()
		return
	}
	g.size, g.shared = max(g.size, f.Memory), shared
	g.idle = append(g.idle, &idleSession{s, tokens, o, f.Memory, time.Now(), true})
	for g.all > g.max && len(g.idle) > 0 {
		g.drop(0)
	}
	g.reclaim(nil, func() bool { return g.all == 1 || g.bytes() <= g.limit })
	g.watch(warmTime)
}

// reclaim frees memory of idle sessions until there is enough: that of calls, then all of those other than keep. The caller holds mu.
func (g *generator) reclaim(keep *idleSession, enough func() bool) {
	for i := 0; i < len(g.idle) && !enough(); i++ {
		g.cool(g.idle[i])
	}
	for at := 0; at < len(g.idle) && !enough(); {
		if g.idle[at] == keep {
			at++
			continue
		}
		g.drop(at)
	}
}

// cool returns the memory of an idle session's last call to the system. The caller holds mu.
func (g *generator) cool(h *idleSession) {
	if !h.warm {
		return
	}
	h.warm = false
	if h.session.Shrink() == nil { // put has refused one that fails
		f, _ := h.session.Footprint()
		h.bytes = f.Memory
	}
}

// watch lets look follow after a time, if it does not yet. The caller holds mu.
func (g *generator) watch(after time.Duration) {
	if !g.watched {
		g.watched, g.timer = true, time.AfterFunc(after, g.look)
	}
}

// look settles the idle sessions, and looks again if that is not the end.
func (g *generator) look() {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.report()
	g.watched = false
	if next := g.settle(time.Now()); next > 0 {
		g.watch(next)
	}
}

// settle frees the memory that idle sessions need no longer, and returns the time until there is more, 0 for never: see warmTime. The
// caller holds mu.
func (g *generator) settle(now time.Time) (next time.Duration) {
	for _, h := range g.idle {
		if left := h.since.Add(warmTime).Sub(now); left > 0 {
			next = max(next, left)
		} else {
			g.cool(h)
		}
	}
	if next > 0 || g.all == 0 || g.all > len(g.idle) { // put looks again
		return next
	}
	if left := g.idle[len(g.idle)-1].since.Add(keepTime).Sub(now); left > 0 {
		return left
	}
	for len(g.idle) > 1 {
		g.drop(0)
	}
	g.lighten(g.idle[0])
	_ = g.model.Shrink() // frees memory only
	g.shared = g.model.SharedBytes()
	return 0
}

// lighten empties an idle session whose text has more than a twentieth of the memory of what it is computed with again. The caller
// holds mu.
func (g *generator) lighten(h *idleSession) {
	if f, err := h.session.Footprint(); err == nil && f.Memory > f.Weights/20 && h.session.Reset() == nil {
		h.tokens, h.owner, h.warm = nil, owner{}, true
		g.cool(h)
	}
}

// drop closes an idle session. The caller holds mu.
func (g *generator) drop(at int) {
	g.all--
	_ = g.idle[at].session.Close() // frees memory only
	g.idle = slices.Delete(g.idle, at, at+1)
}

// free ends the waits for memory. The caller holds mu.
func (g *generator) free() {
	close(g.freed)
	g.freed = make(chan struct{})
}

// commonPrefix returns the number of equal elements at the beginning.
func commonPrefix(a, b []int) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
