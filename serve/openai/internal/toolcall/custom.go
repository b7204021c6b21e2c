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
		Grammar *syntax `json:"grammar"` // in chats
		syntax          // in responses
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
	c, f, of := &t.Custom, &t.Function, ""
	f.Name, f.custom = c.Name, true
	if x := c.Format; x != nil && x.Type != "text" {
		g := x.Grammar
		if g == nil {
			g = &x.syntax
		}
		switch {
		case x.Type != "grammar":
			return nil, fault.Refused(place+".format.type", "%s, want text or grammar", fault.Quote(x.Type))
		case syntaxes[g.Syntax].build == nil:
			return nil, fault.Refused(place+".format.grammar.syntax", "%s, want lark or regex", fault.Quote(g.Syntax))
		}
		f.syntax, f.Strict = g, true
		of = `,"description":` + grammar.Quoted(syntaxes[g.Syntax].text+"\n"+g.Definition)
	}
	f.Parameters = json.RawMessage(`{"type":"object","properties":{"` + inputName + `":{"type":"string"` + of + `}},"required":["` + inputName +
		`"],"additionalProperties":false}`)
	about := ""
	if string(OrNull(c.Description)) != "null" {
		about = `"description":` + string(c.Description) + ","
	}
	return json.RawMessage(`{"type":"function","function":{"name":` + grammar.Quoted(f.Name) + `,` + about + `"parameters":` + string(f.Parameters) +
		`}}`), nil
}

// input returns the form of the input of a tool as JSON.
func (w *formWriter) input(t *toolFunction) (grammar.Part, error) {
	p, err := syntaxes[t.syntax.Syntax].build(w.Builder, t.syntax.Definition)
	if err != nil && !fault.IsUnmade(err) {
		err = fault.Refused("tools", "the grammar of %s: %v", t.Name, err)
	}
	return grammar.Seq(grammar.Text(`"`), p, grammar.Text(`"`)), err
}

// AsArguments returns the input of a call of a custom tool as the arguments of the function.
func AsArguments(input string) string { return `{"` + inputName + `":` + grammar.Quoted(input) + `}` }

// unwrapper reads the input of a custom tool from its arguments as they come. Those that are not the input alone are passed on.
type unwrapper struct {
	pending string
	begun   bool // it is known what comes
	done    bool // it has ended
	as      bool // the arguments are passed on as they are
}

// beforeInput is what precedes the input, but for spaces, in a number of bytes.
const (
	beforeInput = `{"` + inputName + `":"`
	maxBefore   = 64
)

// push returns further text.
func (u *unwrapper) push(args string) (text string) {
	u.pending += args
	if !u.begun {
		start := strings.Map(func(c rune) rune {
			if strings.ContainsRune(jsonSpace, c) {
				return -1
			}
			return c
		}, u.pending[:min(len(u.pending), maxBefore)])
		switch {
		case strings.HasPrefix(start, beforeInput):
			u.pending = strings.SplitAfterN(u.pending, `"`, 4)[3]
		case strings.HasPrefix(beforeInput, start) && len(u.pending) < maxBefore:
			return ""
		default:
			u.as = true
		}
		u.begun = true
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
			high, err := strconv.ParseUint(unit, 16, 16)
			if err == nil && high>>10 == 0xd800>>10 && strings.HasPrefix(`\u`, after[:min(2, len(after))]) {
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
