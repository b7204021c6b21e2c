package text

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/etrun-go/etrun/internal/simd"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// generation is one call of Generate.
type generation struct {
	*Session
	o     Options
	yield func(Piece, error) bool
	left  bool // the caller ended the iteration

	sampler sampler
	constraint
	stream  stream
	list    []Token     // tokens not yet yielded
	top     []Candidate // of these
	bytes   []byte      // of one token
	opens   bool        // at the beginning of a whole text: no bytes yet
	opening []int       // tokens of that beginning
	call    []int       // tokens of the next call: the chosen one, then a draft
	ahead   int         // computed tokens of a draft that have not been chosen yet

	finish Finish
	stats  Stats
	began  time.Time
	chosen time.Time // when the first token was chosen
}

// start prepares the session's generation for a call.
func (s *Session) start(o Options, yield func(Piece, error) bool) *generation {
	g := &s.gen
	g.Session, g.o, g.yield, g.left = s, o, yield, false
	g.finish, g.stats, g.began = "", Stats{}, time.Now()
	g.list, g.top = g.list[:0], g.top[:0]
	g.sampler.start(o.Sampling)
	g.stream.start(o.Stop)
	return g
}

// release drops what the call has had: a session can be idle for long, and a form have many positions.
func (g *generation) release() {
	g.rowOf = nil
	g.o, g.yield, g.constraint.Matcher, g.sampler.Sampling, g.stream.stops = Options{}, nil, nil, Sampling{}, nil
}

// run computes the prompt and generates tokens until the text ends.
func (g *generation) run(ctx context.Context, prompt []int) (err error) {
	g.sampler.prompt = len(prompt)
	g.stats.Prompt, g.opens, g.opening = len(prompt), g.model.onlyControl(prompt), g.opening[:0]
	defer g.model.batch.leave(&g.part)
	g.stats.Reused, err = g.extend(ctx, prompt)
	g.stats.Prefill = time.Since(g.began)
	g.ahead = 0
	defer g.dropDraft()
	g.model.batch.join(&g.part)
	if err == nil {
		err = g.startForm(len(prompt))
	}
	for err == nil && g.finish == "" && !g.left {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err = g.next(ctx)
	}
	return err
}

// next generates one token, and computes it if the text continues.
func (g *generation) next(ctx context.Context) error {
	if g.Matcher != nil && g.Complete() {
		g.finish = FinishStop
		return nil
	}
	id, err := g.choose()
	if err != nil || g.finish != "" {
		return err
	}
	if g.endsText(id) {
		g.finish = FinishStop
		return nil
	}
	if err := g.add(id); err != nil || g.finish != "" || g.left {
		return err
	}
	full := g.stats.Generated == g.o.MaxTokens || len(g.text()) == g.model.info.Context
	switch {
	case full && g.Matcher != nil && g.Accepts():
		g.finish = FinishStop // the form is complete
	case g.stats.Generated == g.o.MaxTokens:
		g.finish = FinishLength
	case len(g.text()) == g.model.info.Context:
		g.finish = FinishContext
	default:
		return g.advance(ctx, id)
	}
	return nil
}

// text returns the computed tokens of the text.
func (g *generation) text() []int { return g.tokens[:len(g.tokens)-g.ahead] }

// following returns the logits after the text.
func (g *generation) following() []float32 {
	return g.logitsAfter(len(g.text()) - 1)[:g.model.choices]
}

// choose returns the next token.
func (g *generation) choose() (int, error) {
	logits := g.following()
	if err := g.checkLogits(logits, len(g.text())-1); err != nil {
		g.ahead = 0
		g.forget()
		return 0, err
	}
	id, ok := g.sampler.choose(logits, g.text())
	if ok && g.Matcher != nil {
		if id, ok = g.formed(id, logits); !ok && g.Accepts() {
			g.finish = FinishStop // nothing that has an end within the tokens that are left can follow
			return 0, nil
		}
	}
	if !ok && g.Matcher != nil {
		return 0, &OptionError{Option: "form", Got: "no token that the bias and the model do not exclude", Want: "one that can follow"}
	}
	if !ok {
		return 0, &OptionError{Option: "bias", Got: "no token that it does not exclude", Want: "one"}
	}
	return id, nil
}

