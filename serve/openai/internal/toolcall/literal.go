package toolcall

import (
	"strings"

	"github.com/etrun-go/etrun/internal/grammar"
)

// literalArguments reads arguments that are values in another notation than JSON: Python's, or that of Gemma's models, whose strings are
// between marks and whose keys have no quotes.
type literalArguments struct {
	quote  string // around strings; empty for Python's
	equals string // between an argument and its value
	names  []string
	next   int // of an argument without a name, in names

	stage  literalStage
	frames []literalFrame // the brackets that are open, those of the arguments first
	key    string         // of the argument
	inner  string         // the key within an object
	mark   string         // the end of the current string
	text   strings.Builder
	ended  bool            // what could be the end of a string has come
	space  strings.Builder // after it
	json   strings.Builder // of the argument
}

// literalFrame is a bracket that is open.
type literalFrame struct {
	shut   byte
	object bool
	n      int // elements
	schema valueSchema
	kind   valueSchema // of the next value
}

type literalStage int

const (
	beforeLiteralKey literalStage = iota // or the end of an object
	beforeEquals
	beforeLiteral // or the end of a list
	afterLiteral  // in the stages up to here, space is skipped
	inQuotedKey
	inBareKey
	inQuotedLiteral
	inWord
)

// maxLenient bounds brackets in brackets.
const maxLenient = 64

func newLenientReader(f *Format, tools []toolFunction) callReader {
	syntax := func(t *toolFunction) memberSyntax {
		return &literalArguments{quote: f.quote, equals: ":", frames: []literalFrame{{shut: '}', object: true, schema: schemaOf(t.Parameters)}}}
	}
	return &memberReader{staged: staged{end: f.end}, f: f, tools: tools, syntax: syntax}
}

func newPythonReader(f *Format, tools []toolFunction) callReader {
	syntax := func(t *toolFunction) memberSyntax {
		return &literalArguments{equals: "=", names: keysOf(OrNull(t.Parameters), "properties"),
			frames: []literalFrame{{shut: ')', object: true, schema: schemaOf(t.Parameters)}}}
	}
	return &memberReader{staged: staged{end: f.end}, f: f, tools: tools, syntax: syntax}
}

func (r *literalArguments) python() bool { return r.quote == "" }

// top returns the innermost bracket.
func (r *literalArguments) top() *literalFrame { return &r.frames[len(r.frames)-1] }

// member implements memberSyntax.
func (r *literalArguments) member(pending *string) (key, value string, ends bool, err error) {
	for err == nil {
		stage, depth := r.stage, len(r.frames)
		if stage <= afterLiteral {
			if *pending = strings.TrimLeft(*pending, jsonSpace); *pending == "" {
				return "", "", false, errMore
			}
		}
		switch stage {
		case beforeLiteralKey:
			ends, err = r.beforeKey(pending)
		case inQuotedKey, inQuotedLiteral:
			err = r.quoted(pending)
		case inBareKey:
			err = r.bareKey(pending)
		case beforeEquals:
			err = r.beforeEquals(pending)
		case beforeLiteral:
			err = r.beforeValue(pending)
		case inWord:
			err = r.word(pending)
		case afterLiteral:
			ends, err = r.after(pending)
		}
		if ends {
			return "", "", true, nil
		}
		if err == nil && r.stage == afterLiteral && len(r.frames) == 1 && (stage != afterLiteral || depth > 1) {
			return r.key, r.json.String(), false, nil
		}
	}
	return "", "", false, err
}

// closes removes the closing bracket of the innermost frame, and reports whether it was there.
func (r *literalArguments) closes(pending *string) bool {
	if (*pending)[0] != r.top().shut {
		return false
	}
	*pending = (*pending)[1:]
	return true
}

// pop closes a bracket within the arguments.
func (r *literalArguments) pop() {
	shut := byte(']')
	if r.top().object {
		shut = '}'
	}
	r.json.WriteByte(shut)
	r.frames, r.stage = r.frames[:len(r.frames)-1], afterLiteral
}

// beforeKey finds a key, or the end of the object.
func (r *literalArguments) beforeKey(pending *string) (ends bool, err error) {
	if r.closes(pending) {
		if len(r.frames) == 1 {
			return true, nil
		}
		r.pop()
		return false, nil
	}
	if r.python() && len(r.frames) == 1 && strings.IndexByte(`"'[{(`, (*pending)[0]) >= 0 {
		return false, r.positional()
	}
	mark, more := r.opensString(*pending)
	switch {
	case more:
		return false, errMore
	case mark != "":
		*pending, r.stage = (*pending)[len(mark):], inQuotedKey
	default:
		r.stage = inBareKey
	}
	r.mark = mark
	r.text.Reset()
	return false, nil
}

// positional begins a value without a name.
func (r *literalArguments) positional() error {
	if r.next >= len(r.names) {
		return errValue
	}
	r.setKey(r.names[r.next])
	return nil
}

// setKey sets the key of the next value.
func (r *literalArguments) setKey(key string) {
	f := r.top()
	f.kind, r.stage = f.schema.property(key), beforeLiteral
	if len(r.frames) == 1 {
		r.key = key
		r.json.Reset()
		r.next++
		return
	}
	r.separate()
	r.json.WriteString(grammar.Quoted(key) + ": ")
}

