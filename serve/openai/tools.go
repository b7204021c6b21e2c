package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/etrun-go/etrun"
	"github.com/etrun-go/etrun/internal/grammar"
	"github.com/etrun-go/etrun/text"
)

// Limits on tools.
const (
	maxTools    = 128
	maxToolName = 64
)

// Marks of thoughts in replies.
const (
	thoughtBegin = "<think>"
	thoughtEnd   = "</think>"
)

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
}

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

// callFormat is how a family of models writes calls of tools.
type callFormat struct {
	name     string
	mentions []string // in the model's template
	begin    string   // of the calls; empty if the text is calls if it begins with a bracket
	open     string   // a list of calls begins; empty if each call has begin and end
	close    string
	end      string
	args     string // the member of the arguments
	named    string // what is between the name and the arguments, if a call is no object
}

// callFormats are tried in order: the first one all of whose texts the template has applies.
var callFormats = []callFormat{
	{name: "Mistral", mentions: []string{"[TOOL_CALLS]", "[ARGS]"}, begin: "[TOOL_CALLS]", named: "[ARGS]"},
	{name: "Mistral", mentions: []string{"[TOOL_CALLS]"}, begin: "[TOOL_CALLS]", open: "[", close: "]", args: "arguments"},
	{name: "Phi", mentions: []string{"<|tool_call|>"}, begin: "<|tool_call|>", open: "[", close: "]", end: "<|/tool_call|>",
		args: "arguments"},
	{name: "Hermes", mentions: []string{"<tool_call>"}, begin: "<tool_call>", end: "</tool_call>", args: "arguments"},
	{name: "Llama 3", mentions: []string{"tools", `"parameters"`}, args: "parameters"},
	{name: "JSON", mentions: []string{"tools"}, args: "arguments"},
}

// foreignCalls are texts of templates whose calls have another form.
var foreignCalls = []string{"<function=", "<arg_key>", "<|tool_call>", "<start_function_call>", "<｜tool▁call"}

// formatOf returns the format of a template's calls.
func formatOf(t *text.Template) (*callFormat, error) {
	if !t.Mentions("tools") {
		return nil, noPlace(t, "there is no place for tools; want the template of a model that has one, see --template")
	}
	for _, s := range foreignCalls {
		if t.Mentions(s) {
			return nil, noPlace(t, "its calls in the form "+s)
		}
	}
	for i := range callFormats {
		if !slices.ContainsFunc(callFormats[i].mentions, func(s string) bool { return !t.Mentions(s) }) {
			return &callFormats[i], nil
		}
	}
	return nil, noPlace(t, "there is no place for tools") // cannot happen: the last format has no further condition
}

// noPlace returns the error for tools that a template cannot have.
func noPlace(t *text.Template, why string) error {
	return &requestError{etrun.ErrInput, "tools", "unsupported_parameter",
		fmt.Sprintf("tools: not supported by the chat template %.100q: %s", t.Name(), why)}
}

// object is a call as the format writes it.
func (f *callFormat) object(name string, args grammar.Part) grammar.Part {
	if f.named != "" {
		return grammar.Seq(grammar.Text(name+f.named), args)
	}
	quoted, _ := json.Marshal(name) // cannot fail
	return grammar.Seq(grammar.Text(`{"name": `+string(quoted)+`, "`+f.args+`": `), args, grammar.Text("}"))
}

// calls are one call or several, each with the arguments of its tool.
func (f *callFormat) calls(b *grammar.Builder, u *toolUse) (grammar.Part, error) {
	var list []grammar.Part
	for _, t := range u.tools {
		schema := []byte(t.Parameters)
		if len(schema) == 0 || string(schema) == "null" {
			schema = []byte(`{"type":"object","properties":{},"additionalProperties":false}`)
		}
		args, err := b.Schema(schema)
		if err != nil && !t.Strict {
			args, err = b.Schema([]byte(`{"type":"object"}`))
		}
		if err != nil {
			return nil, refused("tools", "the parameters of %s: %v", t.Name, err)
		}
		list = append(list, f.object(t.Name, args))
	}
	one := b.Rule(grammar.Alt(list...))
	more := 15
	if u.single || f.begin == "" {
		more = 0
	}
	if f.open != "" || f.begin == "" {
		all := grammar.Seq(one, grammar.Repeat(grammar.Seq(grammar.Text(", "), one), 0, more))
		return grammar.Seq(grammar.Text(f.begin+f.open), all, grammar.Text(f.close+f.end)), nil
	}
	space, between := "\n", "\n"
	if f.named != "" {
		space, between = "", ""
	}
	one = b.Rule(grammar.Seq(grammar.Text(f.begin+space), one, grammar.Text(space+f.end)))
	return grammar.Seq(one, grammar.Repeat(grammar.Seq(grammar.Text(between), one), 0, more)), nil
}

// form returns the form of a reply, nil if any text is one. thinks means that it begins within a thought.
func (f *callFormat) form(u *toolUse, thinks bool) (*text.Form, error) {
	if !u.must && !u.strict && !u.single {
		return nil, nil
	}
	g, err := f.grammar(u, thinks)
	return text.NewForm(g), err
}

// grammar returns the grammar of a reply.
func (f *callFormat) grammar(u *toolUse, thinks bool) (*grammar.Grammar, error) {
	b := grammar.NewBuilder()
	calls, err := f.calls(b, u)
	if err != nil {
		return nil, err
	}
	switch {
	case !u.must:
		calls = grammar.Until(f.begin, calls)
	case thinks:
		end := grammar.Seq(grammar.Text(thoughtEnd), grammar.Repeat(grammar.Text("\n"), 0, 2), calls)
		calls = grammar.Through(thoughtEnd, end)
	}
	g, err := b.Build(calls)
	if err != nil {
		return nil, refused("tools", "%v", err)
	}
	return g, nil
}
