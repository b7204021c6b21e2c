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

// outputItem is an item of the output: its text, and the JSON around it.
type outputItem struct {
	kind itemKind
	id   string
	call calledName
	text Pile // without quotes
}

// calledName are the id and the function of a call.
type calledName struct{ id, name string }

// itemKind describes the items of a type.
type itemKind struct {
	name   string
	prefix string // of ids
	part   string // type of the part that has the text, empty for none
	delta  string // type of the events with further text
	done   string // type of the event with all of it
	member string // of that event
}

var (
	messageItem   = itemKind{"message", "msg", "output_text", "response.output_text.delta", "response.output_text.done", "text"}
	reasoningItem = itemKind{"reasoning", "rs", "reasoning_text", "response.reasoning_text.delta", "response.reasoning_text.done", "text"}
	callItem      = itemKind{"function_call", "fc", "", "response.function_call_arguments.delta", "response.function_call_arguments.done",
		"arguments"}
)

// around returns the JSON of an item before and after its text.
func (x *outputItem) around(status string) (before, after string) {
	head := fmt.Sprintf(`{"id":%s,"type":"%s","status":"%s"`, Quoted(x.id), x.kind.name, status)
	switch x.kind.name {
	case "function_call":
		return head + fmt.Sprintf(`,"call_id":%s,"name":%s,"arguments":"`, Quoted(x.call.id), Quoted(x.call.name)), `"}`
	case "reasoning":
		head += `,"summary":[]`
	default:
		head += `,"role":"assistant"`
	}
	before, after = x.aroundPart()
	return head + `,"content":[` + before, after + "]}"
}

// aroundPart returns the JSON of a part before and after its text.
func (x *outputItem) aroundPart() (before, after string) {
	if x.kind.part == messageItem.part {
		return `{"type":"output_text","annotations":[],"logprobs":[],"text":"`, `"}`
	}
	return fmt.Sprintf(`{"type":"%s","text":"`, x.kind.part), `"}`
}

// begun returns the item before it has any text.
func (x *outputItem) begun() string {
	before, after := x.around("in_progress")
	if x.kind.part == "" {
		return before + after
	}
	return before[:strings.Index(before, `"content":[`)] + `"content":[]}`
}

// responder answers a request for a response, at its end or as a stream. It keeps all of the output, which the last event repeats.
type responder struct {
	server  *serve.Server
	w       http.ResponseWriter
	model   string
	want    Wanted
	hold    *serve.Hold
	id      string
	created int64

	tokenizer tokenizer.Tokenizer

	split    *toolcall.Splitter // nil for a reply that is text only
	items    []*outputItem
	open     bool // the last item has not ended
	usage    usage
	thoughts int // tokens of the parts of thoughts, encoded again

	finish text.Finish
	begun  bool // the header of a stream was sent
	events int
}

func newResponder(s *serve.Server, w http.ResponseWriter, model string, want Wanted, hold *serve.Hold) *responder {
	return &responder{server: s, w: w, model: model, want: want, hold: hold, id: newID("resp"), created: now()}
}

func (a *responder) Use(t tokenizer.Tokenizer) { a.tokenizer = t }

func (a *responder) Next(_ []int, _ string, s *toolcall.Splitting) error {
	if s != nil {
		a.split = toolcall.NewSplitter(s)
	}
	return nil
}

func (a *responder) Piece(p *text.Piece, first bool) error {
	if p.Finish != "" || p.Stats.Generated > 0 {
		a.usage.Add(&p.Stats, first)
	}
	list := toolcall.Pieces(toolcall.Piece{Text: p.Text})
	if a.split != nil {
		list = a.split.Push(p.Text, p.Finish != "")
	}
	if err := a.begin(); err != nil {
		return err
	}
	for _, x := range list {
		if err := a.Add(&x); err != nil {
			return err
		}
	}
	if p.Finish == "" {
		return nil
	}
	a.finish = p.Finish
	if len(a.items) == 0 { // an empty text is a message
		if err := a.beginItem(messageItem, calledName{}); err != nil {
			return err
		}
	}
	return a.endItem(a.status())
}

