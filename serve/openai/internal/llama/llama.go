// Package llama reads requests of llama-server's own API as the completions that they ask for, and has the form of its answers.
package llama

import (
	"errors"
	"maps"
	"slices"

	"github.com/etrun-go/etrun/serve/openai/internal/answer"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/forms"
	"github.com/etrun-go/etrun/serve/openai/internal/requests"
	"github.com/etrun-go/etrun/text"
)

// Reasons of members that are refused.
const (
	noDetail = "the answer cannot contain it"
	noTime   = "want n_predict"
)

// own are the members of /completion that OpenAI's completions do not have, or that mean something else there.
var own = requests.Of("n_predict").
	Inert(`id_slot n_keep n_discard penalize_nl xtc_threshold dynatemp_exponent dry_base dry_allowed_length dry_penalty_last_n
		dry_sequence_breakers`).
	No("there is no minimum of tokens", "0", "min_keep").No("want a grammar", "0", "n_indent").
	No(noTime, "0 -1", "t_max_predict_ms t_max_prompt_ms").No(noDetail, "0", "n_probs logprobs").
	No(noDetail, "false", "post_sampling_probs return_tokens return_progress echo").No(noDetail, "[]", "response_fields").
	No("want one text", "1", "n n_cmpl best_of").No("want text", "[]", "image_data").No("there are no adapters", "[]", "lora")

// CompletionMembers are those of /completion.
var CompletionMembers = maps.Clone(requests.CompletionMembers).With(own)

// TemplateMembers are those of /apply-template.
var TemplateMembers = func() requests.Object {
	o := maps.Clone(requests.TokenizeMembers)
	for _, name := range []string{"prompt", "content", "add_special_tokens", "add_special", "parse_special", "with_pieces", "return_token_strs"} {
		delete(o, name)
	}
	return o
}()

// Completion is the body of /completion.
type Completion struct {
	requests.Completion
	Predict *int `json:"n_predict"`
}

// defaults are the values of members that are not given.
var defaults = map[string]any{"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "n_predict": -1}

// orDefault returns a value, or the default of a member.
func orDefault[T any](p *T, name string) *T {
	if p == nil {
		v := defaults[name].(T)
		return &v
	}
	return p
}

// Style implements openai.styled.
func (r *Completion) Style() *answer.Style { return &style }

// Job implements requests.Body.
func (r *Completion) Job(m *forms.Maker) (*requests.Job, error) {
	if len(r.Prompt) > 1 {
		return nil, fault.Refused("prompt", "%d texts, want one", len(r.Prompt))
	}
	s := r.Shared()
	s.Temperature, s.TopK, s.TopP, s.MinP = orDefault(s.Temperature, "temperature"), orDefault(s.TopK, "top_k"), orDefault(s.TopP, "top_p"),
		orDefault(s.MinP, "min_p")
	if r.Predict != nil || s.MaxTokens == nil {
		s.MaxTokens = orDefault(r.Predict, "n_predict")
	}
	j, err := r.Completion.Job(m)
	if err != nil {
		return nil, renamed(err)
	}
	j.Rename("prompt", renamed)
	j.Wanted.Style, j.Wanted.Limit = &style, "n_predict"
	return j, nil
}

// renamed names the members of an error as requests have them here.
func renamed(err error) error {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		e.Rename("max_tokens", "n_predict")
	}
	return err
}

// stops are the types of ends.
var stops = map[text.Finish]string{text.FinishStop: "eos", text.FinishLength: "limit", text.FinishContext: "limit"}

// part is a part of a text in a stream.
type part struct {
	Index   int   `json:"index"`
	Content any   `json:"content"`
	Tokens  []int `json:"tokens"` // not returned
	Slot    int   `json:"id_slot"`
	Stop    bool  `json:"stop"`
}

// timings are the times of a text.
type timings struct {
	PromptN        int     `json:"prompt_n"`
	PromptMS       float64 `json:"prompt_ms"`
	PromptRate     float64 `json:"prompt_per_second"`
	PredictedN     int     `json:"predicted_n"`
	PredictedMS    float64 `json:"predicted_ms"`
	PredictedToken float64 `json:"predicted_per_token_ms"`
	PredictedRate  float64 `json:"predicted_per_second"`
}

// lastPart is a text, or the last part of one.
type lastPart struct {
	part
	Model     string  `json:"model"`
	Predicted int     `json:"tokens_predicted"`
	Evaluated int     `json:"tokens_evaluated"`
	Cached    int     `json:"tokens_cached"`
	Truncated bool    `json:"truncated"`
	Type      string  `json:"stop_type"`
	Word      string  `json:"stopping_word"` // not known
	Timings   timings `json:"timings"`
}

var style = answer.Style{Object: func(p *answer.Part) any {
	x := part{Content: p.Text, Tokens: []int{}, Stop: p.Done}
	if !p.Done {
		return &x
	}
	s := &p.Stats
	t := timings{PromptN: s.Prompt - s.Reused, PromptMS: s.Prefill.Seconds() * 1e3, PromptRate: s.PrefillRate(), PredictedN: s.Generated,
		PredictedMS: (s.Total - s.Prefill).Seconds() * 1e3, PredictedRate: s.DecodeRate()}
	if s.Generated > 0 {
		t.PredictedToken = t.PredictedMS / float64(s.Generated)
	}
	return &lastPart{part: x, Model: p.Model, Predicted: s.Generated, Evaluated: s.Prompt, Cached: s.Reused, Type: stops[p.Finish], Timings: t}
}}

// Props describes a model.
type Props struct {
	Settings   settings        `json:"default_generation_settings"`
	Slots      int             `json:"total_slots"`
	Alias      string          `json:"model_alias"`
	Path       string          `json:"model_path"` // not for clients
	Template   string          `json:"chat_template"`
	BOS        string          `json:"bos_token"`
	EOS        string          `json:"eos_token"`
	Modalities map[string]bool `json:"modalities"`
	Build      string          `json:"build_info"`
}

type settings struct {
	Context int            `json:"n_ctx"`
	Params  map[string]any `json:"params"`
}

// NewProps returns the properties of a model with the positions of its context, of which so many requests run at once.
func NewProps(name, template, build string, context, slots int) *Props {
	return &Props{Settings: settings{context, defaults}, Slots: slots, Alias: name, Template: template, Build: build,
		Modalities: map[string]bool{"vision": false, "audio": false}}
}

// Slot is where a request runs.
type Slot struct {
	ID          int  `json:"id"`
	Context     int  `json:"n_ctx"`
	Speculative bool `json:"speculative"`
	Processing  bool `json:"is_processing"`
}

// Slots returns those of a model, of which some are in use.
func Slots(context, running, most int) []Slot {
	list := slices.Repeat([]Slot{{Context: context}}, most)
	for i := range list {
		list[i].ID, list[i].Processing = i, i < running
	}
	return list
}

// Prompt is the answer to /apply-template.
type Prompt struct {
	Prompt string `json:"prompt"`
}
