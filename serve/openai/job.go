package openai

import (
	"context"
	"strings"

	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// job is a list of texts to be generated.
type job struct {
	options text.Options
	prompts []source
	texts   int // for each prompt
	answer  wanted
	member  string // of the prompts in the request
	salt    *string

	formMember string                // of the form, empty for none
	none       bool                  // nothing is generated
	named      func(err error) error // names the members of an error as the request has them
}

// promptModel is what prompts are encoded for: a model, its template, and the format of its calls.
type promptModel struct {
	model    *text.Model
	template *text.Template // nil for none
	noChat   error          // why there is none
	calls    *callFormat
	noCalls  error // why there is no format of calls
}

// source returns the tokens of a prompt, and those that end its text.
type source func(ctx context.Context, m *promptModel) (encoded, error)

// newJob returns a job without prompts.
func (r *request) newJob(o text.Options, f form, member string) *job {
	j := &job{options: o, texts: 1, member: member, formMember: r.formMember, salt: r.Salt, named: func(err error) error { return err },
		answer: wanted{form: f, stream: r.Stream, usage: r.Streaming != nil && r.Streaming.Usage, logProbs: o.LogProbs, limit: "max_tokens"}}
	if r.N != nil {
		j.texts = *r.N
	}
	return j
}

// defaultTokens is the limit of a completion without max_tokens.
const defaultTokens = 16

// body is a request of one kind.
type body interface {
	// model returns the name of the model.
	model() string
	// job checks the request.
	job(m *formMaker) (*job, error)
}

// job checks a completion.
func (r *completionRequest) job(m *formMaker) (*job, error) {
	o, err := r.options(m)
	switch {
	case err != nil:
		return nil, err
	case r.Prompt == nil:
		return nil, missing("prompt")
	case len(r.Prompt)*max(orZero(r.N), 1) > maxTexts:
		return nil, refused("prompt", "%d prompts with n %d, at most %d texts are generated", len(r.Prompt), max(orZero(r.N), 1), maxTexts)
	case r.BestOf != nil && *r.BestOf != max(orZero(r.N), 1):
		return nil, refused("best_of", "%d, want n, or nothing", *r.BestOf)
	case r.LogProbs != nil && (*r.LogProbs < 0 || *r.LogProbs > maxCandidates):
		return nil, refused("logprobs", "%d, want a number from 0 to %d", *r.LogProbs, maxCandidates)
	}
	if r.MaxTokens == nil {
		o.MaxTokens = defaultTokens
	}
	if r.LogProbs != nil {
		o.LogProbs, o.Top = true, *r.LogProbs
	}
	j := r.newJob(o, completionForm{}, "prompt")
	j.answer.score, j.none = r.Echo && r.LogProbs != nil, r.MaxTokens != nil && *r.MaxTokens == 0
	for _, p := range r.Prompt {
		j.prompts = append(j.prompts, func(_ context.Context, m *promptModel) (encoded, error) { return p.encode(m, r.Echo) })
	}
	return j, nil
}

// encode returns the tokens of a prompt, and its text if it is to precede the generated one.
func (p prompt) encode(m *promptModel, echo bool) (e encoded, err error) {
	if p.text != nil {
		if e.prompt, err = m.model.Encode(*p.text); echo {
			e.echo = *p.text
		}
		return e, err
	}
	if e.prompt = p.tokens; !echo || m.model.CheckPrompt(p.tokens) != nil { // the caller has that error
		return e, nil
	}
	text, err := tokenizer.Decode(m.model.Tokenizer(), p.tokens)
	e.echo = strings.ToValidUTF8(text, "\uFFFD")
	return e, err
}

// maxCandidates is the maximum number of candidates for each token.
const maxCandidates = 20

// job checks a chat completion.
func (r *chatRequest) job(m *formMaker) (*job, error) {
	if r.MaxCompletion != nil {
		if r.MaxTokens != nil && *r.MaxTokens != *r.MaxCompletion {
			return nil, refused("max_tokens", "%d, and max_completion_tokens %d: they mean the same", *r.MaxTokens, *r.MaxCompletion)
		}
		r.MaxTokens = r.MaxCompletion
	}
	o, err := r.options(m)
	switch {
	case err != nil:
		return nil, err
	case len(r.Messages) == 0:
		return nil, missing("messages")
	case r.MaxTokens != nil && *r.MaxTokens == 0:
		return nil, refused("max_tokens", "0, want 1 or more, or -1 for the rest of the context")
	case r.TopLogProbs < 0 || r.TopLogProbs > maxCandidates:
		return nil, refused("top_logprobs", "%d, want a number from 0 to %d", r.TopLogProbs, maxCandidates)
	case r.TopLogProbs > 0 && !r.LogProbs:
		return nil, refused("top_logprobs", "only with logprobs")
	}
	o.LogProbs, o.Top = r.LogProbs, r.TopLogProbs
	d, u, err := r.conversation()
	switch {
	case err != nil:
		return nil, err
	case u != nil && o.Form != nil:
		if u.answer, err = r.answerSchema(); err != nil {
			return nil, err
		}
		o.Form = nil // that of the reply has both
	case u != nil && u.formed() && len(o.Stop) > 0:
		return nil, refused("stop", "together with calls of tools of a form: the text would end within it")
	}
	j := r.newJob(o, chatForm{}, "messages")
	j.prompts = []source{func(ctx context.Context, to *promptModel) (encoded, error) {
		return r.encode(to, d, u, m.within(ctx), o.Form)
	}}
	return j, r.checkEnd()
}

// checkEnd checks how the prompt ends: with the beginning of a reply, or within the last message.
func (r *chatRequest) checkEnd() error {
	last := r.Messages[len(r.Messages)-1].Role
	switch {
	case r.Continue && r.AddReply != nil && *r.AddReply:
		return refused("add_generation_prompt", "true, want false with continue_final_message")
	case r.Continue && last != "assistant":
		return refused("continue_final_message", "the last message is of the role %s, want one of the assistant", quote(last))
	case !r.Continue && r.AddReply != nil && !*r.AddReply:
		return refused("add_generation_prompt", "false, want true, or continue_final_message")
	}
	return nil
}

// encoded is a prompt as tokens, and how its text ends and is divided.
type encoded struct {
	prompt, ends []int
	form         *text.Form     // nil for none, or for that of the request
	formMember   string         // what prescribes it
	shown        map[int]string // control tokens that are text here
	split        *splitting     // nil for a reply that is text only
	echo         string         // precedes the generated text
}

// encode returns the tokens of all prompts.
func (j *job) encode(ctx context.Context, m *promptModel) ([]encoded, error) {
	for _, id := range j.options.Ends {
		if n := m.model.Info().Vocabulary; id >= n {
			return nil, refused("stop_token_ids", "%d, the model has tokens below %d", id, n)
		}
	}
	list := make([]encoded, len(j.prompts))
	for i, tokens := range j.prompts {
		var err error
		list[i], err = tokens(ctx, m)
		if err == nil {
			err = m.model.CheckPrompt(list[i].prompt)
		}
		if err != nil {
			return nil, promptError(j.member, err)
		}
		list[i].ends = append(list[i].ends, j.options.Ends...)
	}
	return list, nil
}

// prefix is the text of which a session should have the beginning.
func (j *job) prefix(e *encoded) []int {
	if j.answer.score || j.none {
		return nil // all of it is computed, or nothing
	}
	return e.prompt
}
