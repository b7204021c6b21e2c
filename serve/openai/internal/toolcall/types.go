// Package toolcall knows how families of models write calls of tools: it reads them from replies, and prescribes their form.
package toolcall

import (
	"bytes"
	"encoding/json"

	"github.com/etrun-go/etrun/internal/grammar"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
)

// Format is how a family of models writes calls of tools. Each call is between open and close. All of them are between begin
// and end; or each of them is, with pad inside the marks, if each is set.
type Format struct {
	name     string
	mentions [][]string // in the model's template: all of one list
	reader   func(f *Format, tools []toolFunction) callReader
	write    func(w *formWriter, f *Format, t *toolFunction) (grammar.Part, error) // the form of a call

	begin   string // empty if the text is calls if it begins with a bracket
	also    string // calls can begin with it, too, without begin
	end     string
	perCall bool
	pad     string

	open, close string
	between     string // calls

	args  string // the member of the arguments
	head  string // before the name
	named string // between the name and the arguments
	quote string // around strings

	skip     []string      // marks around calls that have no meaning
	number   string        // before the number of a call, behind its name
	elements *elementMarks // of arguments
}

// callPart is a part of a call: its name, with which it begins, or more of its arguments.
type callPart struct{ name, args string }

// callState is how far calls have been read.
type callState int

const (
	callsGoOn callState = iota
	callsEnd
	noCall // the text is none; no part of a call was returned
)

// callReader reads the calls that follow a mark.
type callReader interface {
	// read removes what is known from the beginning of the pending text, and returns what it means. last means that the text ends
	// with it.
	read(pending *string, last bool) ([]callPart, callState)
	// named reports whether the name of a call is known, although no part of it was returned.
	named() bool
}

// pythonTag precedes calls of Llama's models.
const pythonTag = "<|python_tag|>"

// Limits on tools.
const (
	MaxTools    = 128
	maxToolName = 64
)

// thoughtMarks are what thoughts in replies are between.
type thoughtMarks struct{ begin, End string }

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

	custom bool    // its arguments are those of a custom tool
	syntax *syntax // of its input, nil for none
}

// Tool is a tool of a request.
type Tool struct {
	Type     string       `json:"type"`
	Function toolFunction `json:"function"`
	Custom   custom       `json:"custom"`
}

// Use is what a request wants of its tools.
type Use struct {
	Raw    json.RawMessage // as given, for the template
	Tools  []toolFunction  // those that can be called
	Must   bool            // call one
	Single bool            // call one at most
	Strict bool            // arguments must have the form of their schema
	Answer json.RawMessage // the schema of a reply that is no call, nil for any text
}

// Formed reports whether replies have a form.
func (u *Use) Formed() bool { return u.Must || u.Strict || u.Single || u.Answer != nil }

// OrNull returns a value, null for an absent one.
func OrNull(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return []byte("null")
	}
	return raw
}

// BadName is the error of a member with the name of a tool that is none.
func BadName(member, name string) error {
	return fault.Refused(member, "%s, want 1 to %d letters, digits, - and _", fault.Quote(name), maxToolName)
}

// IsToolName reports whether a text can be the name of a tool.
func IsToolName(s string) bool {
	return s != "" && len(s) <= maxToolName && !bytes.ContainsFunc([]byte(s), func(r rune) bool {
		return r != '-' && r != '_' && !('a' <= r && r <= 'z') && !('A' <= r && r <= 'Z') && !('0' <= r && r <= '9')
	})
}
