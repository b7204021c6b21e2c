package answer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/serve"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/toolcall"
	"github.com/etrun-go/etrun/text"
	"github.com/etrun-go/etrun/text/tokenizer"
)

// Form describes the answers to one kind of request.
type Form interface {
	// Prefix is the beginning of ids.
	Prefix() string
	// objects are the values of "object" in whole answers and in chunks.
	objects() (whole, chunk string)
	// collect adds tokens to the lists of a choice of a whole answer.
	collect(c *choice, tokens []tokenItem, add func(list int, object any) error) error
	// layout returns the form of a choice of a whole answer.
	layout() *layout
	// chunk returns a part of a choice of a stream; begin for its first one, finish for its last one only.
	chunk(c *choice, text string, tokens []tokenItem, begin bool, finish *string) any
}

// layout is the JSON around the parts of a choice: before its text, after it, before each list of its tokens, and after
// the last one.
type layout struct {
	before, after string
	lists         []string
	end           string
}

// choice is one of the texts of an answer.
type choice struct {
	index   int
	echo    string  // precedes the generated text
	offsets offsets // of tokens in the text
	begun   bool    // the beginning was sent to the stream
	text    Pile    // without quotes
	lists   [4]Pile

	split   *toolcall.Splitter // nil for a reply that is text only
	thought Pile               // without quotes
	calls   Pile               // elements of a list
	called  bool
}

// answerer answers one request, at its end or as a stream.
type answerer struct {
	server    *serve.Server
	w         http.ResponseWriter
	want      Wanted
	tokenizer tokenizer.Tokenizer
	head      header
	hold      *serve.Hold // of the answer

	begun   bool // the header of a stream was sent
	choice  *choice
	open    bool // the choice has not ended
	choices Pile // whole ones
	usage   usage
}

// header is the beginning of all answers and chunks.
type header struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
}

// chunk is an event of a stream.
type chunk struct {
	header
	Choices []any `json:"choices"`
}

// countedChunk is an event of a stream whose last one has the usage.
type countedChunk struct {
	chunk
	Usage *usage `json:"usage"`
}

// usage counts tokens.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// Add counts a text; the tokens of a prompt only for the first of its texts.
func (u *usage) Add(s *text.Stats, first bool) {
	if first {
		u.Prompt += s.Prompt
		u.Details.Cached += s.Reused
	}
	u.Completion += s.Generated
	u.Total = u.Prompt + u.Completion
}

func newAnswerer(s *serve.Server, w http.ResponseWriter, model string, want Wanted, hold *serve.Hold) *answerer {
	head := header{ID: newID(want.Form.Prefix()), Created: now(), Model: model}
	return &answerer{server: s, w: w, want: want, head: head, hold: hold}
}

func (a *answerer) Use(t tokenizer.Tokenizer) { a.tokenizer = t }

// finishes are the reasons of the protocol.
var finishes = map[text.Finish]string{text.FinishStop: "stop", text.FinishLength: "length", text.FinishContext: "length"}

// Next begins another choice.
func (a *answerer) Next(prompt []int, echo string, s *toolcall.Splitting) error {
	index := 0
	if a.choice != nil {
		index = a.choice.index + 1
	}
	a.choice, a.open = &choice{index: index, echo: echo, offsets: offsets{tokenizer: a.tokenizer}}, true
	if !a.want.Score && a.want.LogProbs {
		a.choice.offsets.skip(prompt)
	}
	if s != nil {
		a.choice.split = toolcall.NewSplitter(s)
	}
	if a.want.Stream {
		return nil
	}
	return a.grow(&a.choice.text, inside(echo))
}

// Piece adds a piece of the current choice. first means that it is the first one of its prompt.
func (a *answerer) Piece(p *text.Piece, first bool) error {
	if p.Finish != "" || p.Stats.Generated > 0 {
		a.usage.Add(&p.Stats, first)
	}
	if !a.want.Stream {
		return a.collect(p)
	}
	c, tokens := a.choice, a.items(p.Tokens)
	if err := a.begin(); err != nil {
		return err
	}
	if c.split != nil {
		if err := a.sendPieces(c, c.split.Push(p.Text, p.Finish != ""), tokens); err != nil {
			return err
		}
	} else if p.Text != "" || len(tokens) > 0 {
		if err := a.send(a.want.Form.chunk(c, p.Text, tokens, false, nil)); err != nil {
			return err
		}
	}
	if p.Finish == "" {
		return nil
	}
	finish := a.finish(p)
	return a.send(a.want.Form.chunk(c, "", nil, false, &finish))
}

