package answer

import (
	"cmp"
	"encoding/json"

	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/toolcall"
	"github.com/etrun-go/etrun/text"
)

// Repeated are the members of a request that a response repeats.
type Repeated struct {
	Background   bool              `json:"background"`
	Instructions *string           `json:"instructions"`
	MaxTokens    *int              `json:"max_output_tokens"`
	Metadata     map[string]string `json:"metadata"`
	Parallel     bool              `json:"parallel_tool_calls"`
	Previous     *string           `json:"previous_response_id"`
	Reasoning    Reasoning         `json:"reasoning"`
	Store        bool              `json:"store"`
	Temperature  float64           `json:"temperature"`
	Text         Text              `json:"text"`
	Choice       json.RawMessage   `json:"tool_choice"`
	Tools        any               `json:"tools"`
	TopP         float64           `json:"top_p"`
	Truncation   string            `json:"truncation"`
}

// Reasoning is what a request says of thoughts.
type Reasoning struct {
	Effort  *string `json:"effort"`
	Summary *string `json:"summary"`
}

// Text is what a request says of texts.
type Text struct {
	Format any `json:"format"`
}

// itemKind describes the items of a type.
type itemKind struct {
	name   string
	prefix string // of ids
	part   string // type of the part that has the text, empty for none
	events string // with its text
}

var (
	messageItem   = &itemKind{"message", "msg", "output_text", "response.output_text"}
	reasoningItem = &itemKind{"reasoning", "rs", "reasoning_text", "response.reasoning_text"}
	callItem      = &itemKind{"function_call", "fc", "", "response.function_call_arguments"}
	customItem    = &itemKind{"custom_tool_call", "ctc", "", "response.custom_tool_call_input"}
)

// outputItem is an item of the output.
type outputItem struct {
	ID        string   `json:"id"`
	Type      string   `json:"type"`
	Status    string   `json:"status"`
	CallID    string   `json:"call_id,omitzero"`
	Name      string   `json:"name,omitzero"`
	Arguments *str     `json:"arguments,omitzero"`
	Input     *str     `json:"input,omitzero"`
	Summary   []string `json:"summary,omitzero"` // always empty
	Role      string   `json:"role,omitzero"`
	Content   []*part  `json:"content,omitzero"`

	kind *itemKind
	text *str
}

// part is the text of an item.
type part struct {
	Type        string   `json:"type"`
	Annotations []string `json:"annotations,omitzero"` // always empty
	LogProbs    []string `json:"logprobs,omitzero"`    // always empty
	Text        *str     `json:"text"`
}

// responseObject is a response.
type responseObject struct {
	ID         string        `json:"id"`
	Object     string        `json:"object"`
	Created    int64         `json:"created_at"`
	Status     string        `json:"status"`
	Error      *cause        `json:"error"`
	Incomplete *reason       `json:"incomplete_details"`
	Model      string        `json:"model"`
	Output     []*outputItem `json:"output"`
	Usage      *spent        `json:"usage"` // nil while the text is generated
	Repeated
}

// cause is why a response failed.
type cause struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// reason is why a response is not complete.
type reason struct {
	Reason string `json:"reason"`
}