// status is that of the response when the text has ended.
func (a *responder) status() string {
	if a.finish == text.FinishStop {
		return "completed"
	}
	return "incomplete"
}

// Add adds a part of the reply to the last item, or begins another one.
func (a *responder) Add(x *toolcall.Piece) error {
	kind, s, call := messageItem, x.Text, calledName{}
	switch {
	case x.Call != nil:
		kind, s = callItem, x.Call.Function.Arguments
		call = calledName{x.Call.ID, x.Call.Function.Name}
	case x.Thought != "":
		kind, s = reasoningItem, x.Thought
		ids, _ := a.tokenizer.Encode(s, false) // an error counts none
		a.thoughts += len(ids)
	}
	if !a.open || a.items[len(a.items)-1].kind != kind || x.Call != nil && x.Call.ID != "" {
		if err := cmp.Or(a.endItem("completed"), a.beginItem(kind, call)); err != nil {
			return err
		}
	}
	if s == "" {
		return nil
	}
	item := a.items[len(a.items)-1]
	if err := item.text.Add(a.hold, inside(s)); err != nil {
		return err
	}
	if err := a.checkSize(); err != nil {
		return err
	}
	return a.event(kind.delta, a.place(item)+fmt.Sprintf(`,"delta":%s`, Quoted(s))+item.probabilities())
}

// probabilities are the members of events with text that are always empty.
func (x *outputItem) probabilities() string {
	if x.kind == messageItem {
		return `,"logprobs":[]`
	}
	return ""
}

// function is the member of the event with all arguments of a call.
func (x *outputItem) function() string {
	if x.kind == callItem {
		return `,"name":` + Quoted(x.call.name)
	}
	return ""
}

// checkSize ends an answer that is too large.
func (a *responder) checkSize() error {
	if most := a.server.AnswerBytes(); a.hold.Size() > most {
		return &fault.Error{Class: etrun.ErrInput, Param: a.want.Limit, Text: fmt.Sprintf("the answer exceeds %d bytes; want fewer tokens", most)}
	}
	return nil
}

// place says to which item an event belongs.
func (a *responder) place(x *outputItem) string {
	s := fmt.Sprintf(`"item_id":%s,"output_index":%d`, Quoted(x.id), len(a.items)-1)
	if x.kind.part != "" {
		s += `,"content_index":0`
	}
	return s
}

// itemBytes is the memory of an item besides its text.
const itemBytes = 512

// beginItem begins an item of the output.
func (a *responder) beginItem(kind itemKind, call calledName) error {
	if err := a.hold.Grow(itemBytes + int64(len(call.id)+len(call.name))); err != nil {
		return err
	}
	x := &outputItem{kind: kind, id: newID(kind.prefix), call: call}
	a.items, a.open = append(a.items, x), true
	err := a.event("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":`, len(a.items)-1)+x.begun())
	if err != nil || kind.part == "" {
		return err
	}
	before, after := x.aroundPart()
	return a.event("response.content_part.added", a.place(x)+`,"part":`+before+after)
}

// endItem ends the last item.
func (a *responder) endItem(status string) error {
	if !a.open {
		return nil
	}
	a.open = false
	x := a.items[len(a.items)-1]
	if !a.want.Stream {
		return nil
	}
	err := a.event(x.kind.done, a.place(x)+fmt.Sprintf(`,"%s":"`, x.kind.member), x.text.blocks, `"`+x.probabilities()+x.function())
	if err == nil && x.kind.part != "" {
		before, after := x.aroundPart()
		err = a.event("response.content_part.done", a.place(x)+`,"part":`+before, x.text.blocks, after)
	}
	if err == nil {
		before, after := x.around(status)
		err = a.event("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":`, len(a.items)-1)+before, x.text.blocks, after)
	}
	return err
}

