package requests

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/serve/openai/internal/answer"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/forms"
	"github.com/etrun-go/etrun/serve/openai/internal/toolcall"
)

// Reasons of members of responses that are refused.
const (
	logProbs = "message.output_text.logprobs"
	noStore  = "nothing is stored: want all items in input"
	noItem   = "want the types message, function_call, custom_tool_call, the output of these, and reasoning"
)

// itemPart are the members of a part of an item's text.
var itemPart = Of("type text").Inert("prompt_cache_breakpoint").No(noMedia, "[]", "annotations logprobs").No(noMedia, "", "refusal").
	No(noFiles, "", "file_id file_data file_url filename").
	With(Object{"image_url": {why: dataURI}, "detail": {use: inert, why: fixedSize}, "input_audio": {inside: audioPart}})

// itemTypes are the members of each type of items. One without a type is a message.
var itemTypes = map[string]Object{"": itemOf("role", "content"), "message": itemOf("role", "content"),
	"function_call": itemOf("call_id", "name", "arguments"), "function_call_output": itemOf("call_id", "output"),
	"custom_tool_call": itemOf("call_id", "name", "input"), "custom_tool_call_output": itemOf("call_id", "output"),
	"reasoning": itemOf("content", "summary")}

// itemOf returns the members of items that have those of the names.
func itemOf(names ...string) Object {
	o := Of("type").Inert("id status phase caller namespace").No(noStore, "", "encrypted_content")
	for _, name := range names {
		o[name] = member{}
		if slices.Contains([]string{"content", "output", "summary"}, name) {
			o[name] = member{inside: itemPart, most: maxMessages}
		}
	}
	return o
}

// flatTools are the members of tools of a response, by their type.
var flatTools = map[string]Object{
	"function": Of("type name description parameters strict").Inert("output_schema allowed_callers defer_loading"),
	"custom": Of("type name description").Inert("allowed_callers defer_loading").
		With(Object{"format": {inside: Of("type syntax definition")}}),
}

// ResponseMembers are those of responses. max_tool_calls is for tools that a server runs.
var ResponseMembers = Of("model instructions parallel_tool_calls max_output_tokens temperature top_p stream cache_salt").
	Inert(`truncation user safety_identifier prompt_cache_key prompt_cache_retention prompt_cache_options client_metadata
		max_tool_calls`).
	No(noStore, "", "previous_response_id conversation prompt").
	No("a response is generated while the client waits", "false", "background").No(noDetail, "0", "top_logprobs").
	No("shorten the input", "[]", "context_management").
	With(Object{
		"input": {types: itemTypes, most: maxMessages}, "tools": {most: toolcall.MaxTools, types: flatTools}, "tool_choice": {types: toolChoices},
		"stream_options": {inside: Object{"include_obfuscation": common["stream_options"].inside["include_obfuscation"]}},
		"text": {inside: Of("").Inert("verbosity").With(Object{
			"format": {inside: Of("type schema strict").Inert("name description")}})},
		"reasoning": {inside: Of("effort").Inert("generate_summary context mode").
			With(Object{"summary": {use: inert, why: "thoughts are not summarized"}})},
		"metadata":   {why: "repeated in the response"},
		"include":    {use: inert, most: maxStopIDs, why: "but `" + logProbs + "`, which is refused"},
		"moderation": common["moderation"], "store": common["store"], "service_tier": common["service_tier"],
	})

// Response is the body of a response.
type Response struct {
	Model        string            `json:"model"`
	Input        json.RawMessage   `json:"input"`
	Instructions *string           `json:"instructions"`
	Tools        []json.RawMessage `json:"tools"`
	Include      []string          `json:"include"`
	Choice       json.RawMessage   `json:"tool_choice"`
	Parallel     *bool             `json:"parallel_tool_calls"`
	MaxTokens    *int              `json:"max_output_tokens"`
	Temperature  *float64          `json:"temperature"`
	TopP         *float64          `json:"top_p"`
	Stream       bool              `json:"stream"`
	Text         struct {
		Format *flatFormat `json:"format"`
	} `json:"text"`
	Reasoning struct {
		Effort *string `json:"effort"`
	} `json:"reasoning"`
	Metadata map[string]string `json:"metadata"`
	Salt     *string           `json:"cache_salt"`

	chat   Chat
	tools  []any       // as the response repeats them
	places []string    // of the messages in the request
	calls  [][2]string // the names of the calls in the chat, and their places in the request
}

