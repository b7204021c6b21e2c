package requests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/toolcall"
)

// Use returns what the request wants of its tools, nil for nothing.
func (r *Chat) Use() (*toolcall.Use, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(toolcall.OrNull(r.Tools), &list); err != nil {
		return nil, fault.Refused("tools", "want a list of functions")
	}
	c, err := r.choice()
	switch {
	case err != nil:
		return nil, err
	case len(list) == 0 && c.must():
		return nil, fault.Refused("tool_choice", "without tools")
	case len(list) == 0 || c.Mode == "none":
		return nil, nil
	}
	u := &toolcall.Use{Raw: r.Tools, Must: c.must(), Single: r.Parallel != nil && !*r.Parallel || c.single}
	var offered [][]byte
	for i, raw := range list {
		t, raw, err := r.tool(fmt.Sprintf("tools[%d]", i), raw)
		switch {
		case err != nil:
			return nil, err
		case t == nil || !c.single && !c.has(t): // the model knows nothing of it
			continue
		}
		offered = append(offered, raw)
		u.Strict = u.Strict || t.Function.Strict
		if c.has(t) {
			u.Tools = append(u.Tools, t.Function)
		}
	}
	switch {
	case len(u.Tools) == 0 && c.single:
		return nil, fault.Refused("tool_choice", "no tool %s", fault.Quote(c.Tools[0].name()))
	case len(u.Tools) == 0 && c.must():
		return nil, fault.Refused("tool_choice", "required, without a function or custom tool that it allows: the server runs no others")
	case len(u.Tools) == 0:
		return nil, nil
	}
	if r.custom || len(offered) < len(list) { // else the request's own spaces stay
		u.Raw = slices.Concat([]byte("["), bytes.Join(offered, []byte(",")), []byte("]"))
	}
	return u, nil
}

// tool reads a tool, and returns it with its JSON for the template: nil if the server does not run such tools.
func (r *Chat) tool(place string, raw json.RawMessage) (*toolcall.Tool, json.RawMessage, error) {
	t := &toolcall.Tool{}
	if err := decodeObject(place, raw, t); err != nil {
		return nil, nil, err
	}
	var err error
	at := place + "." + t.Type
	switch {
	case t.Type == "custom":
		raw, err = t.AsFunction(at)
		r.custom = true
	case t.Type == "function":
	case t.Type == "" || t.Function.Name != "":
		return nil, nil, fault.Refused(place+".type", "%s, want function", fault.Quote(t.Type))
	default:
		if kind := strings.Trim(fault.Quote(t.Type), `"`); !slices.Contains(r.unoffered, kind) {
			r.unoffered = append(r.unoffered, kind)
		}
		return nil, nil, nil
	}
	if err == nil && !toolcall.IsToolName(t.Function.Name) {
		err = toolcall.BadName(at+".name", t.Function.Name)
	}
	return t, raw, err
}

// choice is the value of tool_choice.
type choice struct {
	Mode   string     // none, auto or required
	Tools  []toolName // those that may be called, nil for all
	single bool       // one of its name, beside others
}

// toolName names a tool, as chats or as responses do.
type toolName struct {
	Type, Name       string
	Function, Custom struct{ Name string }
}

func (n *toolName) name() string { return n.Name + n.Function.Name + n.Custom.Name }

// must reports whether a tool must be called.
func (c *choice) must() bool { return c.Mode == "required" }

// has reports whether a tool may be called.
func (c *choice) has(t *toolcall.Tool) bool {
	return c.Tools == nil || slices.ContainsFunc(c.Tools, func(n toolName) bool { return n.Type == t.Type && n.name() == t.Function.Name })
}

// choice reads tool_choice: a word, the name of a tool, or those that may be called.
func (r *Chat) choice() (c choice, err error) {
	if len(r.Choice) == 0 || string(r.Choice) == "null" {
		return choice{Mode: "auto"}, nil
	}
	if json.Unmarshal(r.Choice, &c.Mode) == nil {
		if !slices.Contains([]string{"none", "auto", "required"}, c.Mode) {
			err = fault.Refused("tool_choice", "%s, want none, auto, required or a function", fault.Quote(c.Mode))
		}
		return c, err
	}
	var f struct {
		toolName
		choice
		Allowed choice `json:"allowed_tools"`
	}
	err = json.Unmarshal(r.Choice, &f)
	allowed := choice{f.Mode + f.Allowed.Mode, append(f.Tools, f.Allowed.Tools...), false}
	switch own := f.Type == "function" || f.Type == "custom"; {
	case err == nil && own && f.name() != "":
		return choice{"required", []toolName{f.toolName}, true}, nil
	case err == nil && f.Type == "allowed_tools" && allowed.Tools != nil && (allowed.Mode == "auto" || allowed.must()):
		return allowed, nil
	case err == nil && f.Type != "" && !own && f.Type != "allowed_tools":
		return c, fault.Unsupported("tool_choice", "%s: the server runs no tools of this type; want none, auto, required or a function",
			fault.Quote(f.Type))
	}
	return c, fault.Refused("tool_choice", "want none, auto, required or a function with its name")
}
