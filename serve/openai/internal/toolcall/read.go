package toolcall

import (
	"encoding/json"
	"strings"
)

// known reports whether a call can be one of a tool.
type known func(name string) bool

// staged is what readers of calls have in common: they go from stage to stage. They keep what they have read of an unfinished name or value
// themselves, and leave no more pending than the beginning of a mark: otherwise the time for a long text in small parts is quadratic.
type staged struct {
	stage int
	any   bool   // a call was returned
	end   string // the mark after the calls, empty if none follows
}

// dropping is the stage in which the text up to the end of calls is dropped.
const dropping = -1

// run reads stage by stage. What is no call after others is dropped.
func (s *staged) run(pending *string, last bool, next func(pending *string, last bool) ([]callPart, callState)) (
	list []callPart, state callState) {
	for {
		if s.stage == dropping {
			if s.end == "" {
				return list, callsEnd
			}
			if _, found := cutAt(pending, s.end, false); found {
				return list, callsEnd
			}
			return list, callsGoOn
		}
		before, stage := len(*pending), s.stage
		parts, state := next(pending, last)
		list = append(list, parts...)
		if state == noCall && (s.any || len(list) > 0) {
			s.stage = dropping
			continue
		}
		if state != callsGoOn || before == len(*pending) && stage == s.stage && len(parts) == 0 {
			return list, state
		}
	}
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
		part, n, state := a.scan.scan(*pending)
		if *pending = (*pending)[n:]; state != valueBroken {
			return part, state
		}
		a.broken = true
		rest, state := a.read(pending, end)
		return part + rest, state
	}
	if end == "" {
		part, *pending = *pending, ""
		return part, valueGoesOn
	}
	part, found := cutAt(pending, end, false)
	if found {
		return part, valueBroken
	}
	return part, valueGoesOn
}

// objectReader reads calls that are JSON objects with a name and arguments: one, several, or a list of them.
type objectReader struct {
	staged
	known known

	key     string
	value   strings.Builder // of a member other than arguments that are passed on, or of a key
	scan    scanner
	args    argumentsReader
	open    bool   // a part of the current call was returned
	name    string // of the current one, empty if it is not known
	pending string // arguments that come before the name
}

// The stages of an objectReader.
const (
	betweenObjects = iota
	betweenMembers
	inKey
	beforeColon
	beforeValue
	inValue
	inArguments
)

// read implements callReader.
func (r *objectReader) read(pending *string, last bool) (list []callPart, state callState) {
	return r.run(pending, last, r.next)
}

