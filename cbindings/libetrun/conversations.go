//go:build cgo

package main

// #define ETRUN_TYPES_ONLY // cgo declares the functions, without const
// #include "etrun.h"
import "C"

import (
	"bytes"
	"encoding/json"
	"regexp"
	"unsafe"

	"github.com/etrun-go/etrun/internal/jsonerror"
	"github.com/etrun-go/etrun/text"
)

// conversation is the JSON of etrun_text_conversation.
type conversation struct {
	Messages []message                  `json:"messages"`
	Tools    json.RawMessage            `json:"tools"`
	Values   map[string]json.RawMessage `json:"chat_template_kwargs"`
}

// message is a message with the members of OpenAI's API.
type message struct {
	Role      string `json:"role"`
	Content   string `json:"content"`
	Reasoning string `json:"reasoning_content"`
	Calls     []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"` // an object, or its text
		} `json:"function"`
	} `json:"tool_calls"`
	CallID string `json:"tool_call_id"`
	Name   string `json:"name"`
}

// parseConversation reads the messages and the definitions of tools.
func parseConversation(data []byte) (*text.Conversation, error) {
	var c conversation
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return nil, argument("json: %v", jsonerror.Plain(err))
	}
	list := &text.Conversation{Tools: c.Tools, Values: c.Values}
	for k := range c.Messages {
		m := &c.Messages[k]
		if m.Role == "" {
			return nil, argument("messages[%d].role is missing", k)
		}
		t := text.Message{Role: m.Role, Content: m.Content, Reasoning: m.Reasoning, CallID: m.CallID, Name: m.Name}
		for _, call := range m.Calls {
			t.Calls = append(t.Calls, text.Call{ID: call.ID, Name: call.Function.Name, Arguments: argumentsOf(call.Function.Arguments)})
		}
		list.Messages = append(list.Messages, t)
	}
	return list, nil
}

// argumentsOf returns the arguments of a call as an object, or as the string that they are.
func argumentsOf(data json.RawMessage) json.RawMessage {
	var inside string
	switch {
	case len(data) == 0:
		return json.RawMessage("{}")
	case json.Unmarshal(data, &inside) == nil && json.Valid([]byte(inside)):
		return json.RawMessage(inside)
	}
	return data
}

//export etrun_text_conversation
func etrun_text_conversation(handle C.etrun_text, data *C.char, n C.size_t, sampling *C.etrun_sampling, message **C.char) C.int {
	return withText(handle, message, func(w *writer) error {
		if w.chat == nil {
			return w.noChat
		}
		b, err := bytesOf("json", unsafe.Pointer(data), n)
		if err != nil {
			return err
		}
		c, err := parseConversation(b)
		if err != nil {
			return err
		}
		t := w.chat
		var shown map[int]string
		if len(c.Tools) > 0 {
			t, shown = t.WithTools(), w.marks()
		}
		if err := w.placeMedia(c.Messages); err != nil {
			return err
		}
		tokens, ends, err := w.model.EncodeConversation(t, c)
		if err != nil {
			return err
		}
		return w.start(tokens, ends, shown, sampling)
	})
}

// mark is how models write control tokens.
var mark = regexp.MustCompile(`<[^<>\s]+>|\[/?[A-Z_]+\]`)

// marks are the control tokens in the template, which stand for themselves in calls of tools.
func (w *writer) marks() map[int]string {
	list, tok := make(map[int]string), w.model.Tokenizer()
	for _, name := range mark.FindAllString(w.source, -1) {
		if id, ok := tok.ID(name); ok {
			if b, err := tok.Append(nil, id); err == nil && len(b) == 0 {
				list[id] = name
			}
		}
	}
	return list
}
