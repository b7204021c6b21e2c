package grammar

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// What each keyword is made of: texts that belong to the form, and others that do not. The texts that belong to it are valid by another
// implementation, but for OpenAPI's keywords, which it does not know.
func TestKeywords(t *testing.T) {
	const object = `"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}}`
	for _, c := range []struct {
		schema   string
		yes, not []string
	}{
		{`{"type":"string","pattern":"^[a-z]+$","minLength":2,"maxLength":3}`, []string{`"ab"`, `"abc"`}, []string{`"a"`, `"abcd"`, `"A"`}},
		{`{"type":"string","pattern":"^ab","minLength":4}`, []string{`"abcd"`}, []string{`"ab"`, `"xabc"`}},
		{`{"allOf":[{"pattern":"^a"},{"pattern":"z$"},{"type":"string","maxLength":4}]}`, []string{`"az"`, `"a..z"`}, []string{`"a"`, `"a...z"`}},
		{`{"type":"string","format":"uuid","pattern":"^[0-7-]+$"}`, []string{`"01234567-0123-0123-0123-012345670123"`},
			[]string{`"81234567-0123-0123-0123-012345670123"`}},
		{`{"type":"string","format":"date-time","pattern":"\\.\\d{3}Z$"}`, []string{`"2024-02-29T10:11:12.123Z"`}, []string{`"2024-02-29T10:11:12Z"`, `"2023-02-29T10:11:12.123Z"`}},
		{`{"type":"string","pattern":"^(?=.*[A-Z])(?=.*\\d)(?!.*x).{4,}$"}`, []string{`"Ab1c"`, `"1234A"`}, []string{`"abc1"`, `"Ab1x"`, `"A1b"`}},
		{`{"type":"string","pattern":"\\bfoo\\b","minLength":3}`, []string{`"foo"`, `"a foo!"`}, []string{`"food"`, `"foo_"`}},
		{`{"type":"string","pattern":"^(a(?!b)|b)*$","minLength":1}`, []string{`"aa"`, `"ba"`}, []string{`"ab"`}},
		{`{"type":"string","not":{"enum":["a","b"]}}`, []string{`"c"`, `"ab"`, `""`}, []string{`"a"`, `"b"`}},
		{`{"type":["string","null"],"not":{"type":"string","pattern":"^x"}}`, []string{`"a"`, `null`}, []string{`"xy"`}},
		{`{"type":"string","contentEncoding":"base64","minLength":1}`, []string{`"YQ=="`}, []string{`"YQ"`, `"Y==="`}},
		{`{"type":"integer","multipleOf":5}`, []string{"0", "-15", "120"}, []string{"3", "12", "-0"}},
		{`{"type":"number","multipleOf":0.25,"exclusiveMinimum":0}`, []string{"0.25", "3", "2.5", "1.75"}, []string{"0", "0.3", "1.250", "-0.25"}},
		{`{"type":"integer","multipleOf":7,"minimum":10,"maximum":30}`, []string{"14", "28"}, []string{"7", "15", "35"}},
		{`{"type":"number","multipleOf":300}`, []string{"0", "600", "-300"}, []string{"100", "301"}},
		{`{"allOf":[{"type":"integer","multipleOf":4},{"multipleOf":6}]}`, []string{"12", "24"}, []string{"4", "6"}},
		{`{"type":"array","items":{"enum":["a","b"]},"uniqueItems":true,"minItems":1}`, []string{`["b","a"]`, `["a"]`}, []string{`["a","a"]`, "[]"}},
		{`{"type":"array","items":{"type":["boolean","null"]},"uniqueItems":true}`, []string{`[true, null]`, "[]"}, []string{`[null,null]`}},
		{`{"type":"array","items":{"type":"integer","minimum":1,"maximum":12},"uniqueItems":true,"maxItems":2}`, []string{`[1,12]`, "[3]"},
			[]string{`[2,2]`, "[1,2,3]", "[0]"}},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","type":"array","items":[{"type":"string"},{"type":"integer"}],"additionalItems":{"type":"null"}}`, []string{`["a",1,null]`, `["a"]`},
			[]string{`[1]`, `["a",1,2]`}},
		{`{"enum":["x","y"],"const":"x"}`, []string{`"x"`}, []string{`"y"`}},
		{`{"enum":[1,2,30,"ab","abc",null],"minimum":2,"maxLength":2,"type":["number","string"]}`, []string{"2", "30", `"ab"`}, []string{"1", `"abc"`, "null"}},
		{`{"type":"string","anyOf":[{"minLength":5},{"enum":["a"]},{"type":"integer"}]}`, []string{`"a"`, `"abcde"`}, []string{`"b"`, "1"}},
		{`{` + object + `,"anyOf":[{"required":["a"]},{"required":["b"]}]}`, []string{`{"a":1}`, `{"b":"x"}`, `{"a":1,"b":"x"}`}, []string{`{}`}},
		{`{"$ref":"#/$defs/p","description":"x","properties":{"b":{"type":"null"}},"$defs":{"p":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}}`,
			[]string{`{"a":1,"b":null}`, `{"a":1}`}, []string{`{"b":null}`}},
		{`{"type":["integer","boolean","null"],"not":{"enum":[1,10,null,true]}}`, []string{"0", "11", "100", "-1", "false"}, []string{"1", "10", "null", "true"}},
		{`{"type":"number","not":{"const":1.5},"minimum":0}`, []string{"1.55", "1", "0.5"}, []string{"1.5", "1.50", "-1"}},
		{`{` + object + `,"minProperties":1}`, []string{`{"a":1}`, `{"b":"x"}`}, []string{`{}`}},
		{`{` + object + `,"maxProperties":1}`, []string{`{"a":1}`, `{}`}, []string{`{"a":1,"b":"x"}`}},
		{`{` + object + `,"dependentRequired":{"a":["b"]}}`, []string{`{"b":"x"}`, `{"a":1,"b":"x"}`, `{}`}, []string{`{"a":1}`}},
		{`{` + object + `,"dependentSchemas":{"a":{"properties":{"a":{"minimum":5}}}}}`, []string{`{"a":5}`, `{"b":"x"}`}, []string{`{"a":4}`}},
		{`{` + object + `,"if":{"properties":{"a":{"const":1}},"required":["a"]},"then":{"required":["b"]}}`,
			[]string{`{"a":1,"b":"x"}`, `{"b":"x"}`, `{}`}, []string{`{"a":1}`}},
		{`{"type":"object","patternProperties":{"^x":{"type":"integer"},"y$":{"type":"null"}},"additionalProperties":false,"minProperties":1}`,
			[]string{`{"x1":1,"ay":null}`, `{"x":2}`}, []string{`{"x":null}`, `{"z":1}`, `{"xy":1}`, `{}`}},
		{`{"type":"object","properties":{"x_a":{"minimum":3},"b":true},"patternProperties":{"^x_":{"type":"integer"}}}`, []string{`{"x_a":3,"b":null}`},
			[]string{`{"x_a":2}`, `{"x_a":"y"}`}},
		{`{"type":"object","propertyNames":{"enum":["k","l"]},"additionalProperties":{"type":"integer"},"required":["l"]}`,
			[]string{`{"k":1,"l":2}`, `{"l":3}`}, []string{`{"k":1}`, `{"l":1,"m":2}`, `{"l":""}`}},
		{`{"type":"object","propertyNames":{"pattern":"^[a-z]+$"}}`, []string{`{"ab":[]}`}, []string{`{"A":1}`}},
		{`{"$id":"http://x.test/s","properties":{"a":{"$ref":"#name"},"b":{"$ref":"other"},"c":{"$ref":"http://x.test/s#/$defs/n"}},"required":["a","b","c"],
			"$defs":{"n":{"$anchor":"name","type":"null"},"o":{"$id":"other","type":"boolean"}}}`, []string{`{"a":null,"b":true,"c":null}`}, []string{`{"a":1,"b":true,"c":null}`}},
		{`{"type":"object","properties":{"a":false,"b":{"type":"null"}},"unevaluatedProperties":false}`, []string{`{"b":null}`, `{}`}, []string{`{"a":1}`}},
		{`{"x-order":1,"type":"string","deprecated":true,"readOnly":true,"examples":[1],"contentMediaType":"text/plain","externalDocs":{},"format":"unheard-of"}`,
			[]string{`"any"`}, []string{`1`}},
	} {
		g, err := Schema([]byte(c.schema))
		if err != nil || g.NotEnforced() != nil {
			t.Errorf("%s: %v, not enforced: %v", c.schema, err, g.NotEnforced())
			continue
		}
		check := validator(t, []byte(c.schema))
		for i, s := range slices.Concat(c.yes, c.not) {
			if matches(g, s) != (i < len(c.yes)) {
				t.Errorf("%s: %s: belongs to the form: %v", c.schema, s, i >= len(c.yes))
			}
			if err := check(s); i < len(c.yes) && err != nil {
				t.Errorf("%s: %s: %v", c.schema, s, err)
			}
		}
	}
}