// collect adds a piece to the current choice of a whole answer.
func (a *answerer) collect(p *text.Piece) error {
	c := a.choice
	if err := a.collectText(c, p); err != nil {
		return err
	}
	err := a.want.Form.collect(c, a.items(p.Tokens), func(list int, object any) error {
		data, err := json.Marshal(object)
		if err != nil {
			return err
		}
		return c.lists[list].item(a.hold, string(data))
	})
	if err == nil {
		err = a.checkSize()
	}
	if err != nil || p.Finish == "" {
		return err
	}
	return a.endChoice(Quoted(a.finish(p)))
}

// finish returns the reason why a text ended.
func (a *answerer) finish(p *text.Piece) string {
	if a.choice.called && p.Finish == text.FinishStop {
		return "tool_calls"
	}
	return finishes[p.Finish]
}

// collectText adds the text of a piece to the current choice of a whole answer.
func (a *answerer) collectText(c *choice, p *text.Piece) error {
	if c.split == nil {
		return a.grow(&c.text, inside(p.Text))
	}
	for _, x := range c.split.Push(p.Text, p.Finish != "") {
		if err := cmp.Or(a.grow(&c.text, inside(x.Text)), a.grow(&c.thought, inside(x.Thought))); err != nil {
			return err
		}
		if x.Call != nil {
			if err := a.collectCall(c, x.Call); err != nil {
				return err
			}
		}
	}
	return a.checkSize()
}

// collectCall adds a part of a call to the current choice of a whole answer.
func (a *answerer) collectCall(c *choice, call *toolcall.Call) error {
	begin := ""
	if call.ID != "" {
		begin = fmt.Sprintf(`{"id":%s,"type":"function","function":{"name":%s,"arguments":"`, Quoted(call.ID), Quoted(call.Function.Name))
		if c.called {
			begin = callTail + "," + begin
		}
		c.called = true
	}
	return cmp.Or(c.calls.Add(a.hold, begin), c.calls.Add(a.hold, inside(call.Function.Arguments)))
}

// callTail ends a call in a whole answer.
const callTail = `"}}`

// sendPieces sends the parts of a reply; the tokens come with the first one.
func (a *answerer) sendPieces(c *choice, list []toolcall.Piece, tokens []tokenItem) error {
	if len(list) == 0 && len(tokens) > 0 {
		list = []toolcall.Piece{{}}
	}
	for _, x := range list {
		chunk := chatChunk{Index: c.index, LogProbs: chatList(tokens)}
		if x.Call != nil {
			chunk.Delta.Calls, c.called = []*toolcall.Call{x.Call}, true
		}
		switch {
		case x.Thought != "":
			chunk.Delta.Reasoning = &x.Thought
		case x.Call == nil:
			chunk.Delta.Content = &x.Text
		}
		if err := a.send(chunk); err != nil {
			return err
		}
		tokens = nil
	}
	return nil
}

// grow adds bytes to a part of a whole answer, within the limit of its size.
func (a *answerer) grow(p *Pile, s string) error {
	if err := p.Add(a.hold, s); err != nil {
		return err
	}
	return a.checkSize()
}

// checkSize ends an answer that is too large.
func (a *answerer) checkSize() error {
	if most := a.server.AnswerBytes(); a.hold.Size() > most {
		return &fault.Error{Class: etrun.ErrInput, Param: "max_tokens", Text: fmt.Sprintf("the answer exceeds %d bytes; want fewer texts, tokens or "+
			"log-probabilities, or a stream", most)}
	}
	return nil
}

// endChoice moves the current choice to the answer. finish is JSON.
func (a *answerer) endChoice(finish string) error {
	c, l := a.choice, a.want.Form.layout()
	a.open = false
	between, err := a.endMessage(c, l)
	if err != nil {
		return err
	}
	if !a.want.LogProbs {
		return a.choices.Add(a.hold, between+`"logprobs":null,"finish_reason":`+finish+"}")
	}
	for i, s := range l.lists {
		if err := a.choices.Add(a.hold, between+s); err != nil {
			return err
		}
		between = ""
		if err := a.choices.move(a.hold, &c.lists[i]); err != nil {
			return err
		}
	}
	return a.choices.Add(a.hold, l.end+`,"finish_reason":`+finish+"}")
}