// flatTool is a tool that the model can call.
type flatTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description json.RawMessage `json:"description,omitzero"`
	Parameters  json.RawMessage `json:"parameters,omitzero"`
	Strict      json.RawMessage `json:"strict,omitzero"`
}

// flatFormat is the form of a text.
type flatFormat struct {
	Type   string          `json:"type"`
	Name   string          `json:"name,omitzero"`
	Schema json.RawMessage `json:"schema,omitzero"`
	Strict json.RawMessage `json:"strict,omitzero"`
}

func (r *Response) ModelName() string { return r.Model }

// Job checks a response, as the chat that it is.
func (r *Response) Job(m *forms.Maker) (*Job, error) {
	if r.MaxTokens != nil && *r.MaxTokens < 1 {
		return nil, fault.Refused("max_output_tokens", "%d, want 1 or more", *r.MaxTokens)
	}
	if slices.Contains(r.Include, logProbs) { // others are of tools that do not run, or of thoughts, which the answer has as text
		return nil, fault.Unsupported("include", "%s: not supported: %s", logProbs, noDetail)
	}
	c := &r.chat
	c.MaxTokens, c.Temperature, c.TopP, c.Stream = r.MaxTokens, r.Temperature, r.TopP, r.Stream
	c.Parallel, c.Effort, c.Salt = r.Parallel, r.Reasoning.Effort, r.Salt
	c.Choice = r.Choice
	if r.Instructions != nil {
		r.add("instructions", message{Role: "system", Content: &content{Text: *r.Instructions}})
	}
	for _, step := range []func() error{r.readInput, r.readTools, r.readFormat} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	j, err := c.Job(m)
	if err != nil {
		return nil, r.renamed(err)
	}
	j.Rename("input", r.renamed)
	j.Wanted.Kind, j.Wanted.Limit, j.Wanted.Repeated = answer.Response, "max_output_tokens", r.repeated()
	return j, nil
}

// Add adds a message.
func (r *Response) add(place string, m message) {
	r.chat.Messages, r.places = append(r.chat.Messages, m), append(r.places, place)
}

// renames are the members of chats that have other names here. The first that fits applies.
var renames = [][2]string{{"response_format.json_schema.schema", "text.format.schema"},
	{"response_format.json_schema.strict", "text.format.strict"}, {"response_format", "text.format"},
	{"reasoning_effort", "reasoning.effort"}, {"max_tokens", "max_output_tokens"}, {"messages", "input"}}

// renamed names the members of an error as this request has them.
func (r *Response) renamed(err error) error {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	for _, names := range r.calls {
		if e.Rename(names[0], names[1]) {
			return e
		}
	}
	for i, place := range r.places {
		if e.Rename(fmt.Sprintf("messages[%d]", i), place) {
			return e
		}
	}
	for _, names := range renames {
		if e.Rename(names[0], names[1]) {
			return e
		}
	}
	if strings.HasPrefix(e.Param, "tools[") {
		e.Rename(e.Param, strings.NewReplacer(".function.", ".", ".custom.", ".", ".grammar", "").Replace(e.Param))
	}
	return e
}

// item is an element of the input.
type item struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Input     string          `json:"input"`
	Output    json.RawMessage `json:"output"`
	Summary   json.RawMessage `json:"summary"`
}

// readInput reads the messages of the input.
func (r *Response) readInput() error {
	var text content
	var list []json.RawMessage
	switch {
	case len(r.Input) == 0 || string(r.Input) == "null":
		return fault.Missing("input")
	case r.Input[0] == '"' && json.Unmarshal(r.Input, &text.Text) == nil:
		r.add("input", message{Role: "user", Content: &text})
		return nil
	case r.Input[0] != '[' || json.Unmarshal(r.Input, &list) != nil:
		return fault.Refused("input", "want a string or a list of items")
	case len(list) == 0:
		return fault.Refused("input", "an empty list, want an item")
	}
	var thoughts strings.Builder // of the next message
	at := ""
	for i, raw := range list {
		place := fmt.Sprintf("input[%d]", i)
		x, err := readItem(place, raw)
		if err != nil {
			return err
		}
		if x.Type == "reasoning" {
			text, err := x.thoughts(place)
			if err != nil {
				return err
			}
			thoughts.WriteString(text)
			at = place
			continue
		}
		if thoughts.Len() > 0 && !isCall(x.Type) && x.Role != "assistant" { // the reply ended within them
			r.addThoughts(at, &thoughts)
		}
		if err := r.addItem(place, x, thoughts.String()); err != nil {
			return err
		}
		thoughts.Reset()
	}
	r.addThoughts(at, &thoughts)
	return nil
}

