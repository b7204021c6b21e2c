package grammar

import (
	"errors"
	"fmt"
	"math"
	"slices"
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

// errNothing is the reason why a schema accepts no value, or none that is written.
var errNothing = errors.New("no value is accepted")

// compiler makes rules of schemas. What a value must be is a list of entries, all of which it has to satisfy.
type compiler struct {
	*Builder
	*jsonParts
	*source
	rules    map[string]*schemaRule // by the entries
	ids      map[*jinja.Dict]uint32
	expanded map[splitKey][][]located
	texts    map[string]Part // of strings, by what is demanded of them
	chars    map[string]Part // of strings
	matchers map[string]*nameMatcher
	before   int // keywords of other schemas that are not enforced
	depth    int
	textWork int // that is left for automata
}

// schemaRule is the rule of entries.
type schemaRule struct {
	id      int32
	nothing bool
}

type splitKey struct {
	d   *jinja.Dict
	key string
}

// Limits on schemas.
const (
	maxDepth   = 64
	maxLength  = 20_000 // of strings and lists
	maxWork    = 2_000_000
	maxTypes   = 7 // there are no more
	maxSkipped = 100
)

// JSON returns the grammar of JSON objects.
func JSON(limits ...Limit) (*Grammar, error) {
	b := NewBuilder(limits...)
	return b.Build(document(b.ofJSON().object))
}

// document is a value, before which tokenizers can put a space.
func document(p Part) Part { return Seq(Opt(Text(" ")), p) }

// Schema returns the grammar of JSON texts that a JSON schema accepts: not all of them, but each text of the grammar is one, except for
// the keywords that NotEnforced names. A schema that cannot be used is a *SchemaError.
func Schema(text []byte, limits ...Limit) (*Grammar, error) {
	b := NewBuilder(limits...)
	p, err := b.Schema(text)
	if err != nil {
		return nil, err
	}
	return b.Build(document(p))
}

// Check returns the error of a schema and the keywords that are not enforced, and leaves the builder as it is.
func (b *Builder) Check(text []byte) (notEnforced []string, err error) {
	b.ofJSON()
	nodes, rules, skipped := len(b.nodes), len(b.rules), len(b.skipped)
	_, err = b.Schema(text)
	notEnforced = slices.Clone(b.skipped[skipped:])
	b.nodes, b.rules, b.skipped = b.nodes[:nodes], b.rules[:rules], b.skipped[:skipped]
	return notEnforced, err
}

// Schema returns the texts that a JSON schema accepts as a part: see the function of this name. After an error the builder is as
// before.
func (b *Builder) Schema(text []byte) (Part, error) {
	b.ofJSON()
	nodes, rules, skipped, failed := len(b.nodes), len(b.rules), len(b.skipped), b.err
	p, err := b.schema(text)
	if err == nil && failed == nil {
		err = b.err
	}
	if err != nil { // there may be calls of rules that are not defined
		b.nodes, b.rules, b.skipped, b.err = b.nodes[:nodes], b.rules[:rules], b.skipped[:skipped], failed
	}
	return p, err
}

func (b *Builder) schema(text []byte) (Part, error) {
	s, err := read(text)
	if err != nil {
		return nil, &SchemaError{"#", err}
	}
	c := &compiler{Builder: b, jsonParts: b.ofJSON(), source: s, rules: make(map[string]*schemaRule), ids: make(map[*jinja.Dict]uint32),
		expanded: make(map[splitKey][][]located), texts: make(map[string]Part), chars: make(map[string]Part), matchers: make(map[string]*nameMatcher), before: len(b.skipped), textWork: maxTextWork}
	return c.all([]located{{s.root, "#"}})
}

// typed are the keywords for values of a type, by which a schema without a type is known.
var typed = map[string][]string{
	"object": {"properties", "required", "additionalProperties", "minProperties", "maxProperties", "patternProperties", "propertyNames",
		"unevaluatedProperties"},
	"array": {"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains", "additionalItems",
		"unevaluatedItems"},
	"string": {"minLength", "maxLength", "pattern", "format", "contentEncoding", notPattern, notValues},
	"number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
}

// kindsOfValues are the types by which a schema without one is known, in their order.
var kindsOfValues = []string{"object", "array", "string", "number"}

// Keywords of schemas that stand for the opposite of another one.
const (
	notPattern = "\x00pattern"
	notValues  = "\x00enum"
)

// splitting are the keywords that stand for alternatives. What has no effect, or is unknown, is an annotation.
var splitting = []string{"anyOf", "oneOf", "dependentRequired", "dependentSchemas", "dependencies", "if", "not"}

// Annotation reports whether a keyword of schemas has no effect.
func Annotation(key string) bool {
	e := entry{dict(key, nil), "", 0}
	return !e.matters() && !slices.Contains(references, key) && key != "allOf" && key != "nullable"
}

func has(d *jinja.Dict, key string) bool { return d.Has(key) }

func dict(pairs ...any) *jinja.Dict {
	d := jinja.NewDict()
	for i := 0; i < len(pairs); i += 2 {
		d.Set(pairs[i], pairs[i+1])
	}
	return d
}

func (*source) fail(path, format string, args ...any) error {
	return &SchemaError{path, fmt.Errorf(format, args...)}
}

// nothing is the error of a schema without values.
func (c *compiler) nothing(path, format string, args ...any) error {
	return c.fail(path, "%s: %w", fmt.Sprintf(format, args...), errNothing)
}

// skip notes a keyword that is not enforced.
func (c *compiler) skip(path, key string) {
	pointer := path + "/" + escaped(key)
	if own := c.skipped[c.before:]; len(own) < maxSkipped && !slices.Contains(own, pointer) {
		c.skipped = append(c.skipped, pointer)
	}
}

// escaped returns a name as a part of a pointer.
func escaped(name string) string { return escapeNames.Replace(name) }

var escapeNames = strings.NewReplacer("~", "~0", "/", "~1")

// body returns the part of entries, of which there is at least one.
func (c *compiler) body(entries []entry, path string) (Part, error) {
	for i, e := range entries {
		for n, key := range splitting {
			if e.done&(1<<n) != 0 || !has(e.d, key) {
				continue
			}
			options, err := c.options(e, key)
			if err != nil {
				return nil, err
			}
			rest := slices.Clone(entries)
			if rest[i].done |= 1 << n; !rest[i].matters() {
				rest = slices.Delete(rest, i, i+1)
			}
			if options == nil {
				return c.rule(rest)
			}
			return c.alternatives(rest, options)
		}
	}
	if values, some, err := c.values(entries, path); some || err != nil {
		return c.literals(values, path, err)
	}
	types, err := c.types(entries, path)
	if err != nil {
		return nil, err
	}
	return eachOf(types, func(t string) (Part, error) { return c.typePart(t, entries, path) })
}

// alternatives returns what satisfies entries and all schemas of an option.
func (c *compiler) alternatives(entries []entry, options [][]located) (Part, error) {
	return eachOf(options, func(option []located) (Part, error) {
		both, err := c.flat(entries, option)
		if err != nil {
			return nil, err
		}
		return c.rule(both)
	})
}

// eachOf returns the alternatives of a list, without those that accept nothing.
func eachOf[T any](list []T, f func(T) (Part, error)) (Part, error) {
	var parts []Part
	var nothing error
	for _, x := range list {
		p, err := f(x)
		switch {
		case errors.Is(err, errNothing):
			nothing = err
		case err != nil:
			return nil, err
		default:
			parts = append(parts, p)
		}
	}
	if parts == nil {
		return nil, nothing
	}
	return Alt(parts...), nil
}

// types returns the types that all entries accept: those that they name, or the one of their keywords, or empty for any.
func (c *compiler) types(entries []entry, path string) (list []string, err error) {
	named := false
	for _, e := range entries {
		if !has(e.d, "type") {
			continue
		}
		types, err := c.typesOf(e.d, e.path)
		if err != nil {
			return nil, err
		}
		if named {
			types = common(list, types)
		}
		list, named = types, true
	}
	switch {
	case named && len(list) == 0:
		return nil, c.nothing(path, "type: there is no common one")
	case named:
		return list, nil
	}
	for _, t := range kindsOfValues {
		if slices.ContainsFunc(entries, func(e entry) bool {
			return slices.ContainsFunc(typed[t], func(key string) bool { return has(e.d, key) })
		}) {
			return []string{t}, nil
		}
	}
	return []string{""}, nil
}

// typesOf returns the types that a schema names.
func (c *source) typesOf(d *jinja.Dict, path string) (list []string, err error) {
	switch t := d.Get("type").(type) {
	case string:
		list = append(list, t)
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
	}
	for _, t := range list {
		if !slices.Contains([]string{"null", "boolean", "object", "array", "string", "integer", "number"}, t) {
			return nil, c.fail(path, "the type %.60q", t)
		}
	}
	if list == nil {
		return nil, c.fail(path, "type: want a string or a list of strings")
	}
	if d.Get("nullable") == true && !slices.Contains(list, "null") { // of OpenAPI 3.0
		list = append(list, "null")
	}
	return list, nil
}

// common returns the types of both lists.
func common(a, b []string) (list []string) {
	for _, t := range a {
		switch {
		case slices.Contains(b, t), t == "integer" && slices.Contains(b, "number"):
			list = append(list, t)
		case t == "number" && slices.Contains(b, "integer"):
			list = append(list, "integer")
		}
	}
	return list
}

// typePart returns the values of a type.
func (c *compiler) typePart(t string, entries []entry, path string) (Part, error) {
	switch t {
	case "":
		return c.any, nil
	case "null":
		return c.remaining(entries, path, nil)
	case "boolean":
		return c.remaining(entries, path, true, false)
	case "object":
		c.skipValues(entries, t)
		return c.objectPart(entries, path)
	case "array":
		c.skipValues(entries, t)
		return c.listPart(entries, path)
	case "string":
		return c.stringPart(entries, path)
	}
	return c.numberPart(t == "integer", entries, path)
}

// excluded returns the values of a type that entries do not accept, and those that have some.
func excluded(entries []entry, t string) (values []any, by []entry) {
	for _, e := range entries {
		if l, ok := e.d.Get(notValues).(*jinja.List); ok {
			for _, v := range l.Items {
				if ofType(v, t) {
					values, by = append(values, v), append(by, e)
				}
			}
		}
	}
	return values, by
}

// skipValues notes values of a type that are not excluded.
func (c *compiler) skipValues(entries []entry, t string) {
	_, by := excluded(entries, t)
	for _, e := range by {
		c.skip(e.path, "enum")
	}
}

// remaining returns the values that entries do not exclude.
func (c *compiler) remaining(entries []entry, path string, values ...any) (Part, error) {
	for _, t := range []string{"null", "boolean"} {
		without, _ := excluded(entries, t)
		values = amongst(values, without, false)
	}
	if values == nil {
		return nil, c.nothing(path, "not")
	}
	list := make([]Part, len(values))
	for i, v := range values {
		list[i] = Text(jsonText(v))
	}
	return oneOf(list), nil
}

// errCount is the error of a keyword that counts.
var errCount = errors.New("want an integer from 0 to 20000")

// counts returns the numbers between two keywords that count, of all entries; most is -1 without one.
func (c *compiler) counts(entries []entry, minimum, maximum string) (least, most int, err error) {
	most = -1
	for _, e := range entries {
		low, err := count(e.d, minimum, 0)
		high, err2 := count(e.d, maximum, -1)
		if err := errors.Join(err, err2); err != nil {
			return 0, 0, c.fail(e.path, "%w", err)
		}
		least = max(least, low)
		if high >= 0 && (most < 0 || high < most) {
			most = high
		}
	}
	if most >= 0 && least > most {
		return 0, 0, c.nothing(entries[0].path, "%s %d of at most %d", minimum, least, most)
	}
	return least, most, nil
}

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