// checkLogits rejects NaN, infinity, and logits without a finite number, after a position.
func (s *Session) checkLogits(logits []float32, position int) error {
	if top := simd.Max(logits); top >= -math.MaxFloat32 && top <= math.MaxFloat32 { // not NaN, so no logit is
		return nil
	}
	id := max(slices.IndexFunc(logits, func(x float32) bool { return x != x || x > math.MaxFloat32 }), 0)
	return &LogitsError{Position: position, ID: id, Value: logits[id]}
}

// add appends a token to the text and yields the text that is final.
func (g *generation) add(id int) error {
	now := time.Now()
	if g.stats.Generated == 0 {
		g.chosen, g.stats.FirstToken = now, now.Sub(g.began)
	}
	g.stats.Generated++
	if g.Matcher != nil {
		g.Advance(g.tokenText(id)) // which was allowed
	}
	g.stats.Decode = now.Sub(g.chosen)
	g.list = append(g.list, g.describe(id))
	if g.model.tok == nil {
		g.put(nil, true)
		return nil
	}
	if err := g.decode(id); err != nil {
		return err
	}
	text, stopped := g.stream.push(g.bytes)
	if stopped {
		g.finish = FinishStop
	}
	g.put(text, len(text) > 0 || len(g.list) >= maxWithheld)
	return nil
}

// maxWithheld bounds the tokens that are not yielded because they have no text yet.
const maxWithheld = 64

// decode sets bytes to those of a token. At the beginning of a whole text, tokenizers drop one space.
func (g *generation) decode(id int) (err error) {
	if name, ok := g.o.Shown[id]; ok {
		g.bytes, g.opens = append(g.bytes[:0], name...), false
		return nil
	}
	if !g.opens {
		g.bytes, err = g.model.tok.Append(g.bytes[:0], id)
		return err
	}
	g.opening = append(g.opening, id)
	text, err := tokenizer.Decode(g.model.tok, g.opening)
	g.bytes, g.opens = append(g.bytes[:0], text...), text == ""
	return err
}

// describe returns a token with the log-probabilities that the options select.
func (g *generation) describe(id int) Token {
	if !g.o.LogProbs {
		return Token{ID: id}
	}
	return scored(id, g.following(), g.o.Top, &g.top)
}

// put yields a piece.
func (g *generation) put(text []byte, any bool) {
	if !any {
		return
	}
	if !g.yield(Piece{Text: string(text), Tokens: g.list}, nil) {
		g.left = true
	}
	g.list, g.top = g.list[:0], g.top[:0]
}

// fail yields an error, with what was generated before it.
func (g *generation) fail(err error) {
	if g.stats.Generated == 0 {
		g.yield(Piece{}, err)
		return
	}
	g.stats.Total = time.Since(g.began)
	g.yield(Piece{Text: string(g.stream.flush()), Tokens: g.list, Stats: g.stats}, err)
}

// end yields the last piece.
func (g *generation) end(err error) {
	g.stats.Total = time.Since(g.began)
	g.yield(Piece{Text: string(g.stream.flush()), Tokens: g.list, Finish: g.finish, Stats: g.stats}, err)
}

// Generate continues a text and yields the continuation in pieces. The prompt is the whole text from
// its beginning. It is [Session.GenerateTokens] for the tokens of [Model.Encode].
func (s *Session) Generate(ctx context.Context, prompt string, o Options) iter.Seq2[Piece, error] {
	ids, err := s.model.Encode(prompt)
	if err != nil {
		return func(yield func(Piece, error) bool) { yield(Piece{}, err) }
	}
	return s.GenerateTokens(ctx, ids, o)
}