// OpenAPI's words mean what they do there.
func TestOpenAPI(t *testing.T) {
	const pets = `"components":{"schemas":{
		"Pet":{"type":"object","required":["kind"],"properties":{"kind":{"type":"string"}},"discriminator":{"propertyName":"kind"}},
		"Cat":{"allOf":[{"$ref":"#/components/schemas/Pet"},{"type":"object","properties":{"lives":{"type":"integer","format":"int32"}}}]},
		"Dog":{"allOf":[{"$ref":"#/components/schemas/Pet"},{"type":"object","properties":{"bark":{"type":"string","nullable":true}}}]}}}`
	for _, c := range []struct {
		schema   string
		yes, not []string
	}{
		{`{"type":"string","nullable":true}`, []string{`"a"`, "null"}, []string{"1"}},
		{`{"type":"integer","minimum":5,"exclusiveMinimum":true}`, []string{"6"}, []string{"5"}},
		{`{"properties":{"p":{"$ref":"#/components/schemas/Cat","nullable":true}},` + pets + `}`, []string{`{"p":null}`, `{"p":{"kind":"x","lives":9}}`},
			[]string{`{"p":{"lives":9}}`, `{"p":{"kind":"x","lives":9000000000}}`}},
		{`{"oneOf":[{"$ref":"#/components/schemas/Cat"},{"$ref":"#/components/schemas/Dog"}],"discriminator":{"propertyName":"kind","mapping":{
			"meow":"#/components/schemas/Cat"}},` + pets + `}`, []string{`{"kind":"meow","lives":9}`, `{"kind":"Dog","bark":null}`},
			[]string{`{"kind":"Cat"}`, `{"kind":"Dog","lives":9}`, `{"lives":9}`}},
		{`{"oneOf":[{"type":"object","properties":{"k":{"const":"a"}}},{"type":"object","properties":{"k":{"const":"b"},"n":{}}}],"discriminator":{"propertyName":"k"}}`,
			[]string{`{"k":"a"}`, `{"k":"b","n":1}`}, []string{`{}`, `{"n":1}`, `{"k":"a","n":1}`}},
	} {
		g, err := Schema([]byte(c.schema))
		if err != nil || g.NotEnforced() != nil {
			t.Errorf("%s: %v, not enforced: %v", c.schema, err, g.NotEnforced())
			continue
		}
		for i, s := range slices.Concat(c.yes, c.not) {
			if matches(g, s) != (i < len(c.yes)) {
				t.Errorf("%s: %s: belongs to the form: %v", c.schema, s, i >= len(c.yes))
			}
		}
	}
}

