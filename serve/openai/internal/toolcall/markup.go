package toolcall

import (
	"errors"
	"strings"

	"github.com/etrun-go/etrun/internal/grammar"
)

// errMore reports that a text ends within what is read; errValue, that it is none.
var (
	errMore  = errors.New("more is needed")
	errValue = errors.New("no value")
)

// memberSyntax reads the arguments of a call that are no JSON, member by member.
type memberSyntax interface {
	// member reads a member as JSON, or the end of the arguments. It keeps what it has read of one: errMore.
	member(pending *string) (key, value string, ends bool, err error)
}

// memberReader reads calls whose arguments are no JSON, member by member.
type memberReader struct {
	staged
	f      *Format
	tools  []toolFunction
	syntax func(t *toolFunction) memberSyntax

	name  string
	args  memberSyntax
	begun bool // a part of the current call was returned
}

// The stages of a memberReader.
const (
	inName = iota
	inMembers
)

// read implements callReader.
func (r *memberReader) read(pending *string, last bool) (list []callPart, state callState) {
	return r.run(pending, last, r.next)
}

func (r *memberReader) next(pending *string, _ bool) ([]callPart, callState) {
	if r.stage == inName {
		return nil, r.head(pending)
	}
	key, value, ends, err := r.args.member(pending)
	switch {
	case errors.Is(err, errMore):
		return nil, callsGoOn
	case err != nil && !r.begun:
		return nil, noCall
	case err != nil: // what is no member ends the arguments
		r.stage = dropping
	case ends:
		r.stage = inName
	default:
		return r.part(grammar.Quoted(key) + ": " + value), callsGoOn
	}
	return r.part("}"), callsGoOn
}

// head reads the name of the next call, or the end of calls.
func (r *memberReader) head(pending *string) callState {
	list := r.f.open == "["
	between := " \n"
	if list {
		between = " \n\t\r,[]"
	}
	*pending = strings.TrimLeft(*pending, between)
	for _, mark := range append(r.f.skip, r.f.end) {
		yes, perhaps := begins(*pending, mark)
		switch {
		case yes:
			if *pending = (*pending)[len(mark):]; mark == r.f.end && r.any {
				return callsEnd
			} else if mark == r.f.end {
				return noCall
			}
			return callsGoOn
		case perhaps:
			return callsGoOn
		}
	}
	name, rest, more := r.f.nameIn(*pending)
	switch {
	case more:
		return callsGoOn
	case name == "" && r.any && !list:
		return callsEnd
	}
	for i := range r.tools {
		if t := &r.tools[i]; t.Name == name && name != "" {
			r.args = r.syntax(t)
			*pending, r.name, r.begun, r.stage = rest, name, false, inMembers
			return callsGoOn
		}
	}
	return noCall
}

// nameIn returns the name of a call with which a text begins, and the text after it; more means that the text may end within one.
func (f *Format) nameIn(s string) (name, rest string, more bool) {
	yes, perhaps := begins(s, f.head)
	if !yes && f.head != "" {
		return "", "", perhaps
	}
	s = s[len(f.head):]
	n := strings.IndexFunc(s, func(c rune) bool { return !IsToolName(string(c)) })
	if n < 0 {
		return "", "", len(s) <= maxToolName
	}
	yes, perhaps = begins(s[n:], f.named)
	if n == 0 || !yes && f.named != "" {
		return "", "", n > 0 && perhaps
	}
	return s[:n], s[n+len(f.named):], false
}

// part returns the next part of the arguments, after the name of the call if it is the first one.
func (r *memberReader) part(text string) []callPart {
	switch {
	case !r.begun:
		r.begun, r.any = true, true
		return []callPart{{name: r.name}, {args: "{" + text}}
	case text != "}":
		text = ", " + text
	}
	return []callPart{{args: text}}
}

// named reports whether the name of a call is known, although no part of it was returned.
func (r *memberReader) named() bool { return r.stage == inMembers && !r.begun }

// elementMarks are the marks of arguments that are elements with their values as text.
type elementMarks struct {
	key   string // before a key
	keyed string // after it
	value string // before a value, after space; empty if it follows the key
	opens string // between a key and its value, in forms
	shut  string // after a value
	end   string // after the arguments; empty if the end of the call follows
}

// elementArguments reads arguments that are elements.
type elementArguments struct {
	*elementMarks
	marks  []string // what can follow a value
	schema valueSchema

	stage elementStage
	key   strings.Builder
	value strings.Builder
	space strings.Builder // after the mark of an end
}

