package grammar

import (
	"errors"
	"strings"
	"testing"
)

// singles is the vocabulary of all bytes.
var singles = func() *Vocabulary {
	list := make([]string, 256)
	for i := range list {
		list[i] = string([]byte{byte(i)})
	}
	return NewVocabulary(list)
}()

// matches reports whether a text belongs to a grammar.
func matches(g *Grammar, s string) bool {
	m := g.NewMatcher(singles, nil)
	return m.Advance([]byte(s)) && m.Accepts()
}

func TestSchemas(t *testing.T) {
	for _, c := range []struct {
		schema   string
		yes, not []string
	}{
		{`{"type":"object","properties":{"a":{"type":"integer"},"b":{}},"required":["b","c"]}`,
			[]string{`{"a": 1, "b": [], "c": "x"}`, `{"b":1,"c":2}`, "{\n  \"a\": 1,\n  \"b\": {},\n  \"c\": 2\n}"},
			[]string{`{"a":1}`, `{"c":1,"b":2}`, `{"b":1,"c":2,"d":3}`, `{}`, `{"b":01,"c":1}`}},
		{`{"properties":{"x":{"type":"string"}}}`, []string{`{}`, `{"x":"é\n\u00e9\ud7ff"}`},
			[]string{`{"x":"\ud800"}`, "{\"x\":\"\n\"}", `{"x":"` + "\xff" + `"}`, `{"x":"` + "\xed\xa0\x80" + `"}`, `{"x":1}`}},
		{`{"type":"integer","minimum":-5,"exclusiveMaximum":120}`, []string{"-5", "-1", "0", "99", "119"}, []string{"-6", "120", "1.5", "-0", "007"}},
		{`{"type":"number","exclusiveMinimum":0,"maximum":2}`, []string{"1", "2", "1.999", "0.5", "2.0"}, []string{"0", "2.1", "0.0", "-1", "1e1"}},
		{`{"type":"number","minimum":0,"maximum":1}`, []string{"0", "1", "0.25"}, []string{"1.1", "-0.5"}},
		{`{"type":["boolean","null"]}`, []string{"true", "null"}, []string{"1", `"true"`}},
		{`{"enum":["a",{"k":[1]},2.5],"type":["string","number"]}`, []string{`"a"`, "2.5"}, []string{`{"k":[1]}`, `"b"`}},
		{`{"type":"array","prefixItems":[{"const":1},{"const":2}],"items":false,"minItems":1}`, []string{"[1]", "[1, 2]"}, []string{"[]", "[2]", "[1,2,3]"}},
		{`{"type":"array","prefixItems":[{"const":1},false],"maxItems":0}`, []string{"[]"}, []string{"[1]"}},
		{`{"type":"string","pattern":"^a+[\"\\\\]$"}`, []string{`"aa\""`, `"a\\"`}, []string{`"a"`, `"a\n"`, `"b\""`}},
		{`{"oneOf":[{"type":"string"},{"type":"integer"}]}`, []string{`"x"`, "1"}, []string{"null"}},
		{`{"oneOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}],"$defs":{
			"a":{"type":"object","properties":{"t":{"const":"a"}},"required":["t"]},
			"b":{"type":"object","properties":{"t":{"const":"b"},"n":{"type":"null"}},"required":["t"]}}}`,
			[]string{`{"t":"a"}`, `{"t":"b","n":null}`}, []string{`{"t":"c"}`, `{"t":"a","n":null}`}},
		{`{"const":12345678901234567890}`, []string{"12345678901234567890"}, []string{"1.2345678901234567e+19", "12345678901234567168"}},
		{`{"enum":["2024-02-30","2024-02-29","0123"],"format":"date"}`, []string{`"2024-02-29"`}, []string{`"2024-02-30"`, `"0123"`}},
		{`{"const":"C0FFEE00-0000-4000-8000-00000000000A","format":"uuid"}`, []string{`"C0FFEE00-0000-4000-8000-00000000000A"`}, nil},
		{`{"enum":[-9223372036854775809,0.1,1e2,1.0],"type":"integer"}`, []string{"-9223372036854775809", "1e2", "1.0"}, []string{"0.1", "100"}},
		{`{"oneOf":[{"const":1},{"const":1.5},{"const":12345678901234567890}]}`, []string{"1", "1.5"}, nil},
		{`{"$id":"https://example.com/a","$defs":{"x":{"type":"string"}},"properties":{
			"outer":{"$ref":"#/$defs/x"},"inner":{"$id":"b","$defs":{"x":{"type":"null"}},"type":"array","items":{"$ref":"#/$defs/x"}},
			"all":{"$id":"c","type":"array","items":{"$ref":"#"},"maxItems":1}},"required":["outer"]}`,
			[]string{`{"outer":"s","inner":[null]}`, `{"outer":"s","all":[[[]]]}`}, []string{`{"outer":null}`, `{"outer":"s","inner":["s"]}`, `{"outer":"s","all":[{"outer":"s"}]}`}},
		{`{"$ref":"#/$defs/a%20%25b~0/prefixItems/1","$defs":{"a %b~":{"prefixItems":[{"type":"null"},{"type":"boolean"}]}}}`, []string{"true"}, []string{"null"}},
		{`{"const":"\ud83d\ude00\\ud800\ufffd"}`, []string{`"😀\\ud800�"`}, []string{`"😀"`}},
		{`{"$ref":"#/$defs/n~1x","$defs":{"n/x":{"type":"array","items":{"$ref":"#/$defs/n~1x"}}}}`, []string{"[[],[[]]]"}, []string{"[1]"}},
	} {
		g, err := Schema([]byte(c.schema))
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		check := validator(t, []byte(c.schema))
		for _, s := range c.yes {
			if !matches(g, s) {
				t.Errorf("%s: %q is not accepted", c.schema, s)
			}
			if err := check(s); err != nil {
				t.Errorf("%s: %q: %v", c.schema, s, err)
			}
		}
		for _, s := range c.not {
			if matches(g, s) {
				t.Errorf("%s: %q is accepted", c.schema, s)
			}
		}
	}
}