// separate begins an element of a bracket within the arguments.
func (r *literalArguments) separate() {
	f := r.top()
	if f.n > 0 {
		r.json.WriteString(", ")
	}
	f.n++
}

// opensString returns the mark with which a string begins, empty for none; more means that the text may end within one.
func (r *literalArguments) opensString(s string) (mark string, more bool) {
	if !r.python() {
		yes, perhaps := begins(s, r.quote)
		if yes {
			return r.quote, false
		}
		return "", perhaps
	}
	if s[0] != '"' && s[0] != '\'' {
		return "", false
	}
	long := strings.Repeat(s[:1], 3)
	if yes, perhaps := begins(s, long); yes || perhaps {
		return long, perhaps
	}
	return s[:1], false
}

// quoted reads a string up to its end.
func (r *literalArguments) quoted(pending *string) error {
	if r.python() {
		if err := r.pythonString(pending); err != nil {
			return err
		}
	} else {
		text, found := cutAt(pending, r.mark, false)
		if r.text.WriteString(text); !found {
			return errMore
		}
	}
	text := r.text.String()
	kind := r.top().kind.kind()
	switch {
	case r.stage == inQuotedKey:
		return r.keyed(text)
	case !r.python() && kind != "":
		r.json.WriteString(scalarJSON(text, kind))
	default:
		r.json.WriteString(grammar.Quoted(text))
	}
	r.stage = afterLiteral
	return nil
}

// keyed keeps a key that was read.
func (r *literalArguments) keyed(key string) error {
	if key = strings.TrimSpace(key); key == "" {
		return errValue
	}
	r.inner, r.stage = key, beforeEquals
	return nil
}

// equal returns what is between keys and values of the innermost object.
func (r *literalArguments) equal() string {
	if len(r.frames) == 1 {
		return r.equals
	}
	return ":"
}

// upTo reads text up to index i, -1 for all of what is there, which may not be its end.
func (r *literalArguments) upTo(i int, pending *string) error {
	if i < 0 {
		r.text.WriteString(*pending)
		*pending = ""
		return errMore
	}
	r.text.WriteString((*pending)[:i])
	*pending = (*pending)[i:]
	return nil
}

// bareKey reads a key without quotes, or an argument of Python without a name.
func (r *literalArguments) bareKey(pending *string) error {
	i := strings.IndexAny(*pending, r.equal()+",)")
	if !r.python() {
		i = strings.IndexByte(*pending, ':')
	}
	if err := r.upTo(i, pending); err != nil {
		return err
	}
	text := r.text.String()
	if strings.HasPrefix(*pending, r.equal()) {
		return r.keyed(text)
	}
	if len(r.frames) > 1 {
		return errValue
	}
	if err := r.positional(); err != nil {
		return err
	}
	r.json.WriteString(pythonWord(text))
	r.stage = afterLiteral
	return nil
}

func (r *literalArguments) beforeEquals(pending *string) error {
	if !strings.HasPrefix(*pending, r.equal()) {
		return errValue
	}
	*pending = (*pending)[1:]
	r.setKey(r.inner)
	return nil
}

// beforeValue finds a value, or the end of a list.
func (r *literalArguments) beforeValue(pending *string) error {
	f := r.top()
	if !f.object && r.closes(pending) {
		r.pop()
		return nil
	}
	mark, more := r.opensString(*pending)
	if more {
		return errMore
	}
	if !f.object {
		r.separate()
	}
	c := (*pending)[0]
	switch {
	case mark != "":
		*pending, r.stage, r.mark = (*pending)[len(mark):], inQuotedLiteral, mark
	case c == '{' || c == '[' || c == '(' && r.python():
		*pending = (*pending)[1:]
		return r.push(c)
	default:
		r.stage = inWord
	}
	r.text.Reset()
	return nil
}

// Push opens a bracket.
func (r *literalArguments) push(c byte) error {
	if len(r.frames) > maxLenient {
		return errValue
	}
	schema := r.top().kind
	f := literalFrame{shut: c + 2, schema: schema, kind: schemaOf(schema.Items)}
	r.stage = beforeLiteral
	switch c {
	case '{':
		f.object, r.stage = true, beforeLiteralKey
	case '(':
		f.shut, c = ')', '['
	}
	r.json.WriteByte(c)
	r.frames = append(r.frames, f)
	return nil
}

// word reads a value without quotes.
func (r *literalArguments) word(pending *string) error {
	i := strings.IndexAny(*pending, ",]})")
	if !r.python() {
		i = strings.IndexAny(*pending, ",]}")
	}
	if err := r.upTo(i, pending); err != nil {
		return err
	}
	if r.python() {
		r.json.WriteString(pythonWord(r.text.String()))
	} else {
		f := r.top()
		r.json.WriteString(scalarJSON(r.text.String(), f.kind.kind()))
	}
	r.stage = afterLiteral
	return nil
}

// after finds the next element, or the end of a bracket.
func (r *literalArguments) after(pending *string) (ends bool, err error) {
	switch {
	case (*pending)[0] == ',':
		*pending = (*pending)[1:]
		if r.stage = beforeLiteral; r.top().object {
			r.stage = beforeLiteralKey
		}
	case !r.closes(pending):
		return false, errValue
	case len(r.frames) == 1:
		return true, nil
	default:
		r.pop()
	}
	return false, nil
}