// spent counts tokens.
type spent struct {
	Input        int `json:"input_tokens"`
	InputDetails struct {
		Cached int `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	Output        int `json:"output_tokens"`
	OutputDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total int `json:"total_tokens"`
}

// responseEvent is an event of a stream.
type responseEvent struct {
	Type      string          `json:"type"`
	Number    int             `json:"sequence_number"`
	ItemID    string          `json:"item_id,omitzero"`
	Output    *int            `json:"output_index,omitzero"`
	Content   *int            `json:"content_index,omitzero"`
	Delta     string          `json:"delta,omitzero"`
	Text      *str            `json:"text,omitzero"`
	Arguments *str            `json:"arguments,omitzero"`
	Input     *str            `json:"input,omitzero"`
	LogProbs  []string        `json:"logprobs,omitzero"` // of text: always empty
	Name      string          `json:"name,omitzero"`
	Part      *part           `json:"part,omitzero"`
	Item      *outputItem     `json:"item,omitzero"`
	Response  *responseObject `json:"response,omitzero"`
}

// response is the form of responses. It keeps all of the output, which the last event repeats.
type response struct {
	*Sink
	answer   responseObject
	status   string      // of the text that has ended
	last     *outputItem // nil if it has ended
	thoughts int         // tokens of the parts of thoughts, encoded again
	events   int
}

func newResponse(a *Sink, model string) *response {
	o := responseObject{ID: newID("resp"), Object: "response", Created: now(), Model: model, Output: []*outputItem{}, Repeated: *a.Repeated}
	return &response{Sink: a, answer: o}
}

// next implements form.
func (r *response) next([]int, string) error { return nil }

// begin implements form.
func (r *response) begin() error {
	return cmp.Or(r.sendResponse("response.created", "in_progress", nil), r.sendResponse("response.in_progress", "in_progress", nil))
}

// add implements form.
func (r *response) add(x *toolcall.Piece, _ []tokenItem) error {
	kind, s := messageItem, x.Text
	switch {
	case x.Call != nil && (x.Call.Custom.Name != "" || r.last != nil && r.last.kind == customItem && x.Call.ID == ""):
		kind, s = customItem, x.Call.Custom.Input
	case x.Call != nil:
		kind, s = callItem, x.Call.Function.Arguments
	case x.Thought != "":
		kind, s = reasoningItem, x.Thought
		ids, _ := r.tokenizer.Encode(s, false) // an error counts none
		r.thoughts += len(ids)
	}
	if r.last == nil || r.last.kind != kind || x.Call != nil && x.Call.ID != "" {
		if err := cmp.Or(r.endItem("completed"), r.beginItem(kind, x.Call)); err != nil {
			return err
		}
	}
	if s == "" {
		return nil
	}
	if err := cmp.Or(r.last.text.add(r.memory, s), r.checkSize()); err != nil {
		return err
	}
	return r.sendOf(kind.events+".delta", responseEvent{Delta: s})
}

// itemBytes is the memory of an item besides its text.
const itemBytes = 512

// beginItem begins an item of the output.
func (r *response) beginItem(kind *itemKind, call *toolcall.Call) error {
	x := &outputItem{ID: newID(kind.prefix), Type: kind.name, Status: "in_progress", kind: kind, text: &str{}}
	switch kind {
	case callItem:
		x.CallID, x.Name, x.Arguments = call.ID, call.Function.Name, x.text
	case customItem:
		x.CallID, x.Name, x.Input = call.ID, call.Custom.Name, x.text
	case reasoningItem:
		x.Summary, x.Content = []string{}, []*part{}
	default:
		x.Role, x.Content = "assistant", []*part{}
	}
	if err := r.memory.Grow(itemBytes + int64(len(x.CallID)+len(x.Name))); err != nil {
		return err
	}
	r.answer.Output, r.last = append(r.answer.Output, x), x
	err := r.send("response.output_item.added", responseEvent{Output: r.index(), Item: x})
	if kind.part == "" || err != nil {
		return err
	}
	p := &part{Type: kind.part, Text: x.text}
	if kind == messageItem {
		p.Annotations, p.LogProbs = []string{}, []string{}
	}
	x.Content = append(x.Content, p)
	return r.sendOf("response.content_part.added", responseEvent{Part: p})
}

// endItem ends the last item.
func (r *response) endItem(status string) error {
	x := r.last
	if x == nil {
		return nil
	}
	done := responseEvent{Text: x.text}
	switch x.kind {
	case callItem:
		done = responseEvent{Arguments: x.text, Name: x.Name}
	case customItem:
		done = responseEvent{Input: x.text}
	}
	x.Status = status
	err := r.sendOf(x.kind.events+".done", done)
	if err == nil && x.kind.part != "" {
		err = r.sendOf("response.content_part.done", responseEvent{Part: x.Content[0]})
	}
	r.last = nil
	return cmp.Or(err, r.send("response.output_item.done", responseEvent{Output: r.index(), Item: x}))
}

// finish implements form.
func (r *response) finish(why text.Finish) error {
	r.status = "incomplete"
	if why == text.FinishStop {
		r.status = "completed"
	}
	if len(r.answer.Output) == 0 { // an empty text is a message
		if err := r.beginItem(messageItem, nil); err != nil {
			return err
		}
	}
	return r.endItem(r.status)
}

// index is that of the last item.
func (r *response) index() *int {
	i := len(r.answer.Output) - 1
	return &i
}

// sendOf sends an event of the last item.
func (r *response) sendOf(name string, e responseEvent) error {
	e.ItemID, e.Output = r.last.ID, r.index()
	if r.last.kind.part != "" {
		e.Content = new(int)
	}
	if r.last.kind == messageItem && e.Part == nil {
		e.LogProbs = []string{}
	}
	return r.send(name, e)
}

// sendResponse sends an event with the response.
func (r *response) sendResponse(name, status string, failed *fault.Detail) error {
	return r.send(name, responseEvent{Response: r.as(status, failed)})
}

// send sends an event of a stream.
func (r *response) send(name string, e responseEvent) error {
	if !r.Stream {
		return nil
	}
	e.Type, e.Number = name, r.events
	r.events++
	return r.event(name, &e)
}

// as returns the response with a status.
func (r *response) as(status string, failed *fault.Detail) *responseObject {
	o := &r.answer
	o.Status = status
	if failed != nil {
		o.Error = &cause{fault.TypeServer, failed.Message}
		if failed.Code != nil {
			o.Error.Code = *failed.Code
		}
	}
	if status == "incomplete" {
		o.Incomplete = &reason{"max_output_tokens"}
	}
	if r.last != nil { // it has not ended
		r.last.Status = "incomplete"
	}
	if status != "in_progress" {
		u := &r.usage
		o.Usage = &spent{Input: u.Prompt, Output: u.Completion, Total: u.Total}
		o.Usage.InputDetails.Cached, o.Usage.OutputDetails.Reasoning = u.Details.Cached, min(r.thoughts, u.Completion)
	}
	return o
}

// object implements form.
func (r *response) object(failed *fault.Detail) any {
	if failed == nil {
		return r.as(r.status, nil)
	}
	if r.usage.Completion == 0 {
		return nil
	}
	return &struct {
		Error    *fault.Detail   `json:"error"`
		Response *responseObject `json:"response"`
	}{failed, r.as("failed", failed)}
}

// end implements form.
func (r *response) end(failed *fault.Detail) error {
	status := r.status
	if failed != nil {
		status = "failed"
	}
	return r.sendResponse("response."+status, status, failed)
}
