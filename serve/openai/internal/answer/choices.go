package answer

import (
	"cmp"

	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/toolcall"
	"github.com/etrun-go/etrun/text"
)

// completion is the object of a completion or a chat, whole or as an event of a stream.
type completion struct {
	Error   *fault.Detail `json:"error,omitzero"`
	ID      string        `json:"id"`
	Object  string        `json:"object"`
	Created int64         `json:"created"`
	Model   string        `json:"model"`
	Choices []*choice     `json:"choices"`
	Usage   any           `json:"usage,omitzero"` // a *usage
}

// choice is one of the texts of an answer, or a part of it.
type choice struct {
	Index    int           `json:"index"`
	Text     any           `json:"text,omitzero"`    // of a completion: a *str, or a string
	Message  *message      `json:"message,omitzero"` // of a chat
	Delta    *delta        `json:"delta,omitzero"`   // of an event of it
	LogProbs probabilities `json:"logprobs"`
	Finish   *string       `json:"finish_reason"`

	echo    string  // precedes the generated text
	offsets offsets // of tokens in the text
	called  bool
}

// message is a reply.
type message struct {
	Role    string  `json:"role"`
	Content *str    `json:"content"`
	Thought *str    `json:"reasoning_content,omitzero"`
	Calls   []*call `json:"tool_calls,omitzero"`
	Refusal any     `json:"refusal"` // always nil
}

// call is a call of a tool.
type call struct {
	ID       string        `json:"id"`
	Type     string        `json:"type"`
	Function *functionCall `json:"function,omitzero"`
	Custom   *customCall   `json:"custom,omitzero"`
	text     str           // of one of them
}

type functionCall struct {
	Name      string `json:"name"`
	Arguments *str   `json:"arguments"`
}

type customCall struct {
	Name  string `json:"name"`
	Input *str   `json:"input"`
}

// delta is a part of a reply.
type delta struct {
	Role    string           `json:"role,omitzero"`
	Content *string          `json:"content,omitzero"`
	Thought *string          `json:"reasoning_content,omitzero"`
	Calls   []*toolcall.Call `json:"tool_calls,omitzero"`
}

// Memory of objects besides the texts in them.
const (
	choiceBytes = 200
	callBytes   = 200
)

// choices is the form of completions and of chats.
type choices struct {
	*Sink
	answer completion
	chunk  string // the object of events
	last   *choice
}

func newChoices(a *Sink, model string) *choices {
	c := &choices{a, completion{Created: now(), Model: model, Choices: []*choice{}}, "chat.completion.chunk", nil}
	if c.answer.ID, c.answer.Object = newID("chatcmpl"), "chat.completion"; a.Kind == Completion {
		c.answer.ID, c.answer.Object, c.chunk = newID("cmpl"), "text_completion", "text_completion"
	}
	return c
}

// next implements form.
func (c *choices) next(prompt []int, echo string) error {
	n := &choice{echo: echo, offsets: offsets{tokenizer: c.tokenizer}}
	if c.last != nil {
		n.Index = c.last.Index + 1
	}
	if c.last = n; !c.Score && c.LogProbs {
		n.offsets.skip(prompt)
	}
	if c.Stream {
		return nil
	}
	if err := c.grow(choiceBytes); err != nil {
		return err
	}
	c.answer.Choices = append(c.answer.Choices, n)
	n.LogProbs = c.probabilities()
	content := &str{}
	if c.Kind == Chat {
		n.Message = &message{Role: "assistant", Content: content}
	} else {
		n.Text = content
	}
	return cmp.Or(content.add(c.memory, echo), c.checkSize())
}

// probabilities returns a list without tokens, nil if they were not asked for.
func (c *choices) probabilities() probabilities {
	switch {
	case !c.Sink.LogProbs:
		return nil
	case c.Kind == Chat:
		return &chatLP{}
	}
	return &completionLP{}
}

// begin implements form.
func (c *choices) begin() error {
	return c.send(&choice{Text: c.last.echo, Delta: &delta{Role: "assistant", Content: &c.last.echo}})
}