// isCall reports whether an item is a call of a tool.
func isCall(kind string) bool { return kind == "function_call" || kind == "custom_tool_call" }

// addThoughts adds a message of thoughts alone, if there are any.
func (r *Response) addThoughts(place string, thoughts *strings.Builder) {
	if thoughts.Len() > 0 {
		r.add(place, message{Role: "assistant", Content: new(content), Reasoning: thoughts.String()})
		thoughts.Reset()
	}
}

// readItem reads an item.
func readItem(place string, raw json.RawMessage) (*item, error) {
	x := &item{}
	if err := decodeObject(place, raw, x); err != nil {
		return nil, err
	}
	if x.Type == "" && x.Role != "" {
		x.Type = "message"
	}
	if x.Type == "" || itemTypes[x.Type] == nil {
		return nil, fault.Refused(place+".type", "%s: %s", fault.Quote(x.Type), noItem)
	}
	return x, nil
}

// decodeObject reads an object at a place.
func decodeObject(place string, raw json.RawMessage, into any) error {
	if raw[0] != '{' {
		return fault.Refused(place, "want an object")
	}
	err := json.Unmarshal(raw, into)
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fault.Refused(inner(place, e.Field), "%s, want %v", e.Value, kindOf(e.Type.Kind()))
	}
	if err != nil {
		return fault.Refused(place, "%v", err)
	}
	return nil
}

// addItem adds the message of an item, or a call to the message before it.
func (r *Response) addItem(place string, x *item, thoughts string) error {
	m := message{Role: x.Role, Reasoning: thoughts}
	var err error
	switch x.Type {
	case "message":
		m.Content, err = textOf(place+".content", x.Content)
	case "function_call_output", "custom_tool_call_output":
		m.Role, m.CallID = "tool", x.CallID
		m.Content, err = textOf(place+".output", x.Output)
	case "function_call", "custom_tool_call":
		call := toolcall.Call{ID: x.CallID, Type: "function", Function: toolcall.Called{Name: x.Name, Arguments: x.Arguments}}
		if x.Type == "custom_tool_call" {
			call = toolcall.Call{ID: x.CallID, Type: "custom", Custom: toolcall.Input{Name: x.Name, Input: x.Input}}
		}
		if x.CallID == "" {
			return fault.Missing(place + ".call_id")
		}
		last := len(r.chat.Messages) - 1
		if last >= 0 && r.chat.Messages[last].Role == "assistant" && thoughts == "" {
			before := &r.chat.Messages[last].Calls
			r.calls = append(r.calls, [2]string{fmt.Sprintf("messages[%d].tool_calls[%d].%s", last, len(*before), call.Type), place})
			*before = append(*before, call)
			return nil
		}
		r.calls = append(r.calls, [2]string{fmt.Sprintf("messages[%d].tool_calls[0].%s", last+1, call.Type), place})
		m.Role, m.Calls = "assistant", []toolcall.Call{call}
	}
	if err == nil && x.Type == "message" && (m.Role == "tool" || m.Role == "function") {
		err = fault.Refused(place+".role", "%s, want user, assistant, system or developer", fault.Quote(m.Role))
	}
	if err == nil && m.Role == "tool" && x.CallID == "" {
		err = fault.Missing(place + ".call_id")
	}
	r.add(place, m)
	return err
}

// textTypes are the types of parts that are text.
var textTypes = []string{"input_text", "output_text", "text", "reasoning_text", "summary_text"}

