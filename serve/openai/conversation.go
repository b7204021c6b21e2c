package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/text"
)

// conversation returns the messages with what the template needs besides, and the use of tools, nil for none.
func (r *chatRequest) conversation() (*text.Conversation, *toolUse, error) {
	u, err := r.use()
	if err != nil {
		return nil, nil, err
	}
	d := &text.Conversation{Messages: make([]text.Message, len(r.Messages)), Continue: r.Continue, Values: r.values()}
	if u != nil {
		d.Tools = u.raw
	}
	for i := range r.Messages {
		if d.Messages[i], err = r.Messages[i].forTemplate(fmt.Sprintf("messages[%d]", i)); err != nil {
			return nil, nil, err
		}
	}
	return d, u, nil
}

// values are those of the template that are set.
func (r *chatRequest) values() map[string]json.RawMessage {
	values := make(map[string]json.RawMessage)
	for key, v := range r.Values {
		if string(v) != "null" {
			values[key] = v
		}
	}
	if r.Effort != nil {
		values["reasoning_effort"] = json.RawMessage(quoted(*r.Effort))
	}
	return values
}

// forTemplate returns a message at a place of the request as templates read it.
func (m *message) forTemplate(place string) (t text.Message, err error) {
	t.Role, t.Content, t.CallID, t.Name = m.Role, string(orZero(m.Content)), m.CallID, m.Name
	t.Reasoning = m.Reasoning
	if m.Thoughts != "" && m.Reasoning == "" {
		t.Reasoning = m.Thoughts
	}
	if m.Role == "developer" { // the newer name of system
		t.Role = "system"
	}
	reply, result := m.Role == "assistant", m.Role == "tool"
	switch {
	case m.Role == "":
		return t, missing(place + ".role")
	case m.Role == "function":
		return t, refused(place+".role", "function: not supported: want tool")
	case m.Content == nil && !reply: // which may be empty
		return t, missing(place + ".content")
	case len(m.Calls) > 0 && !reply:
		return t, refused(place+".tool_calls", "in a message of the role %s, want assistant", quote(m.Role))
	case t.Reasoning != "" && !reply:
		return t, refused(place+".reasoning_content", "in a message of the role %s, want assistant", quote(m.Role))
	case result && m.CallID == "":
		return t, missing(place + ".tool_call_id")
	case m.CallID != "" && !result:
		return t, refused(place+".tool_call_id", "in a message of the role %s, want tool", quote(m.Role))
	}
	for i, c := range m.Calls {
		args := json.RawMessage(strings.TrimSpace(c.Function.Arguments))
		place := fmt.Sprintf("%s.tool_calls[%d]", place, i)
		if len(args) == 0 {
			args = json.RawMessage("{}")
		}
		switch {
		case c.Type != "" && c.Type != "function":
			return t, refused(place+".type", "%s, want function", quote(c.Type))
		case !isToolName(c.Function.Name):
			return t, refused(place+".function.name", "%s, want 1 to %d letters, digits, - and _", quote(c.Function.Name), maxToolName)
		case args[0] != '{':
			return t, refused(place+".function.arguments", "%s, want a JSON object as a string", quote(c.Function.Arguments))
		case !json.Valid(args): // a model wrote them: they are rendered as they are
			args = json.RawMessage(quotedPlain(c.Function.Arguments))
		}
		t.Calls = append(t.Calls, text.Call{ID: c.ID, Name: c.Function.Name, Arguments: args})
	}
	return t, nil
}

// encode returns the tokens of the messages, and how the reply ends and is divided. form is that of the request, nil for none: it is
// the one of the text after the thought in which a reply begins.
func (r *chatRequest) encode(g *promptModel, d *text.Conversation, u *toolUse, m *formMaker, form *text.Form) (e encoded, err error) {
	t := g.template
	if t == nil {
		return e, refused("messages", "the model has no chat template that can be used, see --template of the server: %v", g.noChat)
	}
	if u != nil {
		if g.noCalls != nil {
			return e, g.noCalls
		}
		t = t.WithTools()
	}
	with := *d
	if t, with.Values, err = valuesOf(t, d.Values); err != nil {
		return e, err
	}
	if e.prompt, e.ends, err = g.model.EncodeConversation(t, &with); err != nil {
		return e, err
	}
	if r.Continue && u != nil {
		return e, refused("continue_final_message", "together with tools")
	}
	var own map[string]bool // the marks of calls
	if u != nil {
		own = marksOf([]callFormat{*g.calls})
	}
	shown := shownBy(g.model, t, own)
	if e.split = splittingOf(t, g.calls, u, tail(g.model, e.prompt, shown)); e.split == nil {
		return e, nil
	}
	if u == nil && form != nil && !e.split.within { // the reply has the form from its beginning, where a mark of thoughts is text
		e.split = nil
		return e, nil
	}
	e.shown = shown
	thought := ""
	if e.split.within {
		thought = e.split.thoughts.end
	}
	switch {
	case u != nil:
		e.formMember = "tools"
		e.form, err = e.split.format.form(u, thought, m)
	case form != nil && thought != "":
		e.formMember = r.formMember
		e.form, err = m.make(func(limit text.FormLimit) (*text.Form, error) { return form.After(thought, limit) })
		if err != nil {
			err = refusedForm(r.formMember, err)
		}
	}
	return e, err
}

// valuesOf returns the template for the values of a request, and those that are its variables. Others are refused.
func valuesOf(t *text.Template, values map[string]json.RawMessage) (*text.Template, map[string]json.RawMessage, error) {
	rest := make(map[string]json.RawMessage)
	for key, v := range values {
		place := "chat_template_kwargs." + fmt.Sprintf("%.140s", key)
		if key == "reasoning_effort" {
			place = key
		}
		var on bool
		switch {
		case key == "enable_thinking":
			if json.Unmarshal(v, &on) != nil {
				return nil, nil, refused(place, "want true or false")
			}
			var err error
			if t, err = t.Thinking(on); err != nil {
				return nil, nil, refused(place, "%v", err)
			}
		case isVariable(key) && t.Mentions(key):
			rest[key] = v
		case key == "reasoning_effort":
			return nil, nil, &requestError{etrun.ErrInput, place, "unsupported_parameter",
				place + ": not supported: the chat template has no such levels"}
		default:
			return nil, nil, &requestError{etrun.ErrInput, place, "unknown_parameter",
				place + ": the chat template " + t.Name() + " has no such variable"}
		}
	}
	return t, rest, nil
}

// isVariable reports whether a request may set a variable of the template.
func isVariable(key string) bool {
	switch key {
	case "messages", "tools", "add_generation_prompt", "bos_token", "eos_token", "":
		return false
	}
	return isToolName(key)
}
