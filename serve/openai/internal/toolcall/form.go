package toolcall

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/etrun-go/etrun/internal/grammar"
	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/forms"
	"github.com/etrun-go/etrun/text"
)

// maxCalls is the number of calls in a reply whose form is prescribed.
const maxCalls = 16

// formWriter builds the form of a reply with calls.
type formWriter struct {
	*grammar.Builder
	copied  int                     // bytes of schemas with definitions of others
	known   map[string]grammar.Part // rules by what they are
	loosely *lenientRules
}

// lenientRules are the rules of values of Gemma's models.
type lenientRules struct{ value, list, object grammar.Part }

// rule adds a rule of a sequence.
func (w *formWriter) rule(parts ...grammar.Part) grammar.Part { return w.Rule(grammar.Seq(parts...)) }

// schema returns the rule of JSON of a schema.
func (w *formWriter) schema(s []byte) (grammar.Part, error) {
	key := "schema " + string(s)
	if p, ok := w.known[key]; ok { // tools have thousands of arguments of the same kinds
		return p, nil
	}
	p, err := w.Schema(s)
	if err != nil {
		return nil, err
	}
	w.known[key] = w.Rule(p)
	return w.known[key], nil
}

// noArguments is the schema of tools without one.
const noArguments = `{"type":"object","properties":{},"additionalProperties":false}`

// arguments returns the rule of the arguments of a tool as JSON.
func (w *formWriter) arguments(t *toolFunction) (grammar.Part, error) {
	if t.syntax != nil {
		p, err := w.input(t)
		return grammar.Seq(grammar.Text(`{"`+inputName+`": `), p, grammar.Text("}")), err
	}
	schema := []byte(t.Parameters)
	if string(OrNull(schema)) == "null" {
		schema = []byte(noArguments)
	}
	p, err := w.schema(schema)
	switch {
	case err == nil && t.Strict:
		return p, w.enforced(t, schema)
	case err == nil || fault.IsUnmade(err):
		return p, err
	case t.Strict:
		return nil, fault.Refused("tools", "the parameters of %s: %v", t.Name, err)
	}
	return w.schema([]byte(AnyObject))
}

// enforced returns an error if the arguments of a tool may not satisfy its schema.
func (w *formWriter) enforced(t *toolFunction, schema []byte) error {
	list, err := w.Check(schema)
	if err == nil && len(list) > 0 {
		return fault.Refused("tools", "the parameters of %s: %s cannot be enforced; want strict false", t.Name, strings.Join(list, ", "))
	}
	return err
}

// object returns the form of a call that is a JSON object.
func (w *formWriter) object(f *Format, t *toolFunction) (grammar.Part, error) {
	args, err := w.arguments(t)
	return grammar.Seq(grammar.Text(cmp.Or(f.head, `{"name": `)+grammar.Quoted(t.Name)+`, "`+f.args+`": `), args, grammar.Text("}")), err
}

// head returns the form of a call whose name precedes its arguments.
func (w *formWriter) head(f *Format, t *toolFunction) (grammar.Part, error) {
	args, err := w.arguments(t)
	number := grammar.Seq()
	if f.number != "" {
		number = grammar.Seq(grammar.Text(f.number), grammar.Repeat(grammar.Between('0', '9'), 1, 6))
	}
	return grammar.Seq(grammar.Text(f.head+t.Name), number, grammar.Text(f.named), args), err
}

// anyKey is a key of arguments of any names.
func anyKey() grammar.Part {
	first := grammar.Alt(grammar.Between('a', 'z'), grammar.Between('A', 'Z'), grammar.Text("_"))
	return grammar.Seq(first, grammar.Repeat(grammar.Alt(first, grammar.Between('0', '9')), 0, 63))
}

