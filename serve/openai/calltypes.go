package openai

import "strings"

// callFormat is how a family of models writes calls of tools. Each call is between open and close. All of them are between begin
// and end; or each of them is, with pad inside the marks, if each is set.
type callFormat struct {
	name     string
	mentions [][]string // in the model's template: all of one list
	reader   func(f *callFormat, tools []toolFunction) callReader
	write    func(w *formWriter, f *callFormat, t *toolFunction) (string, error) // the form of a call, in GBNF

	begin string // empty if the text is calls if it begins with a bracket
	also  string // calls can begin with it, too, without begin
	end   string
	each  bool
	pad   string

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

// formWriter writes the form of a reply with calls as a grammar in GBNF.
type formWriter struct {
	forms   *formMaker
	rules   strings.Builder
	schemas map[string][]byte
	n       int               // of rules with a number
	copied  int               // bytes of schemas with definitions of others
	known   map[string]string // names of rules by what they are
	loosely *looseRules
}

// looseRules are the rules of values of Gemma's models.
type looseRules struct{ value, list, object string }

// pythonTag precedes calls of Llama's models.
const pythonTag = "<|python_tag|>"
