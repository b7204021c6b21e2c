package requests

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/forms"
	"github.com/etrun-go/etrun/serve/openai/internal/toolcall"
	"github.com/etrun-go/etrun/text"
)

// request is the common part of both kinds of requests.
type request struct {
	Model       string             `json:"model"`
	Stream      bool               `json:"stream"`
	Streaming   *streamOptions     `json:"stream_options"`
	Temperature *float64           `json:"temperature"`
	TopP        *float64           `json:"top_p"`
	Seed        *int64             `json:"seed"`
	Stop        stops              `json:"stop"`
	Bias        map[string]float64 `json:"logit_bias"`
	MaxTokens   *int               `json:"max_tokens"`
	N           *int               `json:"n"`
	Presence    *float64           `json:"presence_penalty"`
	Frequency   *float64           `json:"frequency_penalty"`
	Format      *answerFormat      `json:"response_format"`
	Guided      json.RawMessage    `json:"guided_json"`
	Schema      json.RawMessage    `json:"json_schema"`
	Grammar     *string            `json:"grammar"`
	Regex       *string            `json:"regex"`
	GuidedRegex *string            `json:"guided_regex"`
	Choices     *[]string          `json:"guided_choice"`
	Structured  *structured        `json:"structured_outputs"`
	Salt        *string            `json:"cache_salt"`

	// Extensions that other servers have, too.
	TopK        *int     `json:"top_k"`
	MinP        *float64 `json:"min_p"`
	Repeat      *float64 `json:"repetition_penalty"`
	RepeatAlias *float64 `json:"repeat_penalty"`
	RepeatLast  *int     `json:"repeat_last_n"`
	IgnoreEOS   bool     `json:"ignore_eos"`
	StopIDs     []int    `json:"stop_token_ids"`

	formMember string          // the member that prescribes the form
	answered   json.RawMessage // the schema of the answer if its form does not enforce all of it
}

// structured prescribes the form of a text, as vLLM has it.
type structured struct {
	Schema  json.RawMessage `json:"json"`
	Regex   *string         `json:"regex"`
	Choice  *[]string       `json:"choice"`
	Grammar *string         `json:"grammar"`
	Object  *bool           `json:"json_object"`
}

type streamOptions struct {
	Usage bool `json:"include_usage"`
}

// answerFormat is the form of a text.
type answerFormat struct {
	Type   string          `json:"type"`
	Schema *answerSchema   `json:"json_schema"`
	Bare   json.RawMessage `json:"schema"` // of the type json_object, as llama.cpp has it
}

// answerSchema is the schema of an answer. If it is strict, all of it has to be enforced.
type answerSchema struct {
	Schema json.RawMessage `json:"schema"`
	Strict json.RawMessage `json:"strict"`
}

// Completion is the body of a completion.
type Completion struct {
	request
	Prompt   prompts `json:"prompt"`
	Echo     bool    `json:"echo"`
	LogProbs *int    `json:"logprobs"`
	BestOf   *int    `json:"best_of"`
}

// Chat is the body of a chat completion.
type Chat struct {
	request
	Messages      []message       `json:"messages"`
	MaxCompletion *int            `json:"max_completion_tokens"`
	LogProbs      bool            `json:"logprobs"`
	TopLogProbs   int             `json:"top_logprobs"`
	Continue      bool            `json:"continue_final_message"`
	AddReply      *bool           `json:"add_generation_prompt"`
	Tools         json.RawMessage `json:"tools"`
	Choice        json.RawMessage `json:"tool_choice"`
	Parallel      *bool           `json:"parallel_tool_calls"`
	Effort        *string         `json:"reasoning_effort"`

	unoffered []string // types of tools that the server does not run
	custom    bool     // a tool is one with a text as its input

	// Values are those of the template.
	Values map[string]json.RawMessage `json:"chat_template_kwargs"`
}

func (r *Completion) ModelName() string { return r.Model }
func (r *Chat) ModelName() string       { return r.Model }

// Prompt is a text or a list of tokens.
type Prompt struct {
	Text   *string
	Tokens []int
}

// prompts are those of a completion.
type prompts []Prompt

// UnmarshalJSON accepts a string, a list of tokens, and a list of these.
func (p *prompts) UnmarshalJSON(b []byte) error {
	return readPrompts((*[]Prompt)(p), b, "prompt", maxTexts)
}