// begin sends the first events of a stream.
func (a *responder) begin() error {
	if a.begun || !a.want.Stream {
		return nil
	}
	a.begun = true
	beginEvents(a.w)
	for _, kind := range []string{"response.created", "response.in_progress"} {
		if err := a.event(kind, a.inEvent("in_progress", nil)...); err != nil {
			return err
		}
	}
	return nil
}

// event sends an event of a stream: strings and lists of blocks, whose bytes are the members besides type and number.
func (a *responder) event(kind string, parts ...any) error {
	if !a.want.Stream {
		return nil
	}
	a.server.WriteBy(a.w)
	begin := fmt.Sprintf("event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,", kind, kind, a.events)
	a.events++
	return sendParts(a.w, append(append([]any{begin}, parts...), "}\n\n"))
}

// inEvent returns the response as a member of an event.
func (a *responder) inEvent(status string, failed *fault.Detail) []any {
	return append([]any{`"response":`}, a.Object(status, failed)...)
}

// Object returns the response as strings and lists of blocks.
func (a *responder) Object(status string, failed *fault.Detail) (parts []any) {
	type cause struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	var why *cause
	if failed != nil {
		why = &cause{fault.TypeServer, failed.Message}
		if failed.Code != nil {
			why.Code = *failed.Code
		}
	}
	incomplete := "null"
	if status == "incomplete" {
		incomplete = `{"reason":"max_output_tokens"}`
	}
	begin, _ := json.Marshal(why) // these cannot fail
	parts = append(parts, fmt.Sprintf(`{"id":%s,"object":"response","created_at":%d,"status":"%s","error":%s,"incomplete_details":%s,`+
		`"model":%s,"output":[`, Quoted(a.id), a.created, status, begin, incomplete, Quoted(a.model)))
	for i, x := range a.items {
		state := "completed"
		if i == len(a.items)-1 {
			state = status
		}
		before, after := x.around(strings.Replace(state, "failed", "incomplete", 1))
		if i > 0 {
			before = "," + before
		}
		parts = append(parts, before, x.text.blocks, after)
	}
	return append(parts, `],"usage":`+a.used(status)+a.want.Repeated()+"}")
}

// used returns the usage, null while the text is generated.
func (a *responder) used(status string) string {
	if status == "in_progress" {
		return "null"
	}
	u := &a.usage
	return fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,"output_tokens_details":`+
		`{"reasoning_tokens":%d},"total_tokens":%d}`, u.Prompt, u.Details.Cached, u.Completion, min(a.thoughts, u.Completion), u.Total)
}

// End completes the answer.
func (a *responder) End(err error) {
	a.server.WriteBy(a.w) // the request may have waited longer than the limit
	switch {
	case err != nil && a.begun:
		_, _, body := fault.Describe(a.w, err)
		_ = a.event("response.failed", a.inEvent("failed", &body.Error)...) // the client may be gone
	case err != nil && a.usage.Completion > 0: // what was generated is not lost
		a.endFailed(err)
	case err != nil:
		Fail(a.w, err)
	case a.want.Stream:
		_ = a.event("response."+a.status(), a.inEvent(a.status(), nil)...)
	default:
		a.Write(http.StatusOK, a.Object(a.status(), nil))
	}
}

// endFailed answers with an error, and the response as far as it was generated.
func (a *responder) endFailed(err error) {
	status, retry, body := fault.Describe(a.w, err)
	if retry != "" {
		a.w.Header().Set("Retry-After", retry)
	}
	text, _ := json.Marshal(body.Error) // cannot fail
	parts := a.Object("failed", &body.Error)
	a.Write(status, append(append([]any{`{"error":` + string(text) + `,"response":`}, parts...), "}"))
}

// Write writes an answer that is no stream.
func (a *responder) Write(status int, parts []any) {
	size := 0
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			size += len(p)
		case [][]byte:
			for _, b := range p {
				size += len(b)
			}
		}
	}
	beginObject(a.w, status, size)
	_ = sendParts(a.w, parts) // the client may be gone
}