// Each format has texts, and these are of the format by other implementations where they know it.
func TestFormats(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	v, texts := words(r)
	for name := range formats {
		schema := []byte(`{"type":"string","format":"` + name + `"}`)
		g, err := Schema(schema)
		if err != nil || g.NotEnforced() != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if matches(g, `"no such \n"`) || matches(g, "1") {
			t.Errorf("%s: any text has the format", name)
		}
		check := validator(t, schema)
		for range 20 {
			text := walk(t, g, v, texts, r, 1+r.IntN(60))
			if err := check(text); err != nil {
				t.Errorf("%s: %s: %v", name, text, err)
			}
		}
	}
}

// What cannot be enforced is named, and the other keywords are enforced.
func TestNotEnforced(t *testing.T) {
	for _, c := range []struct{ schema, pointers, yes, not string }{
		{`{"type":"string","pattern":"(?<=a)b","minLength":2}`, "#/pattern", `"xy"`, `"x"`},
		{`{"type":"string","pattern":"(?P<n>a)"}`, "#/pattern", `"x"`, "1"},
		{`{"type":"string","pattern":"(a)\\1"}`, "#/pattern", `"x"`, "1"},
		{`{"type":"string","pattern":"^((a|b)*a(a|b){20})$","maxLength":90}`, "#/minLength #/maxLength", `"a` + strings.Repeat("b", 20) + `"`, `"a"`},
		{`{"type":"string","format":"ipv4","maxLength":3}`, "#/format", `"abc"`, `"abcd"`},
		{`{"type":"array","items":{"type":"string"},"uniqueItems":true}`, "#/uniqueItems", `["a","a"]`, "[1]"},
		{`{"type":"array","contains":{"const":1},"maxItems":2}`, "#/contains", "[2]", "[1,1,1]"},
		{`{"properties":{"a/b":{"type":"integer","not":{"minimum":3}}}}`, "#/properties/a~1b/not", `{"a/b":1}`, `{"a/b":"x"}`},
		{`{"oneOf":[{"type":"integer"},{"type":"number"}]}`, "#/oneOf", "1", `"x"`},
		{`{"type":"object","if":{"not":{"minProperties":3}},"then":{"required":["a"]}}`, "#/if", "{}", "1"},
		{`{"type":"object","minProperties":2}`, "#/minProperties", `{"a":1,"a":2}`, `{"a":1}`},
		{`{"type":"integer","multipleOf":99991}`, "#/multipleOf", "1", "1.5"},
		{`{"enum":[[1],[2,3]],"minItems":2}`, "#/enum", "[2,3]", "[4]"},
		{`{"enum":["http://é.example","a",1],"format":"iri","type":"string"}`, "#/format", `"http://é.example"`, "1"},
		{`{"enum":["QQ==","QR=="],"contentEncoding":"base64"}`, "#/contentEncoding", `"QR=="`, `"QS=="`},
	} {
		g, err := Schema([]byte(c.schema))
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		if got := strings.Join(g.NotEnforced(), " "); got != c.pointers {
			t.Errorf("%s: got %s, want %s", c.schema, got, c.pointers)
		}
		if !matches(g, c.yes) || matches(g, c.not) {
			t.Errorf("%s: %s belongs to the form: %v, %s: %v", c.schema, c.yes, matches(g, c.yes), c.not, matches(g, c.not))
		}
	}
}
