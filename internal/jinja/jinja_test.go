package jinja

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// varsOf returns a JSON object as variables.
func varsOf(t testing.TB, data []byte) map[string]any {
	t.Helper()
	v, err := FromJSON(data)
	d, ok := v.(*Dict)
	if err != nil || !ok {
		t.Fatalf("%.100s: %v, %v", data, v, err)
	}
	vars := make(map[string]any)
	for _, k := range d.keys {
		vars[k.(string)] = d.values[k]
	}
	return vars
}

func render(t testing.TB, template string, vars map[string]any) (string, error) {
	t.Helper()
	p, err := Parse(template)
	if err != nil {
		return "", err
	}
	return p.Render(vars, time.Date(2025, 7, 10, 12, 0, 0, 0, time.UTC))
}

// reference is a rendering by Jinja2.
type reference struct {
	Name, Family, Template string
	Data                   json.RawMessage
	Want                   string
	Fails                  bool
}

// references reads the renderings.
func references(t testing.TB) []reference {
	data, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Families map[string]string
		Cases    []reference
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	for i := range all.Cases {
		if c := &all.Cases[i]; c.Family != "" {
			c.Template = all.Families[c.Family]
		}
	}
	return all.Cases
}

// Renderings are those of Jinja2 with the settings of Hugging Face's library. testdata/reference.py writes them.
func TestReference(t *testing.T) {
	cases := references(t)
	if len(cases) < 90 {
		t.Errorf("%d cases, want 90 or more", len(cases))
	}
	for _, c := range cases {
		if strconv.IntSize == 32 && strings.Contains(c.Template, "9007199254740993") {
			continue // numbers of more bits than an int are refused
		}
		got, err := render(t, c.Template, varsOf(t, c.Data))
		if got != c.Want || (err != nil) != c.Fails {
			t.Errorf("%s:\n got %q, %v\nwant %q, fails %v\n%s", c.Name, got, err, c.Want, c.Fails, c.Template)
		}
	}
}

// Templates that would need more than their share of time, memory or stack are errors.
func TestBounds(t *testing.T) {
	const bytes = "{% set a = 'x' * 9999999 %}{% for i in range(99999) %}"
	names := strings.TrimSuffix(strings.Repeat("a,", 9_999), ",")
	for name, template := range map[string]string{
		"loops":          "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{% endfor %}{% endfor %}{% endfor %}",
		"doubling":       "{% set n = namespace(s='ab') %}{% for i in range(60) %}{% set n.s = n.s ~ n.s %}{% endfor %}{{ n.s | length }}",
		"lists":          "{% set n = namespace(s=[1]) %}{% for i in range(60) %}{% set n.s = n.s + n.s %}{% endfor %}",
		"repeat":         "{{ 'abcdefgh' * 999999999999 }}",
		"replace":        "{% set a = 'x' * 1000000 %}{{ a.replace('x', a) | length }}",
		"empty replace":  "{% set a = 'x' * 1000000 %}{{ a.replace('', a) | length }}",
		"join":           "{% set a = 'x' * 1000000 %}{{ range(1000) | join(a) | length }}",
		"recursion":      "{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}",
		"nested values":  "{% set n = namespace(l=[]) %}{% for i in range(9999) %}{% set n.l = [n.l] %}{% endfor %}{{ n.l }}",
		"nested JSON":    "{% set n = namespace(l=[]) %}{% for i in range(9999) %}{% set n.l = [n.l] %}{% endfor %}{{ n.l | tojson }}",
		"nested equals":  "{% set n = namespace(l=[], k=[]) %}{% for i in range(9999) %}{% set n.l = [n.l] %}{% set n.k = [n.k] %}{% endfor %}{{ n.l == n.k }}",
		"brackets":       "{{ " + strings.Repeat("(", 5_000) + "1" + strings.Repeat(")", 5_000) + " }}",
		"lists in lists": "{{ " + strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000) + " }}",
		"signs":          "{{ " + strings.Repeat("-", 5_000) + "1 }}",
		"not":            "{{ " + strings.Repeat("not ", 5_000) + "1 }}",
		"else":           "{{ " + strings.Repeat("1 if 0 else ", 5_000) + "1 }}",
		"if":             strings.Repeat("{% if 1 %}", 5_000),
		"range":          "{{ range(999999999) }}",
		"range overflow": "{{ range(9223372036854775806, 9223372036854775807, 9223372036854775807) | length }}{{ 1 / 0 }}",
		"indent":         "{{ 'a' | indent(999999999) }}",
		"JSON indent":    "{{ [1] | tojson(indent=999999999) }}",
		"rounding":       "{{ 1.5 | round(0, range) }}",
		"constants":      "{% for i in range(99999) %}{% set x = 1" + strings.Repeat(" + 1", 9_999) + " %}{% endfor %}",
		"no elements":    "{% for i in range(99999) %}{% set x = 1 if []" + strings.Repeat(" or []", 9_999) + " %}{% endfor %}",
		"length":         bytes + "{{ a | length }}{% endfor %}",
		"number":         "{% set a = '1' * 9999999 %}{% for i in range(99999) %}{{ a | int }}{% endfor %}",
		"case":           bytes + "{{ a is lower or a.isupper() }}{% endfor %}",
		"keys":           bytes + "{{ a in {'b': 1} or {'b': 1}[a] or {'b': 1}.get(a) }}{% endfor %}",
		"prefix":         bytes + "{{ a.startswith(a) }}{{ a.removeprefix(a) }}{% endfor %}",
		"sorted": "{% set n = namespace(l=['x' * 9999999]) %}{% for i in range(16) %}{% set n.l = n.l + n.l %}{% endfor %}" +
			"{{ n.l | sort | length }}",
		"separators":    "{% set a = 'x' * 9999999 %}{{ range(99999) | list | tojson(separators=[a, a]) | length }}",
		"words":         "{{ ('a ' * 32000000).split() | length }}",
		"lines":         "{{ ('\n' * 32000000).splitlines() | length }}{{ ('\n' * 32000000) | indent | length }}",
		"arguments":     "{% macro m(" + names + ") %}{% endmacro %}{% for i in range(99999) %}{{ m() }}{% endfor %}",
		"modulo":        "{{ 1 % 0 }}",
		"integers":      "{{ 9223372036854775807 + 1 }}",
		"least integer": "{{ (-9223372036854775807 - 1) // -1 }}{{ 1 / 0 }}",
		"output":        "{% set a = 'x' * 10000000 %}{% for i in range(9) %}{{ a }}{% endfor %}",
		"members":       "{{ a" + strings.Repeat(".b", 5_000) + " }}",
		"filters":       "{{ 1" + strings.Repeat("|list", 5_000) + " }}",
		"comparisons":   "{{ 1" + strings.Repeat(" == 1", 5_000) + " == 2 }}{{ 1 / 0 }}",
	} {
		begin := time.Now()
		got, err := render(t, template, nil)
		if err == nil {
			t.Errorf("%s: got %d bytes and no error", name, len(got))
		}
		if testing.Verbose() {
			t.Logf("%s: %v, %v", name, time.Since(begin), err)
		}
		if d := time.Since(begin); d > 30*time.Second {
			t.Errorf("%s: %v", name, d)
		}
	}
}

