package toolcall

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/serve/openai/internal/fault"
	"github.com/etrun-go/etrun/serve/openai/internal/forms"
	"github.com/etrun-go/etrun/text"
)

// maxCalls is the number of calls in a reply whose form is prescribed.
const maxCalls = 16

var inLiteral = strings.NewReplacer(`"`, `\"`, `\`, `\\`, "\n", `\n`, "\r", `\r`)

// literal returns a text as GBNF.
func literal(s string) string { return `"` + inLiteral.Replace(s) + `"` }

// rule adds a rule, and returns its name.
func (w *formWriter) rule(format string, args ...any) (name string) {
	w.n++
	name = "r" + strconv.Itoa(w.n)
	fmt.Fprintf(&w.rules, "%s ::= "+format+"\n", append([]any{name}, args...)...)
	return name
}

// Schema adds JSON of a schema, and returns the name of its rule.
func (w *formWriter) schema(s []byte) (name string) {
	return w.once("schema "+string(s), func() string {
		w.n++
		name := "s" + strconv.Itoa(w.n)
		w.schemas[name] = s
		return name
	})
}

// once returns the name of the rule of a key, which it makes for the first one of that key: tools have thousands of arguments of the
// same kinds.
func (w *formWriter) once(key string, write func() (name string)) string {
	name, ok := w.known[key]
	if !ok {
		if w.known == nil {
			w.known = make(map[string]string)
		}
		name = write()
		w.known[key] = name
	}
	return name
}

// noArguments is the schema of tools without one.
const noArguments = `{"type":"object","properties":{},"additionalProperties":false}`

// arguments returns the rule of the arguments of a tool as JSON.
func (w *formWriter) arguments(t *toolFunction) (string, error) {
	schema := []byte(t.Parameters)
	if string(OrNull(schema)) == "null" {
		schema = []byte(noArguments)
	}
	_, err := w.forms.Schema(schema)
	switch {
	case fault.IsUnmade(err):
		return "", err
	case err != nil && t.Strict:
		return "", fault.Refused("tools", "the parameters of %s: %v", t.Name, err)
	case err != nil:
		schema = []byte(AnyObject)
	}
	return w.schema(schema), nil
}

// Object returns the form of a call that is a JSON object.
func (w *formWriter) object(f *Format, t *toolFunction) (string, error) {
	args, err := w.arguments(t)
	return literal(cmp.Or(f.head, `{"name": `)+Quoted(t.Name)+`, "`+f.args+`": `) + " " + args + ` "}"`, err
}

// head returns the form of a call whose name precedes its arguments.
func (w *formWriter) head(f *Format, t *toolFunction) (string, error) {
	args, err := w.arguments(t)
	number := `""`
	if f.number != "" {
		number = literal(f.number) + " [0-9]{1,6}"
	}
	return strings.Join([]string{literal(f.head + t.Name), number, literal(f.named), args}, " "), err
}

// anyKey is the form of a key of arguments of any names.
const anyKey = "[a-zA-Z_] [a-zA-Z0-9_]{0,63}"

// elements returns the form of a call whose arguments are elements.
func (w *formWriter) elements(f *Format, t *toolFunction) (string, error) {
	m := f.elements
	list, free, err := w.members(t, f)
	if err != nil {
		return "", err
	}
	var all strings.Builder // of thousands
	all.WriteString(literal(f.head + t.Name + f.named + "\n"))
	if free {
		fmt.Fprintf(&all, " (%s %s %s %s)*", literal(m.key), anyKey, literal(m.opens), w.until(literal(m.shut+"\n"), m.shut))
	}
	for _, x := range list {
		element := fmt.Sprintf("%s %s %s", literal(m.key+x.key+m.opens), x.value, literal(m.shut+"\n"))
		if !x.required {
			element = "(" + element + ")?"
		}
		all.WriteString(" " + element)
	}
	return all.String() + " " + literal(m.end), nil
}

// loose returns the form of a call of Gemma's models.
func (w *formWriter) loose(f *Format, t *toolFunction) (string, error) {
	return w.listed(f, t, ":", ",", "}", func() string { return w.looseValues(f.quote).value })
}

// python returns the form of a call in Python.
func (w *formWriter) python(f *Format, t *toolFunction) (string, error) {
	return w.listed(f, t, "=", ", ", ")", func() string { return w.schema([]byte("true")) })
}

// listed returns the form of a call with its arguments in a list: their names and values with a text between, and a text between
// arguments. free is the rule of any value.
func (w *formWriter) listed(f *Format, t *toolFunction, equals, comma, shut string, free func() string) (string, error) {
	list, isFree, err := w.members(t, f)
	if err != nil {
		return "", err
	}
	begin, end := literal(f.head+t.Name+f.named)+" ", " "+literal(shut)
	if isFree {
		one := w.rule("%s %s %s", anyKey, literal(equals), free())
		return begin + w.rule("(%s (%s %s)*)?", one, literal(comma), one) + end, nil
	}
	first, further := `""`, `""` // what begins with a member, without and after others
	for _, m := range slices.Backward(list) {
		one := w.rule("%s %s", literal(m.key+equals), m.value)
		alone, more := one+" "+further, literal(comma)+" "+one+" "+further
		if !m.required {
			alone, more = alone+" | "+first, more+" | "+further
		}
		first, further = w.rule("%s", alone), w.rule("%s", more)
	}
	return begin + first + end, nil
}

// looseValues returns the rules of any values of Gemma's models.
func (w *formWriter) looseValues(quote string) *looseRules {
	if w.loosely != nil {
		return w.loosely
	}
	w.n++
	l := &looseRules{value: "r" + strconv.Itoa(w.n)}
	text := literal(quote) + " " + w.until(literal(quote), quote)
	l.object = w.rule(`"{" (%s ":" %s ("," %s ":" %s)*)? "}"`, anyKey, l.value, anyKey, l.value)
	l.list = w.rule(`"[" (%s ("," %s)*)? "]"`, l.value, l.value)
	scalar := w.schema([]byte(`{"type":["number","boolean","null"]}`))
	fmt.Fprintf(&w.rules, "%s ::= %s | %s | %s | %s\n", l.value, text, scalar, l.list, l.object)
	w.loosely = l
	return l
}

// memberForm is the form of an argument.
type memberForm struct {
	key, value string
	required   bool
}

// annotations are the keywords of schemas without an effect on values.
var annotations = []string{"title", "description", "default", "examples", "example", "$comment", "deprecated"}

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
		plain = plain && (slices.Contains(annotations, key) || slices.Contains([]string{"type", "properties", "required", "additionalProperties",
			"$defs", "definitions", "$schema"}, key))
	}
	listed, needed := setOf(names), setOf(required)
	for r := range needed {
		plain = plain && listed[r]
	}
	_, err = w.forms.Schema(schema)
	if fault.IsUnmade(err) {
		return nil, false, err
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
	raw json.RawMessage) (string, error) {
	schema := schemaOf(raw)
	quote, end := f.quote, f.quote
	if f.elements != nil {
		end = f.elements.shut
	}
	var all map[string]json.RawMessage
	_ = json.Unmarshal(raw, &all) // such as true
	simple := true
	for k := range all {
		simple = simple && (k == "type" || slices.Contains(annotations, k))
	}
	words := schema.words()
	kind := schema.kind()
	nested := quote != "" && (kind == "object" || kind == "array" || kind == "")
	switch {
	case end == "" && kind == "boolean" && simple: // Python
		return `("True" | "False")`, nil
	case end == "":
		return w.property(t, root, key, raw)
	case words != nil && !slices.ContainsFunc(words, func(s string) bool { return strings.Contains(s, end) }):
		list := make([]string, len(words))
		for i, s := range words {
			list[i] = literal(quote + s + quote)
		}
		return "(" + strings.Join(list, " | ") + ")", nil
	case !simple && t.Strict && (kind == "string" || nested):
		return "", fault.Refused("tools", "the parameters of %s: %s: in calls of this template such values have no form beyond their type; "+
			"want strict false", t.Name, key)
	case kind == "string":
		after := ""
		if quote != "" {
			after = literal(quote)
		}
		return literal(quote) + " " + w.until(after, end), nil
	case nested && kind == "object":
		return w.looseValues(quote).object, nil
	case nested && kind == "array":
		return w.looseValues(quote).list, nil
	case nested:
		return w.looseValues(quote).value, nil
	}
	return w.property(t, root, key, raw)
}

// Schemas of arguments that refer to others have a copy of these.
const maxCopied = 4 << 20

// property adds JSON of an argument that is no text between marks, and returns the name of its rule.
func (w *formWriter) property(t *toolFunction, root map[string]json.RawMessage, key string, raw json.RawMessage) (string, error) {
	if !bytes.Contains(raw, []byte(`$ref`)) && !bytes.Contains(raw, []byte(`\u`)) {
		return w.schema(raw), nil
	}
	schema := within(root, raw)
	if w.copied += len(schema); w.copied > maxCopied {
		return "", fault.Refused("tools", "the parameters of %s: in calls of this template each argument that has a $ref has a copy of the "+
			"definitions; these exceed %d bytes", t.Name, maxCopied)
	}
	var v any
	_ = json.Unmarshal(schema, &v) // which was JSON
	switch {
	case refersElsewhere(v) && t.Strict:
		return "", fault.Refused("tools", "the parameters of %s: %s: in calls of this template a $ref must be one of #/$defs/ or #/definitions/",
			t.Name, key)
	case refersElsewhere(v):
		schema = []byte("true")
	}
	return w.schema(schema), nil
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

// until returns the rule of a text in which no mark occurs, which ends with something else.
func (w *formWriter) until(end string, marks ...string) string {
	return w.once("until "+strings.Join(append(marks, end), "\n"), func() string { return w.newUntil(end, marks) })
}

func (w *formWriter) newUntil(end string, marks []string) string {
	states := []string{""} // what the text ends with: the beginnings of the marks
	class := ""
	for _, mark := range marks {
		for i, c := range mark {
			if !slices.Contains(states, mark[:i]) {
				states = append(states, mark[:i])
			}
			if char := fmt.Sprintf(`\U%08X`, c); !strings.Contains(class, char) {
				class += char
			}
		}
	}
	first := w.n + 1
	w.n += len(states)
	name := func(i int) string { return "r" + strconv.Itoa(first+i) }
	if end == "" {
		end = `""`
	}
	for i, before := range states {
		fmt.Fprintf(&w.rules, "%s ::= [^%s] %s | %s", name(i), class, name(0), end)
		seen := ""
		for _, c := range strings.Join(marks, "") {
			text := before + string(c)
			if strings.ContainsRune(seen, c) || slices.ContainsFunc(marks, func(m string) bool { return strings.HasSuffix(text, m) }) {
				continue
			}
			seen += string(c)
			fmt.Fprintf(&w.rules, " | %s %s", literal(string(c)), name(longestEnd(text, states)))
		}
		w.rules.WriteByte('\n')
	}
	return name(0)
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
func (w *formWriter) calls(f *Format, u *Use) (string, error) {
	var list []string
	for i := range u.Tools {
		one, err := f.write(w, f, &u.Tools[i])
		if err != nil {
			return "", err
		}
		list = append(list, one)
	}
	call := w.rule("%s", strings.Join(list, " | "))
	begin, end := f.begin, f.end
	open, shut := f.open, f.close
	if f.open == "[" { // the list is outside of the calls
		begin, end, open, shut = begin+"[", "]"+end, "", ""
	}
	if f.each {
		begin, end, open, shut = "", "", begin+f.pad, f.pad+end
	}
	one := w.rule("%s %s %s", literal(open), call, literal(shut))
	more := maxCalls - 1
	if u.Single || f.begin == "" {
		more = 0
	}
	return w.rule("%s %s (%s %s){0,%d} %s", literal(begin), one, literal(f.between), one, more, literal(end)), nil
}

// reply writes the form of a whole reply. thought is the mark that ends the thought in which it begins, empty for none.
func (w *formWriter) reply(f *Format, u *Use, thought string) error {
	calls, err := w.calls(f, u)
	if err != nil {
		return err
	}
	switch {
	case u.Must:
	case u.Answer != nil:
		calls = w.schema(u.Answer) + " | " + calls
	case f.begin == "": // other texts do not begin like calls, or with a mark after which they would be read
		calls += " | [ \\n]* ([^ \\n{\\[`<] .*)?"
	case f.also != "":
		calls = w.until(`"" | `+calls, f.begin, f.also)
	default:
		calls = w.until(`"" | `+calls, f.begin)
	}
	switch {
	case thought != "" && (u.Must || u.Answer != nil):
		calls = w.until(literal(thought)+` "\n"{0,2} (`+calls+")", thought)
	case thought != "": // in which calls are none
		calls = w.until(`"" | `+literal(thought)+" ("+calls+")", thought)
	}
	fmt.Fprintf(&w.rules, "root ::= %s\n", calls)
	return nil
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
	w := &formWriter{forms: m, schemas: make(map[string][]byte)}
	if err := w.reply(f, u, thought); err != nil {
		return nil, err
	}
	form, err := m.Grammar(w.rules.String(), w.schemas)
	if err != nil {
		return nil, fault.OfForm("tools", err)
	}
	return form, nil
}
