package openai

import (
	"encoding/json"
	"fmt"
	"slices"
)

// use returns what the request wants of its tools, nil for nothing.
func (r *chatRequest) use() (*toolUse, error) {
	var list []tool
	if err := json.Unmarshal(orNull(r.Tools), &list); err != nil {
		return nil, refused("tools", "want a list of functions")
	}
	kind, named, err := r.choice()
	if err != nil {
		return nil, err
	}
	if len(list) == 0 && (kind == "required" || named != "") {
		return nil, refused("tool_choice", "without tools")
	}
	if len(list) == 0 || kind == "none" {
		return nil, nil
	}
	u := &toolUse{raw: r.Tools, must: kind == "required" || named != "", single: r.Parallel != nil && !*r.Parallel || named != ""}
	for i, t := range list {
		f := t.Function
		place := fmt.Sprintf("tools[%d]", i)
		switch {
		case t.Type != "function":
			return nil, refused(place+".type", "%s, want function", quote(t.Type))
		case !isToolName(f.Name):
			return nil, refused(place+".function.name", "%s, want 1 to %d letters, digits, - and _", quote(f.Name), maxToolName)
		}
		u.strict = u.strict || f.Strict
		if named == "" || named == f.Name {
			u.tools = append(u.tools, f)
		}
	}
	if len(u.tools) == 0 {
		return nil, refused("tool_choice", "no tool %s", quote(named))
	}
	return u, nil
}

// choice reads tool_choice: a word, or the name of a function.
func (r *chatRequest) choice() (kind, named string, err error) {
	if len(r.Choice) == 0 || string(r.Choice) == "null" {
		return "auto", "", nil
	}
	if json.Unmarshal(r.Choice, &kind) == nil {
		if !slices.Contains([]string{"none", "auto", "required"}, kind) {
			err = refused("tool_choice", "%s, want none, auto, required or a function", quote(kind))
		}
		return kind, "", err
	}
	var f tool
	if json.Unmarshal(r.Choice, &f) != nil || f.Type != "function" || f.Function.Name == "" {
		return "", "", refused("tool_choice", "want none, auto, required or a function with its name")
	}
	return "", f.Function.Name, nil
}