// What is not supported is refused when the template is parsed.
func TestUnsupported(t *testing.T) {
	for template, want := range map[string]string{
		"{% include 'x' %}":           "include",
		"{% import 'x' as y %}":       "import",
		"{% extends 'x' %}":           "extends",
		"{% block x %}{% endblock %}": "block",
		"{{ x | nosuchfilter }}":      "nosuchfilter",
		"{{ x is nosuchtest }}":       "nosuchtest",
		"{{ 2 ** 999 }}":              "**",
		"line\n{{ x":                  "line 2",
		"{% if x %}":                  "endif",
		"{% for x in %}":              "want a value",
		"{{ 'abc }}":                  "without its end",
		"{# x":                        "comment",
		"{{ (1 }}":                    "",
		"{{ 1 $ 2 }}":                 "$",
	} {
		if _, err := Parse(template); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", template, err, want)
		}
	}
}

// Errors of templates that Jinja2 renders or fails to render in other ways.
func TestOwnErrors(t *testing.T) {
	for template, want := range map[string]string{
		"{{ ['a'] | map(**{'': 'upper'}) | list }}":                   "after **",
		"{% call(x) dict(a=1) %}{% endcall %}{{ 1 / 0 }}":             "",
		"{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}":        "",
		"{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*range(99999)) }}": "arguments",
		"{% set j = joiner() %}{{ j.x.y }}":                           "not defined",
		"{{ cycler() }}":                                              "values",
		"{{ dict([1]) }}":                                             "no elements",
		"{{ dict(['abc']) }}":                                         "pairs",
		"{{ 2 | round(99) }}":                                         "",
	} {
		if got, err := render(t, template, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, %v, want an error with %q", template, got, err, want)
		}
	}
}

func FuzzRender(f *testing.F) {
	for _, c := range references(f) {
		f.Add(c.Template)
	}
	vars := varsOf(f, []byte(`{"messages":[{"role":"user","content":"x"}],"list":["a","b"],"dict":{"k":1},"text":"t"}`))
	f.Fuzz(func(t *testing.T, template string) {
		if p, err := Parse(template); err == nil {
			_, _ = p.Render(vars, time.Time{}) // must return
		}
	})
}
