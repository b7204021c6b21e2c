package openai

import (
	"encoding/json"
	"strings"
)

// known reports whether a call can be one of a tool.
type known func(name string) bool

// callEnd is the rest of calls after the last argument, up to a mark.
type callEnd struct{ mark string }

// skip removes the text up to the mark, and the mark. Without a mark nothing follows.
func (c callEnd) skip(pending *string) bool {
	if c.mark == "" {
		return true
	}
	_, found := cutAt(pending, c.mark, false)
	return found
}

// cutAt removes the text before a mark, and the mark. Without it, what may be its beginning stays pending.
func cutAt(pending *string, mark string, last bool) (text string, found bool) {
	s := *pending
	if i := strings.Index(s, mark); i >= 0 {
		*pending = s[i+len(mark):]
		return s[:i], true
	}
	n := len(s) - couldBegin(s, mark, last)
	*pending = s[n:]
	return s[:n], false
}

// couldBegin returns how many bytes at the end of a text could be the beginning of a mark, when more of it comes.
func couldBegin(s, mark string, last bool) int {
	for k := min(len(mark)-1, len(s)); k > 0 && !last; k-- {
		if strings.HasSuffix(s, mark[:k]) {
			return k
		}
	}
	return 0
}

// begins reports whether a text begins with a mark, or could when more of it comes.
func begins(s, mark string) (yes, perhaps bool) {
	return mark != "" && strings.HasPrefix(s, mark), len(s) < len(mark) && strings.HasPrefix(mark, s)
}

// argumentsReader passes on arguments that are JSON as they come.
type argumentsReader struct {
	scan   scanner
	broken bool // what comes is no JSON: it is passed on up to the end
}

// read returns arguments, and whether they end.
func (a *argumentsReader) read(pending *string, end string) (part string, state scanState) {
	if !a.broken {
		n, state := a.scan.scan(*pending)
		part, *pending = (*pending)[:n], (*pending)[n:]
		if state != valueBroken {
			return part, state
		}
		a.broken = true
	}
	if end == "" {
		part, *pending = part+*pending, ""
		return part, valueGoesOn
	}
	more, found := cutAt(pending, end, false)
	if part += more; found {
		return part, valueBroken
	}
	return part, valueGoesOn
}

// objectReader reads calls that are JSON objects with a name and arguments: one, several, or a list of them.
type objectReader struct {
	end   string // the mark after the calls
	known known

	stage objectStage
	key   string
	value strings.Builder // of a member other than arguments that are passed on
	scan  scanner
	args  argumentsReader
	any   bool   // a call was returned
	open  bool   // the current one was
	name  string // of the current one, empty if it is not known
	held  string // arguments that come before the name
}

type objectStage int

const (
	betweenObjects objectStage = iota
	betweenMembers
	inValue
	inArguments
	afterObjects // what follows is dropped
)

// read implements callReader.
func (r *objectReader) read(pending *string, last bool) (list []callPart, state callState) {
	for {
		before, stage := len(*pending), r.stage
		parts, state := r.next(pending, last)
		list = append(list, parts...)
		if state == noCall && (r.any || len(list) > 0) {
			r.stage, state = afterObjects, callsGoOn
		}
		if state != callsGoOn || before == len(*pending) && stage == r.stage {
			return list, state
		}
	}
}

func (r *objectReader) next(pending *string, last bool) ([]callPart, callState) {
	switch r.stage {
	case betweenObjects:
		return nil, r.between(pending)
	case betweenMembers:
		return r.member(pending)
	case inValue:
		return r.inValue(pending)
	case inArguments:
		part, state := r.args.read(pending, r.end)
		if state == valueEnds {
			r.stage = betweenMembers
		}
		if part == "" && state != valueBroken {
			return nil, callsGoOn
		}
		if state == valueBroken {
			return []callPart{{args: part}}, callsEnd
		}
		return []callPart{{args: part}}, callsGoOn
	}
	if (callEnd{r.end}).skip(pending) {
		return nil, callsEnd
	}
	return nil, callsGoOn
}

// fence surrounds a block of code.
const fence = "```"

// between finds the next object, or the end.
func (r *objectReader) between(pending *string) callState {
	*pending = strings.TrimLeft(*pending, " \n\t\r;,[]")
	for _, mark := range []string{r.end, pythonTag, fence} {
		yes, perhaps := begins(*pending, mark)
		switch {
		case perhaps:
			return callsGoOn
		case !yes:
		case mark == r.end:
			*pending = (*pending)[len(mark):]
			if !r.any {
				return noCall
			}
			return callsEnd
		case mark == fence && !r.any: // a line that names a language
			if i := strings.IndexByte(*pending, '\n'); i >= 0 {
				*pending = (*pending)[i+1:]
			}
			return callsGoOn
		default:
			*pending = (*pending)[len(mark):]
			return callsGoOn
		}
	}
	if *pending == "" {
		return callsGoOn
	}
	if (*pending)[0] != '{' {
		return noCall
	}
	*pending = (*pending)[1:]
	r.stage, r.open, r.name, r.held = betweenMembers, false, "", ""
	return callsGoOn
}