// What cannot be kept is refused, with its place.
func TestRefused(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"string","pattern":"a^b"}`:                                "no string",
		`{"type":"object","properties":{"a":{"not":{}}},"required":["a"]}`: "false accepts no value",
		`{"allOf":[{"type":"string"},{"type":"integer"}]}`:                 "no common one",
		`{"$ref":"#"}`: "begins with itself",
		`{"anyOf":[{"$ref":"#"},{"type":"null"}]}`:                            "begins with itself",
		`{"$ref":"https://example.com/x"}`:                                    "$ref",
		`{"$ref":"#/$defs/none"}`:                                             "$ref",
		`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`:  "no finite",
		`{"type":"integer","minimum":3,"maximum":2}`:                          "bounds",
		`{"const":"a\ud800"}`:                                                 "#: \"\\\"a\ufffd\\\"\": half of a surrogate pair",
		`{"enum":["\ude00\ud83d"]}`:                                           "surrogate",
		`{"properties":{"a":{"const":[{"\ud83d\u0041":1}]}}}`:                 "#/properties/a",
		`{"properties":{"\ud800":true}}`:                                      "surrogate",
		`{"required":["\\\ud800"]}`:                                           "surrogate",
		`{"pattern":"[\ud800]"}`:                                              "surrogate",
		"{\"const\":\"\xff\"}":                                                "surrogate",
		`{"$id":"a","items":{"$id":"b","$ref":"#/$defs/x"},"$defs":{"x":{}}}`: "no such schema",
		`{"$ref":"#/$defs/%zz"}`:                                              "%zz",
		`{"type":"string","minLength":9,"maxLength":3}`:                       "minLength",
		`{"type":"string","minLength":1e9}`:                                   "minLength",
		`{"type":"colour"}`:                                                   "colour",
		`{"type":7}`:                                                          "type",
		`{"enum":[]}`:                                                         "no value",
		`false`:                                                               "false",
		`[]`:                                                                  "object",
		`{"type":"array","items":{"type":"array","minItems":20000,"maxItems":20000,"items":{"type":"string"}},"minItems":20000,"prefixItems":[]}`: "no finite",
		strings.Repeat(`{"items":`, 90) + "true" + strings.Repeat("}", 90):                                                                        "schemas in schemas",
	} {
		_, err := Schema([]byte(schema))
		if err == nil || !strings.Contains(err.Error(), want) && !errors.Is(err, errCount) {
			t.Errorf("%.200s: got %v, want %q", schema, err, want)
		}
	}
}

func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"integer","minimum":3}},"required":["a"]}`), []byte(`{"a":3}`))
	f.Add([]byte(`{"type":"string","pattern":"^a*$"}`), []byte(`"aa"`))
	f.Fuzz(func(t *testing.T, schema, text []byte) {
		if g, err := Schema(schema); err == nil {
			matches(g, string(text)) // must return
		}
	})
}