// textOf returns the text of a string, or of a list of parts.
func textOf(place string, raw json.RawMessage) (*content, error) {
	c := &content{}
	var parts []contentPart
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, fault.Missing(place)
	case raw[0] == '"' && json.Unmarshal(raw, &c.Text) == nil:
		return c, nil
	case raw[0] != '[' || json.Unmarshal(raw, &parts) != nil:
		return nil, fault.Refused(place, "want a string or a list of parts")
	}
	for i := range parts {
		p, at := &parts[i], fmt.Sprintf("%s[%d]", place, i)
		isText := slices.Contains(textTypes, p.Type)
		switch {
		case !isText && p.Type != "input_image" && p.Type != "input_audio":
			return nil, fault.Refused(at+".type", "%s, want input_text, output_text, input_image or input_audio", fault.Quote(p.Type))
		case isText && p.Text == nil:
			return nil, fault.Missing(at + ".text")
		}
		if err := c.add(at, p.Type, p, textTypes); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// thoughts returns the text of reasoning. Its summary counts only without it.
func (x *item) thoughts(place string) (string, error) {
	for _, list := range []struct {
		member string
		raw    json.RawMessage
	}{{"content", x.Content}, {"summary", x.Summary}} {
		if len(list.raw) == 0 || string(list.raw) == "null" {
			continue
		}
		if text, err := textOf(inner(place, list.member), list.raw); err != nil || len(text.media) > 0 || text.Text != "" {
			if err == nil && len(text.media) > 0 {
				err = fault.Refused(text.media[0].member, "a %s in reasoning", text.media[0].kind)
			}
			return orZero(text).Text, err
		}
	}
	return "", nil
}

// readTools makes tools of chats of the tools.
func (r *Response) readTools() error {
	list := make([]map[string]any, len(r.Tools))
	for i, raw := range r.Tools {
		place := fmt.Sprintf("tools[%d]", i)
		var kind struct {
			Type string `json:"type"`
		}
		if err := decodeObject(place, raw, &kind); err != nil {
			return err
		}
		if kind.Type != "function" { // members of others are not those of functions
			list[i] = map[string]any{"type": kind.Type}
			if kind.Type == "custom" {
				list[i]["custom"] = raw
			}
			r.tools = append(r.tools, raw)
			continue
		}
		var t flatTool
		if err := decodeObject(place, raw, &t); err != nil {
			return err
		}
		f := map[string]any{"name": t.Name}
		for name, value := range map[string]json.RawMessage{"description": t.Description, "parameters": t.Parameters, "strict": t.Strict} {
			if string(toolcall.OrNull(value)) != "null" {
				f[name] = value
			}
		}
		if strings.ContainsAny(string(t.Strict), `"{[0123456789`) {
			return fault.Refused(place+".strict", "want true or false")
		}
		list[i], r.tools = map[string]any{"type": t.Type, "function": f}, append(r.tools, t)
	}
	var err error
	r.chat.Tools, err = json.Marshal(list)
	return err
}

// readFormat makes a form of chats of text.format.
func (r *Response) readFormat() error {
	f := r.Text.Format
	if f == nil || f.Type == "text" {
		return nil
	}
	r.chat.Format = &answerFormat{Type: f.Type}
	switch {
	case f.Type == "json_object" && string(toolcall.OrNull(f.Schema)) != "null":
		return fault.Refused("text.format.schema", "with the type json_object, want json_schema")
	case f.Type == "json_schema" && string(toolcall.OrNull(f.Schema)) == "null":
		return fault.Missing("text.format.schema")
	case f.Type == "json_schema":
		r.chat.Format.Schema = &answerSchema{f.Schema, f.Strict}
	}
	return nil
}

// repeated returns the members that the response repeats.
func (r *Response) repeated() *answer.Repeated {
	a := &answer.Repeated{Instructions: r.Instructions, MaxTokens: r.MaxTokens, Metadata: r.Metadata,
		Parallel:  r.Parallel == nil || *r.Parallel,
		Reasoning: answer.Reasoning{Effort: r.Reasoning.Effort}, Temperature: 1, Text: answer.Text{Format: r.Text.Format},
		Choice: r.Choice, Tools: r.tools, TopP: 1, Truncation: "disabled"}
	if r.Text.Format == nil {
		a.Text.Format = &flatFormat{Type: "text"}
	}
	if string(toolcall.OrNull(r.Choice)) == "null" {
		a.Choice = json.RawMessage(`"auto"`)
	}
	if r.tools == nil {
		a.Tools = []any{}
	}
	if r.Metadata == nil {
		a.Metadata = map[string]string{}
	}
	if r.Temperature != nil {
		a.Temperature = *r.Temperature
	}
	if r.TopP != nil {
		a.TopP = *r.TopP
	}
	return a
}
