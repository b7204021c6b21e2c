// Package requests reads and checks the bodies of requests to OpenAI's API, and makes prompts of them.
package requests

import (
	"context"
	"strings"

	"github.com/etrun-go/etrun/serve/openai/internal/answer"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/forms"
	"github.com/etrun-go/etrun/serve/openai/internal/toolcall"
	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// Job is a list of texts to be generated.
type Job struct {
	Options text.Options
	prompts []source
	Texts   int // for each prompt
	Wanted  answer.Wanted
	member  string // of the prompts in the request
	Salt    *string
	Media   int64 // bytes of memory that the pictures and sounds of the prompts take when they are decoded

	Unoffered  string                // types of tools that the server does not run, of which the model knows nothing
	FormMember string                // of the form, empty for none
	None       bool                  // nothing is generated
	Named      func(err error) error // names the members of an error as the request has them
}

// Model is what prompts are encoded for: a model, its template, and the format of its calls.
type Model struct {
	Text     *text.Model
	Template *text.Template // nil for none
	NoChat   error          // why there is none
	Calls    *toolcall.Format
	NoCalls  error // why there is no format of calls
}

// source returns the tokens of a prompt, and those that end its text.
type source func(ctx context.Context, m *Model) (Encoded, error)

// newJob returns a job without prompts.
func (r *request) newJob(o text.Options, kind answer.Kind, member string) *Job {
	j := &Job{Options: o, Texts: 1, member: member, FormMember: r.formMember, Salt: r.Salt, Named: func(err error) error { return err },
		Wanted: answer.Wanted{Kind: kind, Stream: r.Stream, Usage: r.Streaming != nil && r.Streaming.Usage, LogProbs: o.LogProbs,
			Limit: "max_tokens", Schema: r.answered}}
	if r.N != nil {
		j.Texts = *r.N
	}
	return j
}

// defaultTokens is the limit of a completion without max_tokens.
const defaultTokens = 16

// Body is a request of one kind.
type Body interface {
	// ModelName returns the name of the model.
	ModelName() string
	// Job checks the request.
	Job(m *forms.Maker) (*Job, error)
}

// Job checks a completion.
func (r *Completion) Job(m *forms.Maker) (*Job, error) {
	o, err := r.options(m)
	switch {
	case err != nil:
		return nil, err
	case r.Prompt == nil:
		return nil, fault.Missing("prompt")
	case len(r.Prompt)*max(orZero(r.N), 1) > maxTexts:
		return nil, fault.Refused("prompt", "%d prompts with n %d, at most %d texts are generated", len(r.Prompt), max(orZero(r.N), 1), maxTexts)
	case r.BestOf != nil && *r.BestOf != max(orZero(r.N), 1):
		return nil, fault.Refused("best_of", "%d, want n, or nothing", *r.BestOf)
	case r.LogProbs != nil && (*r.LogProbs < 0 || *r.LogProbs > maxCandidates):
		return nil, fault.Refused("logprobs", "%d, want a number from 0 to %d", *r.LogProbs, maxCandidates)
	}
	if r.MaxTokens == nil {
		o.MaxTokens = defaultTokens
	}
	if r.LogProbs != nil {
		o.LogProbs, o.Top = true, *r.LogProbs
	}
	j := r.newJob(o, answer.Completion, "prompt")
	j.Wanted.Score, j.None = r.Echo && r.LogProbs != nil, r.MaxTokens != nil && *r.MaxTokens == 0
	for _, p := range r.Prompt {
		j.prompts = append(j.prompts, func(_ context.Context, m *Model) (Encoded, error) { return p.Encode(m, r.Echo) })
	}
	return j, nil
}

// Encode returns the tokens of a prompt, and its text if it is to precede the generated one.
func (p Prompt) Encode(m *Model, echo bool) (e Encoded, err error) {
	if p.Text != nil {
		if e.Prompt, err = m.Text.Encode(*p.Text); echo {
			e.Echo = *p.Text
		}
		return e, err
	}
	if e.Prompt = p.Tokens; !echo || m.Text.CheckPrompt(p.Tokens) != nil { // the caller has that error
		return e, nil
	}
	text, err := tokenizer.Decode(m.Text.Tokenizer(), p.Tokens)
	e.Echo = strings.ToValidUTF8(text, "\uFFFD")
	return e, err
}

// maxCandidates is the maximum number of candidates for each token.
const maxCandidates = 20

// Job checks a chat completion.
func (r *Chat) Job(m *forms.Maker) (*Job, error) {
	if r.MaxCompletion != nil {
		if r.MaxTokens != nil && *r.MaxTokens != *r.MaxCompletion {
			return nil, fault.Refused("max_tokens", "%d, and max_completion_tokens %d: they mean the same", *r.MaxTokens, *r.MaxCompletion)
		}
		r.MaxTokens = r.MaxCompletion
	}
	o, err := r.options(m)
	switch {
	case err != nil:
		return nil, err
	case len(r.Messages) == 0:
		return nil, fault.Missing("messages")
	case r.MaxTokens != nil && *r.MaxTokens == 0:
		return nil, fault.Refused("max_tokens", "0, want 1 or more, or -1 for the rest of the context")
	case r.TopLogProbs < 0 || r.TopLogProbs > maxCandidates:
		return nil, fault.Refused("top_logprobs", "%d, want a number from 0 to %d", r.TopLogProbs, maxCandidates)
	case r.TopLogProbs > 0 && !r.LogProbs:
		return nil, fault.Refused("top_logprobs", "only with logprobs")
	}
	o.LogProbs, o.Top = r.LogProbs, r.TopLogProbs
	d, u, err := r.Conversation()
	switch {
	case err != nil:
		return nil, err
	case u != nil && o.Form != nil:
		if u.Answer, err = r.answerSchema(); err != nil {
			return nil, err
		}
		o.Form = nil // that of the reply has both
	case u != nil && u.Formed() && len(o.Stop) > 0:
		return nil, fault.Refused("stop", "together with calls of tools of a form: the text would end within it")
	}
	j := r.newJob(o, answer.Chat, "messages")
	j.Unoffered = strings.Join(r.unoffered, ", ")
	j.prompts = []source{func(ctx context.Context, to *Model) (Encoded, error) {
		return r.Encode(ctx, to, d, u, m.Within(ctx), o.Form)
	}}
	if j.Media, err = r.memory(); err != nil {
		return nil, err
	}
	return j, r.CheckEnd()
}

// CheckEnd checks how the prompt ends: with the beginning of a reply, or within the last message.
func (r *Chat) CheckEnd() error {
	last := r.Messages[len(r.Messages)-1].Role
	switch {
	case r.Continue && r.AddReply != nil && *r.AddReply:
		return fault.Refused("add_generation_prompt", "true, want false with continue_final_message")
	case r.Continue && last != "assistant":
		return fault.Refused("continue_final_message", "the last message is of the role %s, want one of the assistant", fault.Quote(last))
	case !r.Continue && r.AddReply != nil && !*r.AddReply:
		return fault.Refused("add_generation_prompt", "false, want true, or continue_final_message")
	}
	return nil
}

// Encoded is a prompt as tokens, and how its text ends and is divided.
type Encoded struct {
	Prompt, Ends []int
	Parts        []*text.Part        // of the prompt
	Form         *text.Form          // nil for none, or for that of the request
	FormMember   string              // what prescribes it
	Shown        map[int]string      // control tokens that are text here
	Split        *toolcall.Splitting // nil for a reply that is text only
	Echo         string              // precedes the generated text
}

// Encode returns the tokens of all prompts.
func (j *Job) Encode(ctx context.Context, m *Model) ([]Encoded, error) {
	for _, id := range j.Options.Ends {
		if n := m.Text.Info().Vocabulary; id >= n {
			return nil, fault.Refused("stop_token_ids", "%d, the model has tokens below %d", id, n)
		}
	}
	list := make([]Encoded, len(j.prompts))
	for i, tokens := range j.prompts {
		var err error
		list[i], err = tokens(ctx, m)
		if err == nil {
			err = m.Text.CheckPrompt(list[i].Prompt, list[i].Parts...)
		}
		if err != nil {
			return nil, fault.OfPrompt(j.member, err)
		}
		list[i].Ends = append(list[i].Ends, j.Options.Ends...)
	}
	return list, nil
}

// Prefix is the text of which a session should have the beginning.
func (j *Job) Prefix(e *Encoded) []int {
	if j.Wanted.Score || j.None {
		return nil // all of it is computed, or nothing
	}
	return e.Prompt
}