// add implements form.
func (c *choices) add(x *toolcall.Piece, tokens []tokenItem) error {
	n, hold := c.last, c.memory
	if c.Stream {
		n, hold = &choice{Text: x.Text, Delta: &delta{}}, nil
		if tokens != nil {
			n.LogProbs = c.probabilities()
		}
	}
	for i := range tokens {
		if err := n.LogProbs.add(hold, &tokens[i], c.last); err != nil {
			return err
		}
	}
	c.last.called = c.last.called || x.Call != nil
	if !c.Stream {
		return cmp.Or(n.collect(hold, x), c.checkSize())
	}
	switch d := n.Delta; {
	case x.Call != nil:
		d.Calls = []*toolcall.Call{x.Call}
	case x.Thought != "":
		d.Thought = &x.Thought
	default:
		d.Content = &x.Text
	}
	return c.send(n)
}

// collect adds a part to a choice of an answer that is no stream.
func (n *choice) collect(hold *serve.Reservation, x *toolcall.Piece) error {
	m := n.Message
	switch {
	case m == nil:
		return n.Text.(*str).add(hold, x.Text)
	case x.Thought != "":
		if m.Thought == nil {
			m.Thought = &str{}
		}
		return m.Thought.add(hold, x.Thought)
	case x.Call == nil:
		return m.Content.add(hold, x.Text)
	}
	if x.Call.ID != "" {
		if err := hold.Grow(callBytes); err != nil {
			return err
		}
		one := &call{ID: x.Call.ID, Type: x.Call.Type}
		if x.Call.Custom.Name != "" {
			one.Custom = &customCall{x.Call.Custom.Name, &one.text}
		} else {
			one.Function = &functionCall{x.Call.Function.Name, &one.text}
		}
		m.Calls = append(m.Calls, one)
	}
	return m.Calls[len(m.Calls)-1].text.add(hold, x.Call.Function.Arguments+x.Call.Custom.Input) // one of them
}

// finishes are the reasons of the protocol.
var finishes = map[text.Finish]string{text.FinishStop: "stop", text.FinishLength: "length", text.FinishContext: "length"}

// finish implements form.
func (c *choices) finish(why text.Finish) error {
	reason := finishes[why]
	if c.last.called && why == text.FinishStop {
		reason = "tool_calls"
	}
	if c.Stream {
		return c.send(&choice{Text: "", Delta: &delta{}, Finish: &reason})
	}
	c.last.Finish = &reason
	return nil
}

// send sends a part of the last choice.
func (c *choices) send(part *choice) error {
	part.Index = c.last.Index
	if c.Kind == Chat {
		part.Text = nil
	} else {
		part.Delta = nil
	}
	return c.sendChunk([]*choice{part}, nil)
}

// sendChunk sends a chunk. If the stream ends with the usage, the other chunks have none by name.
func (c *choices) sendChunk(list []*choice, u *usage) error {
	chunk := c.answer
	chunk.Object, chunk.Choices = c.chunk, list
	if c.Usage {
		chunk.Usage = u
	}
	return c.event("", &chunk)
}

// object implements form.
func (c *choices) object(failed *fault.Detail) any {
	o := &c.answer
	if n := len(o.Choices); c.open && n > 0 && c.usage.Completion == 0 {
		o.Choices = o.Choices[:n-1]
	}
	if failed != nil && len(o.Choices) == 0 {
		return nil
	}
	for _, n := range o.Choices {
		if m := n.Message; m != nil && len(m.Calls) > 0 && len(m.Content.b) == 0 {
			m.Content = nil
		}
	}
	o.Error, o.Usage = failed, &c.usage
	return o
}

// end implements form.
func (c *choices) end(failed *fault.Detail) error {
	if failed != nil {
		return c.event("", fault.Body{Error: *failed})
	}
	if c.Usage {
		if err := c.sendChunk([]*choice{}, &c.usage); err != nil {
			return err
		}
	}
	return c.write("data: [DONE]\n\n")
}