// elements returns the form of a call whose arguments are elements.
func (w *formWriter) elements(f *Format, t *toolFunction) (grammar.Part, error) {
	m := f.elements
	list, free, err := w.members(t, f)
	if err != nil {
		return nil, err
	}
	all := []grammar.Part{grammar.Text(f.head + t.Name + f.named + "\n")} // of thousands
	if free {
		all = append(all, grammar.Many(w.rule(grammar.Text(m.key), anyKey(), grammar.Text(m.opens), w.shutBy(m.shut, m.shut+"\n"))))
	}
	for _, x := range list {
		element := grammar.Seq(grammar.Text(m.key+x.key+m.opens), x.value, grammar.Text(m.shut+"\n"))
		if !x.required {
			element = grammar.Opt(element)
		}
		all = append(all, element)
	}
	return grammar.Seq(append(all, grammar.Text(m.end))...), nil
}

// lenient returns the form of a call of Gemma's models.
func (w *formWriter) lenient(f *Format, t *toolFunction) (grammar.Part, error) {
	values, err := w.lenientValues(f.quote)
	if err != nil {
		return nil, err
	}
	return w.listed(f, t, ":", ",", "}", values.value)
}

// python returns the form of a call in Python.
func (w *formWriter) python(f *Format, t *toolFunction) (grammar.Part, error) {
	free, err := w.schema([]byte("true"))
	if err != nil {
		return nil, err
	}
	return w.listed(f, t, "=", ", ", ")", free)
}

// listed returns the form of a call with its arguments in a list: their names and values with a text between, and a text between
// arguments. free is any value.
func (w *formWriter) listed(f *Format, t *toolFunction, equals, comma, shut string, free grammar.Part) (grammar.Part, error) {
	list, isFree, err := w.members(t, f)
	if err != nil {
		return nil, err
	}
	begin, end, between := grammar.Text(f.head+t.Name+f.named), grammar.Text(shut), grammar.Text(comma)
	if isFree {
		one := w.rule(anyKey(), grammar.Text(equals), free)
		return grammar.Seq(begin, grammar.Opt(grammar.Seq(one, grammar.Many(grammar.Seq(between, one)))), end), nil
	}
	first, further := grammar.Seq(), grammar.Seq() // what begins with a member, without and after others
	for _, m := range slices.Backward(list) {
		one := w.rule(grammar.Text(m.key+equals), m.value)
		alone, more := grammar.Seq(one, further), grammar.Seq(between, one, further)
		if !m.required {
			alone, more = grammar.Alt(alone, first), grammar.Alt(more, further)
		}
		first, further = w.Rule(alone), w.Rule(more)
	}
	return grammar.Seq(begin, first, end), nil
}

// lenientValues returns the rules of any values of Gemma's models.
func (w *formWriter) lenientValues(quote string) (*lenientRules, error) {
	if w.loosely != nil {
		return w.loosely, nil
	}
	scalar, err := w.schema([]byte(`{"type":["number","boolean","null"]}`))
	if err != nil {
		return nil, err
	}
	listed := func(open string, one grammar.Part, shut string) grammar.Part {
		further := grammar.Many(grammar.Seq(grammar.Text(","), one))
		return w.rule(grammar.Text(open), grammar.Opt(grammar.Seq(one, further)), grammar.Text(shut))
	}
	value := w.Declare()
	l := &lenientRules{value: grammar.Call(value)}
	l.object = listed("{", grammar.Seq(anyKey(), grammar.Text(":"), l.value), "}")
	l.list = listed("[", l.value, "]")
	text := grammar.Seq(grammar.Text(quote), w.shutBy(quote, quote))
	w.Define(value, grammar.Alt(text, scalar, l.list, l.object))
	w.loosely = l
	return l, nil
}

// memberForm is the form of an argument.
type memberForm struct {
	key      string
	value    grammar.Part
	required bool
}

