package requests

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/etrun-go/etrun/internal/grammar"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/forms"
	"github.com/etrun-go/etrun/serve/openai/internal/toolcall"
	"github.com/etrun-go/etrun/text"
)

// Conversation returns the messages with what the template needs besides, and the use of tools, nil for none.
func (r *Chat) Conversation() (*text.Conversation, *toolcall.Use, error) {
	u, err := r.Use()
	if err != nil {
		return nil, nil, err
	}
	d := &text.Conversation{Messages: make([]text.Message, len(r.Messages)), Continue: r.Continue, Values: r.values()}
	if u != nil {
		d.Tools = u.Raw
	}
	for i := range r.Messages {
		if d.Messages[i], err = r.Messages[i].forTemplate(fmt.Sprintf("messages[%d]", i)); err != nil {
			return nil, nil, err
		}
	}
	return d, u, nil
}

// values are those of the template that are set.
func (r *Chat) values() map[string]json.RawMessage {
	values := make(map[string]json.RawMessage)
	for key, v := range r.Values {
		if string(v) != "null" {
			values[key] = v
		}
	}
	if r.Effort != nil {
		values["reasoning_effort"] = json.RawMessage(grammar.Quoted(*r.Effort))
	}
	return values
}

// forTemplate returns a message at a place of the request as templates read it.
func (m *message) forTemplate(place string) (t text.Message, err error) {
	t.Role, t.Content, t.CallID, t.Name = m.Role, orZero(m.Content).Text, m.CallID, m.Name
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
		return t, fault.Missing(place + ".role")
	case m.Role == "function":
		return t, fault.Refused(place+".role", "function: not supported: want tool")
	case m.Content == nil && !reply: // which may be empty
		return t, fault.Missing(place + ".content")
	case len(m.Calls) > 0 && !reply:
		return t, fault.Refused(place+".tool_calls", "in a message of the role %s, want assistant", fault.Quote(m.Role))
	case t.Reasoning != "" && !reply:
		return t, fault.Refused(place+".reasoning_content", "in a message of the role %s, want assistant", fault.Quote(m.Role))
	case result && m.CallID == "":
		return t, fault.Missing(place + ".tool_call_id")
	case m.CallID != "" && !result:
		return t, fault.Refused(place+".tool_call_id", "in a message of the role %s, want tool", fault.Quote(m.Role))
	}
	for i, c := range m.Calls {
		place, name := fmt.Sprintf("%s.tool_calls[%d]", place, i), c.Function.Name
		if c.Type == "custom" {
			place, name, c.Function.Arguments = place+".custom", c.Custom.Name, toolcall.AsArguments(c.Custom.Input)
		} else {
			place += ".function"
		}
		args := json.RawMessage(strings.TrimSpace(c.Function.Arguments))
		if len(args) == 0 {
			args = json.RawMessage("{}")
		}
		switch {
		case c.Type != "" && c.Type != "function" && c.Type != "custom":
			return t, fault.Refused(strings.TrimSuffix(place, "function")+"type", "%s, want function", fault.Quote(c.Type))
		case !toolcall.IsToolName(name):
			return t, toolcall.BadName(place+".name", name)
		case args[0] != '{' || !json.Valid(args): // a model wrote them: they are rendered as they are
			args = json.RawMessage(grammar.Quoted(c.Function.Arguments))
		}
		t.Calls = append(t.Calls, text.Call{ID: c.ID, Name: name, Arguments: args})
	}
	return t, nil
}

// Encode returns the tokens of the messages, and how the reply ends and is divided. form is that of the request, nil for none: it is
// the one of the text after the thought in which a reply begins.
func (r *Chat) Encode(ctx context.Context, g *Model, d *text.Conversation, u *toolcall.Use, m *forms.Maker, form *text.Form) (e Encoded, err error) {
	if d, e.Parts, err = r.encode(ctx, g.Text, d); err != nil {
		return e, err
	}
	t, with, err := g.templateOf(d, u)
	if err != nil {
		return e, err
	}
	if e.Prompt, e.Ends, err = g.Text.EncodeConversation(t, with); err != nil {
		return e, err
	}
	if r.Continue && u != nil {
		return e, fault.Refused("continue_final_message", "together with tools")
	}
	var own map[string]bool // the marks of calls
	if u != nil {
		own = toolcall.MarksOf([]toolcall.Format{*g.Calls})
	}
	shown := toolcall.Shown(g.Text, t, own)
	if e.Split = toolcall.SplittingOf(t, g.Calls, u, toolcall.Tail(g.Text, e.Prompt, shown)); e.Split == nil {
		return e, nil
	}
	if u == nil && form != nil && !e.Split.Within { // the reply has the form from its beginning, where a mark of thoughts is text
		e.Split = nil
		return e, nil
	}
	e.Shown = shown
	thought := ""
	if e.Split.Within {
		thought = e.Split.Thoughts.End
	}
	switch {
	case u != nil:
		e.FormMember = "tools"
		e.Form, err = e.Split.Format.Form(u, thought, m)
	case form != nil && thought != "":
		e.FormMember = r.formMember
		e.Form, err = m.Make(func(limit text.FormLimit) (*text.Form, error) { return form.After(thought, limit) })
		if err != nil {
			err = fault.OfForm(r.formMember, err)
		}
	}
	return e, err
}

// templateOf returns the template for a conversation, and the conversation with the values that are the template's.
func (g *Model) templateOf(d *text.Conversation, u *toolcall.Use) (t *text.Template, with *text.Conversation, err error) {
	if t = g.Template; t == nil {
		return nil, nil, fault.Refused("messages", "the model has no chat template that can be used, see --template of the server: %v", g.NoChat)
	}
	if u != nil {
		if g.NoCalls != nil {
			return nil, nil, g.NoCalls
		}
		t = t.WithTools()
	}
	own := *d
	t, own.Values, err = valuesOf(t, d.Values)
	return t, &own, err
}

// Render returns the text of the prompt that the messages are.
func (r *Chat) Render(g *Model) (string, error) {
	if len(r.Messages) == 0 {
		return "", fault.Missing("messages")
	}
	d, u, err := r.Conversation()
	if err = cmp.Or(err, r.CheckEnd(), r.TextOnly()); err != nil {
		return "", err
	}
	t, with, err := g.templateOf(d, u)
	if err != nil {
		return "", err
	}
	return g.Text.RenderConversation(t, with)
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
				return nil, nil, fault.Refused(place, "want true or false")
			}
			var err error
			if t, err = t.Thinking(on); err != nil {
				return nil, nil, fault.Refused(place, "%v", err)
			}
		case isVariable(key) && t.Mentions(key):
			rest[key] = v
		case key == "reasoning_effort": // a template without levels thinks as it does, or not at all
			if off, err := t.Thinking(false); err == nil && string(v) == `"none"` && values["enable_thinking"] == nil {
				t = off
			}
		default:
			return nil, nil, fault.Unknown(place, "the chat template %s has no such variable", t.Name())
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
	return toolcall.IsToolName(key)
}
