package toolcall

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/internal/grammar"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
)

// custom is a tool whose input is a text. Templates know functions only: to the model it is one with an argument of this name.
type custom struct {
	Name        string          `json:"name"`
	Description json.RawMessage `json:"description"`
	Format      *struct {
		Type    string  `json:"type"`
		Grammar *syntax `json:"grammar"`
	} `json:"format"`
}

const inputName = "input"

// syntax is the form of a text: a regular expression, or a grammar in the notation of Lark.
type syntax struct {
	Syntax     string `json:"syntax"`
	Definition string `json:"definition"`
}

// syntaxes are the notations, and how a model reads of them.
var syntaxes = map[string]struct {
	build func(b *grammar.Builder, definition string) (grammar.Part, error)
	text  string
}{
	"lark":  {(*grammar.Builder).Lark, "A text of this grammar in Lark:"},
	"regex": {(*grammar.Builder).Expression, "A text that matches this regular expression:"},
}

// AsFunction makes a custom tool, at a place of the request, the function that templates know. It returns that as JSON.
func (t *Tool) AsFunction(place string) (json.RawMessage, error) {
	c, f := &t.Custom, &t.Function
	input := map[string]string{"type": "string"}
	f.Name, f.custom = c.Name, true
	switch {
	case c.Format == nil || c.Format.Type == "text":
	case c.Format.Type != "grammar":
		return nil, fault.Refused(place+".format.type", "%s, want text or grammar", fault.Quote(c.Format.Type))
	case c.Format.Grammar == nil:
		return nil, fault.Missing(place + ".format.grammar")
	case syntaxes[c.Format.Grammar.Syntax].build == nil:
		return nil, fault.Refused(place+".format.grammar.syntax", "%s, want lark or regex", fault.Quote(c.Format.Grammar.Syntax))
	default:
		f.syntax, f.Strict = c.Format.Grammar, true
		input["description"] = syntaxes[f.syntax.Syntax].text + "\n" + f.syntax.Definition
	}
	var err error
	f.Parameters, err = json.Marshal(map[string]any{"type": "object", "properties": map[string]any{inputName: input},
		"required": []string{inputName}, "additionalProperties": false})
	if err != nil { // cannot happen: these are strings
		return nil, err
	}
	offered := map[string]any{"name": f.Name, "parameters": f.Parameters}
	if string(OrNull(c.Description)) != "null" {
		offered["description"] = c.Description
	}
	return json.Marshal(map[string]any{"type": "function", "function": offered})
}

// input returns the form of the input of a tool as JSON.
func (w *formWriter) input(t *toolFunction) (grammar.Part, error) {
	p, err := syntaxes[t.syntax.Syntax].build(w.Builder, t.syntax.Definition)
	if err != nil && !fault.IsUnmade(err) {
		err = fault.Refused("tools", "the grammar of %s: %v", t.Name, err)
	}
	return p, err
}

// AsArguments returns the input of a call of a custom tool as the arguments of the function.
func AsArguments(input string) string { return `{"` + inputName + `":` + Quoted(input) + `}` }

// unwrapper reads the input of a custom tool from its arguments as they come. Those that are not the input alone are passed on.
type unwrapper struct {
	pending string
	begun   bool // the text has
	done    bool // it has ended
	as      bool // the arguments are passed on as they are
}

// beforeInput is what precedes the input, but for spaces.
const beforeInput = `{"` + inputName + `":"`

// push returns further text.
func (u *unwrapper) push(args string) (text string) {
	u.pending += args
	for !u.begun && !u.as { // few bytes
		n, i := 0, 0
		for ; n < len(beforeInput) && i < len(u.pending); i++ {
			if c := u.pending[i]; c == beforeInput[n] {
				n++
			} else if !strings.ContainsRune(jsonSpace, rune(c)) {
				u.as = true
				break
			}
		}
		if u.begun = n == len(beforeInput); u.begun {
			u.pending = u.pending[i:]
		} else if !u.as {
			return ""
		}
	}
	n := len(u.pending)
	if !u.as {
		n = u.characters()
	}
	text, u.pending = u.pending[:n], u.pending[n:]
	if u.done {
		u.pending = ""
	}
	var s string
	if !u.as && json.Unmarshal([]byte(`"`+text+`"`), &s) == nil {
		return s
	}
	return text
}

// characters returns the number of bytes of pending that are characters of a string of JSON as a whole.
func (u *unwrapper) characters() (n int) {
	for n < len(u.pending) && !u.done {
		size := 1
		switch rest := u.pending[n:]; {
		case rest[0] == '"':
			u.done = true
			return n
		case rest[0] == '\\' && (len(rest) == 1 || rest[1] != 'u'):
			size = 2
		case rest[0] == '\\':
			size = 6
			unit, after := rest[2:min(6, len(rest))], rest[min(6, len(rest)):]
			if high, err := strconv.ParseUint(unit, 16, 16); err == nil && high>>10 == 0xd800>>10 && strings.HasPrefix(`\u`, after[:min(2, len(after))]) {
				size = 12 // with its other half
			}
		}
		if n+size > len(u.pending) {
			return n
		}
		n += size
	}
	return n
}