// members returns the forms of the arguments of a tool, in the order of its schema, for formats in which strings are between marks.
// free means that any arguments are accepted.
func (w *formWriter) members(t *toolFunction, f *Format) (list []memberForm, free bool, err error) {
	var root map[string]json.RawMessage
	schema := OrNull(t.Parameters)
	if string(schema) == "null" {
		schema = []byte(noArguments)
	}
	names, required := keysOf(schema, "properties"), []string{}
	plain := json.Unmarshal(schema, &root) == nil && json.Unmarshal(orList(root["required"]), &required) == nil
	for key := range root {
		plain = plain && (grammar.Annotation(key) || slices.Contains([]string{"type", "properties", "required", "additionalProperties"}, key))
	}
	listed, needed := setOf(names), setOf(required)
	for r := range needed {
		plain = plain && listed[r]
	}
	notEnforced, err := w.Check(schema)
	if fault.IsUnmade(err) {
		return nil, false, err
	}
	if t.Strict && err == nil && len(notEnforced) > 0 {
		return nil, false, w.enforced(t, schema)
	}
	if plain && err == nil && (len(names) > 0 || string(root["additionalProperties"]) == "false") {
		properties := schemaOf(schema).Properties
		for _, key := range names {
			value, err := w.member(t, f, root, key, properties[key])
			if err != nil {
				return nil, false, err
			}
			list = append(list, memberForm{key, value, needed[key]})
		}
		return list, false, nil
	} else if t.Strict {
		return nil, false, fault.Refused("tools", "the parameters of %s: want an object with properties for calls of this template (%v)",
			t.Name, err)
	}
	return nil, true, nil
}

// member returns the form of an argument.
func (w *formWriter) member(t *toolFunction, f *Format, root map[string]json.RawMessage, key string,
	raw json.RawMessage) (grammar.Part, error) {
	schema := schemaOf(raw)
	quote, end := f.quote, f.quote
	if f.elements != nil {
		end = f.elements.shut
	}
	var all map[string]json.RawMessage
	_ = json.Unmarshal(raw, &all) // such as true
	simple := true
	for k := range all {
		simple = simple && (k == "type" || grammar.Annotation(k))
	}
	words := schema.words()
	kind := schema.kind()
	nested := quote != "" && (kind == "object" || kind == "array" || kind == "")
	switch {
	case t.syntax != nil && end == "": // Python
		return w.input(t)
	case t.syntax != nil:
		return nil, fault.Unsupported("tools", "the grammar of %s: in calls of this template texts have no form; want the format text", t.Name)
	case end == "" && kind == "boolean" && simple: // Python
		return grammar.Literals([]string{"True", "False"}), nil
	case end == "":
		return w.property(t, root, key, raw)
	case words != nil && !slices.ContainsFunc(words, func(s string) bool { return strings.Contains(s, end) }):
		for i, s := range words {
			words[i] = quote + s + quote
		}
		return grammar.Literals(words), nil
	case !simple && t.Strict && (kind == "string" || nested):
		return nil, fault.Refused("tools", "the parameters of %s: %s: in calls of this template such values have no form beyond their type; "+
			"want strict false", t.Name, key)
	case kind == "string":
		return grammar.Seq(grammar.Text(quote), w.shutBy(end, quote)), nil
	case nested:
		values, err := w.lenientValues(quote)
		if err != nil {
			return nil, err
		}
		return values.of(kind), nil
	}
	return w.property(t, root, key, raw)
}

// of returns the rule of values of a type.
func (l *lenientRules) of(kind string) grammar.Part {
	switch kind {
	case "object":
		return l.object
	case "array":
		return l.list
	}
	return l.value
}

// Schemas of arguments that refer to others have a copy of these.
const maxCopied = 4 << 20

// property adds JSON of an argument that is no text between marks, and returns its rule.
func (w *formWriter) property(t *toolFunction, root map[string]json.RawMessage, key string, raw json.RawMessage) (grammar.Part, error) {
	if !bytes.Contains(raw, []byte(`$ref`)) && !bytes.Contains(raw, []byte(`\u`)) {
		return w.schema(raw)
	}
	schema := within(root, raw)
	if w.copied += len(schema); w.copied > maxCopied {
		return nil, fault.Refused("tools", "the parameters of %s: in calls of this template each argument that has a $ref has a copy of the "+
			"definitions; these exceed %d bytes", t.Name, maxCopied)
	}
	var v any
	_ = json.Unmarshal(schema, &v) // which was JSON
	switch {
	case refersElsewhere(v) && t.Strict:
		return nil, fault.Refused("tools", "the parameters of %s: %s: in calls of this template a $ref must be one of #/$defs/ or #/definitions/",
			t.Name, key)
	case refersElsewhere(v):
		schema = []byte("true")
	}
	return w.schema(schema)
}

