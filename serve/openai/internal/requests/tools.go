package requests

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/toolcall"
)

// Use returns what the request wants of its tools, nil for nothing.
func (r *Chat) Use() (*toolcall.Use, error) {
	var list []toolcall.Tool
	if err := json.Unmarshal(toolcall.OrNull(r.Tools), &list); err != nil {
		return nil, fault.Refused("tools", "want a list of functions")
	}
	kind, named, err := r.choice()
	if err != nil {
		return nil, err
	}
	if len(list) == 0 && (kind == "required" || named != "") {
		return nil, fault.Refused("tool_choice", "without tools")
	}
	if len(list) == 0 || kind == "none" {
		return nil, nil
	}
	u := &toolcall.Use{Raw: r.Tools, Must: kind == "required" || named != "", Single: r.Parallel != nil && !*r.Parallel || named != ""}
	for i, t := range list {
		f := t.Function
		place := fmt.Sprintf("tools[%d]", i)
		switch {
		case t.Type != "function":
			return nil, fault.Refused(place+".type", "%s, want function", fault.Quote(t.Type))
		case !toolcall.IsToolName(f.Name):
			return nil, toolcall.BadName(place+".function.name", f.Name)
		}
		u.Strict = u.Strict || f.Strict
		if named == "" || named == f.Name {
			u.Tools = append(u.Tools, f)
		}
	}
	if len(u.Tools) == 0 {
		return nil, fault.Refused("tool_choice", "no tool %s", fault.Quote(named))
	}
	return u, nil
}

// choice reads tool_choice: a word, or the name of a function.
func (r *Chat) choice() (kind, named string, err error) {
	if len(r.Choice) == 0 || string(r.Choice) == "null" {
		return "auto", "", nil
	}
	if json.Unmarshal(r.Choice, &kind) == nil {
		if !slices.Contains([]string{"none", "auto", "required"}, kind) {
			err = fault.Refused("tool_choice", "%s, want none, auto, required or a function", fault.Quote(kind))
		}
		return kind, "", err
	}
	var f toolcall.Tool
	if json.Unmarshal(r.Choice, &f) != nil || f.Type != "function" || f.Function.Name == "" {
		return "", "", fault.Refused("tool_choice", "want none, auto, required or a function with its name")
	}
	return "", f.Function.Name, nil
}
