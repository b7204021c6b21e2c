package ollama

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/serve/openai/internal/answer"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/forms"
	"github.com/etrun-go/etrun/serve/openai/internal/requests"
	"github.com/etrun-go/etrun/serve/openai/internal/toolcall"
	"github.com/etrun-go/etrun/text"
)

// common are the members of chats and of generated texts.
type common struct {
	Model   string          `json:"model"`
	Stream  *bool           `json:"stream"`
	Format  json.RawMessage `json:"format"`
	Think   json.RawMessage `json:"think"`
	Options struct {
		Seed        *int64   `json:"seed"`
		Predict     *int     `json:"num_predict"`
		Temperature *float64 `json:"temperature"`
		TopK        *int     `json:"top_k"`
		TopP        *float64 `json:"top_p"`
		MinP        *float64 `json:"min_p"`
		Repeat      *float64 `json:"repeat_penalty"`
		RepeatLast  *int     `json:"repeat_last_n"`
		Presence    *float64 `json:"presence_penalty"`
		Frequency   *float64 `json:"frequency_penalty"`
		Stop        []string `json:"stop"`
	} `json:"options"`
}

// Chat is the body of /api/chat.
type Chat struct {
	common
	Messages []message       `json:"messages"`
	Tools    json.RawMessage `json:"tools"`
}

