package answer

import (
	"cmp"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/toolcall"
	"github.com/etrun-go/etrun/text"
)

// Style is how another API writes an answer.
type Style struct {
	Lines  bool                      // a stream is objects on lines, not events
	Object func(p *Part) any         // the answer, or a part of its stream
	Failed func(d *fault.Detail) any // the answer to a request that failed; nil for that of OpenAI's API
}

// lines reports whether streams are lines. The style may be nil.
func (s *Style) lines() bool { return s != nil && s.Lines }

// failed returns the answer to a request that failed.
func (s *Style) failed(d *fault.Detail) any {
	if s == nil || s.Failed == nil {
		return fault.Body{Error: *d}
	}
	return s.Failed(d)
}

// Fail answers with an error. The style may be nil.
func (s *Style) Fail(w http.ResponseWriter, err error) {
	status, retry, body := fault.Describe(w, err)
	if retry != "" {
		w.Header().Set("Retry-After", retry)
	}
	JSON(w, status, s.failed(&body.Error))
}

// Part is a text, or a part of it in a stream.
type Part struct {
	Model         string
	Text, Thought any // strings as JSON; Thought is nil for none
	Calls         []*PartCall

	Done   bool        // the text, or the last part of it. The rest is of it
	Finish text.Finish // empty if there was no prompt
	Stats  text.Stats
	Took   time.Duration // since the request was read
}

// PartCall is a call of a tool, of which all arguments are known.
type PartCall struct {
	ID, Name  string
	arguments buffer
}

// Arguments returns the JSON of the arguments: of a string, if the text ended within them.
func (c *PartCall) Arguments() jsontext.Value {
	v := jsontext.Value(c.arguments.b)
	if len(v) == 0 {
		return jsontext.Value("{}")
	}
	if v.Kind() != '{' || !v.IsValid() {
		quoted, _ := jsontext.AppendQuote(nil, v) // what is no UTF-8 is replaced
		return quoted
	}
	return v
}

// parts is the form of answers in a style.
type parts struct {
	*Sink
	arrived time.Time
	model   string
	text    str
	thought str
	calls   []*PartCall // in a stream: the one that has begun
	why     text.Finish
	ended   bool // the last part was sent
}

func newParts(a *Sink, model string) *parts {
	return &parts{Sink: a, model: model, arrived: time.Now()}
}

// next implements form. An answer has one text.
func (c *parts) next([]int, string) error { return nil }

// begin implements form.
func (c *parts) begin() error { return nil }

// add implements form.
func (c *parts) add(x *toolcall.Piece, _ []tokenItem) error {
	switch {
	case x.Call != nil:
		return c.addCall(x.Call)
	case c.Stream:
		if err := c.sendCall(); err != nil {
			return err
		}
		p := &Part{Model: c.model, Text: x.Text}
		if x.Thought != "" {
			p.Thought = x.Thought
		}
		return c.event("", c.Style.Object(p))
	}
	return cmp.Or(c.text.add(c.memory, x.Text), c.thought.add(c.memory, x.Thought), c.checkSize())
}

// addCall adds a part of a call, which is answered when it is complete.
func (c *parts) addCall(x *toolcall.Call) error {
	if x.ID != "" {
		if err := cmp.Or(c.sendCall(), c.grow(callBytes)); err != nil {
			return err
		}
		c.calls = append(c.calls, &PartCall{ID: x.ID, Name: x.Function.Name})
	}
	if len(c.calls) == 0 { // calls begin with an id
		return nil
	}
	last := c.calls[len(c.calls)-1]
	return cmp.Or(last.arguments.add(c.memory, nil, []byte(x.Function.Arguments)), c.checkSize())
}

// sendCall sends the call that has begun to a stream.
func (c *parts) sendCall() error {
	if !c.Stream || len(c.calls) == 0 {
		return nil
	}
	p := &Part{Model: c.model, Text: "", Calls: c.calls}
	c.calls = nil
	return c.event("", c.Style.Object(p))
}

// finish implements form.
func (c *parts) finish(why text.Finish) error {
	c.why = why
	if !c.Stream {
		return nil
	}
	return cmp.Or(c.sendCall(), c.sendLast())
}

func (c *parts) sendLast() error {
	c.ended = true
	return c.event("", c.Style.Object(c.final("")))
}

// final returns the end of a text, or all of it.
func (c *parts) final(s any) *Part {
	return &Part{Model: c.model, Text: s, Calls: c.calls, Done: true, Finish: c.why, Stats: c.stats, Took: time.Since(c.arrived)}
}

// object implements form.
func (c *parts) object(failed *fault.Detail) any {
	if failed != nil {
		return nil
	}
	p := c.final(&c.text)
	if len(c.thought.b) > 0 {
		p.Thought = &c.thought
	}
	return c.Style.Object(p)
}

// end implements form.
func (c *parts) end(failed *fault.Detail) error {
	switch {
	case failed != nil:
		return c.event("", c.Style.failed(failed))
	case c.ended:
		return nil
	}
	return cmp.Or(c.Sink.begin(), c.sendLast()) // there was no prompt
}