// readPrompts reads a member that is a string, a list of tokens, or a list of these.
func readPrompts(p *[]Prompt, b []byte, member string, most int) error {
	var one Prompt
	var all []json.RawMessage
	bad := fault.Refused(member, "want a string, a list of tokens, or a list of these")
	switch {
	case b[0] == 'n': // null
		return nil
	case one.parse(b):
		*p = []Prompt{one}
		if one.isEmpty() {
			return fault.Refused(member, "an empty list, want a string, a list of tokens, or a list of these")
		}
		return nil
	case b[0] != '[' || json.Unmarshal(b, &all) != nil:
		return bad
	case len(all) > most:
		return fault.Refused(member, "%d texts, at most %d are accepted", len(all), most)
	}
	*p = make([]Prompt, len(all))
	for i, raw := range all {
		if !(*p)[i].parse(raw) {
			return bad
		}
		if (*p)[i].isEmpty() {
			return fault.Refused(member, "element %d is an empty list, want a string or a list of tokens", i)
		}
	}
	return nil
}

// isEmpty reports whether a prompt is a list without tokens. A string may be empty: a text begins with the model's first token.
func (p *Prompt) isEmpty() bool { return p.Text == nil && len(p.Tokens) == 0 }

// parse reads one prompt. Package json takes null in a list for 0.
func (p *Prompt) parse(b []byte) bool {
	if b[0] == '"' {
		return json.Unmarshal(b, &p.Text) == nil
	}
	if b[0] != '[' || bytes.IndexByte(b, 'n') >= 0 || json.Unmarshal(b, &p.Tokens) != nil {
		p.Tokens = nil
		return false
	}
	return true
}

// stops are the strings that end a text.
type stops []string

// UnmarshalJSON accepts a string, a list of strings, and null.
func (s *stops) UnmarshalJSON(b []byte) error {
	if b[0] != '"' {
		return json.Unmarshal(b, (*[]string)(s))
	}
	*s = make(stops, 1)
	return json.Unmarshal(b, &(*s)[0])
}

// message is a message of a conversation.
type message struct {
	Role      string          `json:"role"`
	Content   *content        `json:"content"`
	Name      string          `json:"name"`
	CallID    string          `json:"tool_call_id"`
	Calls     []toolcall.Call `json:"tool_calls"`
	Reasoning string          `json:"reasoning_content"`
	Thoughts  string          `json:"reasoning"`
}

// inputError is a JSON error in a request.
type inputError struct{ err error }

func (e inputError) Error() string {
	return strings.TrimPrefix(strings.TrimPrefix(e.err.Error(), "jsontext: "), "json: ")
}

// Unwrap returns etrun.ErrInput and the cause.
func (e inputError) Unwrap() []error { return []error{etrun.ErrInput, e.err} }

// maxPenalty is the maximum of penalties.
const maxPenalty = 2

// options returns the options of a text, or an error for values that are not supported.
func (r *request) options(m *forms.Maker) (o text.Options, err error) {
	if err := r.check(); err != nil {
		return o, err
	}
	o = text.Options{MaxTokens: max(orZero(r.MaxTokens), 0), Stop: slices.Clone(r.Stop), Ends: r.StopIDs, IgnoreEOS: r.IgnoreEOS,
		Sampling: text.Sampling{
			Temperature: 1, TopP: orZero(r.TopP), TopK: max(orZero(r.TopK), 0), MinP: orZero(r.MinP), PresencePenalty: orZero(r.Presence),
			FrequencyPenalty: orZero(r.Frequency)}}
	if r.Temperature != nil {
		o.Temperature = *r.Temperature
	}
	o.Stop = slices.DeleteFunc(o.Stop, func(s string) bool { return s == "" })
	o.Seed = seed(r.Seed)
	if o.Form, r.formMember, err = r.form(m); err != nil {
		return o, err
	}
	if err := r.repetition(&o); err != nil {
		return o, err
	}
	return o, r.bias(&o)
}

