package ollama

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/etrun-go/etrun/serve/openai/internal/answer"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
)

// APIVersion is the version of Ollama whose API this one is like, which clients look at.
const APIVersion = "0.9.0"

// Error is the answer to a request that failed.
type Error struct {
	Error string `json:"error"`
}

// figures are the counts and times, in nanoseconds, of a text.
type figures struct {
	Total      int64 `json:"total_duration"`
	Load       int64 `json:"load_duration"` // until its computation began
	Prompt     int   `json:"prompt_eval_count"`
	PromptTime int64 `json:"prompt_eval_duration"`
	Eval       int   `json:"eval_count"`
	EvalTime   int64 `json:"eval_duration"`
}

// head is what all answers with texts have in common.
type head struct {
	Model   string `json:"model"`
	Created string `json:"created_at"`
}

// end is what the last part of a text has.
type end struct {
	Done   bool   `json:"done"`
	Reason string `json:"done_reason,omitzero"`
	*figures
}

// reply is the message of a chat.
type reply struct {
	Role     string `json:"role"`
	Content  any    `json:"content"`
	Thinking any    `json:"thinking,omitzero"`
	Calls    []call `json:"tool_calls,omitzero"`
}

// call is a call of a tool.
type call struct {
	ID       string `json:"id"`
	Function struct {
		Index     int            `json:"index"`
		Name      string         `json:"name"`
		Arguments jsontext.Value `json:"arguments"`
	} `json:"function"`
}

var (
	chatStyle = answer.Style{Lines: true, Failed: failed, Object: func(p *answer.Part) any {
		r := reply{Role: "assistant", Content: p.Text, Thinking: p.Thought}
		for i, c := range p.Calls {
			x := call{ID: c.ID}
			x.Function.Index, x.Function.Name, x.Function.Arguments = i, c.Name, c.Arguments()
			r.Calls = append(r.Calls, x)
		}
		return &struct {
			head
			Message reply `json:"message"`
			end
		}{headOf(p), r, endOf(p)}
	}}
	generateStyle = answer.Style{Lines: true, Failed: failed, Object: func(p *answer.Part) any {
		return &struct {
			head
			Response any `json:"response"`
			Thinking any `json:"thinking,omitzero"`
			end
		}{headOf(p), p.Text, p.Thought, endOf(p)}
	}}
)

// Plain is the style of answers without texts.
var Plain = answer.Style{Failed: failed}

func failed(d *fault.Detail) any { return Error{d.Message} }

func headOf(p *answer.Part) head { return head{p.Model, time.Now().UTC().Format(time.RFC3339Nano)} }

func endOf(p *answer.Part) end {
	if !p.Done {
		return end{}
	}
	e := end{Done: true, Reason: finishes[p.Finish]}
	if p.Finish != "" {
		s := &p.Stats
		e.figures = &figures{int64(p.Took), int64(max(p.Took-s.Total, 0)), s.Prompt, int64(s.Prefill), s.Generated, int64(max(s.Total-s.Prefill, 1))}
	}
	return e
}

// Details describe a model.
type Details struct {
	Parent       string   `json:"parent_model"`
	Format       string   `json:"format"`
	Family       string   `json:"family"`
	Families     []string `json:"families"`
	Parameters   string   `json:"parameter_size"`
	Quantization string   `json:"quantization_level"`
}

// details are those of all models: no other is known.
var details = Details{Format: "pte", Family: family, Families: []string{family}}

// family is that of all models.
const family = "executorch"

// Listed is a model in the lists of those that there are, and of those that are loaded.
type Listed struct {
	Name     string    `json:"name"`
	Model    string    `json:"model"`
	Modified time.Time `json:"modified_at"`
	Size     int64     `json:"size"`
	Digest   string    `json:"digest"`
	Details  Details   `json:"details"`
	Expires  time.Time `json:"expires_at,omitzero"`
	VRAM     *int64    `json:"size_vram,omitzero"`
	Context  int       `json:"context_length,omitzero"`
}

// List is a list of models.
type List struct {
	Models []Listed `json:"models"`
}

// never is when models that are loaded expire.
var never = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// Add adds a model; loaded for the list of those that are loaded, with the positions of its context.
func (l *List) Add(name string, since time.Time, loaded bool, context int) {
	m := Listed{Name: name, Model: name, Modified: since, Details: details}
	if loaded {
		m.Expires, m.VRAM, m.Context = never, new(int64), context
	}
	l.Models = append(l.Models, m)
}

// Show is the body of /api/show.
type Show struct {
	Model string `json:"model"`
	Name  string `json:"name"`
}

// Shown is the answer to it.
type Shown struct {
	License      string         `json:"license"`
	Modelfile    string         `json:"modelfile"`
	Parameters   string         `json:"parameters"`
	Template     string         `json:"template"`
	Details      Details        `json:"details"`
	Info         map[string]any `json:"model_info"`
	Capabilities []string       `json:"capabilities"`
	Modified     time.Time      `json:"modified_at"`
}

// NewShown returns the description of a model with the positions of its context, and the dimensions of its vectors, 0 for none.
func NewShown(template string, since time.Time, context, dimensions int, capabilities []string) *Shown {
	s := &Shown{Template: template, Details: details, Capabilities: capabilities, Modified: since,
		Info: map[string]any{"general.architecture": family, family + ".context_length": context}}
	if dimensions > 0 {
		s.Info[family+".embedding_length"] = dimensions
	}
	return s
}

// Vectors is the answer to /api/embed.
type Vectors struct {
	Model   string       `json:"model"`
	Vectors *answer.List `json:"embeddings"`
	Total   int64        `json:"total_duration"`
	Load    int64        `json:"load_duration"`
	Prompt  int          `json:"prompt_eval_count"`
}