// within returns the schema of a property, with the definitions of the schema that has it.
func within(root map[string]json.RawMessage, raw json.RawMessage) []byte {
	var schema map[string]json.RawMessage
	if json.Unmarshal(raw, &schema) != nil || schema == nil { // such as true
		return raw
	}
	for _, key := range []string{"$defs", "definitions"} {
		if delete(schema, key); root[key] != nil {
			schema[key] = root[key]
		}
	}
	text, _ := json.Marshal(schema) // which was JSON
	return text
}

// refersElsewhere reports whether a schema refers to other places than definitions: these are other ones in the schema of an argument.
func refersElsewhere(v any) bool {
	switch x := v.(type) {
	case []any:
		return slices.ContainsFunc(x, refersElsewhere)
	case map[string]any:
		for key, v := range x {
			s, ok := v.(string)
			if key == "$ref" && ok && !strings.HasPrefix(s, "#/$defs/") && !strings.HasPrefix(s, "#/definitions/") || refersElsewhere(v) {
				return true
			}
		}
	}
	return false
}

// setOf returns the texts of a list as a set.
func setOf(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, s := range list {
		set[s] = true
	}
	return set
}

// keysOf returns the keys of a member that is an object, in their order.
func keysOf(text []byte, member string) (list []string) {
	var o map[string]json.RawMessage
	if json.Unmarshal(text, &o) != nil {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(string(OrNull(o[member]))))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	seen := make(map[string]bool)
	for d.More() {
		key, err := d.Token()
		var skipped json.RawMessage
		if err != nil || d.Decode(&skipped) != nil {
			return nil
		}
		if s := key.(string); !seen[s] {
			seen[s], list = true, append(list, s)
		}
	}
	return list
}

// orList returns a value, an empty list for an absent one.
func orList(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return []byte("[]")
	}
	return raw
}

// shutBy returns the rule of a text in which a mark does not occur, and a text after it that begins with the mark.
func (w *formWriter) shutBy(mark, end string) grammar.Part {
	key := "until " + mark + "\n" + end
	if w.known[key] == nil {
		w.known[key] = w.until(grammar.Text(end), mark)
	}
	return w.known[key]
}

// until returns the rule of a text in which no mark occurs, which ends with something else.
func (w *formWriter) until(end grammar.Part, marks ...string) grammar.Part {
	states := []string{""} // what the text ends with: the beginnings of the marks
	all := strings.Join(marks, "")
	for _, mark := range marks {
		for i := range mark {
			if !slices.Contains(states, mark[:i]) {
				states = append(states, mark[:i])
			}
		}
	}
	rules := make([]int32, len(states))
	for i := range rules {
		rules[i] = w.Declare()
	}
	other := w.rule(grammar.Except(all), grammar.Call(rules[0]))
	for i, before := range states {
		ways, done := []grammar.Part{other, end}, ""
		for _, c := range all {
			text := before + string(c)
			if strings.ContainsRune(done, c) || slices.ContainsFunc(marks, func(m string) bool { return strings.HasSuffix(text, m) }) {
				continue
			}
			done += string(c)
			ways = append(ways, grammar.Seq(grammar.Text(string(c)), grammar.Call(rules[longestEnd(text, states)])))
		}
		w.Define(rules[i], grammar.Alt(ways...))
	}
	return grammar.Call(rules[0])
}

// longestEnd returns the index of the longest of several texts with which a text ends.
func longestEnd(text string, list []string) (longest int) {
	for i, s := range list {
		if strings.HasSuffix(text, s) && len(s) > len(list[longest]) {
			longest = i
		}
	}
	return longest
}