// endMessage moves the text of a choice to the answer, with its thoughts and calls. It returns what follows them.
func (a *answerer) endMessage(c *choice, l *layout) (after string, err error) {
	before, after := l.before, l.after
	empty := c.calls.size > 0 && c.text.size == 0
	if empty {
		before, after = strings.TrimSuffix(before, `"`)+"null", strings.TrimPrefix(after, `"`)
	}
	if err := a.choices.item(a.hold, fmt.Sprintf(`{"index":%d,%s`, c.index, before)); err != nil {
		return "", err
	}
	end := `"`
	if empty {
		end = ""
	}
	err = a.choices.move(a.hold, &c.text)
	if err == nil && c.thought.size > 0 {
		err = cmp.Or(a.choices.Add(a.hold, end+`,"reasoning_content":"`), a.choices.move(a.hold, &c.thought))
		end, after = `"`, l.after
	}
	if err == nil && c.calls.size > 0 {
		err = cmp.Or(a.choices.Add(a.hold, end+`,"tool_calls":[`), c.calls.Add(a.hold, callTail), a.choices.move(a.hold, &c.calls))
		after = "]" + strings.TrimPrefix(l.after, `"`)
	}
	return after, err
}

// inside returns the JSON of a string without its quotes.
func inside(s string) string {
	s = Quoted(s)
	return s[1 : len(s)-1]
}

// Quoted returns the JSON of a string.
func Quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil { // cannot happen for strings
		return `""`
	}
	return string(b)
}

// begin sends the header of a stream and the beginning of the choice.
func (a *answerer) begin() error {
	if a.choice.begun {
		return nil
	}
	a.choice.begun = true
	if !a.begun {
		a.begun = true
		beginEvents(a.w)
	}
	return a.send(a.want.Form.chunk(a.choice, a.choice.echo, nil, true, nil))
}

// send sends a chunk with one choice.
func (a *answerer) send(choice any) error { return a.sendChunk([]any{choice}, nil) }

// sendChunk sends a chunk. If the stream ends with the usage, the other chunks have none by name.
func (a *answerer) sendChunk(choices []any, u *usage) error {
	c := chunk{a.head, choices}
	_, c.Object = a.want.Form.objects()
	if a.want.Usage {
		return a.event(countedChunk{c, u})
	}
	return a.event(c)
}

// event sends an object as a server-sent event.
func (a *answerer) event(object any) error {
	data, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return a.Write("data: " + string(data) + "\n\n")
}

// Write writes text without delay: see sendParts.
func (a *answerer) Write(s string) error {
	a.server.WriteBy(a.w)
	return sendParts(a.w, []any{s})
}

// End completes the answer to a request that ended with err.
func (a *answerer) End(err error) {
	switch {
	case err != nil && a.begun:
		_, _, body := fault.Describe(a.w, err)
		_ = a.event(body) // the client may be gone
	case err != nil:
		a.endFailed(err)
	case a.want.Stream:
		a.endStream()
	default:
		a.endWhole(http.StatusOK, "{")
	}
}

// endFailed answers with an error. What was generated before it follows in the form of an answer.
func (a *answerer) endFailed(err error) {
	a.server.WriteBy(a.w) // the request may have waited longer than the limit
	if a.usage.Completion > 0 && a.open {
		_ = a.endChoice("null") // it is left out if there is no memory for its end
	}
	if a.choices.size == 0 {
		Fail(a.w, err)
		return
	}
	status, retry, body := fault.Describe(a.w, err)
	if retry != "" {
		a.w.Header().Set("Retry-After", retry)
	}
	text, _ := json.Marshal(body.Error) // cannot fail
	a.endWhole(status, `{"error":`+string(text)+",")
}

// endWhole writes a whole answer, which begins with the given JSON. Its blocks are not copied.
func (a *answerer) endWhole(status int, begin string) {
	head := a.head
	head.Object, _ = a.want.Form.objects()
	first, _ := json.Marshal(head) // these cannot fail
	last, _ := json.Marshal(a.usage)
	begin += string(first[1:len(first)-1]) + `,"choices":[`
	end := `],"usage":` + string(last) + "}"
	a.server.WriteBy(a.w)
	a.choices.Write(a.w, status, begin, end)
}

// endStream sends the last events. The client may be gone.
func (a *answerer) endStream() {
	var err error
	if a.want.Usage {
		err = a.sendChunk([]any{}, &a.usage)
	}
	if err == nil {
		_ = a.Write("data: [DONE]\n\n")
	}
}