func (r *objectReader) next(pending *string, _ bool) ([]callPart, callState) {
	switch r.stage {
	case betweenObjects:
		return nil, r.between(pending)
	case betweenMembers:
		return r.member(pending)
	case inKey:
		return nil, r.inKey(pending)
	case beforeColon, beforeValue:
		return r.afterKey(pending)
	case inValue:
		return nil, r.inValue(pending)
	}
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

// jsonSpace is what can be between the parts of JSON.
const jsonSpace = " \n\t\r"

// fence begins and ends a block of code.
const fence = "```"

// between finds the next object, or the end.
func (r *objectReader) between(pending *string) callState {
	*pending = strings.TrimLeft(*pending, jsonSpace+";,[]")
	for _, mark := range append([]string{r.end, fence}, pythonMarks...) {
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
			i := strings.IndexByte((*pending)[:min(maxLanguage, len(*pending))], '\n')
			if i < 0 && len(*pending) >= maxLanguage {
				return noCall
			}
			*pending = (*pending)[i+1:]
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
	r.stage, r.open, r.name, r.pending = betweenMembers, false, "", ""
	return callsGoOn
}

// maxLanguage bounds the first line of a block of code.
const maxLanguage = 64

// member finds the name of a member, or the end of the object.
func (r *objectReader) member(pending *string) ([]callPart, callState) {
	*pending = strings.TrimLeft(*pending, jsonSpace+",")
	switch {
	case *pending == "":
		return nil, callsGoOn
	case (*pending)[0] == '}':
		*pending, r.stage = (*pending)[1:], betweenObjects
		return r.complete()
	case (*pending)[0] != '"':
		return nil, noCall
	}
	r.stage, r.scan = inKey, scanner{}
	r.value.Reset()
	return nil, callsGoOn
}

// scanned keeps a value until it ends.
func (r *objectReader) scanned(pending *string) scanState {
	value, n, state := r.scan.scan(*pending)
	r.value.WriteString(value)
	*pending = (*pending)[n:]
	return state
}

// inKey reads the name of a member.
func (r *objectReader) inKey(pending *string) callState {
	if state := r.scanned(pending); state != valueEnds {
		return callsGoOn
	}
	r.stage = beforeColon
	if json.Unmarshal([]byte(r.value.String()), &r.key) != nil {
		return noCall
	}
	return callsGoOn
}

// afterKey finds the value of a member.
func (r *objectReader) afterKey(pending *string) ([]callPart, callState) {
	if *pending = strings.TrimLeft(*pending, jsonSpace); *pending == "" {
		return nil, callsGoOn
	}
	if r.stage == beforeColon {
		if (*pending)[0] != ':' {
			return nil, noCall
		}
		*pending, r.stage = (*pending)[1:], beforeValue
		return nil, callsGoOn
	}
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
func (r *objectReader) inValue(pending *string) callState {
	switch r.scanned(pending) {
	case valueBroken:
		return noCall
	case valueGoesOn:
		return callsGoOn
	}
	r.stage = betweenMembers
	value := r.value.String()
	switch {
	case (r.key == "name" || r.key == "tool_name") && (json.Unmarshal([]byte(value), &r.name) != nil || !r.known(r.name)):
		return noCall
	case r.isArguments():
		if json.Unmarshal([]byte(value), &r.pending) != nil { // else they are JSON in a string
			r.pending = value
		}
		if r.pending = strings.TrimSpace(r.pending); r.pending != "" && (r.pending[0] != '{' || !json.Valid([]byte(r.pending))) {
			return noCall
		}
	}
	return callsGoOn
}

// complete ends an object.
func (r *objectReader) complete() ([]callPart, callState) {
	switch {
	case r.open:
		return nil, callsGoOn
	case r.name == "":
		return nil, noCall
	case r.pending == "":
		r.pending = "{}"
	}
	r.any = true
	return []callPart{{name: r.name}, {args: r.pending}}, callsGoOn
}

// named reports whether the name of a call is known, although no part of it was returned.
func (r *objectReader) named() bool { return r.name != "" }

// anyReader reads calls in JSON or in Python, by how they begin.
type anyReader struct{ object, python, chosen callReader }

// read implements callReader.
func (r *anyReader) read(pending *string, last bool) ([]callPart, callState) {
	for r.chosen == nil {
		*pending = strings.TrimLeft(*pending, jsonSpace+"[")
		if *pending == "" {
			return nil, callsGoOn
		}
		skipped := false
		for _, mark := range pythonMarks {
			yes, perhaps := begins(*pending, mark)
			if perhaps {
				return nil, callsGoOn
			}
			if skipped = yes; yes {
				*pending = (*pending)[len(mark):]
				break
			}
		}
		if c := (*pending + "[")[0]; !skipped && IsToolName(string(c)) {
			r.chosen = r.python
		} else if !skipped {
			r.chosen = r.object
		}
	}
	return r.chosen.read(pending, last)
}

func (r *anyReader) named() bool { return r.chosen != nil && r.chosen.named() }

// headReader reads calls whose names precede their arguments, which are JSON.
type headReader struct {
	staged
	f     *Format
	known known
	args  argumentsReader
}

// The stages of a headReader.
const (
	inHead = iota
	beforeArguments
	inHeadArguments
	afterArguments
)

// read implements callReader.
func (r *headReader) read(pending *string, last bool) (list []callPart, state callState) {
	return r.run(pending, last, r.next)
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
	}
	if r.f.close == "" {
		return nil, callsEnd
	}
	if _, found := cutAt(pending, r.f.close, false); found {
		if r.stage = inHead; r.f.perCall {
			return nil, callsEnd
		}
	}
	return nil, callsGoOn
}

// head reads the name of a call.
func (r *headReader) head(pending *string) ([]callPart, callState) {
	*pending = strings.TrimLeft(*pending, " \n")
	rest := *pending
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
	rest = rest[len(r.f.open):]
	most := len(r.f.head) + len(r.f.named) + maxToolName + 64
	name, _, found := strings.Cut(rest[:min(most, len(rest))], r.f.named)
	switch {
	case !found && len(rest) >= most:
		return nil, noCall
	case !found:
		return nil, callsGoOn
	}
	args := rest[len(name)+len(r.f.named):]
	name, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(name), r.f.head), "[CALL_ID]")
	if r.f.number != "" {
		name, _, _ = strings.Cut(name, r.f.number)
	}
	if name = strings.TrimSpace(name); !r.known(name) {
		return nil, noCall
	}
	*pending, r.stage, r.any = args, beforeArguments, true
	return []callPart{{name: name}}, callsGoOn
}

// named is false: a name that is known was returned.
func (r *headReader) named() bool { return false }
