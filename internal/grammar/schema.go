package grammar

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/etrun-go/etrun/internal/jinja"
)

// SchemaError reports a schema that cannot be used, with the place in it.
type SchemaError struct {
	Path string // such as "#/properties/a"
	Err  error
}

func (e *SchemaError) Error() string { return e.Path + ": " + e.Err.Error() }
func (e *SchemaError) Unwrap() error { return e.Err }

// compiler makes rules of a schema.
type compiler struct {
	*Builder
	*jsonParts
	*source
	rules map[*jinja.Dict]int32
	depth int
	work  int // comparisons of schemas of oneOf
}

// Limits on schemas.
const (
	maxDepth  = 64
	maxLength = 20_000 // of strings and lists
	maxWork   = 2_000_000
	maxTypes  = 7 // there are no more
)

// JSON returns the grammar of JSON objects.
func JSON(limits ...Limit) (*Grammar, error) {
	b := NewBuilder(limits...)
	return b.Build(document(b.ofJSON().object))
}

// document is a value, before which tokenizers can put a space.
func document(p Part) Part { return Seq(Opt(Text(" ")), p) }

// Schema returns the grammar of JSON texts that a JSON schema accepts: not all of them, but each text of the grammar is one.
// Keywords that are not supported are a *SchemaError.
func Schema(text []byte, limits ...Limit) (*Grammar, error) {
	b := NewBuilder(limits...)
	p, err := b.Schema(text)
	if err != nil {
		return nil, err
	}
	return b.Build(document(p))
}

// Check returns the error of a schema, and leaves the builder as it is.
func (b *Builder) Check(text []byte) error {
	b.ofJSON()
	nodes, rules := len(b.nodes), len(b.rules)
	_, err := b.Schema(text)
	b.nodes, b.rules = b.nodes[:nodes], b.rules[:rules]
	return err
}

// Schema returns the texts that a JSON schema accepts as a part: see the function of this name. After an error the builder is as
// before.
func (b *Builder) Schema(text []byte) (Part, error) {
	b.ofJSON()
	nodes, rules, failed := len(b.nodes), len(b.rules), b.err
	p, err := b.schema(text)
	if err == nil && failed == nil {
		err = b.err
	}
	if err != nil { // there may be calls of rules that are not defined
		b.nodes, b.rules, b.err = b.nodes[:nodes], b.rules[:rules], failed
	}
	return p, err
}

func (b *Builder) schema(text []byte) (Part, error) {
	s, err := read(text)
	if err != nil {
		return nil, &SchemaError{"#", err}
	}
	c := &compiler{b, b.ofJSON(), s, make(map[*jinja.Dict]int32), 0, 0}
	return c.schema(s.root, "#")
}

// annotations are keywords without an effect on what is accepted.
var annotations = []string{"title", "description", "default", "examples", "example", "$schema", "$id", "$comment",
	"$defs", "definitions", "deprecated", "readOnly", "writeOnly"}