// GenerateTokens continues the text of the given tokens and yields the continuation in pieces. The
// session reuses the computed tokens that it shares with the beginning of the prompt, and drops the
// others.
//
// The last piece has Finish and Stats. If ctx ends, its Finish is FinishCancelled, and the error is
// the context's cause. Any other error ends the iteration, with a piece of the text and the tokens that were
// generated before it and not yielded yet: *PromptError, *TokenError, *OptionError, *LogitsError, those of the tokenizer and those of
// etrun.Method.Execute. Callers can end the iteration at any piece. In all cases the session remains
// usable and holds the tokens that were computed.
func (s *Session) GenerateTokens(ctx context.Context, prompt []int, o Options) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		if err := s.enter(); err != nil {
			yield(Piece{}, err)
			return
		}
		defer s.leave()
		g := s.start(o, yield)
		defer g.release()
		err := s.checkCall(prompt, &o)
		if err == nil {
			err = g.run(ctx, prompt)
		}
		switch {
		case g.left:
		case err != nil && isCanceled(ctx, err):
			g.finish = FinishCancelled
			g.end(context.Cause(ctx))
		case err != nil:
			g.fail(err)
		default:
			g.end(nil)
		}
	}
}

// startForm prepares a call with a form, which must have an end within the tokens that can be generated.
func (g *generation) startForm(prompt int) error {
	g.constraint.Matcher = nil
	if g.o.Form == nil {
		return nil
	}
	if g.model.tok == nil {
		return &OptionError{Option: "form", Got: "a form", Want: "none without a tokenizer"}
	}
	if len(g.o.Stop) > 0 {
		return &OptionError{Option: "stop", Got: "strings", Want: "none together with a form: the text would end within it"}
	}
	excluded := g.excluded()
	g.constraint.Matcher = g.o.Form.grammar.NewMatcher(g.model.vocabulary(), excluded)
	switch n := g.remaining(prompt); {
	case !g.Ends():
		return noEnd(len(excluded) > 0)
	case g.Least() > n:
		return &OptionError{Option: "max tokens", Got: n, Want: decimal(g.Least()) + " or more: the shortest text of the form needs as many"}
	}
	return nil
}