// calls returns the form of one call, or of several.
func (w *formWriter) calls(f *Format, u *Use) (grammar.Part, error) {
	list := make([]grammar.Part, len(u.Tools))
	for i := range u.Tools {
		var err error
		if list[i], err = f.write(w, f, &u.Tools[i]); err != nil {
			return nil, err
		}
	}
	begin, end := f.begin, f.end
	open, shut := f.open, f.close
	if f.open == "[" { // the list is outside of the calls
		begin, end, open, shut = begin+"[", "]"+end, "", ""
	}
	if f.perCall {
		begin, end, open, shut = "", "", begin+f.pad, f.pad+end
	}
	one := w.rule(grammar.Text(open), grammar.Alt(list...), grammar.Text(shut))
	more := maxCalls - 1
	if u.Single || f.begin == "" {
		more = 0
	}
	return w.rule(grammar.Text(begin), one, grammar.Repeat(grammar.Seq(grammar.Text(f.between), one), 0, more), grammar.Text(end)), nil
}

// reply returns the form of a reply. thought is the mark that ends the thought in which it begins, empty for none.
func (w *formWriter) reply(f *Format, u *Use, thought string) (grammar.Part, error) {
	calls, err := w.calls(f, u)
	if err != nil {
		return nil, err
	}
	switch {
	case u.Must:
	case u.Answer != nil:
		answer, err := w.schema(u.Answer)
		if err != nil {
			return nil, fault.Refused("response_format", "%v", err)
		}
		calls = w.Rule(grammar.Alt(answer, calls))
	case f.begin == "": // other texts do not begin like calls, or with a mark after which they would be read
		space := grammar.Many(grammar.Alt(grammar.Text(" "), grammar.Text("\n")))
		calls = grammar.Alt(calls, grammar.Seq(space, grammar.Opt(grammar.Seq(grammar.Except(" \n{[`<"), grammar.Many(grammar.Except(""))))))
	case f.also != "":
		calls = w.until(grammar.Opt(calls), f.begin, f.also)
	default:
		calls = w.until(grammar.Opt(calls), f.begin)
	}
	switch {
	case thought != "" && (u.Must || u.Answer != nil):
		return w.until(grammar.Seq(grammar.Text(thought), grammar.Repeat(grammar.Text("\n"), 0, 2), calls), thought), nil
	case thought != "": // in which calls are none
		return w.until(grammar.Opt(grammar.Seq(grammar.Text(thought), w.Rule(calls))), thought), nil
	}
	return calls, nil
}

// build returns what builds the form of a reply.
func (f *Format) build(u *Use, thought string) func(b *grammar.Builder) (grammar.Part, error) {
	return func(b *grammar.Builder) (grammar.Part, error) {
		return (&formWriter{Builder: b, known: make(map[string]grammar.Part)}).reply(f, u, thought)
	}
}

// Form returns the form of a reply, nil if any text is one. thought is the mark that ends the thought in which it begins.
func (f *Format) Form(u *Use, thought string, m *forms.Maker) (*text.Form, error) {
	if !u.Formed() {
		return nil, nil
	}
	if u.Answer != nil && !u.Must && f.begin == "" {
		return nil, fault.Refused("response_format", "together with tools: the calls of this model are JSON, too; "+
			"want tool_choice none or required")
	}
	parts := []any{f.name, thought, u.Tools, u.Must, u.Single, OrNull(u.Answer)}
	for i := range u.Tools {
		parts = append(parts, u.Tools[i].syntax)
	}
	key, err := json.Marshal(parts)
	if err != nil { // cannot happen: it was JSON
		return nil, err
	}
	form, err := m.Kept("tools "+string(key), func(limit text.FormLimit) (*text.Form, error) {
		return text.BuildForm(f.build(u, thought), limit)
	})
	if _, refused := errors.AsType[*fault.Error](err); err != nil && !refused {
		return nil, fault.OfForm("tools", err)
	}
	return form, err
}