// message is a message of a chat.
type message struct {
	Role     string           `json:"role"`
	Content  requests.Content `json:"content"`
	Images   []string         `json:"images"` // files in base64
	Thinking string           `json:"thinking"`
	Tool     string           `json:"tool_name"`
	CallID   string           `json:"tool_call_id"`
	Calls    []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// Generate is the body of /api/generate.
type Generate struct {
	common
	Prompt string   `json:"prompt"`
	System string   `json:"system"`
	Images []string `json:"images"`
	Raw    bool     `json:"raw"`
}

// Name returns the name of a model without the tag that all have.
func Name(s string) string { return strings.TrimSuffix(s, ":latest") }

// ModelName implements requests.Body.
func (c *common) ModelName() string { return Name(c.Model) }

// defaults are the values of options that are not given.
var defaults = struct {
	temperature, topP float64
	topK, repeatLast  int
}{0.8, 0.9, 40, 64}

// set sets the members that chats and completions have in common.
func (c *common) set(r *requests.Shared) error {
	o := &c.Options
	r.Stream = c.Stream == nil || *c.Stream
	r.Temperature, r.TopP, r.TopK, r.MinP = orDefault(o.Temperature, defaults.temperature), orDefault(o.TopP, defaults.topP),
		orDefault(o.TopK, defaults.topK), o.MinP
	r.Presence, r.Frequency, r.Stop = o.Presence, o.Frequency, o.Stop
	if r.Repeat = o.Repeat; o.Repeat != nil {
		r.RepeatLast = orDefault(o.RepeatLast, defaults.repeatLast)
	}
	if o.Seed != nil && *o.Seed >= 0 {
		r.Seed = o.Seed
	}
	rest := -1
	switch {
	case o.Predict == nil || *o.Predict == -1 || *o.Predict == -2: // to the end of the context
		r.MaxTokens = &rest
	case *o.Predict < 1:
		return fault.Refused("options.num_predict", "%d, want 1 or more, or -1 for the rest of the context", *o.Predict)
	default:
		r.MaxTokens = o.Predict
	}
	return c.setFormat(r)
}

func orDefault[T any](p *T, value T) *T {
	if p == nil {
		return &value
	}
	return p
}

// setFormat sets the form of the text: JSON, or that of a schema.
func (c *common) setFormat(r *requests.Shared) error {
	switch f := string(toolcall.OrNull(c.Format)); {
	case f == "null" || f == `""`:
	case f == `"json"`:
		r.Format = &requests.AnswerFormat{Type: "json_object"}
	case f[0] == '{':
		r.Format = &requests.AnswerFormat{Type: "json_object", Bare: c.Format}
	default:
		return fault.Refused("format", "%.80s, want \"json\" or a JSON schema", f)
	}
	return nil
}

// job makes the job of a chat, which fill completes.
func (c *common) job(m *forms.Maker, fill func(chat *requests.Chat) error) (*requests.Job, error) {
	with := func(values map[string]json.RawMessage, effort *string) (*requests.Job, error) {
		chat := &requests.Chat{Values: values, Effort: effort}
		if err := c.set(chat.Shared()); err != nil {
			return nil, err
		}
		if err := fill(chat); err != nil {
			return nil, err
		}
		return chat.Job(m)
	}
	think := func(on string) map[string]json.RawMessage {
		return map[string]json.RawMessage{"enable_thinking": json.RawMessage(on)}
	}
	var level string
	switch t := string(toolcall.OrNull(c.Think)); {
	case t == "null":
		return with(nil, nil)
	case t == "true":
		return with(think(t), nil)
	case t == "false": // which models without thoughts do anyway
		return either(func() (*requests.Job, error) { return with(think(t), nil) }, func() (*requests.Job, error) { return with(nil, nil) },
			func(m *requests.Model) bool { return !hasThoughts(m) })
	case json.Unmarshal(c.Think, &level) == nil && slices.Contains([]string{"low", "medium", "high"}, level):
		return either(func() (*requests.Job, error) { return with(nil, &level) }, func() (*requests.Job, error) { return with(think("true"), nil) },
			func(m *requests.Model) bool { return m.Template != nil && !m.Template.Mentions("reasoning_effort") })
	default:
		return nil, fault.Refused("think", "%.80s, want true, false, low, medium or high", t)
	}
}

// hasThoughts reports whether the thoughts of a model can be turned on and off.
func hasThoughts(m *requests.Model) bool {
	if m.Template == nil {
		return true // the error is that of the template
	}
	_, err := m.Template.Thinking(false)
	return err == nil
}

// either returns a job, or another one for some models.
func either(first, other func() (*requests.Job, error), when func(m *requests.Model) bool) (*requests.Job, error) {
	j, err := first()
	if err != nil {
		return nil, err
	}
	o, err := other()
	if err == nil {
		j.Instead(o, when)
	}
	return j, err
}

// finished returns a job whose errors and answer have the form of this API.
func (c *common) finished(j *requests.Job, err error, member string, style *answer.Style) (*requests.Job, error) {
	if err != nil {
		return nil, renamed(err)
	}
	j.Rename(member, renamed)
	j.Wanted.Style, j.Wanted.Limit = style, "options.num_predict"
	return j, nil
}

// load is the job of a request without a prompt, which loads the model.
func (c *common) load(style *answer.Style) *requests.Job {
	return &requests.Job{Named: renamed, Wanted: answer.Wanted{Style: style, Stream: c.Stream == nil || *c.Stream}}
}

// Style implements openai.styled.
func (r *Chat) Style() *answer.Style { return &chatStyle }

// Job implements requests.Body.
func (r *Chat) Job(m *forms.Maker) (*requests.Job, error) {
	if len(r.Messages) == 0 {
		return r.load(&chatStyle), nil
	}
	j, err := r.job(m, func(chat *requests.Chat) (err error) {
		chat.Tools = r.Tools
		chat.Messages, err = messagesOf(r.Messages)
		return err
	})
	return r.finished(j, err, "messages", &chatStyle)
}

// Style implements openai.styled.
func (r *Generate) Style() *answer.Style { return &generateStyle }

// Job implements requests.Body. A prompt is a message of the user, unless it is raw or the model has no template.
func (r *Generate) Job(m *forms.Maker) (*requests.Job, error) {
	switch {
	case r.Prompt == "" && r.System == "" && len(r.Images) == 0:
		return r.load(&generateStyle), nil
	case r.Raw && len(r.Images) > 0:
		return nil, fault.Refused("raw", "together with images")
	case r.Raw && r.System != "":
		return nil, fault.Refused("raw", "together with system")
	}
	plain := func() (*requests.Job, error) {
		c := &requests.Completion{Prompt: []requests.Prompt{{Text: &r.Prompt}}}
		if err := r.set(c.Shared()); err != nil {
			return nil, err
		}
		return c.Job(m)
	}
	chat := func() (*requests.Job, error) {
		return r.job(m, func(chat *requests.Chat) error {
			for _, x := range []struct{ role, text string }{{"system", r.System}, {"user", r.Prompt}} {
				if x.text != "" {
					chat.Messages = append(chat.Messages, requests.Message{Role: x.role, Content: &requests.Content{Text: x.text}})
				}
			}
			if len(r.Images) == 0 {
				return nil
			}
			if r.Prompt == "" {
				chat.Messages = append(chat.Messages, requests.Message{Role: "user", Content: &requests.Content{}})
			}
			return chat.Messages[len(chat.Messages)-1].Content.AddPictures("images", r.Images)
		})
	}
	var j *requests.Job
	var err error
	switch {
	case r.Raw:
		j, err = plain()
	case r.System != "" || len(r.Images) > 0:
		j, err = chat()
	default:
		j, err = either(chat, plain, func(m *requests.Model) bool { return m.Template == nil })
	}
	return r.finished(j, err, "prompt", &generateStyle)
}

// messagesOf returns the messages of a chat. Results of tools belong to the calls before them in their order, or by their names.
func messagesOf(list []message) ([]requests.Message, error) {
	var all []requests.Message
	var open []toolcall.Call // without a result
	for i, m := range list {
		out := requests.Message{Role: m.Role, Content: &list[i].Content, Reasoning: m.Thinking}
		if err := out.Content.AddPictures(fmt.Sprintf("messages[%d].images", i), m.Images); err != nil {
			return nil, err
		}
		if len(m.Calls) > 0 {
			open = nil
		}
		for k, c := range m.Calls {
			call, err := callOf(c.ID, c.Function.Name, c.Function.Arguments, i, k)
			if err != nil {
				return nil, err
			}
			out.Calls, open = append(out.Calls, call), append(open, call)
		}
		if m.Role == "tool" {
			out.Name = m.Tool
			out.CallID, open = answered(open, m.Tool, m.CallID)
		}
		all = append(all, out)
	}
	return all, nil
}

// callOf returns a past call. One without an id has that of its place, of nine letters and digits, which all templates accept.
func callOf(id, name string, arguments json.RawMessage, at, k int) (c toolcall.Call, err error) {
	if c.ID = id; id == "" {
		c.ID = fmt.Sprintf("%06d%03d", at, k)
	}
	c.Type, c.Function.Name = "function", name
	switch a := toolcall.OrNull(arguments); a[0] {
	case '{':
		c.Function.Arguments = string(a)
	case 'n':
	case '"': // what a text ended within
		err = json.Unmarshal(a, &c.Function.Arguments)
	default:
		err = fault.Refused(fmt.Sprintf("messages[%d].tool_calls[%d].function.arguments", at, k), "%.80s, want an object", a)
	}
	return c, err
}

// answered returns the id of the call that a result belongs to, and the calls without one.
func answered(open []toolcall.Call, name, id string) (string, []toolcall.Call) {
	at := slices.IndexFunc(open, func(c toolcall.Call) bool {
		return id != "" && c.ID == id || id == "" && (name == "" || c.Function.Name == name)
	})
	if at < 0 {
		if id == "" {
			id = "000000000"
		}
		return id, open
	}
	return open[at].ID, slices.Delete(slices.Clone(open), at, at+1)
}

// renames are the members of other requests that have other names here. The first that fits applies.
var renames = [][2]string{{"response_format.schema", "format"}, {"response_format", "format"}, {"max_tokens", "options.num_predict"},
	{"repetition_penalty", "options.repeat_penalty"}, {"chat_template_kwargs.enable_thinking", "think"}, {"reasoning_effort", "think"}}

// renamed names the members of an error as requests have them here.
func renamed(err error) error {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	for _, names := range renames {
		if e.Rename(names[0], names[1]) {
			return e
		}
	}
	if _, ok := options[e.Param]; ok {
		e.Rename(e.Param, "options."+e.Param)
	}
	if before, ok := strings.CutSuffix(e.Param, ".reasoning_content"); ok {
		e.Rename(e.Param, before+".thinking")
	}
	return e
}

// Embed is the body of /api/embed and /api/embeddings.
type Embed struct {
	requests.Embedding
	Prompt *string `json:"prompt"`
	Long   *bool   `json:"truncate"`
}

// Check makes the request for vectors that it is.
func (r *Embed) Check() error {
	r.Model = Name(r.Model)
	switch {
	case r.Prompt != nil && r.Input != nil:
		return fault.Refused("prompt", "together with input, want one of them")
	case r.Prompt != nil:
		r.Input = []requests.Prompt{{Text: r.Prompt}}
	}
	if all := -1; r.Long == nil || *r.Long {
		r.Truncate = &all
	}
	return r.Embedding.Check()
}

// finishes are the reasons of ends.
var finishes = map[text.Finish]string{text.FinishStop: "stop", text.FinishLength: "length", text.FinishContext: "length", "": "load"}