// excluded returns the tokens that cannot be a part of a text with a form, sorted: those that a bias excludes, and those that end the
// text although they have a text themselves.
func (g *generation) excluded() (list []int) {
	for id, b := range g.o.Bias {
		if math.IsInf(float64(b), -1) {
			list = append(list, id)
		}
	}
	for _, id := range slices.Concat(g.model.ends, g.o.Ends) {
		if g.endsText(id) && len(g.tokenText(id)) > 0 {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// noEnd is the error of a form of which no text is found. excludes means that some tokens are not part of texts.
func noEnd(excludes bool) error {
	if excludes {
		return &OptionError{Option: "form", Got: "one that no text has without the tokens that a bias excludes or that end a text",
			Want: "fewer of these tokens"}
	}
	return &OptionError{Option: "form", Got: "one that no text has", Want: "a form of texts that the model's tokens can write"}
}

// remaining returns the number of tokens that can be generated.
func (g *generation) remaining(prompt int) int {
	n := g.model.info.Context - prompt + 1
	if g.o.MaxTokens > 0 {
		n = min(n, g.o.MaxTokens)
	}
	return n - g.stats.Generated
}

// endsText reports whether a token ends the text.
func (g *generation) endsText(id int) bool {
	return !g.o.IgnoreEOS && slices.Contains(g.model.ends, id) || slices.Contains(g.o.Ends, id)
}

// tokenText returns the bytes of a token.
func (g *generation) tokenText(id int) []byte {
	if name, ok := g.o.Shown[id]; ok {
		return append(g.constraint.bytes[:0], name...)
	}
	g.constraint.bytes, _ = g.model.tok.Append(g.constraint.bytes[:0], id)
	return g.constraint.bytes
}

// formed returns the chosen token if the form allows it, or else one of those that it allows.
func (g *generation) formed(id int, logits []float32) (int, bool) {
	left := g.remaining(g.sampler.prompt) - 1
	if g.endsText(id) {
		if g.Accepts() {
			return id, true
		}
	} else if s := g.tokenText(id); len(s) > 0 && g.Allows(s, left) {
		return id, true
	}
	f := &g.constraint
	f.logits = slices.Grow(f.logits[:0], len(logits))[:len(logits)]
	for i := range f.logits {
		f.logits[i] = float32(math.Inf(-1))
	}
	all := g.Each(g.model.vocabulary(), left, func(id int) {
		if !g.endsText(id) {
			f.logits[id] = logits[id]
		}
	})
	if !all {
		g.likely(logits, left)
	}
	if g.Accepts() {
		for _, id := range slices.Concat(g.model.ends, g.o.Ends) {
			if id < len(logits) && g.endsText(id) {
				f.logits[id] = logits[id]
			}
		}
	}
	for {
		id, ok := g.sampler.choose(f.logits, g.text())
		if !ok || g.endsText(id) || g.Allows(g.tokenText(id), left) {
			return id, ok
		}
		f.logits[id] = float32(math.Inf(-1)) // a form with very many possibilities, not all of which are followed
	}
}

// likely adds the most likely tokens that the form allows, if it takes too much work to look at all.
func (g *generation) likely(logits []float32, left int) {
	ids := make([]int, len(logits))
	for id := range ids {
		ids[id] = id
	}
	slices.SortFunc(ids, func(a, b int) int { return cmp.Compare(logits[b], logits[a]) })
	for _, id := range ids {
		if g.Spent() {
			return
		}
		if s := g.tokenText(id); len(s) > 0 && !g.endsText(id) && g.Allows(s, left) {
			g.constraint.logits[id] = logits[id]
		}
	}
}

// advance makes the logits after a chosen token available. If the token is the next one of a draft,
// they are; else the token is computed, together with a new draft.
func (g *generation) advance(ctx context.Context, id int) error {
	if g.ahead > 0 && g.tokens[len(g.tokens)-g.ahead] == id {
		g.ahead--
		g.stats.Accepted++
		return nil
	}
	g.dropDraft()
	g.call = append(g.call[:0], id)
	g.call = append(g.call, g.draft(id)...)
	if err := g.compute(ctx, g.call); err != nil {
		return err
	}
	g.ahead = len(g.call) - 1
	g.stats.Drafted += g.ahead
	return nil
}

// tokensOnly returns the tokens before the first part.
func tokensOnly(list []int) []int {
	if i := slices.IndexFunc(list, func(id int) bool { return id < 0 }); i >= 0 {
		return list[:i]
	}
	return list
}

// dropDraft removes the rest of a draft from the session.
func (g *generation) dropDraft() {
	g.rewind(len(g.tokens) - g.ahead)
	g.ahead = 0
}

// Lengths of the suffixes of a text that are looked up, in tokens.
const (
	longestLookup  = 3
	shortestLookup = 2
)

// draft returns tokens that may follow the text and a chosen token: those that followed the last
// occurrence of the same tokens.
func (g *generation) draft(id int) []int {
	n := min(g.o.Lookup, g.step()-1, g.model.info.Context-len(g.tokens)-1)
	if g.o.MaxTokens > 0 {
		n = min(n, g.o.MaxTokens-g.stats.Generated-1)
	}
	if n <= 0 || !g.model.info.TakesDrafts() {
		return nil
	}
	text := g.tokens
	for length := longestLookup - 1; length >= shortestLookup-1; length-- {
		if length >= len(text) {
			continue
		}
		end := text[len(text)-length:]
		for at := len(text) - length - 1; at >= 0; at-- {
			if next := at + length; text[next] == id && slices.Equal(text[at:next], end) {
				return tokensOnly(text[next+1 : min(next+1+n, len(text))])
			}
		}
	}
	return nil
}
