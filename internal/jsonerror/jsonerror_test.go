package jsonerror

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// object has a member of each kind.
type object struct {
	Text   string   `json:"text"`
	Number *float64 `json:"number"`
	Count  int      `json:"count"`
	List   []object `json:"list"`
	Flag   bool     `json:"flag"`
}

// TestPlain reads faulty JSON: no error names a package or a type of Go.
func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		`[]`: "an array, want an object", `5`: "a number, want an object", `{"text":5}`: "text: a number, want a string",
		`{"number":"x"}`: "number: a string, want a number", `{"count":1.5}`: "count: number 1.5, want an integer",
		`{"list":{}}`: "list: an object, want an array", `{"list":[{"flag":1}]}`: "list.flag: a number, want true or false",
		`{"list":[true]}`: "list: true or false, want an object", `{"other":1}`: `unknown field "other"`, `{`: "unexpected end", ``: "unexpected end",
		`{"text":"a`: "unexpected end", `x`: "invalid character 'x'", `{"text":nope}`: "invalid character 'o'",
	} {
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		err := d.Decode(new(object))
		got := Plain(err)
		if got == nil || !strings.Contains(got.Error(), want) || strings.Contains(got.Error(), "json") || strings.Contains(got.Error(), "Go") {
			t.Errorf("%s: got %v, want %s", text, got, want)
		}
		if !errors.Is(got, err) {
			t.Errorf("%s: the error does not wrap its cause", text)
		}
	}
	d := jsontext.NewDecoder(bytes.NewBufferString(`{"a":1,"a":2}`))
	if err := Plain(d.SkipValue()); err == nil || !strings.HasPrefix(err.Error(), "duplicate object member name") {
		t.Errorf("a member twice: %v", err)
	}
	if Plain(nil) != nil {
		t.Error("no error became one")
	}
}