// typed are the keywords for values of a type, by which a schema without a type is known.
var typed = map[string][]string{
	"object": {"properties", "required", "additionalProperties", "minProperties", "maxProperties"},
	"array":  {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"},
	"string": {"minLength", "maxLength", "pattern", "format"},
	"number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
}

// combining are the keywords that stand alone.
var combining = []string{"$ref", "anyOf", "oneOf", "allOf", "enum", "const"}

func has(d *jinja.Dict, key string) bool { return d.Has(key) }

func (c *compiler) fail(path, format string, args ...any) error {
	return &SchemaError{path, fmt.Errorf(format, args...)}
}

// schema returns the part of a schema.
func (c *compiler) schema(v any, path string) (Part, error) {
	switch x := v.(type) {
	case bool:
		if x {
			return c.any, nil
		}
		return nil, c.fail(path, "false accepts no value")
	case *jinja.Dict:
		if rule, ok := c.rules[x]; ok {
			return Call(rule), nil
		}
		if c.depth++; c.depth > maxDepth {
			return nil, c.fail(path, "more than %d schemas in schemas", maxDepth)
		}
		defer func() { c.depth-- }()
		rule := c.Declare()
		c.rules[x] = rule
		p, err := c.body(x, path)
		if err != nil {
			return nil, err
		}
		c.Define(rule, p)
		if c.err != nil {
			return nil, &SchemaError{path, c.err}
		}
		return Call(rule), nil
	}
	return nil, c.fail(path, "want an object, or true")
}

// check rejects keywords that are not supported.
func (c *compiler) check(d *jinja.Dict, path string) error {
	single := ""
	for _, k := range d.Keys() {
		key := k.(string)
		known := key == "type" || slices.Contains(annotations, key)
		for _, list := range typed {
			known = known || slices.Contains(list, key)
		}
		if slices.Contains(combining, key) {
			single, known = key, true
		}
		if !known {
			return c.fail(path, "the keyword %.60q is not supported", key)
		}
	}
	if single == "" {
		return nil
	}
	for _, k := range d.Keys() {
		key := k.(string)
		beside := key == "type" && (single == "enum" || single == "const")
		if key != single && !beside && !slices.Contains(annotations, key) {
			return c.fail(path, "%s together with %.60q is not supported", single, key)
		}
	}
	return nil
}

// body returns the part of a schema that is an object.
func (c *compiler) body(d *jinja.Dict, path string) (Part, error) {
	if err := c.check(d, path); err != nil {
		return nil, err
	}
	switch {
	case has(d, "$ref"):
		return c.reference(d, path)
	case has(d, "const"):
		return c.literals(d, []any{d.Get("const")}, path)
	case has(d, "enum"):
		l, ok := d.Get("enum").(*jinja.List)
		if !ok {
			return nil, c.fail(path, "enum: want a list")
		}
		return c.literals(d, l.Items, path)
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		if has(d, key) {
			return c.alternatives(key, d.Get(key), path+"/"+key)
		}
	}
	types, err := c.types(d, path)
	if err != nil {
		return nil, err
	}
	var list []Part
	for _, t := range types {
		p, err := c.typePart(t, d, path)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return Alt(list...), nil
}

// types returns the types of a schema: those that it names, or the one of its keywords, or empty for any.
func (c *compiler) types(d *jinja.Dict, path string) (list []string, err error) {
	switch t := d.Get("type").(type) {
	case string:
		return []string{t}, nil
	case *jinja.List:
		for _, x := range t.Items {
			s, ok := x.(string)
			if !ok {
				return nil, c.fail(path, "type: want a string or a list of strings")
			}
			list = append(list, s)
		}
		if len(list) > maxTypes {
			return nil, c.fail(path, "type: %d types, want at most %d", len(list), maxTypes)
		}
		if list != nil {
			return list, nil
		}
	}
	if has(d, "type") {
		return nil, c.fail(path, "type: want a string or a list of strings")
	}
	for _, t := range []string{"object", "array", "string", "number"} {
		if slices.ContainsFunc(typed[t], func(key string) bool { return has(d, key) }) {
			return []string{t}, nil
		}
	}
	return []string{""}, nil
}

// typePart returns the values of a type.
func (c *compiler) typePart(t string, d *jinja.Dict, path string) (Part, error) {
	switch t {
	case "":
		return c.any, nil
	case "null":
		return Text("null"), nil
	case "boolean":
		return Alt(Text("true"), Text("false")), nil
	case "object":
		return c.objectPart(d, path)
	case "array":
		return c.listPart(d, path)
	case "string":
		return c.stringPart(d, path)
	case "integer", "number":
		return c.numberPart(t == "integer", d, path)
	}
	return nil, c.fail(path, "the type %.60q", t)
}

// literals returns values as they are written, those of the types of the schema.
func (c *compiler) literals(d *jinja.Dict, values []any, path string) (Part, error) {
	var types []string
	if has(d, "type") {
		var err error
		if types, err = c.types(d, path); err != nil {
			return nil, err
		}
	}
	var list []string
	for _, v := range values {
		if types == nil || slices.ContainsFunc(types, func(t string) bool { return ofType(v, t) }) {
			s := jsonText(v)
			if err := c.text(s, path); err != nil {
				return nil, err
			}
			list = append(list, s)
		}
	}
	if list == nil {
		return nil, c.fail(path, "no value is accepted")
	}
	return Literals(list), nil
}

// alternatives returns the parts of one of several schemas. Those of oneOf must exclude each other.
func (c *compiler) alternatives(key string, v any, path string) (Part, error) {
	l, ok := v.(*jinja.List)
	if !ok || len(l.Items) == 0 {
		return nil, c.fail(path, "want a list of schemas")
	}
	if key == "allOf" && len(l.Items) > 1 {
		return nil, c.fail(path, "allOf of several schemas is not supported; want one schema")
	}
	if key == "oneOf" {
		if err := c.exclusive(l.Items, path); err != nil {
			return nil, err
		}
	}
	var list []Part
	for i, x := range l.Items {
		p, err := c.schema(x, fmt.Sprintf("%s/%d", path, i))
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return Alt(list...), nil
}

// exclusive reports schemas that may accept the same value, or that are too many to know.
func (c *compiler) exclusive(list []any, path string) error {
	for i := range list {
		for k := range i {
			ok := c.excludes(list[i], list[k])
			if c.work > maxWork {
				return c.fail(path, "oneOf of too many schemas and values; want anyOf")
			}
			if !ok {
				return c.fail(path, "oneOf whose schemas %d and %d may accept the same value; want anyOf", k, i)
			}
		}
	}
	return nil
}

// excludes reports whether two schemas certainly accept no common value: they have no common type, or they are objects that
// require the same property with different values.
func (c *compiler) excludes(a, b any) bool {
	x, y := c.follow(a), c.follow(b)
	if x == nil || y == nil {
		return false
	}
	if v, w := c.values(x), c.values(y); v != nil && w != nil {
		return c.disjoint(v, w)
	}
	s, t := c.kinds(x), c.kinds(y)
	if s == nil || t == nil {
		return false
	}
	if !slices.ContainsFunc(s, func(k string) bool { return slices.Contains(t, k) }) {
		return true
	}
	return slices.Equal(s, []string{"object"}) && slices.Equal(t, s) && c.discriminated(x, y)
}

// disjoint reports whether lists have no common value. It is false when the work is too much.
func (c *compiler) disjoint(v, w []string) bool {
	for _, s := range v {
		if c.work += len(w); c.work > maxWork || slices.Contains(w, s) {
			return false
		}
	}
	return true
}

// follow returns a schema that is an object, behind references.
func (c *compiler) follow(v any) *jinja.Dict {
	for range maxDepth {
		if c.work += 10; c.work > maxWork {
			return nil
		}
		d, ok := v.(*jinja.Dict)
		if !ok {
			return nil
		}
		if !has(d, "$ref") {
			return d
		}
		target, _, err := c.resolve(d)
		if err != nil {
			return nil
		}
		v = target
	}
	return nil
}

// values returns the texts of const and enum, nil without them, or if lists or objects are among them.
func (c *compiler) values(d *jinja.Dict) (list []string) {
	items := []any{d.Get("const")}
	if l, ok := d.Get("enum").(*jinja.List); ok {
		items = l.Items
	} else if !has(d, "const") {
		return nil
	}
	for _, v := range items {
		if !isScalar(v) {
			return nil
		}
		s := jsonText(v)
		if n, ok := v.(json.Number); ok { // the same for numbers that some readers do not distinguish
			x, err := n.Float64()
			if err != nil {
				return nil
			}
			s = strconv.FormatFloat(x+0, 'g', -1, 64)
		}
		c.work += 1 + len(s)/16
		list = append(list, s)
	}
	return list
}

// kinds returns the types of a schema, integers as numbers; nil if it names none.
func (c *compiler) kinds(d *jinja.Dict) (list []string) {
	if !has(d, "type") {
		return nil
	}
	types, err := c.types(d, "")
	if err != nil {
		return nil
	}
	for _, t := range types {
		list = append(list, strings.Replace(t, "integer", "number", 1))
	}
	return list
}

// discriminated reports whether two objects require a property with different values.
func (c *compiler) discriminated(x, y *jinja.Dict) bool {
	p, ok := x.Get("properties").(*jinja.Dict)
	q, ok2 := y.Get("properties").(*jinja.Dict)
	if !ok || !ok2 {
		return false
	}
	for _, key := range p.Keys() {
		if c.work += 1; c.work > maxWork {
			return false
		}
		a, b := c.follow(p.Get(key)), c.follow(q.Get(key))
		if a == nil || b == nil || !c.required(x, key) || !c.required(y, key) {
			continue
		}
		v, w := c.values(a), c.values(b)
		if v != nil && w != nil && c.disjoint(v, w) {
			return true
		}
	}
	return false
}

func (c *compiler) required(d *jinja.Dict, key any) bool {
	l, ok := d.Get("required").(*jinja.List)
	if ok {
		c.work += len(l.Items)
	}
	return ok && slices.Contains(l.Items, key)
}

var errCount = errors.New("want an integer from 0 to 20000")

// count returns a keyword that counts, or a default.
func count(d *jinja.Dict, key string, otherwise int) (int, error) {
	if !has(d, key) {
		return otherwise, nil
	}
	x, ok := floatOf(d.Get(key))
	if !ok || x < 0 || x != math.Trunc(x) {
		return 0, fmt.Errorf("%s: %w", key, errCount)
	}
	if x > maxLength {
		if strings.HasPrefix(key, "max") {
			return maxLength, nil // fewer are accepted as well
		}
		return 0, fmt.Errorf("%s: %w", key, errCount)
	}
	return int(x), nil
}