// Check refuses values of the common members.
func (r *request) check() error {
	switch {
	case r.N != nil && (*r.N < 1 || *r.N > maxTexts):
		return fault.Refused("n", "%d, want 1 to %d", *r.N, maxTexts)
	case math.Abs(orZero(r.Presence)) > maxPenalty:
		return fault.Refused("presence_penalty", "%v, want a number from -%d to %d", *r.Presence, maxPenalty, maxPenalty)
	case math.Abs(orZero(r.Frequency)) > maxPenalty:
		return fault.Refused("frequency_penalty", "%v, want a number from -%d to %d", *r.Frequency, maxPenalty, maxPenalty)
	case r.MaxTokens != nil && *r.MaxTokens < -1:
		return fault.Refused("max_tokens", "%d, want 1 or more, or -1 for the rest of the context", *r.MaxTokens)
	case r.TopK != nil && *r.TopK < -1:
		return fault.Refused("top_k", "%d, want 1 or more, or 0 or -1 for all tokens", *r.TopK)
	case len(r.Stop) > maxStop:
		return fault.Refused("stop", "%d strings, at most %d are accepted", len(r.Stop), maxStop)
	case len(r.StopIDs) > maxStopIDs:
		return fault.Refused("stop_token_ids", "%d tokens, at most %d are accepted", len(r.StopIDs), maxStopIDs)
	case slices.ContainsFunc(r.StopIDs, func(id int) bool { return id < 0 }):
		return fault.Refused("stop_token_ids", "%d, want tokens", slices.Min(r.StopIDs))
	case r.Salt != nil && *r.Salt == "":
		return fault.Refused("cache_salt", "an empty string, want one that others do not know, or nothing")
	case r.Streaming != nil && !r.Stream:
		return fault.Refused("stream_options", "only with stream")
	}
	return nil
}

// repetition sets the penalty of repetitions, which has two names.
func (r *request) repetition(o *text.Options) error {
	p, last := r.Repeat, orZero(r.RepeatLast)
	switch {
	case p == nil:
		p = r.RepeatAlias
	case r.RepeatAlias != nil && *r.RepeatAlias != *p:
		return fault.Refused("repeat_penalty", "%v, and repetition_penalty %v: they mean the same", *r.RepeatAlias, *p)
	}
	switch {
	case last < -1:
		return fault.Refused("repeat_last_n", "%d, want 1 or more, 0 for none, or -1 for all", last)
	case r.RepeatLast != nil && last == 0:
		return nil // a penalty for none of the tokens
	}
	o.RepetitionPenalty, o.PenaltyWindow = orZero(p), max(last, 0)
	return nil
}

// bias sets the biases of tokens.
func (r *request) bias(o *text.Options) error {
	for name, x := range r.Bias {
		id, err := strconv.Atoi(name)
		if err != nil || !(x >= -100 && x <= 100) {
			return fault.Refused("logit_bias", "%s: %v, want a token and a number from -100 to 100", fault.Quote(name), x)
		}
		if o.Bias == nil {
			o.Bias = make(map[int]float32, len(r.Bias))
		}
		if _, twice := o.Bias[id]; twice {
			return fault.Refused("logit_bias", "the token %d twice", id)
		}
		o.Bias[id] = float32(x)
		if x == -100 { // excludes the token
			o.Bias[id] = float32(math.Inf(-1))
		}
	}
	return nil
}

func orZero[T any](p *T) (zero T) {
	if p == nil {
		return zero
	}
	return *p
}

// seed returns the seed of a request, or a random one.
func seed(given *int64) uint64 {
	if given == nil {
		return rand.Uint64()
	}
	return uint64(*given)
}

// formSource is a member that prescribes the form of a text.
type formSource struct {
	member  string
	compile func() (*text.Form, error)
	schema  json.RawMessage // nil for none
	strict  bool
}