type elementStage int

const (
	betweenElements elementStage = iota
	inElementKey
	beforeElementValue
	inElementValue
	afterElementValue
)

func newElementReader(f *Format, tools []toolFunction) callReader {
	syntax := func(t *toolFunction) memberSyntax {
		marks := []string{f.elements.key, f.end, f.elements.end}[:2+min(len(f.elements.end), 1)]
		return &elementArguments{elementMarks: f.elements, marks: marks, schema: schemaOf(t.Parameters)}
	}
	return &memberReader{staged: staged{end: f.end}, f: f, tools: tools, syntax: syntax}
}

// maxElementKey bounds the key of an element, and the mark after it.
const maxElementKey = 1000

// member implements memberSyntax.
func (r *elementArguments) member(pending *string) (key, value string, ends bool, err error) {
	for {
		switch r.stage {
		case betweenElements:
			ends, err = r.between(pending)
		case inElementKey:
			err = r.inKey(pending)
		case beforeElementValue:
			err = r.open(pending)
		case inElementValue:
			err = r.inValue(pending)
		case afterElementValue:
			var done bool
			if done, err = r.after(pending); done {
				key, value = r.result()
				return key, value, false, nil
			}
		}
		if ends || err != nil {
			return "", "", ends, err
		}
	}
}

// between finds the next element, or the end.
func (r *elementArguments) between(pending *string) (ends bool, err error) {
	*pending = strings.TrimLeft(*pending, " \n")
	for _, mark := range r.marks {
		yes, perhaps := begins(*pending, mark)
		switch {
		case perhaps:
			return false, errMore
		case yes && mark == r.elementMarks.key:
			*pending, r.stage = (*pending)[len(mark):], inElementKey
			r.key.Reset()
			return false, nil
		case yes && mark == r.end:
			*pending = (*pending)[len(mark):]
			return true, nil
		case yes: // the end of the call
			return true, nil
		}
	}
	return false, errValue
}

// inKey reads a key, which is on one line.
func (r *elementArguments) inKey(pending *string) error {
	line := *pending
	most := maxElementKey - r.key.Len()
	if i := strings.IndexByte(line, '\n'); i >= 0 {
		most = min(most, i)
	}
	broken := len(line) > most
	line = line[:min(most, len(line))]
	if key, rest, found := strings.Cut(line, r.keyed); found {
		r.key.WriteString(key)
		*pending, r.stage = (*pending)[len(line)-len(rest):], beforeElementValue
		return nil
	}
	if broken {
		*pending = (*pending)[len(line):] // as if it had come byte by byte
		return errValue
	}
	n := len(line) - couldBegin(line, r.keyed, false)
	r.key.WriteString(line[:n])
	*pending = (*pending)[n:]
	return errMore
}

// open finds the beginning of the value.
func (r *elementArguments) open(pending *string) error {
	if r.elementMarks.value != "" {
		*pending = strings.TrimLeft(*pending, " \n")
		yes, perhaps := begins(*pending, r.elementMarks.value)
		if !yes && perhaps {
			return errMore
		} else if !yes {
			return errValue
		}
		*pending = (*pending)[len(r.elementMarks.value):]
	}
	r.stage = inElementValue
	r.value.Reset()
	return nil
}

func (r *elementArguments) inValue(pending *string) error {
	text, found := cutAt(pending, r.shut, false)
	r.value.WriteString(text)
	if !found {
		return errMore
	}
	r.stage = afterElementValue
	r.space.Reset()
	return nil
}

// after reports whether the value has ended: its end is the first mark that another element or the end of the call follows.
func (r *elementArguments) after(pending *string) (done bool, err error) {
	rest := strings.TrimLeft(*pending, " \n")
	r.space.WriteString((*pending)[:len(*pending)-len(rest)])
	*pending = rest
	for _, mark := range r.marks {
		if yes, perhaps := begins(rest, mark); yes {
			r.stage = betweenElements
			return true, nil
		} else if perhaps {
			return false, errMore
		}
	}
	r.value.WriteString(r.shut)
	r.value.WriteString(r.space.String())
	r.stage = inElementValue
	return false, nil
}

// result returns the member that was read.
func (r *elementArguments) result() (key, value string) {
	key = strings.TrimSpace(r.key.String())
	property := r.schema.property(key)
	return key, scalarJSON(strings.TrimSuffix(strings.TrimPrefix(r.value.String(), "\n"), "\n"), property.kind())
}
