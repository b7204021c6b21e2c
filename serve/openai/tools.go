package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Limits on tools.
const (
	maxTools    = 128
	maxToolName = 64
)

// thoughtMarks are what thoughts in replies are between.
type thoughtMarks struct{ begin, end string }

// thoughtForms are the marks of the families of models: those apply whose end the template has.
var thoughtForms = []thoughtMarks{
	{"<think>", "</think>"},
	{"<|channel>thought", "<channel|>"}, // Gemma 4
	{"[THINK]", "[/THINK]"},             // Magistral
	{"<seed:think>", "</seed:think>"},
	{"<|START_THINKING|>", "<|END_THINKING|>"}, // Command R7B and A
}

// toolFunction is a function that the model can call.
type toolFunction struct {
	Name       string          `json:"name"`
	Parameters json.RawMessage `json:"parameters"`
	Strict     bool            `json:"strict"`
}

// tool is a tool of a request.
type tool struct {
	Type     string       `json:"type"`
	Function toolFunction `json:"function"`
}

// toolUse is what a request wants of its tools.
type toolUse struct {
	raw    json.RawMessage // as given, for the template
	tools  []toolFunction  // those that can be called
	must   bool            // call one
	single bool            // call one at most
	strict bool            // arguments must have the form of their schema
	answer json.RawMessage // the schema of a reply that is no call, nil for any text
}

// formed reports whether replies have a form.
func (u *toolUse) formed() bool { return u.must || u.strict || u.single || u.answer != nil }

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

// orNull returns a value, null for an absent one.
func orNull(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return []byte("null")
	}
	return raw
}

func isToolName(s string) bool {
	return s != "" && len(s) <= maxToolName && !bytes.ContainsFunc([]byte(s), func(r rune) bool {
		return r != '-' && r != '_' && !('a' <= r && r <= 'z') && !('A' <= r && r <= 'Z') && !('0' <= r && r <= '9')
	})
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
