package openai

import (
	"errors"
	"strings"
)

// memberReader reads one call whose arguments are no JSON, member by member.
type memberReader struct {
	f     *callFormat
	tools []toolFunction
	// head reads the name of the call.
	head func(pending *string) (name string, state callState)
	// next reads a member of the arguments as JSON, or their end.
	next func(pending *string, schema valueSchema) (key, value string, ends bool, err error)

	name   string
	schema valueSchema
	begun  bool // a part of the call was returned
	done   bool // its arguments have ended
	broken bool // with what is no member: the rest of the call is dropped
}

// read implements callReader.
func (r *memberReader) read(pending *string, _ bool) (list []callPart, state callState) {
	if r.name == "" {
		name, state := r.head(pending)
		if name == "" {
			return nil, state
		}
		for _, t := range r.tools {
			if t.Name == name {
				r.name, r.schema = name, schemaOf(t.Parameters)
			}
		}
		if r.name == "" {
			return nil, noCall
		}
	}
	for !r.done {
		key, value, ends, err := r.next(pending, r.schema)
		switch {
		case errors.Is(err, errMore):
			return list, callsGoOn
		case err != nil && !r.begun:
			return nil, noCall
		case err != nil || ends:
			r.done, r.broken = true, err != nil // what is no member ends the arguments
			list = r.part(list, "}")
		default:
			list = r.part(list, quotedPlain(key)+": "+value)
		}
	}
	return r.end(pending, list)
}

// part adds the next part of the arguments, after the name of the call if it is the first one.
func (r *memberReader) part(list []callPart, text string) []callPart {
	switch {
	case !r.begun:
		r.begun = true
		return append(list, callPart{name: r.name}, callPart{args: "{" + text})
	case text != "}":
		text = ", " + text
	}
	return append(list, callPart{args: text})
}

// end removes what follows the arguments.
func (r *memberReader) end(pending *string, list []callPart) ([]callPart, callState) {
	if r.broken {
		if (callEnd{r.f.end}).skip(pending) {
			return list, callsEnd
		}
		return list, callsGoOn
	}
	rest := strings.TrimLeft(*pending, " \n")
	yes, perhaps := begins(rest, r.f.end)
	switch {
	case yes:
		*pending = rest[len(r.f.end):]
	case perhaps:
		return list, callsGoOn
	}
	return list, callsEnd
}

// named reports whether the name of the call is known, although no part of it was returned.
func (r *memberReader) named() bool { return r.name != "" && !r.begun }

// Marks of calls that are written as elements.
const (
	functionBegin  = "<function="
	functionEnd    = "</function>"
	parameterBegin = "<parameter="
	parameterEnd   = "</parameter>"
)

// elementName reads <function=NAME> or the like; a name has no line feed.
func elementName(pending *string, mark string) (name string, state callState) {
	rest := strings.TrimLeft(*pending, " \n")
	yes, perhaps := begins(rest, mark)
	if !yes {
		if perhaps {
			return "", callsGoOn
		}
		return "", noCall
	}
	name, after, found := strings.Cut(rest[len(mark):], ">")
	if !found && len(rest) < 1000 {
		return "", callsGoOn
	}
	if name = strings.TrimSpace(name); !found || name == "" || strings.ContainsRune(name, '\n') {
		return "", noCall
	}
	*pending = after
	return name, callsEnd
}

// nextElement reads <parameter=KEY>VALUE</parameter>, or the end of the function.
func nextElement(pending *string, schema valueSchema) (key, value string, ends bool, err error) {
	rest := strings.TrimLeft(*pending, " \n")
	yes, perhaps := begins(rest, functionEnd)
	switch {
	case yes:
		*pending = rest[len(functionEnd):]
		return "", "", true, nil
	case perhaps:
		return "", "", false, errMore
	}
	inside := rest
	key, state := elementName(&inside, parameterBegin)
	if key == "" {
		if state == callsGoOn {
			return "", "", false, errMore
		}
		return "", "", false, errValue
	}
	n, after := elementEnd(inside)
	if n < 0 {
		return "", "", false, errMore
	}
	raw := strings.TrimSuffix(strings.TrimPrefix(inside[:n], "\n"), "\n")
	property := schema.property(key)
	*pending = inside[after:]
	return key, scalarJSON(raw, property.kind()), false, nil
}

// elementEnd returns the lengths of a value, and of it with the mark of its end: the first one that another parameter or the end of
// the function follows. They are negative if it has not come yet.
func elementEnd(s string) (value, all int) {
	for at := 0; ; {
		i := strings.Index(s[at:], parameterEnd)
		if i < 0 {
			return -1, -1
		}
		n := at + i
		at = n + len(parameterEnd)
		rest := strings.TrimLeft(s[at:], " \n")
		for _, mark := range []string{parameterBegin, functionEnd} {
			if yes, perhaps := begins(rest, mark); yes {
				return n, at
			} else if perhaps {
				return -1, -1
			}
		}
	}
}

// newElementReader returns the reader of a call that is written as elements.
func newElementReader(f *callFormat, tools []toolFunction) callReader {
	head := func(pending *string) (string, callState) { return elementName(pending, functionBegin) }
	return &memberReader{f: f, tools: tools, head: head, next: nextElement}
}

// newLooseReader returns the reader of a call of Gemma's models, such as call:NAME{key:value}.
func newLooseReader(f *callFormat, tools []toolFunction) callReader {
	head := func(pending *string) (string, callState) {
		rest := strings.TrimLeft(*pending, " \n")
		yes, perhaps := begins(rest, f.head)
		name, after, found := strings.Cut(rest, "{")
		switch {
		case yes && found:
			*pending = after
			return strings.TrimSpace(name[len(f.head):]), callsEnd
		case perhaps, yes && len(rest) < 1000:
			return "", callsGoOn
		}
		return "", noCall
	}
	first := true
	next := func(pending *string, schema valueSchema) (key, value string, ends bool, err error) {
		r := &looseReader{s: strings.TrimLeft(*pending, " \n"), quote: f.quote}
		switch {
		case r.s == "":
			return "", "", false, errMore
		case r.s[0] == '}':
			*pending = r.s[1:]
			return "", "", true, nil
		case !first && r.s[0] != ',':
			return "", "", false, errValue
		case !first:
			r.s = r.s[1:]
		}
		if key, err = r.key(); err == nil {
			value, err = r.value(schema.property(key))
		}
		if err == nil {
			if r.space(); r.s == "" {
				return "", "", false, errMore
			}
			*pending, first = r.s, false
		}
		return key, value, false, err
	}
	return &memberReader{f: f, tools: tools, head: head, next: next}
}