// formSources are the members of the request that prescribe a form.
func (r *request) formSources(m *forms.Maker) (list []formSource, err error) {
	x := orZero(r.Structured)
	for _, c := range []struct {
		member string
		schema json.RawMessage
	}{{"guided_json", r.Guided}, {"json_schema", r.Schema}, {"structured_outputs.json", x.Schema}} {
		if string(toolcall.OrNull(c.schema)) != "null" {
			list = append(list, formSource{c.member, func() (*text.Form, error) { return m.Schema(c.schema) }, c.schema, false})
		}
	}
	for _, c := range []struct {
		member  string
		pattern *string
	}{{"guided_regex", r.GuidedRegex}, {"regex", r.Regex}, {"structured_outputs.regex", x.Regex}} {
		if c.pattern != nil {
			list = append(list, formSource{c.member, func() (*text.Form, error) {
				return m.Make(func(limit text.FormLimit) (*text.Form, error) { return text.PatternForm(*c.pattern, limit) })
			}, nil, false})
		}
	}
	for _, c := range []struct {
		member string
		texts  *[]string
	}{{"guided_choice", r.Choices}, {"structured_outputs.choice", x.Choice}} {
		if c.texts != nil {
			list = append(list, formSource{c.member, func() (*text.Form, error) {
				return m.Make(func(limit text.FormLimit) (*text.Form, error) { return text.ChoiceForm(*c.texts, limit) })
			}, nil, false})
		}
	}
	for _, c := range []struct {
		member  string
		grammar *string
	}{{"grammar", r.Grammar}, {"structured_outputs.grammar", x.Grammar}} {
		if orZero(c.grammar) != "" { // clients of llama.cpp send an empty one for none
			list = append(list, formSource{c.member, func() (*text.Form, error) { return m.Grammar(*c.grammar) }, nil, false})
		}
	}
	if orZero(x.Object) {
		list = append(list, formSource{"structured_outputs.json_object", m.Object, nil, false})
	}
	if f := r.Format; f != nil && f.Type != "text" {
		member, schema, err := f.schema()
		if err != nil {
			return nil, err
		}
		compile := m.Object
		if schema != nil {
			compile = func() (*text.Form, error) { return m.Schema(schema) }
		}
		list = append(list, formSource{member, compile, schema, f.Schema != nil && string(f.Schema.Strict) == "true"})
	}
	return list, nil
}

// Form returns the form that the request prescribes, nil for none, and the member that has it.
func (r *request) form(m *forms.Maker) (*text.Form, string, error) {
	list, err := r.formSources(m)
	if err != nil || len(list) == 0 {
		return nil, "", err
	}
	first := list[0]
	if len(list) > 1 {
		member, _, _ := strings.Cut(list[1].member, ".")
		return nil, "", fault.Refused(member, "together with %s: a text has one form", first.member)
	}
	if len(r.Stop) > 0 {
		return nil, "", fault.Refused("stop", "together with %s: the text would end within its form", first.member)
	}
	f, err := first.compile()
	if err != nil {
		return nil, "", fault.OfForm(first.member, err)
	}
	if list := f.NotEnforced(); len(list) > 0 {
		if first.strict {
			return nil, "", fault.Refused("response_format.json_schema.strict", "true, and %s of the schema cannot be enforced; want false, "+
				"with which the finished answer is checked", strings.Join(list, ", "))
		}
		r.answered = first.schema
	}
	return f, first.member, nil
}

// Schema returns the schema of an answer, nil for any object, and the member that has it.
func (f *answerFormat) schema() (member string, schema json.RawMessage, err error) {
	bare := len(f.Bare) > 0 && string(f.Bare) != "null"
	switch {
	case f.Type == "json_object" && f.Schema != nil:
		return "", nil, fault.Refused("response_format.json_schema", "with the type json_object, want json_schema")
	case f.Type == "json_object" && bare:
		return "response_format.schema", f.Bare, nil
	case f.Type == "json_object":
		return "response_format", nil, nil
	case f.Type == "json_schema" && bare:
		return "", nil, fault.Refused("response_format.schema", "want response_format.json_schema.schema")
	case f.Type == "json_schema" && (f.Schema == nil || len(f.Schema.Schema) == 0):
		return "", nil, fault.Missing("response_format.json_schema.schema")
	case f.Type == "json_schema":
		return "response_format.json_schema.schema", f.Schema.Schema, nil
	}
	return "", nil, fault.Refused("response_format.type", "%s, want text, json_object or json_schema", fault.Quote(f.Type))
}

// answerSchema returns the schema of replies beside calls of tools.
func (r *request) answerSchema() (json.RawMessage, error) {
	if r.Format == nil || r.Format.Type == "text" {
		return nil, fault.Refused(r.formMember, "together with tools; want response_format, or tool_choice none")
	}
	_, schema, err := r.Format.schema()
	if schema == nil {
		schema = json.RawMessage(toolcall.AnyObject)
	}
	return schema, err
}
