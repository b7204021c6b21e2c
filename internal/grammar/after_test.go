package grammar

import (
	"errors"
	"strings"
	"testing"
)

// A text after a mark has the form of its grammar, which the one before does not change.
func TestAfter(t *testing.T) {
	schema, err := Schema([]byte(`{"$defs":{"n":{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"integer"}]}},
		"required":["a"],"additionalProperties":false}},"$ref":"#/$defs/n"}`))
	if err != nil {
		t.Fatal(err)
	}
	size := schema.Size()
	for _, mark := range []string{"</think>", "aab", "[/THINK]", "x"} {
		g, err := After(mark, schema)
		if err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]bool{
			mark + `{"a":1}`: true, mark + "\n\n" + `{"a":{"a":2}}`: true, "so, <\xff" + mark[:len(mark)-1] + "é\n" + mark + `{"a":1}`: true,
			strings.Repeat(mark[:len(mark)-1], 3) + mark + `{"a":1}`: true,
			`{"a":1}`: false, mark: false, mark + `{"a":1}` + mark + `{"a":1}`: false, mark + `{"b":1}`: false, mark + `no {"a":1}`: false,
			mark + mark + `{"a":1}`: false, mark + "\n\n\n\n\n\n" + `{"b":1}`: false,
		} {
			if got := matches(g, text); got != want {
				t.Errorf("%q before %q: %v, want %v", mark, text, got, want)
			}
		}
	}
	if schema.Size() != size || !matches(schema, `{"a":1}`) || matches(schema, `</think>{"a":1}`) {
		t.Error("the grammar has changed")
	}
	limit := errors.New("enough")
	if _, err := After("</think>", schema, func(int) error { return limit }); !errors.Is(err, limit) {
		t.Errorf("got %v", err)
	}
}