// member reads the name of a member, or the end of the object.
func (r *objectReader) member(pending *string) ([]callPart, callState) {
	rest := strings.TrimLeft(*pending, " \n\t\r,")
	if rest == "" {
		return nil, callsGoOn
	}
	if rest[0] == '}' {
		*pending, r.stage = rest[1:], betweenObjects
		return r.complete()
	}
	var s scanner
	n, state := s.scan(rest)
	value := ""
	if state == valueEnds {
		value = strings.TrimLeft(rest[n:], " \n\t\r")
	}
	switch {
	case rest[0] != '"' || state == valueBroken:
		return nil, noCall
	case value == "" || strings.TrimLeft(value[1:], " \n\t\r") == "" && value[0] == ':':
		return nil, callsGoOn // until the value begins
	case value[0] != ':' || json.Unmarshal([]byte(rest[:n]), &r.key) != nil:
		return nil, noCall
	}
	*pending = strings.TrimLeft(value[1:], " \n\t\r")
	if r.isArguments() && r.name != "" && !r.open && (*pending)[0] == '{' {
		r.stage, r.args, r.open, r.any = inArguments, argumentsReader{}, true, true
		return []callPart{{name: r.name}}, callsGoOn
	}
	r.stage, r.scan = inValue, scanner{}
	r.value.Reset()
	return nil, callsGoOn
}

func (r *objectReader) isArguments() bool { return r.key == "arguments" || r.key == "parameters" }

// inValue keeps the value of a member until it ends.
func (r *objectReader) inValue(pending *string) ([]callPart, callState) {
	n, state := r.scan.scan(*pending)
	r.value.WriteString((*pending)[:n])
	*pending = (*pending)[n:]
	if state == valueBroken {
		return nil, noCall
	}
	if state == valueGoesOn {
		return nil, callsGoOn
	}
	r.stage = betweenMembers
	value := r.value.String()
	switch {
	case r.key == "name" && (json.Unmarshal([]byte(value), &r.name) != nil || !r.known(r.name)):
		return nil, noCall
	case r.isArguments():
		if json.Unmarshal([]byte(value), &r.held) != nil { // else they are JSON in a string
			r.held = value
		}
		if r.held = strings.TrimSpace(r.held); r.held != "" && (r.held[0] != '{' || !json.Valid([]byte(r.held))) {
			return nil, noCall
		}
	}
	return nil, callsGoOn
}

// complete ends an object.
func (r *objectReader) complete() ([]callPart, callState) {
	switch {
	case r.open:
		return nil, callsGoOn
	case r.name == "":
		return nil, noCall
	case r.held == "":
		r.held = "{}"
	}
	r.any = true
	return []callPart{{name: r.name}, {args: r.held}}, callsGoOn
}

// named reports whether the name of a call is known, although no part of it was returned.
func (r *objectReader) named() bool { return r.name != "" }

// headReader reads calls whose names precede their arguments, which are JSON.
type headReader struct {
	f     *callFormat
	known known

	stage headStage
	args  argumentsReader
	any   bool
}

type headStage int

const (
	inHead headStage = iota
	beforeArguments
	inHeadArguments
	afterArguments
	afterCalls
)

// read implements callReader.
func (r *headReader) read(pending *string, last bool) (list []callPart, state callState) {
	for {
		before, stage := len(*pending), r.stage
		parts, state := r.next(pending, last)
		list = append(list, parts...)
		if state == noCall && (r.any || len(list) > 0) {
			r.stage, state = afterCalls, callsGoOn
		}
		if state != callsGoOn || before == len(*pending) && stage == r.stage {
			return list, state
		}
	}
}

func (r *headReader) next(pending *string, last bool) ([]callPart, callState) {
	switch r.stage {
	case inHead:
		return r.head(pending)
	case beforeArguments:
		if *pending = strings.TrimLeft(*pending, " \n"); *pending == "" && !last {
			return nil, callsGoOn
		}
		r.stage, r.args = inHeadArguments, argumentsReader{}
		if *pending == "" || (*pending)[0] != '{' { // a call without arguments
			r.stage = afterArguments
			return []callPart{{args: "{}"}}, callsGoOn
		}
		return nil, callsGoOn
	case inHeadArguments:
		part, state := r.args.read(pending, r.f.close)
		switch {
		case state == valueBroken: // up to the end of the call
			r.stage = inHead
		case state == valueEnds:
			r.stage = afterArguments
		}
		if part == "" {
			return nil, callsGoOn
		}
		return []callPart{{args: part}}, callsGoOn
	case afterArguments:
		if r.f.close == "" {
			return nil, callsEnd
		}
		if _, found := cutAt(pending, r.f.close, false); found {
			r.stage = inHead
		}
		return nil, callsGoOn
	}
	if (callEnd{r.f.end}).skip(pending) {
		return nil, callsEnd
	}
	return nil, callsGoOn
}

// head reads the name of a call.
func (r *headReader) head(pending *string) ([]callPart, callState) {
	rest := strings.TrimLeft(*pending, " \n")
	ends, perhaps := begins(rest, r.f.end)
	switch {
	case ends && r.any:
		*pending = rest[len(r.f.end):]
		return nil, callsEnd
	case perhaps && rest != "":
		return nil, callsGoOn
	}
	opens, perhaps := begins(rest, r.f.open)
	switch {
	case perhaps:
		return nil, callsGoOn
	case !opens && r.f.open != "":
		return nil, noCall
	}
	name, args, found := strings.Cut(rest[len(r.f.open):], r.f.named)
	if !found {
		if len(rest) > len(r.f.open)+len(r.f.head)+maxToolName+64 {
			return nil, noCall
		}
		return nil, callsGoOn
	}
	name, _, _ = strings.Cut(strings.TrimPrefix(name, r.f.head), "[CALL_ID]")
	if name = strings.TrimSpace(name); !r.known(name) {
		return nil, noCall
	}
	*pending, r.stage, r.any = args, beforeArguments, true
	return []callPart{{name: name}}, callsGoOn
}

// named is false: a name that is known was returned.
func (r *headReader) named() bool { return false }
